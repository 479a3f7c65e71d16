// SPDX-License-Identifier: GPL-2.0-or-later
/* Lengths and descriptor counts of D-Bus messages: of good ones, of each bad one, and of noise. */

#include "daemon/control/wire.h"

#include "common/util.h"
#include "tests/unit/test.h"

/* "l", METHOD_CALL, no flags, version 1, body, serial 1, fields. */
#define HEADER(body0, body2, fields0, fields2)                                                     \
    {                                                                                              \
        'l', 1, 0, 1, body0, 0, body2, 0, 1, 0, 0, 0, fields0, 0, fields2, 0                       \
    }

static const struct {
    const char *name;
    uint8_t header[WIRE_HEADER_BYTES];
    int result;
    size_t bytes;
} lengths[] = {
    {"nothing but a header", HEADER(0, 0, 0, 0), 0, 16},
    {"a body", HEADER(5, 0, 0, 0), 0, 21},
    {"fields are padded to 8 bytes", HEADER(5, 0, 9, 0), 0, 16 + 16 + 5},
    {"big endian", {'B', 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 9}, 0, 16 + 16 + 5},
    {"the longest", {'l', 1, 0, 1, 0xf0, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, 0, 65536},
    {"one byte more", {'l', 1, 0, 1, 0xf1, 0xff, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, -EMSGSIZE, 0},
    {"a body of 1 MiB", HEADER(0, 16, 0, 0), -EMSGSIZE, 0},
    {"fields of 1 MiB", HEADER(0, 0, 0, 16), -EMSGSIZE, 0},
    {"the largest numbers",
     {'l', 1, 0, 1, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff},
     -EMSGSIZE,
     0},
    {"another endianness", {'m', 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, -EBADMSG, 0},
    {"type 0", {'l', 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, -EBADMSG, 0},
    {"type 5", {'l', 5, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, -EBADMSG, 0},
    {"version 2", {'l', 1, 0, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, -EBADMSG, 0},
    {"serial 0", {'l', 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, -EBADMSG, 0},
};

static void test_lengths(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        size_t bytes = 0;

        test_case(lengths[i].name);
        CHECK_INT(wire_read_length(lengths[i].header, &bytes), lengths[i].result);
        CHECK_UINT(bytes, lengths[i].bytes);
    }
}

#define FDS(n)    9, 1, 'u', 0, n, 0, 0, 0
#define MEMBER    3, 1, 's', 0, 2, 0, 0, 0, 'h', 'i', 0, 0, 0, 0, 0, 0 /* padded */
#define SIGNATURE 8, 1, 'g', 0, 1, 's', 0, 0                           /* padded */

static const struct {
    const char *name;
    uint8_t fields[64];
    uint8_t bytes; /* of the fields */
    int result;
    uint32_t count;
} counts[] = {
    {"no field", {0}, 0, 0, 0},
    {"three descriptors", {FDS(3)}, 8, 0, 3},
    {"after a string and a signature", {MEMBER, SIGNATURE, FDS(2)}, 32, 0, 2},
    {"before them", {FDS(2), SIGNATURE, MEMBER}, 27, 0, 2},
    {"a string and a signature alone", {MEMBER, SIGNATURE}, 23, 0, 0},
    {"twice", {FDS(2), FDS(2)}, 16, -EBADMSG, 0},
    {"of another type", {9, 1, 's', 0, 2, 0, 0, 0, 'h', 'i', 0}, 11, -EBADMSG, 0},
    {"a type that no field has",
     {2, 1, 't', 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
     16,
     -EBADMSG,
     0},
    {"a signature of two types", {3, 2, 's', 's', 0, 0, 0, 0}, 8, -EBADMSG, 0},
    {"a signature without an end", {3, 1, 's', 1, 0, 0, 0, 0, 0}, 9, -EBADMSG, 0},
    {"cut after the code", {9}, 1, -EBADMSG, 0},
    {"cut in the signature", {9, 1, 'u'}, 3, -EBADMSG, 0},
    {"cut in the number", {FDS(3)}, 7, -EBADMSG, 0},
    {"a string that reaches beyond", {3, 1, 's', 0, 9, 0, 0, 0, 'h', 'i', 0}, 11, -EBADMSG, 0},
    {"a string without end", {3, 1, 's', 0, 0xff, 0xff, 0xff, 0xff}, 8, -EBADMSG, 0},
    {"a signature that reaches beyond", {8, 1, 'g', 0, 200}, 5, -EBADMSG, 0},
};

static void test_counts(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        uint8_t message[WIRE_HEADER_BYTES + 64] = HEADER(0, 0, 0, 0);
        uint32_t count = 0;

        test_case(counts[i].name);
        message[12] = counts[i].bytes;
        memcpy(message + WIRE_HEADER_BYTES, counts[i].fields, sizeof(counts[i].fields));
        CHECK_INT(wire_count_descriptors(message, WIRE_HEADER_BYTES + counts[i].bytes, &count),
                  counts[i].result);
        CHECK_UINT(count, counts[i].count);
    }
    test_case("fields that are longer than the message");
    {
        uint8_t message[WIRE_HEADER_BYTES] = HEADER(0, 0, 200, 0);
        uint32_t count = 0;

        CHECK_INT(wire_count_descriptors(message, sizeof(message), &count), -EBADMSG);
    }
}

/* Under sanitizers: nothing is read beyond the message. */
static void test_noise(void)
{
    uint64_t seed = test_seed();

    test_case("noise");
    for (unsigned int i = 0; i < 100000; i++) {
        size_t bytes = WIRE_HEADER_BYTES + test_random(&seed) % 64;
        uint8_t *message = malloc(bytes);
        uint32_t count;
        int r;

        if (!message)
            exit(EXIT_FAILURE);
        for (size_t j = 0; j < bytes; j++)
            message[j] = (uint8_t)(test_random(&seed) % 12);
        message[13] = message[14] = message[15] = 0;
        r = wire_count_descriptors(message, bytes, &count);
        if (r != 0 && r != -EBADMSG)
            CHECK_INT(r, -EBADMSG);
        free(message);
    }
    CHECK(true);
}

int main(void)
{
    test_lengths();
    test_counts();
    test_noise();
    return test_end();
}
