// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/control/status.h"

#include <json-c/json.h>

#include "collector/collector.h"
#include "collector/grower.h"
#include "collector/memory.h"
#include "collector/pool.h"
#include "collector/xen.h"
#include "daemon/base/json-put.h"
#include "daemon/document/document.h"
#include "daemon/document/files-document.h"
#include "daemon/document/trigger-document.h"
#include "daemon/host/tracing.h"
#include "daemon/manager.h"
#include "daemon/output/vacuum.h"
#include "daemon/triggers/triggers.h"

static json *daemon_document(const struct manager *manager)
{
    json *object = json_object_new_object();
    struct collector_stats stats;

    collector_read_stats(manager->collector, &stats);
    json_put_text(object, "version", PACKAGE_VERSION);
    json_put_count(object, "pid", (uint64_t)getpid());
    json_put_count(object, "started_ns", manager->started_ns);
    json_put_text(object, "socket", manager->socket_path);
    json_put_text(object, "state_dir", manager->state_dir);
    json_put_text(object, "control_group", manager->config.control_group);
    json_put_count(object, "pool_bytes", pool_bytes(manager->pool));
    json_put_count(object, "pool_free_bytes", pool_free_bytes(manager->pool));
    json_put_bool(object, "memory_locked", memory_is_locked());
    json_put_count(object, "pool_max_bytes",
                   manager->config.pool_bytes + grower_budget_bytes(manager->grower));
    json_put_count(object, "pool_refusals", pool_refusals(manager->pool));
    json_put_count(object, "collector_wakeups", stats.wakeups);
    json_put_count(object, "rounds", stats.rounds);
    json_put_count(object, "virqs", stats.virqs);
    return object;
}

static json *xen_document(const struct manager *manager)
{
    static const char *const states[] = {
        [TRACING_UNKNOWN] = "unknown",
        [TRACING_ON] = "on",
        [TRACING_OFF] = "off",
    };
    const struct xen_host_info *xen = xen_host_info(manager->xen);
    json *object = json_object_new_object();

    json_put_text(object, "version", xen->version);
    json_put_text(object, "library", xen->library);
    json_put_count(object, "cpus", xen->nr_cpus);
    json_put_count(object, "buffer_pages", tracing_buffer_pages(manager->tracing));
    json_put_count(object, "buffer_pages_wanted", manager->config.buffer_pages);
    json_put_text(object, "tracing", states[tracing_state(manager->tracing)]);
    json_put_count(object, "event_mask", tracing_event_mask(manager->tracing));
    return object;
}

static json *stop_document(const struct recorder_stop *stop)
{
    json *object = json_object_new_object();

    if (stop->realtime_ns)
        json_put_count(object, "realtime_ns", stop->realtime_ns);
    if (stop->uid != (uid_t)-1)
        json_put_count(object, "uid", stop->uid);
    if (stop->uid == 0) /* no other may, and looking names up may take long */
        json_put_text(object, "user", "root");
    if (stop->pid > 0)
        json_put_count(object, "pid", (uint64_t)stop->pid);
    if (stop->comm[0])
        json_put_text(object, "comm", stop->comm);
    json_put_bool(object, "kept", stop->is_kept);
    return object;
}

json *status_of_recorder(const struct manager *manager)
{
    const struct session *session = manager_find_open_recorder(manager);
    const char *state = "failed";
    json *object = json_object_new_object();

    if (session)
        state = session_state_name(session, false);
    else if (!manager->config.recorder.enabled)
        state = "off";
    else if (manager->recorder_stop.is_set)
        state = "stopped";
    json_put_text(object, "state", state);
    if (manager->recorder_stop.is_set)
        json_put(object, "stopped", stop_document(&manager->recorder_stop));
    return object;
}

/* Newest first. */
static void add_sessions(json *list, const struct manager *manager, bool running)
{
    for (size_t i = manager->nr_sessions; i-- > 0;)
        if ((manager->sessions[i]->state != SESSION_ENDED) == running &&
            !manager->sessions[i]->start_failure.name)
            (void)json_object_array_add(list, document_of_session(manager->sessions[i]));
}

json *status_document(const struct manager *manager)
{
    json *document = json_object_new_object();
    json *sessions = json_object_new_array();
    json *snapshots = json_object_new_array();

    json_put_text(document, "format", "xentraced-status");
    json_put_count(document, "version", 1);
    json_put(document, "daemon", daemon_document(manager));
    json_put(document, "xen", xen_document(manager));
    json_put(document, "recorder", status_of_recorder(manager));
    add_sessions(sessions, manager, true);
    add_sessions(sessions, manager, false);
    json_put(document, "sessions", sessions);
    for (size_t i = 0; i < manager->nr_history; i++)
        (void)json_object_array_add(snapshots, json_object_get(manager->history[i]));
    json_put(document, "snapshots", snapshots);
    json_put(document, "triggers", document_of_triggers(manager->triggers));
    json_put(document, "disk", document_of_disk(vacuum_disk(manager->vacuum)));
    return document;
}
