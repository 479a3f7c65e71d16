/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The daemon as a whole: owns the hypervisor's handles, the pool, the collector and the sessions,
 * and passes the collector's messages on to the sessions. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/config.h"
#include "daemon/failure.h"
#include "daemon/host.h"
#include "daemon/session.h"

#define MANAGER_ENDED_MAX 16u /* ended sessions that `status` still shows */

struct manager {
    struct sd_event *event;
    struct config config;
    const char *socket_path;
    const char *state_dir;
    int state_dir_fd;
    uint64_t started_ns;
    struct host host;
    struct xen_host *xen;
    struct pool *pool;
    struct collector *collector;
    struct tracing *tracing;
    struct sd_event_source *collector_source;
    struct session_context context;
    struct session *sessions[MANAGER_ENDED_MAX + 1]; /* oldest first; at most one has not ended */
    size_t nr_sessions;
    bool shuts_down;

    /* Called when a session has come to run, could not, or has ended; before a failed one is freed.
     */
    void (*session_changed)(void *userdata, struct session *session);
    void *userdata;
};

/*
 * Binds Xen and starts the collector; changes nothing in Xen. CONFIG is copied, the strings are
 * borrowed. FAILURE says what is wrong if it returns a negative errno.
 */
int manager_new(struct sd_event *event, const struct config *config, const char *socket_path,
                const char *state_dir, struct manager **ret_manager, struct failure *failure);
/* Every session must have ended. */
struct manager *manager_free(struct manager *manager);

/* As session_new(); NAME "" makes one up. Refuses while another session has not ended. */
int manager_start_session(struct manager *manager, const char *name,
                          const struct session_options *options, struct session **ret_session,
                          struct failure *failure);

/* The newest session of that name; "" the one that has not ended. NULL and FAILURE if none. */
struct session *manager_find_session(struct manager *manager, const char *name,
                                     struct failure *failure);

/* Ends every session, and then the event loop. */
void manager_shut_down(struct manager *manager);
