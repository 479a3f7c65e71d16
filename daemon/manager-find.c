// SPDX-License-Identifier: GPL-2.0-or-later
/* Which session is meant: by its name, or without one if there is no doubt. */

#include <errno.h>
#include <string.h>

#include "common/protocol.h"
#include "daemon/manager.h"

struct session *manager_find_by_name(const struct manager *manager, const char *name)
{
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if (strcmp(manager->sessions[i]->name, name) == 0)
            return manager->sessions[i];
    return NULL;
}

static bool is_capture(const struct session *session)
{
    return !session->is_recorder;
}

/* One that is ending is no longer recorded into. */
static bool has_ring(const struct session *session)
{
    return session->ring && session->state <= SESSION_RUNNING;
}

static bool has_segments(const struct session *session)
{
    return session->segments;
}

/* The only one that runs, of those of which IS_MEANT holds; several: FAILURE names them. */
static struct session *find_only(const struct manager *manager,
                                 bool (*is_meant)(const struct session *session), const char *verb,
                                 struct failure *failure)
{
    struct session *found = NULL;
    char names[256] = "";
    size_t length = 0, count = 0;

    for (size_t i = 0; i < manager->nr_sessions; i++) {
        struct session *session = manager->sessions[i];

        if (session->state == SESSION_ENDED || !is_meant(session))
            continue;
        found = session;
        if (count++ < 4 && length < sizeof(names))
            length += (size_t)snprintf(names + length, sizeof(names) - length, "%s%s",
                                       count > 1 ? ", " : "", session->name);
    }
    if (count <= 1)
        return found;
    (void)failure_set(failure, -EINVAL, ERROR_INVALID,
                      "Several are being recorded: %s%s. Say which one: `xentracectl %s NAME`.",
                      names, count > 4 ? ", ..." : "", verb);
    return NULL;
}

struct session *manager_find_session(struct manager *manager, const char *name,
                                     struct failure *failure)
{
    struct session *session;

    if (!name[0]) {
        session = find_only(manager, is_capture, "stop", failure);
        if (!session && !failure->name)
            (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                              "No capture is being recorded. `xentracectl list` shows what is.");
        return session;
    }
    session = manager_find_by_name(manager, name);
    if (!session)
        (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                          "There is no session '%s'. `xentracectl list` shows those there are.",
                          name);
    return session;
}

struct session *manager_find_segmented(struct manager *manager, const char *name,
                                       struct failure *failure)
{
    struct session *session;

    if (name[0])
        return manager_find_session(manager, name, failure);
    session = find_only(manager, has_segments, "rotate", failure);
    if (!session && !failure->name)
        (void)failure_set(failure, -ENOENT, ERROR_NO_SESSION,
                          "No capture is being recorded in segments. `xentracectl start "
                          "--segment-size` starts one.");
    return session;
}

struct session *manager_find_recorder(const struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_sessions; i++)
        if (manager->sessions[i]->is_recorder && manager->sessions[i]->state == SESSION_RUNNING)
            return manager->sessions[i];
    return NULL;
}

struct session *manager_find_ring(struct manager *manager, const char *name,
                                  struct failure *failure)
{
    struct session *session;

    if (!name[0]) {
        session = manager_find_recorder(manager);
        if (!session)
            session = find_only(manager, has_ring, "snapshot --session", failure);
        if (!session && !failure->name)
            (void)failure_set(failure, -ENOENT, ERROR_NO_RING,
                              "Nothing is being recorded into memory: the flight recorder is "
                              "switched off ([flight-recorder] enabled=) or could not be started "
                              "(`journalctl -u xentraced`), and no `start --memory` runs.");
        return session;
    }
    session = manager_find_session(manager, name, failure);
    if (session && (!session->ring || session->state > SESSION_RUNNING)) {
        (void)failure_set(failure, -EINVAL, ERROR_NO_RING,
                          "'%s' does not record into memory: there is nothing to take a snapshot "
                          "of. `xentracectl list` shows what does.",
                          name);
        return NULL;
    }
    return session;
}
