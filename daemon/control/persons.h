/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Which person (daemon/base/person.h) a UID is: a known member of a group with access, or one of
 * the others. A known member is a UID whose user the group database puts into the view or the
 * control group, as its primary group or as a supplementary one.
 *
 * The database is asked on a worker, since NSS may hang; persons_find() never waits. Members of the
 * groups are looked up at the start and at each reload, any other UID when it first appears (NSS
 * may not enumerate the users of a directory). Until the answer is there, a UID is one of the
 * others; then `changed` is called. Known members are never forgotten for lack of room. That a UID
 * is not a member is remembered for a minute.
 *
 * Main thread.
 */

#include <sys/types.h>

#include "daemon/base/person.h"

struct peer_groups;
struct persons;
struct workers;

/*
 * WORKERS is borrowed, GROUPS is copied. CHANGED: UIDs may be other persons than before, and what
 * is kept of them (struct peer) is to be looked up again. -ENOMEM, -EAGAIN.
 */
int persons_new(struct workers *workers, const struct peer_groups *groups,
                void (*changed)(void *userdata), void *userdata, struct persons **ret_persons);
/* A job that hangs is left alone. Takes NULL; returns NULL. */
struct persons *persons_free(struct persons *persons);

/* The configuration was read again: looks all members up again, in GROUPS. */
void persons_set_groups(struct persons *persons, const struct peer_groups *groups);

/* The person that UID is, as far as is known now. Has an unknown UID looked up. */
uid_t persons_find(struct persons *persons, uid_t uid);

/* Returns the number of known members; *RET_UIDS are theirs, in ascending order, until a change. */
size_t persons_list(const struct persons *persons, const uid_t **ret_uids);
