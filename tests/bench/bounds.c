// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The physical bounds beside which tests/bench/run puts its figures: what any program must pay that
 * brings records from Xen's buffers to a disk.
 *
 *   bounds copy BYTES          one memcpy() pass, through trace buffers of 4 x 128 KiB that another
 *                              thread on another CPU has just written, into a pool of 64 MiB
 *   bounds walk BYTES          the same, and a walk over the records of each copy
 *   bounds write FILE BYTES    an io_uring loop with O_DIRECT, 8 writes of 256 KiB at once, from
 *                              registered memory; FILE is left behind
 *   bounds pauses SECONDS      a loop that does nothing but look at the clock: for how long it did
 *                              not run
 *
 * Prints a JSON object.
 */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <liburing.h>

#include "collector/walk.h"
#include "common/record.h"
#include "common/util.h"

#define SOURCES     4u
#define CHUNK_BYTES (256u << 10)
#define POOL_BYTES  (64u << 20)
#define DEPTH       8u

static double now(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts); /* cannot fail for these clocks */
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* --- Copying. --- */

static uint8_t source[SOURCES][CHUNK_BYTES / 2];
static uint8_t records[CHUNK_BYTES / 2]; /* of 24 and 28 bytes in turn, and what is left is 0 */

static void make_records(void)
{
    uint32_t offset = 0;

    for (uint32_t i = 0; offset + RECORD_MAX_BYTES <= sizeof(records); i++) {
        uint32_t header = 0x80021001u | (3 + i % 2) << TRACE_EXTRA_SHIFT;

        memcpy(records + offset, &header, sizeof(header));
        records[offset + sizeof(header)] = 1; /* the TSC */
        offset += record_bytes(header);
    }
}

/* Makes the sources' bytes another CPU's. */
static void *touch(void *argument)
{
    (void)argument;
    for (unsigned int i = 0; i < SOURCES; i++)
        memcpy(source[i], records, sizeof(records));
    return NULL;
}

/* As collector/drain.c does it, but for all that is not copying or walking. */
static void walk_source(unsigned int i, uint8_t *to)
{
    uint64_t class_records[EVENT_CLASSES] = {0};
    struct walk_result result;

    for (size_t at = 0; at < sizeof(source[i]); at += 64)
        memcpy(to + at, source[i] + at, 64);
    walk_window(to, sizeof(source[i]), false, &walk_everything, to, class_records, &result);
}

static int measure_copy(uint64_t bytes, bool walks)
{
    uint8_t *pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    uint64_t copied = 0;
    double seconds = 0;

    if (pool == MAP_FAILED)
        return -errno;
    make_records();
    while (copied < bytes) {
        pthread_t thread;
        double begin;

        if (pthread_create(&thread, NULL, touch, NULL) != 0)
            return -EAGAIN;
        (void)pthread_join(thread, NULL);
        begin = now(CLOCK_MONOTONIC);
        for (unsigned int i = 0; i < SOURCES; i++, copied += sizeof(source[i]))
            if (walks)
                walk_source(i, pool + copied % POOL_BYTES);
            else
                memcpy(pool + copied % POOL_BYTES, source[i], sizeof(source[i]));
        seconds += now(CLOCK_MONOTONIC) - begin;
    }
    printf("{\"bytes\":%llu,\"seconds\":%.6f}\n", (unsigned long long)copied, seconds);
    return 0;
}

/* --- Pauses. --- */

static int measure_pauses(double seconds)
{
    double begin = now(CLOCK_MONOTONIC), last = begin, longest = 0;
    unsigned int count = 0;

    while (last - begin < seconds) {
        double next = now(CLOCK_MONOTONIC);

        if (next - last > longest)
            longest = next - last;
        count += next - last > 0.001;
        last = next;
    }
    printf("{\"longest_seconds\":%.6f,\"longer_than_1_ms\":%u}\n", longest, count);
    return 0;
}

/* --- Writing. --- */

struct writes {
    unsigned int in_flight;
    double last;    /* when one was done */
    double longest; /* that none was done */
};

static int reap(struct io_uring *ring, struct writes *writes)
{
    struct io_uring_cqe *cqe;
    int r = io_uring_wait_cqe(ring, &cqe);
    double done = now(CLOCK_MONOTONIC);

    if (r < 0)
        return r;
    if (done - writes->last > writes->longest)
        writes->longest = done - writes->last;
    writes->last = done;
    writes->in_flight--;
    r = cqe->res < 0 ? cqe->res : cqe->res == CHUNK_BYTES ? 0 : -EIO;
    io_uring_cqe_seen(ring, cqe);
    return r;
}

static int write_all(struct io_uring *ring, int fd, const uint8_t *pool, uint64_t bytes,
                     struct writes *writes)
{
    int r = 0;

    for (uint64_t offset = 0; r >= 0 && offset < bytes; offset += CHUNK_BYTES) {
        struct io_uring_sqe *sqe;

        if (writes->in_flight == DEPTH)
            r = reap(ring, writes);
        if (r < 0)
            break;
        sqe = io_uring_get_sqe(ring); /* there is room for DEPTH */
        io_uring_prep_write_fixed(sqe, fd, pool + offset % POOL_BYTES, CHUNK_BYTES, offset, 0);
        writes->in_flight++;
        r = io_uring_submit(ring);
    }
    while (writes->in_flight > 0) {
        int result = reap(ring, writes);

        r = r < 0 ? r : result;
    }
    return r;
}

static int measure_write(const char *path, uint64_t bytes)
{
    const unsigned int flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    uint8_t *pool = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE,
                         MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct iovec whole = {.iov_base = pool, .iov_len = POOL_BYTES};
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT | O_CLOEXEC, 0600);
    double begin, begin_cpu;
    struct writes writes = {0};
    struct io_uring ring;
    int r;

    if (fd < 0 || pool == MAP_FAILED)
        return -errno;
    memset(pool, 0x5a, POOL_BYTES);
    r = io_uring_queue_init(DEPTH * 2, &ring, flags);
    if (r >= 0)
        r = io_uring_register_buffers(&ring, &whole, 1);
    if (r < 0)
        return r;
    if (posix_fallocate(fd, 0, (off_t)bytes) != 0)
        return -ENOSPC;
    begin = now(CLOCK_MONOTONIC);
    writes.last = begin;
    begin_cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    r = write_all(&ring, fd, pool, bytes, &writes);
    if (r >= 0 && fdatasync(fd) < 0)
        r = -errno;
    printf("{\"bytes\":%llu,\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"longest_seconds\":%.6f}\n",
           (unsigned long long)bytes, now(CLOCK_MONOTONIC) - begin,
           now(CLOCK_PROCESS_CPUTIME_ID) - begin_cpu, writes.longest);
    io_uring_queue_exit(&ring);
    fd_close(&fd);
    return r;
}

int main(int argc, char **argv)
{
    int r = -EINVAL;

    if (argc == 3 && (strcmp(argv[1], "copy") == 0 || strcmp(argv[1], "walk") == 0))
        r = measure_copy(strtoull(argv[2], NULL, 10), argv[1][0] == 'w');
    else if (argc == 3 && strcmp(argv[1], "pauses") == 0)
        r = measure_pauses(strtod(argv[2], NULL));
    else if (argc == 4 && strcmp(argv[1], "write") == 0)
        r = measure_write(argv[2], strtoull(argv[3], NULL, 10) / CHUNK_BYTES * CHUNK_BYTES);
    if (r < 0)
        (void)fprintf(stderr, "bounds: %s\n", strerror(-r));
    return r < 0;
}
