/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A snapshot: what is in a session's ring as a file, while the session goes on. Main thread.
 *
 *   pinning    the collector drains once more and pins the ring
 *   writing    ring-writer.c writes the pinned chunks
 *   ended      the file is on the disk under its name; or it failed, and nothing is left of it
 *
 * In the state directory it is written under a hidden name, and gets its own when it is complete;
 * a file that a client opened is cut back to what is whole if it fails.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/clock.h"
#include "daemon/base/failure.h"
#include "daemon/output/output.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot-plan.h"

struct ring_writer;
struct sd_event_source;
struct snapshot;
struct trigger;

enum snapshot_cause {
    SNAPSHOT_REQUEST, /* a client */
    SNAPSHOT_SIGNAL,  /* SIGUSR2 */
    SNAPSHOT_TRIGGER,
    SNAPSHOT_END, /* the session has ended: its ring is its capture */
};

enum snapshot_state {
    SNAPSHOT_PINNING,
    SNAPSHOT_WRITING,
    SNAPSHOT_ENDED,
};

struct snapshot_options {
    const char *name;  /* "" or NULL: made up of label and time */
    const char *label; /* who asks; "" or NULL: nobody in particular */
    enum snapshot_cause cause;
    struct trigger *trigger; /* of SNAPSHOT_TRIGGER: that is told how it went */
    uint64_t last_usec;      /* the newest part; 0: everything */
    uint64_t max_size_bytes; /* likewise */
    uint64_t reserve_bytes;
    bool has_output;
    int output_fd; /* borrowed */
    const char *output_path;
    int sidecar_fd;        /* borrowed; -1: none */
    struct output *output; /* of SNAPSHOT_END: is moved away; then none of the four above counts */
};

struct snapshot {
    struct session *session;
    char name[SESSION_NAME_MAX + 1];
    char label[SESSION_NAME_MAX + 1];
    enum snapshot_cause cause;
    struct trigger *trigger;
    enum snapshot_state state;
    uint64_t last_usec;
    uint64_t max_size_bytes;

    struct output output;
    bool owns_output;   /* in the state directory */
    int sidecar_fd;     /* the client's; -1: none, or our own by name */
    char *sidecar_path; /* NULL: none */
    int pin;            /* -1: none */
    struct snapshot_plan plan;
    struct ring_writer *writer;
    struct sd_event_source *patience_source; /* NULL: its reader may take for ever */
    uint64_t patience_bytes;                 /* written when it was last looked at */

    struct clock_pair requested;
    struct clock_pair ended;
    uint64_t evicted; /* by the ring so far */
    uint64_t pin_nsec;
    struct failure failure; /* why there is none: failure.name is set */
    char message[768];      /* how it went, for people */

    /* Called last thing when it has ended; frees it or keeps it. */
    void (*done)(void *userdata, struct snapshot *snapshot);
    void *userdata;
};

/*
 * Begins a snapshot of SESSION, which has a ring and is running; or, for SNAPSHOT_END, whose sink
 * has come back. DONE is called from the event loop later. If it cannot be, nothing is left behind:
 * FAILURE says what. Any errno.
 */
int snapshot_new(struct session *session, const struct snapshot_options *options,
                 void (*done)(void *userdata, struct snapshot *snapshot), void *userdata,
                 struct snapshot **ret_snapshot, struct failure *failure);
/* Once it has ended, or when the event loop has. */
struct snapshot *snapshot_free(struct snapshot *snapshot);

/* The collector has pinned the ring. */
void snapshot_handle_pinned(struct snapshot *snapshot);

/*
 * Gives it up if its reader does not read for some seconds: for when something waits for it. A
 * snapshot into a file ends in any case.
 */
void snapshot_limit_patience(struct snapshot *snapshot);

const char *snapshot_cause_name(enum snapshot_cause cause); /* as in documents */
