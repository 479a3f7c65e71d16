/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Trace files built in memory, for the tests of common/trace-file.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/record.h"
#include "common/trace-file.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define FILE_MAX_BYTES ((size_t)8 << 20)
#define BUFFER_BYTES   ((size_t)1 << 20) /* as trace_file_scan() has it */

#define RECORD_40 0xf0021001u /* the header of a record of 40 bytes */

/* A file that is being built. */
struct file {
    size_t length;
    size_t window; /* where the last window's header is */
    unsigned char bytes[FILE_MAX_BYTES];
};

static inline void summary_freep(struct trace_file_summary **summary)
{
    *summary = trace_file_summary_free(*summary);
}

#define _cleanup_summary_ _cleanup_(summary_freep)

/* A descriptor that reads LENGTH bytes, from its beginning. */
static inline int open_bytes(const void *bytes, size_t length)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);

    if (fd < 0 || write(fd, bytes, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) != 0) {
        perror("memfd");
        exit(EXIT_FAILURE);
    }
    return fd;
}

static inline int scan_bytes(const void *bytes, size_t length, size_t buffer_bytes,
                             trace_file_record_fn fn, void *context,
                             struct trace_file_summary **ret_summary)
{
    _cleanup_fd_ int fd = open_bytes(bytes, length);

    return trace_file_walk_buffered(fd, buffer_bytes, fn, context, ret_summary);
}

static inline void put_words(struct file *file, const uint32_t *words, size_t count)
{
    memcpy(file->bytes + file->length, words, count * 4);
    file->length += count * 4;
}

static inline void begin_window(struct file *file, uint32_t cpu)
{
    const uint32_t words[] = {WINDOW_HEADER, cpu, 0};

    file->window = file->length;
    put_words(file, words, ARRAY_SIZE(words));
}

/* A record whose words after the TSC are all FILL; the window's size grows by it. */
static inline void put_record(struct file *file, uint32_t header, uint64_t tsc, uint32_t fill)
{
    uint32_t words[RECORD_MAX_BYTES / 4] = {header, fill, fill, fill, fill,
                                            fill,   fill, fill, fill, fill};
    uint32_t bytes;

    if (record_has_tsc(header)) {
        words[1] = (uint32_t)tsc;
        words[2] = (uint32_t)(tsc >> 32);
    }
    put_words(file, words, record_bytes(header) / 4);
    bytes = (uint32_t)(file->length - file->window - WINDOW_HEADER_BYTES);
    memcpy(file->bytes + file->window + 8, &bytes, sizeof(bytes));
}

/* ROUNDS rounds over CPUs with records of all sizes, some lost, some filler. */
static inline void put_rounds(struct file *file, unsigned int rounds, unsigned int records)
{
    static const uint32_t headers[] = {0xb0021001, LOST_RECORD_HEADER, 0x00801003, 0xf0201001,
                                       0x8002f002, 0x3001f002,         0x7010f001, 0xa0081002};
    uint64_t tsc = 1000;

    for (unsigned int round = 0; round < rounds; round++) {
        for (uint32_t cpu = 0; cpu < 4; cpu++) {
            begin_window(file, cpu);
            for (unsigned int i = 0; cpu != 2 && i < records + cpu; i++)
                put_record(file, headers[(i + cpu) % ARRAY_SIZE(headers)], tsc++, i);
        }
    }
}

static inline struct file *file_new(void)
{
    struct file *file = calloc(1, sizeof(*file));

    if (!file)
        exit(EXIT_FAILURE);
    return file;
}
