/* SPDX-License-Identifier: GPL-2.0-or-later */
/* xentracectl status and list: what the daemon tells of itself, Xen and the captures. */

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/session.h"
#include "ctl/str.h"
#include "ctl/table.h"

enum {
    LIST_NAMES = 0x100,
    LIST_RUNNING,
};

static const struct option list_options[] = {
    {"names", no_argument, NULL, LIST_NAMES},
    {"running", no_argument, NULL, LIST_RUNNING},
    {},
};

static int ask(struct ctl *ctl, const char *name, struct json_object **ret_doc)
{
    _cleanup_client_ struct client *client = NULL;
    _cleanup_free_ char *error = NULL;
    int r;

    r = client_new(ctl->socket, &client, &error);
    if (r >= 0)
        r = client_status(client, name, ret_doc, &error);
    if (r < 0)
        ctl_error_sentence(error);
    return r;
}

static void print_daemon(struct json_object *status)
{
    char since[STR_TIME_MAX], total[UNITS_TEXT_MAX], left[UNITS_TEXT_MAX];

    (void)printf("xentraced %s, pid %" PRIu64 ", since %s, memory for records: %s, %s free\n",
                 doc_text(status, "daemon.version", "(unknown version)"),
                 doc_number(status, "daemon.pid"),
                 str_time(since, doc_number(status, "daemon.started_ns")),
                 size_format(total, doc_number(status, "daemon.pool_bytes")),
                 size_format(left, doc_number(status, "daemon.pool_free_bytes")));
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

static void print_status(struct json_object *status)
{
    struct json_object *sessions = doc_array(status, "sessions");

    doc_make_printable(status);
    print_daemon(status);
    print_xen(status);
    for (size_t i = 0; i < doc_length(sessions); i++) {
        (void)putchar('\n');
        session_print(stdout, doc_at(sessions, i), false);
    }
    if (!doc_length(sessions))
        (void)puts("\nNo capture yet. Start one: xentracectl start -e sched -T 10");
}

int cmd_status(struct ctl *ctl, int argc, char **argv)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    const char *name;
    char *error = NULL;
    int r;

    r = args_parse_words(ctl, argc, argv, 1, &error);
    if (r < 0)
        return args_exit("status", r, error);
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

static void add_row(struct table *table, struct json_object *session)
{
    table_add(table, "%s", doc_text(session, "name", "-"));
    table_add(table, "%s", doc_text(session, "state", "-"));
    table_add(table, "%s", doc_text(session, "events.spec", "-"));
    table_add(table, "%s", doc_text(session, "cpus.list", doc_text(session, "cpus.spec", "-")));
    table_add(table, "%" PRIu64, doc_number(session, "ledger.delivered"));
    table_add(table, "%" PRIu64,
              doc_number(session, "ledger.lost") + doc_number(session, "ledger.dropped"));
    table_add(table, "%s", doc_text(session, "output.path", "-"));
}

static void print_list(struct json_object *status, bool only_names, bool only_running)
{
    struct json_object *sessions = doc_array(status, "sessions");
    _cleanup_table_ struct table *table = NULL;
    size_t rows = 0;

    doc_make_printable(status);
    if (table_new("NAME STATE EVENTS CPUS >RECORDS >LOST FILE", &table) < 0)
        return;
    for (size_t i = 0; i < doc_length(sessions); i++) {
        struct json_object *session = doc_at(sessions, i);

        if (only_running && session_has_ended(session))
            continue;
        rows++;
        if (only_names)
            (void)puts(doc_text(session, "name", "-"));
        else
            add_row(table, session);
    }
    if (only_names)
        return;
    if (rows)
        table_print(table, stdout, 0);
    else
        (void)puts(only_running ? "No capture is running."
                                : "No capture yet. Start one: xentracectl start -e sched -T 10");
}

int cmd_list(struct ctl *ctl, int argc, char **argv)
{
    struct args args = {.ctl = ctl, .argc = argc, .argv = argv, .options = list_options};
    _cleanup_doc_ struct json_object *status = NULL;
    bool only_names = false, only_running = false;
    char *error = NULL;
    int option, r;

    while ((r = args_next(&args, &option, &error)) > 0) {
        only_names |= option == LIST_NAMES;
        only_running |= option == LIST_RUNNING;
    }
    args_done(&args);
    if (r == 0)
        r = args_check_words(argc, argv, 0, &error);
    if (r < 0)
        return args_exit("list", r, error);
    if (ask(ctl, "", &status) < 0)
        return CTL_FAILURE;
    if (ctl->json)
        doc_print(stdout, status);
    else
        print_list(status, only_names, only_running);
    return CTL_OK;
}
