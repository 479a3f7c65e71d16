/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Carries what a ring holds over into another one: of another size, or of today's layout where the
 * old one is of version 2 (ring-v2.h). Main thread, while neither ring is attached.
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
 * Copies the newest rounds of FROM, which was adopted or read, into TO, which is new and of as many
 * CPUs, as far as they fit: whole rounds, from one with which a file may begin. Windows are put
 * together into chunks of TO's size, and cut where they are larger. Then TO is what FROM was: it
 * continues where Xen's consumers stood, has its note, and its ledger: what was not carried over is
 * evicted. Returns 0; -EINVAL: another number of CPUs; -EBADMSG: a CPU has more records than its
 * ledger says, TO is of no use.
 */
int ring_carry(struct ring *to, const struct ring *from, struct ring_carried *ret_carried);

/* Unlocks the memory of a ring that is only read from now on, for the limit of what is locked; and
 * locks it again, if it is continued after all. */
void ring_unlock(struct ring *ring);
void ring_lock(struct ring *ring);

/* No daemon takes over what is in MEMFD any more, and its memory goes back to the kernel. Returns
 * 0, or what pwrite(2) and fallocate(2) say. */
int ring_retire(int memfd);
