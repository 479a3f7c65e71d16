// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentraced: command line, signals, and the order in which things come up and go down.
 */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/config/config-print.h"
#include "daemon/config/config-read.h"
#include "daemon/control/control.h"
#include "daemon/control/metrics-file.h"
#include "daemon/host/fd-store.h"
#include "daemon/host/systemd.h"
#include "daemon/host/view-group.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/manager.h"
#include "daemon/watchdog.h"

/* Promised in xentraced(8), and named by RestartPreventExitStatus= of the unit. */
#define EXIT_USAGE             2
#define EXIT_NO_CONTROL_DOMAIN 69 /* EX_UNAVAILABLE of sysexits.h */
#define EXIT_BAD_CONFIG        78 /* EX_CONFIG */

enum action {
    ACTION_RUN,
    ACTION_CHECK_CONFIG,
    ACTION_PRINT_CONFIG,
};

static enum action arg_action = ACTION_RUN;
static const char *arg_config = XENTRACED_CONFIG_FILE;
static bool arg_config_given;
static char arg_drop_ins[PATH_MAX];     /* of arg_config */
static struct config_source arg_source; /* made of these; a worker may read it until the very end */
static const char *arg_socket = XENTRACED_SOCKET;
static const char *arg_state_dir = XENTRACED_STATE_DIR;
static int arg_log_level = -1; /* the configuration's */

static void print_help(void)
{
    (void)printf(
        "xentraced [OPTIONS...]\n\n"
        "Records Xen's trace buffers. Controlled by xentracectl(1).\n\n"
        "  --config FILE     configuration (%s);\n"
        "                    drop-ins are in FILE.d\n"
        "  --socket PATH     where to listen (%s)\n"
        "  --state-dir DIR   where captures go (%s)\n"
        "  --log-level NAME  err, warning, notice, info or debug\n"
        "  --check-config    only check the configuration\n"
        "  --print-config    only show the values in force, and where they come from\n"
        "  --help            show this\n"
        "  --version         show the version\n\n"
        "xentraced stays in the foreground. To run it as a service: systemctl start xentraced\n",
        XENTRACED_CONFIG_FILE, XENTRACED_SOCKET, XENTRACED_STATE_DIR);
}

static int set_log_level(const char *name)
{
    int r = config_read_log_level(name, &arg_log_level);

    if (r < 0)
        (void)fprintf(stderr,
                      "xentraced: --log-level '%s': use err, warning, notice, info or debug.\n",
                      name);
    return r;
}

/* Returns 1 to continue, 0 if all is done, a negative errno for a usage error, which is printed. */
static int parse_arguments(int argc, char *argv[])
{
    enum { ARG_CONFIG = 256, ARG_SOCKET, ARG_STATE_DIR, ARG_LOG_LEVEL, ARG_CHECK, ARG_PRINT };
    static const struct option options[] = {
        {"config", required_argument, NULL, ARG_CONFIG},
        {"socket", required_argument, NULL, ARG_SOCKET},
        {"state-dir", required_argument, NULL, ARG_STATE_DIR},
        {"log-level", required_argument, NULL, ARG_LOG_LEVEL},
        {"check-config", no_argument, NULL, ARG_CHECK},
        {"print-config", no_argument, NULL, ARG_PRINT},
        {"help", no_argument, NULL, 'h'},
        {"version", no_argument, NULL, 'V'},
        {NULL, 0, NULL, 0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "hV", options, NULL)) >= 0) {
        switch (option) {
        case ARG_CONFIG:
            arg_config = optarg;
            arg_config_given = true;
            break;
        case ARG_SOCKET:
            arg_socket = optarg;
            break;
        case ARG_STATE_DIR:
            arg_state_dir = optarg;
            break;
        case ARG_LOG_LEVEL:
            if (set_log_level(optarg) < 0)
                return -EINVAL;
            break;
        case ARG_CHECK:
            arg_action = ACTION_CHECK_CONFIG;
            break;
        case ARG_PRINT:
            arg_action = ACTION_PRINT_CONFIG;
            break;
        case 'h':
            print_help();
            return 0;
        case 'V':
            (void)printf("xentraced %s\n", PACKAGE_VERSION);
            return 0;
        default:
            return -EINVAL; /* getopt has said why */
        }
    }
    if (optind < argc) {
        (void)fprintf(stderr, "xentraced: Unexpected argument '%s'; see xentraced --help.\n",
                      argv[optind]);
        return -EINVAL;
    }
    return 1;
}

static int handle_end_signal(sd_event_source *source, const struct signalfd_siginfo *info,
                             void *userdata)
{
    struct manager *manager = userdata;

    (void)source;
    (void)info;
    systemd_notify(manager->systemd, "STOPPING=1");
    manager_shut_down(manager);
    return 0;
}

static int handle_snapshot_signal(sd_event_source *source, const struct signalfd_siginfo *info,
                                  void *userdata)
{
    (void)source;
    control_take_snapshot(userdata, info);
    return 0;
}

static int handle_reload_signal(sd_event_source *source, const struct signalfd_siginfo *info,
                                void *userdata)
{
    (void)source;
    control_reload(userdata, info);
    return 0;
}

static int catch_signal(sd_event *event, int signal, sd_event_signal_handler_t handler,
                        void *userdata)
{
    sd_event_source *source;
    int r;

    r = sd_event_add_signal(event, &source, signal, handler, userdata);
    if (r < 0)
        return r;
    r = sd_event_source_set_priority(source, PRIORITY_SIGNAL);
    (void)sd_event_source_set_floating(source, true); /* it lives as long as the loop */
    sd_event_source_unref(source);
    return r;
}

static int catch_signals(sd_event *event, struct manager *manager)
{
    static const struct {
        int signal;
        sd_event_signal_handler_t handler;
    } signals[] = {
        {SIGTERM, handle_end_signal},
        {SIGINT, handle_end_signal},
    };
    sigset_t mask;
    int r;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        (void)sigaddset(&mask, signals[i].signal);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        r = catch_signal(event, signals[i].signal, signals[i].handler, manager);
        if (r < 0)
            return r;
    }
    return 0;
}

/* They are blocked from the start: see disarm_signals(). */
static int catch_requests(sd_event *event, struct control *control)
{
    int r = catch_signal(event, SIGHUP, handle_reload_signal, control);

    return r < 0 ? r : catch_signal(event, SIGUSR2, handle_snapshot_signal, control);
}

/* The exit status of a daemon that could not start. */
static int exit_status_of(const struct failure *failure)
{
    if (failure->name && strcmp(failure->name, ERROR_NO_CONTROL_DOMAIN) == 0)
        return EXIT_NO_CONTROL_DOMAIN;
    if (failure->name && strcmp(failure->name, ERROR_CONFIG) == 0)
        return EXIT_BAD_CONFIG;
    return EXIT_FAILURE;
}

static int loop(sd_event *event, struct manager *manager)
{
    struct watchdog *watchdog;
    int r;

    r = watchdog_new(event, manager->collector, &watchdog);
    if (r < 0) {
        log_error("Cannot feed the service manager's watchdog: %s.", strerror(-r));
        return r;
    }
    log_info("Ready at %s.", manager->socket_path);
    systemd_notify(manager->systemd, "READY=1\nSTATUS=Ready.");
    r = sd_event_loop(event);
    watchdog_free(watchdog);
    return r;
}

/* This and the next functions return the exit status. */
static int serve(sd_event *event, struct manager *manager, const struct config_source *source)
{
    struct metrics_file *metrics = NULL;
    struct control *control = NULL;
    struct failure failure = {0};
    int r;

    r = catch_signals(event, manager);
    if (r < 0) {
        log_error("Cannot catch signals: %s.", strerror(-r));
        return EXIT_FAILURE;
    }
    r = control_new(manager, source, &control, &failure);
    if (r < 0) {
        log_error("%s", failure.text);
        return exit_status_of(&failure);
    }
    r = catch_requests(event, control);
    if (r < 0) {
        log_error("Cannot catch signals: %s.", strerror(-r));
        control_free(control);
        return EXIT_FAILURE;
    }
    r = metrics_file_new(manager, manager->config.metrics_file, &metrics);
    if (r < 0)
        log_warning("Cannot write metrics: %s.", strerror(-r));
    r = loop(event, manager);
    metrics_file_free(metrics);
    control_free(control);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/*
 * SIGHUP and SIGUSR2 wait for the event loop. SIGPIPE and SIGXFSZ would end the daemon when a
 * reader disconnects or a file becomes too large, which at its start the pool is, too; the error of
 * the call is sufficient. SIGIO would end it when a process opens a file that is being leased
 * (daemon/output/state-files.c). The other signals are received by the event loop.
 */
static void disarm_signals(void)
{
    sigset_t mask;

    (void)sigemptyset(&mask); /* none of these can fail */
    (void)sigaddset(&mask, SIGHUP);
    (void)sigaddset(&mask, SIGUSR2);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGIO, SIG_IGN);
}

static int run_manager(sd_event *event, const struct config *config,
                       const struct config_source *source)
{
    struct manager *manager = NULL;
    struct failure failure = {0};
    struct fd_store inherited;
    int r;

    fd_store_read(&inherited);
    r = manager_new(event, config, arg_socket, arg_state_dir, &inherited, &manager, &failure);
    fd_store_done(&inherited);
    if (r < 0) {
        log_error("%s", failure.text);
        return exit_status_of(&failure);
    }
    r = serve(event, manager, source);
    manager_free(manager);
    return r;
}

/* Without it, what is recorded is for root alone. */
static void own_files(void)
{
    int r = view_group_own_files();

    if (r < 0)
        log_warning("Members of the group " VIEW_GROUP
                    " cannot read new captures: %s. As a service, set Group=" VIEW_GROUP
                    " in the unit.",
                    strerror(-r));
}

static int run_loop(const struct config *config, const struct config_source *source)
{
    sd_event *event = NULL;
    int r;

    log_set_level(config->log_level);
    own_files();
    r = sd_event_default(&event);
    if (r < 0) {
        log_error("Cannot create the event loop: %s.", strerror(-r));
        return EXIT_FAILURE;
    }
    r = log_start(event);
    if (r < 0)
        log_warning(
            "The log has no thread of its own (%s): the daemon blocks if the journal hangs.",
            strerror(-r));
    r = run_manager(event, config, source);
    log_stop();
    sd_event_unref(event);
    return r;
}

static void log_problems(const struct config_reading *reading)
{
    for (size_t i = 0; i < reading->nr_problems; i++) {
        _cleanup_free_ char *text = config_describe_problem(&reading->problems[i]);

        log_line(reading->problems[i].is_error ? LOG_ERR : LOG_WARNING, NULL, "%s",
                 text ? text : "Out of memory.");
    }
}

static int run(const struct config_source *source)
{
    _cleanup_reading_ struct config_reading *reading = NULL;
    int r;

    log_open();
    disarm_signals();
    r = config_read(source, &reading);
    if (r < 0) {
        log_error("Out of memory.");
        return EXIT_FAILURE;
    }
    log_problems(reading);
    if (reading->nr_errors > 0)
        return EXIT_BAD_CONFIG;
    return run_loop(&reading->config, source);
}

static int show_config(const struct config_source *source)
{
    _cleanup_reading_ struct config_reading *reading = NULL;

    if (config_read(source, &reading) < 0) {
        (void)fputs("xentraced: Out of memory.\n", stderr);
        return EXIT_FAILURE;
    }
    if (arg_action == ACTION_PRINT_CONFIG && reading->nr_errors == 0)
        config_print(stdout, reading);
    else
        config_print_check(reading->nr_errors > 0 ? stderr : stdout, reading);
    return reading->nr_errors > 0 ? EXIT_BAD_CONFIG : EXIT_SUCCESS;
}

static int set_source(void)
{
    int length = snprintf(arg_drop_ins, sizeof(arg_drop_ins), "%s" CONFIG_DROP_INS, arg_config);

    if (length < 0 || (size_t)length >= sizeof(arg_drop_ins)) {
        (void)fprintf(stderr, "xentraced: --config: the path is too long.\n");
        return -ENAMETOOLONG;
    }
    arg_source = (struct config_source){
        .file = arg_config,
        .is_required = arg_config_given,
        .directories = {arg_drop_ins, arg_config_given ? NULL : CONFIG_VENDOR_DROP_INS},
        .log_level = arg_log_level,
    };
    return 0;
}

int main(int argc, char *argv[])
{
    int r;

    r = parse_arguments(argc, argv);
    if (r <= 0)
        return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    if (set_source() < 0)
        return EXIT_USAGE;
    return arg_action == ACTION_RUN ? run(&arg_source) : show_config(&arg_source);
}
