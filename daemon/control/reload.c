// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * One reading at a time. A request that comes meanwhile has another one made afterwards, since the
 * files may have changed after they were read; several such requests share it.
 */

#include "daemon/control/reload.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/config/config-keys.h"
#include "daemon/config/config-merge.h"
#include "daemon/config/config-read.h"
#include "daemon/control/listener.h"
#include "daemon/document/reload-document.h"
#include "daemon/manager.h"

struct reload {
    struct manager *manager;
    const struct config_source *source;
    void (*done)(void *userdata, const struct reload_result *result);
    void *userdata;
    unsigned int number;     /* of the reading that was begun last */
    bool is_wanted;          /* another one after it */
    struct reading *reading; /* NULL: none is being made */
    struct sd_event_source *start_source;
};

/* The worker's, until it is done. */
struct reading {
    struct job job;
    struct reload *reload; /* NULL: nobody waits for it any more */
    const struct config_source *source;
    const char *socket_path;
    int error; /* of the reading itself */
    struct config_reading *config;
    struct peer_groups groups;
    struct failure failure; /* of the groups, or of the socket's ACL; no name: none */
};

static struct reading *reading_free(struct reading *reading)
{
    config_reading_free(reading->config);
    free(reading);
    return NULL;
}

static void reading_run(struct job *job)
{
    struct reading *reading = job_container(job, struct reading, job);
    int r;

    reading->error = config_read(reading->source, &reading->config);
    if (reading->error < 0 || reading->config->nr_errors > 0)
        return;
    r = peer_groups_read(&reading->groups, reading->config->config.control_group,
                         &reading->failure);
    /* Here, since it may wait. Whoever may connect too early is nobody until this is applied. */
    if (r >= 0)
        (void)listener_restrict(reading->socket_path, &reading->groups, NULL, 0, &reading->failure);
}

/* --- The result. --- */

#define REFUSED "The configuration was not reloaded, the running one stays in force. "

/* Whether READING can be applied. */
static int reload_check(const struct reading *reading, struct failure *failure)
{
    _cleanup_free_ char *error = NULL;
    size_t more;

    if (reading->error < 0)
        return failure_set(failure, reading->error, ERROR_NO_MEMORY, REFUSED "%s.",
                           strerror(-reading->error));
    if (reading->failure.name)
        return failure_set(failure, -EINVAL, ERROR_CONFIG, REFUSED "%s", reading->failure.text);
    if (reading->config->nr_errors == 0)
        return 0;
    error = config_describe_first_error(reading->config);
    more = reading->config->nr_errors - 1;
    if (more == 0)
        return failure_set(failure, -EINVAL, ERROR_CONFIG, REFUSED "%s",
                           error ? error : "Out of memory.");
    return failure_set(failure, -EINVAL, ERROR_CONFIG,
                       REFUSED "%s %zu more: xentraced --check-config lists them.",
                       error ? error : "Out of memory.", more);
}

static void log_change(const struct config_change *change)
{
    switch (change->kind) {
    case CONFIG_ADDED:
        log_info("Configuration: [%s] added.", change->title);
        break;
    case CONFIG_REMOVED:
        log_info("Configuration: [%s] removed.", change->title);
        break;
    case CONFIG_CHANGED:
        if (change->is_applied)
            log_info("Configuration: [%s] %s=%s (%s).", change->title, change->key->name,
                     change->value, change->origin);
        else
            log_warning("Configuration: [%s] %s=%s (%s) needs a restart: systemctl restart "
                        "xentraced keeps the recorder's history.",
                        change->title, change->key->name, change->value, change->origin);
        break;
    }
}

static void log_reload(struct json_object *document, const struct config_changes *changes)
{
    struct json_object *warnings = NULL;

    (void)json_object_object_get_ex(document, "warnings", &warnings);
    for (size_t i = 0; warnings && i < json_object_array_length(warnings); i++)
        log_warning("%s", json_object_get_string(json_object_array_get_idx(warnings, i)));
    for (size_t i = 0; i < changes->count; i++)
        log_change(&changes->items[i]);
    log_info("The configuration was reloaded: %zu change%s.", changes->count,
             changes->count == 1 ? "" : "s");
}

static int reload_apply(struct reload *reload, const struct config_reading *config,
                        struct json_object **ret_document, struct failure *failure)
{
    _cleanup_(config_changes_done) struct config_changes changes = {0};
    struct config merged;
    int r;

    r = config_merge(&reload->manager->config, config, &merged, &changes);
    if (r >= 0)
        r = manager_reconfigure(reload->manager, &merged);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, REFUSED "%s.", strerror(-r));
    *ret_document = document_of_reload(config, &merged, &changes);
    log_reload(*ret_document, &changes);
    return 0;
}

static void reload_begin(struct reload *reload);

static void reload_report(struct reload *reload, const struct reading *reading)
{
    struct reload_result result = {.number = reload->number};
    struct failure failure = {0};

    if (reload_check(reading, &failure) < 0 ||
        reload_apply(reload, reading->config, &result.document, &failure) < 0) {
        result.failure = &failure;
        log_error("%s", failure.text);
    } else {
        result.groups = &reading->groups;
    }
    reload->done(reload->userdata, &result);
    json_object_put(result.document);
}

static void reading_done(struct job *job)
{
    struct reading *reading = job_container(job, struct reading, job);
    struct reload *reload = reading->reload;

    if (reload) {
        reload->reading = NULL;
        reload_report(reload, reading);
        if (reload->is_wanted)
            reload_begin(reload);
    }
    reading_free(reading);
}

/* --- Requests. --- */

static int reload_send(struct reload *reload)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    struct worker *worker;
    int r;

    if (!reading)
        return -ENOMEM;
    *reading = (struct reading){
        .job = {.run = reading_run, .done = reading_done},
        .reload = reload,
        .source = reload->source,
        .socket_path = reload->manager->socket_path,
    };
    r = worker_new(reload->manager->workers, "config", &worker);
    if (r < 0) {
        reading_free(reading);
        return r;
    }
    reload->reading = reading;
    worker_send(worker, &reading->job);
    worker_free(worker); /* it ends with its job */
    return 0;
}

static void reload_begin(struct reload *reload)
{
    struct reading failed = {0};

    reload->is_wanted = false;
    reload->number++;
    failed.error = reload_send(reload);
    if (failed.error < 0)
        reload_report(reload, &failed);
}

/* From the event loop, so that the request is known to its caller before it is answered. */
static int reload_handle_start(sd_event_source *source, void *userdata)
{
    struct reload *reload = userdata;

    (void)source;
    if (reload->is_wanted && !reload->reading)
        reload_begin(reload);
    return 0;
}

unsigned int reload_request(struct reload *reload)
{
    reload->is_wanted = true;
    /* Cannot fail for a source that exists, in this process. */
    (void)sd_event_source_set_enabled(reload->start_source, SD_EVENT_ONESHOT);
    return reload->number + 1;
}

int reload_new(struct manager *manager, const struct config_source *source,
               void (*done)(void *userdata, const struct reload_result *result), void *userdata,
               struct reload **ret_reload)
{
    struct reload *reload = calloc(1, sizeof(*reload));
    int r;

    if (!reload)
        return -ENOMEM;
    *reload =
        (struct reload){.manager = manager, .source = source, .done = done, .userdata = userdata};
    r = sd_event_add_defer(manager->event, &reload->start_source, reload_handle_start, reload);
    if (r >= 0)
        r = sd_event_source_set_enabled(reload->start_source, SD_EVENT_OFF);
    if (r < 0) {
        reload_free(reload);
        return r;
    }
    *ret_reload = reload;
    return 0;
}

struct reload *reload_free(struct reload *reload)
{
    if (!reload)
        return NULL;
    if (reload->reading)
        reload->reading->reload = NULL;
    sd_event_source_disable_unref(reload->start_source);
    free(reload);
    return NULL;
}
