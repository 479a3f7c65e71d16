// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl timeline: a trace as a picture in characters. */

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/color.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/pager.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/timeline-doc.h"
#include "ctl/timeline-text.h"
#include "trace/timeline.h"

#define DEFAULT_WIDTH   80u
#define DEFAULT_COLUMNS 100u /* of a document */
/* So much before the time that is shown, runstates are followed. */
#define LEAD_USEC (2 * USEC_PER_SEC)

struct options {
    const char *by;
    uint32_t columns;
    struct selection_options selection;
};

static const struct args_option timeline_options[] = {
    {"by", 0, "WHAT", ARGS_CHOICE, offsetof(struct options, by), 0, "cpu vcpu",
     .help = "a line for each cpu: who ran, who waited (default)\n"
             "or for each vcpu: when it ran, waited, slept"},
    {"columns", 0, "N", ARGS_COUNT, offsetof(struct options, columns), 0, "columns",
     .help = "of the picture (default: as wide as the terminal)"},
    SELECTION_OPTIONS(struct options, selection),
    {},
};

static void timeline_freep(struct timeline **timeline)
{
    timeline_free(*timeline);
}

/* Whether the user's locale has no other characters than ASCII. */
static bool is_ascii(void)
{
    locale_t locale = newlocale(LC_CTYPE_MASK, "", NULL);
    bool has_utf8;

    if (!locale)
        return true;
    has_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
    freelocale(locale);
    return !has_utf8;
}

/* Of the terminal, else of $COLUMNS. */
static unsigned int output_width(void)
{
    const char *columns = getenv("COLUMNS");
    int width = table_terminal_width(false);

    if (width > 0)
        return (unsigned int)width;
    width = columns ? atoi(columns) : 0;
    return width > 0 ? (unsigned int)width : DEFAULT_WIDTH;
}

/*
 * Reads all of what was selected for its first and last time, and begins again: with some of what
 * came before.
 */
static int find_span(struct input *input, uint64_t *ret_first, uint64_t *ret_last, char **ret_error)
{
    struct merge_part part = input->merge.part;
    struct merge_record record;
    bool has_begun = false;
    int item;

    while ((item = merge_next(&input->merge, &record)) != MERGE_END) {
        if (item != MERGE_RECORD)
            continue;
        if (!has_begun)
            *ret_first = record.tsc;
        has_begun = true;
        *ret_last = record.tsc;
    }
    if (input->merge.error == 0 && !has_begun)
        return str_refuse(-ENODATA, ret_error, "%s has no record.", input_name(input));
    if (input->merge.error < 0)
        return input_refuse(input, input->merge.error, "", ret_error);
    if (part.from == 0)
        return input_begin(input, part, ret_error);
    *ret_first = max_u64(part.from, input->origin_tsc);
    part.from -= min_u64(part.from - 1, input_ticks(input, LEAD_USEC));
    return input_begin(input, part, ret_error);
}

static int print(struct ctl *ctl, const struct input *input, const struct timeline *timeline,
                 uint64_t first_tsc, unsigned int width)
{
    const struct timeline_style style = {
        .width = width,
        .is_ascii = is_ascii(),
        .palette = palette_for(STDOUT_FILENO),
    };
    _cleanup_pager_ struct pager *pager = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;

    if (ctl->json) {
        doc = doc_new("xentraced-timeline");
        timeline_doc_add(doc, input, timeline);
        doc_print(stdout, doc);
        return 0;
    }
    pager_open(!ctl->no_pager, &pager);
    return timeline_text_print(stdout, input, timeline, first_tsc, &style);
}

static int show(struct ctl *ctl, const struct options *options, const char *path, char **ret_error)
{
    struct timeline_options wanted = {
        .by = options->by && strcmp(options->by, "vcpu") == 0 ? TIMELINE_BY_VCPU : TIMELINE_BY_CPU,
    };
    _cleanup_(timeline_freep) struct timeline *timeline = NULL;
    _cleanup_input_ struct input *input = NULL;
    unsigned int width = output_width();
    uint64_t first = 0, last = 0;
    int r;

    r = selection_open(ctl, &options->selection, path, true, &input, ret_error);
    if (r < 0)
        return r;
    r = find_span(input, &first, &last, ret_error);
    if (r < 0)
        return r;
    wanted.subjects = input->subjects;
    wanted.from = first;
    wanted.until = last + 1;
    wanted.columns = ctl->json ? DEFAULT_COLUMNS : timeline_text_columns(wanted.by, width);
    if (options->columns > 0)
        wanted.columns = options->columns;
    r = timeline_new(&input->merge, &wanted, &timeline);
    if (r < 0)
        return input_refuse(input, r, "", ret_error);
    if (input->subjects && timeline->nr_rows == 0)
        return str_refuse(-ENOENT, ret_error,
                          "%s has nothing of %s in that time: neither runs nor waits.",
                          input_name(input), input->shown);
    return print(ctl, input, timeline, input->origin_tsc ? input->origin_tsc : first, width);
}

static int cmd_timeline(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, timeline_options, argc, argv, 1, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, argv[optind], &error);
    if (r == 0 && options.columns > TIMELINE_COLUMNS_MAX)
        r = str_refuse(-EINVAL, &error, "--columns is at most %u.", TIMELINE_COLUMNS_MAX);
    if (r < 0)
        return args_exit(&verb_timeline, r, error);
    r = show(ctl, &options, argv[optind], &error);
    return r < 0 ? input_fail(error, r) : CTL_OK;
}

const struct verb verb_timeline = {
    .name = "timeline",
    .run = cmd_timeline,
    .words = "[FILE]",
    .completes = "files",
    .summary = "draw who ran on each CPU, and who waited",
    .help = "Draws a trace in characters, as wide as the terminal. Each column is a part of\n"
            "the time, and shows what took most of it. Needs no daemon.\n",
    .options = timeline_options,
};
