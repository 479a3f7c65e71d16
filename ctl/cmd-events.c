// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl events: the names that -e takes. */

#include <errno.h>
#include <inttypes.h>

#include "common/event-set.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/table.h"

struct options {
    bool names;
};

static const struct args_option events_options[] = {
    {"names", .offset = offsetof(struct options, names), .help = "print names only"},
    {},
};

static void print_names(void)
{
    size_t count;
    const struct event_name *names = event_names(&count);

    for (size_t i = 0; i < count; i++)
        (void)puts(names[i].name);
}

static void print_table(void)
{
    size_t count;
    const struct event_name *names = event_names(&count);
    _cleanup_table_ struct table *table = NULL;

    if (table_new("NAME MASK MEANING", &table) < 0)
        return;
    for (size_t i = 0; i < count; i++) {
        table_add(table, "%s", names[i].name);
        table_add(table, "0x%08" PRIx32, names[i].mask);
        table_add(table, "%s", names[i].meaning);
    }
    table_print(table, stdout, 0, 0);
}

static void print_json(void)
{
    size_t count;
    const struct event_name *names = event_names(&count);
    _cleanup_doc_ struct json_object *doc = doc_new("xentraced-events");
    struct json_object *array = doc_add_array(doc, "events");

    for (size_t i = 0; i < count; i++) {
        struct json_object *event = doc_append_object(array);

        doc_add_text(event, "name", names[i].name);
        doc_add_number(event, "mask", names[i].mask);
        doc_add_flag(event, "in_all", names[i].in_all);
        doc_add_text(event, "meaning", names[i].meaning);
    }
    doc_print(stdout, doc);
}

static int cmd_events(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, events_options, argc, argv, 0, &options, NULL, &error);
    if (r < 0)
        return args_exit(&verb_events, r, error);
    if (ctl->json)
        print_json();
    else if (options.names)
        print_names();
    else
        print_table();
    return CTL_OK;
}

const struct verb verb_events = {
    .name = "events",
    .run = cmd_events,
    .words = "",
    .summary = "list the names of events",
    .help = "Lists the names that -e takes, with their masks.\n",
    .options = events_options,
};
