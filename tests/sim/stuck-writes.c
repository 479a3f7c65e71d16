// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * stuck-writes FROZEN HEALTHY direct|buffered: on one ring, the writes of 24 sinks are stuck in the
 * file system of the directory FROZEN, which is frozen meanwhile. Those of 8 more sinks, to files
 * in HEALTHY, must complete. Needs root. Prints the longest wait for a write; exit status 0 if all
 * is well.
 */

#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "collector/uring.h"
#include "common/units.h"

#define SINK_WRITES   8u
#define HEALTHY_SINKS 8u
#define STUCK_SINKS   (URING_WORKERS / SINK_WRITES - HEALTHY_SINKS)
#define WRITE_BYTES   (16u * 1024u)
#define HEALTHY_TURNS 10u
#define STUCK_TAG     UINT64_C(1)
#define HEALTHY_TAG   UINT64_C(2)
#define PATIENCE_USEC                                                                              \
    (5 * USEC_PER_SEC) /* a write that is held up waits for the thaw: for ever                     \
                        */

static int arg_flags; /* of open(2) */
static uint8_t data[WRITE_BYTES] __attribute__((aligned(4096)));

static uint64_t now_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static int open_output(const char *dir, unsigned int i)
{
    char path[4096];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/output-%u", dir, i);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | arg_flags, 0600);
    if (fd < 0)
        perror(path);
    return fd;
}

/* Eight writes behind one another, from OFFSET on. */
static int queue_writes(struct uring *uring, int fd, uint64_t offset, uint64_t tag)
{
    int r = 0;

    for (unsigned int i = 0; r == 0 && i < SINK_WRITES; i++)
        r = uring_write(uring, fd, data, WRITE_BYTES, offset + i * WRITE_BYTES, tag);
    return r;
}

/* Waits for COUNT writes of TAG, at most so long. Returns how many came. */
static unsigned int await_writes(struct uring *uring, uint64_t tag, unsigned int count,
                                 uint64_t usec)
{
    uint64_t end_usec = now_usec() + usec, left_usec = usec;
    struct uring_event event;
    unsigned int came = 0;

    while (came < count && left_usec > 0) {
        if (uring_wait(uring, left_usec, &event, 1) == 1) {
            if (event.result != (int)WRITE_BYTES || event.tag != tag)
                printf("a write of tag %u ended with %d\n", (unsigned int)event.tag, event.result);
            came += event.result == (int)WRITE_BYTES && event.tag == tag;
        }
        left_usec = end_usec > now_usec() ? end_usec - now_usec() : 0;
    }
    return came;
}

/* A turn: the writes of all healthy sinks. Returns whether none is held up. */
static bool write_turn(struct uring *uring, const int *fds, uint64_t offset)
{
    for (unsigned int i = 0; i < HEALTHY_SINKS; i++)
        if (queue_writes(uring, fds[i], offset, HEALTHY_TAG) < 0)
            return false;
    return await_writes(uring, HEALTHY_TAG, HEALTHY_SINKS * SINK_WRITES, PATIENCE_USEC) ==
           HEALTHY_SINKS * SINK_WRITES;
}

static bool write_healthy(struct uring *uring, const int *fds)
{
    uint64_t longest_usec = 0;

    for (unsigned int i = 0; i < HEALTHY_TURNS; i++) {
        uint64_t begin_usec = now_usec(), took_usec;

        if (!write_turn(uring, fds, (uint64_t)i * SINK_WRITES * WRITE_BYTES)) {
            printf("a write to the healthy file system is held up\n");
            return false;
        }
        took_usec = now_usec() - begin_usec;
        longest_usec = took_usec > longest_usec ? took_usec : longest_usec;
    }
    printf("the longest wait for the healthy file system: %u us\n", (unsigned int)longest_usec);
    return true;
}

static bool write_both(struct uring *uring, const int *stuck, const int *healthy, int frozen)
{
    unsigned int came;
    bool ok;

    if (ioctl(frozen, FIFREEZE, 0) < 0) {
        perror("FIFREEZE");
        return false;
    }
    for (unsigned int i = 0; i < STUCK_SINKS; i++)
        (void)queue_writes(uring, stuck[i], 0, STUCK_TAG);
    came = await_writes(uring, STUCK_TAG, 1, USEC_PER_SEC / 2);
    ok = write_healthy(uring, healthy);
    if (ioctl(frozen, FITHAW, 0) < 0)
        perror("FITHAW");
    if (came > 0) {
        printf("the file system was not frozen\n");
        ok = false;
    }
    came += await_writes(uring, STUCK_TAG, STUCK_SINKS * SINK_WRITES - came, 4 * PATIENCE_USEC);
    if (came < STUCK_SINKS * SINK_WRITES)
        printf("only %u of %u writes came after the thaw\n", came, STUCK_SINKS * SINK_WRITES);
    return ok && came == STUCK_SINKS * SINK_WRITES;
}

static bool open_outputs(const char *dir, int *fds, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        if ((fds[i] = open_output(dir, i)) < 0)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    int stuck[STUCK_SINKS], healthy[HEALTHY_SINKS], frozen, r;
    struct uring *uring;
    bool ok;

    if (argc != 4) {
        fprintf(stderr, "usage: stuck-writes FROZEN HEALTHY direct|buffered\n");
        return EXIT_FAILURE;
    }
    arg_flags = strcmp(argv[3], "direct") == 0 ? O_DIRECT : 0;
    r = uring_new(2 * URING_WORKERS, &uring);
    if (r < 0) {
        fprintf(stderr, "io_uring: %s\n", strerror(-r));
        return EXIT_FAILURE;
    }
    frozen = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (frozen < 0 || !open_outputs(argv[1], stuck, STUCK_SINKS) ||
        !open_outputs(argv[2], healthy, HEALTHY_SINKS))
        return EXIT_FAILURE;
    ok = write_both(uring, stuck, healthy, frozen);
    uring_free(uring);
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
