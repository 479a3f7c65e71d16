// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A page has to be small whatever the trace is, so everything here is a share of a fixed number of
 * bytes: rows beyond ROWS_MAX are left out, columns become wider as there are more rows, and
 * windows of intervals become shorter as there are more of them.
 */

#include "ctl/page-timeline.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/util.h"
#include "ctl/doc.h"
#include "ctl/input.h"
#include "trace/measures.h"
#include "trace/pyramid.h"
#include "trace/sidecar.h"

#define ROWS_MAX        512u /* of vCPUs, and of CPUs */
#define PLACES_MAX      24u
#define WINDOWS_MAX     160u
#define COLUMNS_MAX     4096u
#define INTERVALS_MAX   150000u /* in all windows; about 7 bytes each */
#define EXACT_BYTES_MAX (1400u * 1024)
#define ALL_BYTES_MAX   (450u * 1024) /* of the first window */
#define STEP_BYTES_MAX  (450u * 1024) /* of those between it and the intervals */
#define STEP            24u           /* by which each of these is narrower than the one before */
#define STEPS_MAX       4u
#define STEP_COLUMNS    96u /* that these have at most, and at least: */
#define STEP_COLUMNS_OK 24u
#define SPAN_MAX        (UINT64_C(1) << 56) /* a year: a longer trace is damaged */
#define GAPS_MAX        4096u
#define SEEN_MAX        8192u /* in a window */
#define SWITCH_USEC     50u   /* a switch of vCPUs takes less */
#define CPU_BYTES       6u    /* of a column of a CPU, of a vCPU */
#define VCPU_BYTES      5u
#define NO_INDEX        0xffffu

struct gap {
    uint32_t cpu; /* its index in cpus[] */
    uint64_t from, to, count;
};

struct page_timeline {
    uint64_t from, last;
    uint32_t *keys; /* [nr_keys], ascending */
    size_t nr_keys, nr_vcpus;
    uint32_t *cpus;     /* [nr_cpus], ascending */
    uint32_t *index_of; /* [nr_streams]: in cpus[], or NO_INDEX */
    size_t nr_cpus, nr_cpus_all;
    unsigned int nr_streams;
    struct gap *gaps;
    size_t nr_gaps;
    bool gaps_are_merged;
    bool is_exact; /* the last window has all intervals */
    struct pyramid_window windows[WINDOWS_MAX];
    size_t nr_windows;
};

/* --- Rows. --- */

/* How much of it is to be seen: runs and waits. */
static uint64_t weight_of(const struct state_vcpu *vcpu)
{
    return vcpu->cycles[STATE_RUNNING] + 4 * vcpu->cycles[STATE_RUNNABLE];
}

static int compare_weights(const void *a, const void *b)
{
    const struct state_vcpu *const *x = a, *const *y = b;
    uint64_t of_x = weight_of(*x), of_y = weight_of(*y);

    if (of_x != of_y)
        return of_x < of_y ? 1 : -1;
    return ((*x)->key > (*y)->key) - ((*x)->key < (*y)->key);
}

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int choose_vcpus(struct page_timeline *timeline, const struct measures *measures)
{
    unsigned int nr = measures->state.nr_vcpus;
    struct state_vcpu **vcpus = calloc(nr + 1u, sizeof(struct state_vcpu *));

    timeline->keys = calloc(ROWS_MAX, sizeof(*timeline->keys));
    if (!vcpus || !timeline->keys) {
        free(vcpus);
        return -ENOMEM;
    }
    for (unsigned int i = 0; i < nr; i++) {
        struct state_vcpu *vcpu = measures->state.vcpus[i];

        if (vcpu->key >> 16 < STATE_DOMAIN_IDLE && measures_shows_vcpu(measures, vcpu))
            vcpus[timeline->nr_vcpus++] = vcpu;
    }
    qsort(vcpus, timeline->nr_vcpus, sizeof(struct state_vcpu *), compare_weights);
    while (timeline->nr_keys < timeline->nr_vcpus && timeline->nr_keys < ROWS_MAX) {
        timeline->keys[timeline->nr_keys] = vcpus[timeline->nr_keys]->key;
        timeline->nr_keys++;
    }
    qsort(timeline->keys, timeline->nr_keys, sizeof(*timeline->keys), compare_numbers);
    free(vcpus);
    return 0;
}

static uint32_t index_of_cpu(const struct page_timeline *timeline, uint32_t cpu)
{
    const uint32_t *found =
        bsearch(&cpu, timeline->cpus, timeline->nr_cpus, sizeof(*timeline->cpus), compare_numbers);

    return found ? (uint32_t)(found - timeline->cpus) : NO_INDEX;
}

static int choose_cpus(struct page_timeline *timeline, const struct measures *measures)
{
    unsigned int nr = merge_streams(measures->merge);

    timeline->nr_streams = nr;
    timeline->cpus = calloc(nr + 1u, sizeof(*timeline->cpus));
    timeline->index_of = calloc(nr + 1u, sizeof(*timeline->index_of));
    if (!timeline->cpus || !timeline->index_of)
        return -ENOMEM;
    for (unsigned int i = 0; i < nr; i++)
        if (measures_shows_cpu(measures, merge_cpu_of(measures->merge, i)))
            timeline->cpus[timeline->nr_cpus++] = merge_cpu_of(measures->merge, i);
    timeline->nr_cpus_all = timeline->nr_cpus;
    qsort(timeline->cpus, timeline->nr_cpus, sizeof(*timeline->cpus), compare_numbers);
    timeline->nr_cpus = min_u64(timeline->nr_cpus, ROWS_MAX);
    for (unsigned int i = 0; i < nr; i++)
        timeline->index_of[i] = index_of_cpu(timeline, merge_cpu_of(measures->merge, i));
    return 0;
}

/* --- Gaps. --- */

static int compare_gaps(const void *a, const void *b)
{
    const struct gap *x = a, *y = b;

    if (x->cpu != y->cpu)
        return x->cpu < y->cpu ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/* Neighbours become one, until there are few enough. */
static void merge_gaps(struct page_timeline *timeline)
{
    uint64_t near = (timeline->last - timeline->from) / (4 * COLUMNS_MAX) + 1;

    for (; timeline->nr_gaps > GAPS_MAX && near < timeline->last - timeline->from; near *= 4) {
        size_t nr = 0;

        timeline->gaps_are_merged = true;
        for (size_t i = 0; i < timeline->nr_gaps; i++) {
            struct gap *before = nr > 0 ? &timeline->gaps[nr - 1] : NULL;
            const struct gap *gap = &timeline->gaps[i];

            if (before && before->cpu == gap->cpu && gap->from <= before->to + near) {
                before->to = max_u64(before->to, gap->to);
                before->count += gap->count;
            } else {
                timeline->gaps[nr++] = *gap;
            }
        }
        timeline->nr_gaps = nr;
    }
    timeline->nr_gaps = min_u64(timeline->nr_gaps, GAPS_MAX);
}

static int choose_gaps(struct page_timeline *timeline, const struct measures *measures)
{
    timeline->gaps = calloc(measures->nr_losses + 1, sizeof(*timeline->gaps));
    if (!timeline->gaps)
        return -ENOMEM;
    for (size_t i = 0; i < measures->nr_losses; i++) {
        const struct measures_loss *loss = &measures->losses[i];
        uint32_t cpu = index_of_cpu(timeline, loss->cpu);

        if (cpu != NO_INDEX)
            timeline->gaps[timeline->nr_gaps++] = (struct gap){
                cpu, max_u64(loss->from_tsc, timeline->from), loss->to_tsc, loss->count};
    }
    qsort(timeline->gaps, timeline->nr_gaps, sizeof(*timeline->gaps), compare_gaps);
    merge_gaps(timeline);
    return 0;
}

/* --- Windows. --- */

static unsigned int columns_for(const struct page_timeline *timeline, size_t bytes)
{
    size_t each = timeline->nr_cpus * CPU_BYTES + timeline->nr_keys * VCPU_BYTES + 1;

    return (unsigned int)min_u64(max_u64(bytes / each, 1), COLUMNS_MAX);
}

static void add_window(struct page_timeline *timeline, uint64_t from, uint64_t until,
                       unsigned int columns, size_t max_intervals)
{
    if (timeline->nr_windows < WINDOWS_MAX)
        timeline->windows[timeline->nr_windows++] = (struct pyramid_window){
            .from = max_u64(from, timeline->from),
            .until = min_u64(until, max_u64(timeline->last + 1, timeline->last)),
            .columns = columns,
            .max_intervals = max_intervals,
        };
}

/* Where the intervals themselves are shown: about INTERVALS of them. */
static bool find_detail(const struct page_timeline *timeline, const struct page_place *place,
                        uint64_t width, uint64_t msec, struct pyramid_window *ret_window)
{
    uint64_t lead = min_u64(width / 4, max_u64(place->cycles / 2, 10 * msec));

    if (place->tsc < timeline->from || place->tsc > timeline->last)
        return false;
    ret_window->from = place->tsc > lead ? place->tsc - lead : 0;
    ret_window->until = ret_window->from + width;
    return true;
}

/* Whether the beginning of PLACE is in one of NR windows, and so is its end, if there is room. */
static bool is_covered(const struct pyramid_window *windows, size_t nr,
                       const struct page_place *place)
{
    for (size_t i = 0; i < nr; i++)
        if (place->tsc >= windows[i].from && place->tsc + place->cycles < windows[i].until)
            return true;
    return false;
}

/* Between the whole trace and the intervals, each window shows a part of the one above. */
static void add_steps(struct page_timeline *timeline, const struct pyramid_window *detail,
                      unsigned int columns, unsigned int steps)
{
    uint64_t middle = detail->from + (detail->until - detail->from) / 2;
    uint64_t width = detail->until - detail->from;

    for (unsigned int i = 0; i < steps; i++)
        width *= STEP;
    for (; steps > 0; steps--, width /= STEP) /* the widest first */
        add_window(timeline, middle > width / 2 ? middle - width / 2 : 0, middle + width / 2,
                   columns, 0);
}

static unsigned int count_steps(const struct page_timeline *timeline, uint64_t width,
                                unsigned int columns)
{
    uint64_t column =
        (timeline->windows[0].until - timeline->windows[0].from) / timeline->windows[0].columns;
    unsigned int nr = 0;

    for (; nr < STEPS_MAX && width * STEP / 4 < column * columns; width *= STEP)
        nr++;
    return nr;
}

static void plan_details(struct page_timeline *timeline, const struct measures *measures,
                         uint64_t msec, uint64_t intervals, const struct page_place *places,
                         size_t nr_places)
{
    size_t nr = min_u64(nr_places, PLACES_MAX), nr_details = 0;
    struct pyramid_window details[PLACES_MAX];
    uint64_t share = INTERVALS_MAX / max_u64(nr, 1), span = measures_span(measures);
    uint64_t width = (uint64_t)((unsigned __int128)span * share / max_u64(intervals, 1)) + 1;
    unsigned int steps, columns;

    for (size_t i = 0; i < nr; i++)
        if (!is_covered(details, nr_details, &places[i]) &&
            find_detail(timeline, &places[i], width, msec, &details[nr_details]))
            nr_details++;
    columns = STEP_COLUMNS;
    steps = count_steps(timeline, width, columns);
    if (steps * nr_details > 0)
        columns = (unsigned int)min_u64(
            columns, columns_for(timeline, STEP_BYTES_MAX / (steps * nr_details)));
    for (size_t i = 0; i < nr_details && columns >= STEP_COLUMNS_OK; i++)
        add_steps(timeline, &details[i], columns, steps);
    for (size_t i = nr_details; i-- > 0;) /* the most important last: it is drawn over others */
        add_window(timeline, details[i].from, details[i].until, 0, share);
}

static void plan_windows(struct page_timeline *timeline, const struct input *input,
                         const struct measures *measures, const struct page_place *places,
                         size_t nr_places)
{
    uint64_t intervals = 0;

    for (unsigned int i = 0; i < measures->state.nr_vcpus; i++)
        for (unsigned int j = 0; j < STATE_RUNSTATES; j++)
            if (measures->state.vcpus[i]->key >> 16 < STATE_DOMAIN_IDLE)
                intervals += measures->state.vcpus[i]->intervals[j];
    add_window(timeline, timeline->from, UINT64_MAX, columns_for(timeline, ALL_BYTES_MAX), 0);
    timeline->is_exact = intervals + measures->state.nr_vcpus <= INTERVALS_MAX;
    if (timeline->is_exact)
        add_window(timeline, timeline->from, UINT64_MAX, 0, SIZE_MAX);
    else if (timeline->last - timeline->from < SPAN_MAX)
        plan_details(timeline, measures, input_ticks(input, 1000), intervals, places, nr_places);
}

int page_timeline_new(const struct input *input, const struct measures *measures,
                      const struct page_place *places, size_t nr_places,
                      struct page_timeline **ret_timeline)
{
    struct page_timeline *timeline = calloc(1, sizeof(*timeline));
    int r;

    if (!timeline)
        return -ENOMEM;
    timeline->from = measures->first_tsc;
    timeline->last = measures->last_tsc;
    r = choose_vcpus(timeline, measures);
    if (r == 0)
        r = choose_cpus(timeline, measures);
    if (r == 0)
        r = choose_gaps(timeline, measures);
    if (r < 0) {
        page_timeline_free(timeline);
        return r;
    }
    plan_windows(timeline, input, measures, places, nr_places);
    *ret_timeline = timeline;
    return 0;
}

struct page_timeline *page_timeline_free(struct page_timeline *timeline)
{
    const struct pyramid_options options = {.nr_keys = timeline ? timeline->nr_keys : 0,
                                            .nr_cpus = timeline ? timeline->nr_cpus : 0};

    if (!timeline)
        return NULL;
    pyramid_done(&options, timeline->windows, timeline->nr_windows);
    free(timeline->keys);
    free(timeline->cpus);
    free(timeline->index_of);
    free(timeline->gaps);
    free(timeline);
    return NULL;
}

/* --- Bytes. --- */

/* Grows; without memory it is empty in the end. */
struct bytes {
    uint8_t *data;
    size_t nr, max;
    bool no_memory;
};

static void put_byte(struct bytes *bytes, uint8_t byte)
{
    if (bytes->nr == bytes->max && !bytes->no_memory) {
        size_t max = bytes->max > 0 ? 2 * bytes->max : 4096;
        uint8_t *more = realloc(bytes->data, max);

        if (more) {
            bytes->data = more;
            bytes->max = max;
        }
        bytes->no_memory = !more;
    }
    if (!bytes->no_memory)
        bytes->data[bytes->nr++] = byte;
}

static void put_short(struct bytes *bytes, uint32_t number)
{
    put_byte(bytes, (uint8_t)number);
    put_byte(bytes, (uint8_t)(number >> 8));
}

/* Seven bits a byte, the low ones first; the highest bit: there are more. */
static void put_number(struct bytes *bytes, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        put_byte(bytes, (uint8_t)(number | 0x80));
    put_byte(bytes, (uint8_t)number);
}

/* A part of a column, in 255ths; 0 only if it is nothing. */
static void put_part(struct bytes *bytes, uint64_t cycles, uint64_t width)
{
    uint64_t part = (uint64_t)((unsigned __int128)min_u64(cycles, width) * 255 / width);

    put_byte(bytes, (uint8_t)(part == 0 && cycles > 0 ? 1 : part));
}

/* A length of time: 1 + 4 log2(microseconds) in steps of an octave's eighth; 0: none. */
static void put_length(struct bytes *bytes, uint64_t nsec)
{
    unsigned int zeroes, code;

    if (nsec == 0) {
        put_byte(bytes, 0);
        return;
    }
    zeroes = (unsigned int)__builtin_clzll(nsec);
    code = (63 - zeroes) * 4 + (unsigned int)(nsec << zeroes >> 61 & 3);
    put_byte(bytes, (uint8_t)min_u64(code + 1, 255));
}

/* As base64 (RFC 4648). Frees BYTES. */
static void add_bytes(struct json_object *doc, const char *key, struct bytes *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = malloc((bytes->nr + 2) / 3 * 4 + 1), *out = text;

    for (size_t i = 0; text && i < bytes->nr; i += 3) {
        size_t left = bytes->nr - i;
        uint32_t word = (uint32_t)bytes->data[i] << 16;

        word |= left > 1 ? (uint32_t)bytes->data[i + 1] << 8 : 0;
        word |= left > 2 ? bytes->data[i + 2] : 0;
        *out++ = digits[word >> 18];
        *out++ = digits[word >> 12 & 63];
        *out++ = left > 1 ? digits[word >> 6 & 63] : '=';
        *out++ = left > 2 ? digits[word & 63] : '=';
    }
    if (text) {
        *out = '\0';
        doc_add_text(doc, key, bytes->no_memory ? "" : text);
    }
    free(text);
    free(bytes->data);
    *bytes = (struct bytes){0};
}

/* --- The document. --- */

static uint32_t index_of_key(const struct page_timeline *timeline, uint32_t key)
{
    const uint32_t *found =
        bsearch(&key, timeline->keys, timeline->nr_keys, sizeof(*timeline->keys), compare_numbers);

    return found ? (uint32_t)(found - timeline->keys) : NO_INDEX;
}

static void put_cpu(struct bytes *bytes, const struct page_timeline *timeline,
                    const struct input *input, const struct pyramid_cpu *cell, uint64_t width)
{
    static const struct pyramid_cpu none = {.most_key = PYRAMID_NONE};

    if (!cell)
        cell = &none;
    put_short(bytes, index_of_key(timeline, cell->most_key));
    put_part(bytes, cell->most, width);
    put_part(bytes, cell->busy, width);
    put_part(bytes, cell->idle, width);
    put_length(bytes, input_nsec(input, cell->longest_wait));
}

static void put_vcpu(struct bytes *bytes, const struct input *input,
                     const struct pyramid_vcpu *cell, uint64_t width)
{
    static const struct pyramid_vcpu none = {0};

    if (!cell)
        cell = &none;
    for (unsigned int i = 0; i < STATE_RUNSTATES; i++)
        put_part(bytes, cell->cycles[i], width);
    put_length(bytes, input_nsec(input, cell->longest_wait));
}

/* The last column may be narrower. */
static uint64_t width_of(const struct pyramid_window *window, unsigned int k)
{
    return min_u64(window->width, window->until - window->from - k * window->width);
}

static void add_columns(struct json_object *doc, const struct page_timeline *timeline,
                        const struct input *input, const struct pyramid_window *window)
{
    struct bytes bytes = {0};

    doc_add_number(doc, "columns", window->columns);
    doc_add_number(doc, "width", window->width);
    for (size_t i = 0; i < timeline->nr_cpus; i++) {
        const struct pyramid_cpu *cells = window->cpus[i];

        for (unsigned int k = 0; k < window->columns; k++)
            put_cpu(&bytes, timeline, input, cells ? &cells[k] : NULL, width_of(window, k));
    }
    add_bytes(doc, "cpus", &bytes);
    for (size_t i = 0; i < timeline->nr_keys; i++)
        for (unsigned int k = 0; k < window->columns; k++)
            put_vcpu(&bytes, input, window->vcpus[i] ? &window->vcpus[i][k] : NULL,
                     width_of(window, k));
    add_bytes(doc, "vcpus", &bytes);
}

static int compare_intervals(const void *a, const void *b)
{
    const struct pyramid_interval *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->from > y->from) - (x->from < y->from);
}

/*
 * An interval: a byte of its runstate, its wait and three flags; the time since the one before, if
 * there is any; its length; the CPU that it ran on, or that ended its sleep. docs/page.md.
 */
static void put_interval(struct bytes *bytes, const struct page_timeline *timeline,
                         const struct pyramid_interval *interval, uint64_t end)
{
    bool follows = interval->from == end, is_running = interval->runstate == STATE_RUNNING;
    uint32_t stream = is_running ? interval->stream : interval->changer;

    put_byte(bytes, (uint8_t)(interval->runstate | interval->wait << 2 | follows << 4 |
                              interval->ends_in_loss << 5 | interval->is_open << 6));
    if (!follows)
        put_number(bytes, interval->from - end);
    put_number(bytes, interval->to - interval->from);
    put_number(bytes, stream < timeline->nr_streams ? timeline->index_of[stream] : NO_INDEX);
}

/* When CPUs are seen: otherwise nobody knows whether they are idle. */
static void add_seen(struct json_object *doc, const struct page_timeline *timeline,
                     const struct pyramid_window *window)
{
    struct json_object *list = doc_add_array(doc, "seen");

    for (size_t i = 0; i < window->nr_seen && i < SEEN_MAX; i++) {
        struct json_object *entry = json_object_new_array();

        doc_append_number(entry, window->seen[i].cpu);
        doc_append_number(entry, window->seen[i].from - timeline->from);
        doc_append_number(entry, window->seen[i].to - timeline->from);
        (void)json_object_array_add(list, entry);
    }
}

/* With `counts`: how many intervals each row has. */
static void add_intervals(struct json_object *doc, const struct page_timeline *timeline,
                          struct pyramid_window *window)
{
    struct json_object *counts = doc_add_array(doc, "counts");
    struct bytes bytes = {0};
    size_t i = 0;

    if (window->intervals)
        qsort(window->intervals, window->nr_intervals, sizeof(*window->intervals),
              compare_intervals);
    for (uint32_t row = 0; row < timeline->nr_keys; row++) {
        uint64_t end = timeline->from;
        size_t first = i;

        for (; i < window->nr_intervals && window->intervals[i].row == row; i++) {
            put_interval(&bytes, timeline, &window->intervals[i], end);
            end = window->intervals[i].to;
        }
        doc_append_number(counts, i - first);
    }
    add_bytes(doc, "intervals", &bytes);
    add_seen(doc, timeline, window);
}

static struct json_object *window_doc(const struct page_timeline *timeline,
                                      const struct input *input, struct pyramid_window *window)
{
    struct json_object *doc = json_object_new_object();

    doc_add_number(doc, "from", window->from - timeline->from);
    doc_add_number(doc, "until", window->until - timeline->from);
    if (window->columns > 0)
        add_columns(doc, timeline, input, window);
    else
        add_intervals(doc, timeline, window);
    return doc;
}

static size_t bytes_of(struct json_object *doc)
{
    return strlen(doc_text(doc, "intervals", "")) / 4 * 3;
}

/* In the order in which they are drawn. The last windows matter most, and are made first. */
static void add_windows(struct json_object *doc, struct page_timeline *timeline,
                        const struct input *input)
{
    struct json_object *docs[WINDOWS_MAX] = {0}, *list = doc_add_array(doc, "windows");
    size_t left = EXACT_BYTES_MAX;

    for (size_t i = timeline->nr_windows; i-- > 0;) {
        size_t bytes;

        if (i == 0 && timeline->is_exact && docs[1])
            break;
        docs[i] = window_doc(timeline, input, &timeline->windows[i]);
        bytes = bytes_of(docs[i]);
        if (bytes > left)
            docs[i] = doc_free(docs[i]); /* of a trace that was made to be large */
        else
            left -= bytes;
    }
    for (size_t i = 0; i < timeline->nr_windows; i++)
        if (docs[i] && json_object_array_add(list, docs[i]) < 0)
            (void)doc_free(docs[i]);
}

static void add_rows(struct json_object *doc, const struct page_timeline *timeline)
{
    struct json_object *cpus = doc_add_array(doc, "cpus"), *vcpus = doc_add_array(doc, "vcpus");

    for (size_t i = 0; i < timeline->nr_cpus; i++)
        doc_append_number(cpus, timeline->cpus[i]);
    for (size_t i = 0; i < timeline->nr_keys; i++) {
        struct json_object *pair = json_object_new_array();

        doc_append_number(pair, timeline->keys[i] >> 16);
        doc_append_number(pair, timeline->keys[i] & 0xffff);
        (void)json_object_array_add(vcpus, pair);
    }
    doc_add_number(doc, "cpus_omitted", timeline->nr_cpus_all - timeline->nr_cpus);
    doc_add_number(doc, "vcpus_omitted", timeline->nr_vcpus - timeline->nr_keys);
}

static void add_gaps(struct json_object *doc, const struct page_timeline *timeline)
{
    struct json_object *list = doc_add_array(doc, "gaps");

    for (size_t i = 0; i < timeline->nr_gaps; i++) {
        struct json_object *entry = json_object_new_array();

        doc_append_number(entry, timeline->gaps[i].cpu);
        doc_append_number(entry, timeline->gaps[i].from - timeline->from);
        doc_append_number(entry, timeline->gaps[i].to - timeline->from);
        doc_append_number(entry, timeline->gaps[i].count);
        (void)json_object_array_add(list, entry);
    }
    doc_add_flag(doc, "gaps_are_merged", timeline->gaps_are_merged);
}

int page_timeline_read(struct page_timeline *timeline, struct input *input, struct json_object *doc,
                       char **ret_error)
{
    const struct pyramid_options options = {
        .from = timeline->from,
        .last = timeline->last,
        .keys = timeline->keys,
        .nr_keys = timeline->nr_keys,
        .gap = input_ticks(input, SWITCH_USEC),
        .nr_streams = timeline->nr_streams,
        .cpu_rows = timeline->index_of,
        .nr_cpus = timeline->nr_cpus,
    };
    struct json_object *object;
    int r;

    r = input_begin(input, input->part, ret_error);
    if (r < 0)
        return r;
    r = pyramid_read(&input->merge, &options, timeline->windows, timeline->nr_windows);
    if (r < 0)
        return r;
    object = doc_add_object(doc, "timeline");
    doc_add_number(object, "span", timeline->last - timeline->from);
    add_rows(object, timeline);
    add_gaps(object, timeline);
    add_windows(object, timeline, input);
    return 0;
}
