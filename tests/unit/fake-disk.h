/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The sink of sink-rig.h on the ring of fake-uring.h, and an output in memory that notes where it
 * was written at all.
 */

#include <errno.h>

#include "tests/unit/fake-uring.h"
#include "tests/unit/sink-rig.h"

#define DISK_BYTES (UINT64_C(16) << 20)
#define RETRY_USEC UINT64_C(10000) /* before what the kernel did not take is written again */

struct disk {
    struct rig rig;
    struct uring uring;
    uint64_t stream_bytes; /* how far a stream has come */
    uint64_t end_bytes;    /* after the last byte that was ever written */
    uint64_t now_usec;     /* it is the test that makes time pass */
    unsigned int misaligned;
    uint8_t *data;
};

static inline struct disk *disk_new_large(const struct sink_config *config, unsigned int chunks,
                                          uint64_t seed)
{
    struct disk *disk = calloc(1, sizeof(*disk));

    if (!disk || !(disk->data = malloc(DISK_BYTES)))
        exit(EXIT_FAILURE);
    memset(disk->data, 0xee, DISK_BYTES);
    disk->uring.max_writes = FAKE_MAX_WRITES;
    disk->now_usec = 1000;
    rig_init_large(&disk->rig, config, chunks, seed);
    return disk;
}

static inline struct disk *disk_new(const struct sink_config *config, uint64_t seed)
{
    return disk_new_large(config, RIG_CHUNKS, seed);
}

static inline void disk_free(struct disk *disk)
{
    rig_done(&disk->rig);
    free(disk->data);
    free(disk);
}

/* Ends the write at INDEX: RESULT bytes of it, all for INT32_MAX, or a negative errno. */
static inline int disk_end_write(struct disk *disk, unsigned int index, int32_t result)
{
    const struct sink_config *config = sink_config(disk->rig.sink);
    struct fake_write write = fake_uring_take(&disk->uring, index);
    uint64_t offset = config->is_stream ? disk->stream_bytes : write.offset;

    CHECK_INT(write.fd, config->fd);
    if (config->is_stream)
        CHECK_UINT(write.offset, URING_NO_OFFSET);
    else
        disk->misaligned += write.offset % config->align_bytes != 0 ||
                            write.bytes % config->align_bytes != 0 ||
                            (uintptr_t)write.data % config->align_bytes != 0;
    result = result > (int64_t)write.bytes ? (int32_t)write.bytes : result;
    if (result > 0 && CHECK(offset + (uint32_t)result <= DISK_BYTES)) {
        memcpy(disk->data + offset, write.data, (uint32_t)result);
        disk->stream_bytes += (uint32_t)result;
        disk->end_bytes = max_u64(disk->end_bytes, offset + (uint32_t)result);
    }
    return sink_complete(disk->rig.sink, (struct chunk *)(uintptr_t)write.tag, result,
                         disk->now_usec);
}

static inline void disk_submit(struct disk *disk)
{
    sink_submit(disk->rig.sink, &disk->uring, disk->now_usec);
}

/* Submits and ends writes, in order and well, until none is left. */
static inline void disk_settle(struct disk *disk)
{
    for (disk_submit(disk); disk->uring.nr_writes > 0; disk_submit(disk))
        CHECK_INT(disk_end_write(disk, 0, INT32_MAX), 0);
}

/* Closes a chunk with BYTES of records, of all CPUs in turn. */
static inline void disk_put_chunk(struct disk *disk, uint32_t bytes)
{
    for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++)
        CHECK_INT(rig_feed(&disk->rig, cpu, bytes / RIG_CPUS), SINK_ROOM);
    sink_flush(disk->rig.sink);
}

static inline struct sink_totals disk_totals(const struct disk *disk)
{
    struct sink_totals totals;

    sink_read_totals(disk->rig.sink, &totals);
    return totals;
}

/* The sum of all CPUs' lines. */
static inline struct ledger disk_ledger(const struct disk *disk)
{
    struct ledger sum = {0};

    for (unsigned int cpu = 0; cpu < RIG_CPUS; cpu++) {
        struct ledger ledger;

        sink_read_ledger(disk->rig.sink, cpu, &ledger);
        sum.produced += ledger.produced;
        sum.delivered += ledger.delivered;
        sum.lost += ledger.lost;
        sum.dropped += ledger.dropped;
    }
    return sum;
}

static inline void disk_check_end(const struct disk *disk)
{
    CHECK_UINT(disk->misaligned, 0);
    rig_check_end(&disk->rig, disk->data);
}
