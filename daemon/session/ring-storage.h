/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The storage of a session that records into memory: a ring. The flight recorder has nothing else;
 * a capture with --memory also has an output, to which its ring is written at its end. Main thread;
 * nothing here waits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/session/ring-writer.h"
#include "daemon/session/storage.h"

struct ring;
struct ring_job;

/* Read only, but for ring-storage.c and the recorder's. */
struct ring_storage {
    struct storage storage;
    struct ring *ring; /* NULL: not yet, or not any more */
    uint64_t memory_bytes;
    uint64_t max_age_usec;
    uint64_t adopted_seq; /* chunks up to that one are of an earlier daemon */
    uint64_t final_bytes; /* what was written to the output */
    uint32_t restored;    /* times the ring was taken over */
    uint32_t snapshots;   /* written of it */
    bool is_kept;         /* the service manager has the ring, too */

    /* ring-storage.c's own. */
    struct ring *offered;  /* session_options.ring, until it is taken */
    struct ring *made;     /* by the worker, until it is taken; and given to the worker to free */
    uint64_t shared_bytes; /* that are counted for memory-share= */
    bool is_of_user;       /* for which less of it is */
    struct ring_job *job;  /* the worker's, with the recorder's memory; NULL: none is under way */
    struct ring_write write;
    struct sd_event_source *patience_source;
    uint64_t patient_since_usec; /* CLOCK_MONOTONIC */
};

extern const struct storage_kind storage_ring;

/* As file_storage_new(), if OPTIONS ask for a ring. */
int ring_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure);

/* SESSION's, if it records into memory; else NULL. */
struct ring_storage *ring_storage_of(const struct session *session);
