// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The collector has a real-time priority, so in no state may it spin: a table of the states in
 * which it waits for something, each with the most wake-ups in 100 ms. The most CPU time is the
 * same in all of them. Both are ratios to the time that has passed. On the way into a state there
 * is work to do, which takes as long as other processes allow, so a state that lasts is looked at
 * again until it is calm: one in which the collector spins is not.
 */

#include <time.h>

#include "collector/collector-state.h"
#include "collector/grower.h"
#include "collector/handoff.h"
#include "common/meminfo.h"
#include "tests/unit/collector-rig.h"

#define LOOK_USEC    (100 * USEC_PER_MSEC)
#define LOOKS        100u                 /* at a state that lasts */
#define CALM_LOOKS   3u                   /* in a row: in one, what feeds it may have had no CPU */
#define SETTLED_USEC (30 * USEC_PER_MSEC) /* for what was sent last */
#define CPU_PERCENT  50u                  /* of one: one that spins has at least 90 */
#define POLL_USEC    (50 * USEC_PER_MSEC)
#define BUDGET_BYTES (UINT64_C(40) << 20) /* two steps of a ring */
#define RING_BYTES   (4 * RING_MIN_BYTES) /* gives back for longer than a look takes */
#define BASE_BYTES   (UINT64_C(8) << 20)

/* Of dom0, in place of common/meminfo.c. */
static bool is_scarce;

uint64_t meminfo_bytes(const char *key)
{
    (void)key;
    return __atomic_load_n(&is_scarce, __ATOMIC_RELAXED) ? 1 : 0; /* 0: unknown */
}

struct scene {
    struct bench bench;
    struct grower *grower; /* NULL: no ring borrows */
    struct ring *ring;
    struct handoff *handoff; /* of sink 0, which frees it */
    int pin;                 /* -1: none */
    int readers[2];          /* of pipes that are not read; -1: there is none */
    unsigned int nr_attached;
    bool feeds; /* atomic */
    bool floods;
    pthread_t feeder;
};

/* --- What is done on the way into a state. --- */

static void hold(struct scene *scene, bool softly)
{
    collector_send(scene->bench.collector, MESSAGE_HOLD, NULL, true, softly);
}

static void scene_attach(struct scene *scene)
{
    attach(&scene->bench, scene->nr_attached++);
}

static void add_file(struct scene *scene)
{
    (void)add_sink(&scene->bench, config_of(POLL_USEC), NULL);
}

static void begin_file(struct scene *scene)
{
    add_file(scene);
    scene_attach(scene);
}

/* A pipe that nobody reads: its first write does not end. */
static void begin_stuck(struct scene *scene, int *ret_reader, int flags)
{
    struct sink_config config = config_of(POLL_USEC);
    int fds[2];

    if (pipe2(fds, O_CLOEXEC | flags) < 0)
        exit(EXIT_FAILURE);
    config.is_stream = true;
    config.fd = fds[1];
    *ret_reader = fds[0];
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
}

static void put(struct scene *scene, unsigned int bytes)
{
    for (unsigned int i = 0; i < bytes / RECORD_BYTES;)
        if (put_record(&scene->bench, i % BUSY_CPUS))
            i++;
        else
            (void)usleep(50);
}

/* Until nobody takes them any more: the buffers stay full, and the virtual interrupt fires. */
static void fill_up(struct scene *scene)
{
    for (unsigned int idle = 0; idle < 20; idle++) {
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            while (put_record(&scene->bench, cpu))
                idle = 0;
        (void)eventfd_write(scene->bench.host.virq_fd, 1);
        (void)usleep(1000);
    }
}

static void *feed(void *context)
{
    struct scene *scene = context;

    const unsigned int most = scene->floods ? scene->bench.data_bytes / RECORD_BYTES : 1;

    for (; __atomic_load_n(&scene->feeds, __ATOMIC_ACQUIRE); usleep(scene->floods ? 100 : 1000))
        for (unsigned int cpu = 0; cpu < BUSY_CPUS; cpu++)
            for (unsigned int i = 0; i < most && put_record(&scene->bench, cpu); i++)
                continue;
    return NULL;
}

static void begin_feeding(struct scene *scene, bool floods)
{
    scene->floods = floods;
    __atomic_store_n(&scene->feeds, true, __ATOMIC_RELEASE);
    if (pthread_create(&scene->feeder, NULL, feed, scene) != 0)
        exit(EXIT_FAILURE);
}

static void begin_ring(struct scene *scene)
{
    if (grower_new(BUDGET_BYTES, &scene->grower) < 0 ||
        ring_new(RING_BYTES, CPUS, false, scene->grower, &scene->ring) < 0)
        exit(EXIT_FAILURE);
    (void)add_sink(&scene->bench, config_of(POLL_USEC), scene->ring);
    scene_attach(scene);
}

/* The ring is pinned, and then filled again. */
static void begin_pinned(struct scene *scene)
{
    struct ring_stats stats;

    begin_ring(scene);
    put(scene, RING_BYTES);
    scene->pin = ring_take_pin(scene->ring);
    tell(&scene->bench, 0, MESSAGE_PIN, false, scene->pin);
    must_come(&scene->bench, 0, MESSAGE_PINNED);
    do {
        put(scene, CHUNK_BYTES);
        ring_read_stats(scene->ring, &stats);
    } while (!is_scarce && stats.borrowed_bytes == 0);
    put(scene, 2 * RING_BYTES); /* is in it now */
}

static void release_pin(struct scene *scene)
{
    ring_advance_pin(scene->ring, scene->pin, NULL);
    scene->pin = -1;
}

/* --- The states. --- */

static void enter_empty(struct scene *scene)
{
    (void)scene;
}

static void enter_fed(struct scene *scene)
{
    begin_file(scene);
    begin_feeding(scene, false);
}

static void enter_hard_hold(struct scene *scene)
{
    begin_file(scene);
    hold(scene, false);
    (void)usleep(SETTLED_USEC);
    fill_up(scene);
}

static void enter_soft_hold(struct scene *scene)
{
    begin_file(scene);
    hold(scene, true);
    put(scene, 100 * RECORD_BYTES);
}

static void begin_holder(struct scene *scene)
{
    struct sink_config config = config_of(POLL_USEC);

    config.fd = -1;
    config.holds = true;
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
}

static void enter_holder(struct scene *scene)
{
    begin_holder(scene);
    fill_up(scene);
}

/* It has ended without an output, but it is traced. */
static void enter_holder_dropping(struct scene *scene)
{
    begin_holder(scene);
    tell(&scene->bench, 0, MESSAGE_GRANT, true, 0);
    begin_feeding(scene, true);
}

static void enter_successor_offered(struct scene *scene)
{
    begin_file(scene);
    add_file(scene);
    collector_send_successor(scene->bench.collector, scene->bench.sinks[0], scene->bench.sinks[1],
                             false);
    begin_feeding(scene, false);
}

static void enter_successor_waits(struct scene *scene)
{
    begin_stuck(scene, &scene->readers[0], 0);
    add_file(scene);
    put(scene, 2 * CHUNK_BYTES);
    collector_send_successor(scene->bench.collector, scene->bench.sinks[0], scene->bench.sinks[1],
                             true);
    must_come(&scene->bench, 0, MESSAGE_SUCCEEDED);
    scene->nr_attached++;
    begin_feeding(scene, false);
}

static void enter_stuck(struct scene *scene)
{
    begin_stuck(scene, &scene->readers[0], 0);
    fill_up(scene);
}

static void enter_stuck_beside(struct scene *scene)
{
    struct ledger ledger = {0};

    begin_stuck(scene, &scene->readers[0], 0);
    begin_file(scene);
    while (ledger.dropped == 0) {
        put(scene, CHUNK_BYTES);
        sink_read_ledger(scene->bench.sinks[0], 0, &ledger);
    }
    begin_feeding(scene, false);
}

/* Nobody has room, and the buffers are full again as soon as they are taken. */
static void enter_dropping(struct scene *scene)
{
    struct ledger ledger = {0};

    begin_stuck(scene, &scene->readers[0], 0);
    begin_stuck(scene, &scene->readers[1], 0);
    begin_feeding(scene, true);
    while (ledger.dropped == 0) {
        (void)usleep(1000);
        sink_read_ledger(scene->bench.sinks[0], 0, &ledger);
    }
}

/* Depending on the kernel, it is polled, or the write is tried again. */
static void enter_stuck_nonblocking(struct scene *scene)
{
    begin_stuck(scene, &scene->readers[0], O_NONBLOCK);
    fill_up(scene);
}

static void enter_without_grant(struct scene *scene)
{
    struct sink_config config = config_of(POLL_USEC);

    config.granted_bytes = 0;
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
    fill_up(scene);
}

static void enter_at_limit(struct scene *scene)
{
    struct sink_config config = config_of(POLL_USEC);

    config.max_bytes = CHUNK_BYTES;
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
    fill_up(scene);
    must_come(&scene->bench, 0, MESSAGE_LIMIT);
}

static void enter_failed(struct scene *scene)
{
    struct sink_config config = config_of(POLL_USEC);

    config.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
    put(scene, CHUNK_BYTES); /* more than fits into one */
    must_come(&scene->bench, 0, MESSAGE_FAILED);
    fill_up(scene);
}

static void enter_giving_back(struct scene *scene)
{
    begin_pinned(scene);
    release_pin(scene);
}

static void enter_borrowed_hold(struct scene *scene)
{
    begin_pinned(scene);
    hold(scene, false);
    release_pin(scene);
}

static void enter_refused(struct scene *scene)
{
    __atomic_store_n(&is_scarce, true, __ATOMIC_RELAXED);
    begin_pinned(scene);
    begin_feeding(scene, false);
}

static void enter_pool_refused(struct scene *scene)
{
    __atomic_store_n(&is_scarce, true, __ATOMIC_RELAXED);
    enter_stuck(scene);
    for (unsigned int i = 0; i < 20000 && pool_refusals(scene->bench.pool) == 0; i++) {
        collector_poke(scene->bench.collector);
        (void)usleep(1000);
    }
    CHECK(pool_refusals(scene->bench.pool) > 0);
}

static void enter_draining(struct scene *scene)
{
    enter_stuck(scene);
    tell(&scene->bench, 0, MESSAGE_DRAIN, true, 0);
}

static void enter_drained(struct scene *scene)
{
    begin_file(scene);
    tell(&scene->bench, 0, MESSAGE_DRAIN, true, 0);
    must_come(&scene->bench, 0, MESSAGE_DRAINED);
    fill_up(scene);
}

/* A CPU whose buffer was full may have a loss to report. */
static void enter_settling(struct scene *scene)
{
    begin_file(scene);
    hold(scene, false);
    (void)usleep(SETTLED_USEC);
    fill_up(scene);
    collector_send(scene->bench.collector, MESSAGE_HOLD, NULL, false, 0);
    tell(&scene->bench, 0, MESSAGE_DRAIN, true, 0);
    must_come(&scene->bench, 0, MESSAGE_DRAINED);
    tell(&scene->bench, 0, MESSAGE_SETTLE, false, 0);
}

static void enter_flushing(struct scene *scene)
{
    begin_stuck(scene, &scene->readers[0], 0);
    put(scene, 2 * CHUNK_BYTES);
    tell(&scene->bench, 0, MESSAGE_DRAIN, true, 0);
    must_come(&scene->bench, 0, MESSAGE_DRAINED);
    tell(&scene->bench, 0, MESSAGE_CLOSE, true, 0);
}

static void wake_collector(void *userdata)
{
    collector_poke(((struct scene *)userdata)->bench.collector);
}

static void release_handoff(void *userdata)
{
    handoff_destroy(((struct scene *)userdata)->handoff);
}

/* Its writer does not give back what it has. */
static void begin_handed_off(struct scene *scene)
{
    const struct handoff_config handoff = {
        .wake = wake_collector, .release = release_handoff, .userdata = scene};
    struct sink_config config = config_of(POLL_USEC);

    if (handoff_new(&handoff, &scene->handoff) < 0)
        exit(EXIT_FAILURE);
    config.handoff = scene->handoff;
    (void)add_sink(&scene->bench, config, NULL);
    scene_attach(scene);
}

static void enter_writer_stuck(struct scene *scene)
{
    begin_handed_off(scene);
    fill_up(scene);
}

static void enter_abandoned(struct scene *scene)
{
    begin_handed_off(scene);
    put(scene, 4 * CHUNK_BYTES);
    tell(&scene->bench, 0, MESSAGE_ABORT, false, 0);
    must_come(&scene->bench, 0, MESSAGE_ABANDONED);
}

enum kind {
    LASTS,
    ENDS, /* by itself: it is looked at once */
    POOL_GROWS,
};

static const struct state {
    const char *name;
    unsigned int max_wakeups; /* in 100 ms */
    void (*enter)(struct scene *scene);
    enum kind kind;
} states[] = {
    {"nothing is attached", 3, enter_empty, LASTS},
    {"idle, with a file", 6, begin_file, LASTS},
    {"idle, with a ring", 6, begin_ring, LASTS},
    {"fed slowly", 6, enter_fed, LASTS},
    {"a hard hold, full buffers", 6, enter_hard_hold, LASTS},
    {"a soft hold", 30, enter_soft_hold, LASTS}, /* looks every 5 ms */
    {"a sink holds, full buffers", 6, enter_holder, LASTS},
    {"a sink that holds drops, flooded", 80, enter_holder_dropping,
     LASTS}, /* each 5 ms, and both CPUs */
    {"a successor is offered", 6, enter_successor_offered, LASTS},
    {"a successor waits for the sink before", 6, enter_successor_waits, LASTS},
    {"the disk is waited for, full buffers", 6, enter_stuck, LASTS},
    {"the disk is waited for beside another", 30, enter_stuck_beside, LASTS},
    {"two disks are waited for, flooded", 80, enter_dropping, LASTS}, /* each 5 ms, and both CPUs */
    {"a full pipe that does not block", 40, enter_stuck_nonblocking,
     LASTS}, /* each 10 ms, and their ends */
    {"a grant is waited for, full buffers", 6, enter_without_grant, LASTS},
    {"the output is at its limit, full buffers", 6, enter_at_limit, LASTS},
    {"a write has failed, full buffers", 6, enter_failed, LASTS},
    {"a ring is pinned, and has borrowed", 6, begin_pinned, LASTS},
    {"a ring gives back", 30, enter_giving_back, ENDS}, /* a chunk every 10 ms */
    {"a ring has borrowed, in a hold", 6, enter_borrowed_hold, LASTS},
    {"a ring is refused memory", 6, enter_refused, LASTS},
    {"the pool is refused memory", 6, enter_pool_refused, POOL_GROWS},
    {"draining, the disk is waited for", 6, enter_draining, LASTS},
    {"drained, full buffers", 6, enter_drained, LASTS},
    {"settling", 70, enter_settling, ENDS}, /* looks every 2 ms */
    {"flushing", 6, enter_flushing, LASTS},
    {"a writer is waited for, full buffers", 6, enter_writer_stuck, LASTS},
    {"abandoned", 6, enter_abandoned, LASTS},
};

/* --- Looking. --- */

static uint64_t usec_of(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

/* Returns whether it is calm. The clock is read last and first: we may lose the CPU in between. */
static bool look(const struct scene *scene, const struct state *state, clockid_t cpu_clock)
{
    struct collector_stats before, after;
    uint64_t usec = usec_of(CLOCK_MONOTONIC), cpu_usec, wakeups;

    collector_read_stats(scene->bench.collector, &before);
    cpu_usec = usec_of(cpu_clock);
    (void)usleep(LOOK_USEC);
    collector_read_stats(scene->bench.collector, &after);
    cpu_usec = usec_of(cpu_clock) - cpu_usec;
    usec = usec_of(CLOCK_MONOTONIC) - usec;
    wakeups = after.wakeups - before.wakeups;
    printf("# %" PRIu64 " wake-ups, %" PRIu64 " us of CPU in %" PRIu64 " us\n", wakeups, cpu_usec,
           usec);
    return wakeups * LOOK_USEC <= state->max_wakeups * usec && cpu_usec * 100 <= CPU_PERCENT * usec;
}

static void test_calm(const struct scene *scene, const struct state *state)
{
    const unsigned int wanted = state->kind == ENDS ? 1 : CALM_LOOKS;
    unsigned int calm = 0;
    clockid_t cpu_clock;

    if (pthread_getcpuclockid(scene->bench.collector->thread, &cpu_clock) != 0)
        exit(EXIT_FAILURE);
    for (unsigned int i = 0; i < (state->kind == ENDS ? 1 : LOOKS) && calm < wanted; i++)
        calm = look(scene, state, cpu_clock) ? calm + 1 : 0;
    CHECK_UINT(calm, wanted);
}

/* Whatever it waits for: it has an end. */
static void leave(struct scene *scene)
{
    const struct handoff_done done = {.error = -ECANCELED};
    struct handoff_item item;
    struct bench *bench = &scene->bench;

    __atomic_store_n(&is_scarce, false, __ATOMIC_RELAXED);
    if (scene->feeds) {
        __atomic_store_n(&scene->feeds, false, __ATOMIC_RELEASE);
        (void)pthread_join(scene->feeder, NULL);
    }
    for (unsigned int i = 0; i < scene->nr_attached; i++)
        tell(bench, i, MESSAGE_ABORT, false, 0);
    if (scene->handoff) {
        while (handoff_take(scene->handoff, &item))
            continue;
        handoff_return(scene->handoff, &done);
    }
    for (unsigned int i = 0; i < scene->nr_attached; i++)
        must_come(bench, i, MESSAGE_CLOSED);
    if (scene->pin >= 0)
        release_pin(scene);
    for (size_t i = 0; i < ARRAY_SIZE(scene->readers); i++)
        fd_close(&scene->readers[i]);
    bench_done(bench);
    ring_free(scene->ring);
    grower_free(scene->grower);
}

static void test_state(const struct state *state)
{
    struct scene scene = {.pin = -1, .readers = {-1, -1}};
    struct grower *grower = NULL;
    struct pool *pool;

    test_case(state->name);
    if (state->kind != POOL_GROWS)
        bench_init(&scene.bench, SMALL_PAGES);
    else if (grower_new(BUDGET_BYTES, &grower) >= 0 &&
             pool_new_growing(BASE_BYTES, grower, sink_notes(CPUS), &pool) >= 0)
        bench_init_with(&scene.bench, SMALL_PAGES, pool);
    else
        exit(EXIT_FAILURE);
    state->enter(&scene);
    collector_poke(scene.bench.collector); /* whatever it is woken by, it sleeps again */
    (void)usleep(SETTLED_USEC);
    test_calm(&scene, state);
    leave(&scene);
    grower_free(grower);
}

int main(void)
{
    if (!bench_is_possible())
        return TEST_SKIPPED;
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        test_state(&states[i]);
    return test_end();
}
