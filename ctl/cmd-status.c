// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl status and list: the daemon, Xen, and everything that records. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/recorder.h"
#include "ctl/session.h"
#include "ctl/snapshot.h"
#include "ctl/storage.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/trigger.h"

struct list_options {
    bool names, running, triggers;
};

static const struct args_option list_options[] = {
    {"running", .offset = offsetof(struct list_options, running), .help = "only those that run"},
    {"triggers", .offset = offsetof(struct list_options, triggers),
     .help = "triggers instead of captures, with their limits"},
    {"names", .offset = offsetof(struct list_options, names), .help = "only names"},
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

static void print_daemon(struct json_object *status)
{
    char since[STR_TIME_MAX], total[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX];
    _cleanup_free_ char *limit = format_pool_limit(status);

    (void)printf("xentraced %s, pid %" PRIu64 ", since %s, memory for records: %s%s, %s free\n",
                 doc_text(status, "daemon.version", "(unknown version)"),
                 doc_number(status, "daemon.pid"),
                 str_time(since, doc_number(status, "daemon.started_ns")),
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

    buffers = pages ? str_format("buffers of %" PRIu64 " pages per CPU", pages)
                    : strdup("buffers not allocated yet");
    (void)printf("Xen %s, %" PRIu64 " CPUs, %s, tracing %s, event mask 0x%08" PRIx64 "\n",
                 doc_text(status, "xen.version", "(unknown version)"),
                 doc_number(status, "xen.cpus"), buffers ? buffers : "",
                 doc_text(status, "xen.tracing", "unknown"), doc_number(status, "xen.event_mask"));
}

/* Prints those sessions of the array in full, or in a line each: returns how many. */
static size_t print_sessions(struct json_object *sessions, bool recorders, bool ended)
{
    size_t count = 0;

    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (doc_session_has_ended(session) != ended ||
            (storage_is_recorder(session) != recorders && !ended))
            continue;
        if (!ended)
            (void)putchar('\n');
        else if (count == 0)
            (void)puts("\nEnded");
        count++;
        if (ended) {
            (void)fputs("    ", stdout);
            session_print_result(stdout, session);
        } else {
            session_print(stdout, session, false);
        }
    }
    return count;
}

/* Running sessions in full, ended ones in a line each. */
static void print_status(struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions");
    struct json_object *triggers = doc_array(status, "triggers");

    doc_make_printable(status);
    print_daemon(status);
    print_xen(status);
    recorder_print(stdout, doc_find(status, "recorder"));
    if (print_sessions(sessions, true, false) + print_sessions(sessions, false, false) == 0)
        (void)puts(doc_length(sessions)
                       ? "\nNo capture is running."
                       : "\nNo capture yet. Start one: xentracectl start -e sched -T 10");
    if (doc_length(triggers)) {
        (void)puts("\nTriggers");
        trigger_print_list(stdout, triggers, 4, false);
    }
    snapshot_print_list(stdout, doc_array(status, "snapshots"));
    (void)print_sessions(sessions, false, true);
}

static int cmd_status(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    const char *name;
    char *error = NULL;
    int r;

    r = args_parse(ctl, NULL, argc, argv, 1, NULL, NULL, &error);
    if (r < 0)
        return args_exit(&verb_status, r, error);
    name = optind < argc ? argv[optind] : "";
    if (ask(ctl, name, &doc) < 0)
        return CTL_FAILURE;
    if (ctl->json)
        doc_print(stdout, doc);
    else if (*name)
        session_print(stdout, doc, true);
    else
        print_status(doc);
    return CTL_OK;
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
    table_add(table, "%" PRIu64, doc_number(session, "ledger.delivered"));
    table_add(table, "%" PRIu64,
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

static void print_list(struct json_object *status, bool only_names, bool only_running)
{
    struct json_object *sessions = doc_array(status, "sessions");
    _cleanup_table_ struct table *table = NULL;
    bool with_memory = has_ring(sessions);
    size_t rows = 0;

    if (table_new(with_memory ? "NAME STATE KIND EVENTS CPUS >RECORDS >LOST MEMORY FILE"
                              : "NAME STATE KIND EVENTS CPUS >RECORDS >LOST FILE",
                  &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (only_running && doc_session_has_ended(session))
            continue;
        rows++;
        if (only_names)
            (void)puts(doc_text(session, "name", "-"));
        else
            add_row(table, session, with_memory);
    }
    if (only_names)
        return;
    if (rows)
        table_print(table, stdout, 0);
    else
        (void)puts(only_running ? "No capture is running."
                                : "No capture yet. Start one: xentracectl start -e sched -T 10");
}

static void print_triggers(struct json_object *status, bool only_names)
{
    struct json_object *triggers = doc_array(status, "triggers");

    for (size_t i = 0; i < doc_length(triggers) && only_names; i++)
        (void)puts(doc_text(doc_at(triggers, i), "name", "-"));
    if (only_names)
        return;
    if (doc_length(triggers))
        trigger_print_list(stdout, triggers, 0, true);
    else
        (void)puts("No trigger is configured. See: man xentraced.conf");
}

static int cmd_list(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *status = NULL;
    struct list_options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, list_options, argc, argv, 0, &options, NULL, &error);
    if (r == 0 && options.triggers && options.running)
        r = str_refuse(-EINVAL, &error, "list takes --running or --triggers, not both.");
    if (r < 0)
        return args_exit(&verb_list, r, error);
    if (ask(ctl, "", &status) < 0)
        return CTL_FAILURE;
    if (ctl->json) {
        doc_print(stdout, status);
        return CTL_OK;
    }
    doc_make_printable(status);
    if (options.triggers)
        print_triggers(status, options.names);
    else
        print_list(status, options.names, options.running);
    return CTL_OK;
}

const struct verb verb_status = {
    .name = "status",
    .run = cmd_status,
    .words = "[NAME]",
    .completes = "captures",
    .summary = "the daemon, Xen, captures, triggers and snapshots",
    .help = "Shows the daemon, Xen, the flight recorder, captures, triggers and snapshots;\n"
            "with NAME that capture, CPU by CPU.\n",
};

const struct verb verb_list = {
    .name = "list",
    .run = cmd_list,
    .words = "",
    .summary = "the captures, a line each",
    .help = "Lists the captures that run, and the newest ones that have ended.\n",
    .options = list_options,
};
