// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xentracectl top: domains and vCPUs, of the newest second. On a terminal it is a page of the live
 * picture (monitor-loop.c); else one table, or a line of JSON for each second.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/ctl.h"
#include "ctl/monitor-loop.h"
#include "ctl/second.h"
#include "ctl/str.h"
#include "ctl/top.h"

struct options {
    uint64_t interval_usec;
    const char *sort;
    struct args_list domains;
    bool vcpus, once, utc;
};

#define AT(member) offsetof(struct options, member)

static const struct args_option top_options[] = {
    {"domain", 0, "LIST", ARGS_LIST, AT(domains),
     .help = "these domains: names, IDs or UUIDs: web,5"},
    {"interval", 'n', "TIME", ARGS_DURATION, AT(interval_usec), USEC_PER_SEC,
     .help = "time between updates (default 1s)"},
    {"once", .offset = AT(once), .help = "print one table, and exit"},
    {"sort", 's', "COLUMN", ARGS_CHOICE, AT(sort), 0, TOP_SORTS,
     .help = "order: cpu (default), wait, p99, max, wakes, exits, migrations,\n"
             "name or vcpu"},
    {"utc", .offset = AT(utc), .help = "show times in UTC"},
    {"vcpus", 'v', .offset = AT(vcpus), .help = "show vCPUs instead of domains"},
    {},
};

static int take(struct second *second, struct top **ret_top, char **ret_error)
{
    int r = second_next(second, second->interval_usec + SECOND_ANSWER_USEC, ret_error);

    if (r < 0)
        return r;
    r = top_new(second->data, second->bytes, second->doc, ret_top);
    return r == -ENODATA ? str_refuse(r, ret_error, "Nothing was recorded in the newest second.")
                         : r;
}

/* A quiet second, or too full a one, is no reason to end. */
static bool is_passing(int r)
{
    return r == -ENODATA || r == -EFBIG;
}

static int report_failure(char *error)
{
    ctl_error_sentence(error);
    free(error);
    return CTL_FAILURE;
}

/* Until standard output is closed. */
static int print_lines(struct client *client, const struct top_view *view, uint64_t interval_usec)
{
    _cleanup_second_ struct second second;
    _cleanup_top_ struct top *before = NULL;

    second_init(&second, client, interval_usec);
    for (;;) {
        _cleanup_doc_ struct json_object *doc = NULL;
        _cleanup_top_ struct top *top = NULL;
        char *error = NULL;
        int r = take(&second, &top, &error);

        if (r < 0 && !is_passing(r))
            return report_failure(error);
        if (r < 0)
            ctl_warning("%s", error ? error : "Out of memory.");
        free(error);
        if (r >= 0)
            r = top_follow(top, before);
        if (r >= 0) {
            doc = top_document(top, view);
            doc_print_line(stdout, doc);
            if (fflush(stdout) != 0)
                return CTL_FAILURE; /* main() reports it */
            top_free(before);
            before = TAKE_PTR(top);
        }
    }
}

static int print_once(struct client *client, const struct top_view *view, bool as_json)
{
    _cleanup_second_ struct second second;
    _cleanup_doc_ struct json_object *doc = NULL;
    _cleanup_top_ struct top *top = NULL;
    char *error = NULL;
    int r;

    second_init(&second, client, SECOND_INTERVAL_USEC);
    r = take(&second, &top, &error);
    if (r < 0)
        return report_failure(error);
    if (!as_json) {
        top_print(stdout, top, view);
        return CTL_OK;
    }
    doc = top_document(top, view);
    doc_print_line(stdout, doc);
    return CTL_OK;
}

static int print(struct ctl *ctl, const struct top_view *view, const struct options *options)
{
    _cleanup_client_ struct client *client = NULL;
    char *error = NULL;
    int r;

    r = client_new(ctl->socket, &client, &error);
    if (r < 0)
        return report_failure(error);
    if (ctl->json && !options->once)
        return print_lines(client, view, options->interval_usec);
    return print_once(client, view, ctl->json);
}

static int cmd_top(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {.interval_usec = USEC_PER_SEC, .sort = "cpu"};
    struct monitor_view view = {.page = MONITOR_VCPUS};
    char *error = NULL;
    int r;

    r = args_parse(ctl, top_options, argc, argv, 0, &options, NULL, &error);
    if (r == 0 && options.interval_usec < SECOND_INTERVAL_USEC)
        r = str_refuse(-EINVAL, &error, "--interval must be 1s or more.");
    if (r < 0)
        return args_exit(&verb_top, r, error);
    if (options.utc)
        str_use_utc();
    view.top.sort = top_sort_of(options.sort);
    view.top.of_vcpus = options.vcpus;
    view.top.domains = &options.domains;
    if (!options.once && !ctl->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
        return monitor_loop(ctl, &view, options.interval_usec);
    return print(ctl, &view.top, &options);
}

const struct verb verb_top = {
    .name = "top",
    .run = cmd_top,
    .words = "",
    .summary = "show a live view of domains and vCPUs",
    .help = "Shows what each domain did in the newest second of the flight recorder, again and\n"
            "again: CPU time, waits, wake-ups, VM exits. Without a terminal it prints one table,\n"
            "with --json a line for each second.\n",
    .options = top_options,
    .examples = "  xentracectl top --vcpus --sort p99\n"
                "  xentracectl top --once --domain web\n",
    .remote = VERB_LIVE,
};
