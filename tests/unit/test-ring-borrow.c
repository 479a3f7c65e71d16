// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A ring that borrows memory while a snapshot is written: it does not get shorter as long as the
 * budget has something, gives all of it back afterwards, and survives with it.
 */

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collector/grower.h"
#include "tests/unit/ring-rig.h"

#ifdef __SANITIZE_THREAD__
static const bool under_tsan = true;
#else
static const bool under_tsan;
#endif

#define CPUS       2u
#define RING_BYTES (UINT64_C(4) << 20)
#define STEP_BYTES ((UINT64_C(16) << 20) + PAGE_BYTES) /* the counts of its chunks */
#define WAIT_MSEC  10000u                              /* for lack of progress */

struct rig {
    struct ring_rig rig;
    struct grower *grower;
    struct ring *ring;
    uint64_t now_usec;
};

static void set_up(struct rig *rig, uint64_t budget_bytes)
{
    *rig = (struct rig){0};
    if (grower_new(budget_bytes, &rig->grower) < 0 ||
        ring_new(RING_BYTES, CPUS, true, rig->grower, &rig->ring) < 0)
        exit(EXIT_FAILURE);
    ring_rig_init(&rig->rig, rig->ring, 0, CPUS);
}

static void tear_down(struct rig *rig)
{
    rig_check(&rig->rig);
    ring_rig_done(&rig->rig);
    CHECK_UINT(grower_used_bytes(rig->grower), 0);
    grower_free(rig->grower);
}

static struct ring_stats stats_of(const struct rig *rig)
{
    struct ring_stats stats;

    ring_read_stats(rig->ring, &stats);
    return stats;
}

/* What the kernel has for its file. */
static uint64_t file_bytes(const struct ring *ring)
{
    struct stat st;

    CHECK_INT(fstat(ring_memfd(ring), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

/* Until what is asked for is there, or refused. */
static void await_grower(const struct rig *rig)
{
    const struct ring *ring = rig->ring;

    for (unsigned int i = 0; ring->asks && i < WAIT_MSEC; i++) {
        uint64_t steps = stats_of(rig).borrowed_bytes / STEP_BYTES;

        if (steps >= min_u64(ring->nr_borrowed + 1, ring->nr_steps))
            return;
        (void)poll(NULL, 0, 1);
    }
}

static void feed(struct rig *rig, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        CHECK(rig_feed_round(&rig->rig, RIG_MAX_RECORDS / CPUS - 10, true));
        ring_close_chunk(rig->ring);
        await_grower(rig);
    }
}

static int pin_all(struct rig *rig)
{
    int pin = ring_take_pin(rig->ring);

    ring_pin(rig->ring, pin);
    return pin;
}

static void check_count(const struct rig *rig)
{
    const struct ring *ring = rig->ring;

    CHECK_UINT(rig_count_chunks(&rig->rig),
               ring->nr_chunks + ring->nr_borrowed * ring->layout.step_chunks);
}

/* Gives back all that can be, as the collector does. Returns how often that was called. */
static unsigned int settle(struct rig *rig)
{
    unsigned int turns = 0;
    uint64_t due_usec;

    while ((due_usec = ring_settle_usec(rig->ring)) && turns < 10000) {
        uint32_t listed = rig->ring->nr_listed;

        CHECK(!ring_settle(rig->ring, due_usec - 1));
        if (ring_settle(rig->ring, due_usec))
            ring_close_chunk(rig->ring);
        CHECK(rig->ring->nr_listed >= listed);
        check_count(rig);
        turns++;
    }
    /* A step that is still being made comes and goes, too. */
    for (unsigned int i = 0; grower_used_bytes(rig->grower) && i < WAIT_MSEC; i++)
        (void)poll(NULL, 0, 1);
    return turns;
}

/* A slow snapshot, while the ring goes round several times. */
static void test_enough(void)
{
    struct rig rig;
    uint64_t own_bytes;
    uint32_t listed;
    int pin;

    test_case("a budget that is enough");
    set_up(&rig, 4 * STEP_BYTES);
    own_bytes = file_bytes(rig.ring);
    feed(&rig, 40);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    listed = rig.ring->nr_listed;
    pin = pin_all(&rig);
    for (unsigned int i = 0; i < 100; i++) {
        feed(&rig, 1);
        CHECK(rig.ring->nr_listed >= listed - 1);
        check_count(&rig);
    }
    rig_check(&rig.rig);
    CHECK(stats_of(&rig).borrowed_bytes > 0);
    CHECK_UINT(stats_of(&rig).shortened_bytes, 0);
    CHECK_UINT(ring_settle_usec(rig.ring), 0); /* as long as it is pinned */
    CHECK(!ring_settle(rig.ring, UINT64_MAX));

    test_case("all of it is given back");
    ring_advance_pin(rig.ring, pin, NULL);
    CHECK(settle(&rig) > 10); /* a chunk at a time */
    CHECK_UINT(rig.ring->nr_borrowed, 0);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    CHECK_UINT(file_bytes(rig.ring), own_bytes);
    CHECK(rig.ring->nr_listed >= listed - 1);
    rig_check(&rig.rig);
    feed(&rig, 40);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    tear_down(&rig);
}

/* A disk that hangs for ever: what it holds stays within the budget, and recording continues. */
static void test_too_little(void)
{
    struct rig rig;
    int pin;

    test_case("a budget that is too small");
    set_up(&rig, STEP_BYTES + STEP_BYTES / 2);
    feed(&rig, 40);
    pin = pin_all(&rig);
    for (unsigned int i = 0; i < 300; i++) {
        feed(&rig, 1);
        check_count(&rig);
    }
    CHECK_UINT(stats_of(&rig).borrowed_bytes, STEP_BYTES);
    CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1); /* it was enough for one snapshot */
    for (unsigned int i = 1; i < 5; i++) {                  /* each has other chunks */
        (void)pin_all(&rig);
        feed(&rig, 20);
    }
    CHECK(stats_of(&rig).shortened_bytes > 0);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, STEP_BYTES);
    CHECK_UINT(rig.rig.dropped[0], 0);
    rig_check(&rig.rig);
    for (int i = 0; i < 5; i++)
        if (i != pin)
            ring_advance_pin(rig.ring, i, NULL);
    feed(&rig, 40);
    ring_advance_pin(rig.ring, pin, NULL);
    (void)settle(&rig);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    feed(&rig, 40);
    CHECK(rig.ring->nr_listed >= rig.ring->max_listed - 1);
    tear_down(&rig);

    test_case("no budget");
    set_up(&rig, STEP_BYTES - 1);
    feed(&rig, 40);
    pin = pin_all(&rig);
    feed(&rig, 12);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    CHECK(stats_of(&rig).shortened_bytes > 0);
    CHECK(rig.ring->nr_listed < rig.ring->max_listed - 1);
    ring_advance_pin(rig.ring, pin, NULL);
    CHECK_UINT(ring_settle_usec(rig.ring), 0);
    feed(&rig, 40);
    tear_down(&rig);
}

/* What was asked for and is not needed any more; and a borrowed chunk that nothing comes into. */
static void test_unused(void)
{
    struct rig rig;
    int pin;

    test_case("borrowed, and not used");
    set_up(&rig, 4 * STEP_BYTES);
    feed(&rig, 40);
    pin = pin_all(&rig);
    feed(&rig, 2);
    ring_advance_pin(rig.ring, pin, NULL);
    CHECK(stats_of(&rig).borrowed_bytes > 0);
    CHECK(ring_settle_usec(rig.ring) > 0);
    (void)settle(&rig);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);

    test_case("a borrowed chunk that is filled slowly");
    pin = pin_all(&rig);
    while (!rig.ring->filling || ring_is_home(rig.ring, rig.ring->filling)) {
        feed(&rig, 1);
        (void)ring_fill(rig.ring);
    }
    ring_advance_pin(rig.ring, pin, NULL);
    CHECK_UINT(rig.ring->filling->fill_bytes, 0);
    (void)settle(&rig);
    CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
    CHECK(rig_feed_round(&rig.rig, 10, true));
    rig_check(&rig.rig);
    tear_down(&rig);
}

/* --- The next daemon. --- */

/* Where each CPU's records end. */
static void resume(struct rig *rig, const struct ring_rig *before)
{
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        rig_set_cons(&rig->rig, cpu, rig_cons(before, cpu));
    rig->rig.tsc = before->tsc;
}

static void check_content(const struct rig *rig, const struct ring_rig *before)
{
    struct rig_content content;

    rig_content_init(&content, &rig->rig);
    rig_read_ring(&rig->rig, &content);
    CHECK(content.sound);
    rig_check_ledger(&rig->rig, &content);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        CHECK_UINT(content.next[cpu], before->number[cpu]);
    CHECK_UINT(stats_of(rig).used_bytes, content.bytes);
    for (const struct chunk *chunk = rig->ring->head; chunk; chunk = chunk->next)
        CHECK(ring_verify_chunk(rig->ring, chunk));
    rig_content_done(&content);
    check_count(rig);
}

static bool adopt(struct rig *rig, const struct rig *before, int memfd, struct grower *grower)
{
    const char *problem = NULL;

    *rig = (struct rig){.grower = grower};
    if (!CHECK_INT(ring_adopt(memfd, CPUS, grower, &rig->ring, &problem), 0)) {
        TEST_SAY("because %s", problem);
        return false;
    }
    ring_rig_init(&rig->rig, rig->ring, 0, CPUS);
    resume(rig, &before->rig);
    check_content(rig, &before->rig);
    return true;
}

/* The ring survives with what it has borrowed, whatever budget there is then. */
static void test_adopt(uint64_t budget_bytes)
{
    struct rig before, rig;
    uint64_t own_bytes;
    uint32_t listed;
    int memfd;

    test_case("taken over with what is borrowed");
    set_up(&before, 4 * STEP_BYTES);
    own_bytes = file_bytes(before.ring);
    feed(&before, 40);
    (void)pin_all(&before); /* which ends with its daemon */
    feed(&before, 30);
    (void)rig_feed_round(&before.rig, 100, true);
    CHECK(before.ring->filling && !ring_is_home(before.ring, before.ring->filling));
    listed = before.ring->nr_listed + 1;
    memfd = dup(ring_memfd(before.ring));
    if (grower_new(budget_bytes, &rig.grower) < 0)
        exit(EXIT_FAILURE);
    if (adopt(&rig, &before, memfd, rig.grower)) {
        CHECK_UINT(rig.ring->nr_listed, listed);
        CHECK(rig.ring->nr_borrowed > 0);
        CHECK_UINT(grower_used_bytes(rig.grower), rig.ring->nr_borrowed * STEP_BYTES);
        CHECK(rig_feed_round(&rig.rig, 100, true));
        (void)settle(&rig);
        CHECK_UINT(stats_of(&rig).borrowed_bytes, 0);
        CHECK(rig.ring->nr_listed >= listed - 1);
        CHECK_UINT(file_bytes(rig.ring), own_bytes);
        check_content(&rig, &rig.rig);
        ring_rig_done(&rig.rig);
        grower_free(rig.grower);
    }
    (void)close(memfd);
    ring_rig_done(&before.rig);
    grower_free(before.grower);
}

/* --- Killed while it gives back. --- */

/* A copy of the file that is as sparse as the original. */
static int copy_file(const struct ring *ring)
{
    int memfd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING), from = ring_memfd(ring);
    off_t offset = 0, end = (off_t)ring->layout.total_bytes;

    if (memfd < 0 || ftruncate(memfd, end) < 0 ||
        fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)
        exit(EXIT_FAILURE);
    while (offset < end && (offset = lseek(from, offset, SEEK_DATA)) >= 0) {
        off_t hole = lseek(from, offset, SEEK_HOLE);

        if (pwrite(memfd, ring->base + offset, (size_t)(hole - offset), offset) != hole - offset)
            exit(EXIT_FAILURE);
        offset = hole;
    }
    return memfd;
}

static void check_killed(const struct rig *before)
{
    int memfd = copy_file(before->ring);
    struct rig rig;

    if (adopt(&rig, before, memfd, NULL)) {
        CHECK_UINT(rig.ring->nr_listed, before->ring->nr_listed);
        ring_rig_done(&rig.rig);
    }
    (void)close(memfd);
}

static void step_through(const struct rig *before, pid_t pid)
{
    const struct ring *ring = before->ring;
    uint64_t bytes = ring->layout.data_offset;
    uint8_t *shadow = rig_alloc(1, bytes);
    unsigned int states = 0;
    int status;

    memcpy(shadow, ring->base, bytes);
    while (ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL) >= 0 && waitpid(pid, &status, 0) == pid &&
           WIFSTOPPED(status)) {
        if (memcmp(shadow, ring->base, bytes) == 0)
            continue;
        memcpy(shadow, ring->base, bytes);
        states++;
        check_killed(before);
    }
    printf("# %u states\n", states);
    CHECK(states > 8);
    free(shadow);
}

static void test_killed(void)
{
    struct rig rig;
    int status, pin;
    pid_t pid;

    test_case("killed while chunks move home");
    set_up(&rig, STEP_BYTES);
    pin = pin_all(&rig);
    for (unsigned int i = 0; i < rig.ring->max_listed; i++) {
        CHECK(rig_feed_round(&rig.rig, 10, true)); /* chunks that hardly take time */
        ring_close_chunk(rig.ring);
    }
    ring_pin(rig.ring, pin);
    for (unsigned int borrowed = 0; borrowed < 4;) {
        CHECK(rig_feed_round(&rig.rig, 10, true));
        ring_close_chunk(rig.ring);
        borrowed += !ring_is_home(rig.ring, rig.ring->tail);
        await_grower(&rig);
    }
    ring_advance_pin(rig.ring, pin, NULL);
    ring_free_limbo(rig.ring);
    pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(TEST_SKIPPED);
        (void)raise(SIGSTOP);
        for (unsigned int i = 0; i < 3; i++)
            (void)ring_settle(rig.ring, ring_settle_usec(rig.ring));
        _exit(EXIT_SUCCESS);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
        step_through(&rig, pid);
    else
        printf("# no ptrace(2) here: it is not killed after each instruction\n");
    /* The child has moved them in the memory that is shared; the lists here are the old ones. */
    ring_rig_done(&rig.rig);
    grower_free(rig.grower);
}

int main(void)
{
    test_enough();
    test_too_little();
    test_unused();
    test_adopt(4 * STEP_BYTES);
    test_adopt(0);
    if (!under_tsan) /* most instructions are ThreadSanitizer's then */
        test_killed();
    return test_end();
}
