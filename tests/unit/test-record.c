// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The record's layout, against headers as they stand in real traces and against <xen/trace.h>'s own
 * struct t_rec.
 */

#include "common/record.h"

#include "common/util.h"
#include "tests/unit/test.h"

struct header_case {
    const char *name;
    uint32_t header;
    uint32_t event;
    uint32_t bytes;
    bool has_tsc, is_wrap, is_lost;
};

static const struct header_case header_cases[] = {
    {"smallest", 0x00021001, 0x00021001, 4, false, false, false},
    {"largest", 0xf0021001, 0x00021001, 40, true, false, false},
    {"runstate change", 0xb0021001, 0x00021001, 24, true, false, false},
    {"without a TSC", 0x30801003, 0x00801003, 16, false, false, false},
    {"cpu_change", WINDOW_HEADER, TRC_TRACE_CPU_CHANGE, 12, false, false, false},
    {"lost_records", LOST_RECORD_HEADER, TRC_LOST_RECORDS, 28, true, false, true},
    {"lost_records of another size", 0x8001f001, TRC_LOST_RECORDS, 12, true, false, false},
    {"smallest wrap_buffer", 0x0001f002, TRC_TRACE_WRAP_BUFFER, 4, false, true, false},
    {"largest wrap_buffer", 0xf001f002, TRC_TRACE_WRAP_BUFFER, 40, true, true, false},
    {"highest class", 0x0800f001, 0x0800f001, 4, false, false, false},
};

static void test_headers(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(header_cases); i++) {
        const struct header_case *c = &header_cases[i];

        test_case(c->name);
        CHECK_UINT(record_event(c->header), c->event);
        CHECK_UINT(record_bytes(c->header), c->bytes);
        CHECK_INT(record_has_tsc(c->header), c->has_tsc);
        CHECK_INT(record_is_wrap(c->header), c->is_wrap);
        CHECK_INT(record_is_lost(c->header), c->is_lost);
    }
}

/* Xen's struct is the authority on where bits and TSC are. */
static void test_against_xen(void)
{
    for (unsigned int words = 0; words <= 7; words++) {
        for (unsigned int tsc = 0; tsc <= 1; tsc++) {
            struct t_rec rec = {
                .event = 0x00281003, .extra_u32 = words & 7, .cycles_included = tsc & 1};
            uint32_t header;

            test_case("struct t_rec");
            rec.u.cycles.cycles_lo = 0x89abcdef;
            rec.u.cycles.cycles_hi = 0x01234567;
            memcpy(&header, &rec, sizeof(header));
            CHECK_UINT(record_event(header), rec.event);
            CHECK_UINT(record_bytes(header), 4 + tsc * 8 + words * 4);
            CHECK_INT(record_has_tsc(header), tsc);
            if (tsc)
                CHECK_UINT(record_tsc(&rec), UINT64_C(0x0123456789abcdef));
        }
    }
}

/* Every header gives a size that a reader can rely on. */
static void test_sizes(void)
{
    uint64_t random = test_seed();

    test_case("any header");
    for (unsigned int i = 0; i < 1000000; i++) {
        uint32_t bytes = record_bytes((uint32_t)test_random(&random));

        if (bytes < RECORD_MIN_BYTES || bytes > RECORD_MAX_BYTES || bytes % 4 != 0) {
            CHECK_UINT(bytes, RECORD_MIN_BYTES);
            return;
        }
    }
    CHECK(true);
}

int main(void)
{
    test_headers();
    test_against_xen();
    test_sizes();
    return test_end();
}
