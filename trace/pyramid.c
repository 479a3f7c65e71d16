// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every interval is offered to every window, so most windows must be refused cheaply: small windows
 * mark the slots of the span that they touch, and intervals that touch none of these are only the
 * first window's.
 *
 * A column's vCPUs are counted until the next column begins, in a list with as many places as
 * matter for the first one: when it is full, the one that ran least makes room.
 */

#include "trace/pyramid.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"

#define SLOTS      4096u
#define SHARES_MAX 32u

struct share {
    uint32_t key;
    uint64_t cycles;
};

/* Who ran on a CPU in its newest column. */
struct shares {
    unsigned int column;
    unsigned int nr;
    struct share list[SHARES_MAX];
};

/* pyramid_window.work */
struct work {
    struct shares *shares; /* [CPU rows] */
    size_t *last;          /* [rows]: plus 1, the newest interval; 0: none */
    size_t max;            /* of intervals */
    size_t *last_seen;     /* [CPU rows]: plus 1, the newest entry of seen[]; 0: none */
    size_t max_seen;
};

struct builder {
    const struct pyramid_options *options;
    struct pyramid_window *windows;
    size_t nr_windows;
    struct merge *merge;
    struct state state;
    uint32_t marked[SLOTS + 1]; /* how many slots before this one a small window touches */
    uint64_t slot_width;
    int error;
};

/* --- Windows. --- */

static unsigned int columns_of(const struct pyramid_window *window)
{
    return (unsigned int)((window->until - window->from - 1) / window->width) + 1;
}

static int window_init(const struct pyramid_options *options, struct pyramid_window *window)
{
    struct work *work = calloc(1, sizeof(*work));

    window->work = work;
    if (!work)
        return -ENOMEM;
    if (window->columns == 0) {
        work->last = calloc(options->nr_keys + 1, sizeof(*work->last));
        work->last_seen = calloc(options->nr_cpus + 1, sizeof(*work->last_seen));
        return work->last && work->last_seen ? 0 : -ENOMEM;
    }
    window->width = (window->until - window->from - 1) / window->columns + 1;
    window->columns = columns_of(window);
    window->cpus = calloc(options->nr_cpus + 1, sizeof(struct pyramid_cpu *));
    window->vcpus = calloc(options->nr_keys + 1, sizeof(struct pyramid_vcpu *));
    work->shares = calloc(options->nr_cpus + 1, sizeof(*work->shares));
    return window->cpus && window->vcpus && work->shares ? 0 : -ENOMEM;
}

static void window_done(const struct pyramid_options *options, struct pyramid_window *window)
{
    struct work *work = window->work;

    for (size_t i = 0; window->cpus && i < options->nr_cpus; i++)
        free(window->cpus[i]);
    for (size_t i = 0; window->vcpus && i < options->nr_keys; i++)
        free(window->vcpus[i]);
    free(window->cpus);
    free(window->vcpus);
    free(window->intervals);
    free(window->seen);
    if (work) {
        free(work->last_seen);
        free(work->shares);
        free(work->last);
    }
    free(work);
    window->cpus = NULL;
    window->vcpus = NULL;
    window->intervals = NULL;
    window->seen = NULL;
    window->work = NULL;
}

/* A part of a window's time, in columns. */
struct overlap {
    uint64_t from, to;
    unsigned int first, last;
};

static bool find_overlap(const struct pyramid_window *window, uint64_t from, uint64_t to,
                         struct overlap *ret_overlap)
{
    struct overlap overlap = {max_u64(from, window->from), min_u64(to, window->until), 0, 0};

    if (overlap.from >= overlap.to)
        return false;
    overlap.first = (unsigned int)((overlap.from - window->from) / window->width);
    overlap.last = (unsigned int)((overlap.to - 1 - window->from) / window->width);
    *ret_overlap = overlap;
    return true;
}

/* How much of OVERLAP is in column K. */
static uint64_t cycles_in(const struct pyramid_window *window, const struct overlap *overlap,
                          unsigned int k)
{
    uint64_t begin = window->from + k * window->width;
    uint64_t end = begin + min_u64(window->width, window->until - begin);

    return min_u64(overlap->to, end) - max_u64(overlap->from, begin);
}

/* --- Columns of CPUs. --- */

/* Returns the row of the CPU of STREAM; `nr_cpus` or more: it has none. */
static uint32_t cpu_row(const struct builder *builder, uint32_t stream)
{
    return stream < builder->options->nr_streams ? builder->options->cpu_rows[stream]
                                                 : PYRAMID_NONE;
}

static void settle_shares(struct pyramid_cpu *cells, struct shares *shares)
{
    struct pyramid_cpu *cell = &cells[shares->column];

    for (unsigned int i = 0; i < shares->nr; i++) {
        if (shares->list[i].cycles <= cell->most)
            continue;
        cell->most_key = shares->list[i].key;
        cell->most = shares->list[i].cycles;
    }
    shares->nr = 0;
}

static void add_share(struct shares *shares, uint32_t key, uint64_t cycles)
{
    unsigned int least = 0;

    for (unsigned int i = 0; i < shares->nr; i++) {
        if (shares->list[i].key == key) {
            shares->list[i].cycles += cycles;
            return;
        }
        if (shares->list[i].cycles < shares->list[least].cycles)
            least = i;
    }
    if (shares->nr < SHARES_MAX)
        least = shares->nr++;
    else if (shares->list[least].cycles >= cycles)
        return;
    shares->list[least] = (struct share){key, cycles};
}

static struct pyramid_cpu *cpu_cells(struct builder *builder, struct pyramid_window *window,
                                     uint32_t row)
{
    if (!window->cpus[row]) {
        window->cpus[row] = calloc(window->columns, sizeof(**window->cpus));
        for (unsigned int k = 0; window->cpus[row] && k < window->columns; k++)
            window->cpus[row][k].most_key = PYRAMID_NONE;
    }
    if (!window->cpus[row])
        builder->error = -ENOMEM;
    return window->cpus[row];
}

static void add_to_cpu(struct builder *builder, struct pyramid_window *window,
                       const struct overlap *overlap, uint32_t row, uint32_t key)
{
    struct work *work = window->work;
    struct shares *shares = &work->shares[row];
    struct pyramid_cpu *cells = cpu_cells(builder, window, row);

    for (unsigned int k = overlap->first; cells && k <= overlap->last; k++) {
        uint64_t cycles = cycles_in(window, overlap, k);

        if (key >> 16 == STATE_DOMAIN_IDLE) {
            cells[k].idle += cycles;
            continue;
        }
        if (shares->column != k) {
            settle_shares(cells, shares);
            shares->column = k;
        }
        cells[k].busy += cycles;
        add_share(shares, key, cycles);
    }
}

/* --- Columns of vCPUs. --- */

static void add_to_vcpu(struct builder *builder, struct pyramid_window *window,
                        const struct overlap *overlap, const struct pyramid_interval *interval)
{
    struct pyramid_vcpu **cells = &window->vcpus[interval->row];

    if (!*cells)
        *cells = calloc(window->columns, sizeof(**cells));
    if (!*cells) {
        builder->error = -ENOMEM;
        return;
    }
    for (unsigned int k = overlap->first; k <= overlap->last; k++) {
        struct pyramid_vcpu *cell = &(*cells)[k];

        cell->cycles[interval->runstate] += cycles_in(window, overlap, k);
        if (interval->runstate == STATE_RUNNABLE)
            cell->longest_wait = max_u64(cell->longest_wait, interval->to - interval->from);
    }
}

/* --- Windows of intervals. --- */

/* CONTINUE_RUNNING divides runs. */
static bool continues(const struct pyramid_interval *before,
                      const struct pyramid_interval *interval)
{
    return before->runstate == STATE_RUNNING && interval->runstate == STATE_RUNNING &&
           before->to == interval->from && before->stream == interval->stream;
}

static void add_exactly(struct builder *builder, struct pyramid_window *window,
                        const struct pyramid_interval *interval)
{
    struct work *work = window->work;
    size_t last = work->last[interval->row];
    struct pyramid_interval *more;

    if (interval->to <= window->from || interval->from >= window->until)
        return;
    if (last > 0 && continues(&window->intervals[last - 1], interval)) {
        more = &window->intervals[last - 1];
        more->to = interval->to;
        more->ends_in_loss = interval->ends_in_loss;
        more->is_open = interval->is_open;
        return;
    }
    if (window->nr_intervals == work->max) {
        size_t max = work->max > 0 ? 2 * work->max : 256;

        more = reallocarray(window->intervals, max, sizeof(*more));
        if (!more) {
            builder->error = -ENOMEM;
            return;
        }
        window->intervals = more;
        work->max = max;
    }
    window->intervals[window->nr_intervals++] = *interval;
    work->last[interval->row] = window->nr_intervals;
    /* Those that are open now, one of each vCPU, end later, and are still added. */
    if (window->nr_intervals == window->max_intervals && interval->to < window->until)
        window->until = max_u64(interval->to, window->from + 1);
}

/* Somebody ran on a CPU. */
static void see(struct builder *builder, struct pyramid_window *window,
                const struct pyramid_interval *interval, uint32_t row)
{
    struct work *work = window->work;
    size_t *last = &work->last_seen[row];
    struct pyramid_seen *more;

    if (interval->to <= window->from || interval->from >= window->until)
        return;
    if (*last > 0 && interval->from <= window->seen[*last - 1].to + builder->options->gap) {
        window->seen[*last - 1].to = interval->to;
        return;
    }
    if (window->nr_seen == work->max_seen) {
        size_t max = work->max_seen > 0 ? 2 * work->max_seen : 64;

        more = reallocarray(window->seen, max, sizeof(*more));
        if (!more) {
            builder->error = -ENOMEM;
            return;
        }
        window->seen = more;
        work->max_seen = max;
    }
    window->seen[window->nr_seen++] = (struct pyramid_seen){row, interval->from, interval->to};
    *last = window->nr_seen;
}

/* --- Intervals of the trace. --- */

/* Whether a window but the first one may be concerned. */
static bool touches_small(const struct builder *builder, uint64_t from, uint64_t to)
{
    uint64_t begin = builder->options->from;
    uint64_t first = from > begin ? (from - begin) / builder->slot_width : 0;
    uint64_t last = to > begin ? (to - begin) / builder->slot_width : 0;

    return builder->marked[min_u64(last, SLOTS - 1) + 1] > builder->marked[min_u64(first, SLOTS)];
}

static void mark_slots(struct builder *builder)
{
    const struct pyramid_options *options = builder->options;

    builder->slot_width = (options->last - options->from) / SLOTS + 1;
    for (size_t i = 1; i < builder->nr_windows; i++) {
        uint64_t first = (max_u64(builder->windows[i].from, options->from) - options->from) /
                         builder->slot_width;
        uint64_t last = (builder->windows[i].until - options->from) / builder->slot_width;

        for (uint64_t k = first; k <= last && k < SLOTS; k++)
            builder->marked[k + 1] = 1;
    }
    for (unsigned int k = 0; k < SLOTS; k++)
        builder->marked[k + 1] += builder->marked[k];
}

/* Of those keys, the place where KEY is or would be. */
static size_t search_key(const struct pyramid_options *options, uint32_t key)
{
    size_t low = 0, high = options->nr_keys;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (options->keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* It is searched once for each vCPU: `observed` is the row, plus 1; without one, plus nr_keys. */
static uint32_t find_row(const struct builder *builder, struct state_vcpu *vcpu)
{
    const struct pyramid_options *options = builder->options;
    size_t row = (uintptr_t)vcpu->observed;

    if (row == 0) {
        row = search_key(options, vcpu->key);
        if (row < options->nr_keys && options->keys[row] != vcpu->key)
            row = options->nr_keys;
        row++;
        vcpu->observed = (void *)(uintptr_t)row;
    }
    return row > options->nr_keys ? PYRAMID_NONE : (uint32_t)(row - 1);
}

static void add_interval(struct builder *builder, uint32_t key,
                         const struct pyramid_interval *interval)
{
    uint32_t cpu =
        interval->runstate == STATE_RUNNING ? cpu_row(builder, interval->stream) : PYRAMID_NONE;
    bool has_cpu = cpu < builder->options->nr_cpus;
    size_t nr = touches_small(builder, interval->from, interval->to) ? builder->nr_windows : 1;

    for (size_t i = 0; i < nr && builder->error == 0; i++) {
        struct pyramid_window *window = &builder->windows[i];
        struct overlap overlap;

        if (window->columns == 0) {
            if (interval->row != PYRAMID_NONE)
                add_exactly(builder, window, interval);
            if (has_cpu)
                see(builder, window, interval, cpu);
            continue;
        }
        if (!find_overlap(window, interval->from, interval->to, &overlap))
            continue;
        if (has_cpu)
            add_to_cpu(builder, window, &overlap, cpu, key);
        if (interval->row != PYRAMID_NONE)
            add_to_vcpu(builder, window, &overlap, interval);
    }
}

static void on_interval(void *context, const struct state_interval *interval)
{
    struct builder *builder = context;
    const struct pyramid_interval more = {
        .from = interval->from,
        .to = interval->to,
        .row = find_row(builder, interval->vcpu),
        .stream = interval->stream,
        .changer = interval->changer,
        .runstate = (uint8_t)interval->runstate,
        .wait = (uint8_t)interval->wait,
        .ends_in_loss = interval->ends_in_loss,
    };

    if (interval->from < interval->to)
        add_interval(builder, interval->vcpu->key, &more);
}

static void on_wait(void *context, const struct state_wait_end *wait)
{
    struct builder *builder = context;
    size_t nr = touches_small(builder, wait->from, wait->to) ? builder->nr_windows : 1;
    uint32_t row = cpu_row(builder, wait->stream);

    for (size_t i = 0; i < nr && row < builder->options->nr_cpus; i++) {
        struct pyramid_window *window = &builder->windows[i];
        struct pyramid_cpu *cells;
        struct overlap overlap;

        if (window->columns == 0 || !find_overlap(window, wait->from, wait->to, &overlap))
            continue;
        cells = cpu_cells(builder, window, row);
        for (unsigned int k = overlap.first; cells && k <= overlap.last; k++)
            cells[k].longest_wait = max_u64(cells[k].longest_wait, wait->to - wait->from);
    }
}

/* Those that are not over are shown up to the end. */
static void add_open_intervals(struct builder *builder)
{
    for (unsigned int i = 0; i < builder->state.nr_vcpus; i++) {
        struct state_vcpu *vcpu = builder->state.vcpus[i];
        const struct pyramid_interval more = {
            .from = vcpu->since,
            .to = builder->options->last,
            .row = find_row(builder, vcpu),
            .stream = vcpu->stream,
            .changer = vcpu->changer,
            .runstate = (uint8_t)vcpu->runstate,
            .wait = (uint8_t)vcpu->wait,
            .is_open = true,
        };

        /* A CPU that is idle at the end may have gone offline. */
        if (vcpu->runstate < STATE_RUNSTATES && more.from < more.to &&
            (vcpu->key >> 16 != STATE_DOMAIN_IDLE || vcpu->runstate != STATE_RUNNING))
            add_interval(builder, vcpu->key, &more);
    }
}

static void settle_all(struct builder *builder)
{
    for (size_t i = 0; i < builder->nr_windows; i++) {
        struct pyramid_window *window = &builder->windows[i];
        struct work *work = window->work;

        for (unsigned int j = 0; window->columns > 0 && j < builder->options->nr_cpus; j++)
            if (window->cpus[j])
                settle_shares(window->cpus[j], &work->shares[j]);
    }
}

/* --- The pass. --- */

static void read_all(struct builder *builder)
{
    struct merge_record record;
    int item;

    while (builder->error == 0 && (item = merge_next(builder->merge, &record)) != MERGE_END) {
        if (__builtin_expect(record.stream >= builder->state.nr_cpus, 0))
            builder->error = state_grow(&builder->state, merge_streams(builder->merge));
        if (builder->error < 0)
            return;
        if (__builtin_expect(item == MERGE_BLIND, 0))
            state_begin_blind(&builder->state, &record);
        else if (state_wants(record_event(record.header)))
            state_record(&builder->state, &record);
        if (__builtin_expect(builder->state.error < 0, 0))
            builder->error = builder->state.error;
    }
    if (builder->error == 0)
        builder->error = builder->merge->error;
}

int pyramid_read(struct merge *merge, const struct pyramid_options *options,
                 struct pyramid_window *windows, size_t nr_windows)
{
    struct builder *builder = calloc(1, sizeof(*builder));
    struct state_observer observer = {.interval = on_interval, .wait = on_wait};
    int r;

    if (!builder)
        return -ENOMEM;
    builder->options = options;
    builder->windows = windows;
    builder->nr_windows = nr_windows;
    builder->merge = merge;
    observer.context = builder;
    builder->error = state_init(&builder->state, &observer);
    for (size_t i = 0; i < nr_windows && builder->error == 0; i++)
        builder->error = window_init(options, &windows[i]);
    mark_slots(builder);
    if (builder->error == 0)
        builder->error = state_grow(&builder->state, merge_streams(merge));
    if (builder->error == 0)
        read_all(builder);
    if (builder->error == 0) {
        add_open_intervals(builder);
        settle_all(builder);
    }
    r = builder->error;
    state_done(&builder->state);
    free(builder);
    return r;
}

void pyramid_done(const struct pyramid_options *options, struct pyramid_window *windows,
                  size_t nr_windows)
{
    for (size_t i = 0; i < nr_windows; i++)
        window_done(options, &windows[i]);
}
