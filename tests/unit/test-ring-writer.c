// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A pinned ring on its way to a file or a pipe: that all of it gets there while the ring continues,
 * that chunks are given back as they are written, and that a reader who does not read can be given
 * up.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/unpack.h"
#include "daemon/output/output-file.h"
#include "daemon/session/ring-writer.h"
#include "tests/unit/ring-rig.h"

#define RING_BYTES (UINT64_C(8) << 20)

/* --- What a test works with. --- */

/* A pinned ring, an output, and a thread that stands for the output's worker. */
struct rig {
    struct ring_rig ring;
    struct output_file file;
    struct ring_write write;
    struct failure failure;
    uint8_t *expected; /* what the pin holds */
    uint64_t expected_bytes;
    int read_fd; /* of a pipe; -1: a file */
    pthread_t thread;
    int result;
};

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void copy_pinned(struct rig *rig)
{
    const struct ring *ring = rig->ring.ring;

    rig->expected = rig_alloc(ring->nr_chunks, CHUNK_BYTES);
    for (const struct chunk *chunk = ring_pin_first(ring, rig->write.pin); chunk;
         chunk = ring_pin_next(ring, rig->write.pin, chunk)) {
        rig->expected_bytes += ring_copy_chunk(ring, chunk, 0, rig->expected + rig->expected_bytes);
    }
}

static void feed(struct rig *rig, unsigned int rounds)
{
    for (unsigned int i = 0; i < rounds; i++)
        (void)rig_feed_round(&rig->ring, 2000, true);
}

static void open_file(struct rig *rig, uint64_t reserve_bytes)
{
    int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0)
        die("a file");
    output_file_init(&rig->file, reserve_bytes, UINT64_MAX);
    (void)output_file_adopt(&rig->file, fd, "file", false, &rig->failure);
    rig->failure.name = NULL;
    rig->read_fd = -1;
}

static void open_pipe(struct rig *rig, int flags)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0 || fcntl(fds[1], F_SETFL, flags) < 0)
        die("a pipe");
    output_file_init(&rig->file, 0, UINT64_MAX);
    CHECK_INT(output_file_adopt(&rig->file, fds[1], "pipe", false, &rig->failure), 0);
    rig->read_fd = fds[0];
}

/* ROUNDS of records in a ring that is pinned. */
static void rig_init(struct rig *rig, const char *name, unsigned int rounds)
{
    *rig = (struct rig){.read_fd = -1};
    test_case(name);
    ring_rig_init(&rig->ring, NULL, RING_BYTES, 2);
    feed(rig, rounds);
    rig->write = (struct ring_write){
        .ring = rig->ring.ring,
        .pin = ring_take_pin(rig->ring.ring),
        .nr_cpus = 2,
    };
    ring_pin(rig->ring.ring, rig->write.pin);
    copy_pinned(rig);
}

static void rig_done(struct rig *rig)
{
    ring_advance_pin(rig->ring.ring, rig->write.pin, NULL);
    feed(rig, 200);
    CHECK_UINT(rig_count_chunks(&rig->ring), rig->ring.ring->nr_chunks);
    CHECK(!rig->ring.ring->limbo_head); /* nothing is pinned any more */
    rig_check(&rig->ring);
    ring_rig_done(&rig->ring);
    output_file_done(&rig->file);
    fd_close(&rig->read_fd);
    free(rig->expected);
}

static void *run_writer(void *argument)
{
    struct rig *rig = argument;

    rig->result = ring_write_run(&rig->file, &rig->write, &rig->failure);
    return NULL;
}

static void start_writer(struct rig *rig)
{
    if (pthread_create(&rig->thread, NULL, run_writer, rig) != 0)
        die("a thread");
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Until a full pipe lets no more in. */
static void wait_until_stalled(const struct rig *rig)
{
    uint64_t bytes = 0, before;

    do {
        before = bytes;
        (void)poll(NULL, 0, 50);
        bytes = ring_write_progress_bytes(&rig->write);
    } while (bytes == 0 || bytes != before);
}

/* Reads what the file or the pipe holds, until its end. */
static uint64_t read_all(const struct rig *rig, uint8_t *buffer, uint64_t max_bytes)
{
    int fd = rig->read_fd >= 0 ? rig->read_fd : rig->file.fd;
    uint64_t bytes = 0;
    ssize_t n;

    while ((n = read(fd, buffer + bytes, max_bytes - bytes)) > 0)
        bytes += (uint64_t)n;
    return bytes;
}

static void check_output(const struct rig *rig, uint64_t from)
{
    uint64_t bytes = rig->expected_bytes - from;
    uint8_t *got = aligned_alloc(PAGE_BYTES, RING_BYTES);

    if (!got)
        die("memory");
    CHECK_UINT(read_all(rig, got, RING_BYTES), bytes);
    CHECK(memcmp(got, rig->expected + from, bytes) == 0);
    free(got);
}

/* What is in the output, of which BYTES are there, when it is unpacked. */
static void check_packed(const struct rig *rig, uint64_t bytes, uint64_t plain_bytes,
                         bool has_table)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    uint8_t *stored = aligned_alloc(PAGE_BYTES, RING_BYTES), *got = rig_alloc(1, RING_BYTES);

    if (!stored)
        die("memory");
    CHECK(read_all(rig, stored, RING_BYTES) >= bytes);
    CHECK_INT(unpack_new_memory(stored, bytes, &unpack), 0);
    CHECK(unpack_can_seek(unpack) == has_table);
    CHECK_UINT(unpack_read(unpack, got, RING_BYTES), plain_bytes);
    CHECK_INT(unpack_damage(unpack), UNPACK_SOUND);
    CHECK(memcmp(got, rig->expected, plain_bytes) == 0);
    free(stored);
    free(got);
}

/* --- The tests. --- */

static void test_file(void)
{
    struct rig rig;

    rig_init(&rig, "a whole ring into a file", 60);
    open_file(&rig, 0);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    CHECK(rig.write.is_planned);
    CHECK_UINT(rig.write.plan.bytes, rig.expected_bytes);
    CHECK_UINT(rig.write.written_bytes, rig.expected_bytes);
    CHECK_UINT(ring_write_progress_bytes(&rig.write), rig.expected_bytes);
    CHECK(!rig.write.unwritten);
    CHECK(!rig.failure.name);
    check_output(&rig, 0);
    rig_done(&rig);
}

/* Before anything is written, or space taken. */
static void test_too_long(void)
{
    struct rig rig;
    struct stat st;

    rig_init(&rig, "longer than is allowed", 60);
    open_file(&rig, 0);
    rig.write.allowed_bytes = rig.expected_bytes - 1;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -EFBIG);
    CHECK(rig.write.is_planned && rig.write.is_too_long);
    CHECK_UINT(rig.write.plan.bytes, rig.expected_bytes);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(!rig.failure.name);
    CHECK(fstat(rig.file.fd, &st) == 0 && st.st_size == 0);
    test_case("as long as is allowed");
    rig.write.allowed_bytes = rig.expected_bytes;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    CHECK(!rig.write.is_too_long);
    rig_done(&rig);
}

/* What goes before the beginning is given up; the first piece is a copy. */
static void test_bounds(void)
{
    const struct chunk *first;
    struct rig rig;
    uint8_t *got;

    rig_init(&rig, "the newest part into a file", 60);
    open_file(&rig, 0);
    first = ring_pin_first(rig.ring.ring, rig.write.pin);
    rig.write.bounds.since_tsc = rig.ring.tsc - UINT64_C(4000) * 7;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    CHECK(rig.write.plan.first != first);
    CHECK(rig.write.plan.first_offset > 0); /* else this tests nothing */
    CHECK(rig.write.written_bytes < rig.expected_bytes);
    CHECK_UINT(rig.write.written_bytes, rig.write.plan.bytes);

    got = aligned_alloc(PAGE_BYTES, RING_BYTES);
    if (!got)
        die("memory");
    CHECK_UINT(read_all(&rig, got, RING_BYTES), rig.write.plan.bytes);
    CHECK(memcmp(got + rig.write.plan.bytes - PAGE_BYTES,
                 rig.expected + rig.expected_bytes - PAGE_BYTES, PAGE_BYTES) == 0);
    free(got);
    rig_done(&rig);
}

/* What a file holds: the TSCs of its records; false if it is not whole windows of whole records. */
static bool read_tscs(const uint8_t *p, uint64_t bytes, uint64_t *ret_records, uint64_t *ret_first,
                      uint64_t *ret_last)
{
    const uint8_t *end = p + bytes;
    struct window_header window;
    uint32_t words[RIG_RECORD_BYTES / 4];

    *ret_records = *ret_first = *ret_last = 0;
    while (p < end) {
        memcpy(&window, p, sizeof(window));
        p += WINDOW_HEADER_BYTES;
        if (window.header != WINDOW_HEADER || window.bytes > (uint64_t)(end - p))
            return false;
        for (uint32_t at = 0; at + RIG_RECORD_BYTES <= window.bytes; at += RIG_RECORD_BYTES) {
            memcpy(words, p + at, sizeof(words));
            if (words[0] != RIG_RECORD)
                break; /* the padding */
            *ret_last = words[1] | (uint64_t)words[2] << 32;
            *ret_first = *ret_first ? *ret_first : *ret_last;
            ++*ret_records;
        }
        p += window.bytes;
    }
    return true;
}

/*
 * A part in the middle: all of that time, and no more than a round before and after it. The TSCs
 * of the rig's records ascend, 4000 in a round; the ring has gone round several times.
 */
static void check_part(uint64_t since_ago, uint64_t until_ago, uint64_t max_extra)
{
    uint64_t records, first, last, since_tsc, until_tsc;
    uint8_t *got = aligned_alloc(PAGE_BYTES, RING_BYTES);
    struct rig rig;

    rig_init(&rig, "a part in the middle into a file", 60);
    open_file(&rig, 0);
    since_tsc = since_ago ? rig.ring.tsc - since_ago : 0;
    until_tsc = rig.ring.tsc - until_ago;
    rig.write.bounds = (struct snapshot_bounds){.since_tsc = since_tsc, .until_tsc = until_tsc};
    if (!got)
        die("memory");
    if (CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0)) {
        CHECK_UINT(read_all(&rig, got, RING_BYTES), rig.write.plan.bytes);
        CHECK(read_tscs(got, rig.write.plan.bytes, &records, &first, &last));
        CHECK_UINT(records, rig.write.plan.records);
        CHECK_UINT(first, rig.write.plan.first_tsc);
        CHECK_UINT(last, rig.write.plan.last_tsc);
        CHECK_UINT(last - first + 1, records); /* none is missing */
        CHECK(!since_tsc || (first <= since_tsc && first + max_extra > since_tsc));
        CHECK(last >= min_u64(until_tsc, rig.ring.tsc - 1));
        CHECK(last < until_tsc + max_extra);
    }
    free(got);
    rig_done(&rig);
}

static void test_middle(void)
{
    for (uint64_t until_ago = 1; until_ago < 40000; until_ago += 1999) {
        check_part(0, until_ago, 4001);
        check_part(until_ago + 1, until_ago, 4001);
        check_part(until_ago + 4100, until_ago, 4001);
        check_part(until_ago + 17000, until_ago, 4001);
    }
}

/* A chunk that an earlier daemon left damaged: it is not walked, whatever is asked for. */
static void test_damaged(void)
{
    for (uint64_t until_ago = 1; until_ago < 160000; until_ago += 19999) {
        struct window_header *window;
        const struct chunk *chunk;
        struct rig rig;
        int r;

        rig_init(&rig, "up to a time, after a damaged chunk", 60);
        open_file(&rig, 0);
        chunk = ring_pin_first(rig.ring.ring, rig.write.pin);
        chunk = ring_pin_next(rig.ring.ring, rig.write.pin, chunk);
        window = (struct window_header *)(void *)(chunk->data);
        window->bytes = UINT32_MAX - WINDOW_HEADER_BYTES; /* back to where it is */
        rig.write.bounds.verify_seq = chunk->seq;
        rig.write.bounds.until_tsc = rig.ring.tsc - until_ago;
        r = ring_write_run(&rig.file, &rig.write, &rig.failure);
        CHECK(r == 0 || r == -ENODATA);
        CHECK(r < 0 || rig.write.plan.damaged);
        window->bytes = 2000 * RIG_RECORD_BYTES; /* else the rig finds fault with it */
        rig_done(&rig);
    }
}

/* The pipe's reader stalls while the ring goes round; then it reads: it gets what was pinned. */
static void test_slow_reader(int flags)
{
    struct timespec cpu_before, cpu_after;
    struct rig rig;
    clockid_t clock;
    int64_t cpu_msec;

    rig_init(&rig, flags & O_NONBLOCK ? "a slow reader, O_NONBLOCK" : "a slow reader", 60);
    open_pipe(&rig, flags);
    start_writer(&rig);
    wait_until_stalled(&rig);
    CHECK_INT(pthread_getcpuclockid(rig.thread, &clock), 0);
    (void)clock_gettime(clock, &cpu_before);
    feed(&rig, 100);
    (void)poll(NULL, 0, 500);
    (void)clock_gettime(clock, &cpu_after);
    cpu_msec = (cpu_after.tv_sec - cpu_before.tv_sec) * 1000 +
               (cpu_after.tv_nsec - cpu_before.tv_nsec) / 1000000;
    CHECK(cpu_msec < 100); /* it sleeps */
    CHECK(rig.ring.ring->limbo_head);
    CHECK(ring_write_progress_bytes(&rig.write) < rig.expected_bytes);
    CHECK(ring_write_progress_usec(&rig.write) < now_usec() - 400000);

    {
        uint8_t *got = rig_alloc(1, RING_BYTES);
        uint64_t bytes = 0;

        while (bytes < rig.expected_bytes) {
            ssize_t n = read(rig.read_fd, got + bytes, RING_BYTES - bytes);

            if (!CHECK(n > 0))
                break;
            bytes += (uint64_t)n;
        }
        CHECK_UINT(bytes, rig.expected_bytes);
        CHECK(memcmp(got, rig.expected, rig.expected_bytes) == 0);
        free(got);
    }
    (void)pthread_join(rig.thread, NULL);
    CHECK_INT(rig.result, 0);
    CHECK_UINT(rig.write.written_bytes, rig.expected_bytes);
    rig_done(&rig);
}

/* The reader has taken a little, and stalls: what it took whole is given back, the rest is not. */
static void test_abort(int flags)
{
    const struct ring *ring;
    uint8_t taken[64 << 10];
    uint64_t begun_usec, bytes = 0;
    struct rig rig;

    rig_init(&rig, flags & O_NONBLOCK ? "giving up, O_NONBLOCK" : "giving up a reader", 60);
    ring = rig.ring.ring;
    open_pipe(&rig, flags);
    start_writer(&rig);
    while (bytes < 5 * CHUNK_BYTES) {
        ssize_t n = read(rig.read_fd, taken, sizeof(taken));

        if (!CHECK(n > 0))
            break;
        bytes += (uint64_t)n;
    }
    wait_until_stalled(&rig);
    begun_usec = now_usec();
    ring_write_abort(&rig.write);
    (void)pthread_join(rig.thread, NULL);
    CHECK(now_usec() - begun_usec < 2000000);

    CHECK_INT(rig.result, -ECANCELED);
    CHECK(!rig.failure.name);
    CHECK(rig.write.written_bytes >= bytes - CHUNK_BYTES);
    CHECK(rig.write.written_bytes <= ring_write_progress_bytes(&rig.write));
    CHECK(ring_write_progress_bytes(&rig.write) < rig.expected_bytes);
    if (CHECK(rig.write.unwritten)) {
        uint64_t before = 0;

        for (const struct chunk *chunk = ring_pin_first(ring, rig.write.pin);
             chunk && chunk != rig.write.unwritten;
             chunk = ring_pin_next(ring, rig.write.pin, chunk))
            before += chunk->fill_bytes;
        CHECK_UINT(before, rig.write.written_bytes);
        CHECK_UINT(ring->pins[rig.write.pin].first, rig.write.unwritten->seq);
    }
    CHECK(ring->pins[rig.write.pin].taken); /* the number is the main thread's to give back */
    rig_done(&rig);
}

/* Before it begins, too: nothing is written. */
static void test_abort_early(void)
{
    struct rig rig;

    rig_init(&rig, "giving up before it begins", 10);
    open_file(&rig, 0);
    ring_write_abort(&rig.write);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ECANCELED);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(rig.write.unwritten == ring_pin_first(rig.ring.ring, rig.write.pin));
    rig_done(&rig);
}

static void test_no_plan(void)
{
    struct rig rig;

    rig_init(&rig, "an empty ring", 0);
    open_file(&rig, 0);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ENODATA);
    CHECK(!rig.write.is_planned);
    CHECK(!rig.write.unwritten);
    CHECK(!rig.failure.name);
    rig_done(&rig);

    rig_init(&rig, "nothing is as old", 60);
    open_file(&rig, 0);
    rig.write.bounds.until_tsc = 1;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ENODATA);
    CHECK(!rig.write.is_planned);
    rig_done(&rig);

    rig_init(&rig, "nothing is from before its end", 60);
    open_file(&rig, 0);
    rig.write.bounds.since_tsc = rig.ring.tsc - 1;
    rig.write.bounds.until_tsc = rig.ring.tsc - 20000;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ENODATA);
    CHECK(!rig.write.is_planned);
    rig_done(&rig);

    rig_init(&rig, "too little space is asked for", 10);
    open_file(&rig, 0);
    rig.write.bounds.max_bytes = PAGE_BYTES;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -EFBIG);
    CHECK(!rig.write.is_planned);
    rig_done(&rig);
}

/* The error is told apart from one of the plan's, and says what was not written. */
static void test_write_errors(void)
{
    struct rig rig;

    rig_init(&rig, "no space", 10);
    open_file(&rig, UINT64_MAX / 2);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ENOSPC);
    CHECK_STR(rig.failure.name, ERROR_NO_SPACE);
    CHECK(rig.write.is_planned);
    CHECK(rig.write.unwritten == rig.write.plan.first);
    rig_done(&rig);

    rig_init(&rig, "the reader has gone", 10);
    open_pipe(&rig, 0);
    fd_close(&rig.read_fd);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -EPIPE);
    CHECK(!rig.failure.name);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(rig.write.unwritten == rig.write.plan.first);
    rig_done(&rig);
}

/* Frames, and the pins that are given back meanwhile. */
static void test_packed(void)
{
    struct rig rig;

    rig_init(&rig, "compressed, a whole ring", 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    CHECK_UINT(rig.write.plan.bytes, rig.expected_bytes);
    CHECK_UINT(rig.write.plain_bytes, rig.expected_bytes);
    CHECK(rig.write.written_bytes < rig.expected_bytes);
    CHECK(!rig.write.unwritten);
    check_packed(&rig, rig.write.written_bytes, rig.expected_bytes, true);
    rig_done(&rig);

    rig_init(&rig, "compressed, longer than is allowed", 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    rig.write.allowed_bytes = 4096;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -EFBIG);
    CHECK(rig.write.is_too_long);
    CHECK(!rig.failure.name);
    rig_done(&rig);

    rig_init(&rig, "compressed, no space", 60);
    open_file(&rig, UINT64_MAX / 2);
    rig.write.is_packed = true;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ENOSPC);
    CHECK_STR(rig.failure.name, ERROR_NO_SPACE);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(rig.write.unwritten == rig.write.plan.first);
    rig_done(&rig);

    rig_init(&rig, "compressed, given up before it begins", 10);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    ring_write_abort(&rig.write);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ECANCELED);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(rig.write.unwritten == ring_pin_first(rig.ring.ring, rig.write.pin));
    rig_done(&rig);
}

/* The newest records, as many as MAX_BYTES hold of them when they are compressed. */
static void check_packed_limit(const char *name, uint64_t max_bytes, uint64_t least_bytes)
{
    _cleanup_(unpack_freep) struct unpack *unpack = NULL;
    uint8_t *stored = aligned_alloc(PAGE_BYTES, RING_BYTES), *got = rig_alloc(1, RING_BYTES);
    uint64_t records, first, last;
    struct rig rig;

    if (!stored)
        die("memory");
    rig_init(&rig, name, 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    rig.write.bounds.max_bytes = max_bytes;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    CHECK(rig.write.written_bytes <= max_bytes);
    CHECK(rig.write.written_bytes >= least_bytes);
    CHECK(read_all(&rig, stored, RING_BYTES) >= rig.write.written_bytes);
    CHECK_INT(unpack_new_memory(stored, rig.write.written_bytes, &unpack), 0);
    CHECK_UINT(unpack_read(unpack, got, RING_BYTES), rig.write.plain_bytes);
    CHECK(read_tscs(got, rig.write.plain_bytes, &records, &first, &last));
    CHECK_UINT(records, rig.write.plan.records);
    CHECK_UINT(last + 1, rig.ring.tsc);
    rig_done(&rig);
    free(stored);
    free(got);
}

static void test_packed_limit(void)
{
    struct rig rig;
    uint64_t all_bytes;

    rig_init(&rig, "compressed, a whole ring for a limit", 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), 0);
    all_bytes = rig.write.written_bytes;
    rig_done(&rig);

    check_packed_limit("compressed, no longer than all of it", all_bytes, all_bytes);
    check_packed_limit("compressed, much longer than all of it", UINT64_MAX, all_bytes);
    check_packed_limit("compressed, a byte less than all of it", all_bytes - 1, all_bytes / 2);
    check_packed_limit("compressed, no longer than a half", all_bytes / 2, all_bytes / 4);
    check_packed_limit("compressed, less than a frame", all_bytes / 20, all_bytes / 60);

    rig_init(&rig, "compressed, less than a round", 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    rig.write.bounds.max_bytes = 100;
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -EFBIG);
    CHECK(!rig.write.is_planned);
    CHECK(!rig.failure.name);
    rig_done(&rig);

    rig_init(&rig, "compressed, given up while it is measured", 60);
    open_file(&rig, 0);
    rig.write.is_packed = true;
    rig.write.bounds.max_bytes = 4096;
    ring_write_abort(&rig.write);
    CHECK_INT(ring_write_run(&rig.file, &rig.write, &rig.failure), -ECANCELED);
    CHECK_UINT(rig.write.written_bytes, 0);
    CHECK(rig.write.unwritten);
    rig_done(&rig);
}

/* A reader that stalls and is given up: whole frames are what it may count on. */
static void test_packed_abort(void)
{
    uint8_t *taken = rig_alloc(1, RING_BYTES);
    struct rig rig;

    rig_init(&rig, "compressed, giving up a reader", 60);
    open_pipe(&rig, 0);
    rig.write.is_packed = true;
    start_writer(&rig);
    CHECK(read(rig.read_fd, taken, 4096) > 0);
    wait_until_stalled(&rig);
    ring_write_abort(&rig.write);
    (void)pthread_join(rig.thread, NULL);
    CHECK_INT(rig.result, -ECANCELED);
    CHECK(rig.write.written_bytes <= ring_write_progress_bytes(&rig.write));
    CHECK(rig.write.plain_bytes < rig.expected_bytes);
    CHECK(rig.write.unwritten);
    free(taken);
    rig_done(&rig);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    test_file();
    test_too_long();
    test_bounds();
    test_middle();
    test_damaged();
    test_slow_reader(0);
    test_slow_reader(O_NONBLOCK);
    test_abort(0);
    test_abort(O_NONBLOCK);
    test_abort_early();
    test_no_plan();
    test_write_errors();
    test_packed();
    test_packed_limit();
    test_packed_abort();
    return test_end();
}
