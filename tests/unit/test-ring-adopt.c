// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A ring whose daemon is killed while it feeds it, at any store: at random, after each single
 * instruction, and in states that only a processor with a weaker order of stores would leave. The
 * next one must find all of it. What was scribbled over: test-ring-hostile.c.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "tests/unit/ring-rig.h"

#define CPUS  3u
#define KILLS 300

/* Most instructions are ThreadSanitizer's then: a minute of them would show nothing new. */
#ifdef __SANITIZE_THREAD__
#define EACH_INSTRUCTION false
#else
#define EACH_INSTRUCTION true
#endif

/* What Xen knows, shared with the daemon that is killed. */
struct xen {
    uint32_t cons[CPUS]; /* as it was told last */
    uint32_t rounds;     /* fed, for the test */
};

static struct xen *xen;

static void share_xen(void)
{
    xen = mmap(NULL, sizeof(*xen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (xen == MAP_FAILED)
        exit(EXIT_FAILURE);
}

static void tell_xen(const struct ring_rig *rig, unsigned int cpu)
{
    __atomic_store_n(&xen->cons[cpu], rig_cons(rig, cpu), __ATOMIC_RELEASE);
}

/* --- The next daemon. --- */

/* Goes on where the last one was, for each CPU. */
static void resume(struct ring_rig *rig)
{
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        const struct ledger *ledger = ring_ledger(rig->ring, cpu);
        uint32_t cons = 0;

        CHECK(ring_resume_cpu(rig->ring, cpu, xen->cons[cpu], &cons));
        rig_set_cons(rig, cpu, cons);
        rig->lost[cpu] = ledger->lost;
        rig->dropped[cpu] = ledger->dropped;
        if (ledger->last_tsc >= rig->tsc)
            rig->tsc = ledger->last_tsc + 1;
    }
}

/* Each CPU's newest records are there, up to where its consumer is. */
static void check_adopted(const struct ring_rig *rig)
{
    struct rig_content content;
    struct ring_stats stats;

    rig_content_init(&content, rig);
    rig_read_ring(rig, &content);
    CHECK(content.sound);
    rig_check_ledger(rig, &content);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        CHECK(content.next[cpu] == 0 || content.next[cpu] == rig->number[cpu]);
    ring_read_stats(rig->ring, &stats);
    CHECK_UINT(stats.used_bytes, content.bytes);
    CHECK_UINT(rig_count_chunks(rig), rig->ring->nr_chunks);
    for (const struct chunk *chunk = rig->ring->head; chunk; chunk = chunk->next) {
        CHECK(ring_verify_chunk(rig->ring, chunk));
        CHECK_UINT(chunk->fill_bytes % PAGE_BYTES, 0);
    }
    rig_content_done(&content);
}

/* False: it cannot be. */
static bool adopt(int memfd, struct ring_rig *ret_rig)
{
    const char *problem = NULL;
    struct ring *ring;

    if (!CHECK_INT(ring_adopt(memfd, CPUS, NULL, &ring, &problem), 0)) {
        TEST_SAY("because %s", problem);
        return false;
    }
    ring_rig_init(ret_rig, ring, 0, CPUS);
    resume(ret_rig);
    check_adopted(ret_rig);
    return true;
}

/* --- Killed at random. --- */

static void feed_randomly(struct ring_rig *rig, uint64_t *random)
{
    uint64_t r = test_random(random);
    uint32_t max = r % 16 == 0 ? RIG_MAX_RECORDS : 40;

    rig_begin_round(rig, r >> 8 & 3);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
        r = test_random(random);
        if (r % 4 == 0)
            rig_feed_nothing(rig, cpu);
        else
            (void)rig_feed_window(rig, cpu, (uint32_t)(r >> 8) % max + 1, (r >> 40) % 16 == 0);
        tell_xen(rig, cpu);
    }
    if (r >> 48 & 1)
        ring_close_chunk(rig->ring);
    if ((r >> 49) % 16 == 0)
        ring_expire(rig->ring, rig->tsc - (r >> 32) % 10000);
    rig->nr_fed = 0;
    __atomic_store_n(&xen->rounds, xen->rounds + 1, __ATOMIC_RELEASE);
}

/* A daemon feeds the ring, until it is killed. */
static void feed_and_die(struct ring_rig *rig, uint64_t seed)
{
    const uint32_t rounds = xen->rounds;
    uint64_t random = seed;
    int status = 0;
    pid_t pid = fork();

    if (pid < 0)
        exit(EXIT_FAILURE);
    if (pid == 0)
        for (;;)
            feed_randomly(rig, &random);
    while (__atomic_load_n(&xen->rounds, __ATOMIC_ACQUIRE) == rounds &&
           waitpid(pid, &status, WNOHANG) == 0)
        (void)usleep(10);
    (void)usleep((useconds_t)(seed >> 32) % 2000);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, &status, 0);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_killed(void)
{
    uint64_t random = test_seed();
    struct ring_rig rig;

    test_case("killed");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    for (unsigned int i = 0; i < KILLS; i++) {
        int memfd = dup(ring_memfd(rig.ring));

        feed_and_die(&rig, test_random(&random));
        ring_rig_done(&rig);
        if (!adopt(memfd, &rig))
            exit(EXIT_FAILURE);
        (void)close(memfd);
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            tell_xen(&rig, cpu);
        for (unsigned int j = 0; j < 3; j++) {
            feed_randomly(&rig, &random);
            check_adopted(&rig);
        }
    }
    printf("# killed %d times in %u rounds\n", KILLS, xen->rounds);
    ring_rig_done(&rig);
}

/* --- Killed after each instruction. --- */

/* A copy of a ring's memory, to be adopted as often as one likes. */
struct copy {
    int memfd;
    uint8_t *base;
    uint64_t bytes;
};

static void copy_init(struct copy *copy, const struct ring *ring)
{
    copy->bytes = ring->layout.total_bytes;
    copy->memfd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (copy->memfd < 0 || ftruncate(copy->memfd, (off_t)copy->bytes) < 0 ||
        fcntl(copy->memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
        exit(EXIT_FAILURE);
    copy->base = mmap(NULL, copy->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, copy->memfd, 0);
    if (copy->base == MAP_FAILED)
        exit(EXIT_FAILURE);
    memcpy(copy->base, ring->base, copy->bytes);
}

static void copy_done(struct copy *copy)
{
    (void)munmap(copy->base, copy->bytes);
    (void)close(copy->memfd);
}

/* The state that RING's memory is in now: it is gone on with in a copy of it. */
static void check_state(const struct ring *ring)
{
    struct ring_rig rig;
    struct copy copy;

    copy_init(&copy, ring);
    if (adopt(copy.memfd, &rig)) {
        for (unsigned int i = 0; i < 3; i++)
            CHECK(rig_feed_round(&rig, 500, i > 0));
        rig.nr_fed = 0;
        check_adopted(&rig);
        ring_rig_done(&rig);
    }
    copy_done(&copy);
}

/* What the daemon may write to: the ring's state, and the page that its newest data end in. */
static bool has_changed(const struct ring *ring, uint8_t *shadow)
{
    const struct ring_chunk *newest = &ring->states[0];
    uint64_t page;
    bool changed = memcmp(shadow, ring->base, ring->layout.data_offset) != 0;

    for (unsigned int i = 1; i < ring->nr_chunks; i++)
        if (ring->states[i].seq > newest->seq)
            newest = &ring->states[i];
    page = ring->layout.data_offset + (uint64_t)(newest - ring->states) * CHUNK_BYTES +
           align_down(newest->fill_bytes ? newest->fill_bytes - 1 : 0, PAGE_BYTES);
    changed = memcmp(shadow + page, ring->base + page, PAGE_BYTES) != 0 || changed;
    if (changed)
        memcpy(shadow, ring->base, ring->layout.total_bytes);
    return changed;
}

static void stop_at_step(bool begins)
{
    (void)raise(begins ? SIGUSR1 : SIGUSR2);
}

/* Fills some chunks, and evicts some, with windows that hardly take time. */
static void feed_in_steps(struct ring_rig *rig)
{
    rig->step = stop_at_step;
    for (unsigned int round = 0; round < 9; round++) {
        rig_begin_round(rig, round % 4 != 3);
        for (unsigned int cpu = 0; cpu < CPUS; cpu++) {
            if (cpu == round % CPUS)
                rig_feed_nothing(rig, cpu);
            else
                (void)rig_feed_window(rig, cpu, RIG_MAX_RECORDS / 3 - 2, cpu);
            tell_xen(rig, cpu);
        }
    }
}

/* Continues the traced PID until it stops. False: it has ended. */
static bool trace_on(pid_t pid, bool single_step, int *ret_signal)
{
    int status;

    if (ptrace(single_step ? PTRACE_SINGLESTEP : PTRACE_CONT, pid, NULL, NULL) < 0 ||
        waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
        return false;
    *ret_signal = WSTOPSIG(status);
    return true;
}

static void step_through(const struct ring *ring, pid_t pid)
{
    uint8_t *shadow = rig_alloc(1, ring->layout.total_bytes);
    unsigned int steps = 0, states = 0;
    bool stepping = false;
    int signal_number;

    (void)has_changed(ring, shadow);
    while (trace_on(pid, stepping, &signal_number)) {
        if (signal_number == SIGUSR1 || signal_number == SIGUSR2)
            stepping = signal_number == SIGUSR1;
        steps++;
        if (!has_changed(ring, shadow))
            continue;
        states++;
        check_state(ring);
    }
    printf("# %u states in %u steps\n", states, steps);
    CHECK(states > 100);
    free(shadow);
}

static void test_each_instruction(void)
{
    struct ring_rig rig;
    int status;
    pid_t pid;

    test_case("killed after each instruction");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    for (unsigned int i = 0; i < 20; i++)
        (void)rig_feed_round(&rig, RIG_MAX_RECORDS / 4, true);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        tell_xen(&rig, cpu);
    pid = fork();
    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
            _exit(TEST_SKIPPED);
        (void)raise(SIGSTOP);
        feed_in_steps(&rig);
        _exit(EXIT_SUCCESS);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFSTOPPED(status))
        step_through(rig.ring, pid);
    else
        printf("# no ptrace(2) here: it is not killed after each instruction\n");
    ring_rig_done(&rig);
}

/* --- Stores in any order. --- */

/* As long as a commit is armed, whatever it stores may be there or not. */
static void test_armed(void)
{
    struct ring_layout layout = ring_layout_of(RING_MIN_BYTES / CHUNK_BYTES, CHUNK_BYTES, CPUS, 0);
    const uint64_t ends[] = {layout.lines_offset, layout.chunks_offset, layout.counts_offset,
                             layout.data_offset};
    struct copy before, after;
    struct ring_rig rig;

    test_case("armed");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    for (unsigned int i = 0; i < 50; i++)
        (void)rig_feed_round(&rig, 1000, true);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        tell_xen(&rig, cpu);
    copy_init(&before, rig.ring);
    rig_begin_round(&rig, true);
    (void)rig_feed_window(&rig, 1, 100, 5); /* killed before Xen is told */
    rig.ring->header->commit.armed = 1;
    copy_init(&after, rig.ring);
    for (unsigned int done = 0; done < 8; done++) {
        for (unsigned int i = 0; i < 3; i++)
            memcpy(rig.ring->base + ends[i], (done >> i & 1 ? &after : &before)->base + ends[i],
                   ends[i + 1] - ends[i]);
        check_state(rig.ring);
    }
    copy_done(&before);
    copy_done(&after);
    ring_rig_done(&rig);
}

/* A chunk is closed: padding, then the window's size, then the chunk's. */
static void test_padding(void)
{
    struct ring_chunk *state;
    struct window_header window;
    struct ring_rig rig;
    uint32_t fill_bytes;

    test_case("padding");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    (void)rig_feed_round(&rig, 1000, true);
    for (unsigned int cpu = 0; cpu < CPUS; cpu++)
        tell_xen(&rig, cpu);
    state = ring_state_of(rig.ring, rig.ring->filling);
    fill_bytes = state->fill_bytes;
    check_state(rig.ring);
    ring_close_chunk(rig.ring);
    check_state(rig.ring);
    CHECK(state->fill_bytes > fill_bytes);
    memcpy(&window, rig.ring->head->data + state->last_window, sizeof(window));
    window.bytes -= state->fill_bytes - fill_bytes;
    state->fill_bytes = fill_bytes;
    check_state(rig.ring);
    memcpy(rig.ring->head->data + state->last_window, &window, sizeof(window));
    check_state(rig.ring);
    ring_rig_done(&rig);
}

/* --- Where the consumer must be. --- */

static void test_resume(void)
{
    struct ring_window window = {.cpu = 1, .cons_from = 400, .cons_to = 500};
    struct ring_rig rig;
    uint32_t cons;

    test_case("resume");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    ring_commit_nothing(rig.ring, &window);
    CHECK(ring_resume_cpu(rig.ring, 1, 500, &cons)); /* Xen was told */
    CHECK_UINT(cons, 500);
    CHECK(ring_resume_cpu(rig.ring, 1, 400, &cons)); /* not yet */
    CHECK_UINT(cons, 500);
    CHECK(!ring_resume_cpu(rig.ring, 1, 404, &cons)); /* somebody else went on */
    CHECK(!ring_resume_cpu(rig.ring, 1, 504, &cons));
    window = (struct ring_window){.cpu = 2, .cons_from = 0, .cons_to = 40};
    ring_commit_nothing(rig.ring, &window);
    CHECK(ring_resume_cpu(rig.ring, 1, 500, &cons));
    CHECK(!ring_resume_cpu(rig.ring, 1, 400, &cons)); /* Xen was told before CPU 2's came */
    CHECK(ring_resume_cpu(rig.ring, 2, 0, &cons));
    CHECK_UINT(cons, 40);
    ring_rig_done(&rig);
}

/* What else the next daemon finds as it was. */
static void test_kept(void)
{
    struct cpu_set cpus = {0};
    const char *problem = NULL;
    struct ring *adopted = NULL;
    struct ring_rig rig;
    int pin;

    test_case("kept");
    ring_rig_init(&rig, NULL, RING_MIN_BYTES + CHUNK_BYTES, CPUS);
    CHECK_UINT(ring_buffer_pages(rig.ring), 0);
    cpu_set_add(&cpus, 2);
    ring_set_source(rig.ring, &cpus, 32);
    memset(ring_note(rig.ring), 0xab, RING_NOTE_BYTES);
    (void)rig_feed_round(&rig, 1000, true);
    *ring_windows(rig.ring) = 77;
    ring_class_records(rig.ring)[3] = 88;
    pin = ring_take_pin(rig.ring);
    ring_pin(rig.ring, pin); /* which ends with its daemon */
    CHECK_INT(ring_adopt(ring_memfd(rig.ring), CPUS, NULL, &adopted, &problem), 0);
    CHECK(ring_memfd(adopted) != ring_memfd(rig.ring));
    CHECK_UINT(ring_bytes(adopted), ring_bytes(rig.ring));
    CHECK_UINT(ring_newest_seq(adopted), 1);
    CHECK_UINT(ring_buffer_pages(adopted), 32);
    CHECK(memcmp(ring_cpus(adopted), &cpus, sizeof(cpus)) == 0);
    CHECK_UINT(((uint8_t *)ring_note(adopted))[RING_NOTE_BYTES - 1], 0xab);
    CHECK_UINT(*ring_windows(adopted), 77);
    CHECK_UINT(ring_class_records(adopted)[3], 88);
    CHECK_INT(ring_take_pin(adopted), 0);
    ring_free(adopted);
    ring_rig_done(&rig);
}

int main(void)
{
    share_xen();
    test_killed();
    if (EACH_INSTRUCTION)
        test_each_instruction();
    test_armed();
    test_padding();
    test_resume();
    test_kept();
    return test_end();
}
