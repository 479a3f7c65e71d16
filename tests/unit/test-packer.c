// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The thread that compresses: what it writes can be unpacked at any time up to the last chunk that
 * came back, frames end where rounds do, and it gives up what it is told to.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collector/handoff.h"
#include "collector/uring.h"
#include "common/unpack.h"
#include "common/util.h"
#include "daemon/output/packer.h"
#include "tests/unit/test.h"

#define CHUNK      ((size_t)256 << 10)
#define CHUNKS_MAX 256u

struct bench {
    struct handoff *handoff;
    struct uring *uring;
    int fd;      /* the output */
    int read_fd; /* of a pipe; -1: a file */
    int woken;   /* an eventfd */
    uint8_t *data;
    size_t given_bytes;
    unsigned int given, back;
    struct handoff_done last;
};

static void note_wake(void *userdata)
{
    (void)eventfd_write(((const struct bench *)userdata)->woken, 1);
}

static void bench_init(struct bench *bench, const char *name, bool is_pipe)
{
    struct packer_config config = {.is_stream = is_pipe, .wake = note_wake, .userdata = bench};
    int fds[2] = {-1, open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)};

    test_case(name);
    *bench = (struct bench){.woken = eventfd(0, EFD_CLOEXEC), .data = malloc(CHUNKS_MAX * CHUNK)};
    if (is_pipe) {
        fd_close(&fds[1]);
        CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
    }
    bench->read_fd = fds[0];
    bench->fd = config.fd = fds[1];
    /* Words that repeat, as records do. */
    for (size_t i = 0; i < CHUNKS_MAX * CHUNK; i += 4)
        memcpy(bench->data + i, &(uint32_t){(uint32_t)(i / 64 * 0x9e3779b9u)}, 4);
    if (uring_new(8, &bench->uring) < 0 || packer_new(&config, &bench->handoff) < 0) {
        perror("bench");
        exit(EXIT_FAILURE);
    }
}

static void bench_done(struct bench *bench)
{
    handoff_free(bench->handoff);
    uring_free(bench->uring);
    fd_close(&bench->fd);
    fd_close(&bench->read_fd);
    fd_close(&bench->woken);
    free(bench->data);
}

static void bench_wake(const struct bench *bench)
{
    struct uring_event event;

    handoff_wake(bench->handoff, bench->uring);
    (void)uring_wait(bench->uring, 0, &event, 1);
}

static void give(struct bench *bench, size_t bytes, bool ends_round)
{
    CHECK(handoff_give(bench->handoff, bench->data + bench->given_bytes, (uint32_t)bytes,
                       ends_round));
    bench->given_bytes += bytes;
    bench->given++;
    bench_wake(bench);
}

static void give_end(struct bench *bench)
{
    CHECK(handoff_give_end(bench->handoff));
    bench->given++;
    bench_wake(bench);
}

static void take_back(struct bench *bench)
{
    while (handoff_take_done(bench->handoff, &bench->last))
        bench->back++;
}

/* Until so many have come back, or for MSEC at most. Returns whether they have. */
static bool await_back(struct bench *bench, unsigned int count, int msec)
{
    eventfd_t nothing;

    for (take_back(bench); bench->back < count; take_back(bench)) {
        struct pollfd fd = {.fd = bench->woken, .events = POLLIN};

        if (poll(&fd, 1, msec) <= 0)
            return false;
        (void)eventfd_read(bench->woken, &nothing);
    }
    return true;
}

#define LONG_MSEC 30000

/* What the file holds now is what was given up to BYTES, in whole frames. */
static void check_file(const struct bench *bench, size_t bytes)
{
    uint8_t *got = malloc(CHUNKS_MAX * CHUNK);
    struct unpack *unpack = NULL;

    CHECK_INT(lseek(bench->fd, 0, SEEK_SET), 0);
    CHECK_INT(unpack_new_fd(bench->fd, NULL, 0, &unpack), 0);
    CHECK_UINT(unpack_read(unpack, got, CHUNKS_MAX * CHUNK), bytes);
    CHECK_INT(unpack_damage(unpack), UNPACK_SOUND);
    CHECK(memcmp(got, bench->data, bytes) == 0);
    unpack_free(unpack);
    free(got);
}

static uint64_t file_bytes(const struct bench *bench)
{
    struct stat st;

    CHECK_INT(fstat(bench->fd, &st), 0);
    return (uint64_t)st.st_size;
}

static void test_file(void)
{
    struct bench bench;
    struct unpack *unpack = NULL;

    bench_init(&bench, "a frame is written when it is long enough and a round ends", false);
    for (unsigned int i = 0; i < 5; i++)
        give(&bench, CHUNK, false);
    CHECK(!await_back(&bench, 1, 100));
    give(&bench, CHUNK, true);
    CHECK(await_back(&bench, 6, LONG_MSEC));
    CHECK_INT(bench.last.error, 0);
    CHECK_UINT(bench.last.stored_bytes, file_bytes(&bench));
    CHECK(bench.last.least_bytes > bench.last.stored_bytes);
    CHECK_UINT(bench.last.raw_bytes, 0);
    CHECK(bench.last.stored_bytes < bench.given_bytes / 2);
    check_file(&bench, bench.given_bytes);

    test_case("one that is short waits for more, but not for long");
    give(&bench, 1000, true);
    CHECK(await_back(&bench, 7, LONG_MSEC));
    check_file(&bench, bench.given_bytes);

    test_case("... nor when the sink waits for it");
    give(&bench, 1000, true);
    handoff_set_needs(bench.handoff, false, true);
    bench_wake(&bench);
    CHECK(await_back(&bench, 8, 400));
    handoff_set_needs(bench.handoff, false, false);

    test_case("the end: a seek table");
    give(&bench, CHUNK, false);
    give_end(&bench);
    CHECK(await_back(&bench, 10, LONG_MSEC));
    CHECK_UINT(bench.last.stored_bytes, file_bytes(&bench));
    check_file(&bench, bench.given_bytes);
    CHECK_INT(lseek(bench.fd, 0, SEEK_SET), 0);
    CHECK_INT(unpack_new_fd(bench.fd, NULL, 0, &unpack), 0);
    CHECK(unpack_can_seek(unpack));
    CHECK_UINT(unpack_bytes(unpack), bench.given_bytes);
    CHECK_UINT(unpack_next_frame(unpack, 1), 6 * CHUNK);
    unpack_free(unpack);
    bench_done(&bench);

    bench_init(&bench, "a round that is longer than all slots: the frame ends with a chunk", false);
    for (unsigned int i = 0; i < HANDOFF_SLOTS; i++)
        give(&bench, 5000, false);
    CHECK(await_back(&bench, HANDOFF_SLOTS, LONG_MSEC));
    check_file(&bench, bench.given_bytes);
    bench_done(&bench);
}

/* Memory runs out: frames are stored as they are, until it does not any more. */
static void test_raw(void)
{
    struct bench bench;
    uint64_t stored;

    bench_init(&bench, "behind: stored raw", false);
    handoff_set_needs(bench.handoff, true, false);
    give(&bench, 8 * CHUNK, true);
    CHECK(await_back(&bench, 1, LONG_MSEC));
    stored = bench.last.stored_bytes;
    CHECK_UINT(bench.last.raw_bytes, 8 * CHUNK);
    CHECK(stored > 7 * CHUNK && stored <= 8 * CHUNK + 4096);
    test_case("not any more: compressed again");
    handoff_set_needs(bench.handoff, false, false);
    give(&bench, 8 * CHUNK, true);
    CHECK(await_back(&bench, 2, LONG_MSEC));
    CHECK_UINT(bench.last.raw_bytes, 8 * CHUNK);
    CHECK(bench.last.stored_bytes - stored < 4 * CHUNK);
    check_file(&bench, bench.given_bytes);
    bench_done(&bench);
}

static void test_failure(void)
{
    const struct rlimit none = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    const struct rlimit limit = {.rlim_cur = 100000, .rlim_max = RLIM_INFINITY};
    struct bench bench;
    uint64_t stored;

    bench_init(&bench, "a write fails: all from that frame on comes back with the error", false);
    give(&bench, 4 * CHUNK, true);
    CHECK(await_back(&bench, 1, LONG_MSEC));
    stored = bench.last.stored_bytes;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
    give(&bench, 8 * CHUNK, true);
    CHECK(await_back(&bench, 2, LONG_MSEC));
    CHECK_INT(bench.last.error, -EFBIG);
    give(&bench, CHUNK, true);
    give_end(&bench);
    CHECK(await_back(&bench, 4, LONG_MSEC));
    CHECK_INT(bench.last.error, -EFBIG);
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
    CHECK_INT(ftruncate(bench.fd, (off_t)stored), 0);
    check_file(&bench, 4 * CHUNK);
    bench_done(&bench);
}

/* Reads the pipe until BYTES of content have come; all that was read is in BUFFER. */
static size_t read_pipe(const struct bench *bench, uint8_t *buffer, size_t bytes)
{
    size_t n = 0;

    while (n < bytes) {
        ssize_t got = read(bench->read_fd, buffer + n, bytes - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

static void test_pipe(void)
{
    static struct bench left;
    uint8_t *packed = malloc(CHUNKS_MAX * CHUNK), *got = malloc(CHUNKS_MAX * CHUNK);
    struct unpack *unpack = NULL;
    struct bench bench;
    size_t n;

    bench_init(&bench, "a pipe gets all of it", true);
    (void)fcntl(bench.fd, F_SETPIPE_SZ, 1 << 20);
    give(&bench, 6 * CHUNK, true);
    give_end(&bench);
    CHECK(await_back(&bench, 2, LONG_MSEC));
    n = read_pipe(&bench, packed, bench.last.stored_bytes);
    CHECK_INT(unpack_new_memory(packed, n, &unpack), 0);
    CHECK_UINT(unpack_read(unpack, got, CHUNKS_MAX * CHUNK), bench.given_bytes);
    CHECK(memcmp(got, bench.data, bench.given_bytes) == 0);
    unpack_free(unpack);
    bench_done(&bench);

    bench_init(&bench, "a reader that does not read: it is given up at once", true);
    (void)fcntl(bench.fd, F_SETPIPE_SZ, 4096);
    give(&bench, 64 * CHUNK, true);
    CHECK(!await_back(&bench, 1, 300));
    give(&bench, CHUNK, true);
    handoff_cancel(bench.handoff);
    bench_wake(&bench);
    CHECK(await_back(&bench, 2, LONG_MSEC));
    CHECK_INT(bench.last.error, -ECANCELED);
    bench_done(&bench);

    bench_init(&bench, "a reader that has gone", true);
    fd_close(&bench.read_fd);
    give(&bench, 64 * CHUNK, true);
    CHECK(await_back(&bench, 1, LONG_MSEC));
    CHECK_INT(bench.last.error, -EPIPE);
    bench_done(&bench);

    bench_init(&left, "the sink is freed while it writes: nobody waits", true);
    (void)fcntl(left.fd, F_SETPIPE_SZ, 4096);
    give(&left, 64 * CHUNK, true);
    CHECK(!await_back(&left, 1, 300));
    handoff_free(left.handoff);
    uring_free(left.uring); /* the rest stays, for the thread has it for as long as it likes */
    (void)poll(NULL, 0, 300);
    free(packed);
    free(got);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN);
    test_file();
    test_raw();
    test_failure();
    test_pipe();
    return test_end();
}
