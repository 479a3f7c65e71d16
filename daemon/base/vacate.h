/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Closes descriptors that users passed. close(2) of a file may flush it, and would block if a FUSE or
 * NFS server does not answer. So it is done on a worker, one for each user. Main thread; nothing
 * here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/base/failure.h"
#include "daemon/base/person.h"

#define VACATE_OF_USER_MAX  32u  /* descriptors of a user that wait to be closed */
#define VACATE_OF_USERS_MAX 128u /* ... and of all users but root together */
#define VACATE_OF_ROOT_MAX  128u /* ... and of root, whose scripts may have faults, too */

struct vacate;
struct workers;

/* WORKERS is borrowed. -ENOMEM. */
int vacate_new(struct workers *workers, struct vacate **ret_vacate);
/* Descriptors that are not closed yet stay with their workers. Takes NULL; returns NULL. */
struct vacate *vacate_free(struct vacate *vacate);

/*
 * Takes over the N descriptors FDS, which PERSON has passed, and has them closed; those < 0 are
 * passed over. Pipes are closed at once, since their readers wait for that. Without memory or a
 * thread, all are.
 */
void vacate_close(struct vacate *vacate, uid_t person, const int *fds, size_t n);

/*
 * Takes over FD, a stream socket that is connected to a process of PERSON, and has it closed:
 * at once if nothing unread is in it, or vacate_is_full(). What is unread may come with
 * descriptors, of which the kernel makes no flush: they rarely wait.
 */
void vacate_close_connection(struct vacate *vacate, uid_t person, int fd);

/* How many descriptors of PERSON wait to be closed. */
size_t vacate_count(const struct vacate *vacate, uid_t person);

/*
 * Whether so many of PERSON wait, twice the limits, that no more are to be received, not even to
 * refuse them.
 */
bool vacate_is_full(const struct vacate *vacate, uid_t person);

/* Whether PERSON may pass more of them. Else -EBUSY, and FAILURE. */
int vacate_check(const struct vacate *vacate, uid_t person, struct failure *failure);
