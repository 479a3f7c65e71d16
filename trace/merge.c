// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A binary heap of the CPUs' streams, by the time of their next items. A CPU makes several records
 * before it is another one's turn, so that the heap is left alone as long as the stream at its top
 * stays before the next one.
 *
 * How far may be emitted before more is read (the horizon): rounds are in the order of time, and
 * in a round each CPU is drained at its turn. So a CPU's records that come after round r are newer
 * than its turn in r, and that is after all of round r - 1. But a loss that such a record reports
 * may have begun before that turn, when the buffer was full; not before its turn in r - 1, which is
 * after all of r - 2. Of that round the beginnings of the windows are looked at, which are cheap to
 * find.
 *
 * A CPU that makes no record after a loss reports it later, in whichever round it makes one. So of
 * a file, more windows are read at the end of a part, until each CPU has one that begins after it.
 */

#include "trace/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cpu-set.h"
#include "common/util.h"

/* Windows that are read ahead of what is not a stream: all of them, in ordinary traces. */
#define WINDOWS_AHEAD ((size_t)1 << 20)
/* After that, and for a stream, this many at a time. */
#define WINDOWS_PART 4096u

/* And at most this many after the end of a part. */
#define WINDOWS_AFTER 4096u

/* Bisection ends at SEEK_NEAR_BYTES; the position then goes back by the other two. */
#define SEEK_NEAR_BYTES  (UINT64_C(256) << 10)
#define SEEK_BACK_BYTES  (UINT64_C(1) << 20)
#define SEEK_BACK_ROUNDS 4u

/* Windows of a CPU that are kept though none has a time. */
#define TIMELESS_MAX 64u

/* --- Windows. --- */

/*
 * The TSC of the first record of WINDOW that has one, or the newest of them all; 0: none has. One
 * that cannot be read has none: source_next() returns the error.
 */
static uint64_t find_tsc(struct source *source, const struct source_window *window, bool newest)
{
    uint32_t at = 0;
    uint64_t found = 0;

    while (at < window->bytes) {
        uint32_t bytes;
        const uint8_t *begin = source_look(source, window, at, &bytes), *p = begin;

        for (const uint8_t *end = p + bytes; p && merge_has_record(p, end);) {
            uint32_t header;

            memcpy(&header, p, sizeof(header));
            if (record_has_tsc(header) && !record_is_wrap(header)) {
                found = max_u64(found, record_tsc(p));
                if (!newest)
                    return found;
            }
            p += record_bytes(header);
        }
        if (p == begin)
            break;
        at += (uint32_t)(p - begin);
    }
    return found;
}

static uint64_t tsc_of_first(struct source *source, const struct source_window *window)
{
    return find_tsc(source, window, false);
}

/* How many of its windows have been given back: all before that of the record at p. */
static size_t stream_used_windows(const struct merge_stream *stream)
{
    return stream->first - (stream->end != NULL);
}

static int stream_add_window(struct merge_stream *stream, const struct source_window *window)
{
    size_t max, used = stream_used_windows(stream);
    struct source_window *more;

    if (stream->nr_windows == stream->max_windows && used > stream->max_windows / 2) {
        stream->nr_windows -= used;
        stream->first -= used;
        memmove(stream->windows, stream->windows + used, stream->nr_windows * sizeof(*more));
    }
    if (stream->nr_windows == stream->max_windows) {
        max = stream->max_windows ? stream->max_windows * 2 : 8;
        more = reallocarray(stream->windows, max, sizeof(*more));
        if (!more)
            return -ENOMEM;
        stream->windows = more;
        stream->max_windows = max;
    }
    stream->windows[stream->nr_windows++] = *window;
    return 0;
}

static int merge_add_stream(struct merge *merge, uint32_t cpu, struct merge_stream **ret_stream)
{
    struct merge_stream *stream;

    if (merge->nr_streams == merge->max_streams) {
        unsigned int max = merge->max_streams ? merge->max_streams * 2 : 16;
        struct merge_stream **more;

        more = reallocarray(merge->streams, max, sizeof(*more));
        if (!more)
            return -ENOMEM;
        merge->streams = more;
        more = reallocarray(merge->heap, max, sizeof(*more));
        if (!more)
            return -ENOMEM;
        merge->heap = more;
        merge->max_streams = max;
    }
    stream = calloc(1, sizeof(*stream));
    if (!stream)
        return -ENOMEM;
    stream->cpu = cpu;
    stream->number = merge->nr_streams;
    merge->streams[merge->nr_streams++] = stream;
    merge->number_of[cpu] = (uint16_t)merge->nr_streams;
    *ret_stream = stream;
    return 0;
}

static int merge_add_window(struct merge *merge, const struct source_window *window)
{
    struct merge_stream *stream;
    int r;

    if (merge->number_of[window->cpu] > 0) {
        stream = merge->streams[merge->number_of[window->cpu] - 1];
    } else {
        r = merge_add_stream(merge, window->cpu, &stream);
        if (r < 0)
            return r;
    }
    r = stream_add_window(stream, window);
    if (r < 0)
        return r;
    return 0;
}

/* --- Items. --- */

/* Reading has failed: there are no more items. */
static void merge_fail(struct merge *merge, int error)
{
    if (merge->error == 0)
        merge->error = error;
    merge->horizon = UINT64_MAX;
    merge->limit = 0;
}

/* Gives back the stream's window. */
static void stream_release_window(struct merge *merge, struct merge_stream *stream)
{
    source_release_piece(merge->source, &stream->piece);
    source_release(merge->source, &stream->windows[stream->first - 1]);
    stream->p = stream->end = NULL;
    stream->left = 0;
}

/* Takes the piece of the stream's window from its byte SKIP on. */
static bool stream_take_piece(struct merge *merge, struct merge_stream *stream, uint32_t skip)
{
    const struct source_window *window = &stream->windows[stream->first - 1];
    int r;

    source_release_piece(merge->source, &stream->piece);
    r = source_take(merge->source, window, skip, &stream->piece);
    if (r < 0) {
        stream_release_window(merge, stream);
        merge_fail(merge, r);
        return false;
    }
    stream->p = stream->piece.p;
    stream->end = stream->p + stream->piece.bytes;
    stream->left = window->bytes - skip - stream->piece.bytes;
    return true;
}

/* Takes the stream's next window. The one before it is given back. */
static bool stream_take_window(struct merge *merge, struct merge_stream *stream)
{
    if (stream->end)
        stream_release_window(merge, stream);
    if (stream->first == stream->nr_windows)
        return false;
    stream->first++;
    if (!stream_take_piece(merge, stream, 0))
        return false;
    merge->taken_bytes += WINDOW_HEADER_BYTES + stream->windows[stream->first - 1].bytes;
    if (__builtin_expect(merge->on_bytes && merge->taken_bytes >= merge->report_at, 0)) {
        merge->report_at = merge->taken_bytes + MERGE_REPORT_BYTES;
        merge->on_bytes(merge->on_bytes_context, merge->taken_bytes);
    }
    return true;
}

/* Makes the rest of the window, or a whole record, stand at p. */
static bool stream_fill(struct merge *merge, struct merge_stream *stream)
{
    uint32_t here = (uint32_t)(stream->end - stream->p);

    if (stream->left == 0 || here >= RECORD_MAX_BYTES)
        return true;
    return stream_take_piece(merge, stream,
                             stream->windows[stream->first - 1].bytes - stream->left - here);
}

/* A stream whose first records have no time waits for one that has, if more is to come. */
static bool stream_may_begin(const struct merge *merge, const struct merge_stream *stream)
{
    if (stream->has_begun || merge->horizon == UINT64_MAX || stream->nr_windows >= TIMELESS_MAX)
        return true;
    for (size_t i = stream->first; i < stream->nr_windows; i++)
        if (tsc_of_first(merge->source, &stream->windows[i]) > 0)
            return true;
    return false;
}

/* The time of a stream that begins without one: that of the first record that has one. */
static void stream_begin(const struct merge *merge, struct merge_stream *stream)
{
    stream->has_begun = true;
    stream->now = merge->emitted;
    for (size_t i = stream->first - 1; i < stream->nr_windows; i++) {
        uint64_t tsc = tsc_of_first(merge->source, &stream->windows[i]);

        if (tsc == 0)
            continue;
        stream->now = max_u64(stream->now, tsc);
        return;
    }
}

/* The loss begins when its first record was lost, in between the record before and its own. */
static void stream_find_loss(struct merge_stream *stream)
{
    struct lost_record lost;
    uint64_t first, until;

    memcpy(&lost, stream->p, sizeof(lost));
    first = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
    until = max_u64(stream->now, record_tsc(stream->p));
    if (!stream->has_item) /* there is no record before */
        stream->now = min_u64(first, stream->now);
    stream->is_blind = true;
    stream->blind_until = until;
    stream->now = min_u64(max_u64(stream->now, first), until);
}

void merge_find_item(struct merge *merge, struct merge_stream *stream)
{
    for (;;) {
        ptrdiff_t left;

        if (!stream_fill(merge, stream))
            return;
        left = stream->end - stream->p;
        if (left == 0) {
            if (!stream_take_window(merge, stream))
                return;
            continue;
        }
        if (!stream->has_begun)
            stream_begin(merge, stream);
        if (left >= (ptrdiff_t)RECORD_MIN_BYTES) {
            memcpy(&stream->header, stream->p, sizeof(stream->header));
            stream->bytes = record_bytes(stream->header);
        }
        if (left < (ptrdiff_t)RECORD_MIN_BYTES || (ptrdiff_t)stream->bytes > left) {
            merge->bad_windows++;
            stream->p = stream->end;
            stream->left = 0;
            continue;
        }
        if (!record_is_wrap(stream->header))
            break;
        merge->wraps++;
        stream->p += stream->bytes;
    }
    if (record_is_lost(stream->header))
        stream_find_loss(stream);
    else if (record_has_tsc(stream->header))
        stream->now = max_u64(stream->now, record_tsc(stream->p));
    stream->has_item = true;
}

void merge_leave_record(struct merge *merge, struct merge_record *record)
{
    memcpy(merge->kept_words, record->words, (size_t)4 * merge_words(record));
    record->words = (const uint8_t *)merge->kept_words;
    merge_find_item(merge, merge->heap[0]);
}

int merge_next_blind(struct merge *merge, struct merge_record *ret_record)
{
    struct merge_stream *stream = merge->heap[0];

    *ret_record = (struct merge_record){
        .tsc = stream->now,
        .header = stream->header,
        .cpu = stream->cpu,
        .stream = stream->number,
        .words = stream->p + RECORD_MIN_BYTES + 8,
    };
    stream->is_blind = false;
    stream->now = stream->blind_until;
    if (merge->bound && merge_is_before(merge->bound, stream))
        merge_reorder(merge);
    return MERGE_BLIND;
}

/* --- The heap. --- */

static void heap_find_bound(struct merge *merge)
{
    struct merge_stream **heap = merge->heap;

    merge->bound = merge->nr_heap > 1 ? heap[1] : NULL;
    if (merge->nr_heap > 2 && merge_is_before(heap[2], heap[1]))
        merge->bound = heap[2];
}

static void heap_sink(struct merge *merge, unsigned int at)
{
    struct merge_stream **heap = merge->heap, *stream = heap[at];

    for (;;) {
        unsigned int child = 2 * at + 1;

        if (child >= merge->nr_heap)
            break;
        if (child + 1 < merge->nr_heap && merge_is_before(heap[child + 1], heap[child]))
            child++;
        if (!merge_is_before(heap[child], stream))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = stream;
}

static void heap_add(struct merge *merge, struct merge_stream *stream)
{
    unsigned int at = merge->nr_heap++;

    while (at > 0 && merge_is_before(stream, merge->heap[(at - 1) / 2])) {
        merge->heap[at] = merge->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    merge->heap[at] = stream;
}

void merge_reorder(struct merge *merge)
{
    if (!merge->heap[0]->p) {
        merge->emitted = max_u64(merge->emitted, merge->heap[0]->now);
        merge->heap[0] = merge->heap[--merge->nr_heap];
    }
    if (merge->nr_heap > 0)
        heap_sink(merge, 0);
    heap_find_bound(merge);
}

/* --- Reading. --- */

/* Streams without an item may have one now. */
static void merge_queue_streams(struct merge *merge)
{
    for (unsigned int i = 0; i < merge->nr_streams; i++) {
        struct merge_stream *stream = merge->streams[i];

        if (stream->p || stream->first == stream->nr_windows || !stream_may_begin(merge, stream))
            continue;
        merge_find_item(merge, stream);
        if (!stream->p)
            continue;
        if (stream->now < merge->emitted && merge->horizon > 0) {
            merge->late++;
            stream->now = merge->emitted;
            stream->blind_until = max_u64(stream->blind_until, stream->now);
        }
        heap_add(merge, stream);
    }
    heap_find_bound(merge);
}

static void merge_set_horizon(struct merge *merge, uint64_t horizon)
{
    merge->horizon = horizon;
    merge->limit = min_u64(horizon, merge->part.until - 1);
}

/* A window with a CPU that is not above the last one's begins another round. */
static void merge_note_round(struct merge *merge, uint32_t cpu, uint64_t tsc)
{
    if (cpu <= merge->last_cpu) {
        merge_set_horizon(merge, merge->rounds_tsc[2]);
        merge->rounds_tsc[2] = merge->rounds_tsc[1];
        merge->rounds_tsc[1] = merge->rounds_tsc[0];
    }
    merge->last_cpu = cpu;
    merge->rounds_tsc[0] = max_u64(merge->rounds_tsc[0], tsc);
}

/* A CPU of which there is no window that begins after the part may have a loss in it to report. */
static void merge_note_end(struct merge *merge, uint32_t cpu, uint64_t tsc)
{
    struct merge_stream *stream = merge->streams[merge->number_of[cpu] - 1];

    if (merge->horizon >= merge->part.until)
        merge->nr_after++;
    if (stream->has_ended || tsc < merge->part.until)
        return;
    stream->has_ended = true;
    merge->nr_ended++;
}

/* Whether windows that are not read yet may have something of the part. */
static bool merge_wants_more(const struct merge *merge)
{
    if (merge->horizon < merge->part.until)
        return true;
    return !source_is_stream(merge->source) && merge->nr_ended < merge->nr_streams &&
           merge->nr_after < WINDOWS_AFTER;
}

/* Reads MANY windows. Returns whether there may be more. */
static bool merge_read(struct merge *merge, size_t many)
{
    struct source_window window;
    uint64_t tsc;
    int r;

    for (size_t i = 0; i < many; i++) {
        r = merge_wants_more(merge) ? source_next(merge->source, &window) : 0;
        if (r > 0)
            r = merge_add_window(merge, &window) < 0 ? -ENOMEM : 1;
        if (r < 0)
            merge_fail(merge, r);
        else if (r == 0)
            merge_set_horizon(merge, UINT64_MAX);
        if (r <= 0)
            return false;
        tsc = tsc_of_first(merge->source, &window);
        merge_note_round(merge, window.cpu, tsc);
        merge_note_end(merge, window.cpu, tsc);
    }
    return true;
}

bool merge_refill(struct merge *merge)
{
    bool more = merge->horizon < UINT64_MAX;

    if (merge->nr_heap > 0)
        merge->emitted = max_u64(merge->emitted, merge->limit);
    while (more && (merge->nr_heap == 0 || merge->heap[0]->now > merge->limit)) {
        more = merge_read(merge, source_keeps_windows(merge->source) ? WINDOWS_PART : 1);
        merge_queue_streams(merge);
    }
    if (merge->nr_heap > 0 && merge->heap[0]->now <= merge->limit && merge->error >= 0)
        return true;
    if (merge->on_bytes)
        merge->on_bytes(merge->on_bytes_context, UINT64_MAX);
    return false;
}

/* --- A part. --- */

/* The TSC of the first window at OFFSET or after it that has one, and where it begins; 0: none. */
static uint64_t tsc_at(struct source *source, uint64_t offset, uint64_t *ret_offset)
{
    struct source_window window;
    uint64_t tsc = 0;

    if (!source_seek(source, offset))
        return 0;
    *ret_offset = source_offset(source);
    while (tsc == 0 && source_next(source, &window) > 0) {
        tsc = tsc_of_first(source, &window);
        source_release(source, &window);
    }
    return tsc;
}

/* How many rounds begin from OFFSET on and before UNTIL. */
static unsigned int count_rounds(struct source *source, uint64_t offset, uint64_t until)
{
    struct source_window window;
    unsigned int rounds = 0;
    uint32_t last = UINT32_MAX;

    if (!source_seek(source, offset))
        return 0;
    while (source_offset(source) < until && source_next(source, &window) > 0) {
        rounds += window.cpu <= last && last != UINT32_MAX;
        last = window.cpu;
        source_release(source, &window);
    }
    return rounds;
}

/*
 * Seeks to where the part may begin. A window that begins before it is found by bisection, since
 * rounds are in the order of time; some of the rounds before that may still have newer records.
 */
static void merge_seek(struct merge *merge)
{
    uint64_t begin = source_offset(merge->source), low = begin, back = SEEK_BACK_BYTES;
    uint64_t high = source_bytes(merge->source), from;

    while (high - low > SEEK_NEAR_BYTES) {
        uint64_t middle = low + (high - low) / 2, at = high;
        uint64_t tsc = tsc_at(merge->source, middle, &at);

        if (tsc == 0 || at >= high || tsc >= merge->part.from)
            high = middle;
        else
            low = at;
    }
    do {
        from = low - begin > back ? low - back : begin;
        back *= 2;
    } while (from > begin && count_rounds(merge->source, from, low) < SEEK_BACK_ROUNDS);
    (void)source_seek(merge->source, from);
}

/* Passes over what comes before the part. Of a loss that is not over then, it is the beginning. */
static void merge_skip(struct merge *merge)
{
    uint64_t from = merge->part.from;
    struct merge_record record;

    while ((merge->nr_heap > 0 && merge->heap[0]->now <= merge->limit) || merge_refill(merge)) {
        struct merge_stream *stream = merge->heap[0];

        if (stream->now >= from)
            break;
        if (!stream->is_blind || stream->blind_until < from) {
            (void)merge_next(merge, &record);
            continue;
        }
        stream->now = from;
        merge_reorder(merge);
    }
    merge->wraps = 0;
}

/* The same of a CPU's first window: a loss may have begun before the record that reports it. */
static uint64_t time_of_first(struct source *source, const struct source_window *window)
{
    uint64_t tsc = tsc_of_first(source, window);
    struct lost_record lost;
    const uint8_t *p;
    uint32_t bytes;

    if (tsc == 0 || window->bytes < sizeof(lost))
        return tsc;
    p = source_look(source, window, 0, &bytes);
    if (!p)
        return tsc;
    memcpy(&lost, p, sizeof(lost));
    if (!record_is_lost(lost.header))
        return tsc;
    return min_u64(tsc, (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0]);
}

/* The first time of each CPU that takes part in the first rounds: those of others are newer. */
static uint64_t find_first(struct source *source)
{
    struct source_window window;
    struct cpu_set seen = {0};
    uint64_t first = 0;
    uint32_t last_cpu = UINT32_MAX;
    unsigned int rounds = 0;

    while (rounds < SEEK_BACK_ROUNDS && source_next(source, &window) > 0) {
        uint64_t tsc = cpu_set_has(&seen, window.cpu) ? 0 : time_of_first(source, &window);

        rounds += window.cpu <= last_cpu && last_cpu != UINT32_MAX;
        last_cpu = window.cpu;
        source_release(source, &window);
        if (tsc == 0)
            continue;
        cpu_set_add(&seen, window.cpu);
        first = first > 0 ? min_u64(first, tsc) : tsc;
    }
    return first;
}

/* The newest time of the last rounds. */
static uint64_t find_last(struct source *source, uint64_t begin)
{
    uint64_t end = source_bytes(source), back = SEEK_NEAR_BYTES, from, last = 0;
    struct source_window window;

    do {
        from = end - begin > back ? end - back : begin;
        back *= 2;
    } while (from > begin && count_rounds(source, from, end) < SEEK_BACK_ROUNDS);
    if (from == begin)
        source_return(source, begin);
    else
        (void)source_seek(source, from);
    while (source_next(source, &window) > 0) {
        last = max_u64(last, find_tsc(source, &window, true));
        source_release(source, &window);
    }
    return last;
}

bool merge_find_span(struct source *source, uint64_t *ret_first, uint64_t *ret_last)
{
    uint64_t begin = source_offset(source), first, last;

    first = find_first(source);
    last = find_last(source, begin);
    source_return(source, begin);
    if (first == 0)
        return false;
    *ret_first = first;
    *ret_last = max_u64(first, last);
    return true;
}

bool merge_find_next(struct merge *merge, uint64_t *ret_tsc)
{
    if ((merge->nr_heap == 0 || merge->heap[0]->now > merge->limit) && !merge_refill(merge))
        return false;
    *ret_tsc = merge->heap[0]->now;
    return true;
}

void merge_narrow(struct merge *merge, struct merge_part part)
{
    merge->part = part;
    merge_set_horizon(merge, merge->horizon);
    if (part.from > 0)
        merge_skip(merge);
}

void merge_report_bytes(struct merge *merge, void (*fn)(void *context, uint64_t taken_bytes),
                        void *context)
{
    merge->on_bytes = fn;
    merge->on_bytes_context = context;
    merge->report_at = merge->taken_bytes + MERGE_REPORT_BYTES;
}

int merge_init(struct merge *merge, struct source *source, struct merge_part part)
{
    *merge = (struct merge){.source = source, .part = part};
    merge->number_of = calloc(SOURCE_CPUS_MAX, sizeof(*merge->number_of));
    if (!merge->number_of)
        return -ENOMEM;
    if (!source_is_stream(source)) {
        if (part.from > 0)
            merge_seek(merge);
        if (source_keeps_windows(source)) {
            (void)merge_read(merge, WINDOWS_AHEAD);
            merge_queue_streams(merge);
        } else {
            (void)merge_refill(merge);
        }
    }
    if (part.from > 0)
        merge_skip(merge);
    return merge->error;
}

void merge_done(struct merge *merge)
{
    for (unsigned int i = 0; i < merge->nr_streams; i++) {
        struct merge_stream *stream = merge->streams[i];

        source_release_piece(merge->source, &stream->piece);
        for (size_t j = stream_used_windows(stream); j < stream->nr_windows; j++)
            source_release(merge->source, &stream->windows[j]);
        free(stream->windows);
        free(stream);
    }
    free(merge->streams);
    free(merge->heap);
    free(merge->number_of);
    *merge = (struct merge){0};
}
