// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * A memory file that is not what a daemon of ours has left: it is refused, with a reason, or it is
 * a ring on which nothing crashes, and of which the chunks that hold nonsense can be told.
 */

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "tests/unit/ring-rig.h"

#define CPUS 3u

/* A sound ring's memory, of which each case gets a copy. */
struct image {
    uint8_t *bytes;
    struct ring_layout layout;
};

static struct image image;

static void make_image(void)
{
    struct ring_rig rig;

    ring_rig_init(&rig, NULL, RING_MIN_BYTES, CPUS);
    for (unsigned int i = 0; i < 40; i++) {
        rig_begin_round(&rig, i % 5 != 4);
        for (unsigned int cpu = 0; cpu < CPUS; cpu++)
            (void)rig_feed_window(&rig, cpu, 500 + i * 10, i % 7 == 0);
    }
    image.layout = rig.ring->layout;
    image.bytes = rig_alloc(1, image.layout.total_bytes);
    memcpy(image.bytes, rig.ring->base, image.layout.total_bytes);
    ring_rig_done(&rig);
}

/* The state of the chunk that is number N of those in the ring, the oldest first. */
static struct ring_chunk *find_state(uint8_t *base, unsigned int n)
{
    struct ring_chunk *states = (struct ring_chunk *)(base + image.layout.chunks_offset);
    uint64_t oldest_seq = UINT64_MAX;

    for (unsigned int i = 0; i < RING_MIN_BYTES / CHUNK_BYTES; i++)
        if (states[i].seq)
            oldest_seq = min_u64(oldest_seq, states[i].seq);
    while (states->seq != oldest_seq + n)
        states++;
    return states;
}

/* A sealed file of BYTES, with the image in it; mapped at *RET_BASE. */
static int copy_image(uint64_t bytes, uint8_t **ret_base)
{
    int memfd = memfd_create("copy", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (memfd < 0 || ftruncate(memfd, (off_t)bytes) < 0 ||
        fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
        exit(EXIT_FAILURE);
    *ret_base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
    if (*ret_base == MAP_FAILED)
        exit(EXIT_FAILURE);
    memcpy(*ret_base, image.bytes, min_u64(bytes, image.layout.total_bytes));
    return memfd;
}

/* --- What is refused. --- */

static void check_refused(int fd, int expected)
{
    const char *problem = NULL;
    struct ring *ring = NULL;

    CHECK_INT(ring_adopt(fd, CPUS, NULL, &ring, &problem), expected);
    CHECK(!ring);
    CHECK(problem && *problem);
    ring_free(ring);
}

#define HEADER(field)                                                                              \
    offsetof(struct ring_header, field), sizeof(((struct ring_header *)NULL)->field)

struct header_case {
    const char *name;
    size_t offset;
    size_t bytes;
    uint64_t value;
    int result; /* 0: it does not matter */
};

static const struct header_case header_cases[] = {
    {"another magic", HEADER(magic), 0, -EBADMSG},
    {"the next version", HEADER(version), RING_VERSION + 1, -EPROTO},
    {"no version", HEADER(version), 0, -EPROTO},
    {"chunks of another size", HEADER(chunk_bytes), 2 * CHUNK_BYTES, -EPROTO},
    {"no CPU", HEADER(nr_cpus), 0, -EBADMSG},
    {"fewer CPUs", HEADER(nr_cpus), CPUS - 1, -EBADMSG},
    {"more CPUs", HEADER(nr_cpus), CPUS + 1, -EBADMSG},
    {"more CPUs than there can be", HEADER(nr_cpus), UINT32_MAX, -EBADMSG},
    {"no chunk", HEADER(nr_chunks), 0, -EBADMSG},
    {"fewer chunks", HEADER(nr_chunks), 7, -EBADMSG},
    {"more chunks", HEADER(nr_chunks), 9, -EBADMSG},
    {"more chunks than there can be", HEADER(nr_chunks), UINT32_MAX, -EPROTO},
    {"another size", HEADER(total_bytes), 4096, -EBADMSG},
    {"steps that are not there", HEADER(nr_steps), 1, -EBADMSG},
    {"more steps than there can be", HEADER(nr_steps), UINT32_MAX, -EBADMSG},
    {"data elsewhere", HEADER(data_offset), 0, -EBADMSG},
    {"data beyond", HEADER(data_offset), UINT64_MAX, -EBADMSG},
    {"other buffers", HEADER(buffer_pages), UINT32_MAX, 0},
    {"a CPU that moves, and is none", HEADER(moving_cpu), UINT32_MAX - 1, 0},
    {"from somewhere else", HEADER(moving_from), UINT32_MAX, 0},
    {"no commit, of a CPU that is none", HEADER(commit.cpu), UINT32_MAX, 0},
    {"more windows than ever", HEADER(windows), UINT64_MAX, 0},
};

static void test_header(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(header_cases); i++) {
        const struct header_case *c = &header_cases[i];
        const char *problem = NULL;
        struct ring *ring = NULL;
        uint8_t *base;
        int memfd = copy_image(image.layout.total_bytes, &base);

        test_case(c->name);
        memcpy(base + c->offset, &c->value, c->bytes);
        if (c->result) {
            check_refused(memfd, c->result);
        } else {
            CHECK_INT(ring_adopt(memfd, CPUS, NULL, &ring, &problem), 0);
            ring_free(ring);
        }
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
}

/* What a commit that was not finished says. */
static const struct header_case commit_cases[] = {
    {"a commit of no CPU", HEADER(commit.cpu), CPUS, -EBADMSG},
    {"a commit of no CPU at all", HEADER(commit.cpu), UINT32_MAX, -EBADMSG},
    {"a commit into no chunk", HEADER(commit.chunk), RING_MIN_BYTES / CHUNK_BYTES, -EBADMSG},
    {"a commit into no part", HEADER(commit.part), RING_PARTS, -EBADMSG},
    {"a commit of more than fits", HEADER(commit.chunk_state.fill_bytes), CHUNK_BYTES + 4,
     -EBADMSG},
    {"a commit without a window", HEADER(commit.chunk_state.last_window), 4, -EBADMSG},
    {"a commit out of order", HEADER(commit.chunk_state.seq), 1, -EBADMSG},
    {"a commit of less than before", HEADER(commit.produced), 1, -EBADMSG},
};

static void test_commit(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(commit_cases); i++) {
        const struct header_case *c = &commit_cases[i];
        uint8_t *base;
        int memfd = copy_image(image.layout.total_bytes, &base);

        test_case(c->name);
        ((struct ring_header *)base)->commit.armed = 1;
        memcpy(base + c->offset, &c->value, c->bytes);
        check_refused(memfd, c->result);
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
}

#define STATE(field) offsetof(struct ring_chunk, field), sizeof(((struct ring_chunk *)NULL)->field)

/* Of one chunk, which is in the middle of the list. */
static const struct header_case state_cases[] = {
    {"longer than a chunk", STATE(fill_bytes), CHUNK_BYTES + 4096, -EBADMSG},
    {"shorter than its windows", STATE(fill_bytes), 4096, -EBADMSG},
    {"empty", STATE(fill_bytes), 0, -EBADMSG},
    {"a last window outside", STATE(last_window), CHUNK_BYTES - 8, -EBADMSG},
    {"a last window far outside", STATE(last_window), UINT32_MAX - 4, -EBADMSG},
    {"a last window that is none", STATE(last_window), 4, -EBADMSG},
    {"a round that begins outside", STATE(first_round), CHUNK_BYTES, -EBADMSG},
    {"out of order", STATE(seq), 1000000, -EBADMSG},
    {"a hole", STATE(seq), 0, -EBADMSG},
    {"the last number", STATE(seq), UINT64_MAX, -EBADMSG},
};

static void test_states(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(state_cases); i++) {
        const struct header_case *c = &state_cases[i];
        uint8_t *base;
        int memfd = copy_image(image.layout.total_bytes, &base);

        test_case(c->name);
        memcpy((uint8_t *)find_state(base, 2) + c->offset, &c->value, c->bytes);
        check_refused(memfd, c->result);
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
}

/* More than was produced, or so much that the sum is less again. */
static void test_ledger(void)
{
    static const uint64_t values[] = {1 << 30, UINT64_MAX, UINT64_MAX - 1000};

    test_case("a ledger that does not add up");
    for (size_t i = 0; i < 2 * ARRAY_SIZE(values); i++) {
        uint8_t *base;
        int memfd = copy_image(image.layout.total_bytes, &base);
        struct ring_line *line = (struct ring_line *)(base + image.layout.lines_offset) + 1;

        *(i % 2 ? &line->ledger.lost : &line->ledger.dropped) = values[i / 2];
        check_refused(memfd, -EBADMSG);
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
}

static void test_files(void)
{
    uint8_t *base;
    int fds[2];

    test_case("too short");
    fds[0] = copy_image(image.layout.total_bytes - PAGE_BYTES, &base);
    check_refused(fds[0], -EBADMSG);
    (void)munmap(base, image.layout.total_bytes - PAGE_BYTES);
    (void)close(fds[0]);
    test_case("too long");
    fds[0] = copy_image(image.layout.total_bytes + PAGE_BYTES, &base);
    check_refused(fds[0], -EBADMSG);
    (void)munmap(base, image.layout.total_bytes + PAGE_BYTES);
    (void)close(fds[0]);

    test_case("not sealed");
    fds[0] = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_INT(write(fds[0], image.bytes, image.layout.total_bytes), image.layout.total_bytes);
    check_refused(fds[0], -EBADMSG);
    CHECK_INT(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE), 0);
    test_case("sealed against us");
    check_refused(fds[0], -EPERM);
    (void)close(fds[0]);

    test_case("empty");
    fds[0] = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK_INT(fcntl(fds[0], F_ADD_SEALS, F_SEAL_SHRINK), 0);
    check_refused(fds[0], -EBADMSG);
    (void)close(fds[0]);
    test_case("no memory file");
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    check_refused(fds[0], -EBADMSG);
    check_refused(-1, -EBADMSG);
    (void)close(fds[0]);
    (void)close(fds[1]);
}

/* --- Chunks that are damaged. --- */

/* Whether the chunk that is number N is what it should be. */
static bool verifies(int memfd, unsigned int n)
{
    const char *problem = NULL;
    struct ring *ring = NULL;
    const struct chunk *chunk;
    bool ok;

    if (!CHECK_INT(ring_adopt(memfd, CPUS, NULL, &ring, &problem), 0))
        return false;
    chunk = ring->head;
    while (n-- > 0)
        chunk = chunk->next;
    ok = ring_verify_chunk(ring, chunk);
    ring_free(ring);
    return ok;
}

struct damage_case {
    const char *name;
    uint32_t offset; /* in the chunk */
    uint32_t value;
};

#define FIRST WINDOW_HEADER_BYTES

static const struct damage_case damage_cases[] = {
    {"no window", 0, 0},
    {"another record in place of a window", 0, RIG_RECORD},
    {"a window of a CPU that is none", 4, CPUS},
    {"a window without an end", 8, UINT32_MAX},
    {"a window that ends inside a record", 8, 4},
    {"no record", FIRST, 0},
    {"a shorter record", FIRST, 0xa0021001u},
    {"a longer record", FIRST, 0xf0021001u},
    {"a record that is padding", FIRST, RIG_RECORD ^ 0x00021001u ^ 0x0001f002u},
};

static void test_damage(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(damage_cases); i++) {
        const struct damage_case *c = &damage_cases[i];
        uint8_t *base, *chunk;
        int memfd = copy_image(image.layout.total_bytes, &base);
        struct ring_chunk *states = (struct ring_chunk *)(base + image.layout.chunks_offset);

        test_case(c->name);
        CHECK(verifies(memfd, 1));
        chunk = base + image.layout.data_offset + (find_state(base, 1) - states) * CHUNK_BYTES;
        memcpy(chunk + c->offset, &c->value, sizeof(c->value));
        CHECK(!verifies(memfd, 1));
        CHECK(verifies(memfd, 0));
        CHECK(verifies(memfd, 2));
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
}

/* What its state says, and its data do not. */
static void test_wrong_state(void)
{
    uint8_t *base;
    int memfd = copy_image(image.layout.total_bytes, &base);
    struct ring_chunk *state = find_state(base, 1);
    struct ring_count *counts = (struct ring_count *)(base + image.layout.counts_offset);
    struct ring_chunk *states = (struct ring_chunk *)(base + image.layout.chunks_offset);
    struct ring_count *count = &counts[(state - states) * RING_PARTS * CPUS + CPUS];

    CHECK(state->first_round != RING_NO_ROUND);
    test_case("a round that does not begin there");
    state->first_round += 4;
    CHECK(!verifies(memfd, 1));
    state->first_round -= 4;
    test_case("another number of records");
    count->records--;
    CHECK(!verifies(memfd, 1));
    count->records++;
    test_case("more losses");
    count->lost += 1000;
    CHECK(!verifies(memfd, 1));
    count->lost -= 1000;
    CHECK(verifies(memfd, 1));
    (void)munmap(base, image.layout.total_bytes);
    (void)close(memfd);
}

/* --- Anything. --- */

static void scribble(uint8_t *base, uint64_t *random)
{
    static const uint32_t extremes[] = {0, 1, 4, CHUNK_BYTES, 0x7fffffff, 0x80000000, UINT32_MAX};
    uint64_t r = test_random(random);

    for (uint64_t count = r % 4 + 1; count > 0; count--) {
        /* Half of them in the header and the first lines: the rest is much larger. */
        uint64_t bytes = r >> 8 & 1 ? image.layout.data_offset : image.layout.chunks_offset;
        uint64_t offset = test_random(random) % bytes;

        if (r >> 9 & 1)
            base[offset] ^= (uint8_t)(1 << test_random(random) % 8);
        else
            memcpy(base + offset / 4 * 4, &extremes[test_random(random) % ARRAY_SIZE(extremes)], 4);
        r = test_random(random);
    }
    if (r % 4 == 0)
        base[image.layout.data_offset +
             test_random(random) % (image.layout.total_bytes - image.layout.data_offset)] ^= 0x10;
}

/* What a daemon does with a ring. */
static void use(struct ring *ring)
{
    struct ring_rig rig;
    int pin = ring_take_pin(ring);
    struct ring_stats stats;
    uint32_t cons;

    ring_rig_init(&rig, ring, 0, CPUS);
    ring_pin(ring, pin);
    for (const struct chunk *chunk = ring_pin_first(ring, pin); chunk;
         chunk = ring_pin_next(ring, pin, chunk)) {
        struct ring_chunk_info info;

        ring_read_chunk(ring, chunk, &info);
        CHECK(info.bytes <= CHUNK_BYTES);
        if (!ring_verify_chunk(ring, chunk))
            continue;
        CHECK(info.first_round == UINT32_MAX || info.first_round < info.bytes);
        CHECK(chunk->last_window < chunk->fill_bytes);
    }
    for (unsigned int i = 0; i < 20; i++)
        (void)rig_feed_round(&rig, 4000, i % 3 != 0);
    ring_advance_pin(ring, pin, NULL);
    ring_expire(ring, 5000);
    for (unsigned int i = 0; i < 12; i++)
        CHECK(rig_feed_round(&rig, 3000, true));
    CHECK_UINT(rig_count_chunks(&rig), ring->nr_chunks);
    (void)ring_resume_cpu(ring, CPUS - 1, 0, &cons);
    ring_read_stats(ring, &stats);
    ring_rig_done(&rig);
}

static void test_fuzz(void)
{
    uint64_t random = test_seed();
    unsigned int adopted = 0;

    test_case("anything");
    for (unsigned int i = 0; i < 800; i++) {
        const char *problem = NULL;
        struct ring *ring = NULL;
        uint8_t *base;
        int memfd = copy_image(image.layout.total_bytes, &base);

        scribble(base, &random);
        if (ring_adopt(memfd, CPUS, NULL, &ring, &problem) == 0) {
            adopted++;
            use(ring);
        } else {
            CHECK(problem && *problem);
        }
        (void)munmap(base, image.layout.total_bytes);
        (void)close(memfd);
    }
    printf("# %u of 800 were adopted\n", adopted);
}

int main(void)
{
    make_image();
    test_header();
    test_commit();
    test_states();
    test_ledger();
    test_files();
    test_damage();
    test_wrong_state();
    test_fuzz();
    free(image.bytes);
    return test_end();
}
