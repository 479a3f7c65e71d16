// SPDX-License-Identifier: GPL-2.0-or-later
#include "test-capture.h"

#include <fcntl.h>
#include <string.h>

#include "common/record.h"
#include "numbered.h"

void capture_insert(struct sim *sim, uint32_t cpu, int count)
{
    uint64_t bytes = 0;

    while (count-- > 0)
        CHECK(numbered_insert(sim, cpu, &bytes) != TBUF_DISABLED);
}

struct test_file capture_new(void)
{
    struct sim sim = test_sim_new(2, 1);
    struct test_file file = {0};

    for (int round = 0; round < CAPTURE_WINDOWS / 2; round++) {
        capture_insert(&sim, 0, round == 1 ? 200 : 50);
        capture_insert(&sim, 1, 60);
        (void)test_drain(&sim, 0, UINT32_MAX, &file);
        (void)test_drain(&sim, 1, UINT32_MAX, &file);
    }
    CHECK(sim.shared->cpus[0].counts.told > 0);
    test_sim_free(&sim);
    return file;
}

struct test_file capture_copy(const struct test_file *file, size_t from, size_t to)
{
    struct test_file copy = {0};

    capture_paste(&copy, 0, file->data + from, to - from);
    return copy;
}

void capture_save(const struct test_file *file, const char *path)
{
    _cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && write(fd, file->data, file->bytes) == (ssize_t)file->bytes);
}

uint32_t capture_word(const struct test_file *file, size_t at)
{
    uint32_t word;

    CHECK(at + sizeof(word) <= file->bytes);
    memcpy(&word, file->data + at, sizeof(word));
    return word;
}

void capture_set_word(struct test_file *file, size_t at, uint32_t word)
{
    CHECK(at + sizeof(word) <= file->bytes);
    memcpy(file->data + at, &word, sizeof(word));
}

size_t capture_window(const struct test_file *file, int number)
{
    size_t at = 0;

    while (number-- > 0)
        at += WINDOW_HEADER_BYTES + capture_word(file, at + 8);
    return at;
}

size_t capture_record(const struct test_file *file, int window, int number)
{
    size_t at = capture_window(file, window) + WINDOW_HEADER_BYTES;

    while (number-- > 0)
        at += record_bytes(capture_word(file, at));
    return at;
}

size_t capture_lost(const struct test_file *file)
{
    size_t at = 0;

    while (capture_word(file, at) != LOST_RECORD_HEADER)
        at += 4;
    return at;
}

void capture_cut(struct test_file *file, size_t at, size_t bytes)
{
    CHECK(at + bytes <= file->bytes);
    memmove(file->data + at, file->data + at + bytes, file->bytes - at - bytes);
    file->bytes -= bytes;
}

void capture_paste(struct test_file *file, size_t at, const void *p, size_t bytes)
{
    CHECK(at <= file->bytes);
    file->room = file->bytes + bytes;
    file->data = realloc(file->data, file->room);
    CHECK(file->data);
    memmove(file->data + at + bytes, file->data + at, file->bytes - at);
    memcpy(file->data + at, p, bytes);
    file->bytes += bytes;
}
