// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl why: what a vCPU did around a time, and who ran while it waited. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/color.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/pager.h"
#include "ctl/selection.h"
#include "ctl/story-text.h"
#include "ctl/str.h"
#include "ctl/table.h"
#include "ctl/who.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/story.h"

#define WINDOW_USEC (200 * USEC_PER_MSEC)
/* Without a time: so much before and after the longest wait. */
#define MARGIN_USEC (10 * USEC_PER_MSEC)
/* So much before the time that is shown, runstates are followed; roughly. */
#define LEAD_USEC (2 * USEC_PER_SEC)

struct options {
    const char *at;
    struct selection_options selection;
    uint64_t window_usec;
};

static const struct args_option why_options[] = {
    {"at", 0, "TIME", ARGS_TEXT, offsetof(struct options, at),
     .help = "around TIME: 02:51:00.5 (wall clock), +3.5s (after the\n"
             "beginning of the trace), -2s (before its end);\n"
             "default: the longest wait"},
    {"window", 0, "TIME", ARGS_DURATION, offsetof(struct options, window_usec), USEC_PER_MSEC,
     .help = "length of the excerpt: 500 (ms), 2s (default: 200ms; of\n"
             "the longest wait, 10ms before and after it)"},
    SELECTION_SPAN_OPTIONS(struct options, selection),
    SELECTION_CLOCK_OPTIONS(struct options, selection),
    SELECTION_INPUT_OPTIONS(struct options, selection),
    {},
};

static void measures_freep(struct measures **measures)
{
    measures_free(*measures);
}

static void story_freep(struct story **story)
{
    story_free(*story);
}

/* --- Whose. --- */

/* The vCPU of DOMAIN that waited longest, or the first; NULL: it has none. */
static const struct state_vcpu *find_vcpu(const struct measures *measures, uint32_t domain,
                                          int64_t vcpu)
{
    const struct state_vcpu *found = NULL;
    uint64_t longest = 0;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++) {
        const struct state_vcpu *of = measures->state.vcpus[i];
        uint64_t waited = measures_of(of) ? measures_of(of)->longest_cycles : 0;

        if (of->key >> 16 != domain || (vcpu >= 0 && (of->key & 0xffff) != (uint64_t)vcpu))
            continue;
        if (!found || waited > longest) {
            found = of;
            longest = waited;
        }
    }
    return found;
}

/* --- The command. --- */

/* A vCPU, and the time to show. */
struct question {
    uint32_t key;
    bool is_longest; /* its longest wait was looked for */
    bool is_chosen;  /* of its domain's vCPUs it is the one that waited longest */
    uint64_t at;
    uint64_t from, until;
    uint64_t first_tsc; /* of the trace */
    bool is_svm;
};

static int refuse_at(const struct input *input, const struct measures *measures, const char *at,
                     char **ret_error)
{
    char from[INPUT_TEXT_MAX], to[INPUT_TEXT_MAX];

    return str_refuse(-ERANGE, ret_error, "--at %s is outside of what is read: %s to %s.", at,
                      input_when(input, from, measures->first_tsc, measures->first_tsc),
                      input_when(input, to, measures->last_tsc, measures->first_tsc));
}

/* Around --at, or the vCPU's longest wait. */
static int find_time(const struct input *input, const struct measures *measures,
                     const struct state_vcpu *vcpu, const struct options *options,
                     struct question *question, char **ret_error)
{
    uint64_t window = input_ticks(input, options->window_usec ? options->window_usec : WINDOW_USEC);
    const struct measures_vcpu *measured = measures_of(vcpu);
    uint64_t at = measures->first_tsc;
    int r;

    if (options->at) {
        r = selection_find_tsc("--at", options->at, input,
                               input->origin_tsc ? input->origin_tsc : measures->first_tsc,
                               measures->last_tsc, &at, ret_error);
        if (r < 0)
            return r;
        if (at < measures->first_tsc || at > measures->last_tsc)
            return refuse_at(input, measures, options->at, ret_error);
    } else if (measured) {
        at = measured->longest_from + measured->longest_cycles / 2;
        question->is_longest = measured->longest_cycles > 0;
        if (!options->window_usec)
            window = measured->longest_cycles + 2 * input_ticks(input, MARGIN_USEC);
    }
    question->at = at;
    question->from = measures->first_tsc;
    if (at - measures->first_tsc > window / 2)
        question->from = at - window / 2;
    question->until = min_u64(question->from + window, measures->last_tsc + 1);
    return 0;
}

/* Reads all of what was selected. */
static int ask(struct input *input, const struct options *options, const char *whose,
               struct question *question, char **ret_error)
{
    _cleanup_(measures_freep) struct measures *measures = NULL;
    const struct state_vcpu *vcpu;
    uint32_t domain = 0;
    int64_t number = -1;
    int r;

    r = who_find_vcpu(input, whose, &domain, &number, ret_error);
    if (r < 0)
        return r;
    r = measures_new(&input->merge, sidecar_vendor(input->sidecar) == SIDECAR_VENDOR_AMD,
                     &measures);
    if (r < 0)
        return r;
    vcpu = find_vcpu(measures, domain, number);
    if (!vcpu)
        return str_refuse(-ENOENT, ret_error,
                          "\"%s\" has no runstate record in this trace. Its domains are shown by: "
                          "xentracectl report %s",
                          whose, input->path);
    question->key = vcpu->key;
    question->is_chosen = number < 0;
    question->first_tsc = measures->first_tsc;
    question->is_svm = measures->is_svm;
    return find_time(input, measures, vcpu, options, question, ret_error);
}

/* What is known of the vCPU if it has no record in the time. */
struct around {
    bool is_needed;
    struct story_change before, after;
};

static int look_around(struct input *input, const struct question *question,
                       const struct story *story, struct around *around, char **ret_error)
{
    int r;

    around->is_needed = story->nr_parts == 0;
    if (!around->is_needed)
        return 0;
    r = input_begin(input, MERGE_ALL, ret_error);
    if (r < 0)
        return r;
    return story_find_changes(&input->merge, question->key, question->at, &around->before,
                              &around->after);
}

/* Where the vCPUs that ran instead are seen beside it. */
static void print_next(const struct input *input, const struct question *question)
{
    _cleanup_free_ char *path = input_argument(input);
    uint64_t msec = input_nsec(input, question->until - question->from) / 1000000;
    char when[INPUT_TEXT_MAX];

    if (path)
        (void)printf("\nAll CPUs at that time:\n  xentracectl timeline --around %s --window "
                     "%" PRIu64 "ms %s\n",
                     input_when(input, when,
                                question->from + (question->until - question->from) / 2,
                                question->first_tsc),
                     msec > 0 ? msec : 1, path);
}

/* Which wait it is: nobody has named it. */
static void print_choice(const struct input *input, const struct question *question)
{
    char domain[INPUT_TEXT_MAX], vcpu[INPUT_TEXT_MAX];

    if (!question->is_longest)
        return;
    (void)input_vcpu(input, vcpu, question->key, question->from);
    if (question->is_chosen)
        (void)printf("The longest wait of %s was one of %s.\n",
                     input_domain(input, domain, question->key >> 16, question->from), vcpu);
    else
        (void)printf("The longest wait of %s.\n", vcpu);
}

static void print_answer(const struct ctl *ctl, const struct input *input,
                         const struct question *question, const struct story *story,
                         const struct around *around)
{
    const struct palette *palette = palette_for(STDOUT_FILENO);
    unsigned int width = (unsigned int)table_terminal_width(false);
    _cleanup_pager_ struct pager *pager = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;

    if (ctl->json) {
        doc = doc_new("xentraced-why");
        story_doc_add(doc, input, story);
        if (around->is_needed)
            story_doc_add_changes(doc, &around->before, &around->after);
        doc_print(stdout, doc);
        return;
    }
    pager_open(!ctl->no_pager, &pager);
    if (around->is_needed) {
        story_text_print_changes(stdout, input, story, question->first_tsc, &around->before,
                                 &around->after);
    } else {
        print_choice(input, question);
        story_text_print(stdout, width, input, story, question->first_tsc, palette);
    }
    print_next(input, question);
}

/* Reads the part of it that matters, and some of what came before. */
static int answer(const struct ctl *ctl, struct input *input, const struct question *question,
                  char **ret_error)
{
    const struct story_options options = {question->key, question->from, question->until,
                                          question->is_svm};
    _cleanup_(story_freep) struct story *story = NULL;
    uint64_t lead = input_ticks(input, LEAD_USEC);
    struct merge_part part = MERGE_ALL;
    struct around around = {0};
    int r;

    part.from = question->from > lead ? question->from - lead : 0;
    r = input_begin(input, part, ret_error);
    if (r < 0)
        return r;
    r = story_new(&input->merge, &options, &story);
    if (r < 0)
        return r;
    r = look_around(input, question, story, &around, ret_error);
    if (r < 0)
        return r;
    print_answer(ctl, input, question, story, &around);
    return 0;
}

static int why(const struct ctl *ctl, const struct options *options, const char *whose,
               const char *path, char **ret_error)
{
    _cleanup_input_ struct input *input = NULL;
    struct question question = {0};
    int r;

    r = selection_open(ctl, &options->selection, path, true, &input, ret_error);
    if (r < 0)
        return r;
    r = ask(input, options, whose, &question, ret_error);
    if (r >= 0)
        r = answer(ctl, input, &question, ret_error);
    return r < 0 && !*ret_error ? input_refuse(input, r, "", ret_error) : r;
}

static int cmd_why(struct ctl *ctl, int argc, char **argv)
{
    struct options options = {};
    char *error = NULL;
    int r;

    r = args_parse(ctl, why_options, argc, argv, 2, &options, NULL, &error);
    if (r == 0)
        r = selection_check(&options.selection, optind < argc ? argv[optind + 1] : NULL, &error);
    if (r == 0 && options.at)
        r = selection_check_time("--at", options.at, &error);
    if (r == 0 && optind == argc)
        r = str_refuse(-EINVAL, &error, "why needs a vCPU: web.1, or d5v1");
    if (r < 0)
        return args_exit(&verb_why, r, error);
    r = why(ctl, &options, argv[optind], argv[optind + 1], &error);
    return r < 0 ? input_fail(error, r) : CTL_OK;
}

const struct verb verb_why = {
    .name = "why",
    .run = cmd_why,
    .words = "VCPU [FILE]",
    .summary = "show what a vCPU did, and who ran while it waited",
    .help = "Shows what a vCPU did around its longest wait, or around a time: when it ran,\n"
            "waited and slept, for which CPU it waited, and who ran there meanwhile.\n"
            "VCPU is web.1, 5.1 or d5v1; without a number, that of the domain which waited\n"
            "longest. Needs no daemon.\n",
    .options = why_options,
};
