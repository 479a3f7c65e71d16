// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl dump: a line for each record. */

#include <errno.h>
#include <getopt.h>
#include <string.h>

#include "common/event-set.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/input.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "trace/events.h"
#include "trace/merge.h"
#include "trace/record-text.h"
#include "trace/sidecar.h"

#define BUFFER_BYTES (256u * 1024u)

struct options {
    char *events;
    struct selection_options selection;
};

static const struct args_option dump_options[] = {
    {"events", 'e', "LIST", ARGS_EVENTS, offsetof(struct options, events),
     .help = "events: sched,hvm-entryexit,0x0010f000 (default all)"},
    SELECTION_OPTIONS(struct options, selection),
    {},
};

/* Texts on their way out. */
struct buffer {
    char text[BUFFER_BYTES];
    size_t used;
};

static bool buffer_flush(struct buffer *buffer)
{
    bool ok = fwrite(buffer->text, 1, buffer->used, stdout) == buffer->used;

    buffer->used = 0;
    return ok;
}

typedef size_t (*text_fn)(char text[static RECORD_TEXT_MAX], const struct merge_record *record,
                          const struct record_text_style *style);

/* Returns false if nobody reads any more. */
static bool dump(struct input *input, const struct event_set *events, text_fn text)
{
    static struct buffer buffer;
    static struct event_cache cache;
    const char *xen = sidecar_xen_version(input->sidecar);
    struct record_text_style style = {
        .is_svm = sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD,
        .xen = xen ? event_xen_parse(xen) : 0,
        .tsc_khz = input->tsc_khz,
        .cache = &cache,
    };
    struct merge_record record;
    bool has_begun = false;
    int item;

    while ((item = merge_next(&input->merge, &record)) != MERGE_END) {
        uint32_t event = record_event(record.header);

        if (item != MERGE_RECORD)
            continue;
        if (!has_begun)
            style.first_tsc = input->origin_tsc ? input->origin_tsc : record.tsc;
        has_begun = true;
        if ((event & ~UINT32_C(0x500)) == 0x81003) /* no other processor has that */
            style.is_svm = true;
        if (events && !event_set_has(events, event))
            continue;
        if (sizeof(buffer.text) - buffer.used < RECORD_TEXT_MAX && !buffer_flush(&buffer))
            return false;
        buffer.used += text(buffer.text + buffer.used, &record, &style);
    }
    return buffer_flush(&buffer);
}

static int dump_file(struct ctl *ctl, const struct options *options, const char *path)
{
    _cleanup_input_ struct input *input = NULL;
    struct event_set events;
    char *error = NULL;
    int r;

    r = options->events ? event_set_parse(options->events, &events, &error) : 0;
    if (r >= 0)
        r = selection_open(&options->selection, path, false, &input, &error);
    if (r < 0) {
        ctl_error_sentence(error);
        free(error);
        return CTL_FAILURE;
    }
    if (!dump(input, options->events ? &events : NULL, ctl->json ? record_json : record_text))
        return CTL_FAILURE;
    if (input->merge.error < 0) {
        ctl_error("Cannot read %s to its end: %s.", input->path, strerror(-input->merge.error));
        return CTL_FAILURE;
    }
    return CTL_OK;
}

static int cmd_dump(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, dump_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "dump needs the name of a trace file.");
    if (r < 0) {
        free(options.events);
        return args_exit(&verb_dump, r, error);
    }
    r = dump_file(ctl, &options, argv[optind]);
    free(options.events);
    return r;
}

const struct verb verb_dump = {
    .name = "dump",
    .run = cmd_dump,
    .words = "FILE",
    .completes = "files",
    .summary = "print the records of a trace",
    .help = "Prints each record of a trace (- is standard input), in time order. With --json,\n"
            "each is an object on a line of its own. Needs no daemon.\n",
    .options = dump_options,
    .remote = VERB_RUNS_THERE,
};
