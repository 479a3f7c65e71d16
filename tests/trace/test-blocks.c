// SPDX-License-Identifier: GPL-2.0-or-later
/* Blocks of a file: what is taken stays as it is, memory is bounded, and an end is no fault. */

#include "trace/blocks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define FILE_BYTES ((uint64_t)100 * BLOCK_BYTES + 20)
#define PIECE      5000u

/* Each word of the file is its number. */
static int make_file(void)
{
    char path[] = "/tmp/test-blocks.XXXXXX";
    int fd = mkstemp(path);
    uint32_t words[1024];

    if (fd < 0)
        exit(1);
    (void)unlink(path);
    for (uint64_t at = 0; at < FILE_BYTES; at += sizeof(words)) {
        size_t bytes = min_u64(sizeof(words), FILE_BYTES - at);

        for (size_t i = 0; i < ARRAY_SIZE(words); i++)
            words[i] = (uint32_t)(at / 4 + i);
        if (write(fd, words, bytes) != (ssize_t)bytes)
            exit(1);
    }
    return fd;
}

static bool is_right(const uint8_t *p, uint64_t offset, uint32_t bytes)
{
    uint32_t word;

    for (uint32_t i = 0; p && i < bytes; i += 4) {
        memcpy(&word, p + i, sizeof(word));
        if (word != (offset + i) / 4)
            return false;
    }
    return p;
}

/* NULL: no room, or an error. */
static const uint8_t *take(struct blocks *blocks, uint64_t offset, uint32_t bytes)
{
    const uint8_t *p = NULL;

    return blocks_take(blocks, offset, bytes, &p) > 0 ? p : NULL;
}

static void takes_in_a_row(struct blocks *blocks)
{
    bool right = true;

    for (uint64_t at = 0; at + PIECE <= FILE_BYTES; at += PIECE) {
        const uint8_t *p = take(blocks, at, PIECE);

        right = right && is_right(p, at, PIECE);
        blocks_release(blocks, p);
    }
    CHECK(right);
}

/* More than all blocks hold: those that are in use are left alone, and the rest is refused. */
static void is_bounded(struct blocks *blocks)
{
    const uint8_t *taken[100];
    unsigned int nr = 0;
    bool right = true;

    for (unsigned int i = 0; i < ARRAY_SIZE(taken); i++) {
        taken[i] = take(blocks, (uint64_t)i * BLOCK_BYTES, BLOCK_BYTES);
        nr += taken[i] != NULL;
    }
    CHECK_UINT(nr, 64);
    for (unsigned int i = 0; i < nr; i++) {
        right = right && is_right(taken[i], (uint64_t)i * BLOCK_BYTES, BLOCK_BYTES);
        blocks_release(blocks, taken[i]);
    }
    CHECK(right);
    CHECK(is_right(take(blocks, (uint64_t)99 * BLOCK_BYTES, 8), (uint64_t)99 * BLOCK_BYTES, 8));
}

static void is_shared(struct blocks *blocks)
{
    const uint8_t *first = take(blocks, 400, 100), *second = take(blocks, 500, 4);

    CHECK(first && second == first + 100);
    blocks_release(blocks, first);
    for (uint64_t i = 1; i < 100; i++) /* the second is still in use */
        blocks_release(blocks, take(blocks, i * BLOCK_BYTES, BLOCK_BYTES));
    CHECK(is_right(second, 500, 4));
    blocks_release(blocks, second);
}

static void ends(struct blocks *blocks)
{
    uint8_t other;

    const uint8_t *p;

    CHECK_INT(blocks_take(blocks, FILE_BYTES - 8, 12, &p), -EIO);
    CHECK_INT(blocks_take(blocks, FILE_BYTES, 4, &p), -EIO);
    CHECK(is_right(take(blocks, FILE_BYTES - 8, 8), FILE_BYTES - 8, 8));
    blocks_release(blocks, NULL);
    blocks_release(blocks, &other);
}

/* Of what there is at OFFSET, BYTES can be looked at. */
static void check_look(struct blocks *blocks, uint64_t offset, uint32_t bytes)
{
    uint32_t got = 0;
    const uint8_t *p = NULL;

    CHECK_INT(blocks_look(blocks, offset, 12, &p, &got), 0);
    CHECK(is_right(p, offset, got));
    CHECK_UINT(got, bytes);
}

static void looks_ahead(struct blocks *blocks)
{
    const uint8_t *p;
    uint32_t bytes;

    check_look(blocks, 4000, BLOCK_BYTES);
    check_look(blocks, 4000 + BLOCK_BYTES - 12, 12);
    check_look(blocks, 4000 + BLOCK_BYTES - 8, BLOCK_BYTES);
    check_look(blocks, 0, BLOCK_BYTES);
    check_look(blocks, FILE_BYTES - 12, 12);
    CHECK_INT(blocks_look(blocks, FILE_BYTES - 8, 12, &p, &bytes), -EIO);
}

/* What looks at a header elsewhere leaves what was looked at. */
static void copies(struct blocks *blocks)
{
    const uint8_t *p = NULL;
    uint8_t copy[12];
    uint32_t bytes;

    CHECK_INT(blocks_look(blocks, 4000, 12, &p, &bytes), 0);
    CHECK_INT(blocks_copy(blocks, 4004, 12, copy), 0);
    CHECK(is_right(copy, 4004, 12));
    CHECK_INT(blocks_copy(blocks, FILE_BYTES - 12, 12, copy), 0);
    CHECK(is_right(copy, FILE_BYTES - 12, 12));
    CHECK_INT(blocks_copy(blocks, FILE_BYTES - 8, 12, copy), -EIO);
    CHECK(is_right(p, 4000, bytes));
}

/* A file that was cut off meanwhile is an error. */
static void shrinks(int fd)
{
    struct blocks *blocks;
    const uint8_t *p;
    uint32_t bytes;

    if (!CHECK_INT(blocks_new(fd, &blocks), 0))
        return;
    CHECK(is_right(take(blocks, 0, PIECE), 0, PIECE));
    CHECK_INT(ftruncate(fd, PIECE), 0);
    CHECK_INT(blocks_take(blocks, BLOCK_BYTES, 4, &p), -EIO);
    CHECK_INT(blocks_look(blocks, BLOCK_BYTES, 4, &p, &bytes), -EIO);
    blocks_free(blocks);
}

int main(void)
{
    int fd = make_file();
    struct blocks *blocks;

    if (!CHECK_INT(blocks_new(fd, &blocks), 0))
        return test_end();
    takes_in_a_row(blocks);
    is_bounded(blocks);
    blocks_free(blocks);
    if (!CHECK_INT(blocks_new(fd, &blocks), 0))
        return test_end();
    is_shared(blocks);
    ends(blocks);
    looks_ahead(blocks);
    copies(blocks);
    blocks_free(blocks);
    shrinks(fd);
    (void)close(fd);
    return test_end();
}
