// SPDX-License-Identifier: GPL-2.0-or-later
/* xentracectl why: what a vCPU did around a time, and who ran while it waited. */

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "ctl/args.h"
#include "ctl/ctl.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/selection.h"
#include "ctl/str.h"
#include "trace/exit-reasons.h"
#include "trace/measures.h"
#include "trace/sidecar.h"
#include "trace/story.h"

#define WINDOW_USEC (200 * USEC_PER_MSEC)
/* So much before the time that is shown, runstates are followed; roughly. */
#define LEAD_USEC   (2 * USEC_PER_SEC)
#define RAN_SHOWN   4u
#define EXITS_SHOWN 4u

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
     .help = "length of the excerpt: 500 (ms), 2s (default 200ms)"},
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

/* "5", "d5", "web", "5.1", "d5v1", "web.1": the domain, and the vCPU or -1. */
static int parse_vcpu(const struct input *input, const char *text, uint32_t *ret_domain,
                      int64_t *ret_vcpu, char **ret_error)
{
    _cleanup_free_ char *domain = strdup(text);
    char *end, *dot;
    unsigned long number;

    if (!domain)
        return -ENOMEM;
    *ret_vcpu = -1;
    if (sidecar_find_domain(input->sidecar, domain, ret_domain)) /* names may have dots */
        return 0;
    dot = strrchr(domain, '.');
    if (!dot && domain[0] == 'd')
        dot = strchr(domain, 'v');
    if (dot && dot[1] >= '0' && dot[1] <= '9') {
        number = strtoul(dot + 1, &end, 10);
        if (*end == '\0' && number <= UINT16_MAX) {
            *ret_vcpu = (int64_t)number;
            *dot = '\0';
        }
    }
    if (sidecar_find_domain(input->sidecar, domain, ret_domain))
        return 0;
    number = strtoul(domain + (domain[0] == 'd'), &end, 10);
    if (*end != '\0' || end == domain + (domain[0] == 'd') || number >= STATE_DOMAIN_IDLE)
        return str_refuse(-EINVAL, ret_error,
                          "There is no domain \"%s\" in this trace. Its domains are shown by: "
                          "xentracectl report %s",
                          text, input->path);
    *ret_domain = (uint32_t)number;
    return 0;
}

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

/* --- Printing. --- */

static const char *runstate_name(const struct story_part *part)
{
    switch (part->runstate) {
    case STATE_RUNNING:
        return "ran";
    case STATE_RUNNABLE:
        return "waited";
    case STATE_BLOCKED:
        return "slept";
    case STATE_OFFLINE:
        return "was offline";
    case STATE_UNKNOWN:
        break;
    }
    return "unknown";
}

static void print_who_ran(const struct input *input, const struct story_part *part)
{
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];
    uint64_t unknown = part->to - part->from;

    for (size_t i = 0; i < part->nr_ran; i++) {
        unknown -= part->ran[i].cycles;
        if (i < RAN_SHOWN)
            (void)printf("%s %s %s", i == 0 ? ":" : ",",
                         input_vcpu(input, name, part->ran[i].key, part->from),
                         input_span(input, span, part->ran[i].cycles));
    }
    if (part->nr_ran > RAN_SHOWN)
        (void)printf(", %zu more", part->nr_ran - RAN_SHOWN);
    if (part->has_cpu && unknown > (part->to - part->from) / 20)
        (void)printf(", unknown %s", input_span(input, span, unknown));
}

static void print_exits(const struct story *story, const struct story_part *part)
{
    char name[EXIT_REASON_TEXT_MAX];

    for (size_t i = 0; i < part->nr_exits && i < EXITS_SHOWN; i++)
        (void)printf("%s %" PRIu64 " %s", i == 0 ? "; exits:" : ",", part->exits[i].count,
                     exit_reason_name(story->is_svm, part->exits[i].reason, name));
    if (part->nr_exits > EXITS_SHOWN)
        (void)printf(", %zu other reasons", part->nr_exits - EXITS_SHOWN);
}

static void print_part(const struct input *input, const struct story *story,
                       const struct story_part *part, uint64_t first_tsc)
{
    char when[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    (void)printf("  %s  %s %s", input_when(input, when, part->from, first_tsc), runstate_name(part),
                 input_span(input, span, part->to - part->from));
    if (part->runstate == STATE_RUNNING)
        (void)printf(" on CPU %" PRIu32, part->cpu);
    if (part->runstate == STATE_RUNNABLE) {
        if (part->has_cpu)
            (void)printf(" for CPU %" PRIu32, part->cpu);
        if (part->wait == STATE_WAKE)
            (void)printf(", woken by CPU %" PRIu32, part->changer);
        else if (part->wait == STATE_PREEMPT)
            (void)fputs(", preempted", stdout);
        print_who_ran(input, part);
    }
    print_exits(story, part);
    (void)puts(part->is_open ? ", until the trace ended" : "");
}

/* The cycles of PART within the story's time. */
static uint64_t cycles_within(const struct story *story, const struct story_part *part)
{
    uint64_t from = max_u64(part->from, story->from), to = min_u64(part->to, story->until);

    return from < to ? to - from : 0;
}

static void print_summary(const struct input *input, const struct story *story, uint64_t first_tsc)
{
    uint64_t cycles[STATE_RUNSTATES + 1] = {0}, all = story->until - story->from;
    char name[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    for (size_t i = 0; i < story->nr_parts; i++)
        cycles[story->parts[i].runstate] += cycles_within(story, &story->parts[i]);
    (void)printf("%s, %s from %s: ran %.0f%%, waited %.0f%%, slept %.0f%%",
                 input_vcpu(input, name, story->key, story->from), input_span(input, span, all),
                 input_when(input, from, story->from, first_tsc),
                 100.0 * (double)cycles[STATE_RUNNING] / (double)all,
                 100.0 * (double)cycles[STATE_RUNNABLE] / (double)all,
                 100.0 * (double)cycles[STATE_BLOCKED] / (double)all);
    if (cycles[STATE_OFFLINE] > 0)
        (void)printf(", offline %.0f%%", 100.0 * (double)cycles[STATE_OFFLINE] / (double)all);
    if (story->yields > 0)
        (void)printf("; yielded %" PRIu64 " times", story->yields);
    (void)puts(".");
}

static void print_story(const struct input *input, const struct story *story, uint64_t first_tsc)
{
    print_summary(input, story, first_tsc);
    for (size_t i = 0; i < story->nr_parts; i++)
        print_part(input, story, &story->parts[i], first_tsc);
    if (story->is_cut)
        (void)printf("  The list is cut here. To see more, use a shorter --window.\n");
}

/* --- The command. --- */

/* A vCPU, and the time to show. */
struct question {
    uint32_t key;
    uint64_t from, until;
    uint64_t first_tsc; /* of the trace */
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
        if (!options->window_usec)
            window = max_u64(window, 2 * measured->longest_cycles);
    }
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

    r = parse_vcpu(input, whose, &domain, &number, ret_error);
    if (r < 0)
        return r;
    r = measures_new(&input->merge, false, &measures);
    if (r < 0)
        return r;
    vcpu = find_vcpu(measures, domain, number);
    if (!vcpu)
        return str_refuse(-ENOENT, ret_error,
                          "\"%s\" has no runstate record in this trace. Its domains are shown by: "
                          "xentracectl report %s",
                          whose, input->path);
    question->key = vcpu->key;
    question->first_tsc = measures->first_tsc;
    return find_time(input, measures, vcpu, options, question, ret_error);
}

/* Reads the part of it that matters, and some of what came before. */
static int answer(struct input *input, const struct question *question, char **ret_error)
{
    _cleanup_(story_freep) struct story *story = NULL;
    uint64_t lead = input_ticks(input, LEAD_USEC);
    struct merge_part part = MERGE_ALL;
    int r;

    part.from = question->from > lead ? question->from - lead : 0;
    r = input_begin(input, part, ret_error);
    if (r < 0)
        return r;
    r = story_new(&input->merge, question->key, question->from, question->until, &story);
    if (r < 0)
        return r;
    print_story(input, story, question->first_tsc);
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
    return r < 0 ? r : answer(input, &question, ret_error);
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
    if (r >= 0)
        return CTL_OK;
    if (error)
        ctl_error_sentence(error);
    else
        ctl_error("Cannot read the trace: %s.", strerror(-r));
    free(error);
    return CTL_FAILURE;
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
    .remote = VERB_RUNS_THERE,
};
