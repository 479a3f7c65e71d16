/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Memory for records: mapped, and touched, so that no page fault is left for the data path.
 *
 * It is in huge pages where the kernel has them. What is copied out of Xen's buffers goes round in
 * it, and when it comes by again its small pages are in no TLB any more: finding each of them
 * took as long as the copy (docs/BENCHMARKS.md). Memory of a memfd has huge pages only if the
 * host's administrator allows it: /sys/kernel/mm/transparent_hugepage/shmem_enabled.
 *
 * Any thread but the collector's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Maps BYTES: of MEMFD from its start, shared, or, if that is -1, of nobody else's. The first
 * TOUCHED_BYTES are touched; the others are addresses only, for memory_populate(). Returns 0, or
 * the errors of mmap(2) and madvise(2).
 */
int memory_map(int memfd, uint64_t bytes, uint64_t touched_bytes, void **ret_base);

/* Touches BYTES from BASE, a page's begin, on. Returns 0, or what madvise(2) says. */
int memory_populate(void *base, uint64_t bytes);
/* The opposite: the kernel has it back, unlocked, and it reads as zeroes. SHARED: of a memfd. */
void memory_return(void *base, uint64_t bytes, bool shared);

void memory_unmap(void *base, uint64_t bytes); /* BASE may be NULL */

/*
 * What the collector thread uses is locked: under memory pressure it would otherwise wait for a
 * page to come back from the disk, perhaps the very one that it writes to, while Xen's buffers
 * overflow. Objects and code are named one by one: mlockall(2) would lock, and populate, all that
 * other threads ever map.
 *
 * Each touches all of it, too. Returns 0; or -ENOMEM or -EPERM: RLIMIT_MEMLOCK; what was locked
 * before that stays so. Nothing is ever unlocked but by memory_return() and by unmapping: a page
 * may hold more than one object.
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
