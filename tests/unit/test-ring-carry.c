// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A ring whose records are carried over into one of another size, or out of one of layout version
 * 2: the newest rounds are there, in order, with their counts and TSCs; it begins where a file may
 * begin, and so does each place in it of which a snapshot would think so; and the ledger adds up.
 */

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "collector/ring-carry.h"
#include "collector/ring-v2.h"
#include "tests/unit/ring-rig.h"

#define MIB       (UINT64_C(1) << 20)
#define CPUS      3u
#define BIG_RIG   (8 * RIG_MAX_RECORDS) /* records of a window of 2 MiB */
#define BOOT_CONS 0x1230u

/* --- What is in a ring, record by record. --- */

struct item {
    uint32_t cpu;
    uint32_t number;
    uint64_t tsc;
    bool is_place;      /* the ring says that a file may begin here */
    uint64_t round_tsc; /* of a chunk's first round */
};

struct items {
    struct item *items;
    size_t count;
    size_t max;
    uint64_t lost; /* sum of what lost_records records report */
    bool is_sound;
};

static void add_item(struct items *items, struct item item)
{
    if (items->count == items->max) {
        items->max = items->max ? items->max * 2 : 4096;
        items->items = realloc(items->items, items->max * sizeof(item));
        if (!items->items)
            exit(EXIT_FAILURE);
    }
    items->items[items->count++] = item;
}

static void items_done(struct items *items)
{
    free(items->items);
    *items = (struct items){0};
}

static void add_records(struct items *items, const uint8_t *p, uint32_t bytes, struct item item)
{
    uint32_t header;

    for (uint32_t offset = 0; offset < bytes; offset += record_bytes(header)) {
        memcpy(&header, p + offset, sizeof(header));
        if (record_is_lost(header))
            items->lost += ((const struct lost_record *)(const void *)(p + offset))->count;
        if (record_is_wrap(header) || record_is_lost(header))
            continue;
        item.tsc = record_tsc(p + offset);
        memcpy(&item.number, p + offset + 12, sizeof(item.number));
        add_item(items, item);
        item.is_place = false;
        item.round_tsc = 0;
    }
}

static uint32_t count_records(const uint8_t *p, uint32_t bytes)
{
    uint32_t records = 0, header;

    for (uint32_t offset = 0; offset < bytes; offset += record_bytes(header)) {
        memcpy(&header, p + offset, sizeof(header));
        records += !record_is_wrap(header) && !record_is_lost(header);
    }
    return records;
}

/* The chunk's counts are those of its data. */
static void check_counts(const struct ring *ring, const struct chunk *chunk)
{
    for (unsigned int part = 0; part < RING_PARTS; part++) {
        const struct ring_chunk *state = ring_state_of(ring, chunk);
        const struct ring_count *counts = ring_counts_of(ring, chunk, part);
        uint32_t records[8] = {0}, wrong = 0, offset = 0;
        struct window_header window;

        for (; offset < chunk->fill_bytes; offset += WINDOW_HEADER_BYTES + window.bytes) {
            const uint8_t *p = chunk->data + offset;

            memcpy(&window, p, sizeof(window));
            if ((offset >= state->first_round) == (part == RING_FROM_ROUND))
                records[window.cpu] += count_records(p + WINDOW_HEADER_BYTES, window.bytes);
        }
        for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++)
            wrong += counts[cpu].records != records[cpu];
        CHECK_UINT(wrong, 0);
    }
}

static void read_ring(const struct ring *ring, struct items *items)
{
    uint32_t cpu_before = UINT32_MAX;

    *items = (struct items){.is_sound = true};
    for (const struct chunk *chunk = ring->head; chunk; chunk = chunk->next) {
        const struct ring_chunk *state = ring_state_of(ring, chunk);
        uint32_t offset = chunk == ring->head ? state->first_round : 0;
        struct window_header window;

        items->is_sound = items->is_sound && ring_verify_chunk(ring, chunk);
        for (; offset < chunk->fill_bytes; offset += WINDOW_HEADER_BYTES + window.bytes) {
            struct item item = {0};

            memcpy(&window, chunk->data + offset, sizeof(window));
            item.cpu = window.cpu;
            item.round_tsc = offset == state->first_round ? state->round_tsc : 0;
            item.is_place =
                offset == state->first_round ||
                (offset > state->first_round && !state->has_uneven && window.cpu <= cpu_before);
            add_records(items, chunk->data + offset + WINDOW_HEADER_BYTES, window.bytes, item);
            cpu_before = window.cpu;
        }
    }
}

/* --- What must hold of what was carried over. --- */

/* The record is the first of a window that began a round, after one that cut none. */
static bool may_begin_with(const struct ring_rig *rig, const struct item *item)
{
    size_t low = 0, high = rig->nr_fed;

    while (low < high) { /* TSCs rise */
        size_t middle = (low + high) / 2;

        if (rig->fed[middle].last_tsc < item->tsc)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rig->nr_fed && rig->fed[low].cpu == item->cpu &&
           rig->fed[low].first_number == item->number && rig->fed[low].begins_round &&
           rig->fed[low].begins_even;
}

static void check_places(const struct ring_rig *rig, const struct items *items)
{
    unsigned int wrong = 0, wrong_tsc = 0;

    for (size_t i = 0; i < items->count; i++) {
        const struct item *item = &items->items[i];

        if (!item->is_place)
            continue;
        wrong += !may_begin_with(rig, item);
        wrong_tsc += item->round_tsc >= item->tsc;
        wrong_tsc += i > 0 && item->round_tsc && item->round_tsc < items->items[i - 1].tsc;
    }
    CHECK_UINT(wrong, 0);
    CHECK_UINT(wrong_tsc, 0);
}

static void check_chunks(const struct ring *ring)
{
    for (const struct chunk *chunk = ring->head; chunk; chunk = chunk->next)
        check_counts(ring, chunk);
}

/* NEW is the end of OLD. */
static void check_newest(const struct items *old, const struct items *new)
{
    unsigned int wrong = 0;

    CHECK(new->is_sound);
    if (!CHECK(new->count <= old->count))
        return;
    for (size_t i = 0; i < new->count; i++) {
        const struct item *was = &old->items[old->count - new->count + i];
        const struct item *is = &new->items[i];

        wrong += was->cpu != is->cpu || was->number != is->number || was->tsc != is->tsc;
    }
    CHECK_UINT(wrong, 0);
    if (!old->is_sound)
        return; /* its damaged chunk was read as nonsense */
    if (new->count > 0 && new->count < old->count)
        CHECK(new->items[0].round_tsc >= old->items[old->count - new->count - 1].tsc);
    else if (new->count > 0)
        CHECK_UINT(new->items[0].round_tsc, old->items[0].round_tsc);
}

static void check_ledger(const struct ring *old, const struct ring *new, const struct items *items)
{
    unsigned int wrong = 0;

    for (unsigned int cpu = 0; cpu < new->nr_cpus; cpu++) {
        const struct ledger *is = &new->lines[cpu].ledger, *was = &old->lines[cpu].ledger;
        uint64_t records = 0;

        for (size_t i = 0; i < items->count; i++)
            records += items->items[i].cpu == cpu;
        wrong += is->produced != was->produced || is->lost != was->lost ||
                 is->dropped != was->dropped || is->first_tsc != was->first_tsc ||
                 is->last_tsc != was->last_tsc;
        wrong += is->produced != is->delivered + is->lost + is->dropped + is->evicted;
        wrong += is->delivered != records;
    }
    CHECK_UINT(wrong, 0);
}

static void check_header(const struct ring *old, const struct ring *new)
{
    const struct ring_header *was = old->header, *is = new->header;

    for (unsigned int cpu = 0; cpu < new->nr_cpus; cpu++)
        CHECK_UINT(new->lines[cpu].cons, old->lines[cpu].cons);
    CHECK_UINT(is->moving_cpu, was->moving_cpu);
    CHECK_UINT(is->moving_from, was->moving_from);
    CHECK_UINT(is->buffer_pages, was->buffer_pages);
    CHECK_UINT(is->windows, was->windows);
    CHECK_UINT(is->shortened_bytes, was->shortened_bytes);
    CHECK_UINT(is->complete_from_tsc, was->complete_from_tsc);
    CHECK_INT(memcmp(&is->cpus, &was->cpus, sizeof(is->cpus)), 0);
    CHECK_INT(memcmp(&is->events, &was->events, sizeof(is->events)), 0);
    CHECK_INT(memcmp(is->class_records, was->class_records, sizeof(is->class_records)), 0);
    CHECK_INT(memcmp(is->note, was->note, sizeof(is->note)), 0);
    CHECK_UINT(is->commit.armed, 0);
    CHECK_UINT(new->passed_tsc, old->passed_tsc);
}

static void check_stats(const struct ring *ring, const struct items *items)
{
    struct ring_stats stats;

    ring_read_stats(ring, &stats);
    CHECK(items->count == 0 || stats.newest_tsc == items->items[items->count - 1].tsc);
    CHECK(items->count == 0 || stats.oldest_tsc <= items->items[0].tsc);
    CHECK((stats.oldest_tsc == 0) == (items->count == 0));
}

/* --- Rings to carry from. --- */

static unsigned int uneven_one_in;

static void feed_randomly(struct ring_rig *rig, uint64_t *random, uint32_t max_records)
{
    uint64_t r = test_random(random);

    rig_begin_round(rig, r % uneven_one_in != 0);
    for (unsigned int cpu = 0; cpu < rig->nr_cpus; cpu++) {
        r = test_random(random);
        if (r % 4 == 0)
            rig_feed_nothing(rig, cpu);
        else
            (void)rig_feed_window(rig, cpu, (uint32_t)(r >> 8) % max_records + 1,
                                  (r >> 40) % 16 == 0);
    }
    if (max_records >= 100 && (r >> 49) % 16 == 0)
        ring_close_chunk(rig->ring);
}

/* Puts BYTES or a little more into it. */
static void feed_bytes(struct ring_rig *rig, uint64_t *random, uint64_t bytes, uint32_t max_records)
{
    uint64_t end = rig->tsc + bytes / RIG_RECORD_BYTES;

    while (rig->tsc < end)
        feed_randomly(rig, random, max_records);
}

static void set_header(struct ring *ring)
{
    struct cpu_set cpus = {0};
    struct event_set events = {{1, 2, 3}};

    cpu_set_add(&cpus, 0);
    cpu_set_add(&cpus, ring->nr_cpus - 1);
    ring_set_source(ring, &cpus, 256);
    ring_set_events(ring, &events);
    ring_set_complete_from(ring, 1000);
    *ring_windows(ring) = 77;
    ring_class_records(ring)[3] = 78;
    memset(ring_note(ring), 0x5a, RING_NOTE_BYTES);
}

/* As the next daemon has it. */
static void adopt_again(struct ring_rig *rig)
{
    int memfd = dup(ring_memfd(rig->ring));
    const char *problem = NULL;

    ring_free(rig->ring);
    rig->ring = NULL;
    if (!CHECK_INT(ring_adopt(memfd, rig->nr_cpus, NULL, &rig->ring, &problem), 0)) {
        TEST_SAY("because %s", problem);
        exit(EXIT_FAILURE);
    }
    (void)close(memfd);
}

static struct ring *new_ring(uint64_t bytes, unsigned int nr_cpus)
{
    struct ring *ring;

    if (ring_new(bytes, nr_cpus, true, NULL, &ring) < 0) {
        perror("a ring");
        exit(EXIT_FAILURE);
    }
    return ring;
}

/* --- Carried. --- */

/* From RIG's, which was adopted, into one of BYTES, which is RIG's then. Returns what was left. */
static struct ring_carried carry(struct ring_rig *rig, uint64_t bytes, struct items *ret_items)
{
    struct ring *old = rig->ring, *new = new_ring(bytes, rig->nr_cpus);
    struct ring_carried carried = {0};
    struct items old_items;

    read_ring(old, &old_items);
    CHECK_INT(ring_carry(new, old, &carried), 0);
    read_ring(new, ret_items);
    CHECK_UINT(carried.records, ret_items->count);
    CHECK(carried.is_all == (ret_items->count == old_items.count));
    check_newest(&old_items, ret_items);
    check_places(rig, ret_items);
    check_ledger(old, new, ret_items);
    check_header(old, new);
    check_stats(new, ret_items);
    check_chunks(new);
    items_done(&old_items);
    ring_free(old);
    rig->ring = new;
    return carried;
}

/* It can be adopted, and recorded into. */
static void check_goes_on(struct ring_rig *rig, const struct items *before, uint64_t *random)
{
    struct items after;

    adopt_again(rig);
    read_ring(rig->ring, &after);
    CHECK_UINT(after.count, before->count);
    check_newest(before, &after);
    items_done(&after);
    for (unsigned int i = 0; i < 5; i++)
        feed_randomly(rig, random, 500);
    ring_close_chunk(rig->ring);
    read_ring(rig->ring, &after);
    CHECK(after.is_sound);
    check_places(rig, &after);
    items_done(&after);
}

struct size_case {
    const char *name;
    uint64_t from_bytes;
    uint64_t to_bytes;
    uint64_t fed_bytes;
    uint32_t max_records; /* of a window */
    unsigned int percent; /* of the new ring that is full then, at least; 0: all of it fits */
};

static const struct size_case size_cases[] = {
    {"larger: chunks as large", 2 * MIB, 8 * MIB, 5 * MIB, 3000, 0},
    {"larger: larger chunks", 8 * MIB, 64 * MIB, 20 * MIB, 3000, 0},
    {"larger: what never filled it", 16 * MIB, 32 * MIB, 3 * MIB, 3000, 0},
    {"as large", 8 * MIB, 8 * MIB, 20 * MIB, 3000, 55},
    {"smaller: chunks as large", 16 * MIB, 4 * MIB, 30 * MIB, 3000, 55},
    {"smaller: smaller chunks", 64 * MIB, 8 * MIB, 100 * MIB, 3000, 55},
    {"smaller: the smallest", 64 * MIB, RING_MIN_BYTES, 100 * MIB, 3000, 30},
    {"smaller: all of it fits", 64 * MIB, 8 * MIB, 3 * MIB, 3000, 0},
    {"smaller: windows larger than a chunk", 64 * MIB, 16 * MIB, 100 * MIB, BIG_RIG / 2, 55},
    {"smaller: small windows", 32 * MIB, 4 * MIB, 40 * MIB, 20, 70},
};

static void test_sizes(void)
{
    uint64_t random = test_seed();

    uneven_one_in = 1u << 31; /* of those after a chunk's first, nobody knows which are not */
    for (size_t i = 0; i < ARRAY_SIZE(size_cases); i++) {
        const struct size_case *c = &size_cases[i];
        struct ring_carried carried;
        struct ring_rig rig;
        struct items items;

        test_case(c->name);
        ring_rig_init(&rig, NULL, c->from_bytes, CPUS);
        feed_bytes(&rig, &random, c->fed_bytes, c->max_records);
        set_header(rig.ring);
        adopt_again(&rig);
        carried = carry(&rig, c->to_bytes, &items);
        CHECK(!carried.was_damaged);
        CHECK(c->percent > 0 || carried.is_all);
        /* Windows do not fill the chunks, and an eighth is spare. */
        CHECK(items.count * RIG_RECORD_BYTES >= c->to_bytes / 100 * c->percent);
        check_goes_on(&rig, &items, &random);
        items_done(&items);
        ring_rig_done(&rig);
    }
}

/* A round that the new ring cannot hold: it is as if it had been recorded into it. */
static void test_too_large(void)
{
    struct ring_carried carried;
    struct ring_rig rig;
    struct items items;

    test_case("a round that is too large");
    ring_rig_init(&rig, NULL, 64 * MIB, CPUS);
    CHECK(rig_feed_round(&rig, BIG_RIG / 2, true));
    adopt_again(&rig);
    carried = carry(&rig, RING_MIN_BYTES, &items);
    CHECK_UINT(carried.records, 0);
    CHECK(!carried.is_all);
    CHECK(rig_feed_round(&rig, 10, true));
    ring_close_chunk(rig.ring);
    items_done(&items);
    read_ring(rig.ring, &items);
    CHECK_UINT(items.count, 10 * CPUS);
    items_done(&items);
    ring_rig_done(&rig);
}

static void test_empty(void)
{
    struct ring_carried carried;
    struct ring_rig rig;
    struct items items;

    test_case("an empty one");
    ring_rig_init(&rig, NULL, 8 * MIB, CPUS);
    set_header(rig.ring);
    adopt_again(&rig);
    carried = carry(&rig, 2 * MIB, &items);
    CHECK(carried.is_all && !carried.was_damaged);
    CHECK_UINT(carried.records, 0);
    items_done(&items);
    ring_rig_done(&rig);

    test_case("one without a round to begin with");
    ring_rig_init(&rig, NULL, 8 * MIB, CPUS);
    CHECK(rig_feed_round(&rig, 100, false));
    adopt_again(&rig);
    carried = carry(&rig, 16 * MIB, &items);
    CHECK_UINT(carried.records, 0);
    items_done(&items);
    ring_rig_done(&rig);

    test_case("another number of CPUs");
    ring_rig_init(&rig, NULL, 2 * MIB, CPUS);
    {
        struct ring *new = new_ring(2 * MIB, CPUS + 1);

        CHECK_INT(ring_carry(new, rig.ring, &carried), -EINVAL);
        ring_free(new);
    }
    ring_rig_done(&rig);
}

/* The Nth chunk of the list, the oldest first. */
static struct chunk *find_chunk(const struct ring *ring, unsigned int n)
{
    struct chunk *chunk = ring->head;

    while (n-- > 0)
        chunk = chunk->next;
    return chunk;
}

static void test_damaged(void)
{
    uint64_t random = test_seed();

    for (unsigned int n = 0; n < 12; n++) {
        char name[64];
        struct ring_carried carried;
        struct ring_rig rig;
        struct items items;
        uint64_t newest_tsc;

        ring_rig_init(&rig, NULL, 4 * MIB, CPUS);
        feed_bytes(&rig, &random, 8 * MIB, 1000);
        adopt_again(&rig);
        n = n < rig.ring->nr_listed ? n : 12;
        if (n == 12) {
            ring_rig_done(&rig);
            break;
        }
        (void)snprintf(name, sizeof(name), "damaged: chunk %u", n);
        test_case(name);
        newest_tsc = ring_state_of(rig.ring, find_chunk(rig.ring, n))->last_tsc;
        memset(find_chunk(rig.ring, n)->data + 4000, 0, 64);
        carried = carry(&rig, 8 * MIB, &items);
        CHECK(carried.was_damaged && !carried.is_all);
        CHECK(items.count == 0 || items.items[0].tsc > newest_tsc);
        CHECK(items.count > 0 || n > 8);
        items_done(&items);
        ring_rig_done(&rig);
    }
}

/* A record of another CPU than its count's: the sum agrees, the CPU's ledger does not. */
static void test_other_cpu(void)
{
    struct ring_carried carried;
    struct ring_rig rig;
    struct ring *new;
    uint32_t cpu = 1;

    test_case("a window that has become another CPU's");
    ring_rig_init(&rig, NULL, 2 * MIB, CPUS);
    CHECK(rig_feed_round(&rig, 10, true));
    adopt_again(&rig);
    memcpy(rig.ring->head->data + 4, &cpu, sizeof(cpu));
    new = new_ring(4 * MIB, CPUS);
    CHECK_INT(ring_carry(new, rig.ring, &carried), -EBADMSG);
    ring_free(new);
    ring_rig_done(&rig);
}

static void test_randomly(void)
{
    static const uint64_t sizes[] = {2 * MIB, 3 * MIB, 5 * MIB, 8 * MIB, 32 * MIB, 64 * MIB};
    static const uint32_t max_records[] = {5, 100, 1000, RIG_MAX_RECORDS, BIG_RIG / 4};
    uint64_t random = test_seed();

    uneven_one_in = 4;
    test_case("at random, several times over");
    for (unsigned int i = 0; i < 30; i++) {
        uint64_t r = test_random(&random);
        uint64_t from_bytes = sizes[r % (i % 5 == 0 ? 6 : 4)];
        uint32_t most = max_records[(r >> 8) % 5];
        struct ring_rig rig;
        struct items items;

        if (ring_chunk_bytes_of(from_bytes) < MIB) /* a window is never larger than a chunk */
            most = (uint32_t)min_u64(most, RIG_MAX_RECORDS);
        ring_rig_init(&rig, NULL, from_bytes, (unsigned int)(r >> 16) % 5 + 1);
        feed_bytes(&rig, &random, (r >> 32) % (from_bytes * 3 / 2), most);
        set_header(rig.ring);
        adopt_again(&rig);
        for (unsigned int j = 0; j < 3; j++) {
            (void)carry(&rig, sizes[test_random(&random) % (j == 1 ? 6 : 4)], &items);
            check_goes_on(&rig, &items, &random);
            adopt_again(&rig);
            items_done(&items);
        }
        ring_rig_done(&rig);
    }
}

/* --- Version 2: written here byte by byte, as it is on other people's machines. --- */

#define V2_CHUNKS   8u
#define V2_LINES    1088u
#define V2_STATES   1280u
#define V2_COUNTS   1728u
#define V2_DATA     4096u
#define V2_BYTES    2101248u
#define V2_FIRST    41u /* the oldest chunk's sequence number */
#define V2_COMMIT   592u
#define V2_RECORDS  700u /* of a window */
#define V2_ROUNDS   30u
#define V2_COMPLETE 900u
#define V2_CHUNK    262144u

struct v2_image {
    uint8_t bytes[V2_BYTES];
    struct ring_rig rig; /* its numbers, without a ring */
    unsigned int chunk;  /* that is being filled: counts from 0 */
    uint32_t fill;
};

static struct v2_image v2;

static void v2_put32(size_t at, uint32_t value)
{
    memcpy(v2.bytes + at, &value, sizeof(value));
}

static void v2_put64(size_t at, uint64_t value)
{
    memcpy(v2.bytes + at, &value, sizeof(value));
}

static uint32_t v2_get32(size_t at)
{
    uint32_t value;

    memcpy(&value, v2.bytes + at, sizeof(value));
    return value;
}

/* Not in the order of their numbers. */
static size_t v2_index(unsigned int chunk)
{
    return (chunk + 5) % V2_CHUNKS;
}

static size_t v2_state(unsigned int chunk)
{
    return V2_STATES + v2_index(chunk) * 56;
}

static size_t v2_data(unsigned int chunk)
{
    return V2_DATA + v2_index(chunk) * V2_CHUNK;
}

static void v2_pad_chunk(void)
{
    uint32_t padding = -v2.fill % 4096, last_window = v2_get32(v2_state(v2.chunk) + 44);
    size_t data = v2_data(v2.chunk);

    walk_write_padding(v2.bytes + data + v2.fill, padding);
    v2_put32(data + last_window + 8, v2_get32(data + last_window + 8) + padding);
    v2_put32(v2_state(v2.chunk) + 40, v2.fill + padding);
}

static void v2_open_chunk(bool is_first)
{
    if (!is_first) {
        v2_pad_chunk();
        v2.chunk++;
    }
    v2.fill = 0;
    v2_put64(v2_state(v2.chunk), V2_FIRST + v2.chunk);
    v2_put64(v2_state(v2.chunk) + 8, v2.rig.tsc);
    v2_put32(v2_state(v2.chunk) + 48, UINT32_MAX); /* no first_round */
}

static void v2_put_window(unsigned int cpu, bool begins_round)
{
    struct ring_window window = {.cpu = cpu, .begins_round = begins_round, .begins_even = true};
    size_t state = v2_state(v2.chunk), data = v2_data(v2.chunk) + v2.fill, count;
    uint32_t first_round = v2_get32(state + 48);

    if (begins_round && first_round == UINT32_MAX) {
        first_round = v2.fill;
        v2_put32(state + 48, v2.fill);
        v2_put64(state + 24, v2.rig.tsc - 1); /* round_tsc */
    }
    v2_put32(data, 0x2001f003);
    v2_put32(data + 4, cpu);
    v2_put32(data + 8, V2_RECORDS * 24);
    rig_put_records(&v2.rig, v2.bytes + data + 12, v2.rig.number[cpu], V2_RECORDS);
    v2_put64(state + 16, v2.rig.tsc - 1);
    v2_put64(state + 32, v2.rig.tsc - 1);
    v2_put32(state + 44, v2.fill);
    v2.fill += 12 + V2_RECORDS * 24;
    v2_put32(state + 40, v2.fill);
    count = V2_COUNTS + ((v2_index(v2.chunk) * 2 + (first_round != UINT32_MAX)) * CPUS + cpu) * 8;
    v2_put32(count, v2_get32(count) + V2_RECORDS);
    rig_note_fed(&v2.rig, &window, V2_RECORDS);
    v2.rig.number[cpu] += V2_RECORDS;
}

static void v2_put_header(void)
{
    v2_put64(0, UINT64_C(0x474e495243525458));
    v2_put32(8, 2);
    v2_put32(12, CPUS);
    v2_put32(16, V2_CHUNKS);
    v2_put32(20, V2_CHUNK);
    v2_put64(24, V2_BYTES);
    v2_put64(32, V2_DATA);
    v2_put32(40, 256);                       /* buffer_pages */
    v2_put32(44, 1);                         /* moving_cpu */
    v2_put32(48, BOOT_CONS);                 /* moving_from */
    v2_put64(56, (UINT64_C(1) << CPUS) - 1); /* cpus */
    v2.bytes[568 + 2] = 3;                   /* events */
    v2_put64(584, V2_COMPLETE);
    v2_put64(720, 123);             /* windows */
    v2_put64(728 + 5 * 8, 456);     /* class_records */
    memset(v2.bytes + 824, 7, 256); /* note */
}

/* The last chunk is being filled. Of each CPU some records were evicted before, lost and dropped.
 */
static void v2_make(void)
{
    ring_rig_init(&v2.rig, (struct ring *)&v2, 0, CPUS); /* it is never looked at */
    v2.rig.ring = NULL;
    v2.rig.tsc = 1000;
    v2_put_header();
    v2_open_chunk(true);
    for (unsigned int round = 0; round < V2_ROUNDS; round++)
        for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
            if (v2.fill + 12 + V2_RECORDS * 24 > V2_CHUNK)
                v2_open_chunk(false);
            v2_put_window(cpu, cpu == 0);
        }
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        size_t line = V2_LINES + cpu * 64;

        v2_put64(line, v2.rig.number[cpu] + 1000 + 20 + 3); /* produced */
        v2_put64(line + 16, 20);                            /* lost */
        v2_put64(line + 24, 3);                             /* dropped */
        v2_put64(line + 40, 5);                             /* first_tsc */
        v2_put64(line + 48, v2.rig.tsc - 1);                /* last_tsc */
        v2_put32(line + 56, BOOT_CONS + cpu);
    }
}

static int v2_memfd(const uint8_t *bytes, size_t size, int seals)
{
    int memfd = memfd_create("version 2", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (memfd < 0 || write(memfd, bytes, size) != (ssize_t)size ||
        fcntl(memfd, F_ADD_SEALS, seals) < 0)
        exit(EXIT_FAILURE);
    return memfd;
}

static int v2_copy(void)
{
    return v2_memfd(v2.bytes, V2_BYTES, F_SEAL_SHRINK);
}

static struct ring *v2_read(int memfd)
{
    const char *problem = NULL;
    struct ring *ring = NULL;

    if (!CHECK_INT(ring_read_v2(memfd, CPUS, &ring, &problem), 0)) {
        TEST_SAY("because %s", problem);
        exit(EXIT_FAILURE);
    }
    return ring;
}

static void test_v2(void)
{
    static uint8_t after[V2_BYTES];
    uint64_t random = test_seed();
    int memfd = v2_copy();
    struct ring_carried carried;
    struct items items;
    uint32_t cons = 0;

    test_case("version 2: all of it");
    v2.rig.ring = v2_read(memfd);
    CHECK_INT(ring_memfd(v2.rig.ring), -1);
    carried = carry(&v2.rig, 4 * MIB, &items);
    CHECK(carried.is_all && !carried.was_damaged);
    CHECK_UINT(items.count, V2_ROUNDS * CPUS * V2_RECORDS);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        CHECK_UINT(ring_ledger(v2.rig.ring, cpu)->evicted, 1000);
        CHECK(ring_resume_cpu(v2.rig.ring, cpu, BOOT_CONS + cpu, &cons));
        CHECK_UINT(cons, BOOT_CONS + cpu);
    }
    CHECK(ring_resume_cpu(v2.rig.ring, 1, BOOT_CONS, &cons));
    CHECK_UINT(ring_buffer_pages(v2.rig.ring), 256);
    CHECK_UINT(ring_complete_from_tsc(v2.rig.ring), V2_COMPLETE);
    CHECK_UINT(cpu_set_count(ring_cpus(v2.rig.ring)), CPUS);
    CHECK_UINT(v2.rig.ring->header->events.subclasses[2], 3);
    CHECK_UINT(*ring_windows(v2.rig.ring), 123);
    CHECK_UINT(ring_class_records(v2.rig.ring)[5], 456);
    CHECK_UINT(*(uint8_t *)ring_note(v2.rig.ring), 7);
    check_goes_on(&v2.rig, &items, &random);
    items_done(&items);
    v2.rig.ring = ring_free(v2.rig.ring);

    test_case("version 2: nothing in the old one is changed");
    CHECK(pread(memfd, after, V2_BYTES, 0) == V2_BYTES);
    CHECK_INT(memcmp(after, v2.bytes, V2_BYTES), 0);

    test_case("version 2: retired");
    {
        const char *problem = NULL;

        CHECK_INT(ring_retire(memfd), 0);
        CHECK_INT(ring_read_v2(memfd, CPUS, &v2.rig.ring, &problem), -EBADMSG);
    }
    (void)close(memfd);
}

/* Killed before the last window was in the chunk's state, and in the ledger. */
static void test_v2_commit(void)
{
    static uint8_t whole[V2_BYTES];
    size_t state = v2_state(v2.chunk), cpu = CPUS - 1, line = V2_LINES + cpu * 64, count;
    struct ring_carried carried;
    struct items items;
    int memfd;

    test_case("version 2: killed in the middle of a commit");
    memcpy(whole, v2.bytes, V2_BYTES);
    count = V2_COUNTS + ((v2_index(v2.chunk) * 2 + 1) * CPUS + cpu) * 8;
    v2_put32(V2_COMMIT, 1);
    v2_put32(V2_COMMIT + 4, (uint32_t)cpu);
    v2_put32(V2_COMMIT + 8, BOOT_CONS + (uint32_t)cpu);
    v2_put32(V2_COMMIT + 12, (uint32_t)v2_index(v2.chunk));
    v2_put32(V2_COMMIT + 16, 1);
    v2_put32(V2_COMMIT + 20, v2_get32(count));
    memcpy(v2.bytes + V2_COMMIT + 32, v2.bytes + state, 56);
    memcpy(v2.bytes + V2_COMMIT + 88, v2.bytes + line, 8);
    memcpy(v2.bytes + V2_COMMIT + 96, v2.bytes + line + 16, 16);
    memcpy(v2.bytes + V2_COMMIT + 112, v2.bytes + line + 40, 16);
    v2_put32(count, v2_get32(count) - V2_RECORDS);
    v2_put32(state + 40, v2_get32(state + 40) - 12 - V2_RECORDS * 24);
    v2_put64(line, 1); /* in the middle of it */
    v2_put32(line + 56, 0);
    memfd = v2_copy();
    v2.rig.ring = v2_read(memfd);
    carried = carry(&v2.rig, 4 * MIB, &items);
    CHECK(carried.is_all && !carried.was_damaged);
    CHECK_UINT(items.count, V2_ROUNDS * CPUS * V2_RECORDS);
    CHECK_UINT(v2.rig.ring->lines[cpu].cons, BOOT_CONS + cpu);
    items_done(&items);
    v2.rig.ring = ring_free(v2.rig.ring);
    (void)close(memfd);
    memcpy(v2.bytes, whole, V2_BYTES);
}

struct v2_case {
    const char *name;
    size_t at;
    size_t bytes;
    uint64_t value;
    int result;
};

static const struct v2_case v2_cases[] = {
    {"version 2: another magic", 0, 8, 1, -EBADMSG},
    {"version 2: version 1", 8, 4, 1, -EPROTO},
    {"version 2: version 3", 8, 4, 3, -EPROTO},
    {"version 2: no CPU", 12, 4, 0, -EBADMSG},
    {"version 2: another number of CPUs", 12, 4, CPUS + 1, -EBADMSG},
    {"version 2: more CPUs than there can be", 12, 4, UINT32_MAX, -EBADMSG},
    {"version 2: no chunk", 16, 4, 0, -EBADMSG},
    {"version 2: fewer chunks", 16, 4, V2_CHUNKS - 1, -EBADMSG},
    {"version 2: more chunks than there can be", 16, 4, UINT32_MAX, -EBADMSG},
    {"version 2: no bytes", 20, 4, 0, -EPROTO},
    {"version 2: chunks of an odd size", 20, 4, V2_CHUNK - 4, -EPROTO},
    {"version 2: larger chunks", 20, 4, 2 * V2_CHUNK, -EBADMSG},
    {"version 2: chunks that are too large", 20, 4, 32 * V2_CHUNK, -EPROTO},
    {"version 2: another size", 24, 8, V2_BYTES + 4096, -EBADMSG},
    {"version 2: data elsewhere", 32, 8, 0, -EBADMSG},
    {"version 2: a commit of no CPU", V2_COMMIT, 8, UINT64_C(3) << 32 | 1, -EBADMSG},
    {"version 2: a ledger of fewer", V2_LINES, 8, 1, -EBADMSG},
    {"version 2: a chunk out of order", V2_STATES, 8, 1, -EBADMSG},
    {"version 2: a chunk of more than fits", V2_STATES + 40, 4, V2_CHUNK + 4, -EBADMSG},
    {"version 2: a window beyond", V2_STATES + 44, 4, UINT32_MAX, -EBADMSG},
    {"version 2: a round beyond", V2_STATES + 48, 4, V2_CHUNK, -EBADMSG},
};

static void check_v2_refused(int memfd, int expected)
{
    const char *problem = NULL;
    struct ring *ring = NULL;

    CHECK_INT(ring_read_v2(memfd, CPUS, &ring, &problem), expected);
    CHECK(!ring && problem && *problem);
    ring_free(ring);
    (void)close(memfd);
}

static void test_v2_refused(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(v2_cases); i++) {
        const struct v2_case *c = &v2_cases[i];
        uint64_t before;

        test_case(c->name);
        memcpy(&before, v2.bytes + c->at, sizeof(before));
        memcpy(v2.bytes + c->at, &c->value, c->bytes);
        check_v2_refused(v2_copy(), c->result);
        memcpy(v2.bytes + c->at, &before, sizeof(before));
    }
    test_case("version 2: not sealed");
    check_v2_refused(v2_memfd(v2.bytes, V2_BYTES, 0), -EBADMSG);
    test_case("version 2: shorter than it says");
    check_v2_refused(v2_memfd(v2.bytes, V2_BYTES - 4096, F_SEAL_SHRINK), -EBADMSG);
    test_case("version 2: shorter than its header");
    check_v2_refused(v2_memfd(v2.bytes, 100, F_SEAL_SHRINK), -EBADMSG);
    test_case("version 2: a pipe");
    {
        int fds[2];

        CHECK_INT(pipe(fds), 0);
        (void)close(fds[1]);
        check_v2_refused(fds[0], -EBADMSG);
    }
}

/* Scribbled over: nothing crashes, and what is carried over adds up. */
static void check_v2_scribbled(int memfd)
{
    const char *problem = NULL;
    struct ring_carried carried;
    struct ring *old = NULL, *new;

    if (ring_read_v2(memfd, CPUS, &old, &problem) < 0)
        return;
    new = new_ring(4 * MIB, CPUS);
    if (ring_carry(new, old, &carried) >= 0) {
        struct ring_rig rig = {.ring = new, .nr_cpus = CPUS};
        struct items items;

        adopt_again(&rig);
        new = rig.ring;
        read_ring(new, &items);
        CHECK(items.is_sound);
        CHECK_UINT(items.count, carried.records);
        check_ledger(old, new, &items);
        items_done(&items);
    }
    ring_free(new);
    ring_free(old);
}

static void test_v2_scribbled(void)
{
    static uint8_t scribbled[V2_BYTES];
    uint64_t random = test_seed();

    test_case("version 2: scribbled over");
    for (unsigned int i = 0; i < 400; i++) {
        uint64_t limit = i % 2 ? V2_BYTES : V2_COUNTS + 384;
        int memfd;

        memcpy(scribbled, v2.bytes, V2_BYTES);
        for (uint64_t n = test_random(&random) % 4 + 1; n > 0; n--) {
            uint64_t r = test_random(&random);

            scribbled[(r >> 8) % limit] = (uint8_t)r;
        }
        memfd = v2_memfd(scribbled, V2_BYTES, F_SEAL_SHRINK);
        check_v2_scribbled(memfd);
        (void)close(memfd);
    }
    test_passed(true); /* it has come here */
}

int main(void)
{
    test_sizes();
    test_too_large();
    test_empty();
    test_damaged();
    test_other_cpu();
    test_randomly();
    v2_make();
    test_v2();
    test_v2_commit();
    test_v2_refused();
    test_v2_scribbled();
    ring_rig_done(&v2.rig);
    return test_end();
}
