/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Closes what clients made: their connections, which may hold unread descriptors, and the
 * descriptors that they passed. close(2) of any of these may wait: a socket lingers, a FUSE or NFS
 * server does not answer, a file system is frozen, a pipe is locked. So the main thread closes none
 * of them, on no path: each is handed to a thread of the person who made it. Nothing can fail on
 * that way, since the thread and the memory are there before anything is accepted or received.
 *
 * Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/base/failure.h"
#include "daemon/base/person.h"
#include "daemon/base/worker.h"

/* Descriptors in one batch: SCM_MAX_FD of the kernel, and two that came before with the call. */
#define VACATE_RECEIVE_MAX 253u
#define VACATE_BATCH_MAX   (VACATE_RECEIVE_MAX + 2)

#define VACATE_OF_PERSON_MAX 32u  /* waiting descriptors with which a person may pass more */
#define VACATE_LOCKED_MIN    512u /* ... with which it is locked out; a quarter of the room at most \
                                   */

struct vacate;
struct vacate_person;
struct workers;

/* Descriptors that are closed together. */
struct vacate_batch {
    struct job job;
    struct vacate_person *person; /* who made them */
    unsigned int n;
    int fds[];
};

/*
 * WORKERS is borrowed. CHANGED: a person is to be locked out, or no longer: vacate_is_locked(). It
 * may be called by any other function here. -ENOMEM.
 */
int vacate_new(struct workers *workers, void (*changed)(void *userdata), void *userdata,
               struct vacate **ret_vacate);
/* Descriptors that are not closed yet stay with their threads. Takes NULL; returns NULL. */
struct vacate *vacate_free(struct vacate *vacate);

/*
 * Before accept(2): makes sure that whatever comes can be closed. Returns a batch for the
 * connection; NULL without memory or a thread: then nothing is to be accepted.
 */
struct vacate_batch *vacate_prepare(struct vacate *vacate);

/*
 * After that: FD, a connection of PERSON, is in BATCH, and PERSON has a thread until
 * vacate_leave(). Batches of the person may be closed later.
 */
struct vacate_person *vacate_join(struct vacate *vacate, uid_t person, struct vacate_batch *batch,
                                  int fd);
void vacate_leave(struct vacate_person *person);

/* An empty batch for MAX descriptors; NULL without memory. */
struct vacate_batch *vacate_batch_new(struct vacate_person *person, size_t max);

/* BATCH, which has room for it, owns FD. */
void vacate_batch_add(struct vacate_batch *batch, int fd);

/* Takes BATCH over, closes its descriptors and frees it. Takes NULL. */
void vacate_close(struct vacate_batch *batch);

/* How many descriptors wait to be closed. */
size_t vacate_count(const struct vacate_person *person);
/* Whether so many do that the person's connections are to be closed, and no more accepted. */
bool vacate_is_locked(const struct vacate_person *person);
/* Returns how many persons are; the first MAX of them are in PERSONS. */
size_t vacate_list_locked(const struct vacate *vacate, uid_t *persons, size_t max);

/*
 * Whether a message may be received, with as many descriptors as the kernel passes: there have to
 * be free slots in the table of descriptors, or the kernel would drop them here and now.
 */
bool vacate_may_receive(const struct vacate_person *person);

/* Whether the person may pass descriptors with a call. Else -EBUSY, and FAILURE. */
int vacate_check(const struct vacate_person *person, struct failure *failure);
