/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon as a whole: owns the hypervisor's handles, the pool, the collector and the sessions,
 * and passes the collector's messages on to the sessions. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/worker.h"
#include "daemon/config/config.h"
#include "daemon/base/failure.h"
#include "daemon/host/host.h"
#include "daemon/session/continuation.h"
#include "daemon/session/recorder-stop.h"
#include "daemon/session/ring-share.h"
#include "daemon/session/session.h"

#define MANAGER_RUNNING_MAX   12u /* sessions at once, the flight recorder included */
#define MANAGER_OF_USERS_MAX  8u  /* of them may be of others than root */
#define MANAGER_OF_USER_MAX   4u  /* ... and of one of them */
#define MANAGER_ENDED_MAX     16u /* ended sessions that `status` still shows */
#define MANAGER_SNAPSHOTS_MAX 16u /* being written, and as many that were */

struct clock_history;
struct clock_watch;
struct domain_names;
struct fd_store;
struct json_object;
struct snapshot;
struct snapshot_options;
struct systemd;
struct trigger;
struct triggers;
struct user_limits;
struct vacuum;
struct workers;

struct manager {
    struct sd_event *event;
    struct config config;
    const char *socket_path;
    const char *state_dir;
    char *boot_mask_path;
    int state_dir_fd;
    int runtime_dir_fd; /* of the socket */
    uint64_t started_ns;
    struct clock_history *clock;
    struct clock_watch *clock_watch;
    struct host host;
    struct workers *workers;
    struct systemd *systemd;
    struct xen_host *xen;
    struct domain_names *names;
    struct grower *grower; /* of what pool and rings take beyond their own */
    struct pool *pool;
    struct collector *collector;
    struct tracing *tracing;
    struct triggers *triggers;
    struct user_limits *limits;
    struct vacuum *vacuum;
    struct held_files *held;
    struct sd_event_source *collector_source;
    struct sd_event_source *extend_source; /* while it shuts down */
    struct session_context context;
    struct continuation continuation;
    struct session *sessions[MANAGER_RUNNING_MAX + MANAGER_ENDED_MAX]; /* oldest first */
    size_t nr_sessions;
    struct snapshot *snapshots[MANAGER_SNAPSHOTS_MAX]; /* being made */
    size_t nr_snapshots;
    struct json_object *history[MANAGER_SNAPSHOTS_MAX]; /* documents of those that were, newest
                                                           first */
    size_t nr_history;
    bool shuts_down;
    bool asks_systemd; /* whether the recorder is to be kept */
    bool exits;
    bool has_failed;      /* the collector has died */
    bool keeps_evtchn;    /* the service manager has the event channel, too */
    bool hands_over;      /* persistent captures continue in the next daemon */
    bool has_handed_over; /* ... and what comes now is left to that */
    bool keeps_recorder;  /* it is left to the next daemon */
    struct ring_share ring_share;
    struct recorder_stop recorder_stop;
    bool stops_recorder; /* `recorder_stopped` is to be called */

    /* Called when a session runs, could not start, or has ended; before a failed one is freed. */
    void (*session_changed)(void *userdata, struct session *session);
    /* Called when the recorder has ended on request, and the service manager knows. */
    void (*recorder_stopped)(void *userdata);
    /* Called when a snapshot has been written or has failed; before it is freed. */
    void (*snapshot_ended)(void *userdata, struct snapshot *snapshot);
    /* As in the context of sessions. */
    void (*segment_finished)(void *userdata, const struct session *session, unsigned int number,
                             const struct segment *segment);
    void *userdata;
};

/*
 * Binds Xen, starts the collector and, if it is enabled, the flight recorder; INHERITED is what the
 * service manager kept of the previous daemon. CONFIG is copied, the strings are borrowed. FAILURE
 * explains what is wrong if it returns a negative errno. A recorder that cannot be started is no
 * error: the log reports it.
 */
int manager_new(struct sd_event *event, const struct config *config, const char *socket_path,
                const char *state_dir, struct fd_store *inherited, struct manager **ret_manager,
                struct failure *failure);
/*
 * Every session must have ended, but for a recorder that is kept; unless the collector has failed:
 * then what workers still use is not freed, and the process has to end.
 */
struct manager *manager_free(struct manager *manager);

/*
 * Applies CONFIG; running sessions keep their settings. Returns 0; or a negative errno, and the
 * configuration has not changed.
 */
int manager_reconfigure(struct manager *manager, const struct config *config);

/*
 * As session_new(). NAME "": a name is generated. Refuses a name that is in use, and sessions
 * beyond the limits.
 */
int manager_start_session(struct manager *manager, const char *name,
                          const struct session_options *options, struct session **ret_session,
                          struct failure *failure);

/*
 * The newest session of that name; "" the one capture that has not ended. NULL and FAILURE if there
 * is none, or several.
 */
struct session *manager_find_session(struct manager *manager, const struct requester *who,
                                     const char *name, struct failure *failure);

/* The flight recorder's session that has not ended; NULL: there is none. */
struct session *manager_find_open_recorder(const struct manager *manager);

/*
 * Starts the recorder again, as the configuration says; if it runs already, or is being started,
 * *RET_SESSION is that.
 */
int manager_start_recorder(struct manager *manager, struct session **ret_session,
                           struct failure *failure);

/*
 * Ends the recorder, and records that the next daemon must not start it. STOP describes the
 * requester. Returns 0: `recorder_stopped` follows; 1: it was stopped already; or a negative errno
 * and FAILURE.
 */
int manager_stop_recorder(struct manager *manager, const struct recorder_stop *stop,
                          struct failure *failure);

/*
 * Checks that SESSION may be ended with Stop: a negative errno and FAILURE if it is the recorder,
 * which must not be ended by mistake.
 */
int manager_check_stop(const struct session *session, struct failure *failure);

/* FAILURE is that there is no ring: explains it if somebody has stopped the recorder. */
void manager_explain_no_ring(const struct manager *manager, struct failure *failure);

/* The session of that name; "": the one that has not ended and has segments. */
struct session *manager_find_segmented(struct manager *manager, const struct requester *who,
                                       const char *name, struct failure *failure);

/* The running session of that name, which has a ring; "": the flight recorder, or the only one. */
struct session *manager_find_ring(struct manager *manager, const struct requester *who,
                                  const char *name, struct failure *failure);

/*
 * As snapshot_new(), of the ring that manager_find_ring() finds. `snapshot_ended` reports when it
 * is written.
 */
int manager_start_snapshot(struct manager *manager, const char *session_name,
                           const struct snapshot_options *options, struct snapshot **ret_snapshot,
                           struct failure *failure);

/* Ends every session, but for a recorder that the next daemon continues; then the loop. */
void manager_shut_down(struct manager *manager);
