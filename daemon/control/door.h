/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Locks persons out while too much of what they made waits to be closed: an accepted connection
 * would have to be closed, too. The kernel refuses them then, by the socket's ACL. Users whom the
 * group database does not name have no entry of their own: while they are locked out, the ACL names
 * the known members instead of the groups. Main thread; nothing here waits.
 */

#include <stddef.h>
#include <sys/types.h>

struct door;
struct peer_groups;
struct persons;
struct workers;

/* PATH, the socket's, is borrowed. -ENOMEM, -EAGAIN. */
int door_new(struct workers *workers, const char *path, struct door **ret_door);
/* Takes NULL; returns NULL. */
struct door *door_free(struct door *door);

/*
 * Lets all in but LOCKED, NR persons. To be called again when any of these has changed. Without
 * memory, or ACLs, nothing changes, and connections of these persons are closed when they come.
 */
void door_set(struct door *door, const struct peer_groups *groups, const struct persons *persons,
              const uid_t *locked, size_t nr);
