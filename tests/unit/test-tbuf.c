// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/tbuf.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <xen/trace.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define PAGES      2u
#define DATA_BYTES (PAGES * PAGE_BYTES - 8u) /* no power of two */

/* A trace buffer in our own memory, and what the hypervisor would know of it. */
struct buffer {
    union {
        struct t_buf shared;
        uint8_t bytes[PAGES * PAGE_BYTES];
    };
    struct tbuf tbuf;
};

static uint8_t *buffer_data(struct buffer *buffer)
{
    return buffer->bytes + sizeof(struct t_buf);
}

static struct buffer *buffer_new(uint32_t cons, uint32_t prod)
{
    struct buffer *buffer = calloc(1, sizeof(*buffer));

    if (!buffer)
        exit(EXIT_FAILURE);
    buffer->shared.cons = cons;
    buffer->shared.prod = prod;
    return buffer;
}

struct peek_case {
    const char *name;
    uint32_t cons;
    uint32_t prod;
    int init_result;
    int peek_result;
    uint32_t bytes;
};

static const struct peek_case peek_cases[] = {
    {"empty", 0, 0, 0, 0, 0},
    {"one word", 0, 4, 0, 0, 4},
    {"full", 0, DATA_BYTES, 0, 0, DATA_BYTES},
    {"a word short of full", 4, DATA_BYTES, 0, 0, DATA_BYTES - 4},
    {"empty in the second lap", DATA_BYTES, DATA_BYTES, 0, 0, 0},
    {"full in the second lap", DATA_BYTES, 0, 0, 0, DATA_BYTES},
    {"across the first end", DATA_BYTES - 8, DATA_BYTES + 8, 0, 0, 16},
    {"across the second end", 2 * DATA_BYTES - 8, 8, 0, 0, 16},
    {"the last offset", 2 * DATA_BYTES - 4, 2 * DATA_BYTES - 4, 0, 0, 0},
    {"full from the last offset", 2 * DATA_BYTES - 4, DATA_BYTES - 4, 0, 0, DATA_BYTES},
    {"prod misaligned by 1", 0, 25, 0, -EBADMSG, 0},
    {"prod misaligned by 2", 0, 26, 0, -EBADMSG, 0},
    {"prod beyond both laps", 0, 2 * DATA_BYTES, 0, -EBADMSG, 0},
    {"prod all ones", 0, 0xfffffffc, 0, -EBADMSG, 0},
    {"more than full", 0, DATA_BYTES + 4, 0, -EBADMSG, 0},
    {"prod behind cons", 100, 96, 0, -EBADMSG, 0},
    {"more than full across the end", DATA_BYTES + 4, 8, 0, -EBADMSG, 0},
    {"cons misaligned", 2, 0, -EBADMSG, 0, 0},
    {"cons beyond both laps", 2 * DATA_BYTES, 0, -EBADMSG, 0, 0},
};

static void test_peek(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(peek_cases); i++) {
        const struct peek_case *c = &peek_cases[i];
        struct buffer *buffer = buffer_new(c->cons, c->prod);
        uint32_t bytes = 0xdead;

        test_case(c->name);
        CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), c->init_result);
        CHECK(buffer->tbuf.set_aside == (c->init_result < 0));
        CHECK_UINT(buffer->tbuf.data_bytes, DATA_BYTES);
        if (c->init_result == 0) {
            CHECK_INT(tbuf_peek(&buffer->tbuf, &bytes), c->peek_result);
            CHECK_UINT(bytes, c->peek_result == 0 ? c->bytes : 0xdead);
        }
        free(buffer);
    }
}

struct copy_case {
    const char *name;
    uint32_t cons;
    uint32_t bytes;
    uint32_t next; /* cons afterwards */
};

static const struct copy_case copy_cases[] = {
    {"from the start", 0, 24, 24},
    {"up to the end", DATA_BYTES - 24, 24, DATA_BYTES},
    {"a word across the end", DATA_BYTES - 20, 24, DATA_BYTES + 4},
    {"all from the middle", 4000, DATA_BYTES, DATA_BYTES + 4000},
    {"second lap", DATA_BYTES + 8, 40, DATA_BYTES + 48},
    {"second lap up to the end", 2 * DATA_BYTES - 40, 40, 0},
    {"second lap across the end", 2 * DATA_BYTES - 36, 40, 4},
    {"nothing", 12, 0, 12},
};

static void test_copy(void)
{
    static uint8_t copied[DATA_BYTES + 1];

    for (size_t i = 0; i < ARRAY_SIZE(copy_cases); i++) {
        const struct copy_case *c = &copy_cases[i];
        struct buffer *buffer = buffer_new(c->cons, (c->cons + c->bytes) % (2 * DATA_BYTES));
        uint32_t wrong = 0;

        test_case(c->name);
        for (uint32_t j = 0; j < DATA_BYTES; j++)
            buffer_data(buffer)[j] = (uint8_t)(j * 7 + j / 256);
        CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
        memset(copied, 0xee, sizeof(copied));
        tbuf_copy(&buffer->tbuf, 0, c->bytes, copied);
        for (uint32_t j = 0; j < c->bytes; j++)
            wrong += copied[j] != buffer_data(buffer)[(c->cons + j) % DATA_BYTES];
        CHECK_UINT(wrong, 0);
        CHECK_UINT(copied[c->bytes], 0xee);
        CHECK_UINT(buffer->shared.cons, c->cons); /* not published before it is consumed */
        tbuf_consume(&buffer->tbuf, c->bytes);
        CHECK_UINT(buffer->shared.cons, c->next);
        CHECK_UINT(buffer->tbuf.cons, c->next);
        free(buffer);
    }
}

struct fill_case {
    const char *name;
    uint32_t cons;
    uint32_t prod;
    unsigned int percent;
};

static const struct fill_case fill_cases[] = {
    {"empty", 8, 8, 0},
    {"half", 0, DATA_BYTES / 2, 50},
    {"full", DATA_BYTES, 0, 100},
    {"nearly full", 4, DATA_BYTES, 99},
    {"across the end", 2 * DATA_BYTES - 2048, 2048, 50},
    {"impossible", 0, 0xffffffff, 100},
};

static void test_fill(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(fill_cases); i++) {
        const struct fill_case *c = &fill_cases[i];
        struct buffer *buffer = buffer_new(c->cons, c->prod);

        test_case(c->name);
        CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
        CHECK_UINT(tbuf_fill_percent(&buffer->tbuf), c->percent);
        free(buffer);
    }
}

struct unsettled_case {
    const char *name;
    uint32_t waiting; /* when it is consumed, all of it */
    bool unsettled;
};

/* Xen's largest need: a lost_records record and a record of 40 bytes, each behind a wrap record. */
static const struct unsettled_case unsettled_cases[] = {
    {"full", DATA_BYTES, true},
    {"a record of 40 does not fit", DATA_BYTES - 36, true},
    {"with lost_records it does not fit", DATA_BYTES - 64, true},
    {"with wraps before both it does not fit", DATA_BYTES - 140, true},
    {"half full", DATA_BYTES / 2, false},
    {"empty", 0, false},
};

static void test_unsettled(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(unsettled_cases); i++) {
        const struct unsettled_case *c = &unsettled_cases[i];
        struct buffer *buffer = buffer_new(0, c->waiting);

        test_case(c->name);
        CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
        CHECK(!tbuf_is_unsettled(&buffer->tbuf));
        tbuf_consume(&buffer->tbuf, c->waiting);
        CHECK(tbuf_is_unsettled(&buffer->tbuf) == c->unsettled);

        /* Nothing new: consuming nothing settles nothing. */
        tbuf_consume(&buffer->tbuf, 0);
        CHECK(tbuf_is_unsettled(&buffer->tbuf) == c->unsettled);

        /* A record behind the loss tells it, be it consumed or not. */
        buffer->shared.prod += 28;
        CHECK(!tbuf_is_unsettled(&buffer->tbuf));
        tbuf_consume(&buffer->tbuf, 28);
        CHECK(!tbuf_is_unsettled(&buffer->tbuf));
        free(buffer);
    }
}

/* Emptied in two steps: what Xen wrote between them tells the loss before. */
static void test_unsettled_in_steps(void)
{
    struct buffer *buffer = buffer_new(0, DATA_BYTES);

    test_case("in steps");
    CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
    tbuf_consume(&buffer->tbuf, 4000);
    CHECK(tbuf_is_unsettled(&buffer->tbuf));
    buffer->shared.prod += 28 + 24;
    tbuf_consume(&buffer->tbuf, 2000);
    CHECK(!tbuf_is_unsettled(&buffer->tbuf));

    /* And a buffer that filled up again in between is unsettled anew. */
    buffer->shared.prod = (buffer->tbuf.cons + DATA_BYTES) % (2 * DATA_BYTES);
    tbuf_consume(&buffer->tbuf, 2000);
    CHECK(tbuf_is_unsettled(&buffer->tbuf));
    free(buffer);
}

/*
 * --- Two CPUs. Each side stores its own index, and loads the other's. If both loads came before
 * both stores, Xen would drop a record, and nothing would show it. ---
 */

#define RACE_ROUNDS   20000u
#define RACE_USEC     300000u /* on a machine that is busy, fewer rounds */
#define WAITING_BYTES (DATA_BYTES - 400u)
#define FIRST_BYTES   396u /* after which there is no room, unless all that waits is consumed */
#define SECOND_BYTES  28u

struct race {
    struct buffer *buffer;
    uint32_t begun, ended; /* atomic; rounds */
    bool was_dropped;      /* in this round; before `ended` */
    bool quits;            /* atomic */
};

/* Inserts two records, as Xen does. */
static void race_insert(struct race *race)
{
    struct t_buf *shared = &race->buffer->shared;
    uint32_t prod = WAITING_BYTES + FIRST_BYTES;
    uint32_t cons;

    __atomic_store_n(&shared->prod, prod, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* Xen's lock, between one record and the next */
    cons = __atomic_load_n(&shared->cons, __ATOMIC_ACQUIRE);
    race->was_dropped = prod + SECOND_BYTES - cons > DATA_BYTES;
    if (!race->was_dropped)
        __atomic_store_n(&shared->prod, prod + SECOND_BYTES, __ATOMIC_RELEASE);
}

static void *race_run(void *context)
{
    struct race *race = context;
    uint32_t round = 0;

    while (!__atomic_load_n(&race->quits, __ATOMIC_ACQUIRE)) {
        if (__atomic_load_n(&race->begun, __ATOMIC_ACQUIRE) == round) {
            (void)sched_yield();
            continue;
        }
        race_insert(race);
        __atomic_store_n(&race->ended, ++round, __ATOMIC_RELEASE);
    }
    return NULL;
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void test_unsettled_beside_xen(void)
{
    struct race race = {.buffer = buffer_new(0, 0)};
    struct buffer *buffer = race.buffer;
    uint64_t end_usec = now_usec() + RACE_USEC;
    unsigned int untold = 0;
    pthread_t thread;

    test_case("a record is dropped while the consumer is published");
    if (!CHECK_INT(pthread_create(&thread, NULL, race_run, &race), 0))
        exit(EXIT_FAILURE);
    for (uint32_t round = 1; round <= RACE_ROUNDS && now_usec() < end_usec; round++) {
        __atomic_store_n(&buffer->shared.cons, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&buffer->shared.prod, WAITING_BYTES, __ATOMIC_RELAXED);
        (void)tbuf_init(&buffer->tbuf, &buffer->shared, PAGES);
        __atomic_store_n(&race.begun, round, __ATOMIC_RELEASE);
        for (uint32_t i = round % 64; i > 0; i--)
            __asm__ volatile("" ::: "memory"); /* so that the two meet at different places */
        tbuf_consume(&buffer->tbuf, WAITING_BYTES);
        while (__atomic_load_n(&race.ended, __ATOMIC_ACQUIRE) != round)
            (void)sched_yield();
        untold += race.was_dropped && !tbuf_is_unsettled(&buffer->tbuf);
    }
    CHECK_UINT(untold, 0);
    __atomic_store_n(&race.quits, true, __ATOMIC_RELEASE);
    (void)pthread_join(thread, NULL);
    free(buffer);
}

struct resume_case {
    const char *name;
    uint32_t cons;
    uint32_t prod;
    uint32_t resume;
    int result;
};

static const struct resume_case resume_cases[] = {
    {"where it is", 100, 1000, 100, 0},
    {"a window further", 100, 1000, 500, 0},
    {"all of it", 100, 1000, 1000, 0},
    {"beyond what was written", 100, 1000, 1004, -EBADMSG},
    {"back", 100, 1000, 96, -EBADMSG},
    {"misaligned", 100, 1000, 502, -EBADMSG},
    {"beyond both laps", 100, 1000, 2 * DATA_BYTES, -EBADMSG},
    {"all ones", 100, 1000, UINT32_MAX, -EBADMSG},
    {"nothing waits", 100, 100, 100, 0},
    {"nothing waits, and further", 100, 100, 104, -EBADMSG},
    {"across the end", 2 * DATA_BYTES - 100, 100, 40, 0},
    {"full", 4, DATA_BYTES + 4, DATA_BYTES + 4, 0},
};

/* On from where the daemon before came to: at or behind cons, and before prod. */
static void test_resume(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(resume_cases); i++) {
        const struct resume_case *c = &resume_cases[i];
        struct buffer *buffer = buffer_new(c->cons, c->prod);

        test_case(c->name);
        CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
        CHECK_INT(tbuf_resume(&buffer->tbuf, c->resume), c->result);
        CHECK_UINT(buffer->tbuf.cons, c->result == 0 ? c->resume : c->cons);
        CHECK_UINT(buffer->shared.cons, buffer->tbuf.cons);
        free(buffer);
    }
}

/* One step of the property test: Xen inserts, then we take some of it. Returns wrong bytes. */
static uint32_t step(struct buffer *buffer, uint64_t *random, uint64_t *written, uint64_t *read)
{
    static uint8_t copied[DATA_BYTES];
    uint32_t space = (uint32_t)(DATA_BYTES - (*written - *read)), waiting = 0, take, wrong = 0;
    uint32_t insert = (uint32_t)(test_random(random) % (space / 4 + 1)) * 4;

    for (uint32_t i = 0; i < insert; i++, ++*written)
        buffer_data(buffer)[*written % DATA_BYTES] = (uint8_t)(*written * 11 + *written / 4093);
    buffer->shared.prod = (uint32_t)(*written % (2 * DATA_BYTES));

    CHECK_INT(tbuf_peek(&buffer->tbuf, &waiting), 0);
    CHECK_UINT(waiting, *written - *read);
    take = (uint32_t)(test_random(random) % (waiting / 4 + 1)) * 4;
    tbuf_copy(&buffer->tbuf, 0, take, copied);
    for (uint32_t i = 0; i < take; i++)
        wrong += copied[i] != (uint8_t)((*read + i) * 11 + (*read + i) / 4093);
    *read += take;
    CHECK_UINT(tbuf_cons_behind(&buffer->tbuf, take), *read % (2 * DATA_BYTES));
    tbuf_consume(&buffer->tbuf, take);
    CHECK_UINT(buffer->shared.cons, *read % (2 * DATA_BYTES));
    return wrong;
}

/* Against an endless stream of bytes, of which the buffer holds [read, written). */
static void test_property(void)
{
    uint64_t random = test_seed(), written, read;
    uint32_t wrong = 0;
    struct buffer *buffer;

    test_case("property");
    written = read = test_random(&random) % (2 * DATA_BYTES / 4) * 4;
    buffer = buffer_new((uint32_t)read, (uint32_t)written);
    CHECK_INT(tbuf_init(&buffer->tbuf, &buffer->shared, PAGES), 0);
    for (int i = 0; i < 2000; i++)
        wrong += step(buffer, &random, &written, &read);
    CHECK_UINT(wrong, 0);
    free(buffer);
}

int main(void)
{
    test_peek();
    test_copy();
    test_fill();
    test_unsettled();
    test_unsettled_in_steps();
    test_unsettled_beside_xen();
    test_resume();
    test_property();
    return test_end();
}
