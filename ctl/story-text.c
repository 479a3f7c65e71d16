// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/story-text.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "common/util.h"
#include "ctl/color.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "ctl/wrap.h"
#include "trace/exit-reasons.h"
#include "trace/sidecar.h"
#include "trace/story.h"

#define RAN_SHOWN   4u
#define EXITS_SHOWN 4u

/* Of the further lines of a sentence, of a part: more than its time. */
#define HANGING      2u
#define HANGING_PART 6u

struct teller {
    FILE *file;
    const struct input *input;
    const struct story *story;
    uint64_t first_tsc;
    const struct palette *palette;
};

static const char *did(enum state_runstate runstate)
{
    static const char *const names[] = {"ran", "waited", "slept", "was paused or offline",
                                        "unknown"};

    return names[runstate];
}

static const char *times(uint64_t number)
{
    return number == 1 ? " time" : " times";
}

/* The cycles of PART within the story's time. */
static uint64_t cycles_within(const struct story *story, const struct story_part *part)
{
    uint64_t from = max_u64(part->from, story->from), to = min_u64(part->to, story->until);

    return from < to ? to - from : 0;
}

/* What is left of a wait, when those that ran are known. */
static uint64_t unknown_cycles(const struct story_part *part)
{
    uint64_t unknown = part->to - part->from;

    for (size_t i = 0; i < part->nr_ran; i++)
        unknown -= part->ran[i].cycles;
    return unknown;
}

/* --- A line. --- */

static void print_who_ran(const struct teller *teller, const struct story_part *part)
{
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];
    uint64_t unknown = unknown_cycles(part);

    for (size_t i = 0; i < part->nr_ran && i < RAN_SHOWN; i++)
        if (part->ran[i].key >> 16 == STATE_DOMAIN_IDLE)
            (void)fprintf(teller->file, "%s it was idle %s", i == 0 ? ":" : ",",
                          input_span(teller->input, span, part->ran[i].cycles));
        else
            (void)fprintf(teller->file, "%s %s ran %s", i == 0 ? ":" : ",",
                          input_vcpu(teller->input, name, part->ran[i].key, part->from),
                          input_span(teller->input, span, part->ran[i].cycles));
    if (part->nr_ran > RAN_SHOWN)
        (void)fprintf(teller->file, ", %zu more", part->nr_ran - RAN_SHOWN);
    if (part->has_cpu && unknown > (part->to - part->from) / 20)
        (void)fprintf(teller->file, ", unknown %s", input_span(teller->input, span, unknown));
}

/* Credit is nanoseconds of running, of a vCPU with the greatest weight of the run queue. */
static double credit_msec(int32_t credit)
{
    return (double)credit / 1e6;
}

static void print_credit2(const struct teller *teller, const struct story_part *part)
{
    const struct story_credit2 *credit2 = &part->credit2;
    char name[INPUT_TEXT_MAX];

    if (credit2->decisions > 0) {
        (void)fprintf(teller->file,
                      "; credit2 took another vCPU %" PRIu32 "%s, the last time %s with a "
                      "credit of %.1fms",
                      credit2->decisions, times(credit2->decisions),
                      input_vcpu(teller->input, name, credit2->other_key, part->to),
                      credit_msec(credit2->other_credit));
        if (credit2->has_credit)
            (void)fprintf(teller->file, ", against %.1fms of its own",
                          credit_msec(credit2->credit));
    }
    if (credit2->ratelimits > 0)
        (void)fprintf(teller->file,
                      "; credit2's rate limit let the one that ran continue %" PRIu32 "%s",
                      credit2->ratelimits, times(credit2->ratelimits));
}

static void print_wait(const struct teller *teller, const struct story_part *part)
{
    if (part->has_cpu)
        (void)fprintf(teller->file, " for CPU %" PRIu32, part->cpu);
    if (part->wait == STATE_WAKE)
        (void)fprintf(teller->file, ", woken by CPU %" PRIu32, part->changer);
    else if (part->wait == STATE_PREEMPT)
        (void)fputs(part->has_yielded ? ", having yielded" : ", preempted", teller->file);
    print_who_ran(teller, part);
    print_credit2(teller, part);
    if (story_is_lock_holder(part))
        (void)fprintf(teller->file,
                      "; probably held a lock: others of its domain yielded or paused %" PRIu64
                      " times",
                      part->spins);
}

static void print_run(const struct teller *teller, const struct story_part *part)
{
    char name[EXIT_REASON_TEXT_MAX], holder[INPUT_TEXT_MAX];

    (void)fprintf(teller->file, " on CPU %" PRIu32, part->cpu);
    for (size_t i = 0; i < part->nr_exits && i < EXITS_SHOWN; i++)
        (void)fprintf(teller->file, "%s %" PRIu64 " %s", i == 0 ? "; exits:" : ",",
                      part->exits[i].count,
                      exit_reason_name(teller->story->is_svm, part->exits[i].reason, name));
    if (part->nr_exits > EXITS_SHOWN)
        (void)fprintf(teller->file, ", %zu other reasons", part->nr_exits - EXITS_SHOWN);
    if (part->yields > 0)
        (void)fprintf(teller->file, "; yielded %" PRIu64 "%s", part->yields, times(part->yields));
    if (part->has_holder)
        (void)fprintf(teller->file, "; %s was preempted meanwhile, and may have held a lock",
                      input_vcpu(teller->input, holder, part->holder, part->from));
}

static void print_line(const struct teller *teller, const struct story_part *part, bool is_marked)
{
    const char *color = part->runstate == STATE_RUNNABLE ? teller->palette->bad : "";
    char when[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    (void)fprintf(teller->file, "%s %s  %s%s %s%s", is_marked ? ">" : " ",
                  input_when_usec(teller->input, when, part->from, teller->first_tsc), color,
                  did(part->runstate), input_span(teller->input, span, part->to - part->from),
                  *color ? teller->palette->end : "");
    if (part->runstate == STATE_RUNNING)
        print_run(teller, part);
    else if (part->runstate == STATE_RUNNABLE)
        print_wait(teller, part);
    if (part->is_open)
        (void)fputs(", until the trace ended", teller->file);
}

/* --- The summary. --- */

static const struct story_part *find_longest(const struct story *story)
{
    const struct story_part *longest = NULL;

    for (size_t i = 0; i < story->nr_parts; i++) {
        const struct story_part *part = &story->parts[i];

        if (part->runstate == STATE_RUNNABLE &&
            (!longest || part->to - part->from > longest->to - longest->from))
            longest = part;
    }
    return longest;
}

static void print_shares(const struct teller *teller)
{
    const struct story *story = teller->story;
    uint64_t cycles[STATE_RUNSTATES + 1] = {0}, all = max_u64(story->until - story->from, 1);
    char name[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX];

    for (size_t i = 0; i < story->nr_parts; i++)
        cycles[story->parts[i].runstate] += cycles_within(story, &story->parts[i]);
    (void)fprintf(teller->file, "%s, %s from %s: ran %.0f%%, waited %.0f%%, slept %.0f%%",
                  input_vcpu(teller->input, name, story->key, story->from),
                  input_span(teller->input, span, all),
                  input_when(teller->input, from, story->from, teller->first_tsc),
                  100.0 * (double)cycles[STATE_RUNNING] / (double)all,
                  100.0 * (double)cycles[STATE_RUNNABLE] / (double)all,
                  100.0 * (double)cycles[STATE_BLOCKED] / (double)all);
    if (cycles[STATE_OFFLINE] > 0)
        (void)fprintf(teller->file, ", offline %.0f%%",
                      100.0 * (double)cycles[STATE_OFFLINE] / (double)all);
    if (story->yields > 0)
        (void)fprintf(teller->file, "; yielded %" PRIu64 "%s", story->yields, times(story->yields));
    (void)fputs(".", teller->file);
}

static void print_longest(const struct teller *teller, const struct story_part *longest)
{
    char span[INPUT_TEXT_MAX], when[INPUT_TEXT_MAX];

    (void)fprintf(teller->file, "Longest wait (>): %s from %s",
                  input_span(teller->input, span, longest->to - longest->from),
                  input_when(teller->input, when, longest->from, teller->first_tsc));
    if (longest->has_cpu)
        (void)fprintf(teller->file, " for CPU %" PRIu32, longest->cpu);
    print_who_ran(teller, longest);
    (void)fputs(".", teller->file);
    if (longest->idle_elsewhere < (longest->to - longest->from) / 4)
        return;
    (void)fprintf(
        teller->file,
        " Other CPUs were idle for %s meanwhile: is it pinned? See: xl vcpu-list %" PRIu32,
        input_span(teller->input, span, longest->idle_elsewhere), teller->story->key >> 16);
}

/* --- All of it, in lines. --- */

/* The line that is made by a teller: its file is memory. */
struct line {
    char *text;
    size_t bytes;
};

static bool line_begin(struct line *line, struct teller *teller)
{
    *line = (struct line){0};
    teller->file = open_memstream(&line->text, &line->bytes);
    return teller->file;
}

static void line_end(struct line *line, const struct teller *teller, FILE *file, unsigned int width,
                     unsigned int hanging)
{
    if (fclose(teller->file) == 0)
        (void)wrap_print(file, line->text, width, 0, hanging);
    free(line->text);
}

static void print_summary(struct teller *teller, FILE *file, unsigned int width,
                          const struct story_part *longest)
{
    struct line line;

    if (line_begin(&line, teller)) {
        print_shares(teller);
        line_end(&line, teller, file, width, HANGING);
    }
    if (longest && line_begin(&line, teller)) {
        print_longest(teller, longest);
        line_end(&line, teller, file, width, HANGING);
    }
    (void)fputc('\n', file);
}

void story_text_print(FILE *file, unsigned int width, const struct input *input,
                      const struct story *story, uint64_t first_tsc, const struct palette *palette)
{
    struct teller teller = {NULL, input, story, first_tsc, palette};
    const struct story_part *longest = find_longest(story);
    struct line line;

    print_summary(&teller, file, width, longest);
    for (size_t i = 0; i < story->nr_parts && line_begin(&line, &teller); i++) {
        print_line(&teller, &story->parts[i], &story->parts[i] == longest);
        line_end(&line, &teller, file, width, HANGING_PART);
    }
    if (story->is_cut)
        (void)fprintf(file, "  The list is cut here. To see more, use a shorter --window.\n");
}

/* --- No record in the time. --- */

static void print_change(FILE *file, const struct input *input, uint64_t first_tsc,
                         const char *which, const struct story_change *change)
{
    char when[INPUT_TEXT_MAX];

    if (!change->is_known) {
        (void)fprintf(file, "  It has none %s.\n", which);
        return;
    }
    (void)fprintf(file, "  Its %s record %s is of %s: %s to %s, on CPU %" PRIu32 ".\n",
                  which[0] == 'b' ? "last" : "first", which,
                  input_when(input, when, change->tsc, first_tsc),
                  state_runstate_name(change->from), state_runstate_name(change->to), change->cpu);
}

void story_text_print_changes(FILE *file, const struct input *input, const struct story *story,
                              uint64_t first_tsc, const struct story_change *before,
                              const struct story_change *after)
{
    char name[INPUT_TEXT_MAX], span[INPUT_TEXT_MAX], from[INPUT_TEXT_MAX];

    (void)fprintf(file, "%s has no runstate record in the %s from %s.\n",
                  input_vcpu(input, name, story->key, story->from),
                  input_span(input, span, story->until - story->from),
                  input_when(input, from, story->from, first_tsc));
    print_change(file, input, first_tsc, "before", before);
    print_change(file, input, first_tsc, "after", after);
}

/* --- A document. --- */

struct name {
    char text[EXIT_REASON_TEXT_MAX];
};

static struct name vcpu_name(uint32_t key)
{
    struct name name;

    (void)snprintf(name.text, sizeof(name.text), "d%" PRIu32 "v%" PRIu32, key >> 16, key & 0xffff);
    return name;
}

static void add_wait(struct json_object *doc, const struct story_part *part)
{
    const struct story_credit2 *credit2 = &part->credit2;
    struct json_object *object;

    doc_add_text(doc, "wait", state_wait_name(part->wait));
    doc_add_number(doc, "changed_by_cpu", part->changer);
    doc_add_flag(doc, "yielded", part->has_yielded);
    doc_add_number(doc, "spins", part->spins);
    doc_add_flag(doc, "lock_holder", story_is_lock_holder(part));
    if (!part->has_cpu)
        return;
    object = doc_add_object(doc, "ran");
    for (size_t i = 0; i < part->nr_ran; i++)
        doc_add_number(object, vcpu_name(part->ran[i].key).text, part->ran[i].cycles);
    doc_add_number(object, "unknown", unknown_cycles(part));
    doc_add_number(doc, "idle_elsewhere", part->idle_elsewhere);
    if (credit2->decisions == 0 && credit2->ratelimits == 0)
        return;
    object = doc_add_object(doc, "credit2");
    doc_add_number(object, "decisions", credit2->decisions);
    doc_add_number(object, "ratelimits", credit2->ratelimits);
    if (credit2->decisions > 0) {
        doc_add_text(object, "last", vcpu_name(credit2->other_key).text);
        (void)json_object_object_add(object, "last_credit",
                                     json_object_new_int(credit2->other_credit));
        if (credit2->has_credit)
            (void)json_object_object_add(object, "credit", json_object_new_int(credit2->credit));
    }
}

static void add_run(struct json_object *doc, const struct story *story,
                    const struct story_part *part)
{
    struct json_object *exits = doc_add_object(doc, "exits");
    char text[EXIT_REASON_TEXT_MAX];

    for (size_t i = 0; i < part->nr_exits; i++)
        doc_add_number(exits, exit_reason_name(story->is_svm, part->exits[i].reason, text),
                       part->exits[i].count);
    doc_add_number(doc, "yields", part->yields);
    if (part->has_holder)
        doc_add_text(doc, "preempted", vcpu_name(part->holder).text);
}

static void add_change(struct json_object *doc, const char *key, const struct story_change *change)
{
    struct json_object *object;

    if (!change->is_known)
        return;
    object = doc_add_object(doc, key);
    doc_add_number(object, "tsc", change->tsc);
    doc_add_number(object, "cpu", change->cpu);
    doc_add_text(object, "from", state_runstate_name(change->from));
    doc_add_text(object, "to", state_runstate_name(change->to));
}

void story_doc_add_changes(struct json_object *doc, const struct story_change *before,
                           const struct story_change *after)
{
    add_change(doc, "before", before);
    add_change(doc, "after", after);
}

void story_doc_add(struct json_object *doc, const struct input *input, const struct story *story)
{
    struct json_object *parts;

    doc_add_text(doc, "vcpu", vcpu_name(story->key).text);
    doc_add_text(doc, "domain",
                 sidecar_domain_name(input->sidecar, story->key >> 16,
                                     sidecar_realtime_nsec(input->sidecar, story->from)));
    doc_add_number(doc, "tsc_khz", input->tsc_khz);
    doc_add_number(doc, "from_tsc", story->from);
    doc_add_number(doc, "until_tsc", story->until);
    doc_add_number(doc, "yields", story->yields);
    doc_add_flag(doc, "cut", story->is_cut);
    parts = doc_add_array(doc, "parts");
    for (size_t i = 0; i < story->nr_parts; i++) {
        const struct story_part *part = &story->parts[i];
        struct json_object *entry = doc_append_object(parts);

        doc_add_text(entry, "state", state_runstate_name(part->runstate));
        doc_add_number(entry, "from_tsc", part->from);
        doc_add_number(entry, "to_tsc", part->to);
        doc_add_flag(entry, "open", part->is_open);
        if (part->has_cpu)
            doc_add_number(entry, "cpu", part->cpu);
        if (part->runstate == STATE_RUNNABLE)
            add_wait(entry, part);
        else if (part->runstate == STATE_RUNNING)
            add_run(entry, story, part);
    }
}
