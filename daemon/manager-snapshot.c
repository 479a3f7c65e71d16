// SPDX-License-Identifier: GPL-2.0-or-later
/* The snapshots that are being made, and the documents of those that were. */

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "collector/mailbox.h"
#include "common/protocol.h"
#include "daemon/document/document.h"
#include "daemon/base/log.h"
#include "daemon/manager.h"
#include "daemon/session/recorder.h"
#include "daemon/session/snapshot.h"
#include "daemon/triggers/triggers.h"

void manager_handle_pinned(struct manager *manager, const struct message *message)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++) {
        struct snapshot *snapshot = manager->snapshots[i];

        if (snapshot->session->sink == message->sink && snapshot->pin == message->value &&
            snapshot->state == SNAPSHOT_PINNING) {
            snapshot_handle_pinned(snapshot);
            return;
        }
    }
}

/* The newest documents are kept for `status`. */
static void remember_snapshot(struct manager *manager, const struct snapshot *snapshot)
{
    struct json_object *document = document_of_snapshot_summary(snapshot);

    if (manager->nr_history == MANAGER_SNAPSHOTS_MAX)
        json_object_put(manager->history[--manager->nr_history]);
    memmove(&manager->history[1], &manager->history[0],
            manager->nr_history * sizeof(manager->history[0]));
    manager->history[0] = document;
    manager->nr_history++;
}

static void forget_snapshot(struct manager *manager, const struct snapshot *snapshot)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        if (manager->snapshots[i] == snapshot)
            manager->snapshots[i] = manager->snapshots[--manager->nr_snapshots];
}

static void handle_snapshot_ended(void *userdata, struct snapshot *snapshot)
{
    struct manager *manager = userdata;
    struct session *session = snapshot->session;

    if (snapshot->failure.name) {
        log_line(LOG_WARNING, session->name, "No snapshot (%s). %s",
                 snapshot_cause_name(snapshot->cause), snapshot->failure.text);
    } else {
        session->snapshots++;
        log_line(LOG_INFO, session->name, "Snapshot %s (%s%s%s). %s", snapshot->output.path,
                 snapshot_cause_name(snapshot->cause), snapshot->label[0] ? " " : "",
                 snapshot->label, snapshot->message);
        remember_snapshot(manager, snapshot);
    }
    if (session->is_recorder)
        recorder_note(session);
    if (manager->snapshot_ended)
        manager->snapshot_ended(manager->userdata, snapshot);
    if (snapshot->trigger)
        triggers_snapshot_done(manager->triggers, snapshot->trigger,
                               snapshot->failure.name ? NULL : snapshot->output.path,
                               snapshot->failure.text);
    forget_snapshot(manager, snapshot);
    snapshot_free(snapshot);
    session_note_snapshot(session, false);
    manager_exit_if_over(manager);
}

int manager_start_snapshot(struct manager *manager, const char *session_name,
                           const struct snapshot_options *options, struct snapshot **ret_snapshot,
                           struct failure *failure)
{
    struct session *session;
    int r;

    if (manager->shuts_down)
        return failure_set(failure, -ESHUTDOWN, ERROR_SHUTTING_DOWN,
                           "xentraced is being stopped and starts nothing new.");
    session = manager_find_ring(manager, session_name, failure);
    if (!session)
        return -ENOENT;
    if (manager->nr_snapshots == MANAGER_SNAPSHOTS_MAX)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u snapshots are being written already. Wait for one of them.",
                           MANAGER_SNAPSHOTS_MAX);
    r = snapshot_new(session, options, handle_snapshot_ended, manager, ret_snapshot, failure);
    if (r < 0)
        return r;
    manager->snapshots[manager->nr_snapshots++] = *ret_snapshot;
    session_note_snapshot(session, true);
    return 0;
}

void manager_handle_trigger(void *userdata, struct trigger *trigger, const char *label,
                            uint64_t last_usec)
{
    struct manager *manager = userdata;
    const struct snapshot_options options = {
        .cause = SNAPSHOT_TRIGGER,
        .trigger = trigger,
        .label = label,
        .last_usec = last_usec,
        .reserve_bytes = manager->config.reserve_bytes,
        .output_fd = -1,
        .sidecar_fd = -1,
    };
    struct failure failure = {0};
    struct snapshot *snapshot;

    if (manager_start_snapshot(manager, RECORDER_NAME, &options, &snapshot, &failure) >= 0)
        return;
    log_line(LOG_WARNING, label, "No snapshot. %s", failure.text);
    triggers_snapshot_done(manager->triggers, trigger, NULL, failure.text);
}

void manager_free_snapshots(struct manager *manager)
{
    for (size_t i = 0; i < manager->nr_snapshots; i++)
        snapshot_free(manager->snapshots[i]);
    for (size_t i = 0; i < manager->nr_history; i++)
        json_object_put(manager->history[i]);
}
