// SPDX-License-Identifier: GPL-2.0-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/seek-table.h"
#include "tests/unit/test.h"

#define FRAMES 20u

/* Of frames of 100, 101, ... bytes that hold 1000 each; they take this. */
static uint64_t make(struct seek_table *table)
{
    for (uint32_t i = 0; i < FRAMES; i++)
        CHECK_INT(seek_table_add(table, 100 + i, 1000), 0);
    return table->frames[FRAMES].stored;
}

static void test_round_trip(void)
{
    struct seek_table made = {0}, read;
    uint64_t stored = make(&made);
    size_t bytes;
    uint8_t *p = seek_table_make(&made, &bytes);

    CHECK_INT(bytes, seek_table_bytes(FRAMES));
    CHECK_INT(seek_table_measure(p + bytes - SEEK_TABLE_FOOTER_BYTES, stored + bytes), bytes);
    CHECK_INT(seek_table_parse(p, bytes, stored + bytes, &read), 0);
    CHECK_INT(read.nr_frames, FRAMES);
    for (uint32_t i = 0; i <= FRAMES; i++) {
        CHECK_INT(read.frames[i].stored, made.frames[i].stored);
        CHECK_INT(read.frames[i].plain, (uint64_t)i * 1000);
    }
    CHECK_INT(seek_table_find(&read, 0), 0);
    CHECK_INT(seek_table_find(&read, 999), 0);
    CHECK_INT(seek_table_find(&read, 1000), 1);
    CHECK_INT(seek_table_find(&read, 19999), FRAMES - 1);
    CHECK_INT(seek_table_find(&read, 99999), FRAMES - 1);
    seek_table_done(&read);
    seek_table_done(&made);
    free(p);
}

/* The specification's bytes, by hand. */
static void test_bytes(void)
{
    static const uint8_t expected[] = {
        0x5e, 0x2a, 0x4d, 0x18, 17, 0,    0,    0, /* a skippable frame of 17 bytes */
        5,    0,    0,    0,    7,  0,    0,    0, /* 5 bytes that hold 7 */
        1,    0,    0,    0,    0,  0xb1, 0xea, 0x92, 0x8f,
    };
    struct seek_table table = {0};
    size_t bytes;
    uint8_t *p;

    CHECK_INT(seek_table_add(&table, 5, 7), 0);
    p = seek_table_make(&table, &bytes);
    CHECK_INT(bytes, sizeof(expected));
    CHECK(memcmp(p, expected, sizeof(expected)) == 0);
    CHECK_INT(seek_table_add(&table, UINT64_C(1) << 32, 7), -EFBIG);
    CHECK_INT(seek_table_add(&table, 7, UINT64_C(1) << 32), -EFBIG);
    CHECK_INT(table.nr_frames, 1);
    seek_table_done(&table);
    free(p);
}

/* A byte that is changed, and whether it is a table still. */
static void test_hostile(void)
{
    static const struct {
        const char *name;
        int at; /* below 0: from the end */
        uint8_t value;
    } cases[] = {
        {"the magic of the end", -1, 0},   {"reserved bits", -5, 0x04},
        {"checksums", -5, 0x80},           {"one frame more", -9, FRAMES + 1},
        {"far more frames", -7, 0xff},     {"the magic of the frame", 0, 0x50},
        {"the length of the frame", 4, 0}, {"a frame that is longer", 8, 101},
        {"an empty frame", 8, 0},
    };
    struct seek_table made = {0}, read;
    uint64_t stored = make(&made);
    size_t bytes;
    uint8_t *p = seek_table_make(&made, &bytes);

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t *at = cases[i].at < 0 ? p + bytes + cases[i].at : p + cases[i].at, before = *at;

        test_case(cases[i].name);
        *at = cases[i].value;
        CHECK_INT(seek_table_parse(p, bytes, stored + bytes, &read), -EBADMSG);
        *at = before;
    }
    CHECK_INT(seek_table_parse(p, bytes, stored + bytes + 1, &read), -EBADMSG);
    CHECK_INT(seek_table_measure(p + bytes - SEEK_TABLE_FOOTER_BYTES, bytes - 1), 0);
    seek_table_done(&made);
    free(p);
}

int main(void)
{
    test_case("made and parsed");
    test_round_trip();
    test_case("the bytes of the specification");
    test_bytes();
    test_hostile();
    return test_end();
}
