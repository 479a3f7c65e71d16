// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/control/status.h"

#include <json-c/json.h>

#include "collector/collector.h"
#include "collector/pool.h"
#include "collector/xen.h"
#include "daemon/base/json-put.h"
#include "daemon/document/document.h"
#include "daemon/document/trigger-document.h"
#include "daemon/host/tracing.h"
#include "daemon/manager.h"
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
    json_put_count(object, "pool_bytes", pool_bytes(manager->pool));
    json_put_count(object, "pool_free_bytes", pool_free_bytes(manager->pool));
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
    json_put_count(object, "cpus", xen->nr_cpus);
    json_put_count(object, "buffer_pages", tracing_buffer_pages(manager->tracing));
    json_put_text(object, "tracing", states[tracing_state(manager->tracing)]);
    json_put_count(object, "event_mask", tracing_event_mask(manager->tracing));
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
    add_sessions(sessions, manager, true);
    add_sessions(sessions, manager, false);
    json_put(document, "sessions", sessions);
    for (size_t i = 0; i < manager->nr_history; i++)
        (void)json_object_array_add(snapshots, json_object_get(manager->history[i]));
    json_put(document, "snapshots", snapshots);
    json_put(document, "triggers", document_of_triggers(manager->triggers));
    return document;
}
