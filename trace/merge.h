/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The records of all CPUs in the order of time (docs/measures.md, "Order"): each CPU's stream is
 * its windows in the order of the file, and streams are merged by effective time and CPU.
 *
 * For a file, all windows are found first. For a stream and a compressed file, three rounds are
 * read ahead, after which no older record can arrive, and their windows are released when they are
 * used. A record that is out of order nevertheless gets the time of the record before it, and is
 * counted.
 *
 * The inline functions run for every record.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/record.h"
#include "trace/source.h"

/* A record. What it points to is valid until the next call. */
struct merge_record {
    uint64_t tsc; /* its effective time */
    uint32_t header;
    uint32_t cpu;
    uint32_t stream;      /* the CPU's number among those of the trace, as they come */
    const uint8_t *words; /* merge_word() */
};

enum merge_item {
    MERGE_END,
    MERGE_RECORD,
    MERGE_BLIND, /* no record: from now on CPU's are missing, until its lost_records record */
};

/* A CPU's stream, and its next item. */
struct merge_stream {
    uint64_t now;           /* when the next item is */
    const uint8_t *p, *end; /* the next record, and its piece's end; NULL: nothing is left (yet) */
    uint32_t header;        /* of the record at p, which fits into the window */
    uint32_t bytes;
    uint32_t cpu;
    uint32_t number;
    bool is_blind; /* the next item is MERGE_BLIND, and then the record at p comes at */
    uint64_t blind_until;
    bool has_begun;
    bool has_item;  /* p is not at the first item */
    bool has_ended; /* a window was read that begins after the part */

    struct source_window *windows; /* from `first` on, still to come; the one of p before it */
    size_t first, nr_windows, max_windows;
    struct source_piece piece; /* of the window of p */
    uint32_t left;             /* bytes of that window after the piece */
};

/* A part of a trace: items from FROM on and before UNTIL, by effective time. */
struct merge_part {
    uint64_t from, until;
};

#define MERGE_ALL ((struct merge_part){.until = UINT64_MAX})

struct merge {
    struct merge_stream **heap; /* by time and CPU: [0] is next. [nr_streams], of which nr_heap */
    unsigned int nr_heap;
    struct merge_stream *bound; /* who comes after heap[0]; NULL: nobody */
    uint64_t horizon;           /* items that are later wait for more to be read */
    uint64_t limit;             /* the same, or the part's end if that comes first */

    struct source *source;
    struct merge_stream **streams; /* [nr_streams], as they came */
    uint16_t *number_of;           /* [SOURCE_CPUS_MAX]: plus 1; 0: none */
    unsigned int nr_streams, max_streams;
    uint32_t kept_words[7]; /* of the last record, if its window is gone */
    struct merge_part part;
    uint64_t emitted;  /* the time of the last item, when the horizon was reached */
    uint64_t last_tsc; /* of the last record that merge_read_all() read */
    int error;         /* the first one of reading: then there are no more items */

    uint32_t last_cpu;      /* of the last window that was read */
    uint64_t rounds_tsc[3]; /* the newest beginning of a window: of all rounds; but the last; ... */

    unsigned int nr_ended; /* streams that have ended */
    unsigned int nr_after; /* windows that were read after the part */

    uint64_t taken_bytes; /* of windows, up to now */
    uint64_t report_at;   /* of them: when on_bytes is called next */
    void (*on_bytes)(void *context, uint64_t taken_bytes); /* merge_report_bytes(); NULL */
    void *on_bytes_context;

    uint64_t wraps;       /* merge_wraps() */
    uint64_t bad_windows; /* with something that is no record: the rest of each was left out */
    uint64_t late;        /* how often a CPU's stream continued before what had been emitted */
};

/*
 * SOURCE is borrowed. Finds all windows of what is not a stream that PART may need. 0, -ENOMEM, or
 * of source_next().
 */
int merge_init(struct merge *merge, struct source *source, struct merge_part part);
void merge_done(struct merge *merge);

/*
 * When the first item is, and the last one, of a SOURCE that is not a stream: its beginning and its
 * end are looked at. The source is left where it was. False: no record has a time.
 */
bool merge_find_span(struct source *source, uint64_t *ret_first, uint64_t *ret_last);

/* When the next item is. False: there is none. */
bool merge_find_next(struct merge *merge, uint64_t *ret_tsc);
/* Continues with PART, which begins where the merge stands or later. */
void merge_narrow(struct merge *merge, struct merge_part part);

/*
 * From now on FN is called each MERGE_REPORT_BYTES with the bytes whose records were begun, and
 * with UINT64_MAX at the end. NULL: no more.
 */
#define MERGE_REPORT_BYTES (UINT64_C(16) << 20)
void merge_report_bytes(struct merge *merge, void (*fn)(void *context, uint64_t taken_bytes),
                        void *context);

/* The number of CPUs that have had a window so far. */
static inline unsigned int merge_streams(const struct merge *merge)
{
    return merge->nr_streams;
}

static inline uint32_t merge_cpu_of(const struct merge *merge, unsigned int number)
{
    return merge->streams[number]->cpu;
}

/* wrap_buffer records that were passed over. They have no time: in a part there are none. */
static inline uint64_t merge_wraps(const struct merge *merge)
{
    return merge->part.from == 0 && merge->part.until == UINT64_MAX ? merge->wraps : 0;
}

static inline uint32_t merge_word(const struct merge_record *record, unsigned int i)
{
    uint32_t word;

    memcpy(&word, record->words + (size_t)4 * i, sizeof(word));
    return word;
}

static inline unsigned int merge_words(const struct merge_record *record)
{
    return record->header >> TRACE_EXTRA_SHIFT & 7;
}

/* --- Private. --- */

/* Finds the next item of STREAM at p or after it. */
void merge_find_item(struct merge *merge, struct merge_stream *stream);
/* The same after RECORD, heap[0]'s, whose window may go: its words are kept. */
void merge_leave_record(struct merge *merge, struct merge_record *record);
/* heap[0] has another time, or no item. */
void merge_reorder(struct merge *merge);
/* Reads on, until something is within the horizon. */
bool merge_refill(struct merge *merge);
int merge_next_blind(struct merge *merge, struct merge_record *ret_record);

static inline bool merge_is_before(const struct merge_stream *a, const struct merge_stream *b)
{
    return a->now < b->now || (a->now == b->now && a->cpu < b->cpu);
}

/* lost_records, wrap_buffer and whatever else tracing has for itself. */
static inline bool merge_is_special(uint32_t header)
{
    return (header & 0x0ffff000u) == (TRC_TRACE_WRAP_BUFFER & 0x0ffff000u);
}

/* A whole one at P, before END. */
static inline bool merge_has_record(const uint8_t *p, const uint8_t *end)
{
    uint32_t header;

    if (end - p < (ptrdiff_t)RECORD_MIN_BYTES)
        return false;
    memcpy(&header, p, sizeof(header));
    return end - p >= (ptrdiff_t)record_bytes(header);
}

static inline void merge_reorder_if_late(struct merge *merge)
{
    const struct merge_stream *stream = merge->heap[0];

    if (!stream->p || (merge->bound && merge_is_before(merge->bound, stream)))
        merge_reorder(merge);
}

/* Hands out heap[0]'s record, and finds the next one. */
static inline int merge_take(struct merge *merge, struct merge_record *ret_record)
{
    struct merge_stream *stream = merge->heap[0];

    ret_record->tsc = stream->now;
    ret_record->header = stream->header;
    ret_record->cpu = stream->cpu;
    ret_record->stream = stream->number;
    ret_record->words = stream->p + RECORD_MIN_BYTES + (stream->header >> 31) * 8u;

    stream->p += stream->bytes;
    if (__builtin_expect(stream->end - stream->p >= (ptrdiff_t)RECORD_MAX_BYTES, 1)) {
        memcpy(&stream->header, stream->p, sizeof(stream->header));
        stream->bytes = record_bytes(stream->header);
        if (__builtin_expect(merge_is_special(stream->header), 0)) {
            merge_leave_record(merge, ret_record);
        } else if (stream->header >> 31) {
            uint64_t tsc = record_tsc(stream->p);

            stream->now = tsc > stream->now ? tsc : stream->now;
        }
    } else {
        merge_leave_record(merge, ret_record);
    }
    merge_reorder_if_late(merge);
    return MERGE_RECORD;
}

/* The time up to which heap[0] comes before all others and is within the limit. */
static inline uint64_t merge_until(const struct merge *merge)
{
    const struct merge_stream *bound = merge->bound;
    uint64_t until;

    if (!bound)
        return merge->limit;
    until = bound->now - (bound->cpu < merge->heap[0]->cpu);
    return until < merge->limit ? until : merge->limit;
}

/* --- */

/* The next item in the order of time. MERGE_END: also when reading failed (merge.error). */
static inline int merge_next(struct merge *merge, struct merge_record *ret_record)
{
    if (__builtin_expect(merge->nr_heap == 0 || merge->heap[0]->now > merge->limit, 0) &&
        !merge_refill(merge))
        return MERGE_END;
    if (__builtin_expect(merge->heap[0]->is_blind, 0))
        return merge_next_blind(merge, ret_record);
    return merge_take(merge, ret_record);
}

/* heap[0] has the record at P next. */
static inline void merge_leave_run(struct merge *merge, const uint8_t *p, uint64_t now,
                                   uint32_t header)
{
    struct merge_stream *stream = merge->heap[0];

    stream->p = p;
    stream->now = now;
    stream->header = header;
    stream->bytes = record_bytes(header);
    merge_reorder_if_late(merge);
}

/*
 * What a reader of all that is left does with each item: `pass` is asked first, and if it returns
 * true, that was all; else `record` is called, or `blind`. They are to be constants, so that they
 * are inlined. A result other than 0 ends the reading.
 */
struct merge_reader {
    bool (*pass)(void *context, uint32_t header);
    int (*record)(void *context, const struct merge_record *record);
    int (*blind)(void *context, const struct merge_record *record);
};

/* The processor prefetches within a page only: this takes 5 to 15 % off the time of a report. */
#define MERGE_PREFETCH_BYTES 512u

/*
 * Reads heap[0]'s records as long as it comes before all others. Everything that changes is in
 * registers meanwhile: for most records of a trace this is all there is to do.
 */
static inline __attribute__((always_inline)) int
merge_read_run(struct merge *merge, const struct merge_reader reader, void *context)
{
    struct merge_stream *stream = merge->heap[0];
    const uint8_t *p = stream->p, *end = stream->end;
    uint64_t now = stream->now, last, until = merge_until(merge);
    uint32_t header = stream->header;
    int r = 0;

    for (;;) {
        if (!reader.pass(context, header)) {
            const struct merge_record record = {
                .tsc = now,
                .header = header,
                .cpu = stream->cpu,
                .stream = stream->number,
                .words = p + RECORD_MIN_BYTES + (header >> 31) * 8u,
            };

            r = reader.record(context, &record);
        }
        __builtin_prefetch(p + MERGE_PREFETCH_BYTES);
        last = now;
        p += record_bytes(header);
        if (__builtin_expect(end - p < (ptrdiff_t)RECORD_MAX_BYTES, 0) && !merge_has_record(p, end))
            break;
        memcpy(&header, p, sizeof(header));
        if (__builtin_expect(merge_is_special(header), 0))
            break;
        if (header >> 31) {
            uint64_t tsc = record_tsc(p);

            now = tsc > now ? tsc : now;
        }
        if (now <= until && r == 0)
            continue;
        merge_leave_run(merge, p, now, header);
        merge->last_tsc = last;
        return r;
    }
    merge->last_tsc = last;
    stream->p = p;
    stream->now = last;
    merge_find_item(merge, stream);
    merge_reorder_if_late(merge);
    return r;
}

/* Reads all that is left: 0, or what a function of READER returned. merge.error: reading failed. */
static inline __attribute__((always_inline)) int
merge_read_all(struct merge *merge, const struct merge_reader reader, void *context)
{
    struct merge_record record;
    int r = 0;

    while (r == 0) {
        if (__builtin_expect(merge->nr_heap == 0 || merge->heap[0]->now > merge->limit, 0) &&
            !merge_refill(merge))
            return 0;
        if (__builtin_expect(!merge->heap[0]->is_blind, 1)) {
            r = merge_read_run(merge, reader, context);
            continue;
        }
        (void)merge_next_blind(merge, &record);
        r = reader.blind(context, &record);
    }
    return r;
}
