// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * From when on a sink has everything: one that joins others begins at one TSC on all CPUs, and has
 * neither records nor losses from before; a successor, and a place in a ring where a snapshot may
 * begin, say from when on they are complete.
 *
 * The test is the hypervisor, with its clock: it notes the TSC of each number, made or lost.
 */

#include "tests/unit/collector-rig.h"

#define MOST_NUMBERS (1u << 22)
#define PVH          INT64_C(200000000000) /* by how much records are ahead of rdtsc */

static struct {
    struct bench bench;
    uint64_t *tsc[CPUS];       /* of each number */
    int64_t skew[CPUS];        /* of the CPU's clock */
    uint64_t last_tsc[CPUS];   /* so that they ascend */
    uint64_t lost[CPUS];       /* and not told yet */
    uint64_t lost_first[CPUS]; /* TSC of the first of those */
    bool is_foreign;           /* its clock is not ours */
    bool loses;                /* it does not wait for room */
    bool is_slow;
} xen;

static void put_words(unsigned int cpu, const void *words, uint32_t bytes)
{
    struct t_buf *shared = xen.bench.buffer[cpu];
    uint32_t prod = shared->prod;

    for (uint32_t i = 0; i < bytes; i += 4)
        memcpy((uint8_t *)shared + sizeof(*shared) + (prod + i) % xen.bench.data_bytes,
               (const uint8_t *)words + i, 4);
    __atomic_store_n(&shared->prod, (prod + bytes) % (2 * xen.bench.data_bytes), __ATOMIC_RELEASE);
}

static void put_loss(unsigned int cpu, uint64_t tsc)
{
    struct lost_record lost = {
        .header = LOST_RECORD_HEADER,
        .tsc = {(uint32_t)tsc, (uint32_t)(tsc >> 32)},
        .count = (uint32_t)xen.lost[cpu],
        .first_tsc = {(uint32_t)xen.lost_first[cpu], (uint32_t)(xen.lost_first[cpu] >> 32)},
    };

    put_words(cpu, &lost, sizeof(lost));
    __atomic_store_n(&xen.lost[cpu], 0, __ATOMIC_RELAXED);
}

/* The next number of CPU: a record, or a loss. False: it waits for room. */
static bool make(unsigned int cpu)
{
    uint32_t room = xen.bench.data_bytes - waiting(&xen.bench, cpu);
    uint32_t number = xen.bench.number[cpu];
    uint64_t tsc = xen.is_foreign ? 1000 : xen_read_tsc() + (uint64_t)xen.skew[cpu];
    bool fits = room >= RECORD_BYTES + (xen.lost[cpu] ? LOST_RECORD_BYTES : 0);
    uint32_t words[4] = {RECORD, 0, 0, number};

    if ((!fits && !xen.loses) || number == MOST_NUMBERS)
        return false;
    tsc = max_u64(tsc, xen.last_tsc[cpu] + 1);
    xen.tsc[cpu][number] = tsc;
    if (fits && xen.lost[cpu])
        put_loss(cpu, tsc);
    memcpy(&words[1], &tsc, sizeof(tsc));
    if (fits)
        put_words(cpu, words, sizeof(words));
    else if (__atomic_fetch_add(&xen.lost[cpu], 1, __ATOMIC_RELAXED) == 0)
        xen.lost_first[cpu] = tsc;
    __atomic_store_n(&xen.bench.number[cpu], number + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&xen.last_tsc[cpu], tsc, __ATOMIC_RELAXED);
    return true;
}

static void *make_records(void *context)
{
    (void)context;
    for (; !__atomic_load_n(&xen.bench.stops, __ATOMIC_ACQUIRE); usleep(100))
        for (unsigned int i = 0; i < (__atomic_load_n(&xen.is_slow, __ATOMIC_RELAXED) ? 1 : 50);
             i++)
            for (unsigned int cpu = 0; cpu < CPUS; cpu++)
                (void)make(cpu);
    return NULL;
}

static void xen_init(void)
{
    memset(&xen, 0, sizeof(xen));
    bench_init(&xen.bench, SMALL_PAGES);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        xen.tsc[cpu] = calloc(MOST_NUMBERS, sizeof(uint64_t));
        if (!xen.tsc[cpu])
            exit(EXIT_FAILURE);
    }
}

static void xen_start(void)
{
    if (pthread_create(&xen.bench.producer, NULL, make_records, NULL) != 0)
        exit(EXIT_FAILURE);
}

/*
 * Sink I has joined, and each CPU has made records since, by its own clock: however the threads
 * were scheduled, it has some of each. No longer than a minute.
 */
static void await_joined(unsigned int i)
{
    for (unsigned int n = 0; n < 60000; n++) {
        struct sink_totals totals;
        bool all = true;

        sink_read_totals(xen.bench.sinks[i], &totals);
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            all = all &&
                  __atomic_load_n(&xen.last_tsc[cpu], __ATOMIC_RELAXED) > totals.complete_from_tsc;
        if (all && totals.complete_from_tsc > 0)
            return;
        (void)usleep(1000);
    }
}

static void xen_done(void)
{
    bench_done(&xen.bench);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        free(xen.tsc[cpu]);
}

/* The first number of CPU that is not older than TSC. */
static uint32_t first_number(unsigned int cpu, uint64_t tsc)
{
    uint32_t number = 0;

    while (number < xen.bench.number[cpu] && xen.tsc[cpu][number] < tsc)
        number++;
    return number;
}

/* --- What is in an output. --- */

struct content {
    bool sound;
    bool begun[CPUS];
    uint32_t begin[CPUS]; /* the first number that is there, or told as lost */
    uint32_t next[CPUS];
    uint64_t records[CPUS];
    uint64_t told_now[CPUS];
    uint64_t told[CPUS];
};

static void content_add(struct content *content, unsigned int cpu, const uint8_t *p, uint32_t bytes)
{
    for (uint32_t offset = 0, header, number; offset < bytes; offset += record_bytes(header)) {
        memcpy(&header, p + offset, sizeof(header));
        if (record_is_wrap(header)) /* it may have nothing but a header */
            continue;
        memcpy(&number, p + offset + 12, sizeof(number));
        if (record_is_lost(header)) {
            content->told_now[cpu] += number;
            content->told[cpu] += number;
            continue;
        }
        if (!content->begun[cpu])
            content->begin[cpu] = content->next[cpu] = number - (uint32_t)content->told_now[cpu];
        content->begun[cpu] = true;
        content->sound = content->sound && number == content->next[cpu] + content->told_now[cpu];
        content->next[cpu] = number + 1;
        content->told_now[cpu] = 0;
        content->records[cpu]++;
    }
}

static void content_add_windows(struct content *content, const uint8_t *data, uint64_t bytes)
{
    struct window_header window;

    for (uint64_t offset = 0; offset < bytes; offset += window.bytes) {
        memcpy(&window, data + offset, sizeof(window));
        offset += sizeof(window);
        if (!CHECK(window.header == WINDOW_HEADER && window.cpu < CPUS))
            return;
        content_add(content, window.cpu, data + offset, window.bytes);
    }
}

static uint64_t complete_from(unsigned int i)
{
    struct sink_totals totals;

    sink_read_totals(xen.bench.sinks[i], &totals);
    return totals.complete_from_tsc;
}

/* Of a file that is closed. */
static struct content content_of(unsigned int i)
{
    struct content content = {.sound = true};
    struct sink_totals totals;
    uint8_t *data;

    sink_read_totals(xen.bench.sinks[i], &totals);
    data = malloc(totals.output_bytes + 1);
    if (!data)
        exit(EXIT_FAILURE);
    CHECK_INT(pread(xen.bench.fds[i], data, totals.output_bytes + 1, 0), totals.output_bytes);
    content_add_windows(&content, data, totals.output_bytes);
    free(data);
    CHECK(content.sound);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(xen.bench.sinks[i], cpu, &ledger);
        CHECK_UINT(ledger.delivered, content.records[cpu]);
        CHECK_UINT(ledger.lost, content.told[cpu]);
        CHECK_UINT(ledger.produced, ledger.delivered + ledger.lost);
    }
    return content;
}

/* It has exactly what was made from when it joined on. */
static void check_joined(unsigned int i)
{
    struct content content = content_of(i);
    uint64_t tsc = complete_from(i);

    CHECK(tsc > 0);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        CHECK(content.records[cpu] > 0);
        CHECK_UINT(content.begin[cpu], first_number(cpu, tsc));
    }
}

/* --- Cases. --- */

struct join_case {
    const char *name;
    int64_t skew[CPUS];
    bool discards; /* alone, instead of joining one */
};

static const struct join_case join_cases[] = {
    {.name = "beside one"},
    {.name = "beside one, with a CPU's clock ahead", .skew = {0, 3000000, 0}},
    {.name = "beside one, with a CPU's clock behind", .skew = {0, 0, -3000000}},
    {.name = "alone, what was there is discarded", .discards = true},
    {.name = "beside one, in a PVH dom0", .skew = {PVH, PVH, PVH}},
    {.name = "beside one, in a PVH dom0, with a CPU's clock ahead",
     .skew = {PVH, PVH + 3000000, PVH}},
    {.name = "alone, in a PVH dom0", .skew = {PVH, PVH, PVH}, .discards = true},
};

static void test_join(const struct join_case *c)
{
    struct sink_config config = config_of(1000);
    unsigned int joins = 0;

    test_case(c->name);
    xen_init();
    memcpy(xen.skew, c->skew, sizeof(xen.skew));
    if (!c->discards)
        attach(&xen.bench, add_sink(&xen.bench, config, NULL));
    config.discard = c->discards;
    xen_start();
    for (unsigned int i = 0; i < (c->discards ? 1 : 8); i++) {
        (void)usleep(20000);
        joins = add_sink(&xen.bench, config, NULL);
        attach(&xen.bench, joins);
    }
    await_joined(joins);
    stop_producer(&xen.bench);
    for (unsigned int i = 0; i < xen.bench.nr_sinks; i++)
        close_sink(&xen.bench, i, true);
    for (unsigned int i = c->discards ? 0 : 1; i < xen.bench.nr_sinks; i++)
        check_joined(i);
    xen_done();
}

static bool all_lose(void)
{
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        if (__atomic_load_n(&xen.lost[cpu], __ATOMIC_RELAXED) < 1000)
            return false;
    return true;
}

/* Its disk gives it nothing: the buffers are full of old records, and Xen loses what is new. */
static void test_join_starved(void)
{
    struct sink_config config = config_of(1000);

    test_case("beside a lone one that is starved");
    xen_init();
    xen.loses = true;
    config.granted_bytes = 0;
    attach(&xen.bench, add_sink(&xen.bench, config, NULL));
    xen_start();
    while (!all_lose())
        (void)usleep(1000);
    __atomic_store_n(&xen.is_slow, true, __ATOMIC_RELAXED);
    (void)usleep(1000);
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    (void)usleep(100000);
    await_joined(1);
    stop_producer(&xen.bench);
    tell(&xen.bench, 0, MESSAGE_GRANT, false, INT64_MAX);
    close_sink(&xen.bench, 1, true);
    close_sink(&xen.bench, 0, true);
    check_joined(1);
    xen_done();
}

/* A trace that is replayed has another clock: who joins has its records all the same. */
static void test_foreign_clock(void)
{
    test_case("a foreign clock");
    xen_init();
    xen.is_foreign = true;
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    xen_start();
    (void)usleep(20000);
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    await_records(&xen.bench, 1000);
    stop_producer(&xen.bench);
    close_sink(&xen.bench, 0, true);
    close_sink(&xen.bench, 1, true);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        struct content first = content_of(0), second = content_of(1);

        CHECK(second.records[cpu] > 0 && second.begin[cpu] > first.begin[cpu]);
        CHECK_UINT(second.next[cpu], first.next[cpu]);
    }
    xen_done();
}

/* The first has what was there before; it knows of nobody who took some of it. */
static void test_first(void)
{
    struct content content;

    test_case("the first");
    xen_init();
    for (unsigned int i = 0; i < 100; i++)
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            CHECK(make(cpu));
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        CHECK(make(cpu));
    close_sink(&xen.bench, 0, true);
    content = content_of(0);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        CHECK_UINT(content.begin[cpu], 0);
        CHECK_UINT(content.next[cpu], 101);
        CHECK_UINT(first_number(cpu, complete_from(0)), 100);
    }
    xen_done();
}

/* A segment is complete from where it says, and says the earliest TSC that is true. */
static void test_successors(void)
{
    unsigned int last = 0;

    test_case("successors");
    xen_init();
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    xen_start();
    for (unsigned int i = 0; i < 10; i++) {
        await_records(&xen.bench, 2000); /* some in each */
        last = add_sink(&xen.bench, config_of(1000), NULL);
        collector_send_successor(xen.bench.collector, xen.bench.sinks[last - 1],
                                 xen.bench.sinks[last], true);
        must_come(&xen.bench, last - 1, MESSAGE_SUCCEEDED);
        must_come(&xen.bench, last - 1, MESSAGE_CLOSED);
    }
    stop_producer(&xen.bench);
    close_sink(&xen.bench, last, true);
    for (unsigned int i = 1; i <= last; i++) {
        struct content before = content_of(i - 1), content = content_of(i);
        bool is_tight = false;

        for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
            CHECK(content.begin[cpu] <= first_number(cpu, complete_from(i)));
            is_tight = is_tight || before.next[cpu] == first_number(cpu, complete_from(i));
        }
        CHECK(is_tight);
        CHECK(complete_from(i) > complete_from(i - 1));
    }
    xen_done();
}

/* Where a snapshot may begin; records before it are in no other round behind it. */
static void test_ring_rounds(void)
{
    struct ring *ring = new_ring(RING_MIN_BYTES);
    unsigned int found = 0, recorder;
    uint8_t *copy;
    int pin;

    test_case("rounds in a ring");
    xen_init();
    attach(&xen.bench, add_sink(&xen.bench, config_of(1000), NULL));
    xen_start();
    (void)usleep(10000);
    recorder = add_sink(&xen.bench, config_of(1000), ring);
    attach(&xen.bench, recorder);
    for (uint64_t windows = 0; windows < 1000; windows = ledger_observe(ring_windows(ring)))
        (void)usleep(10000);
    stop_producer(&xen.bench);
    pin = ring_take_pin(ring);
    copy = malloc(ring_chunk_bytes(ring));
    if (!copy)
        exit(EXIT_FAILURE);
    tell(&xen.bench, recorder, MESSAGE_PIN, false, pin);
    must_come(&xen.bench, recorder, MESSAGE_PINNED);
    CHECK(ring_complete_from_tsc(ring) > 0);
    CHECK_UINT(ring_complete_from_tsc(ring), complete_from(recorder));
    for (const struct chunk *chunk = ring_pin_first(ring, pin); chunk;
         chunk = ring_pin_next(ring, pin, chunk)) {
        struct content content = {.sound = true};
        struct ring_chunk_info info;
        uint64_t tsc, newest_tsc = 0;
        uint32_t bytes;

        ring_read_chunk(ring, chunk, &info);
        if (info.first_round >= info.bytes)
            continue;
        found++;
        tsc = max_u64(ring_complete_from_tsc(ring), info.round_tsc + 1);
        bytes = ring_copy_chunk(ring, chunk, info.first_round, copy);
        content_add_windows(&content, copy, bytes);
        CHECK(content.sound);
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            CHECK(!content.begun[cpu] || content.begin[cpu] <= first_number(cpu, tsc));
        /* And not later than need be: the newest that is not in it came just before that. */
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            if (content.begun[cpu] && content.begin[cpu] > 0)
                newest_tsc = max_u64(newest_tsc, xen.tsc[cpu][content.begin[cpu] - 1]);
        CHECK(info.round_tsc == 0 || newest_tsc == info.round_tsc);
    }
    free(copy);
    CHECK(found > 1);
    ring_advance_pin(ring, pin, NULL);
    close_sink(&xen.bench, recorder, true);
    close_sink(&xen.bench, 0, true);
    xen_done();
    ring_free(ring);
}

int main(void)
{
    if (!bench_is_possible())
        return TEST_SKIPPED;
    for (size_t i = 0; i < ARRAY_SIZE(join_cases); i++)
        test_join(&join_cases[i]);
    test_join_starved();
    test_foreign_clock();
    test_first();
    test_successors();
    test_ring_rounds();
    return test_end();
}
