// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/walk.h"

#include "common/record.h"
#include "common/util.h"
#include "tests/unit/test.h"

#define MAX_RECORDS 64u

#define SCHED 0x80021001u /* with a TSC: 12 bytes */
#define HVM   0x10082003u /* without, one word: 8 bytes */
#define GUEST 0xf0801001u /* with a TSC and 7 words: 40 bytes */
#define LOST  LOST_RECORD_HEADER
#define WRAP  0x3001f002u /* 16 bytes */
#define BARE  0x00021001u /* 4 bytes */

/* A window that is being built; the word after the header (and the TSC) is the record's number. */
struct window {
    uint32_t bytes;
    uint32_t records;
    uint32_t offsets[MAX_RECORDS + 1];
    uint8_t data[MAX_RECORDS * RECORD_MAX_BYTES];
};

static void put_word(struct window *window, uint32_t word)
{
    memcpy(window->data + window->bytes, &word, sizeof(word));
    window->bytes += 4;
}

static void put(struct window *window, uint32_t header)
{
    uint32_t end = window->bytes + record_bytes(header);

    put_word(window, header);
    if (record_has_tsc(header)) {
        put_word(window, 1000 + window->records);
        put_word(window, 7);
    }
    while (window->bytes < end)
        put_word(window, 100 + window->records);
    window->offsets[++window->records] = window->bytes;
}

static void put_lost(struct window *window, uint32_t count)
{
    struct lost_record lost = {
        .header = LOST,
        .tsc = {5 + window->records, 5},
        .count = count,
        .first_tsc = {4 + window->records, 5},
    };

    memcpy(window->data + window->bytes, &lost, sizeof(lost));
    window->bytes += LOST_RECORD_BYTES;
    window->offsets[++window->records] = window->bytes;
}

static struct walk_filter filter_of(uint32_t mask)
{
    struct event_set set = {0};
    struct walk_filter filter;

    event_set_add_mask(&set, mask);
    walk_filter_init(&filter, &set);
    return filter;
}

static void test_filter(void)
{
    uint64_t random = test_seed();

    test_case("filter");
    for (int round = 0; round < 8; round++) {
        struct event_set set;
        struct walk_filter filter;
        uint32_t wrong = 0;

        for (unsigned int i = 0; i < EVENT_CLASSES; i++)
            set.subclasses[i] = (uint8_t)(test_random(&random) & test_random(&random) & 0xf);
        walk_filter_init(&filter, &set);
        for (uint32_t i = 16; i < 65536; i++) { /* class and subclass; none is without a class */
            uint32_t header = i << TRC_SUBCLS_SHIFT | 0xabc;
            uint64_t classes[EVENT_CLASSES] = {0};
            struct walk_result result;

            walk_window((const uint8_t *)&header, sizeof(header), true, &filter, NULL, classes,
                        &result);
            wrong += result.records != event_set_has(&set, header);
        }
        CHECK_UINT(wrong, 0);
    }
}

/* --- Compaction. --- */

struct kept_case {
    const char *name;
    const char *records; /* s: sched, h: hvm, g: guest, l: lost, w: wrap */
    uint32_t mask;
    const char *kept;
    uint64_t nr_records;
    uint64_t lost;
    uint64_t first_tsc; /* its number behind 1000; 0: none */
    uint64_t last_tsc;
};

#define TSC(n)      (UINT64_C(7) << 32 | (1000 + (n)))
#define LOST_TSC(n) (UINT64_C(5) << 32 | (uint64_t)(n))

static const struct kept_case kept_cases[] = {
    {"nothing", "", 0x0002f000, "", 0, 0, 0, 0},
    {"all kept", "ssss", 0x0002f000, "ssss", 4, 0, TSC(0), TSC(3)},
    {"none kept", "hghg", 0x0002f000, "", 0, 0, 0, 0},
    {"alternating", "shshsgs", 0x0002f000, "ssss", 4, 0, TSC(0), TSC(6)},
    {"first only", "shhhg", 0x0002f000, "s", 1, 0, TSC(0), TSC(0)},
    {"last only", "hhhgs", 0x0002f000, "s", 1, 0, TSC(4), TSC(4)},
    {"all but the first", "gsss", 0x0002f000, "sss", 3, 0, TSC(1), TSC(3)},
    {"all but the last", "sssg", 0x0002f000, "sss", 3, 0, TSC(0), TSC(2)},
    {"runs", "sshhhsssghss", 0x0002f000, "sssssss", 7, 0, TSC(0), TSC(11)},
    {"lost stays", "hlhl", 0x0002f000, "ll", 0, 14, 0, 0},
    {"wrap stays and is no record", "wswgw", 0x0002f000, "wsww", 1, 0, TSC(1), TSC(1)},
    {"lost and wrap past any filter", "slw", 0x0008f000, "lw", 0, 7, 0, 0},
    {"no TSC in what is kept", "hh", 0x0008f000, "hh", 2, 0, 0, 0},
    {"another subclass", "shs", 0x0008f000, "h", 1, 0, 0, 0},
    {"TSCs of what is kept only", "gsg", 0x0002f000, "s", 1, 0, TSC(1), TSC(1)},
};

static void put_letter(struct window *window, char letter)
{
    switch (letter) {
    case 's':
        put(window, SCHED);
        break;
    case 'h':
        put(window, HVM);
        break;
    case 'g':
        put(window, GUEST);
        break;
    case 'w':
        put(window, WRAP);
        break;
    case 'l':
        put_lost(window, 7);
        break;
    }
}

/* What ought to be left: each record of WINDOW that KEPT names, one after the other. */
static uint32_t expect_kept(const struct window *window, const struct kept_case *c,
                            uint8_t *expected)
{
    uint32_t bytes = 0;

    for (uint32_t i = 0, k = 0; i < window->records; i++) {
        uint32_t length = window->offsets[i + 1] - window->offsets[i];

        if (c->kept[k] != c->records[i])
            continue;
        k++;
        memcpy(expected + bytes, window->data + window->offsets[i], length);
        bytes += length;
    }
    return bytes;
}

/* Each loss began at 4 and is told at 5, behind its number. */
static void check_lost_tscs(const struct kept_case *c, const struct walk_result *result)
{
    const char *first = strchr(c->records, 'l'), *last = strrchr(c->records, 'l');

    CHECK_UINT(result->lost_first_tsc, first ? LOST_TSC(4 + (first - c->records)) : 0);
    CHECK_UINT(result->lost_last_tsc, last ? LOST_TSC(5 + (last - c->records)) : 0);
}

static void test_kept(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(kept_cases); i++) {
        const struct kept_case *c = &kept_cases[i];
        struct walk_filter filter = filter_of(c->mask);
        uint64_t classes[EVENT_CLASSES] = {0};
        struct window window = {0};
        uint8_t expected[sizeof(window.data)];
        struct walk_result result;
        uint32_t bytes;

        test_case(c->name);
        for (const char *letter = c->records; *letter; letter++)
            put_letter(&window, *letter);
        bytes = expect_kept(&window, c, expected);
        walk_window(window.data, window.bytes, true, &filter, window.data, classes, &result);
        CHECK_UINT(result.consumed_bytes, window.bytes);
        CHECK_UINT(result.kept_bytes, bytes);
        CHECK(memcmp(window.data, expected, bytes) == 0);
        CHECK_UINT(result.records, c->nr_records);
        CHECK_UINT(result.lost, c->lost);
        CHECK_UINT(result.first_tsc, c->first_tsc);
        CHECK_UINT(result.last_tsc, c->last_tsc);
        check_lost_tscs(c, &result);
        CHECK(!result.broken);
    }
}

/* --- Kept elsewhere. --- */

/* A window of random records, cut at a random word. */
static uint32_t random_window(uint64_t *random, struct window *window)
{
    static const char letters[] = "sshgwl";
    uint32_t count = (uint32_t)(test_random(random) % MAX_RECORDS);

    *window = (struct window){0};
    for (uint32_t i = 0; i < count; i++)
        put_letter(window, letters[test_random(random) % (sizeof(letters) - 1)]);
    if (test_random(random) % 2)
        return window->bytes;
    return (uint32_t)(test_random(random) % (window->bytes / 4 + 1)) * 4;
}

static bool results_equal(const struct walk_result *a, const struct walk_result *b)
{
    return a->consumed_bytes == b->consumed_bytes && a->kept_bytes == b->kept_bytes &&
           a->records == b->records && a->lost == b->lost && a->first_tsc == b->first_tsc &&
           a->last_tsc == b->last_tsc && a->lost_first_tsc == b->lost_first_tsc &&
           a->lost_last_tsc == b->lost_last_tsc && a->broken == b->broken;
}

/* Kept in place, elsewhere, or only counted: the same comes of it, and nothing else is touched. */
static void test_elsewhere(void)
{
    static const uint32_t masks[] = {0, 0x0002f000, 0x0008f000, 0x008ff000, 0x0fffffff & ~0xfffu};
    uint64_t random = test_seed();

    test_case("kept elsewhere");
    for (int i = 0; i < 2000; i++) {
        struct walk_filter filter = filter_of(masks[test_random(&random) % ARRAY_SIZE(masks)]);
        uint64_t classes[3][EVENT_CLASSES] = {0};
        bool whole = test_random(&random) % 2;
        struct window window, in_place;
        struct walk_result results[3];
        uint8_t kept[sizeof(window.data) + 1];
        uint32_t bytes = random_window(&random, &window);

        in_place = window;
        walk_window(in_place.data, bytes, whole, &filter, in_place.data, classes[0], &results[0]);
        memset(kept, 0xee, sizeof(kept));
        walk_window(window.data, bytes, whole, &filter, kept, classes[1], &results[1]);
        CHECK(results_equal(&results[0], &results[1]));
        CHECK(memcmp(kept, in_place.data, results[1].kept_bytes) == 0);
        CHECK_UINT(kept[bytes], 0xee);

        in_place = window;
        walk_window(window.data, bytes, whole, &filter, NULL, classes[2], &results[2]);
        CHECK(results_equal(&results[0], &results[2]));
        CHECK(memcmp(window.data, in_place.data, sizeof(window.data)) == 0);
        CHECK(memcmp(classes[0], classes[1], sizeof(classes[0])) == 0);
        CHECK(memcmp(classes[0], classes[2], sizeof(classes[0])) == 0);
    }
}

/* --- Records of every kind and shape. --- */

/* One record after the other, from what event-set.h and record.h say alone. */
static uint32_t expect_random(const struct window *window, const struct event_set *set,
                              uint8_t *kept, uint64_t *class_records,
                              struct walk_result *ret_result)
{
    *ret_result = (struct walk_result){.consumed_bytes = window->bytes};
    for (uint32_t i = 0; i < window->records; i++) {
        const uint8_t *p = window->data + window->offsets[i];
        uint32_t length = window->offsets[i + 1] - window->offsets[i];
        uint32_t header, classes;

        memcpy(&header, p, sizeof(header));
        if (!event_set_has(set, record_event(header)))
            continue;
        classes = record_event(header) >> 16;
        class_records[classes ? __builtin_ctz(classes) : 0]++;
        ret_result->records++;
        if (record_has_tsc(header) && !ret_result->first_tsc)
            ret_result->first_tsc = record_tsc(p);
        if (record_has_tsc(header))
            ret_result->last_tsc = record_tsc(p);
        memcpy(kept + ret_result->kept_bytes, p, length);
        ret_result->kept_bytes += length;
    }
    return ret_result->kept_bytes;
}

/* Any event but those about tracing itself; most are in one class, as Xen's are, none in none. */
static uint32_t random_header(uint64_t *random)
{
    uint32_t header = (uint32_t)test_random(random);

    if (test_random(random) % 8)
        header = (header & 0xf000ffff) | 0x10000u << test_random(random) % EVENT_CLASSES;
    if ((header & 0x0fff0000) == 0)
        header |= 0x00020000;
    return (header & 0x0ffff000) == 0x0001f000 ? header ^ 0x1000 : header;
}

/* The fast ways past what is usual say the same as a slow one, whatever comes. */
static void test_random_records(void)
{
    uint64_t random = test_seed();

    test_case("records of every kind");
    for (int i = 0; i < 4000; i++) {
        uint64_t classes[3][EVENT_CLASSES] = {0};
        struct window window = {0}, in_place;
        struct walk_result expected, result;
        uint8_t kept[2][sizeof(window.data)];
        struct walk_filter filter;
        struct event_set set;
        uint32_t bytes;

        for (unsigned int n = 0; n < EVENT_CLASSES; n++)
            set.subclasses[n] =
                (uint8_t)(test_random(&random) % 4 ? 0xf : test_random(&random) & 0xf);
        walk_filter_init(&filter, &set);
        for (uint32_t n = (uint32_t)(test_random(&random) % MAX_RECORDS); n > 0; n--)
            put(&window, random_header(&random));
        bytes = expect_random(&window, &set, kept[0], classes[0], &expected);

        in_place = window;
        walk_window(in_place.data, window.bytes, true, &filter, in_place.data, classes[1], &result);
        CHECK(results_equal(&result, &expected));
        CHECK(memcmp(in_place.data, kept[0], bytes) == 0);
        walk_window(window.data, window.bytes, true, &filter, kept[1], classes[2], &result);
        CHECK(results_equal(&result, &expected));
        CHECK(memcmp(kept[1], kept[0], bytes) == 0);
        CHECK(memcmp(classes[1], classes[0], sizeof(classes[0])) == 0);
        CHECK(memcmp(classes[2], classes[0], sizeof(classes[0])) == 0);
    }
}

/* --- Where a window ends. --- */

/* Every cut of a window, in words: inside a record, or between two. */
static void test_cuts(void)
{
    struct walk_filter filter = filter_of(0x0faff000);
    struct window window = {0};

    put(&window, SCHED);
    put_lost(&window, 3);
    put(&window, BARE);
    put(&window, GUEST);
    put(&window, HVM);
    for (uint32_t bytes = 0, i = 0; bytes <= window.bytes; bytes += 4) {
        for (int whole = 0; whole < 2; whole++) {
            uint64_t classes[EVENT_CLASSES] = {0};
            struct window cut = window;
            struct walk_result result;

            test_case(whole ? "broken framing" : "cut to fit");
            while (i < window.records && window.offsets[i + 1] <= bytes)
                i++;
            walk_window(cut.data, bytes, whole, &filter, cut.data, classes, &result);
            CHECK_UINT(result.consumed_bytes, window.offsets[i]);
            CHECK_UINT(result.kept_bytes, window.offsets[i]);
            CHECK(result.broken == (whole && bytes != window.offsets[i]));
            CHECK(memcmp(cut.data, window.data, window.bytes) == 0);
        }
    }
}

struct classless_case {
    const char *name;
    uint32_t before; /* good records */
    uint32_t header;
    uint32_t behind;
};

static const struct classless_case classless_cases[] = {
    {"a zero word first", 0, 0, 20},
    {"a zero word last", 20, 0, 0},
    {"a zero word in between", 20, 0, 20},
    {"only a subclass", 20, 0x0000f001, 20},
    {"only a TSC and extra words", 20, 0xf0000000, 20},
};

/* Xen makes none: what was good before is kept, and the rest is no framing, asked for or not. */
static void test_classless(void)
{
    static const uint32_t masks[] = {0x0002f000, 0x0008f000, 0x0ffff000};

    for (size_t i = 0; i < ARRAY_SIZE(classless_cases) * ARRAY_SIZE(masks) * 6; i++) {
        const struct classless_case *c = &classless_cases[i % ARRAY_SIZE(classless_cases)];
        size_t way = i / ARRAY_SIZE(classless_cases) / ARRAY_SIZE(masks);
        struct walk_filter filter =
            filter_of(masks[i / ARRAY_SIZE(classless_cases) % ARRAY_SIZE(masks)]);
        uint64_t classes[EVENT_CLASSES] = {0};
        uint8_t elsewhere[MAX_RECORDS * RECORD_MAX_BYTES];
        struct window window = {0};
        struct walk_result result;
        uint32_t good;

        test_case(c->name);
        for (uint32_t n = 0; n < c->before; n++)
            put(&window, SCHED);
        good = window.bytes;
        put(&window, c->header);
        for (uint32_t n = 0; n < c->behind; n++)
            put(&window, SCHED);
        walk_window(window.data, window.bytes, way % 2, &filter,
                    way / 2 == 0   ? window.data
                    : way / 2 == 1 ? elsewhere
                                   : NULL,
                    classes, &result);
        CHECK(result.broken);
        CHECK_UINT(result.consumed_bytes, good);
        CHECK_UINT(result.records, filter.passes[1] & 1u << 1 ? c->before : 0); /* of SCHED */
    }
}

/* Counted by their lowest class bit, and added to what is there. */
static void test_classes(void)
{
    struct walk_filter filter = filter_of(0x0ffff000);
    uint64_t classes[EVENT_CLASSES] = {[1] = 10};
    struct window window = {0};
    struct walk_result result;

    test_case("classes");
    put(&window, SCHED);
    put(&window, SCHED);
    put(&window, HVM);
    put(&window, 0x000a1001); /* sched and hvm */
    put(&window, 0x0001f003); /* gen */
    put(&window, 0x08001001); /* the highest bit */
    put(&window, GUEST);
    put_lost(&window, UINT32_MAX);
    put_lost(&window, UINT32_MAX);
    put(&window, WRAP);
    walk_window(window.data, window.bytes, true, &filter, window.data, classes, &result);
    CHECK_UINT(result.records, 7);
    CHECK_UINT(result.lost, UINT64_C(2) * UINT32_MAX);
    CHECK_UINT(classes[0], 1);
    CHECK_UINT(classes[1], 10 + 3);
    CHECK_UINT(classes[3], 1);
    CHECK_UINT(classes[7], 1);
    CHECK_UINT(classes[11], 1);
}

/* --- What is older than a sink. --- */

struct older_case {
    const char *name;
    const char *records; /* as in kept_case */
    uint32_t from;       /* the record whose TSC it begins at; a loss's TSC is far below */
    uint32_t passed;     /* records */
    bool found;
};

static const struct older_case older_cases[] = {
    {"nothing", "", 0, 0, false},
    {"all are older", "sss", 9, 3, false},
    {"none is older", "sss", 0, 0, true},
    {"some are older", "ssss", 2, 2, true},
    {"those without a TSC, and an older one behind them", "hshss", 4, 4, true},
    {"those without a TSC, and a newer one behind them", "shhshs", 3, 1, true},
    {"those without a TSC, and none behind them", "shh", 9, 1, true},
    {"only those without a TSC", "hh", 9, 0, true},
    {"wrap records", "wsww", 9, 2, false},
    {"a loss is older", "slls", 3, 3, true},
    {"what comes later does not matter", "sshlw", 1, 1, true},
};

static void test_older(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(older_cases); i++) {
        const struct older_case *c = &older_cases[i];
        struct window window = {0};
        bool found = !c->found;

        test_case(c->name);
        for (const char *letter = c->records; *letter; letter++)
            put_letter(&window, *letter);
        CHECK_UINT(walk_pass_older(window.data, window.bytes, TSC(c->from), 0, &found),
                   window.offsets[c->passed]);
        CHECK(found == c->found);
    }
}

/* A loss counts by when it began, and by when it was told. */
static void test_older_losses(void)
{
    struct window window = {0};
    bool found;

    test_case("losses");
    put_lost(&window, 3); /* from LOST_TSC(4), told at LOST_TSC(5) */
    CHECK_UINT(walk_pass_older(window.data, window.bytes, LOST_TSC(6), 0, &found), window.bytes);
    CHECK(!found);
    CHECK_UINT(walk_pass_older(window.data, window.bytes, LOST_TSC(5), LOST_TSC(5), &found),
               window.bytes);
    CHECK(!found);
    CHECK_UINT(walk_pass_older(window.data, window.bytes, LOST_TSC(5), LOST_TSC(4), &found), 0);
    CHECK(found);

    test_case("another clock");
    put(&window, SCHED);
    CHECK_UINT(walk_pass_older(window.data, window.bytes, TSC(1) + WALK_FOREIGN_TICKS, 0, &found),
               0);
    CHECK(found);

    test_case("no records");
    window = (struct window){0};
    put(&window, SCHED);
    put_word(&window, 0);
    put(&window, SCHED);
    CHECK_UINT(walk_pass_older(window.data, window.bytes, TSC(5), 0, &found), window.offsets[1]);
    CHECK(!found);
}

/* --- Padding. --- */

static void test_padding(void)
{
    struct walk_filter filter = filter_of(0);

    test_case("padding");
    for (uint32_t bytes = 0; bytes <= 4096; bytes += 4) {
        uint64_t classes[EVENT_CLASSES] = {0};
        uint8_t padding[4096 + 4];
        struct walk_result result;
        uint32_t records = 0, wraps = 0;

        memset(padding, 0xee, sizeof(padding));
        walk_write_padding(padding, bytes);
        CHECK_UINT(padding[bytes], 0xee);
        for (uint32_t offset = 0, header; offset < bytes; offset += record_bytes(header)) {
            memcpy(&header, padding + offset, sizeof(header));
            records++;
            wraps += record_is_wrap(header) && !record_has_tsc(header);
        }
        CHECK_UINT(wraps, records);
        walk_window(padding, bytes, true, &filter, padding, classes, &result);
        CHECK(!result.broken && result.records == 0 && result.lost == 0);
        CHECK_UINT(result.kept_bytes, bytes);
    }
}

/* --- Several filters, and pieces. --- */

#define PARTS_MAX 6u

/* Some records, of every kind; BYTES may end inside one, and BROKEN_AT has no class. */
struct random_records {
    struct window window;
    uint32_t bytes;
    uint32_t broken_at; /* an offset; UINT32_MAX: nowhere */
};

static void make_records(uint64_t *random, struct random_records *ret_records)
{
    static const char specials[] = "lw";
    struct window *window = &ret_records->window;

    *ret_records = (struct random_records){.broken_at = UINT32_MAX};
    for (uint32_t n = (uint32_t)(test_random(random) % MAX_RECORDS); n > 0; n--) {
        if (test_random(random) % 8 == 0)
            put_letter(window, specials[test_random(random) % 2]);
        else
            put(window, random_header(random));
    }
    ret_records->bytes = window->bytes;
    if (window->records > 0 && test_random(random) % 4 == 0)
        ret_records->bytes = (uint32_t)(test_random(random) % (window->bytes / 4 + 1)) * 4;
    if (window->records > 0 && test_random(random) % 8 == 0) {
        ret_records->broken_at = window->offsets[test_random(random) % window->records];
        memset(window->data + ret_records->broken_at, 0, 4);
    }
}

/* What a filter for SET makes of them, one record after the other. */
static void expect_part(const struct random_records *records, const struct event_set *set,
                        uint8_t *kept, struct walk_part *ret_part)
{
    const struct window *window = &records->window;
    struct walk_result *result = &ret_part->result;

    *ret_part = (struct walk_part){0};
    for (uint32_t i = 0; i < window->records; i++) {
        const uint8_t *p = window->data + window->offsets[i];
        uint32_t length = window->offsets[i + 1] - window->offsets[i];
        uint32_t header;
        struct lost_record lost;

        if (window->offsets[i] + 4 <= records->bytes && window->offsets[i] == records->broken_at)
            result->broken = true;
        if (result->broken || window->offsets[i + 1] > records->bytes)
            break;
        result->consumed_bytes += length;
        memcpy(&header, p, sizeof(header));
        if (record_is_lost(header)) {
            memcpy(&lost, p, sizeof(lost));
            result->lost += lost.count;
            result->lost_last_tsc = record_tsc(p);
            if (!result->lost_first_tsc)
                result->lost_first_tsc = (uint64_t)lost.first_tsc[1] << 32 | lost.first_tsc[0];
        } else if (!record_is_wrap(header)) {
            if (!event_set_has(set, record_event(header)))
                continue;
            ret_part->class_records[__builtin_ctz(record_event(header) >> 16)]++;
            result->records++;
            if (record_has_tsc(header) && !result->first_tsc)
                result->first_tsc = record_tsc(p);
            if (record_has_tsc(header))
                result->last_tsc = record_tsc(p);
        }
        memcpy(kept + result->kept_bytes, p, length);
        result->kept_bytes += length;
    }
}

/* Most let nothing or everything of a class pass, some all of all, or nothing. */
static struct event_set random_set(uint64_t *random)
{
    struct event_set set = {0};
    uint64_t kind = test_random(random) % 4;

    for (unsigned int i = 0; i < EVENT_CLASSES; i++)
        set.subclasses[i] = (uint8_t)(kind == 0   ? 0xf
                                      : kind == 1 ? 0
                                      : kind == 2 ? test_random(random) % 2 * 0xf
                                                  : test_random(random) & 0xf);
    return set;
}

/*
 * Walks RECORDS in random pieces for COUNT parts: each may be kept elsewhere or only counted, and
 * the pieces may be in the place of one of them.
 */
static void walk_in_pieces(uint64_t *random, const struct random_records *records,
                           struct walk_part *parts, unsigned int count)
{
    static uint8_t aside[sizeof(records->window.data)];
    struct walk_part *pointers[PARTS_MAX];
    uint32_t begin = 0, bytes;

    for (unsigned int i = 0; i < count; i++)
        pointers[i] = &parts[i];
    do {
        struct walk_part *in_place = &parts[test_random(random) % count];
        uint8_t *piece = in_place->kept && test_random(random) % 2
                             ? in_place->kept + in_place->result.kept_bytes
                             : aside;

        begin = parts[0].result.consumed_bytes;
        bytes = records->bytes - begin;
        if (test_random(random) % 2)
            bytes = (uint32_t)min_u64(bytes, 4 * (10 + test_random(random) % 300));
        memcpy(piece, records->window.data + begin, bytes);
        walk_piece(piece, bytes, begin + bytes == records->bytes, pointers, count);
    } while (begin + bytes < records->bytes && !parts[0].result.broken);
}

/* However it is walked, each part is what its filter alone makes of the window. */
static void test_parts(void)
{
    uint64_t random = test_seed();

    test_case("several filters");
    for (int i = 0; i < 4000; i++) {
        static uint8_t kept[PARTS_MAX][sizeof(((struct window *)NULL)->data) + 1];
        uint8_t expected_kept[sizeof(kept[0])];
        unsigned int count = 1 + (unsigned int)(test_random(&random) % PARTS_MAX);
        struct walk_part parts[PARTS_MAX] = {0};
        struct walk_filter filters[PARTS_MAX];
        struct event_set sets[PARTS_MAX];
        struct random_records records;

        make_records(&random, &records);
        memset(kept, 0xee, sizeof(kept));
        for (unsigned int j = 0; j < count; j++) {
            sets[j] = random_set(&random);
            walk_filter_init(&filters[j], &sets[j]);
            parts[j].filter = &filters[j];
            parts[j].kept = test_random(&random) % 4 ? kept[j] : NULL;
            parts[j].passing = (enum walk_passing)(test_random(&random) % 3);
        }
        walk_in_pieces(&random, &records, parts, count);
        for (unsigned int j = 0; j < count; j++) {
            struct walk_part expected;

            expect_part(&records, &sets[j], expected_kept, &expected);
            expected.result.broken =
                expected.result.broken || expected.result.consumed_bytes != records.bytes;
            CHECK(results_equal(&parts[j].result, &expected.result));
            CHECK(memcmp(parts[j].class_records, expected.class_records,
                         sizeof(expected.class_records)) == 0);
            CHECK(!parts[j].kept ||
                  memcmp(kept[j], expected_kept, expected.result.kept_bytes) == 0);
            CHECK_UINT(kept[j][records.bytes], 0xee);
        }
    }
}

int main(void)
{
    test_filter();
    test_kept();
    test_elsewhere();
    test_random_records();
    test_parts();
    test_cuts();
    test_classless();
    test_classes();
    test_older();
    test_older_losses();
    test_padding();
    return test_end();
}
