// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl status and list: the daemon, Xen, and everything that records. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/text.h"
#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/color.h"
#include "ctl/ctl.h"
#include "ctl/files.h"
#include "ctl/health.h"
#include "ctl/pager.h"
#include "ctl/recorder.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/trigger.h"

#define ENDED_SHOWN 5u

struct list_options {
    bool names, running, triggers, files, full;
};

static const struct args_option list_options[] = {
    {"running", .offset = offsetof(struct list_options, running), .help = "running captures only"},
    {"triggers", .offset = offsetof(struct list_options, triggers),
     .help = "list triggers, with their limits"},
    {"files", .offset = offsetof(struct list_options, files), .help = "list traces on the disk"},
    {"names", .offset = offsetof(struct list_options, names), .help = "print names only"},
    {"full", 'l', .offset = offsetof(struct list_options, full),
     .help = "do not shorten tables to the terminal's width"},
    {},
};

struct status_options {
    bool all, full, utc;
};

static const struct args_option status_options[] = {
    {"all", 'a', .offset = offsetof(struct status_options, all),
     .help = "show all CPUs, segments and ended captures"},
    {"full", 'l', .offset = offsetof(struct status_options, full),
     .help = "do not shorten tables to the terminal's width"},
    {"utc", .offset = offsetof(struct status_options, utc), .help = "show times in UTC"},
    {},
};

static int ask(struct ctl *ctl, const char *name, struct json_object **ret_doc)
{
    _cleanup_free_ char *error = NULL;
    int r;

    r = client_ask(ctl->socket, client_status, name, ret_doc, &error);
    if (r < 0)
        ctl_error_sentence(error);
    return r;
}

/* Of a pool that may grow: " (at most 512M)", " (at most 512M; could not grow 2 times)". */
static char *format_pool_limit(struct json_object *status)
{
    uint64_t max_bytes = doc_number(status, "daemon.pool_max_bytes");
    uint64_t refusals = doc_number(status, "daemon.pool_refusals");
    char max[UNITS_TEXT_MAX];

    if (max_bytes <= doc_number(status, "daemon.pool_bytes"))
        return strdup("");
    (void)size_format(max, max_bytes);
    if (refusals == 0)
        return str_format(" (at most %s)", max);
    return str_format(" (at most %s; could not grow %" PRIu64 " time%s)", max, refusals,
                      refusals == 1 ? "" : "s");
}

/* " CET": of that and all other times that are shown. */
static const char *format_zone(char buffer[static STR_TIME_MAX], uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / NSEC_PER_SEC);
    struct tm tm;

    if (!realtime_ns || !localtime_r(&seconds, &tm) ||
        strftime(buffer, STR_TIME_MAX, " %Z", &tm) == 0)
        buffer[0] = 0;
    return buffer;
}

static void print_daemon(struct json_object *status)
{
    uint64_t started_ns = doc_number(status, "daemon.started_ns");
    char since[STR_TIME_MAX], zone[STR_TIME_MAX], total[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX];
    _cleanup_free_ char *limit = format_pool_limit(status);

    (void)printf("xentraced %s, pid %" PRIu64 ", since %s%s\n"
                 "Memory for records: %s%s, %s free\n",
                 doc_text(status, "daemon.version", "(unknown version)"),
                 doc_number(status, "daemon.pid"), str_time(since, started_ns),
                 format_zone(zone, started_ns),
                 size_format(total, doc_number(status, "daemon.pool_bytes")), limit ? limit : "",
                 size_format(left, doc_number(status, "daemon.pool_free_bytes")));
    if (doc_says_no(status, "daemon.memory_locked"))
        (void)puts("Its memory is not locked: under memory pressure records may be lost. Set "
                   "LimitMEMLOCK= to pool-max= plus memory= plus 64M.");
}

static void print_xen(struct json_object *status)
{
    uint64_t pages = doc_number(status, "xen.buffer_pages");
    _cleanup_free_ char *buffers = NULL;

    buffers =
        pages ? str_format("%" PRIu64 "-page buffers", pages) : strdup("buffers not allocated yet");
    (void)printf("Xen %s, %" PRIu64 " CPUs, %s, tracing %s, mask 0x%08" PRIx64 "\n",
                 doc_text(status, "xen.version", "(unknown version)"),
                 doc_number(status, "xen.cpus"), buffers ? buffers : "",
                 doc_text(status, "xen.tracing", "unknown"), doc_number(status, "xen.event_mask"));
}

/* Prints those that run, in full: returns how many. */
static size_t print_running(struct json_object *sessions, bool recorders, bool all, int width)
{
    size_t count = 0;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (doc_session_has_ended(session) || storage_is_recorder(session) != recorders)
            continue;
        count++;
        (void)putchar('\n');
        session_print(stdout, session, all, width);
    }
    return count;
}

/* Each that has ended, newest first. */
static void print_ended(struct json_object *sessions, bool all, int width)
{
    _cleanup_table_ struct table *table = NULL;
    size_t count = 0;

    if (table_new("~NAME >RECORDS >SIZE TIME ~LOST /FILE /RESULT", &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (doc_session_has_ended(session) && (count++ < ENDED_SHOWN || all))
            session_add_ended(table, session);
    }
    if (count == 0)
        return;
    (void)puts("\nEnded");
    table_print(table, stdout, 4, width);
    if (!all && count > ENDED_SHOWN)
        (void)printf("    and %zu more: xentracectl list\n", count - ENDED_SHOWN);
}

static void print_status(struct json_object *status, const struct health *health, bool all,
                         const struct palette *palette, int width)
{
    struct json_object *sessions = doc_array(status, "sessions");
    struct json_object *triggers = doc_array(status, "triggers");

    health_print(stdout, health, palette);
    print_daemon(status);
    print_xen(status);
    recorder_print(stdout, doc_find(status, "recorder"));
    if (print_running(sessions, true, all, width) + print_running(sessions, false, all, width) == 0)
        (void)puts(doc_length(sessions)
                       ? "\nNo capture is running."
                       : "\nNo capture yet. Start one: xentracectl start -e sched -T 10");
    if (doc_length(triggers)) {
        (void)puts("\nTriggers");
        trigger_print_list(stdout, triggers, 4, false, width);
        if (!*doc_text(status, "remote", ""))
            trigger_print_reports(stdout, triggers, 4);
    }
    snapshot_print_list(stdout, doc_array(status, "snapshots"), width);
    print_ended(sessions, all, width);
}

/* The exit code: of one session only whether there is one. */
static int judge(struct json_object *doc, bool is_session)
{
    _cleanup_health_ struct health health = {};

    if (is_session)
        return CTL_OK;
    health_read(&health, doc);
    return health.exit_code;
}

static int show(const struct ctl *ctl, struct json_object *doc, bool is_session,
                const struct status_options *options)
{
    const struct palette *palette = palette_for(STDOUT_FILENO);
    _cleanup_pager_ struct pager *pager = NULL;
    _cleanup_health_ struct health health = {};
    int width = table_terminal_width(options->full);

    doc_make_printable(doc);
    pager_open(!ctl->no_pager, &pager);
    if (is_session) {
        session_print(stdout, doc, true, width);
        return CTL_OK;
    }
    health_read(&health, doc);
    print_status(doc, &health, options->all, palette, width);
    return health.exit_code;
}

static int cmd_status(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    struct status_options options = {};
    const char *name;
    char *error = NULL;
    int r;

    r = args_parse(ctl, status_options, argc, argv, 1, &options, NULL, &error);
    if (r < 0)
        return args_exit(&verb_status, r, error);
    name = optind < argc ? argv[optind] : "";
    r = ask(ctl, name, &doc);
    if (r < 0)
        return r == -ENOTCONN && !*name ? CTL_NO_RECORDER : CTL_FAILURE;
    if (options.utc)
        str_use_utc();
    if (!ctl->json)
        return show(ctl, doc, *name, &options);
    doc_print(stdout, doc);
    return judge(doc, *name);
}

static void add_row(struct table *table, struct json_object *session, bool with_memory)
{
    _cleanup_free_ char *memory = storage_memory(session), *place = storage_place(session);

    table_add(table, "%s", doc_text(session, "name", "-"));
    table_add(table, "%s%s", doc_text(session, "state", "-"),
              doc_number(session, "output.waiting_since_ns") ? " (waiting)" : "");
    table_add(table, "%s", storage_name(session));
    table_add(table, "%s", doc_text(session, "events.spec", "-"));
    table_add(table, "%s", doc_text(session, "cpus.list", doc_text(session, "cpus.spec", "-")));
    table_add_count(table, doc_number(session, "ledger.delivered"));
    table_add_count(table,
                    doc_number(session, "ledger.lost") + doc_number(session, "ledger.dropped"));
    if (with_memory)
        table_add(table, "%s", memory ? memory : "-");
    table_add(table, "%s", place ? place : "-");
}

static bool has_ring(struct json_object *sessions)
{
    for (size_t i = 0; i < doc_length(sessions); i++) {
        if (storage_memory_bytes(doc_at(sessions, i)))
            return true;
    }
    return false;
}

/*
 * The names of ENTRIES, one a line, for programs. Completions ask with -H and --socket, too: a name
 * that is not valid could be a command to a shell, or an option to xentracectl.
 */
static void print_names(struct json_object *entries, bool only_running)
{
    for (size_t i = 0; i < doc_length(entries); i++) {
        const char *name = doc_text(doc_at(entries, i), "name", "");

        if (text_is_name(name) && !(only_running && doc_session_has_ended(doc_at(entries, i))))
            (void)puts(name);
    }
}

static void print_list(struct json_object *status, bool only_running, int width)
{
    struct json_object *sessions = doc_array(status, "sessions");
    _cleanup_table_ struct table *table = NULL;
    bool with_memory = has_ring(sessions);
    size_t rows = 0;

    if (table_new(with_memory ? "~NAME STATE ?KIND ~EVENTS ?~CPUS >RECORDS >LOST ?MEMORY ?~FILE"
                              : "~NAME STATE ?KIND ~EVENTS ?~CPUS >RECORDS >LOST ?~FILE",
                  &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (only_running && doc_session_has_ended(session))
            continue;
        rows++;
        add_row(table, session, with_memory);
    }
    if (rows)
        table_print(table, stdout, 0, width);
    else
        (void)puts(only_running ? "No capture is running."
                                : "No capture yet. Start one: xentracectl start -e sched -T 10");
}

static void print_triggers(struct json_object *status, int width)
{
    struct json_object *triggers = doc_array(status, "triggers");

    if (doc_length(triggers))
        trigger_print_list(stdout, triggers, 0, true, width);
    else
        (void)puts("No trigger is configured. See: man xentraced.conf");
}

static int list_files(const struct ctl *ctl, bool only_names, int width)
{
    _cleanup_doc_ struct json_object *files = NULL;
    _cleanup_free_ char *error = NULL;

    if (files_list(ctl->socket, &files, &error) < 0) {
        ctl_error_sentence(error);
        return CTL_FAILURE;
    }
    if (ctl->json) {
        doc_print(stdout, files);
        return CTL_OK;
    }
    if (only_names) {
        print_names(doc_array(files, "files"), false);
        return CTL_OK;
    }
    doc_make_printable(files);
    files_print(stdout, files, width);
    return CTL_OK;
}

static int cmd_list(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *status = NULL;
    struct list_options options = {};
    char *error = NULL;
    int r, width;

    r = args_parse(ctl, list_options, argc, argv, 0, &options, NULL, &error);
    if (r == 0 && options.triggers + options.running + options.files > 1)
        r = str_refuse(-EINVAL, &error,
                       "list takes --running, --triggers or --files, and only one of them.");
    if (r < 0)
        return args_exit(&verb_list, r, error);
    width = table_terminal_width(options.full);
    if (options.files)
        return list_files(ctl, options.names, width);
    if (ask(ctl, "", &status) < 0)
        return CTL_FAILURE;
    if (ctl->json) {
        doc_print(stdout, status);
        return CTL_OK;
    }
    if (options.names) {
        print_names(doc_array(status, options.triggers ? "triggers" : "sessions"), options.running);
        return CTL_OK;
    }
    doc_make_printable(status);
    if (options.triggers)
        print_triggers(status, width);
    else
        print_list(status, options.running, width);
    return CTL_OK;
}

const struct verb verb_status = {
    .name = "status",
    .run = cmd_status,
    .words = "[NAME]",
    .completes = "captures",
    .summary = "show whether all is well, and what is recorded",
    .help = "Shows whether all is well, then the daemon, Xen, the flight recorder, captures,\n"
            "triggers and snapshots. CPUs are shown if they have lost records, or if their\n"
            "buffer is more than half full. With NAME, shows that capture, CPU by CPU.\n\n"
            "Exit status without NAME: 0 all is well, or the flight recorder is off by\n"
            "configuration; 3 it is not running; 4 records are being lost.\n",
    .options = status_options,
};

const struct verb verb_list = {
    .name = "list",
    .run = cmd_list,
    .words = "",
    .summary = "list captures, triggers or files",
    .help = "Lists the running captures and the newest ended ones; with --files, the traces\n"
            "in " XENTRACED_STATE_DIR ", and which of them xentraced may remove.\n",
    .options = list_options,
};
