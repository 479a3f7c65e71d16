// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One pass over a window. Records that pass are usually adjacent, so they are moved in runs: a
 * window of which everything passes is not moved at all.
 */

#include "collector/walk.h"

#include <string.h>

#include "common/record.h"
#include "common/util.h"

#define PADDING_MAX_BYTES 32u /* a wrap_buffer record without a TSC: 4 + 7 * 4 */

const struct walk_filter walk_everything = {
    .allow = {[0 ... WALK_FILTER_BITS / 64 - 1] = UINT64_MAX},
};

void walk_filter_init(struct walk_filter *filter, const struct event_set *set)
{
    memset(filter, 0, sizeof(*filter));
    for (uint32_t i = 0; i < WALK_FILTER_BITS; i++)
        if (event_set_has(set, i << TRC_SUBCLS_SHIFT))
            filter->allow[i / 64] |= UINT64_C(1) << (i % 64);
}

static bool filter_passes(const struct walk_filter *filter, uint32_t header)
{
    uint32_t i = record_event(header) >> TRC_SUBCLS_SHIFT;

    return filter->allow[i / 64] >> (i % 64) & 1;
}

/* Records without a class bit are nobody's; they count with the first one. */
static unsigned int class_index(uint32_t header)
{
    uint32_t classes = record_event(header) >> TRC_CLS_SHIFT;

    return classes ? (unsigned int)__builtin_ctz(classes) : 0;
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

/* Counts the record at P, and says whether it stays. */
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
    class_records[class_index(header)]++;
    if (record_has_tsc(header))
        note_tsc(result, record_tsc(p));
    return true;
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
    uint32_t run_start = 0; /* records in [run_start, offset) stay and have not been moved yet */
    uint32_t offset = 0;

    while (bytes - offset >= RECORD_MIN_BYTES) {
        uint32_t header = load_word(window + offset);
        uint32_t length = record_bytes(header);

        if (length > bytes - offset)
            break;
        if (!take_record(window + offset, header, filter, class_records, &result)) {
            keep_run(kept, window + run_start, offset - run_start, &result);
            run_start = offset + length;
        }
        offset += length;
    }
    keep_run(kept, window + run_start, offset - run_start, &result);
    result.consumed_bytes = offset;
    result.broken = whole && offset != bytes;
    *ret_result = result;
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
