// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Snapshots of a ring: what they have pinned stays as it is while the ring goes on, and comes back
 * when they are done with it. And a ring's whole life, at random.
 */

#include <errno.h>

#include "collector/grower.h"
#include "daemon/session/snapshot-plan.h"
#include "tests/unit/ring-rig.h"

#define SMALL_RING (UINT64_C(4) << 20)

/* A snapshot under way: what it has pinned, and what that was. */
struct snapshot {
    int pin; /* -1: none */
    const struct chunk *next;
    unsigned int nr_chunks;
    unsigned int done;
    const struct chunk *chunks[64];
    uint64_t sums[64];
};

static uint64_t sum_chunk(const struct ring *ring, const struct chunk *chunk)
{
    struct ring_chunk_info info;
    uint8_t *copy = rig_alloc(1, ring_chunk_bytes(ring));
    uint32_t bytes = ring_copy_chunk(ring, chunk, 0, copy);
    uint64_t sum, word;

    ring_read_chunk(ring, chunk, &info);
    sum = info.seq * 31 + info.bytes * 7 + info.first_round + info.last_tsc;
    for (uint32_t offset = 0; offset < bytes; offset += 8) {
        memcpy(&word, copy + offset, sizeof(word));
        sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15) + (sum >> 29);
    }
    for (unsigned int cpu = 0; cpu < ring->nr_cpus; cpu++) {
        uint64_t records, from, lost;

        ring_read_counts(ring, chunk, cpu, false, &records, &lost);
        ring_read_counts(ring, chunk, cpu, true, &from, &lost);
        sum = (sum * 31 + records) * 31 + from;
    }
    free(copy);
    return sum;
}

static void snapshot_begin(struct snapshot *snapshot, struct ring_rig *rig)
{
    uint64_t seq = 0;

    *snapshot = (struct snapshot){.pin = ring_take_pin(rig->ring)};
    if (!CHECK(snapshot->pin >= 0))
        exit(EXIT_FAILURE);
    ring_pin(rig->ring, snapshot->pin);
    snapshot->next = ring_pin_first(rig->ring, snapshot->pin);
    if (ring_pin_is_refused(rig->ring, snapshot->pin)) {
        CHECK(!snapshot->next);
        return;
    }
    if (rig->ring->head)
        CHECK(snapshot->next == rig->ring->head);
    for (const struct chunk *chunk = snapshot->next; chunk;
         chunk = ring_pin_next(rig->ring, snapshot->pin, chunk)) {
        CHECK(seq == 0 || chunk->seq == seq + 1);
        seq = chunk->seq;
        CHECK(ring_must_copy_chunk(rig->ring, chunk) || chunk->fill_bytes % PAGE_BYTES == 0);
        CHECK(ring_verify_chunk(rig->ring, chunk));
        snapshot->sums[snapshot->nr_chunks] = sum_chunk(rig->ring, chunk);
        snapshot->chunks[snapshot->nr_chunks++] = chunk;
    }
    if (rig->ring->filling && rig->ring->filling->fill_bytes > 0 && snapshot->next)
        CHECK_UINT(seq, rig->ring->filling->seq);
    else if (rig->ring->head)
        CHECK_UINT(seq, rig->ring->tail->seq);
}

/* What is pinned is as it was, and may still be stepped through. */
static void snapshot_check(const struct snapshot *snapshot, const struct ring *ring)
{
    const struct chunk *chunk = snapshot->next;

    for (unsigned int i = snapshot->done; i < snapshot->nr_chunks; i++) {
        CHECK(chunk == snapshot->chunks[i]);
        CHECK_UINT(sum_chunk(ring, chunk), snapshot->sums[i]);
        chunk = ring_pin_next(ring, snapshot->pin, chunk);
    }
    CHECK(!chunk);
}

static void snapshot_advance(struct snapshot *snapshot, struct ring *ring)
{
    const struct chunk *next = NULL;

    if (snapshot->next)
        next = ring_pin_next(ring, snapshot->pin, snapshot->next);
    snapshot->next = next;
    snapshot->done++;
    ring_advance_pin(ring, snapshot->pin, next);
    if (!next)
        snapshot->pin = -1;
}

static void snapshot_end(struct snapshot *snapshot, struct ring *ring)
{
    snapshot_check(snapshot, ring);
    ring_advance_pin(ring, snapshot->pin, NULL);
    snapshot->pin = -1;
}

static void feed_chunks(struct ring_rig *rig, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        CHECK(rig_feed_round(rig, RIG_MAX_RECORDS / rig->nr_cpus - 10, true));
        ring_close_chunk(rig->ring);
    }
}

static void test_pin_numbers(void)
{
    struct ring_rig rig;

    test_case("pin numbers");
    ring_rig_init(&rig, NULL, SMALL_RING, 1);
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        CHECK_INT(ring_take_pin(rig.ring), i);
    CHECK_INT(ring_take_pin(rig.ring), -EBUSY);
    ring_advance_pin(rig.ring, 3, NULL);
    CHECK_INT(ring_take_pin(rig.ring), 3);
    ring_rig_done(&rig);
}

static void test_pin_empty(void)
{
    struct snapshot snapshot;
    struct ring_rig rig;

    test_case("a pin of an empty ring");
    ring_rig_init(&rig, NULL, SMALL_RING, 2);
    snapshot_begin(&snapshot, &rig);
    CHECK(!ring_pin_first(rig.ring, snapshot.pin));
    feed_chunks(&rig, 40);
    CHECK(!rig.ring->limbo_head); /* it pins nothing */
    snapshot_end(&snapshot, rig.ring);
    rig_check(&rig);

    test_case("a pin of a window without a round's begin");
    ring_rig_done(&rig);
    ring_rig_init(&rig, NULL, SMALL_RING, 2);
    (void)rig_feed_round(&rig, 10, false);
    snapshot_begin(&snapshot, &rig);
    CHECK(!ring_pin_first(rig.ring, snapshot.pin));
    rig_check(&rig);
    ring_rig_done(&rig);
}

/*
 * Any number of snapshots, each after a few records: the ring has as many chunks as the records
 * need, and each snapshot has what was recorded until then.
 */
static void test_pins_in_a_row(void)
{
    struct ring_rig rig;
    struct ring_stats stats;
    uint64_t oldest_tsc;

    test_case("1,000 pins in a row");
    ring_rig_init(&rig, NULL, SMALL_RING, 3);
    feed_chunks(&rig, 2);
    ring_read_stats(rig.ring, &stats);
    oldest_tsc = stats.oldest_tsc;
    for (unsigned int i = 0; i < 1000; i++) {
        struct snapshot snapshot;

        (void)rig_feed_round(&rig, 10, true);
        snapshot_begin(&snapshot, &rig);
        (void)rig_feed_round(&rig, 1, i % 3 != 0); /* after the tail */
        if (i % 7 == 0)
            rig_check(&rig);
        snapshot_end(&snapshot, rig.ring);
    }
    ring_read_stats(rig.ring, &stats);
    CHECK_UINT(stats.oldest_tsc, oldest_tsc);
    CHECK_UINT(rig_count_chunks(&rig), rig.ring->nr_chunks);
    rig_check(&rig);
    ring_rig_done(&rig);
}

/* The chunk that was being filled is closed, and evicted: its pin has it as it was. */
static void test_pinned_tail(void)
{
    struct snapshot snapshots[3];
    struct ring_rig rig;

    test_case("a pinned tail");
    ring_rig_init(&rig, NULL, SMALL_RING, 2);
    for (unsigned int i = 0; i < ARRAY_SIZE(snapshots); i++) {
        (void)rig_feed_round(&rig, 50, true);
        snapshot_begin(&snapshots[i], &rig); /* all in the first chunk, which is the head, too */
        CHECK(snapshots[i].next && ring_must_copy_chunk(rig.ring, snapshots[i].next));
    }
    ring_close_chunk(rig.ring); /* the last window's header is written again */
    for (unsigned int i = 0; i < ARRAY_SIZE(snapshots); i++)
        snapshot_check(&snapshots[i], rig.ring);
    feed_chunks(&rig, 40);
    CHECK(rig.ring->limbo_head && rig.ring->limbo_head->seq == 1);
    for (unsigned int i = 0; i < ARRAY_SIZE(snapshots); i++)
        snapshot_end(&snapshots[i], rig.ring);
    feed_chunks(&rig, 40);
    CHECK_UINT(rig_count_chunks(&rig), rig.ring->nr_chunks);
    rig_check(&rig);
    ring_rig_done(&rig);
}

/* A snapshot takes its time while the ring goes round several times. */
static void test_pinned_content(void)
{
    struct snapshot snapshot;
    struct ring_rig rig;

    test_case("pinned content");
    ring_rig_init(&rig, NULL, 4 * SMALL_RING, 2);
    feed_chunks(&rig, 70);
    (void)rig_feed_round(&rig, 100, true);
    snapshot_begin(&snapshot, &rig);
    for (unsigned int i = 0; i < 200; i++) {
        feed_chunks(&rig, 1);
        rig_check(&rig);
        CHECK_UINT(rig_count_chunks(&rig), rig.ring->nr_chunks);
        if (i % 10 == 0)
            snapshot_check(&snapshot, rig.ring);
        if (i > 20 && i % 2 && snapshot.pin >= 0)
            snapshot_advance(&snapshot, rig.ring);
    }
    CHECK_INT(snapshot.pin, -1);
    CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1); /* as long as before */
    ring_rig_done(&rig);
}

/* However many snapshots are stuck, new records have a chunk; a pin that would take it is refused.
 */
static void test_all_pinned(void)
{
    struct snapshot snapshots[RING_PINS_MAX];
    unsigned int refused = 0, nr_listed;
    uint64_t drops[DROP_CAUSES];
    const struct chunk *head;
    struct ring_stats stats;
    struct ring_rig rig;

    test_case("all pinned");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, 2);
    feed_chunks(&rig, 20);
    for (unsigned int i = 0; i < RING_PINS_MAX; i++) {
        snapshot_begin(&snapshots[i], &rig);
        CHECK(ring_pin_first(rig.ring, snapshots[i].pin) ||
              ring_pin_is_refused(rig.ring, snapshots[i].pin));
        refused += ring_pin_is_refused(rig.ring, snapshots[i].pin);
        feed_chunks(&rig, 1 + i % 3);
        CHECK(rig_feed_round(&rig, 100, true));
        rig_check(&rig);
    }
    CHECK(!ring_pin_is_refused(rig.ring, snapshots[0].pin));
    CHECK(!ring_pin_is_refused(rig.ring, snapshots[1].pin)); /* of what was left */
    CHECK(refused > 0);
    feed_chunks(&rig, 50);
    CHECK_UINT(rig.dropped[0] + rig.dropped[1], 0);
    ring_read_stats(rig.ring, &stats);
    CHECK(stats.shortened_bytes > 0);
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        snapshot_check(&snapshots[i], rig.ring);

    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        snapshot_end(&snapshots[i], rig.ring);
    feed_chunks(&rig, 20);
    rig_check(&rig);
    CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1);
    snapshot_begin(&snapshots[0], &rig);
    CHECK(!ring_pin_is_refused(rig.ring, snapshots[0].pin));
    CHECK(snapshots[0].nr_chunks >= rig.ring->max_listed - 1);
    snapshot_end(&snapshots[0], rig.ring);
    ring_rig_done(&rig);

    test_case("what an earlier version dropped was pinned");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, 2);
    ring_commit_drop(rig.ring, &(struct ring_window){.cpu = 1},
                     &(struct walk_result){.records = 7});
    ring_read_drops(rig.ring, drops);
    CHECK_UINT(drops[DROP_PINNED], 7);
    ring_rig_done(&rig);

    test_case("as long as a chunk is left, a pin has all that is in the ring");
    ring_rig_init(&rig, NULL, SMALL_RING, 2);
    feed_chunks(&rig, 20);
    snapshot_begin(&snapshots[0], &rig);
    while (rig.ring->nr_free > 1)
        feed_chunks(&rig, 1);
    nr_listed = rig.ring->nr_listed;
    CHECK(ring_is_pinned(rig.ring, rig.ring->head));
    snapshot_begin(&snapshots[1], &rig);
    CHECK_UINT(snapshots[1].nr_chunks, nr_listed);
    feed_chunks(&rig, 5);
    CHECK_UINT(rig.dropped[0] + rig.dropped[1], 0);
    snapshot_end(&snapshots[0], rig.ring);
    snapshot_end(&snapshots[1], rig.ring);
    ring_rig_done(&rig);

    test_case("a pin of a ring whose records have expired is empty, not refused");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, 2);
    feed_chunks(&rig, 5);
    snapshot_begin(&snapshots[0], &rig);
    ring_close_chunk(rig.ring);
    ring_expire(rig.ring, UINT64_MAX);
    snapshots[1].pin = ring_take_pin(rig.ring);
    ring_pin(rig.ring, snapshots[1].pin);
    CHECK(!ring_pin_first(rig.ring, snapshots[1].pin));
    CHECK(!ring_pin_is_refused(rig.ring, snapshots[1].pin));
    ring_advance_pin(rig.ring, snapshots[1].pin, NULL);
    snapshot_end(&snapshots[0], rig.ring);
    ring_rig_done(&rig);

    test_case("a pin of a ring that is no longer filled takes all of it");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, 2);
    feed_chunks(&rig, 20);
    snapshot_begin(&snapshots[0], &rig);
    while (rig.ring->nr_free > 0)
        feed_chunks(&rig, 1);
    head = rig.ring->head;
    snapshots[1].pin = ring_take_pin(rig.ring);
    ring_pin_closed(rig.ring, snapshots[1].pin);
    CHECK(ring_pin_first(rig.ring, snapshots[1].pin) == head);
    ring_advance_pin(rig.ring, snapshots[1].pin, NULL);

    test_case("a pin finds what another has released");
    snapshot_end(&snapshots[0], rig.ring);
    snapshot_begin(&snapshots[0], &rig);
    CHECK(ring_pin_first(rig.ring, snapshots[0].pin) == head);
    snapshot_end(&snapshots[0], rig.ring);
    ring_rig_done(&rig);
}

/*
 * One snapshot is stuck, with all the ring pinned. Others, which have the rest for a moment, give
 * it back, though it lies behind what the first one keeps.
 */
static void test_stuck_snapshot(void)
{
    struct snapshot stuck, quick;
    struct ring_rig rig;

    test_case("a stuck snapshot");
    ring_rig_init(&rig, NULL, 2 * SMALL_RING, 2);
    feed_chunks(&rig, 50);
    snapshot_begin(&stuck, &rig);
    for (unsigned int i = 0; i < 50; i++) {
        feed_chunks(&rig, 3); /* none of this is dropped */
        rig_check(&rig);
        snapshot_begin(&quick, &rig);
        for (unsigned int j = 0; j < 40; j++)
            CHECK(rig_feed_round(&rig, 1000, true));
        snapshot_end(&quick, rig.ring);
    }
    CHECK_UINT(rig_count_chunks(&rig), rig.ring->nr_chunks);
    snapshot_end(&stuck, rig.ring);
    feed_chunks(&rig, 50);
    rig_check(&rig);
    CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1);
    ring_rig_done(&rig);
}

/* --- At random. --- */

struct random_ring {
    struct ring_rig rig;
    struct grower *grower; /* NULL: it does not borrow */
    struct snapshot snapshots[RING_PINS_MAX];
    uint64_t random;
};

static uint64_t pick(struct random_ring *r, uint64_t below)
{
    return test_random(&r->random) % below;
}

static void feed_randomly(struct random_ring *r)
{
    uint32_t max = pick(r, 8) == 0 ? RIG_MAX_RECORDS : 1000;

    rig_begin_round(&r->rig, pick(r, 6) != 0);
    for (unsigned int cpu = 0; cpu < r->rig.nr_cpus; cpu++)
        if (pick(r, 3) != 0)
            (void)rig_feed_window(&r->rig, cpu, (uint32_t)pick(r, max) + 1,
                                  (uint32_t)(pick(r, 20) == 0));
}

/* What is left when everything older than TSC goes, and what then is no beginning. */
static unsigned int expect_left(const struct ring *ring, uint64_t tsc)
{
    const struct chunk *chunk = ring->head;
    unsigned int left = 0;

    while (chunk && ring_state_of(ring, chunk)->last_tsc < tsc) {
        do
            chunk = chunk->next;
        while (chunk && ring_state_of(ring, chunk)->first_round == RING_NO_ROUND);
    }
    for (; chunk; chunk = chunk->next)
        left++;
    return left;
}

static void expire_randomly(struct random_ring *r)
{
    uint64_t tsc = r->rig.tsc - min_u64(r->rig.tsc, pick(r, 200000));
    unsigned int left = expect_left(r->rig.ring, tsc);

    ring_expire(r->rig.ring, tsc);
    CHECK_UINT(r->rig.ring->nr_listed, left);
}

static void snapshot_randomly(struct random_ring *r)
{
    struct snapshot *snapshot = &r->snapshots[pick(r, RING_PINS_MAX)];

    if (snapshot->pin < 0)
        snapshot_begin(snapshot, &r->rig);
    else if (pick(r, 4) == 0)
        snapshot_end(snapshot, r->rig.ring);
    else
        snapshot_advance(snapshot, r->rig.ring);
}

static void check_count(const struct ring_rig *rig)
{
    CHECK_UINT(rig_count_chunks(rig),
               rig->ring->nr_chunks + rig->ring->nr_borrowed * rig->ring->layout.step_chunks);
}

static void random_step(struct random_ring *r)
{
    switch (pick(r, 16)) {
    case 0:
        ring_close_chunk(r->rig.ring);
        break;
    case 1:
        expire_randomly(r);
        break;
    case 6:
        if (ring_settle(r->rig.ring, ring_settle_usec(r->rig.ring)))
            ring_close_chunk(r->rig.ring);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        snapshot_randomly(r);
        break;
    default:
        feed_randomly(r);
    }
    check_count(&r->rig);
}

/* With a budget of BORROWS steps. */
static void test_random_life(uint64_t seed, unsigned int borrows)
{
    static const unsigned int cpus[] = {1, 2, 5, 31};
    struct random_ring r = {.random = seed};
    uint64_t bytes = RING_MIN_BYTES + pick(&r, 12) * CHUNK_BYTES;
    unsigned int nr_cpus = cpus[pick(&r, ARRAY_SIZE(cpus))];
    struct ring *ring = NULL;

    if (borrows > 0 && (grower_new(borrows * (UINT64_C(17) << 20), &r.grower) < 0 ||
                        ring_new(bytes, nr_cpus, true, r.grower, &ring) < 0))
        exit(EXIT_FAILURE);
    ring_rig_init(&r.rig, ring, bytes, nr_cpus);
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        r.snapshots[i].pin = -1;
    for (unsigned int i = 0; i < 400; i++) {
        random_step(&r);
        rig_check_ledger(&r.rig, NULL);
        if (i % 8 == 0)
            rig_check(&r.rig);
        for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
            CHECK_UINT(r.rig.dropped[cpu], 0); /* whatever is pinned */
        for (unsigned int j = 0; i % 16 == 0 && j < RING_PINS_MAX; j++)
            if (r.snapshots[j].pin >= 0)
                snapshot_check(&r.snapshots[j], r.rig.ring);
    }
    for (unsigned int j = 0; j < RING_PINS_MAX; j++)
        if (r.snapshots[j].pin >= 0)
            snapshot_end(&r.snapshots[j], r.rig.ring);
    while (r.rig.ring->head)
        ring_evict(r.rig.ring);
    rig_check(&r.rig);
    feed_chunks(&r.rig, 2 * r.rig.ring->nr_chunks);
    while (ring_settle_usec(r.rig.ring))
        if (ring_settle(r.rig.ring, ring_settle_usec(r.rig.ring)))
            ring_close_chunk(r.rig.ring);
    CHECK_UINT(r.rig.ring->nr_borrowed, 0);
    CHECK(r.rig.ring->nr_listed >= r.rig.ring->max_listed - 1); /* all are back */
    rig_check(&r.rig);
    ring_rig_done(&r.rig);
    grower_free(r.grower);
}

/* --- How long pinning takes. --- */

/*
 * The shortest time to pin a ring that is full of windows, of which the records do not matter; 0:
 * there is no memory for it.
 */
static uint64_t time_pin(uint64_t bytes)
{
    struct walk_result walked = {.records = 1, .first_tsc = 1, .last_tsc = 2};
    struct ring_window window = {.bytes = CHUNK_BYTES, .begins_round = true, .begins_even = true};
    const struct window_header header = {WINDOW_HEADER, 0, CHUNK_BYTES - WINDOW_HEADER_BYTES};
    uint64_t nsec = UINT64_MAX;
    struct ring *ring;

    if (ring_new(bytes, 64, true, NULL, &ring) < 0)
        return 0;
    for (unsigned int i = 0; i < 2 * ring->nr_chunks; i++) {
        memcpy(ring_fill(ring)->data, &header, sizeof(header));
        ring_commit_window(ring, &window, &walked);
        ring_close_chunk(ring);
    }
    for (unsigned int i = 0; i < 100; i++) {
        int pin = ring_take_pin(ring);

        memcpy(ring_fill(ring)->data, &header, sizeof(header));
        ring_commit_window(ring, &window, &walked);
        ring_pin(ring, pin);
        ring_close_chunk(ring);
        nsec = min_u64(nsec, ring_pin_nsec(ring, pin));
        ring_advance_pin(ring, pin, NULL);
    }
    ring_free(ring);
    return max_u64(nsec, 1);
}

/* The content is not touched, so it does not matter how much there is. */
static void test_pin_time(void)
{
    uint64_t small = time_pin(UINT64_C(64) << 20);
    uint64_t large = time_pin(UINT64_C(1) << 30);

    test_case("the time to pin");
    if (!small || !large) {
        printf("# no memory for rings of 64 MiB and 1 GiB: pins are not timed\n");
        return;
    }
    printf("# pinning takes %" PRIu64 " ns at 64 MiB, %" PRIu64 " ns at 1 GiB\n", small, large);
    CHECK(large < 20 * max_u64(small, 50)); /* the clock has steps */
}

/* A file may begin within the newest chunk, too, also while that is being filled. */
static void test_newest_part(void)
{
    const struct snapshot_bounds bounds = {.max_bytes = 256 * 1024};
    struct snapshot_plan plan;
    struct ring_rig rig;
    int pin;

    test_case("a size that only a part of the newest chunk has");
    ring_rig_init(&rig, NULL, UINT64_C(64) << 20, 2);
    for (unsigned int i = 0; i < 5000; i++)
        CHECK(rig_feed_round(&rig, 4, true));
    pin = ring_take_pin(rig.ring);
    ring_pin(rig.ring, pin);
    CHECK(ring_pin_first(rig.ring, pin)->fill_bytes > 2 * bounds.max_bytes);
    if (CHECK_INT(snapshot_make_plan(rig.ring, pin, &bounds, 2, &plan), 0)) {
        CHECK(plan.bytes <= bounds.max_bytes);
        CHECK(plan.bytes > bounds.max_bytes - 2 * PAGE_BYTES);
    }
    ring_advance_pin(rig.ring, pin, NULL);
    ring_rig_done(&rig);
}

int main(void)
{
    uint64_t random = test_seed();

    test_pin_numbers();
    test_pin_empty();
    test_pins_in_a_row();
    test_pinned_tail();
    test_pinned_content();
    test_all_pinned();
    test_stuck_snapshot();
    test_newest_part();
    test_case("random life");
    for (unsigned int i = 0; i < 40; i++)
        test_random_life(test_random(&random), i % 3);
    test_pin_time();
    return test_end();
}
