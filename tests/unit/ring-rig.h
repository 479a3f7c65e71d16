/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A ring that is fed with windows of numbered records, and what must hold of it at any time: it
 * begins with a round, it holds the newest of what was fed without a gap, and its ledger adds up.
 *
 * A record carries its CPU's running number, and the consumer's place in a trace buffer is made of
 * it: see rig_cons().
 */

#include "collector/pool.h"
#include "collector/ring-state.h"
#include "collector/ring.h"
#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define RIG_RECORD       0xb0021001u /* with a TSC and 3 words, of which the first is the number */
#define RIG_RECORD_BYTES 24u
#define RIG_MAX_RECORDS  ((CHUNK_BYTES - WINDOW_HEADER_BYTES - LOST_RECORD_BYTES) / RIG_RECORD_BYTES)

/* A window that was fed. */
struct fed {
    unsigned int cpu;
    uint32_t first_number;
    uint32_t records;
    uint64_t last_tsc;
    bool begins_round;
    bool begins_even;
};

struct ring_rig {
    struct ring *ring;
    unsigned int nr_cpus;
    uint64_t tsc;
    bool begins_round; /* the next window does */
    bool begins_even;
    uint32_t *number;  /* [nr_cpus]: of the CPU's next record */
    uint32_t *nothing; /* [nr_cpus]: windows of which nothing was kept */
    uint64_t *lost;    /* [nr_cpus] */
    uint64_t *dropped;
    struct fed *fed; /* what went into the ring */
    size_t nr_fed;
    size_t max_fed;
    void (*step)(bool begins); /* called around what is done to the ring; or NULL */
};

static inline void *rig_alloc(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);

    if (!p)
        exit(EXIT_FAILURE);
    return p;
}

/* Around RING, or a new one of BYTES. */
static inline void ring_rig_init(struct ring_rig *rig, struct ring *ring, uint64_t bytes,
                                 unsigned int nr_cpus)
{
    *rig = (struct ring_rig){.ring = ring, .nr_cpus = nr_cpus, .tsc = 1000};
    if (!ring && ring_new(bytes, nr_cpus, true, NULL, &rig->ring) < 0) {
        perror("a ring");
        exit(EXIT_FAILURE);
    }
    rig->number = rig_alloc(nr_cpus, sizeof(*rig->number));
    rig->nothing = rig_alloc(nr_cpus, sizeof(*rig->nothing));
    rig->lost = rig_alloc(nr_cpus, sizeof(*rig->lost));
    rig->dropped = rig_alloc(nr_cpus, sizeof(*rig->dropped));
    rig->max_fed = 1024;
    rig->fed = rig_alloc(rig->max_fed, sizeof(*rig->fed));
}

static inline void ring_rig_done(struct ring_rig *rig)
{
    ring_free(rig->ring);
    free(rig->number);
    free(rig->nothing);
    free(rig->lost);
    free(rig->dropped);
    free(rig->fed);
}

/* --- Feeding. --- */

static inline void rig_begin_round(struct ring_rig *rig, bool even)
{
    rig->begins_round = true;
    rig->begins_even = even;
}

static inline void rig_put_records(struct ring_rig *rig, uint8_t *p, uint32_t number,
                                   uint32_t records)
{
    for (uint32_t i = 0; i < records; i++, p += RIG_RECORD_BYTES) {
        const uint32_t words[RIG_RECORD_BYTES / 4] = {
            RIG_RECORD, (uint32_t)rig->tsc, (uint32_t)(rig->tsc >> 32), number + i, ~(number + i)};

        memcpy(p, words, sizeof(words));
        rig->tsc++;
    }
}

static inline void rig_note_fed(struct ring_rig *rig, const struct ring_window *window,
                                uint32_t records)
{
    if (rig->nr_fed == rig->max_fed) {
        rig->max_fed *= 2;
        rig->fed = realloc(rig->fed, rig->max_fed * sizeof(*rig->fed));
        if (!rig->fed)
            exit(EXIT_FAILURE);
    }
    rig->fed[rig->nr_fed++] = (struct fed){
        .cpu = window->cpu,
        .first_number = rig->number[window->cpu],
        .records = records,
        .last_tsc = rig->tsc - 1,
        .begins_round = window->begins_round,
        .begins_even = window->begins_even,
    };
}

static inline void rig_step(const struct ring_rig *rig, bool begins)
{
    if (rig->step)
        rig->step(begins);
}

/* The chunk for a window of BYTES; NULL: there is none. As collector/sink.c looks for it. */
static inline struct chunk *rig_chunk_for(struct ring_rig *rig, uint32_t bytes)
{
    struct chunk *chunk;

    rig_step(rig, true);
    chunk = ring_fill(rig->ring);
    if (chunk && chunk->fill_bytes + bytes > chunk->bytes) {
        ring_close_chunk(rig->ring);
        chunk = ring_fill(rig->ring);
    }
    rig_step(rig, false);
    return chunk;
}

/* CPU's place in its trace buffer: the next record's number, and windows without any. */
static inline uint32_t rig_cons(const struct ring_rig *rig, unsigned int cpu)
{
    return rig->number[cpu] << 2 | (rig->nothing[cpu] & 3);
}

/* Goes on there. */
static inline void rig_set_cons(struct ring_rig *rig, unsigned int cpu, uint32_t cons)
{
    rig->number[cpu] = cons >> 2;
    rig->nothing[cpu] = cons & 3;
}

/* A window of which nothing is kept. */
static inline void rig_feed_nothing(struct ring_rig *rig, unsigned int cpu)
{
    struct ring_window window = {.cpu = cpu, .cons_from = rig_cons(rig, cpu)};

    rig->nothing[cpu]++;
    window.cons_to = rig_cons(rig, cpu);
    rig_step(rig, true);
    ring_commit_nothing(rig->ring, &window);
    rig_step(rig, false);
}

/* Feeds a window of RECORDS records of CPU, of which LOST more were lost. False: it was dropped. */
static inline bool rig_feed_window(struct ring_rig *rig, unsigned int cpu, uint32_t records,
                                   uint32_t lost)
{
    uint32_t lost_bytes = lost ? LOST_RECORD_BYTES : 0;
    uint32_t bytes = WINDOW_HEADER_BYTES + lost_bytes + records * RIG_RECORD_BYTES;
    const struct lost_record lost_record = {.header = LOST_RECORD_HEADER, .count = lost};
    struct chunk *chunk = rig_chunk_for(rig, bytes);
    struct window_header header = {WINDOW_HEADER, cpu, bytes - WINDOW_HEADER_BYTES};
    struct walk_result walked = {.records = records, .lost = lost, .first_tsc = rig->tsc};
    struct ring_window window = {
        .cpu = cpu,
        .bytes = bytes,
        .begins_round = rig->begins_round,
        .begins_even = rig->begins_even,
        .cons_from = rig_cons(rig, cpu),
        .cons_to = rig_cons(rig, cpu) + (records << 2),
    };

    walked.last_tsc = walked.first_tsc + records - 1;
    if (chunk) {
        uint8_t *p = chunk->data + chunk->fill_bytes;

        memcpy(p, &header, sizeof(header));
        memcpy(p + WINDOW_HEADER_BYTES, &lost_record, lost_bytes);
        rig_put_records(rig, p + WINDOW_HEADER_BYTES + lost_bytes, rig->number[cpu], records);
        rig_step(rig, true);
        ring_commit_window(rig->ring, &window, &walked);
        rig_step(rig, false);
        rig_note_fed(rig, &window, records);
        rig->begins_round = false;
    } else {
        rig->tsc += records;
        rig_step(rig, true);
        ring_commit_drop(rig->ring, &window, &walked);
        rig_step(rig, false);
        rig->dropped[cpu] += records;
    }
    rig->number[cpu] += records;
    rig->lost[cpu] += lost;
    return chunk;
}

/* A round of all CPUs, of which each has RECORDS. False: some of it was dropped. */
static inline bool rig_feed_round(struct ring_rig *rig, uint32_t records, bool even)
{
    bool all = true;

    rig_begin_round(rig, even);
    for (unsigned int cpu = 0; cpu < rig->nr_cpus; cpu++)
        all = rig_feed_window(rig, cpu, records, 0) && all;
    return all;
}

/* --- What must hold. --- */

/* What is in the ring, as its data says. */
struct rig_content {
    bool sound;           /* whole windows of whole records, each CPU's numbers in a row */
    size_t windows;       /* in the ring */
    size_t counted;       /* of them, from the ring's first round on */
    uint64_t bytes;       /* of chunks */
    uint32_t *next;       /* [nr_cpus]: the number behind the CPU's last record */
    uint64_t *in_counted; /* [nr_cpus]: records */
};

static inline void rig_content_init(struct rig_content *content, const struct ring_rig *rig)
{
    *content = (struct rig_content){
        .sound = true,
        .next = rig_alloc(rig->nr_cpus, sizeof(*content->next)),
        .in_counted = rig_alloc(rig->nr_cpus, sizeof(*content->in_counted)),
    };
}

static inline void rig_content_done(struct rig_content *content)
{
    free(content->next);
    free(content->in_counted);
}

/* Steps over a window's records. Returns how many there are, or UINT32_MAX if they are wrong. */
static inline uint32_t rig_read_records(const uint8_t *p, uint32_t bytes, uint32_t *ret_first)
{
    uint32_t records = 0, header, number[2];

    for (uint32_t offset = 0; offset < bytes; offset += record_bytes(header)) {
        memcpy(&header, p + offset, sizeof(header));
        if (record_bytes(header) > bytes - offset)
            return UINT32_MAX;
        if (record_is_wrap(header) || record_is_lost(header))
            continue;
        memcpy(number, p + offset + 12, sizeof(number));
        if (records == 0)
            *ret_first = number[0];
        if (header != RIG_RECORD || number[1] != ~number[0] || number[0] != *ret_first + records)
            return UINT32_MAX;
        records++;
    }
    return records;
}

/* Adds a window to CONTENT. A gap is for those who drop. Returns whether it is sound. */
static inline bool rig_add_window(const struct ring_rig *rig, const struct window_header *window,
                                  const uint8_t *records, bool counts, struct rig_content *content)
{
    uint32_t first = 0, count = rig_read_records(records, window->bytes, &first);
    uint32_t *next = &content->next[window->cpu];

    if (count == UINT32_MAX ||
        (count > 0 && *next != 0 &&
         (first < *next || (first != *next && rig->dropped[window->cpu] == 0))))
        return false;
    if (count > 0)
        *next = first + count;
    content->windows++;
    content->counted += counts;
    content->in_counted[window->cpu] += counts ? count : 0;
    return true;
}

static inline bool rig_read_chunk(const struct ring_rig *rig, const struct chunk *chunk,
                                  bool is_head, struct rig_content *content)
{
    const struct ring_chunk *state = ring_state_of(rig->ring, chunk);
    uint32_t offset = 0;

    while (offset < chunk->fill_bytes) {
        bool counts = !is_head || offset >= state->first_round;
        struct window_header window;

        memcpy(&window, chunk->data + offset, sizeof(window));
        offset += WINDOW_HEADER_BYTES;
        if (window.header != WINDOW_HEADER || window.cpu >= rig->nr_cpus ||
            window.bytes > chunk->fill_bytes - offset ||
            !rig_add_window(rig, &window, chunk->data + offset, counts, content))
            return false;
        offset += window.bytes;
    }
    content->bytes += chunk->fill_bytes;
    return offset == chunk->fill_bytes;
}

static inline void rig_read_ring(const struct ring_rig *rig, struct rig_content *content)
{
    const struct ring *ring = rig->ring;

    for (const struct chunk *chunk = ring->head; chunk; chunk = chunk->next)
        content->sound = content->sound && rig_read_chunk(rig, chunk, chunk == ring->head, content);
    if (ring->filling)
        content->sound = content->sound && rig_read_chunk(rig, ring->filling, false, content);
}

/* Every CPU's line; CONTENT, if given, has as many records as it says. */
static inline void rig_check_ledger(const struct ring_rig *rig, const struct rig_content *content)
{
    unsigned int wrong = 0;

    for (unsigned int cpu = 0; cpu < rig->nr_cpus; cpu++) {
        const struct ledger *ledger = ring_ledger(rig->ring, cpu);

        wrong += ledger->produced != rig->number[cpu] + rig->lost[cpu];
        wrong += ledger->lost != rig->lost[cpu];
        wrong += ledger->dropped != rig->dropped[cpu];
        wrong += ledger->produced !=
                 ledger->delivered + ledger->lost + ledger->dropped + ledger->evicted;
        wrong += content && ledger->delivered != content->in_counted[cpu];
    }
    CHECK_UINT(wrong, 0);
}

/* The windows that count are the newest that were fed, and begin with an even round. */
static inline void rig_check_newest(const struct ring_rig *rig, const struct rig_content *content)
{
    uint64_t *records = rig_alloc(rig->nr_cpus, sizeof(*records));
    unsigned int wrong = 0;
    size_t begin = rig->nr_fed - content->counted;

    if (CHECK(content->windows <= rig->nr_fed) && rig->ring->head)
        CHECK(rig->fed[begin].begins_round && rig->fed[begin].begins_even);
    for (size_t i = begin; i < rig->nr_fed; i++)
        records[rig->fed[i].cpu] += rig->fed[i].records;
    for (unsigned int cpu = 0; cpu < rig->nr_cpus; cpu++)
        wrong += records[cpu] != content->in_counted[cpu];
    CHECK_UINT(wrong, 0);
    free(records);
}

/* All of it, read from the ring's data. */
static inline void rig_check(const struct ring_rig *rig)
{
    struct rig_content content;
    struct ring_stats stats;

    rig_content_init(&content, rig);
    rig_read_ring(rig, &content);
    CHECK(content.sound);
    rig_check_ledger(rig, &content);
    rig_check_newest(rig, &content);
    ring_read_stats(rig->ring, &stats);
    CHECK_UINT(stats.used_bytes, content.bytes);
    rig_content_done(&content);
}

/* Wherever a chunk is, it is in one place. */
static inline unsigned int rig_count_chunks(const struct ring_rig *rig)
{
    const struct ring *ring = rig->ring;
    unsigned int count = ring->filling != NULL;

    for (const struct chunk *chunk = ring->free_list; chunk; chunk = chunk->next)
        count++;
    for (const struct chunk *chunk = ring->borrowed_list; chunk; chunk = chunk->next)
        count++;
    for (const struct chunk *chunk = ring->head; chunk; chunk = chunk->next)
        count++;
    for (const struct chunk *chunk = ring->limbo_head; chunk; chunk = chunk->limbo_next)
        count++;
    return count;
}
