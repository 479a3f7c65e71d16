// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One pass over the file. Each window is walked record by record, by the rules of
 * common/trace-file.c. At a damage the pass continues with the next bytes that look like a window
 * with records, at any byte: what was written beside them may have any length.
 *
 * Where records may be missing, the CPU's next window begins with a lost_records record, from the
 * CPU's newest record to the window's first. If all of the damage is in a window, whose end is
 * where the next one begins, only its CPU may miss some, otherwise every CPU. A CPU that has no
 * further window gets one at the end. At the end of the file nothing is marked: there the trace
 * ends.
 */

#include "trace/repair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/record.h"
#include "common/util.h"
#include "common/write-all.h"
#include "trace/blocks.h"
#include "trace/source.h"

/* So many sound records after a header, or a whole window, are no accident. */
#define RECORDS_ENOUGH 4u

/* How many records a mark reports: nobody knows. */
#define MARK_COUNT 1u

struct repair_cpu {
    bool has_window;
    bool has_gap;      /* some of its own records were dropped after its last window */
    uint64_t gap_seen; /* repair.nr_gaps at its last window */
    uint64_t last_tsc;
};

struct repair {
    struct blocks *blocks; /* the original */
    uint64_t bytes;
    int error; /* the first one of reading it: then nothing more is found */
    int fd;    /* -1: none */
    struct repair_result *result;
    struct repair_cpu *cpus; /* [SOURCE_CPUS_MAX] */
    uint64_t nr_gaps;        /* of all CPUs */
    uint64_t from, to;       /* of the original: to be copied as it is */
};

/* A window as it is found. Offsets are in the file. */
struct found {
    uint32_t cpu;
    uint64_t begin;     /* of its records */
    uint64_t end;       /* by its header */
    uint64_t sound_end; /* of its sound records */
    enum trace_file_damage damage;
    uint64_t first_tsc, last_tsc; /* of these; 0: none has one */
    uint64_t records, lost;
};

/* --- Finding. --- */

/*
 * The bytes of the original at OFFSET, until the next call: at least a record's, or all that are
 * left. NULL: they cannot be read.
 */
static const uint8_t *look(struct repair *repair, uint64_t offset, uint32_t *ret_bytes)
{
    uint32_t least = (uint32_t)min_u64(repair->bytes - offset, RECORD_MAX_BYTES);
    const uint8_t *p;
    int r = blocks_look(repair->blocks, offset, least, &p, ret_bytes);

    if (r < 0 && repair->error == 0)
        repair->error = r;
    return r < 0 ? NULL : p;
}

/* Whether a window may begin at OFFSET: its header, in *RET_FOUND, has possible values. What was
 * looked at stays. */
static bool read_header(struct repair *repair, uint64_t offset, struct found *ret_found)
{
    uint8_t bytes[WINDOW_HEADER_BYTES];
    struct window_header header;
    int r;

    if (repair->bytes - offset < sizeof(header))
        return false;
    r = blocks_copy(repair->blocks, offset, sizeof(bytes), bytes);
    if (r < 0 && repair->error == 0)
        repair->error = r;
    if (r < 0 || !window_parse(bytes, &header))
        return false;
    *ret_found = (struct found){
        .cpu = header.cpu,
        .begin = offset + sizeof(header),
        .end = offset + sizeof(header) + header.bytes,
        .sound_end = offset + sizeof(header),
    };
    return true;
}

static uint32_t read_word(const uint8_t *p)
{
    uint32_t word;

    memcpy(&word, p, sizeof(word));
    return word;
}

/* What is wrong with the record at OFFSET, in a window that ends at END. *RET_RECORD is there if it
 * is sound. */
static enum trace_file_damage judge_record(struct repair *repair, uint64_t offset, uint64_t end,
                                           const uint8_t **ret_record)
{
    uint32_t bytes = 0;
    const uint8_t *p = offset < repair->bytes ? look(repair, offset, &bytes) : NULL;

    if (!p)
        return TRACE_FILE_TORN_WINDOW;
    *ret_record = p;
    return trace_file_judge_record(p, bytes, end - offset);
}

static void count_record(const uint8_t *record, struct found *found)
{
    uint32_t header = read_word(record);

    if (record_is_wrap(header))
        return;
    if (record_has_tsc(header)) {
        if (found->first_tsc == 0)
            found->first_tsc = record_tsc(record);
        found->last_tsc = max_u64(found->last_tsc, record_tsc(record));
    }
    if (record_is_lost(header))
        found->lost += read_word(record + offsetof(struct lost_record, count));
    else
        found->records++;
}

/* Finds the sound records of a window whose header was read. */
static void walk_records(struct repair *repair, struct found *found)
{
    while (found->sound_end < found->end) {
        const uint8_t *record;

        found->damage = judge_record(repair, found->sound_end, found->end, &record);
        if (found->damage != TRACE_FILE_SOUND)
            break;
        count_record(record, found);
        found->sound_end += record_bytes(read_word(record));
    }
}

/* Whether what stands at OFFSET is a window, not bytes that look like a header. */
static bool is_window(struct repair *repair, uint64_t offset)
{
    struct found found;
    unsigned int records = 0;

    if (!read_header(repair, offset, &found))
        return false;
    while (found.sound_end < found.end && records < RECORDS_ENOUGH) {
        const uint8_t *record;
        enum trace_file_damage damage = judge_record(repair, found.sound_end, found.end, &record);

        if (damage == TRACE_FILE_TORN_WINDOW)
            return records > 0;
        if (damage != TRACE_FILE_SOUND)
            return false;
        found.sound_end += record_bytes(read_word(record));
        records++;
    }
    if (records > 0)
        return true;
    return found.end == repair->bytes ||
           (found.end < repair->bytes && read_header(repair, found.end, &found));
}

/* The first window at OFFSET or after it; the end of the file if there is none. */
static uint64_t find_window(struct repair *repair, uint64_t offset)
{
    const uint32_t header = WINDOW_HEADER;

    while (offset < repair->bytes && repair->bytes - offset >= sizeof(header)) {
        uint32_t bytes;
        const uint8_t *begin = look(repair, offset, &bytes), *p;

        if (!begin)
            break;
        p = memmem(begin, bytes, &header, sizeof(header));
        if (!p) { /* it may begin in the last bytes */
            offset += bytes - (sizeof(header) - 1);
            continue;
        }
        offset += (uint64_t)(p - begin);
        if (is_window(repair, offset))
            return offset;
        offset++;
    }
    return repair->bytes;
}

/* --- Writing. --- */

static int repair_put(struct repair *repair, const void *data, size_t bytes)
{
    repair->result->bytes += bytes;
    return repair->fd < 0 ? 0 : write_all(repair->fd, data, bytes);
}

static int repair_flush(struct repair *repair)
{
    while (repair->from < repair->to) {
        uint32_t bytes;
        const uint8_t *p = look(repair, repair->from, &bytes);
        int r;

        if (!p)
            return repair->error;
        bytes = (uint32_t)min_u64(bytes, repair->to - repair->from);
        r = repair_put(repair, p, bytes);
        if (r < 0)
            return r;
        repair->from += bytes;
    }
    return 0;
}

/* Copies what is from FROM to TO in the original. */
static int repair_copy(struct repair *repair, uint64_t from, uint64_t to)
{
    int r = 0;

    if (from != repair->to) {
        r = repair_flush(repair);
        repair->from = from;
    }
    repair->to = to;
    return r;
}

/* Whether records of CPU may be missing since its last window. */
static bool has_gap(const struct repair *repair, const struct repair_cpu *cpu)
{
    return cpu->has_window && (cpu->has_gap || cpu->gap_seen < repair->nr_gaps);
}

/* A window's header, and with a mark a lost_records record up to UNTIL_TSC. */
static int put_header(struct repair *repair, uint32_t number, uint64_t bytes, bool marked,
                      uint64_t until_tsc)
{
    const struct repair_cpu *cpu = &repair->cpus[number];
    struct window_header header = {WINDOW_HEADER, number, (uint32_t)bytes};
    uint64_t until = max_u64(until_tsc, cpu->last_tsc);
    struct lost_record lost = {
        .header = LOST_RECORD_HEADER,
        .tsc = {(uint32_t)until, (uint32_t)(until >> 32)},
        .count = MARK_COUNT,
        .first_tsc = {(uint32_t)cpu->last_tsc, (uint32_t)(cpu->last_tsc >> 32)},
    };
    int r = repair_flush(repair);

    if (r < 0)
        return r;
    header.bytes += marked ? (uint32_t)sizeof(lost) : 0;
    r = repair_put(repair, &header, sizeof(header));
    if (r < 0 || !marked)
        return r;
    repair->result->marks++;
    repair->result->lost += MARK_COUNT;
    return repair_put(repair, &lost, sizeof(lost));
}

static void count_window(struct repair *repair, const struct found *found)
{
    struct repair_cpu *cpu = &repair->cpus[found->cpu];
    struct repair_result *result = repair->result;

    cpu->has_window = true;
    cpu->has_gap = false;
    cpu->gap_seen = repair->nr_gaps;
    cpu->last_tsc = max_u64(cpu->last_tsc, found->last_tsc);
    result->windows++;
    result->records += found->records;
    result->lost += found->lost;
    if (found->first_tsc > 0 && (result->first_tsc == 0 || found->first_tsc < result->first_tsc))
        result->first_tsc = found->first_tsc;
    result->last_tsc = max_u64(result->last_tsc, found->last_tsc);
}

/* The sound part of FOUND, as a window. */
static int keep_window(struct repair *repair, const struct found *found)
{
    uint64_t bytes = found->sound_end - found->begin, from = found->begin - WINDOW_HEADER_BYTES;
    bool marked =
        has_gap(repair, &repair->cpus[found->cpu]) && bytes <= WINDOW_MAX_BYTES - LOST_RECORD_BYTES;
    int r = 0;

    if (marked || found->sound_end < found->end) {
        r = put_header(repair, found->cpu, bytes, marked, found->first_tsc);
        from = found->begin;
    }
    if (r >= 0)
        r = repair_copy(repair, from, found->sound_end);
    count_window(repair, found);
    return r;
}

/* CPUs whose last windows were followed by a gap. */
static int mark_ends(struct repair *repair)
{
    uint64_t last_tsc = repair->result->last_tsc;
    int r = 0;

    for (uint32_t i = 0; i < SOURCE_CPUS_MAX && r >= 0; i++) {
        if (!has_gap(repair, &repair->cpus[i]))
            continue;
        r = put_header(repair, i, 0, true, last_tsc);
        repair->result->windows++;
    }
    return r;
}

/* --- The pass. --- */

static void note_drop(struct repair *repair, const struct repair_drop *drop)
{
    struct repair_result *result = repair->result;

    if (result->nr_drops < REPAIR_DROPS_MAX)
        result->drops[result->nr_drops] = *drop;
    result->nr_drops++;
    result->dropped_bytes += drop->bytes;
}

/*
 * Drops what is from FROM on up to the next window, whose offset it returns. FOUND is the window in
 * which that begins; NULL: there is none.
 */
static uint64_t drop(struct repair *repair, uint64_t from, enum trace_file_damage damage,
                     const struct found *found)
{
    uint64_t next = find_window(repair, found ? found->sound_end : from);
    struct repair_drop dropped = {.offset = from, .bytes = next - from, .damage = damage};

    dropped.has_cpu = found && next == found->end;
    if (dropped.has_cpu)
        dropped.cpu = found->cpu;
    note_drop(repair, &dropped);
    if (next == repair->bytes)
        return next;
    if (dropped.has_cpu)
        repair->cpus[dropped.cpu].has_gap = true;
    else
        repair->nr_gaps++;
    return next;
}

/* Never TRACE_FILE_NOT_A_TRACE: what follows is looked at, too. */
static enum trace_file_damage judge_no_window(struct repair *repair, uint64_t offset)
{
    uint32_t bytes;
    const uint8_t *p = look(repair, offset, &bytes);

    return p ? trace_file_judge_window(p, bytes, max_u64(offset, 1)) : TRACE_FILE_NO_WINDOW;
}

static int repair_run(struct repair *repair)
{
    uint64_t at = 0;
    int r = 0;

    while (at < repair->bytes && r >= 0 && repair->error >= 0) {
        struct found found;

        if (!read_header(repair, at, &found)) {
            at = drop(repair, at, judge_no_window(repair, at), NULL);
            continue;
        }
        walk_records(repair, &found);
        if (found.damage == TRACE_FILE_SOUND) {
            r = keep_window(repair, &found);
            at = found.end;
            continue;
        }
        if (found.sound_end > found.begin) {
            r = keep_window(repair, &found);
            at = found.sound_end;
        }
        at = drop(repair, at, found.damage, &found);
    }
    if (r >= 0)
        r = repair->error;
    if (r >= 0)
        r = mark_ends(repair);
    return r < 0 ? r : repair_flush(repair);
}

int repair_write(int from, uint64_t bytes, int fd, struct repair_result *ret_result)
{
    struct repair repair = {.bytes = bytes, .fd = fd, .result = ret_result};
    struct stat status;
    int r;

    *ret_result = (struct repair_result){0};
    repair.cpus = calloc(SOURCE_CPUS_MAX, sizeof(*repair.cpus));
    r = repair.cpus ? blocks_new(from, &repair.blocks) : -ENOMEM;
    if (r >= 0)
        r = repair_run(&repair);
    ret_result->is_read = repair.error < 0;
    ret_result->is_shorter =
        repair.error == -EIO && fstat(from, &status) == 0 && (uint64_t)status.st_size < bytes;
    blocks_free(repair.blocks);
    free(repair.cpus);
    return r;
}
