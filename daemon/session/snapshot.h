/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot: the content of a session's ring as a file, while the session continues. Main thread;
 * nothing here waits. Each snapshot has a worker of its own, so that a stuck disk holds up no other
 * snapshot, and no session.
 *
 * States, in this order; snapshot.c is the only place that changes them:
 *
 *   opening    the worker opens the file
 *   pinning    the collector drains once more and pins the ring
 *   writing    the worker plans, takes the space, and writes the pinned chunks (ring-writer.h)
 *   finishing  the file is cut to its length, is on the disk, and is given its name
 *   sealing    the sidecar is written
 *   ended      for its caller: the file is complete; or it failed, and nothing is left of it
 *
 * The ring is pinned only when the file is open: a stuck disk holds no pin.
 *
 * In the state directory the file is written under a hidden name, and is given its own when it is
 * complete. A file that a client opened is cut back to whole windows if the snapshot fails.
 *
 * The reader of a pipe has 5 s from its last progress: an unread pipe would hold the pin for ever.
 *
 * If the file has not been opened within SESSION_PATIENCE_USEC, the snapshot has failed for its
 * caller: it has ended, with ERROR_WAITING. Such a snapshot is kept until its worker comes back and
 * the file that it may have made is removed: then it is released. Any other snapshot is released at
 * once when it has ended.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/base/name.h"
#include "daemon/base/requester.h"
#include "daemon/output/sidecar.h"
#include "daemon/session/budget.h"
#include "daemon/session/history.h"
#include "daemon/session/ring-writer.h"
#include "daemon/session/snapshot-plan.h"
#include "daemon/session/snapshot-span.h"

struct output;
struct sd_event_source;
struct session;
struct session_context;
struct snapshot;
struct trigger;
struct worker;

enum snapshot_cause {
    SNAPSHOT_REQUEST, /* a client */
    SNAPSHOT_SIGNAL,  /* SIGUSR2 */
    SNAPSHOT_TRIGGER,
};

enum snapshot_state {
    SNAPSHOT_OPENING,
    SNAPSHOT_PINNING,
    SNAPSHOT_WRITING,
    SNAPSHOT_FINISHING,
    SNAPSHOT_SEALING,
    SNAPSHOT_ENDED,
};

typedef void (*snapshot_fn)(void *userdata, struct snapshot *snapshot);

/* Who asks. */
struct snapshot_user {
    uid_t person;
    bool is_limited;       /* by user-limits.h: not root, and not the daemon itself */
    bool may_pass_outputs; /* files of its own */
};

/* The limits that user-limits.c sets for that user. All 0: there are none. */
struct snapshot_limits {
    struct budget_grant grant;
    const struct budget *budget; /* whose grant it is, borrowed */
    unsigned int number_max;     /* of a made-up name that is in use; 0: NAME_NUMBER_MAX */
    bool is_live;                /* a live view reads it: nothing is logged or remembered of it */
};

/* As asked for; nothing here is kept, but for the trigger. */
struct snapshot_options {
    const char *name;  /* "" or NULL: made up of label and time */
    const char *label; /* who asks; "" or NULL: nobody in particular */
    enum snapshot_cause cause;
    struct requester requester; /* if somebody asked, or fired the trigger by hand */
    struct trigger *trigger; /* of SNAPSHOT_TRIGGER: for the owner, who reports the outcome to it */
    struct snapshot_span span;
    uint64_t max_size_bytes; /* the newest part; 0: everything */
    uint64_t reserve_bytes;
    bool has_output;
    bool by_root;  /* root has passed the output */
    int output_fd; /* borrowed */
    const char *output_path;
    int sidecar_fd;       /* borrowed; -1: none */
    const char *compress; /* "zstd", "no"; NULL: "no" */
    struct snapshot_user user;
    struct snapshot_limits limits;
};

/* Read only, but for snapshot.c. */
struct snapshot {
    const struct session_context *context;
    struct session *session;         /* valid until `done` has returned */
    char name[SESSION_NAME_MAX + 1]; /* may still change while OPENING, if it was made up */
    char label[SESSION_NAME_MAX + 1];
    enum snapshot_cause cause;
    struct requester requester;
    struct trigger *trigger;
    enum snapshot_state state;
    struct snapshot_span span;
    struct snapshot_ticks ticks; /* of it, when it was asked for, and when the ring was pinned */
    uint64_t max_size_bytes;
    struct snapshot_limits limits;

    struct worker *worker;
    struct output *output; /* its figures have the path */
    bool owns_output;      /* in the state directory */
    struct sidecar sidecar;
    int pin; /* -1: none */
    struct ring_write write;
    struct snapshot_plan plan; /* once it was made; bytes: of the file, if it has ended */
    bool is_packed;            /* compressed: then the file holds */
    uint64_t plain_bytes;

    struct clock_pair requested;
    struct clock_pair ended;
    struct clock_pair pinned;
    uint64_t oldest_tsc; /* of the ring, when it was pinned */
    uint64_t evicted;    /* likewise, by the ring */
    uint64_t pin_nsec;
    uint64_t shortened_bytes;         /* of the ring's history, while this was written */
    struct history_coverage coverage; /* once it is complete */
    char shorter[HISTORY_TEXT_MAX];   /* why it covers less than was asked for; "": it does not */
    struct failure failure;           /* why it failed: then failure.name is set */
    char message[768];                /* how it went, for people */

    /* snapshot.c's own. */
    struct sd_event_source *open_source;     /* the disk has to answer by then */
    struct sd_event_source *patience_source; /* its reader has to go on; NULL: a file */
    uint64_t patient_since_usec;
    bool is_reader_late;
    uint64_t shortened_before_bytes; /* when it was pinned */
    bool is_busy;                    /* the worker has a request of it */
    bool is_freed;                   /* ... and its answer frees it */
    snapshot_fn done;
    snapshot_fn released;
    void *userdata;
};

/*
 * Begins a snapshot of SESSION, which has a ring and is running; session_note_snapshot() is the
 * caller's. Returns 0, or any errno and FAILURE, and nothing is left. Then these are called from
 * the event loop, later and once each:
 *
 *   DONE      it has ended for its caller: failure, message and plan are final. The session may go
 *             as soon as DONE has returned.
 *   RELEASED  nothing of it is under way any more; after DONE, at once or, if the disk did not
 *             answer, whenever it does. Frees it.
 */
int snapshot_new(struct session *session, const struct snapshot_options *options, snapshot_fn done,
                 snapshot_fn released, void *userdata, struct snapshot **ret_snapshot,
                 struct failure *failure);

/*
 * In RELEASED, or when the event loop has ended; neither of the two is called any more. If the
 * worker still has a request, the memory is kept until it comes back, which may be never. If it is
 * WRITING, it reads the ring: then that must not be freed. Takes NULL; returns NULL.
 */
struct snapshot *snapshot_free(struct snapshot *snapshot);

/* The collector has pinned the ring: MESSAGE_PINNED with the session's sink and snapshot->pin. */
void snapshot_handle_pinned(struct snapshot *snapshot);

/*
 * The session's sink has come back (MESSAGE_CLOSED, after storage->is_sink_closed was set), or the
 * collector has died: a snapshot that is PINNING pins the ring itself. Nothing in other states.
 */
void snapshot_handle_sink_closed(struct snapshot *snapshot);

/* Cancels it because its memory is needed: if it is WRITING, it fails with FAILURE. */
void snapshot_give_up(struct snapshot *snapshot, const struct failure *failure);

/*
 * Since when (CLOCK_MONOTONIC, in microseconds) its disk, or its reader, has not answered, if that
 * is at least SESSION_PATIENCE_USEC; 0: it does not wait. Also of one that has ended and is not
 * released.
 */
uint64_t snapshot_waiting_since_usec(const struct snapshot *snapshot);

/* Where it is written, for people; "" until that is known. */
const char *snapshot_path(const struct snapshot *snapshot);

const char *snapshot_cause_name(enum snapshot_cause cause); /* as in documents */
