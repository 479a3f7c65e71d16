// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * What a round over the trace buffers costs when nothing is in them.
 *
 *   round CPUS      prints {"cpus":256,"usec":...}: the median of many rounds
 *
 * The buffers' first pages are as far apart as on Xen, and are looked at after as much other memory
 * was read as fits into a large second-level cache: a round comes seldom.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "collector/attachment.h"
#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/util.h"

#define PAGES       32u
#define ROUNDS      1001u
#define OTHER_BYTES (2u << 20)

static uint64_t now_nsec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static int set_up(unsigned int cpus, struct drain **ret_drain, struct sink **ret_sink)
{
    struct xen_trace_buffers buffers = {.nr_cpus = cpus, .pages = PAGES};
    struct sink_config config = {.fd = -1, .max_bytes = SINK_NO_LIMIT, .nr_cpus = cpus};
    uint8_t *memory = mmap(NULL, (size_t)cpus * PAGES * PAGE_BYTES, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    static struct pool *pool;
    int r;

    buffers.buffer = calloc(cpus, sizeof(*buffers.buffer));
    if (memory == MAP_FAILED || !buffers.buffer)
        return -ENOMEM;
    event_set_add_mask(&config.events, 0x00fff000);
    for (unsigned int cpu = 0; cpu < cpus; cpu++) {
        buffers.buffer[cpu] = memory + (size_t)cpu * PAGES * PAGE_BYTES;
        cpu_set_add(&config.cpus, cpu);
    }
    r = pool_new(4 * (uint64_t)CHUNK_BYTES, &pool);
    if (r >= 0)
        r = drain_new(&buffers, ret_drain);
    if (r >= 0)
        r = sink_new(&config, pool, ret_sink);
    free(buffers.buffer);
    return r;
}

/* Reads, so that the buffers' lines are in no small cache. */
static void forget(const volatile uint8_t *other)
{
    for (size_t i = 0; i < OTHER_BYTES; i += 64)
        (void)other[i];
}

int main(int argc, char **argv)
{
    unsigned int cpus = argc == 2 ? (unsigned int)strtoul(argv[1], NULL, 10) : 0;
    static uint8_t other[OTHER_BYTES];
    static uint64_t nsec[ROUNDS];
    struct drain *drain;
    struct attachment attachment = {.mode = DRAIN_RECORDS};
    int r = cpus > 0 ? set_up(cpus, &drain, &attachment.sink) : -EINVAL;

    if (r < 0) {
        (void)fprintf(stderr, "round: %s\n", strerror(-r));
        return 1;
    }
    memset(other, 1, sizeof(other));
    for (unsigned int i = 0; i < ROUNDS; i++) {
        uint64_t begin;

        forget(other);
        begin = now_nsec();
        (void)drain_round(drain, &attachment, 1, i);
        nsec[i] = now_nsec() - begin;
    }
    qsort(nsec, ROUNDS, sizeof(*nsec), compare);
    printf("{\"cpus\":%u,\"usec\":%.3f}\n", cpus, (double)nsec[ROUNDS / 2] / 1e3);
    return 0;
}
