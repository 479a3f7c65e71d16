// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The intervals of a CPU, and those of a vCPU, come in the order of time and do not overlap. So
 * each row needs the sums of one column only: when an interval reaches into the next, the column is
 * settled. The same holds for the waits of one vCPU for one CPU; of these each column keeps the
 * longest.
 *
 * Times in here are since `from`.
 */

#include "trace/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define SHARES_FIRST 64u

/* A part of a CPU's column. */
struct share {
    uint32_t key;
    uint64_t cycles;
};

/* A row that is being made. */
struct sketch {
    struct timeline_row row;
    unsigned int column;                 /* that is not settled; == columns: all are */
    uint64_t covered_to;                 /* what comes before is in the sums */
    bool ends_in_loss;                   /* of a vCPU: what is known ended with a loss */
    bool is_known;                       /* something is */
    bool has_subject;                    /* a vCPU on a CPU that was asked for */
    uint64_t in_column[TIMELINE_STATES]; /* of a vCPU by state; of a CPU the lost part */
    struct share *shares;                /* of a CPU: by vCPU, with repetitions */
    size_t nr_shares, max_shares;
    uint64_t blind_from; /* of a CPU that is blind */
    bool is_blind;
};

/* What one vCPU waited for one CPU during a column. */
struct account {
    uint32_t stream;
    unsigned int column;
    uint64_t cycles;
};

/* state_vcpu.observed */
struct draft {
    struct sketch *sketch; /* of a vCPU that has a row */
    bool is_refused;
    struct account *accounts;
    size_t nr_accounts, max_accounts;
};

struct painter {
    struct timeline *timeline;
    const struct timeline_options *options;
    struct merge *merge;
    struct state state;
    struct sketch **sketches; /* of CPUs by number of the stream (NULL: no row); of vCPUs */
    size_t nr_sketches, max_sketches, nr_rows;
    uint64_t span;
    int error;
};

static void timeline_freep(struct timeline **timeline)
{
    timeline_free(*timeline);
}

struct timeline *timeline_free(struct timeline *timeline)
{
    if (!timeline)
        return NULL;
    for (size_t i = 0; i < timeline->nr_rows; i++) {
        free(timeline->rows[i].cells);
        free(timeline->rows[i].waiters);
    }
    free(timeline->rows);
    free(timeline);
    return NULL;
}

static void sketch_free(struct sketch *sketch)
{
    if (!sketch)
        return;
    free(sketch->row.cells);
    free(sketch->row.waiters);
    free(sketch->shares);
    free(sketch);
}

static void painter_done(struct painter *painter)
{
    for (size_t i = 0; i < painter->nr_sketches; i++)
        sketch_free(painter->sketches[i]);
    free(painter->sketches);
    for (unsigned int i = 0; i < painter->state.nr_vcpus; i++) {
        struct draft *draft = painter->state.vcpus[i]->observed;

        if (draft)
            free(draft->accounts);
        free(draft);
    }
    state_done(&painter->state);
}

/* --- Columns. --- */

static uint64_t column_begin(const struct painter *painter, unsigned int k)
{
    return (uint64_t)((unsigned __int128)painter->span * k / painter->timeline->columns);
}

/* The column of a time that is before the end. */
static unsigned int column_of(const struct painter *painter, uint64_t time)
{
    return (unsigned int)((((unsigned __int128)time + 1) * painter->timeline->columns - 1) /
                          painter->span);
}

static uint64_t column_width(const struct painter *painter, unsigned int k)
{
    return column_begin(painter, k + 1) - column_begin(painter, k);
}

uint64_t timeline_column(const struct timeline *timeline, unsigned int k)
{
    return timeline->from + (uint64_t)((unsigned __int128)(timeline->until - timeline->from) * k /
                                       timeline->columns);
}

static uint64_t since_begin(const struct painter *painter, uint64_t tsc)
{
    const struct timeline *timeline = painter->timeline;

    return min_u64(max_u64(tsc, timeline->from), timeline->until) - timeline->from;
}

/* The part of [*FROM, *TO) within the time, since `from`. False: there is none. */
static bool clip(const struct painter *painter, uint64_t *from, uint64_t *to)
{
    const struct timeline *timeline = painter->timeline;

    if (*to <= timeline->from || *from >= timeline->until || *from >= *to)
        return false;
    *from = since_begin(painter, *from);
    *to = since_begin(painter, *to);
    return true;
}

/* --- A CPU's column. --- */

static int compare_shares(const void *a, const void *b)
{
    const struct share *x = a, *y = b;

    return (x->key > y->key) - (x->key < y->key);
}

/* One share for each vCPU, by key. */
static void merge_shares(struct sketch *sketch)
{
    size_t nr = 0;

    qsort(sketch->shares, sketch->nr_shares, sizeof(*sketch->shares), compare_shares);
    for (size_t i = 0; i < sketch->nr_shares; i++) {
        if (nr > 0 && sketch->shares[nr - 1].key == sketch->shares[i].key)
            sketch->shares[nr - 1].cycles += sketch->shares[i].cycles;
        else
            sketch->shares[nr++] = sketch->shares[i];
    }
    sketch->nr_shares = nr;
}

static void add_share(struct painter *painter, struct sketch *sketch, uint32_t key, uint64_t cycles)
{
    struct share *more;
    size_t max = max_u64(sketch->max_shares, SHARES_FIRST);

    if (sketch->nr_shares > 0 && sketch->shares[sketch->nr_shares - 1].key == key) {
        sketch->shares[sketch->nr_shares - 1].cycles += cycles;
        return;
    }
    if (sketch->nr_shares == sketch->max_shares) {
        if (sketch->nr_shares > 0)
            merge_shares(sketch);
        if (sketch->nr_shares > sketch->max_shares / 2) /* that many vCPUs */
            max *= 2;
    }
    if (max != sketch->max_shares) {
        more = reallocarray(sketch->shares, max, sizeof(*more));
        if (!more) {
            painter->error = -ENOMEM;
            return;
        }
        sketch->shares = more;
        sketch->max_shares = max;
    }
    sketch->shares[sketch->nr_shares++] = (struct share){key, cycles};
}

/* A CPU on which many vCPUs ran for short times was not idle, though no other took as much of it.
 */
static bool is_busy(const struct sketch *sketch)
{
    uint64_t busy = 0, idle = 0;

    for (size_t i = 0; i < sketch->nr_shares; i++)
        *(sketch->shares[i].key >> 16 == STATE_DOMAIN_IDLE ? &idle : &busy) +=
            sketch->shares[i].cycles;
    return busy > idle;
}

/* Ties: the lowest key, then lost, then unknown. */
static struct timeline_cell settle_cpu(struct sketch *sketch, uint64_t width)
{
    struct timeline_cell cell = {.state = TIMELINE_LOST};
    uint64_t most = sketch->in_column[TIMELINE_LOST], known = most;
    bool without_idle;

    if (sketch->nr_shares > 0)
        merge_shares(sketch);
    without_idle = is_busy(sketch);
    for (size_t i = sketch->nr_shares; i-- > 0;) {
        known += sketch->shares[i].cycles;
        if (sketch->shares[i].cycles < most ||
            (without_idle && sketch->shares[i].key >> 16 == STATE_DOMAIN_IDLE))
            continue;
        most = sketch->shares[i].cycles;
        cell = (struct timeline_cell){.key = sketch->shares[i].key, .state = STATE_RUNNING};
    }
    if (width - known > most)
        cell = (struct timeline_cell){.state = STATE_UNKNOWN};
    sketch->nr_shares = 0;
    return cell;
}

/* --- A vCPU's column. --- */

/* Ties: in this order. */
static struct timeline_cell settle_vcpu(const struct sketch *sketch, uint64_t width)
{
    static const uint8_t order[] = {STATE_RUNNABLE, STATE_RUNNING, STATE_BLOCKED, STATE_OFFLINE,
                                    TIMELINE_LOST};
    struct timeline_cell cell = {.state = order[0]};
    uint64_t known = 0;

    for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
        known += sketch->in_column[order[i]];
        if (sketch->in_column[order[i]] > sketch->in_column[cell.state])
            cell.state = order[i];
    }
    if (width - known > sketch->in_column[cell.state])
        cell.state = STATE_UNKNOWN;
    return cell;
}

/* --- Rows. --- */

static void settle_column(struct painter *painter, struct sketch *sketch)
{
    uint64_t width = column_width(painter, sketch->column);

    sketch->row.cells[sketch->column++] = painter->timeline->by == TIMELINE_BY_CPU
                                              ? settle_cpu(sketch, width)
                                              : settle_vcpu(sketch, width);
    memset(sketch->in_column, 0, sizeof(sketch->in_column));
}

/* SKETCH was in STATE (with KEY) from FROM until TO. */
static void cover(struct painter *painter, struct sketch *sketch, unsigned int state, uint32_t key,
                  uint64_t from, uint64_t to)
{
    unsigned int last = column_of(painter, to - 1);

    for (unsigned int k = column_of(painter, from); k <= last; k++) {
        uint64_t begin = max_u64(from, column_begin(painter, k));
        uint64_t cycles = min_u64(to, column_begin(painter, k + 1)) - begin;

        while (sketch->column < k)
            settle_column(painter, sketch);
        if (painter->timeline->by == TIMELINE_BY_CPU && state == STATE_RUNNING)
            add_share(painter, sketch, key, cycles);
        else
            sketch->in_column[state] += cycles;
    }
    sketch->is_known = true;
    if (key >> 16 == STATE_DOMAIN_IDLE && state == STATE_RUNNING)
        sketch->row.idle_cycles += to - from;
    else
        sketch->row.cycles[state] += to - from;
}

static bool is_wanted(const struct painter *painter, uint32_t id)
{
    const struct timeline_options *options = painter->options;

    if (options->by == TIMELINE_BY_CPU)
        return subjects_has_cpu(options->subjects, id);
    return id >> 16 < STATE_DOMAIN_IDLE && subjects_has_vcpu(options->subjects, id);
}

/* Whether a vCPU on that CPU was asked for. */
static bool is_subject(const struct painter *painter, uint32_t key, uint32_t stream)
{
    const struct subjects *subjects = painter->options->subjects;

    return !subjects || (subjects_has_vcpu(subjects, key) &&
                         subjects_has_cpu(subjects, merge_cpu_of(painter->merge, stream)));
}

/* NULL: there is no row for it, or no memory. */
static struct sketch *sketch_new(struct painter *painter, uint32_t id)
{
    struct sketch *sketch;

    if (!is_wanted(painter, id))
        return NULL;
    if (painter->nr_rows == TIMELINE_ROWS_MAX) {
        painter->timeline->nr_omitted++;
        return NULL;
    }
    sketch = calloc(1, sizeof(*sketch));
    if (sketch)
        sketch->row.cells = calloc(painter->timeline->columns, sizeof(*sketch->row.cells));
    if (!sketch || !sketch->row.cells) {
        sketch_free(sketch);
        painter->error = -ENOMEM;
        return NULL;
    }
    sketch->row.id = id;
    painter->nr_rows++;
    return sketch;
}

static void add_sketch(struct painter *painter, struct sketch *sketch)
{
    struct sketch **more;

    if (painter->nr_sketches == painter->max_sketches) {
        size_t max = max_u64(painter->max_sketches * 2, 16);

        more = reallocarray(painter->sketches, max, sizeof(*more));
        if (!more) {
            painter->error = -ENOMEM;
            sketch_free(sketch);
            return;
        }
        painter->sketches = more;
        painter->max_sketches = max;
    }
    painter->sketches[painter->nr_sketches++] = sketch;
}

/* NULL: no memory. */
static struct draft *draft_of(struct painter *painter, struct state_vcpu *vcpu)
{
    if (!vcpu->observed)
        vcpu->observed = calloc(1, sizeof(struct draft));
    if (!vcpu->observed)
        painter->error = -ENOMEM;
    return vcpu->observed;
}

static struct sketch *sketch_of_vcpu(struct painter *painter, struct state_vcpu *vcpu)
{
    struct draft *draft = draft_of(painter, vcpu);

    if (!draft || draft->sketch || draft->is_refused)
        return draft ? draft->sketch : NULL;
    draft->sketch = sketch_new(painter, vcpu->key);
    draft->is_refused = !draft->sketch;
    if (!draft->sketch)
        return NULL;
    add_sketch(painter, draft->sketch);
    return painter->error < 0 ? NULL : draft->sketch;
}

static struct sketch *sketch_of_cpu(const struct painter *painter, uint32_t stream)
{
    return painter->timeline->by == TIMELINE_BY_CPU && stream < painter->nr_sketches
               ? painter->sketches[stream]
               : NULL;
}

/* --- Waits. --- */

static bool is_longer(const struct timeline_waiter *a, const struct timeline_waiter *b)
{
    return a->cycles > b->cycles || (a->cycles == b->cycles && a->key < b->key);
}

/* Of all vCPUs that waited for SKETCH's CPU during a column, the longest are kept. */
static void offer_waiter(struct painter *painter, struct sketch *sketch, unsigned int column,
                         struct timeline_waiter waiter)
{
    struct timeline_row *row = &sketch->row;
    struct timeline_waiters *waiters;
    unsigned int i;

    if (waiter.cycles * TIMELINE_WAIT_PART < column_width(painter, column))
        return;
    if (!row->waiters)
        row->waiters = calloc(painter->timeline->columns, sizeof(*row->waiters));
    if (!row->waiters) {
        painter->error = -ENOMEM;
        return;
    }
    waiters = &row->waiters[column];
    i = (unsigned int)min_u64(waiters->nr++, TIMELINE_WAITERS);
    for (; i > 0 && is_longer(&waiter, &waiters->list[i - 1]); i--)
        if (i < TIMELINE_WAITERS)
            waiters->list[i] = waiters->list[i - 1];
    if (i < TIMELINE_WAITERS)
        waiters->list[i] = waiter;
}

static struct account *account_of(struct painter *painter, struct draft *draft, uint32_t stream)
{
    struct account *more;

    for (size_t i = 0; i < draft->nr_accounts; i++)
        if (draft->accounts[i].stream == stream)
            return &draft->accounts[i];
    if (draft->nr_accounts == draft->max_accounts) {
        size_t max = max_u64(draft->max_accounts * 2, 4);

        more = reallocarray(draft->accounts, max, sizeof(*more));
        if (!more) {
            painter->error = -ENOMEM;
            return NULL;
        }
        draft->accounts = more;
        draft->max_accounts = max;
    }
    draft->accounts[draft->nr_accounts] = (struct account){.stream = stream};
    return &draft->accounts[draft->nr_accounts++];
}

static void settle_account(struct painter *painter, uint32_t key, struct account *account)
{
    struct sketch *sketch = sketch_of_cpu(painter, account->stream);

    if (sketch && account->cycles > 0)
        offer_waiter(painter, sketch, account->column,
                     (struct timeline_waiter){key, account->cycles});
    account->cycles = 0;
}

static void note_longest(struct painter *painter, const struct state_wait_end *wait, bool is_open)
{
    struct timeline_wait *longest = &painter->timeline->longest;

    if (wait->to - wait->from > longest->to - longest->from)
        *longest =
            (struct timeline_wait){wait->vcpu->key, merge_cpu_of(painter->merge, wait->stream),
                                   wait->from, wait->to, is_open};
}

static void add_wait(struct painter *painter, const struct state_wait_end *wait, bool is_open)
{
    struct sketch *sketch = sketch_of_cpu(painter, wait->stream);
    struct draft *draft = draft_of(painter, wait->vcpu);
    uint64_t from = wait->from, to = wait->to;
    struct account *account;
    unsigned int last;

    if (!draft || !clip(painter, &from, &to))
        return;
    if (is_subject(painter, wait->vcpu->key, wait->stream)) {
        if (painter->timeline->by == TIMELINE_BY_VCPU ? draft->sketch != NULL : sketch != NULL)
            note_longest(painter, wait, is_open);
        if (sketch)
            sketch->has_subject = true;
    }
    account = sketch ? account_of(painter, draft, wait->stream) : NULL;
    if (!account)
        return;
    sketch->row.cycles[STATE_RUNNABLE] += to - from;
    last = column_of(painter, to - 1);
    for (unsigned int k = column_of(painter, from); k <= last; k++) {
        uint64_t begin = max_u64(from, column_begin(painter, k));

        if (account->column != k)
            settle_account(painter, wait->vcpu->key, account);
        account->column = k;
        account->cycles += min_u64(to, column_begin(painter, k + 1)) - begin;
    }
}

static void on_wait(void *context, const struct state_wait_end *wait)
{
    add_wait(context, wait, false);
}

/* --- Intervals. --- */

static void add_to_cpu(struct painter *painter, const struct state_interval *interval)
{
    struct sketch *sketch = sketch_of_cpu(painter, interval->stream);
    uint64_t from = interval->from, to = interval->to;

    if (!sketch || interval->runstate != STATE_RUNNING || !clip(painter, &from, &to))
        return;
    if (is_subject(painter, interval->vcpu->key, interval->stream))
        sketch->has_subject = true;
    cover(painter, sketch, STATE_RUNNING, interval->vcpu->key, from, to);
}

/* What a vCPU did after a loss is known from TO on. */
static void close_gap(struct painter *painter, struct sketch *sketch, uint64_t to)
{
    if (sketch->ends_in_loss && sketch->covered_to < to)
        cover(painter, sketch, TIMELINE_LOST, 0, sketch->covered_to, to);
}

static void add_to_vcpu(struct painter *painter, const struct state_interval *interval)
{
    struct sketch *sketch = sketch_of_vcpu(painter, interval->vcpu);
    uint64_t from = interval->from, to = interval->to;

    if (!sketch || from >= painter->timeline->until)
        return;
    close_gap(painter, sketch, since_begin(painter, from));
    if (clip(painter, &from, &to)) {
        if (interval->runstate == STATE_RUNNING &&
            is_subject(painter, interval->vcpu->key, interval->stream))
            sketch->has_subject = true;
        cover(painter, sketch, interval->runstate, 0, from, to);
    }
    sketch->covered_to = since_begin(painter, interval->to);
    sketch->ends_in_loss = interval->ends_in_loss;
}

static void add_interval(struct painter *painter, const struct state_interval *interval)
{
    if (painter->timeline->by == TIMELINE_BY_CPU)
        add_to_cpu(painter, interval);
    else
        add_to_vcpu(painter, interval);
}

static void on_interval(void *context, const struct state_interval *interval)
{
    add_interval(context, interval);
}

static void note_quiet(const struct painter *painter, const struct state_interval *interval)
{
    struct sketch *sketch = NULL;

    if (painter->timeline->by == TIMELINE_BY_CPU && interval->runstate == STATE_RUNNING &&
        interval->vcpu->key >> 16 == STATE_DOMAIN_IDLE)
        sketch = sketch_of_cpu(painter, interval->stream);
    if (sketch)
        sketch->row.quiet_since = interval->from;
}

/* What had not ended: it is drawn to the end. */
static void add_open_intervals(struct painter *painter)
{
    for (unsigned int i = 0; i < painter->state.nr_vcpus && painter->error == 0; i++) {
        struct state_vcpu *vcpu = painter->state.vcpus[i];
        const struct state_interval interval = {
            .vcpu = vcpu,
            .runstate = vcpu->runstate,
            .stream = vcpu->stream,
            .from = vcpu->since,
            .to = painter->timeline->until,
        };
        const struct state_wait_end wait = {
            .vcpu = vcpu,
            .stream = vcpu->shown_stream - 1,
            .from = vcpu->since,
            .to = painter->timeline->until,
        };

        if (vcpu->runstate == STATE_UNKNOWN)
            continue;
        add_interval(painter, &interval);
        note_quiet(painter, &interval);
        if (vcpu->runstate == STATE_RUNNABLE && vcpu->shown_stream > 0 &&
            vcpu->key >> 16 < STATE_DOMAIN_IDLE)
            add_wait(painter, &wait, true);
    }
}

/* --- Losses. --- */

static void begin_blind(struct painter *painter, const struct merge_record *record)
{
    struct sketch *sketch = sketch_of_cpu(painter, record->stream);

    if (record->tsc >= painter->timeline->from) {
        painter->timeline->lost += merge_word(record, 0);
        painter->timeline->gaps++;
    }
    if (!sketch || sketch->is_blind)
        return;
    sketch->is_blind = true;
    sketch->blind_from = record->tsc;
}

static void end_blind(struct painter *painter, uint32_t stream, uint64_t tsc)
{
    struct sketch *sketch = sketch_of_cpu(painter, stream);
    uint64_t from, to = tsc;

    if (!sketch || !sketch->is_blind)
        return;
    sketch->is_blind = false;
    from = sketch->blind_from;
    if (clip(painter, &from, &to))
        cover(painter, sketch, TIMELINE_LOST, 0, from, to);
}

/* --- The loop. --- */

static void note_new_cpus(struct painter *painter)
{
    painter->error = state_grow(&painter->state, merge_streams(painter->merge));
    while (painter->timeline->by == TIMELINE_BY_CPU && painter->error == 0 &&
           painter->nr_sketches < painter->state.nr_cpus)
        add_sketch(painter, sketch_new(painter, merge_cpu_of(painter->merge,
                                                             (unsigned int)painter->nr_sketches)));
}

static void paint(struct painter *painter)
{
    struct merge_record record;
    int item;

    note_new_cpus(painter);
    while (painter->error == 0 && (item = merge_next(painter->merge, &record)) != MERGE_END) {
        if (__builtin_expect(record.stream >= painter->state.nr_cpus, 0))
            note_new_cpus(painter);
        if (painter->error < 0 || record.tsc >= painter->timeline->until)
            break;
        if (__builtin_expect(item == MERGE_BLIND, 0)) {
            state_begin_blind(&painter->state, &record);
            begin_blind(painter, &record);
            continue;
        }
        if (__builtin_expect(record_is_lost(record.header), 0))
            end_blind(painter, record.stream, record.tsc);
        state_record(&painter->state, &record);
        if (__builtin_expect(painter->state.error < 0, 0))
            painter->error = painter->state.error;
    }
    if (painter->error == 0)
        painter->error = painter->merge->error;
}

/* What is open ends; the rest of each row is settled. */
static void finish(struct painter *painter)
{
    add_open_intervals(painter);
    for (unsigned int i = 0; i < painter->state.nr_vcpus; i++) {
        struct draft *draft = painter->state.vcpus[i]->observed;

        for (size_t j = 0; draft && j < draft->nr_accounts; j++)
            settle_account(painter, painter->state.vcpus[i]->key, &draft->accounts[j]);
    }
    for (size_t i = 0; i < painter->nr_sketches && painter->error == 0; i++) {
        struct sketch *sketch = painter->sketches[i];

        if (!sketch)
            continue;
        end_blind(painter, (uint32_t)i, painter->timeline->until);
        close_gap(painter, sketch, painter->span);
        while (sketch->column < painter->timeline->columns && painter->error == 0)
            settle_column(painter, sketch);
    }
}

static int compare_rows(const void *a, const void *b)
{
    const struct timeline_row *x = a, *y = b;

    return (x->id > y->id) - (x->id < y->id);
}

/* Whether it is known that it is what was asked for. */
static bool is_shown(const struct painter *painter, const struct sketch *sketch)
{
    const struct subjects *subjects = painter->options->subjects;

    if (painter->timeline->by == TIMELINE_BY_CPU)
        return !subjects_are_vcpus(subjects) || sketch->has_subject;
    return sketch->is_known && (!subjects || !subjects->of_cpus || sketch->has_subject);
}

/* The rows become the timeline's. */
static int hand_over(struct painter *painter)
{
    struct timeline *timeline = painter->timeline;

    timeline->rows = calloc(painter->nr_rows + 1, sizeof(*timeline->rows));
    if (!timeline->rows)
        return -ENOMEM;
    for (size_t i = 0; i < painter->nr_sketches; i++) {
        struct sketch *sketch = painter->sketches[i];

        if (!sketch || !is_shown(painter, sketch))
            continue;
        timeline->rows[timeline->nr_rows++] = sketch->row;
        sketch->row.cells = NULL;
        sketch->row.waiters = NULL;
    }
    qsort(timeline->rows, timeline->nr_rows, sizeof(*timeline->rows), compare_rows);
    return 0;
}

int timeline_new(struct merge *merge, const struct timeline_options *options,
                 struct timeline **ret_timeline)
{
    _cleanup_(timeline_freep) struct timeline *timeline = calloc(1, sizeof(*timeline));
    _cleanup_(painter_done) struct painter painter = {
        .timeline = timeline,
        .options = options,
        .merge = merge,
        .span = options->until - options->from,
    };
    const struct state_observer observer = {
        .context = &painter,
        .interval = on_interval,
        .wait = on_wait,
    };
    int r;

    if (!timeline)
        return -ENOMEM;
    timeline->from = options->from;
    timeline->until = options->until;
    timeline->by = options->by;
    timeline->columns = (unsigned int)min_u64(options->columns, painter.span);
    r = state_init(&painter.state, &observer);
    if (r < 0)
        return r;
    paint(&painter);
    if (painter.error == 0)
        finish(&painter);
    if (painter.error < 0)
        return painter.error;
    r = hand_over(&painter);
    if (r < 0)
        return r;
    *ret_timeline = TAKE_PTR(timeline);
    return 0;
}
