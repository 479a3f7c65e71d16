// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentraced: command line, signals, and the order in which things come up and go down.
 */

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/config/config.h"
#include "daemon/control/control.h"
#include "daemon/control/metrics-file.h"
#include "daemon/host/fd-store.h"
#include "daemon/host/systemd.h"
#include "daemon/host/view-group.h"
#include "daemon/base/log.h"
#include "daemon/base/priority.h"
#include "daemon/manager.h"
#include "daemon/session/snapshot.h"
#include "daemon/watchdog.h"

#define EXIT_USAGE 2

static const char *arg_config = XENTRACED_CONFIG_FILE;
static bool arg_config_given;
static const char *arg_socket = XENTRACED_SOCKET;
static const char *arg_state_dir = XENTRACED_STATE_DIR;
static int arg_log_level = -1; /* the configuration's */

static void print_help(void)
{
    (void)printf("xentraced [OPTIONS...]\n\n"
                 "Records Xen's trace buffers. Controlled by xentracectl(1).\n\n"
                 "  --config FILE     configuration (%s)\n"
                 "  --socket PATH     where to listen (%s)\n"
                 "  --state-dir DIR   where captures go (%s)\n"
                 "  --log-level NAME  err, warning, notice, info or debug\n"
                 "  --help            show this\n"
                 "  --version         show the version\n\n"
                 "It stays in the foreground: `systemctl start xentraced` runs it as a service.\n",
                 XENTRACED_CONFIG_FILE, XENTRACED_SOCKET, XENTRACED_STATE_DIR);
}

/* Returns 1 to continue, 0 if all is done, a negative errno for a usage error, which is printed. */
static int parse_arguments(int argc, char *argv[])
{
    enum { ARG_CONFIG = 256, ARG_SOCKET, ARG_STATE_DIR, ARG_LOG_LEVEL };
    static const struct option options[] = {
        {"config", required_argument, NULL, ARG_CONFIG},
        {"socket", required_argument, NULL, ARG_SOCKET},
        {"state-dir", required_argument, NULL, ARG_STATE_DIR},
        {"log-level", required_argument, NULL, ARG_LOG_LEVEL},
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
            if (config_read_log_level(optarg, &arg_log_level) < 0) {
                (void)fprintf(stderr,
                              "xentraced: --log-level '%s': use err, warning, notice, info or "
                              "debug.\n",
                              optarg);
                return -EINVAL;
            }
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

/* A snapshot without a control client. How it went is in the log. */
static int handle_snapshot_signal(sd_event_source *source, const struct signalfd_siginfo *info,
                                  void *userdata)
{
    struct manager *manager = userdata;
    const struct snapshot_options options = {
        .cause = SNAPSHOT_SIGNAL,
        .label = "sigusr2",
        .reserve_bytes = disk_snapshot_reserve_bytes(manager->config.reserve_bytes),
        .output_fd = -1,
        .sidecar_fd = -1,
    };
    struct failure failure = {0};
    struct snapshot *snapshot;

    (void)source;
    (void)info;
    if (manager_start_snapshot(manager, "", &options, &snapshot, &failure) < 0)
        log_warning("SIGUSR2: no snapshot. %s", failure.text);
    return 0;
}

/* systemd's `reload` and a terminal that closes: the configuration is read at start only. */
static int handle_reload_signal(sd_event_source *source, const struct signalfd_siginfo *info,
                                void *userdata)
{
    (void)source, (void)info, (void)userdata;
    log_debug("SIGHUP: nothing is reloaded.");
    return 0;
}

static int catch_signal(sd_event *event, int signal, sd_event_signal_handler_t handler,
                        struct manager *manager)
{
    sd_event_source *source;
    int r;

    r = sd_event_add_signal(event, &source, signal, handler, manager);
    if (r < 0)
        return r;
    r = sd_event_source_set_priority(source, PRIORITY_SIGNAL);
    (void)sd_event_source_set_floating(source, true); /* it lives as long as the loop */
    sd_event_source_unref(source);
    return r;
}

/*
 * SIGPIPE and SIGXFSZ would end the daemon when a reader goes away or a file becomes too large: the
 * write's error is enough; so would SIGIO when somebody opens a file while it is looked at whether
 * anybody has (daemon/output/state-files.c). The others come through the event loop.
 */
static int catch_signals(sd_event *event, struct manager *manager)
{
    static const struct {
        int signal;
        sd_event_signal_handler_t handler;
    } signals[] = {
        {SIGTERM, handle_end_signal},
        {SIGINT, handle_end_signal},
        {SIGHUP, handle_reload_signal},
        {SIGUSR2, handle_snapshot_signal},
    };
    sigset_t mask;
    int r;

    (void)sigemptyset(&mask);
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
        (void)sigaddset(&mask, signals[i].signal);
    if (sigprocmask(SIG_BLOCK, &mask, NULL) < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR ||
        signal(SIGXFSZ, SIG_IGN) == SIG_ERR || signal(SIGIO, SIG_IGN) == SIG_ERR)
        return -errno;
    for (size_t i = 0; i < ARRAY_SIZE(signals); i++) {
        r = catch_signal(event, signals[i].signal, signals[i].handler, manager);
        if (r < 0)
            return r;
    }
    return 0;
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

static int serve(sd_event *event, struct manager *manager)
{
    struct metrics_file *metrics = NULL;
    struct control *control = NULL;
    struct failure failure = {0};
    int r;

    r = catch_signals(event, manager);
    if (r < 0) {
        log_error("Cannot catch signals: %s.", strerror(-r));
        return r;
    }
    r = control_new(manager, &control, &failure);
    if (r < 0) {
        log_error("%s", failure.text);
        return r;
    }
    r = metrics_file_new(manager, manager->config.metrics_file, &metrics);
    if (r < 0)
        log_warning("Cannot write metrics: %s.", strerror(-r));
    r = loop(event, manager);
    metrics_file_free(metrics);
    control_free(control);
    return r;
}

/* From the start: SIGHUP must not end a daemon that has not set up its event loop yet. */
static void block_hangup(void)
{
    sigset_t mask;

    (void)sigemptyset(&mask); /* none of these can fail */
    (void)sigaddset(&mask, SIGHUP);
    (void)sigprocmask(SIG_BLOCK, &mask, NULL);
}

static int run_manager(sd_event *event, const struct config *config)
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
        return r;
    }
    r = serve(event, manager);
    manager_free(manager);
    return r;
}

/* Without it, what is recorded is for root alone. */
static void own_files(void)
{
    int r = view_group_own_files();

    if (r < 0)
        log_warning("Members of the group " VIEW_GROUP " cannot read what is recorded from now on: "
                    "%s. As a service, set Group=" VIEW_GROUP " in the unit.",
                    strerror(-r));
}

static int run(void)
{
    _cleanup_free_ char *error = NULL;
    struct config config;
    sd_event *event = NULL;
    int r;

    r = config_load(arg_config, arg_config_given, &config, &error);
    if (r < 0) {
        log_error("%s", error ? error : "Out of memory.");
        return r;
    }
    log_set_level(arg_log_level >= 0 ? arg_log_level : config.log_level);
    own_files();
    r = sd_event_default(&event);
    if (r < 0) {
        log_error("Cannot make an event loop: %s.", strerror(-r));
        return r;
    }
    r = log_start(event);
    if (r < 0)
        log_warning("The log is written without a thread of its own (%s): the daemon waits if the "
                    "journal hangs.",
                    strerror(-r));
    r = run_manager(event, &config);
    log_stop();
    sd_event_unref(event);
    return r;
}

int main(int argc, char *argv[])
{
    int r;

    r = parse_arguments(argc, argv);
    if (r <= 0)
        return r < 0 ? EXIT_USAGE : EXIT_SUCCESS;
    log_open();
    block_hangup();
    return run() < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
