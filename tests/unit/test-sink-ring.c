// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The sink on io_uring, writing to real files and pipes. What ends a file: RLIMIT_FSIZE, /dev/full;
 * what ends a pipe: its reader. Files are made in the working directory, for O_DIRECT's sake.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "collector/uring.h"
#include "tests/unit/sink-rig.h"

#define MAX_EVENTS 16u
#define WAIT_USEC  UINT64_C(100000)
#define MAX_WAITS  100 /* without any event: what should have ended hangs */

struct setup {
    struct rig rig;
    struct uring *uring;
    int fd;
    int told; /* what sink_complete() returned that was not 0 */
};

static void setup_init(struct setup *setup, struct sink_config *config, uint64_t seed)
{
    setup->fd = config->fd;
    setup->told = 0;
    if (uring_new(64, &setup->uring) < 0)
        exit(EXIT_FAILURE);
    rig_init(&setup->rig, config, seed);
    /* Both ways are to work; RLIMIT_MEMLOCK may refuse this one. */
    if (seed & 1)
        (void)uring_register_buffer(setup->uring, pool_base(setup->rig.pool),
                                    pool_bytes(setup->rig.pool));
}

static void setup_done(struct setup *setup)
{
    setup->uring = uring_free(setup->uring);
    rig_done(&setup->rig);
    fd_close(&setup->fd);
}

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

/* Submits, and waits once. Returns the number of writes that ended. */
static int turn(struct setup *setup, uint64_t timeout_usec)
{
    struct uring_event events[MAX_EVENTS];
    int n;

    sink_submit(setup->rig.sink, setup->uring, now_usec());
    n = uring_wait(setup->uring, timeout_usec, events, MAX_EVENTS);
    CHECK(n >= 0);
    for (int i = 0; i < n; i++) {
        int r = sink_complete(setup->rig.sink, (struct chunk *)(uintptr_t)events[i].tag,
                              events[i].result, now_usec());

        if (r < 0) {
            CHECK_INT(setup->told, 0);
            setup->told = r;
        }
    }
    return n;
}

static void finish(struct setup *setup)
{
    sink_flush(setup->rig.sink);
    for (int idle = 0; idle < MAX_WAITS && !sink_is_quiet(setup->rig.sink);)
        idle = turn(setup, WAIT_USEC) > 0 ? 0 : idle + 1;
    CHECK(sink_is_quiet(setup->rig.sink));
}

/* Feeds about BYTES, and waits where the pool is empty. Returns what the sink said last. */
static enum sink_room feed(struct setup *setup, uint64_t bytes)
{
    enum sink_room said = SINK_ROOM;
    unsigned int cpu = 0;
    int idle = 0;

    for (uint64_t fed = 0; fed < bytes && (said == SINK_ROOM || said == SINK_NO_CHUNK);) {
        uint32_t window = (uint32_t)(test_random(&setup->rig.random) % (CHUNK_BYTES / 4));

        said = rig_feed(&setup->rig, cpu++ % RIG_CPUS, window);
        fed += said == SINK_ROOM ? window : 0;
        idle = turn(setup, said == SINK_NO_CHUNK ? WAIT_USEC : 0) > 0 || said == SINK_ROOM
                   ? 0
                   : idle + 1;
        if (idle == MAX_WAITS)
            break;
    }
    return said;
}

static struct sink_totals setup_totals(const struct setup *setup)
{
    struct sink_totals totals;

    sink_read_totals(setup->rig.sink, &totals);
    return totals;
}

/* --- Files. --- */

/* A file without a name in the working directory; with O_DIRECT, if it can be had, for pages. */
static int open_file(uint32_t align_bytes)
{
    int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

    if (fd < 0) {
        char name[] = "test-sink-ring-XXXXXX";

        fd = mkostemp(name, O_CLOEXEC);
        if (fd < 0 || unlink(name) < 0) {
            perror("a file in the working directory");
            exit(TEST_SKIPPED);
        }
    }
    if (align_bytes == PAGE_BYTES && fcntl(fd, F_SETFL, O_DIRECT) < 0)
        printf("O_DIRECT: %s; written through the page cache\n", strerror(errno));
    return fd;
}

/* The file as a reader finds it, cut to the output's length as the daemon does. */
static void check_file(struct setup *setup)
{
    uint64_t bytes = setup_totals(setup).output_bytes;
    uint8_t *data = aligned_alloc(PAGE_BYTES, align_up(bytes + 1, PAGE_BYTES));
    struct stat st;

    if (!data || ftruncate(setup->fd, (off_t)bytes) < 0)
        exit(EXIT_FAILURE);
    (void)fcntl(setup->fd, F_SETFL, 0); /* whole blocks are for writing only */
    CHECK_INT(pread(setup->fd, data, bytes + 1, 0), bytes);
    CHECK_INT(fstat(setup->fd, &st), 0);
    rig_check_end(&setup->rig, data);
    free(data);
}

/* Files may grow to BYTES; 0: as far as they might before. */
static void limit_files(uint64_t bytes)
{
    static struct rlimit before;
    struct rlimit limit;

    if (before.rlim_max == 0 && getrlimit(RLIMIT_FSIZE, &before) < 0)
        exit(EXIT_FAILURE);
    limit = before;
    if (bytes)
        limit.rlim_cur = bytes;
    CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

struct file_case {
    const char *name;
    uint32_t align_bytes;
    uint64_t max_bytes;
    uint64_t rlimit_bytes;
    enum sink_room said;
    int told;
};

static const struct file_case file_cases[] = {
    {"file", 4, SINK_NO_LIMIT, 0, SINK_ROOM, 0},
    {"file of whole blocks", PAGE_BYTES, SINK_NO_LIMIT, 0, SINK_ROOM, 0},
    {"file with a limit", 4, 3000001, 0, SINK_AT_LIMIT, 0},
    {"file of whole blocks with a limit", PAGE_BYTES, 3000001, 0, SINK_AT_LIMIT, 0},
    {"file that fails", 4, SINK_NO_LIMIT, 2000000, SINK_HAS_FAILED, -EFBIG},
    {"file of whole blocks that fails", PAGE_BYTES, SINK_NO_LIMIT, 500 * 4096, SINK_HAS_FAILED,
     -EFBIG},
};

static void test_files(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(file_cases); i++) {
        const struct file_case *c = &file_cases[i];
        struct sink_config config = rig_config(c->align_bytes);
        struct setup setup;

        test_case(c->name);
        config.max_bytes = c->max_bytes;
        config.fd = open_file(c->align_bytes);
        setup_init(&setup, &config, seed + i);
        limit_files(c->rlimit_bytes);
        CHECK_INT(feed(&setup, UINT64_C(5) << 20), c->said);
        finish(&setup);
        limit_files(0);
        CHECK_INT(setup.told, c->told);
        CHECK(setup_totals(&setup).output_bytes <= c->max_bytes);
        CHECK(!c->rlimit_bytes || setup_totals(&setup).output_bytes <= c->rlimit_bytes);
        check_file(&setup);
        setup_done(&setup);
    }
}

static void test_device_full(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct setup setup;

    test_case("/dev/full");
    config.fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (config.fd < 0)
        return;
    setup_init(&setup, &config, seed);
    CHECK_INT(feed(&setup, UINT64_C(4) << 20), SINK_HAS_FAILED);
    finish(&setup);
    CHECK_INT(setup.told, -ENOSPC);
    CHECK_UINT(setup_totals(&setup).output_bytes, 0);
    rig_check_end(&setup.rig, NULL);
    setup_done(&setup);
}

/* --- Pipes. --- */

struct reader {
    int fd;
    uint64_t stop_bytes; /* closes after so many */
    unsigned int pause_usec;
    uint64_t bytes;
    uint8_t data[8 << 20];
};

static void *read_pipe(void *context)
{
    struct reader *reader = context;

    while (reader->bytes < reader->stop_bytes) {
        size_t odd = (size_t)min_u64(7777, sizeof(reader->data) - reader->bytes);
        ssize_t n = read(reader->fd, reader->data + reader->bytes, odd);

        if (n <= 0)
            break;
        reader->bytes += (uint64_t)n;
        if (reader->pause_usec)
            (void)usleep(reader->pause_usec);
    }
    fd_close(&reader->fd);
    return NULL;
}

struct pipe_case {
    const char *name;
    uint64_t bytes;
    uint64_t stop_bytes;
    unsigned int pause_usec;
    int told;
};

static const struct pipe_case pipe_cases[] = {
    {"pipe", 5 << 20, UINT64_MAX, 0, 0},
    {"pipe with a slow reader", 1 << 19, UINT64_MAX, 100, 0},
    {"pipe whose reader goes", 5 << 20, 300000, 0, -EPIPE},
    {"pipe without a reader", 5 << 20, 0, 0, -EPIPE},
};

static void test_pipes(uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_SIZE(pipe_cases); i++) {
        const struct pipe_case *c = &pipe_cases[i];
        struct reader *reader = calloc(1, sizeof(*reader));
        struct sink_config config = rig_config(4);
        struct setup setup;
        pthread_t thread;
        int fds[2];

        test_case(c->name);
        if (!reader || pipe2(fds, O_CLOEXEC) < 0)
            exit(EXIT_FAILURE);
        *reader =
            (struct reader){.fd = fds[0], .stop_bytes = c->stop_bytes, .pause_usec = c->pause_usec};
        config.fd = fds[1];
        config.is_stream = true;
        setup_init(&setup, &config, seed + i);
        if (pthread_create(&thread, NULL, read_pipe, reader) != 0)
            exit(EXIT_FAILURE);
        CHECK_INT(feed(&setup, c->bytes), c->told ? SINK_HAS_FAILED : SINK_ROOM);
        finish(&setup);
        CHECK_INT(setup.told, c->told);
        fd_close(&setup.fd);
        (void)pthread_join(thread, NULL);
        if (!c->told)
            CHECK_UINT(reader->bytes, setup_totals(&setup).output_bytes);
        /* What one read and then did not wait for may be a part of the next chunk, never less. */
        if (c->stop_bytes > 0)
            rig_check_end(&setup.rig, reader->data);
        setup_done(&setup);
        free(reader);
    }
}

/* A reader that does not read holds nobody up for ever. */
static void test_abort(uint64_t seed)
{
    struct sink_config config = rig_config(4);
    struct setup setup;
    int fds[2];

    test_case("abort");
    if (pipe2(fds, O_CLOEXEC) < 0)
        exit(EXIT_FAILURE);
    config.fd = fds[1];
    config.is_stream = true;
    setup_init(&setup, &config, seed);
    for (unsigned int i = 0; i < 5; i++)
        CHECK_INT(rig_feed(&setup.rig, i % RIG_CPUS, CHUNK_BYTES), SINK_ROOM);
    turn(&setup, 0);
    CHECK(!sink_is_quiet(setup.rig.sink));
    CHECK(sink_abandon(setup.rig.sink, setup.uring, true));
    finish(&setup);
    CHECK_INT(setup.told, 0);
    CHECK_UINT(setup_totals(&setup).output_bytes, 0);
    rig_check_end(&setup.rig, NULL);
    setup_done(&setup);
    (void)close(fds[0]);
}

int main(void)
{
    uint64_t seed = test_seed();
    struct uring *uring;
    int r = uring_new(8, &uring);

    if (r < 0) {
        printf("no io_uring here: %s\n", strerror(-r));
        return TEST_SKIPPED;
    }
    uring_free(uring);
    (void)signal(SIGXFSZ, SIG_IGN);
    (void)signal(SIGPIPE, SIG_IGN);
    test_files(seed);
    test_device_full(seed);
    test_pipes(seed);
    test_abort(seed);
    return test_end();
}
