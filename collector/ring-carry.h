/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Carries the records of a ring over into another ring, which has another size, or the current
 * layout if the old one has version 2 (ring-v2.h). Main thread, while neither ring is attached.
 */

#include <stdbool.h>
#include <stdint.h>

struct ring;

struct ring_carried {
    uint64_t records; /* in the new ring; 0: none, its history begins anew */
    bool is_all;      /* the old ring has no other */
    bool was_damaged; /* a chunk was; neither it nor what is older was carried over */
};

/*
 * Copies the newest rounds of FROM, which was adopted or read, into TO, which is new and has the
 * same number of CPUs. As many whole rounds are copied as fit, beginning with one with which a file
 * may begin. Windows are packed into chunks of TO's size, and split if they are larger. TO then
 * replaces FROM: it continues at the same positions of Xen's buffers, and has FROM's note and
 * ledger, in which records that were not copied count as evicted. Returns 0; -EINVAL: another
 * number of CPUs; -EBADMSG: a CPU has more records than in its ledger, and TO is unusable.
 */
int ring_carry(struct ring *to, const struct ring *from, struct ring_carried *ret_carried);

/*
 * The first unlocks the memory of a ring that is only read from now on, because locked memory is
 * limited. The second locks it again, if the ring is continued after all.
 */
void ring_unlock(struct ring *ring);
void ring_lock(struct ring *ring);

/*
 * Makes the ring in MEMFD unusable for later daemons, and returns its memory to the kernel. Returns
 * 0 or the error of pwrite(2) or fallocate(2).
 */
int ring_retire(int memfd);
