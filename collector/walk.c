// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One pass over a window. In place, records that pass are moved in runs: a window of which
 * everything passes is not moved at all. To a place elsewhere each is copied, so that it does not
 * matter how many pass.
 */

#include "collector/walk.h"

#include <string.h>

#include "common/record.h"
#include "common/util.h"

#define PADDING_MAX_BYTES 32u /* a wrap_buffer record without a TSC: 4 + 7 * 4 */

const struct walk_filter walk_everything = {
    .allow = {[0 ... WALK_FILTER_BITS / 64 - 1] = UINT64_MAX},
    .plain = {[0] = 0x7fff0000, [1 ... EVENT_CLASSES - 1] = 0xffff},
};

static bool filter_passes(const struct walk_filter *filter, uint32_t header)
{
    uint32_t i = record_event(header) >> TRC_SUBCLS_SHIFT;

    return filter->allow[i / 64] >> (i % 64) & 1;
}

static void allow_plain(struct walk_filter *filter, unsigned int class)
{
    for (uint32_t subclass = 0; subclass < 16; subclass++) {
        uint32_t event = 1u << (TRC_CLS_SHIFT + class) | subclass << TRC_SUBCLS_SHIFT;

        if (event != TRC_GEN && filter_passes(filter, event))
            filter->plain[class] |= 1u << (event >> TRC_SUBCLS_SHIFT) % 32;
    }
}

void walk_filter_init(struct walk_filter *filter, const struct event_set *set)
{
    memset(filter, 0, sizeof(*filter));
    for (uint32_t i = 0; i < WALK_FILTER_BITS; i++)
        if (event_set_has(set, i << TRC_SUBCLS_SHIFT))
            filter->allow[i / 64] |= UINT64_C(1) << (i % 64);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        allow_plain(filter, i);
}

/* Xen makes no record without a class: where one seems to be, the bytes are no records. */
static bool has_class(uint32_t header)
{
    return record_event(header) >> TRC_CLS_SHIFT;
}

/* EVENT_CLASSES: it has none. */
static unsigned int lowest_class(uint32_t header)
{
    return (unsigned int)__builtin_ctz(header >> TRC_CLS_SHIFT | 1u << EVENT_CLASSES);
}

static uint32_t load_word(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

static void note_tsc(struct walk_result *result, uint64_t tsc)
{
    if (result->first_tsc == 0)
        result->first_tsc = tsc;
    result->last_tsc = tsc;
}

static void note_lost(struct walk_result *result, const uint8_t *p)
{
    struct lost_record lost;

    memcpy(&lost, p, sizeof(lost));
    result->lost += lost.count;
    if (result->lost_first_tsc == 0)
        result->lost_first_tsc = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
    result->lost_last_tsc = record_tsc(p);
}

/* Counts the record at P, and returns whether it stays. */
static bool take_record(const uint8_t *p, uint32_t header, const struct walk_filter *filter,
                        uint64_t *class_records, struct walk_result *result)
{
    if (record_is_wrap(header))
        return true;
    if (record_is_lost(header)) {
        note_lost(result, p);
        return true;
    }
    if (!filter_passes(filter, header))
        return false;
    result->records++;
    class_records[lowest_class(header)]++;
    if (record_has_tsc(header))
        note_tsc(result, record_tsc(p));
    return true;
}

/* Without a class, or of the lowest alone: records about tracing itself. */
static bool is_unusual(uint32_t header)
{
    return record_event(header) < UINT32_C(2) << TRC_CLS_SHIFT;
}

/* What the fast ways count. */
struct tally {
    uint64_t class_records[EVENT_CLASSES];
    const uint8_t *timed; /* the last record with a TSC */
};

static void add_tally(struct walk_result *result, uint64_t *class_records, struct tally *tally)
{
    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        class_records[i] += tally->class_records[i];
        result->records += tally->class_records[i];
    }
    if (tally->timed)
        note_tsc(result, record_tsc(tally->timed));
}

/*
 * Behind the record at P. What is computed from a header is known when it has been loaded, and only
 * then can the next one be; the processor guesses a branch, and knows before. Kinds of records
 * follow each other in patterns, so most are guessed well: there is a branch for each usual size.
 * Not a jump through a table: where speculation is restrained that is hardly ever guessed.
 */
static inline const uint8_t *next_record(const uint8_t *p, uint32_t header)
{
    uint32_t shape = header >> TRACE_EXTRA_SHIFT;

/* The first barrier keeps the comparisons a chain, the second one keeps the branch a branch. */
#define USUAL(size)                                                                                \
    __asm__("" : "+r"(shape));                                                                     \
    if (shape == (8u | ((size)-12) / 4)) { /* with a TSC */                                        \
        p += (size);                                                                               \
        __asm__("" : "+r"(p));                                                                     \
        return p;                                                                                  \
    }
    USUAL(16)
    USUAL(20)
    USUAL(24)
    USUAL(28)
    USUAL(12)
    USUAL(36)
#undef USUAL
    return p + record_bytes(header);
}

/*
 * The fast way past records that stay where they are, up to one that take_record() is to see.
 * Returns the offset of that.
 */
static uint32_t count_plain(const uint8_t *window, uint32_t offset, uint32_t bytes,
                            const struct walk_filter *filter, uint64_t *class_records,
                            struct walk_result *result)
{
    const uint8_t *end = window + bytes;
    const uint8_t *p = window + offset;
    struct tally tally = {0};

    while (end - p >= RECORD_MAX_BYTES) {
        uint32_t header = load_word(p);
        unsigned int class = lowest_class(header);

        if (!(filter->plain[class] >> (header >> TRC_SUBCLS_SHIFT) % 32 & 1))
            break;
        tally.class_records[class]++;
        tally.timed = record_has_tsc(header) ? p : tally.timed;
        p = next_record(p, header);
    }
    add_tally(result, class_records, &tally);
    return (uint32_t)(p - window);
}

/*
 * The fast way past records of which some stay, to KEPT elsewhere, up to one that take_record() is
 * to see. Which of them stays is hard to guess: all are copied, with what follows them, and the
 * next one goes over what does not stay. Returns the offset where it stopped.
 */
static uint32_t select_records(const uint8_t *window, uint32_t offset, uint32_t bytes,
                               const struct walk_filter *filter, uint8_t *kept,
                               uint64_t *class_records, struct walk_result *result)
{
    const uint8_t *end = window + bytes;
    const uint8_t *p = window + offset;
    uint8_t *to = kept + result->kept_bytes;
    struct tally tally = {0};

    while (end - p >= RECORD_MAX_BYTES) {
        uint32_t header = load_word(p);
        const uint8_t *next = next_record(p, header);
        bool passes = filter_passes(filter, header);

        if (is_unusual(header))
            break;
        memcpy(to, p, RECORD_MAX_BYTES);
        tally.class_records[lowest_class(header)] += passes;
        tally.timed = passes && record_has_tsc(header) ? p : tally.timed;
        to += passes ? next - p : 0;
        p = next;
    }
    result->kept_bytes = (uint32_t)(to - kept);
    add_tally(result, class_records, &tally);
    return (uint32_t)(p - window);
}

/* Puts a run of records where those before it end; where it lies already, nothing is moved. */
static void keep_run(uint8_t *kept, const uint8_t *run, uint32_t bytes, struct walk_result *result)
{
    if (kept && kept + result->kept_bytes != run)
        memmove(kept + result->kept_bytes, run, bytes);
    result->kept_bytes += bytes;
}

void walk_window(const uint8_t *window, uint32_t bytes, bool whole,
                 const struct walk_filter *filter, uint8_t *kept,
                 uint64_t class_records[static EVENT_CLASSES], struct walk_result *ret_result)
{
    struct walk_result result = {0};
    bool selects = kept && kept != window;
    uint32_t run_start = 0; /* records in [run_start, offset) stay and have not been moved yet */
    uint32_t offset = 0;

    while (bytes - offset >= RECORD_MIN_BYTES) {
        uint32_t header = load_word(window + offset);
        uint32_t length = record_bytes(header);

        result.broken = !has_class(header);
        if (result.broken || length > bytes - offset)
            break;
        if (!take_record(window + offset, header, filter, class_records, &result)) {
            keep_run(kept, window + run_start, offset - run_start, &result);
            run_start = offset + length;
        }
        offset += length;
        if (!result.first_tsc)
            continue;
        if (selects) {
            keep_run(kept, window + run_start, offset - run_start, &result);
            run_start = offset =
                select_records(window, offset, bytes, filter, kept, class_records, &result);
        } else {
            offset = count_plain(window, offset, bytes, filter, class_records, &result);
        }
    }
    keep_run(kept, window + run_start, offset - run_start, &result);
    result.consumed_bytes = offset;
    result.broken = result.broken || (whole && offset != bytes);
    *ret_result = result;
}

/* Of a record that has a TSC. */
static bool is_older(const uint8_t *p, uint32_t header, uint64_t tsc, uint64_t losses_tsc)
{
    struct lost_record lost;

    if (record_tsc(p) < tsc)
        return tsc - record_tsc(p) < WALK_FOREIGN_TICKS;
    if (!record_is_lost(header))
        return false;
    memcpy(&lost, p, sizeof(lost));
    return ((uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0]) < losses_tsc;
}

uint32_t walk_pass_older(const uint8_t *window, uint32_t bytes, uint64_t tsc, uint64_t losses_tsc,
                         bool *ret_found)
{
    uint32_t older_bytes = 0;
    uint32_t offset = 0;

    *ret_found = false;
    while (bytes - offset >= RECORD_MIN_BYTES) {
        uint32_t header = load_word(window + offset);
        uint32_t length = record_bytes(header);

        if (!has_class(header) || length > bytes - offset)
            break;
        if (record_is_wrap(header)) {
            offset += length;
            continue;
        }
        if (!record_has_tsc(header)) {
            *ret_found = true; /* unless an older one follows */
        } else if (is_older(window + offset, header, tsc, losses_tsc)) {
            *ret_found = false;
            older_bytes = offset + length;
        } else {
            *ret_found = true;
            break;
        }
        offset += length;
    }
    return older_bytes;
}

void walk_add(struct walk_result *result, const struct walk_result *next)
{
    result->consumed_bytes += next->consumed_bytes;
    result->kept_bytes += next->kept_bytes;
    result->records += next->records;
    result->lost += next->lost;
    if (!result->first_tsc)
        result->first_tsc = next->first_tsc;
    if (next->last_tsc)
        result->last_tsc = next->last_tsc;
    if (!result->lost_first_tsc)
        result->lost_first_tsc = next->lost_first_tsc;
    if (next->lost_last_tsc)
        result->lost_last_tsc = next->lost_last_tsc;
    result->broken = next->broken;
}

void walk_write_padding(uint8_t *destination, uint32_t bytes)
{
    memset(destination, 0, bytes);
    while (bytes > 0) {
        uint32_t length = (uint32_t)min_u64(bytes, PADDING_MAX_BYTES);
        uint32_t extra_words = (length - RECORD_MIN_BYTES) / 4;
        uint32_t header = TRC_TRACE_WRAP_BUFFER | extra_words << TRACE_EXTRA_SHIFT;

        memcpy(destination, &header, sizeof(header));
        destination += length;
        bytes -= length;
    }
}
