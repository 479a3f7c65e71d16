// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs of all vCPUs are kept while the story's vCPU waits, and are looked at when it runs: only
 * then it is known which CPU it waited for.
 */

#include "trace/story.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "trace/exit-reasons.h"

#define SIBLINGS     128u /* HVM_MAX_VCPUS in <xen/hvm/hvm_info_table.h> */
#define CREDIT_BURN  0x22203u
#define CREDIT_RESET 0x22207u
#define TICKLE_NEW   0x2220du
#define CANDIDATE    0x22214u
#define RATELIMIT    0x22216u

#define RUNS_MAX ((size_t)1 << 20) /* older ones are forgotten: their time is unknown */

struct run {
    uint32_t key, stream;
    uint64_t from, to;
};

/* What credit2 decided on a CPU since the wait with that number began. */
struct decisions {
    uint64_t wait;
    struct story_credit2 credit2;
};

struct teller {
    struct story *story;
    struct merge *merge;
    struct state state;
    size_t max_parts;
    struct run *runs; /* since the wait began that is not over */
    size_t nr_runs, max_runs;
    struct story_exit *exits; /* of the run that is not over */
    size_t nr_exits, max_exits;
    struct decisions *decisions; /* [nr_decisions], by number of the stream */
    unsigned int nr_decisions;
    uint64_t waits; /* that have begun */
    bool has_credit;
    int32_t credit;
    uint64_t yields;  /* of the run that is not over, of all of its intervals */
    bool has_yielded; /* in the interval that is not over; then, in the one before */
    uint64_t spins;   /* of the domain's other vCPUs, since the vCPU's last interval began */
    bool has_holder;
    uint32_t holder;
    int error;
};

static void story_freep(struct story **story)
{
    story_free(*story);
}

struct story *story_free(struct story *story)
{
    if (!story)
        return NULL;
    for (size_t i = 0; i < story->nr_parts; i++) {
        free(story->parts[i].ran);
        free(story->parts[i].exits);
    }
    free(story->parts);
    free(story);
    return NULL;
}

static void teller_done(struct teller *teller)
{
    state_done(&teller->state);
    free(teller->runs);
    free(teller->exits);
    free(teller->decisions);
}

/* Room for one more in an array of SIZE bytes each, which has NR of *MAX. */
static void *make_room(struct teller *teller, void *array, size_t nr, size_t *max, size_t size)
{
    void *more = array;

    if (nr < *max)
        return array;
    *max = *max ? *max * 2 : 64;
    more = reallocarray(array, *max, size);
    if (!more) {
        teller->error = -ENOMEM;
        *max = nr;
    }
    return more;
}

/* A run that CONTINUE_RUNNING divides is one. */
static bool continues_run(const struct story_part *last, const struct story_part *part)
{
    return last->runstate == STATE_RUNNING && part->runstate == STATE_RUNNING &&
           last->to == part->from && last->cpu == part->cpu;
}

static struct story_part *add_part(struct teller *teller, const struct story_part *part)
{
    struct story *story = teller->story;
    struct story_part *more;

    if (part->to < story->from || part->from >= story->until)
        return NULL;
    if (story->nr_parts > 0 && continues_run(&story->parts[story->nr_parts - 1], part)) {
        story->parts[story->nr_parts - 1].to = part->to;
        story->parts[story->nr_parts - 1].is_open = part->is_open;
        story->parts[story->nr_parts - 1].yields += part->yields;
        if (part->has_holder) {
            story->parts[story->nr_parts - 1].has_holder = true;
            story->parts[story->nr_parts - 1].holder = part->holder;
        }
        return &story->parts[story->nr_parts - 1];
    }
    if (story->nr_parts == STORY_PARTS_MAX) {
        story->is_cut = true;
        return NULL;
    }
    more = make_room(teller, story->parts, story->nr_parts, &teller->max_parts, sizeof(*more));
    if (!more)
        return NULL;
    story->parts = more;
    more[story->nr_parts] = *part;
    return &more[story->nr_parts++];
}

/* --- Who ran during a wait. --- */

static void keep_run(struct teller *teller, const struct state_interval *interval)
{
    struct run *more;

    if (teller->nr_runs == RUNS_MAX) { /* the older half goes */
        teller->nr_runs /= 2;
        memmove(teller->runs, teller->runs + teller->nr_runs,
                teller->nr_runs * sizeof(*teller->runs));
    }
    more = make_room(teller, teller->runs, teller->nr_runs, &teller->max_runs, sizeof(*more));
    if (!more)
        return;
    teller->runs = more;
    more[teller->nr_runs++] =
        (struct run){interval->vcpu->key, interval->stream, interval->from, interval->to};
}

static int compare_ran(const void *a, const void *b)
{
    const struct story_ran *x = a, *y = b;

    if (x->cycles != y->cycles)
        return x->cycles < y->cycles ? 1 : -1;
    return (x->key > y->key) - (x->key < y->key);
}

static void add_ran(struct teller *teller, struct story_part *part, size_t *max, uint32_t key,
                    uint64_t cycles)
{
    struct story_ran *more;

    for (size_t i = 0; i < part->nr_ran; i++) {
        if (part->ran[i].key != key)
            continue;
        part->ran[i].cycles += cycles;
        return;
    }
    more = make_room(teller, part->ran, part->nr_ran, max, sizeof(*more));
    if (!more)
        return;
    part->ran = more;
    more[part->nr_ran++] = (struct story_ran){key, cycles};
}

static void find_who_ran(struct teller *teller, struct story_part *part, uint32_t stream)
{
    size_t max = 0;

    for (size_t i = 0; i < teller->nr_runs; i++) {
        const struct run *run = &teller->runs[i];
        uint64_t from = max_u64(run->from, part->from), to = min_u64(run->to, part->to);

        if (run->stream == stream && from < to)
            add_ran(teller, part, &max, run->key, to - from);
    }
    if (part->nr_ran > 1)
        qsort(part->ran, part->nr_ran, sizeof(*part->ran), compare_ran);
}

static uint64_t overlap(const struct story_part *part, uint64_t from, uint64_t to)
{
    from = max_u64(from, part->from);
    to = min_u64(to, part->to);
    return from < to ? to - from : 0;
}

/* Those that have been idle since before are no runs yet. */
static void find_idle_elsewhere(const struct teller *teller, struct story_part *part,
                                uint32_t stream)
{
    for (size_t i = 0; i < teller->nr_runs; i++)
        if (teller->runs[i].stream != stream && teller->runs[i].key >> 16 == STATE_DOMAIN_IDLE)
            part->idle_elsewhere += overlap(part, teller->runs[i].from, teller->runs[i].to);
    for (unsigned int i = 0; i < teller->state.nr_cpus; i++) {
        const struct state_vcpu *vcpu = teller->state.cpus[i].running;

        if (i != stream && vcpu && vcpu->key >> 16 == STATE_DOMAIN_IDLE)
            part->idle_elsewhere += overlap(part, vcpu->since, part->to);
    }
}

/* --- What is observed. --- */

static int compare_exits(const void *a, const void *b)
{
    const struct story_exit *x = a, *y = b;

    if (x->count != y->count)
        return x->count < y->count ? 1 : -1;
    return (x->reason > y->reason) - (x->reason < y->reason);
}

static void add_exit(struct teller *teller, struct story_part *part, const struct story_exit *exit)
{
    struct story_exit *more;

    for (size_t i = 0; i < part->nr_exits; i++) {
        if (part->exits[i].reason != exit->reason)
            continue;
        part->exits[i].count += exit->count;
        return;
    }
    more = reallocarray(part->exits, part->nr_exits + 1, sizeof(*more));
    if (!more) {
        teller->error = -ENOMEM;
        return;
    }
    part->exits = more;
    more[part->nr_exits++] = *exit;
}

/* Exits, yields and whoever held the lock belong to the run that ends. */
static void end_run(struct teller *teller, struct story_part *part)
{
    for (size_t i = 0; part && i < teller->nr_exits; i++)
        add_exit(teller, part, &teller->exits[i]);
    if (part && part->nr_exits > 1)
        qsort(part->exits, part->nr_exits, sizeof(*part->exits), compare_exits);
    teller->nr_exits = 0;
    teller->has_yielded = teller->yields > 0;
    teller->yields = 0;
    teller->has_holder = false;
}

/* A decision is logged before the vCPU that it preempts stops: it belongs to the wait. */
static void keep_last_decision(struct teller *teller, uint32_t stream)
{
    struct decisions *decisions;

    if (stream >= teller->nr_decisions)
        return;
    decisions = &teller->decisions[stream];
    if (decisions->wait + 1 != teller->waits || decisions->credit2.decisions == 0)
        return;
    decisions->wait = teller->waits;
    decisions->credit2.decisions = 1;
    decisions->credit2.ratelimits = 0;
}

static void on_interval(void *context, const struct state_interval *interval)
{
    struct teller *teller = context;
    bool ran = interval->runstate == STATE_RUNNING;
    struct story_part *part;

    if (ran)
        keep_run(teller, interval);
    if (interval->vcpu->key != teller->story->key)
        return;
    part = add_part(teller, &(struct story_part){
                                .runstate = interval->runstate,
                                .wait = interval->wait,
                                .from = interval->from,
                                .to = interval->to,
                                .cpu = merge_cpu_of(teller->merge, interval->stream),
                                .has_cpu = ran,
                                .changer = merge_cpu_of(teller->merge, interval->changer),
                                .yields = ran ? teller->yields : 0,
                                .has_holder = ran && teller->has_holder,
                                .holder = teller->holder,
                                .has_yielded = !ran && teller->has_yielded,
                                .spins = ran ? 0 : teller->spins,
                            });
    if (ran)
        end_run(teller, part);
    else
        teller->has_yielded = false;
    teller->spins = 0;
    teller->waits++;
    if (ran)
        keep_last_decision(teller, interval->stream);
}

static void find_decisions(const struct teller *teller, struct story_part *part, uint32_t stream)
{
    /* The interval of the wait has ended, which counted it. */
    if (stream < teller->nr_decisions && teller->decisions[stream].wait + 1 == teller->waits)
        part->credit2 = teller->decisions[stream].credit2;
}

/* The wait is the last part, and it is known now where the vCPU runs. */
static void on_wait(void *context, const struct state_wait_end *wait)
{
    struct teller *teller = context;
    struct story *story = teller->story;
    struct story_part *part;

    if (wait->vcpu->key != story->key)
        return;
    part = story->nr_parts > 0 ? &story->parts[story->nr_parts - 1] : NULL;
    if (part && part->runstate == STATE_RUNNABLE && part->from == wait->from) {
        part->has_cpu = true;
        part->cpu = merge_cpu_of(teller->merge, wait->stream);
        find_who_ran(teller, part, wait->stream);
        find_idle_elsewhere(teller, part, wait->stream);
        find_decisions(teller, part, wait->stream);
    }
    teller->nr_runs = 0;
}

/*
 * The story's vCPU spins: another one of its domain that was preempted, and did not yield, may hold
 * what it waits for. Of several, the one that has waited for longest.
 */
static void find_holder(struct teller *teller)
{
    const struct state_vcpu *found = NULL;
    uint32_t key = teller->story->key;

    for (uint32_t i = 0; i < SIBLINGS; i++) {
        const struct state_vcpu *vcpu = state_find(&teller->state, (key & 0xffff0000u) | i);

        if (vcpu && vcpu->key != key && vcpu->runstate == STATE_RUNNABLE &&
            vcpu->wait == STATE_PREEMPT && (!found || vcpu->since < found->since))
            found = vcpu;
    }
    if (!found)
        return;
    teller->has_holder = true;
    teller->holder = found->key;
}

/* vCPU KEY yielded, or left with PAUSE. */
static void note_spin(struct teller *teller, uint32_t key)
{
    if (key == teller->story->key)
        find_holder(teller);
    else if (key >> 16 == teller->story->key >> 16)
        teller->spins++;
}

static void on_left(void *context, struct state_vcpu *vcpu, uint32_t reason)
{
    struct teller *teller = context;
    struct story_exit *more;

    if (vcpu && exit_reason_is_pause(teller->story->is_svm, reason))
        note_spin(teller, vcpu->key);
    if (!vcpu || vcpu->key != teller->story->key)
        return;
    for (size_t i = 0; i < teller->nr_exits; i++) {
        if (teller->exits[i].reason != reason)
            continue;
        teller->exits[i].count++;
        return;
    }
    more = make_room(teller, teller->exits, teller->nr_exits, &teller->max_exits, sizeof(*more));
    if (!more)
        return;
    teller->exits = more;
    more[teller->nr_exits++] = (struct story_exit){reason, 1};
}

/* --- The loop. --- */

static void note_yield(struct teller *teller, const struct merge_record *record)
{
    uint32_t key;

    if (merge_words(record) < 2)
        return;
    key = merge_word(record, 0) << 16 | (merge_word(record, 1) & 0xffff);
    note_spin(teller, key);
    if (key != teller->story->key)
        return;
    teller->yields++;
    teller->story->yields +=
        record->tsc >= teller->story->from && record->tsc < teller->story->until;
}

/* What was decided on that CPU since the wait began, or an empty one; NULL: no memory. */
static struct story_credit2 *decisions_of(struct teller *teller, uint32_t stream)
{
    struct decisions *more;

    if (stream >= teller->nr_decisions) {
        more = reallocarray(teller->decisions, teller->state.nr_cpus, sizeof(*more));
        if (!more) {
            teller->error = -ENOMEM;
            return NULL;
        }
        teller->decisions = more;
        for (; teller->nr_decisions < teller->state.nr_cpus; teller->nr_decisions++)
            more[teller->nr_decisions] = (struct decisions){.wait = UINT64_MAX - 1};
    }
    more = &teller->decisions[stream];
    if (more->wait != teller->waits)
        *more = (struct decisions){.wait = teller->waits};
    return &more->credit2;
}

/* Layouts: trace/events.c. */
static unsigned int credit_word_of(uint32_t event, unsigned int nr_words)
{
    switch (event) {
    case CREDIT_BURN:
        return 1;
    case CREDIT_RESET:
        return 2;
    default:
        return nr_words - 1;
    }
}

static void note_credit2(struct teller *teller, const struct merge_record *record, uint32_t event)
{
    unsigned int nr = merge_words(record), credit_word = credit_word_of(event, nr);
    struct story_credit2 *credit2;
    uint32_t key;

    if (nr < 2 || nr <= credit_word)
        return;
    key = merge_word(record, 0);
    if (key == teller->story->key && event != RATELIMIT) {
        teller->has_credit = true;
        teller->credit = (int32_t)merge_word(record, credit_word);
        return;
    }
    if ((event != CANDIDATE && event != RATELIMIT) || key >> 16 >= STATE_DOMAIN_IDLE)
        return;
    credit2 = decisions_of(teller, record->stream);
    if (!credit2)
        return;
    credit2->ratelimits += event == RATELIMIT;
    if (event != CANDIDATE)
        return;
    credit2->decisions++;
    credit2->other_key = key;
    credit2->other_credit = (int32_t)merge_word(record, credit_word);
    credit2->has_credit = teller->has_credit;
    credit2->credit = teller->credit;
}

static void note_record(struct teller *teller, const struct merge_record *record)
{
    uint32_t event = record_event(record->header);

    if (event == TRC_SCHED_YIELD)
        note_yield(teller, record);
    else if (event == CREDIT_BURN || event == CREDIT_RESET || event == TICKLE_NEW ||
             event == CANDIDATE || event == RATELIMIT)
        note_credit2(teller, record, event);
    state_record(&teller->state, record);
}

/* What the vCPU does when the trace, or the story's time, is over. */
static void add_open_part(struct teller *teller, uint64_t now)
{
    const struct state_vcpu *vcpu = state_find(&teller->state, teller->story->key);

    if (!vcpu || vcpu->runstate == STATE_UNKNOWN || vcpu->since >= teller->story->until)
        return;
    (void)add_part(teller,
                   &(struct story_part){
                       .runstate = vcpu->runstate,
                       .wait = vcpu->wait,
                       .from = vcpu->since,
                       .to = max_u64(now, vcpu->since),
                       .cpu = merge_cpu_of(teller->merge, vcpu->stream),
                       .has_cpu = vcpu->runstate == STATE_RUNNING,
                       .changer = merge_cpu_of(teller->merge, vcpu->changer),
                       .is_open = true,
                       .yields = vcpu->runstate == STATE_RUNNING ? teller->yields : 0,
                       .has_yielded = vcpu->runstate == STATE_RUNNABLE && teller->has_yielded,
                       .spins = vcpu->runstate == STATE_RUNNABLE ? teller->spins : 0,
                   });
}

/* Whether it is known what the vCPU was doing at the end of the story's time. */
static bool is_told(const struct teller *teller)
{
    const struct state_vcpu *vcpu = state_find(&teller->state, teller->story->key);

    return !vcpu || vcpu->runstate == STATE_UNKNOWN || vcpu->since >= teller->story->until;
}

static int tell(struct teller *teller)
{
    struct merge *merge = teller->merge;
    struct merge_record record = {0};
    uint64_t now = 0;
    int item;

    while (teller->error == 0 && (item = merge_next(merge, &record)) != MERGE_END) {
        teller->error = state_grow(&teller->state, merge_streams(merge));
        if (teller->error < 0)
            break;
        now = record.tsc;
        if (now >= teller->story->until && is_told(teller))
            break;
        if (item == MERGE_BLIND) {
            teller->has_credit = false; /* what changed it may be missing */
            state_begin_blind(&teller->state, &record);
            continue;
        }
        note_record(teller, &record);
    }
    add_open_part(teller, now);
    if (teller->error == 0)
        teller->error = teller->state.error < 0 ? teller->state.error : merge->error;
    return teller->error;
}

int story_new(struct merge *merge, const struct story_options *options, struct story **ret_story)
{
    _cleanup_(story_freep) struct story *story = calloc(1, sizeof(*story));
    _cleanup_(teller_done) struct teller teller = {.story = story, .merge = merge};
    const struct state_observer observer = {
        .context = &teller,
        .interval = on_interval,
        .wait = on_wait,
        .left = on_left,
    };
    int r;

    if (!story)
        return -ENOMEM;
    story->key = options->key;
    story->from = options->from;
    story->until = options->until;
    story->is_svm = options->is_svm;
    r = state_init(&teller.state, &observer);
    if (r < 0)
        return r;
    r = tell(&teller);
    if (r < 0)
        return r;
    *ret_story = TAKE_PTR(story);
    return 0;
}

/* --- What is known around a time. --- */

int story_find_changes(struct merge *merge, uint32_t key, uint64_t tsc,
                       struct story_change *ret_before, struct story_change *ret_after)
{
    struct merge_record record;
    int item;

    *ret_before = *ret_after = (struct story_change){0};
    while (!ret_after->is_known && (item = merge_next(merge, &record)) != MERGE_END) {
        uint32_t event = record_event(record.header);
        bool continues = event == TRC_SCHED_CONTINUE_RUNNING;

        if (item != MERGE_RECORD || (!continues && !state_is_runstate(event)) ||
            merge_words(&record) == 0 || merge_word(&record, 0) != key)
            continue;
        *(record.tsc < tsc ? ret_before : ret_after) = (struct story_change){
            .is_known = true,
            .tsc = record.tsc,
            .cpu = record.cpu,
            .from = continues ? STATE_RUNNING : (enum state_runstate)(event >> 8 & 3),
            .to = continues ? STATE_RUNNING : (enum state_runstate)(event >> 4 & 3),
        };
    }
    return merge->error;
}
