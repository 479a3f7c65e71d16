// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * One pass over the file with a buffer of fixed size. A window may be as large as a trace buffer
 * (many MiB) and says its size itself, so it is never held as a whole: records are taken one by
 * one, and only the piece of one that the buffer's end cuts is moved to the front before the next
 * read. Every step asks for at most RECORD_MAX_BYTES, which is why a lying size can cost no memory.
 *
 * What a window holds is gathered beside the summary and joined to it when the window has ended
 * soundly: so the summary describes exactly the bytes up to sound_bytes, the place where a damaged
 * file is to be cut.
 *
 * What is sound: common/record.h, and what readers of such files do with anything else. A header
 * word of 0 is never a record (an event without a class passes no mask of Xen's) but is what a
 * crash leaves of blocks that were allocated and not written.
 */

#include "common/trace-file.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/record.h"
#include "common/util.h"

#define BUFFER_BYTES ((size_t)1 << 20) /* large enough that read() costs nothing */

_Static_assert(TRACE_FILE_BUFFER_MIN_BYTES >= RECORD_MAX_BYTES, "one record must fit");

/* The file, and the piece of it that is in memory: buffer[begin] up to buffer[end]. */
struct reader {
    int fd;
    struct unpack *unpack; /* it is compressed; NULL: it is not, or this is not known yet */
    bool has_begun;
    bool at_end;
    size_t begin;
    size_t end;
    size_t buffer_bytes;
    uint64_t offset; /* of buffer[begin] in the file */
    uint64_t least;  /* the size of a file when it was opened, from its beginning here; else 0 */
    unsigned char *buffer;
};

/* The figures that one window adds to the summary. */
struct window {
    unsigned int cpu;
    uint64_t offset; /* of its header */
    uint32_t bytes;  /* without the header */
    uint64_t records;
    uint64_t lost;
    uint64_t lost_records;
    uint64_t first_tsc; /* UINT64_MAX while there is none */
    uint64_t last_tsc;
    uint64_t class_records[EVENT_CLASSES];
};

struct walk {
    struct reader reader;
    trace_file_record_fn fn;
    void *context;
    struct trace_file_summary *summary;
    bool has_window;
    unsigned int last_cpu; /* of the window before, if has_window */
};

/* Reads the next bytes to P, as read(2). */
static ssize_t reader_read(struct reader *reader, void *p, size_t bytes)
{
    ssize_t n;

    if (reader->unpack)
        return unpack_read(reader->unpack, p, bytes);
    do
        n = read(reader->fd, p, bytes);
    while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

/* Reads the first bytes, which decide whether the file is a compressed one. */
static int reader_begin(struct reader *reader)
{
    int r;

    reader->has_begun = true;
    while (reader->end < UNPACK_MAGIC_BYTES) {
        ssize_t n =
            reader_read(reader, reader->buffer + reader->end, reader->buffer_bytes - reader->end);

        if (n < 0)
            return (int)n;
        if (n == 0)
            break;
        reader->end += (size_t)n;
    }
    if (!unpack_is_packed(reader->buffer, reader->end))
        return 0;
    r = unpack_new_fd(reader->fd, reader->buffer, reader->end, &reader->unpack);
    reader->end = 0;
    return r;
}

/* Reads until BYTES are in memory or the file ends. Returns 0 or a negative errno. */
static int reader_fill(struct reader *reader, size_t bytes)
{
    int begun = reader->has_begun ? 0 : reader_begin(reader);

    if (begun < 0)
        return begun;
    if (reader->end - reader->begin >= bytes || reader->at_end)
        return 0;
    memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
    reader->end -= reader->begin;
    reader->begin = 0;

    while (reader->end < bytes) {
        ssize_t r =
            reader_read(reader, reader->buffer + reader->end, reader->buffer_bytes - reader->end);

        if (r < 0)
            return (int)r;
        if (r == 0 && !reader->unpack && reader->offset + reader->end < reader->least)
            return -EIO;
        if (r == 0) {
            reader->at_end = true;
            break;
        }
        reader->end += (size_t)r;
    }
    return 0;
}

static size_t reader_available(const struct reader *reader)
{
    return reader->end - reader->begin;
}

static const unsigned char *reader_bytes(const struct reader *reader)
{
    return reader->buffer + reader->begin;
}

static void reader_skip(struct reader *reader, size_t bytes)
{
    reader->begin += bytes;
    reader->offset += bytes;
}

static bool reader_has_bad_frame(const struct reader *reader)
{
    return reader->unpack && unpack_damage(reader->unpack) != UNPACK_SOUND;
}

/* The damage is reported; the walk ends without an error. */
static int damaged(struct walk *walk, enum trace_file_damage damage, uint64_t offset)
{
    /* A window that is cut off there is the lesser damage. */
    if ((damage == TRACE_FILE_TORN_WINDOW || damage == TRACE_FILE_EMPTY) &&
        reader_has_bad_frame(&walk->reader))
        damage = TRACE_FILE_BAD_FRAME;
    walk->summary->damage = damage;
    walk->summary->damage_offset = offset;
    return 0;
}

static void window_count(struct window *window, const void *record, uint32_t header)
{
    uint32_t classes = record_event(header) >> TRC_CLS_SHIFT;

    if (record_is_wrap(header))
        return;
    if (record_has_tsc(header)) {
        uint64_t tsc = record_tsc(record);

        window->first_tsc = min_u64(window->first_tsc, tsc);
        window->last_tsc = max_u64(window->last_tsc, tsc);
    }
    if (record_is_lost(header)) {
        struct lost_record lost;

        memcpy(&lost, record, sizeof(lost));
        window->lost += lost.count;
        window->lost_records++;
        return;
    }
    window->records++;
    if (classes)
        window->class_records[__builtin_ctz(classes)]++;
}

/* Makes room for CPU in the summary. */
static int summary_add_cpu(struct trace_file_summary *summary, unsigned int cpu)
{
    struct trace_file_cpu *cpus;

    if (cpu < summary->nr_cpus)
        return 0;
    cpus = reallocarray(summary->cpus, cpu + 1, sizeof(*cpus));
    if (!cpus)
        return -ENOMEM;
    summary->cpus = cpus;
    for (; summary->nr_cpus <= cpu; summary->nr_cpus++)
        cpus[summary->nr_cpus] = (struct trace_file_cpu){.first_tsc = UINT64_MAX};
    return 0;
}

/* WINDOW has ended soundly. */
static int walk_add_window(struct walk *walk, const struct window *window)
{
    struct trace_file_summary *summary = walk->summary;
    struct trace_file_cpu *cpu;
    int r;

    r = summary_add_cpu(summary, window->cpu);
    if (r < 0)
        return r;
    cpu = &summary->cpus[window->cpu];
    cpu->present = true;
    cpu->windows++;
    cpu->records += window->records;
    cpu->lost += window->lost;
    cpu->lost_records += window->lost_records;
    cpu->bytes += window->bytes;
    cpu->first_tsc = min_u64(cpu->first_tsc, window->first_tsc);
    cpu->last_tsc = max_u64(cpu->last_tsc, window->last_tsc);

    summary->windows++;
    if (!walk->has_window || window->cpu <= walk->last_cpu)
        summary->rounds++;
    summary->records += window->records;
    summary->lost += window->lost;
    summary->lost_records += window->lost_records;
    summary->first_tsc = min_u64(summary->first_tsc, window->first_tsc);
    summary->last_tsc = max_u64(summary->last_tsc, window->last_tsc);
    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        summary->class_records[i] += window->class_records[i];
    summary->sound_bytes = walk->reader.offset;

    walk->has_window = true;
    walk->last_cpu = window->cpu;
    return 0;
}

enum trace_file_damage trace_file_judge_record(const void *p, uint64_t available, uint64_t left)
{
    uint32_t header;

    if (available < sizeof(header))
        return TRACE_FILE_TORN_WINDOW;
    memcpy(&header, p, sizeof(header));
    if (header == 0)
        return TRACE_FILE_ZEROES;
    if (record_event(header) == TRC_TRACE_CPU_CHANGE)
        return TRACE_FILE_NESTED_WINDOW;
    if (record_bytes(header) > left)
        return TRACE_FILE_RECORD_OVERLAP;
    return record_bytes(header) > available ? TRACE_FILE_TORN_WINDOW : TRACE_FILE_SOUND;
}

enum trace_file_damage trace_file_judge_window(const void *p, uint64_t available, uint64_t offset)
{
    const uint32_t expected = WINDOW_HEADER, zero = 0;
    size_t compared = min_u64(available, sizeof(expected));
    struct window_header header;

    if (memcmp(p, &zero, compared) == 0)
        return TRACE_FILE_ZEROES;
    if (memcmp(p, &expected, compared) != 0)
        return offset == 0 ? TRACE_FILE_NOT_A_TRACE : TRACE_FILE_NO_WINDOW;
    if (available < WINDOW_HEADER_BYTES)
        return TRACE_FILE_TORN_WINDOW;
    return window_parse(p, &header) ? TRACE_FILE_SOUND : TRACE_FILE_NO_WINDOW;
}

/* The records of WINDOW, which the reader stands at. Ends soundly, with damage, or with an error.
 */
static int walk_records(struct walk *walk, struct window *window)
{
    struct reader *reader = &walk->reader;
    uint32_t left = window->bytes;

    while (left > 0) {
        enum trace_file_damage damage;
        uint32_t header, bytes;
        int r;

        r = reader_fill(reader, RECORD_MAX_BYTES);
        if (r < 0)
            return r;
        damage = trace_file_judge_record(reader_bytes(reader), reader_available(reader), left);
        if (damage != TRACE_FILE_SOUND)
            return damaged(walk, damage,
                           damage == TRACE_FILE_TORN_WINDOW ? window->offset : reader->offset);
        memcpy(&header, reader_bytes(reader), sizeof(header));
        bytes = record_bytes(header);
        window_count(window, reader_bytes(reader), header);
        if (walk->fn) {
            r = walk->fn(walk->context, window->cpu, reader_bytes(reader), bytes);
            if (r != 0)
                return r;
        }
        reader_skip(reader, bytes);
        left -= bytes;
    }
    return walk_add_window(walk, window);
}

/* One window from its header on. Ends soundly, with damage, or with an error. */
static int walk_window(struct walk *walk)
{
    struct reader *reader = &walk->reader;
    struct window_header header;
    struct window window = {.offset = reader->offset, .first_tsc = UINT64_MAX};
    enum trace_file_damage damage =
        trace_file_judge_window(reader_bytes(reader), reader_available(reader), reader->offset);

    if (damage != TRACE_FILE_SOUND)
        return damaged(walk, damage, reader->offset);
    memcpy(&header, reader_bytes(reader), sizeof(header));
    window.cpu = header.cpu;
    window.bytes = header.bytes;
    reader_skip(reader, sizeof(header));
    return walk_records(walk, &window);
}

static int walk_windows(struct walk *walk)
{
    struct trace_file_summary *summary = walk->summary;

    while (summary->damage == TRACE_FILE_SOUND) {
        int r = reader_fill(&walk->reader, WINDOW_HEADER_BYTES);

        if (r < 0)
            return r;
        if (reader_available(&walk->reader) == 0 && reader_has_bad_frame(&walk->reader))
            return damaged(walk, TRACE_FILE_BAD_FRAME, walk->reader.offset);
        if (reader_available(&walk->reader) == 0)
            return summary->sound_bytes > 0 ? 0 : damaged(walk, TRACE_FILE_EMPTY, 0);
        r = walk_window(walk);
        if (r != 0)
            return r;
    }
    return 0;
}

/* Bytes of FD from START on; after a damage they have not been read. */
static uint64_t file_bytes(const struct reader *reader, off_t start)
{
    uint64_t bytes = reader->offset + reader_available(reader);
    struct stat st;

    if (reader->unpack)
        return bytes;
    if (start >= 0 && fstat(reader->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > start)
        bytes = max_u64(bytes, (uint64_t)(st.st_size - start));
    return bytes;
}

static void summary_add_packing(struct trace_file_summary *summary, const struct reader *reader,
                                off_t start)
{
    struct stat st;

    if (!reader->unpack)
        return;
    summary->is_packed = true;
    summary->packing = unpack_damage(reader->unpack);
    summary->has_seek_table = unpack_can_seek(reader->unpack);
    summary->stored_bytes = unpack_stored_bytes(reader->unpack);
    if (start >= 0 && fstat(reader->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > start)
        summary->stored_bytes = (uint64_t)(st.st_size - start);
}

/* While counting, "no TSC" is the highest one; outside it is 0. */
static void summary_finish(struct trace_file_summary *summary)
{
    if (summary->first_tsc == UINT64_MAX)
        summary->first_tsc = summary->last_tsc;
    for (unsigned int i = 0; i < summary->nr_cpus; i++) {
        if (summary->cpus[i].first_tsc == UINT64_MAX)
            summary->cpus[i].first_tsc = summary->cpus[i].last_tsc;
    }
}

int trace_file_walk_buffered(int fd, size_t buffer_bytes, trace_file_record_fn fn, void *context,
                             struct trace_file_summary **ret_summary)
{
    struct walk walk = {
        .reader = {.fd = fd, .buffer_bytes = buffer_bytes},
        .fn = fn,
        .context = context,
    };
    off_t start = lseek(fd, 0, SEEK_CUR); /* fails on a pipe, where it is not needed */
    struct stat st;
    int r = -ENOMEM;

    assert(buffer_bytes >= TRACE_FILE_BUFFER_MIN_BYTES);

    if (start >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > start)
        walk.reader.least = (uint64_t)(st.st_size - start);
    walk.summary = calloc(1, sizeof(*walk.summary));
    walk.reader.buffer = malloc(buffer_bytes);
    if (walk.summary && walk.reader.buffer) {
        walk.summary->first_tsc = UINT64_MAX;
        r = walk_windows(&walk);
    }
    free(walk.reader.buffer);
    if (r == 0) {
        walk.summary->bytes = file_bytes(&walk.reader, start);
        summary_add_packing(walk.summary, &walk.reader, start);
        summary_finish(walk.summary);
        *ret_summary = TAKE_PTR(walk.summary);
    }
    trace_file_summary_free(walk.summary);
    unpack_free(walk.reader.unpack);
    return r;
}

int trace_file_walk(int fd, trace_file_record_fn fn, void *context,
                    struct trace_file_summary **ret_summary)
{
    return trace_file_walk_buffered(fd, BUFFER_BYTES, fn, context, ret_summary);
}

int trace_file_scan(int fd, struct trace_file_summary **ret_summary)
{
    return trace_file_walk(fd, NULL, NULL, ret_summary);
}

struct trace_file_summary *trace_file_summary_free(struct trace_file_summary *summary)
{
    if (summary)
        free(summary->cpus);
    free(summary);
    return NULL;
}

const char *trace_file_damage_text(enum trace_file_damage damage)
{
    switch (damage) {
    case TRACE_FILE_SOUND:
        return "every window is whole";
    case TRACE_FILE_EMPTY:
        return "the file is empty";
    case TRACE_FILE_NOT_A_TRACE:
        return "the file is not a Xen trace";
    case TRACE_FILE_TORN_WINDOW:
        return "the last window is cut off";
    case TRACE_FILE_ZEROES:
        return "a window or a record is overwritten with zero bytes";
    case TRACE_FILE_NO_WINDOW:
        return "there is no window where one should begin";
    case TRACE_FILE_RECORD_OVERLAP:
        return "a record reaches beyond the end of its window";
    case TRACE_FILE_NESTED_WINDOW:
        return "a window begins inside another";
    case TRACE_FILE_BAD_FRAME:
        return "a compressed frame is cut off or damaged";
    }
    return "the damage is unknown";
}

const char *trace_file_damage_kind(enum trace_file_damage damage)
{
    switch (damage) {
    case TRACE_FILE_SOUND:
        return NULL;
    case TRACE_FILE_EMPTY:
        return "empty";
    case TRACE_FILE_NOT_A_TRACE:
        return "not-a-trace";
    case TRACE_FILE_TORN_WINDOW:
        return "torn-window";
    case TRACE_FILE_ZEROES:
        return "zeroes";
    case TRACE_FILE_NO_WINDOW:
        return "no-window";
    case TRACE_FILE_NESTED_WINDOW:
        return "nested-window";
    case TRACE_FILE_RECORD_OVERLAP:
        return "record-overlap";
    case TRACE_FILE_BAD_FRAME:
        return "bad-frame";
    }
    return "unknown";
}
