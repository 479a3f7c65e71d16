/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The sidecar: a document as a file beside the capture. It is complete at any time: written when
 * the session starts, and again when it has ended. Main thread; nothing here waits.
 */

#include <stdbool.h>

#include "daemon/base/failure.h"
#include "daemon/base/worker.h"

struct json_object;

/* Where a sidecar goes. */
struct sidecar {
    int directory_fd; /* of our own, NAME.json in it; lent */
    int fd;           /* a client's, which is the sidecar's then; -1: none */
    bool is_ours;     /* NAME.json is there, and was written for this sidecar: set by its owner */
    char *path;       /* for people; NULL: there is no sidecar */
    char *name;
};

/* None, until one of the two that follow. */
void sidecar_init(struct sidecar *sidecar);
/* WORKER may be NULL if it was never adopted. */
void sidecar_done(struct sidecar *sidecar, struct worker *worker);

/* The sidecar that a client opened as FD (< 0: none), beside its OUTPUT_PATH. Duplicates FD. */
int sidecar_adopt(struct sidecar *sidecar, int fd, const char *output_path,
                  struct failure *failure);
/* NAME.json in the directory DIRECTORY_FD, which is called DIRECTORY. -ENOMEM. */
int sidecar_name(struct sidecar *sidecar, int directory_fd, const char *directory,
                 const char *name);

/*
 * Writes DOCUMENT, which is given away, on WORKER. A file in the state directory appears
 * atomically, and only a file that is_ours is replaced; any other file of that name is -EEXIST. A
 * client's file is overwritten with a single write, because its directory belongs to the client; so
 * is our own by the last one, if the disk is full (the one before took room for that).
 * DONE (NULL: nobody cares) is called from the event loop with 0 or a negative errno, the old
 * content being still there; USERDATA lives until then. IS_LAST: an answer relies on it, so its
 * directory entry is on the disk before DONE, too. -ENOMEM: nothing is under way.
 */
int sidecar_write(const struct sidecar *sidecar, struct worker *worker,
                  struct json_object *document, bool is_last,
                  void (*done)(void *userdata, int error), void *userdata);

/* Has it removed on WORKER, if it is one of our own and was written. */
void sidecar_remove(const struct sidecar *sidecar, struct worker *worker);

/* On a worker: -EEXIST if NAME.json is there. An output_check_fn. */
int sidecar_check_none(int directory_fd, const char *directory, const char *name,
                       struct failure *failure);
