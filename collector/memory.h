/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory for records, mapped and populated, so that the data path has no page faults.
 *
 * It uses huge pages where available. Chunks are reused in turn, so with small pages each reuse
 * misses the TLB, which took as long as the copy itself (docs/BENCHMARKS.md). Memory of a memfd has
 * huge pages only if the host's administrator allows it:
 * /sys/kernel/mm/transparent_hugepage/shmem_enabled.
 *
 * Any thread but the collector's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Maps BYTES: shared, from the start of MEMFD, or private if MEMFD is -1. The first TOUCHED_BYTES
 * are populated; the rest is reserved for memory_populate(). Returns 0, or the errors of mmap(2)
 * and madvise(2).
 */
int memory_map(int memfd, uint64_t bytes, uint64_t touched_bytes, void **ret_base);

/* Populates BYTES from BASE, which is page aligned. Returns 0 or the error of madvise(2). */
int memory_populate(void *base, uint64_t bytes);
/*
 * The opposite: unlocks the memory and returns it to the kernel; it reads as zeroes. SHARED: it is
 * of a memfd.
 */
void memory_return(void *base, uint64_t bytes, bool shared);

void memory_unmap(void *base, uint64_t bytes); /* BASE may be NULL */

/*
 * Memory of the collector thread is locked. Otherwise, under memory pressure, the thread would wait
 * for pages from the disk while Xen's buffers overflow. Objects and code are locked one by one,
 * because mlockall(2) would also lock and populate everything that other threads map.
 *
 * Each function also populates the memory. Returns 0, or -ENOMEM or -EPERM (RLIMIT_MEMLOCK), in
 * which case the part that was locked stays locked. Only memory_return() and unmapping unlock
 * memory, because a page may hold more than one object.
 */
int memory_lock(const void *base, uint64_t bytes);
/* As calloc(3), and locked: an object of the collector thread's. To be freed with free(3). */
void *memory_alloc(size_t count, size_t bytes);
/* The code and data of this program and of the libraries that the collector thread calls. */
int memory_lock_code(void);
/* The calling thread's stack. */
int memory_lock_stack(void);

/* Whether all of these calls have succeeded, of all threads. */
bool memory_is_locked(void);
