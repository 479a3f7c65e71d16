// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A table of parameters: name, type, and where the value goes. What the values mean is checked
 * where they are used, in session-options.c and snapshot.c.
 */

#include "daemon/control/request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include <json-c/json.h>

#include "common/protocol.h"
#include "daemon/control/connection.h"
#include "daemon/output/compression.h"

enum type {
    TYPE_TEXT,   /* const char * */
    TYPE_UINT64, /* uint64_t; so are those that follow, up to TYPE_BOOL */
    TYPE_UINT,   /* unsigned int */
    TYPE_BOOL,
    TYPE_FD,    /* int: one of those that were passed; each once */
    TYPE_ARRAY, /* of strings: struct json_object * */
};

/* One parameter, and where it goes. */
struct target {
    const char *key;
    enum type type;
    void *value;
};

/* A call's parameters, while they are read. */
struct reading {
    const struct passed *passed; /* NULL: the call takes no descriptors */
    bool is_used[CONNECTION_PASSED_MAX];
    struct failure *failure;
};

static int refuse_parameter(struct failure *failure, const char *key, const char *what)
{
    int r =
        failure_set(failure, -EINVAL, SERVICE_ERROR_PARAMETER, "The parameter '%s' %s.", key, what);

    (void)snprintf(failure->parameter, sizeof(failure->parameter), "%s", key);
    (void)utf8_trim(failure->parameter);
    return r;
}

static int read_fd(struct reading *reading, const struct target *target, json_object *value)
{
    int64_t index = json_object_get_int64(value);

    if (!reading->passed || index < 0 || index >= reading->passed->count)
        return refuse_parameter(reading->failure, target->key,
                                "is no descriptor that was sent with the call");
    if (reading->is_used[index])
        return refuse_parameter(reading->failure, target->key,
                                "is a descriptor that another parameter names, too");
    reading->is_used[index] = true;
    *(int *)target->value = reading->passed->fds[index];
    return 0;
}

static int read_number(struct reading *reading, const struct target *target, json_object *value)
{
    uint64_t max = target->type == TYPE_UINT ? UINT_MAX : INT64_MAX;

    if (json_object_get_int64(value) < 0 || json_object_get_uint64(value) > max)
        return refuse_parameter(reading->failure, target->key, "is out of range");
    if (target->type == TYPE_UINT)
        *(unsigned int *)target->value = (unsigned int)json_object_get_uint64(value);
    else
        *(uint64_t *)target->value = json_object_get_uint64(value);
    return 0;
}

static int read_array(struct reading *reading, const struct target *target, json_object *value)
{
    for (size_t i = 0; i < json_object_array_length(value); i++)
        if (!json_object_is_type(json_object_array_get_idx(value, i), json_type_string))
            return refuse_parameter(reading->failure, target->key, "has members of another type");
    *(json_object **)target->value = value;
    return 0;
}

static int read_parameter(struct reading *reading, const struct target *target, json_object *value)
{
    static const enum json_type types[] = {
        [TYPE_TEXT] = json_type_string, [TYPE_UINT64] = json_type_int,
        [TYPE_UINT] = json_type_int,    [TYPE_BOOL] = json_type_boolean,
        [TYPE_FD] = json_type_int,      [TYPE_ARRAY] = json_type_array,
    };

    if (!json_object_is_type(value, types[target->type]))
        return refuse_parameter(reading->failure, target->key, "is of another type");
    switch (target->type) {
    case TYPE_TEXT:
        *(const char **)target->value = json_object_get_string(value);
        return 0;
    case TYPE_BOOL:
        *(bool *)target->value = json_object_get_boolean(value);
        return 0;
    case TYPE_UINT64:
    case TYPE_UINT:
        return read_number(reading, target, value);
    case TYPE_FD:
        return read_fd(reading, target, value);
    case TYPE_ARRAY:
        return read_array(reading, target, value);
    }
    return -EINVAL;
}

/* *RET_NR is how many there are, in whatever order; null is none. */
static int read_parameters(json_object *parameters, const struct passed *passed,
                           const struct target *targets, size_t count, size_t *ret_nr,
                           struct failure *failure)
{
    struct reading reading = {.passed = passed, .failure = failure};
    size_t nr = 0;
    int r;

    if (parameters) {
        json_object_object_foreach(parameters, key, value)
        {
            size_t i = 0;

            while (i < count && strcmp(key, targets[i].key) != 0)
                i++;
            if (i == count)
                return refuse_parameter(failure, key, "is unknown to xentraced " PACKAGE_VERSION);
            if (!value)
                continue;
            r = read_parameter(&reading, &targets[i], value);
            if (r < 0)
                return r;
            nr++;
        }
    }
    for (size_t i = 0; passed && i < passed->count; i++)
        if (!reading.is_used[i])
            return failure_set(failure, -EINVAL, ERROR_INVALID,
                               "A descriptor was sent that no parameter of the call names. Nothing "
                               "was done.");
    *ret_nr = nr;
    return 0;
}

int request_read_text(json_object *parameters, const char *key, bool is_required,
                      const char **ret_text, struct failure *failure)
{
    const struct target targets[] = {{key, TYPE_TEXT, ret_text}};
    size_t nr;
    int r;

    *ret_text = "";
    r = read_parameters(parameters, NULL, targets, ARRAY_SIZE(targets), &nr, failure);
    return r >= 0 && is_required && nr == 0 ? refuse_parameter(failure, key, "is missing") : r;
}

int request_read_nothing(json_object *parameters, struct failure *failure)
{
    size_t nr;

    return read_parameters(parameters, NULL, NULL, 0, &nr, failure);
}

int request_read_status(json_object *parameters, struct status_request *ret_request,
                        struct failure *failure)
{
    struct status_request request = {.name = ""};
    const struct target targets[] = {
        {FIELD_NAME, TYPE_TEXT, &request.name},
        {FIELD_INTERVAL, TYPE_UINT64, &request.interval_usec},
    };
    size_t nr;
    int r = read_parameters(parameters, NULL, targets, ARRAY_SIZE(targets), &nr, failure);

    if (r >= 0)
        *ret_request = request;
    return r;
}

int request_read_remove(json_object *parameters, struct remove_request *ret_request,
                        struct failure *failure)
{
    struct remove_request request = {0};
    const struct target targets[] = {{FIELD_NAMES, TYPE_ARRAY, &request.names}};
    size_t nr;
    int r = read_parameters(parameters, NULL, targets, ARRAY_SIZE(targets), &nr, failure);

    if (r < 0)
        return r;
    if (!request.names)
        return refuse_parameter(failure, FIELD_NAMES, "is missing");
    *ret_request = request;
    return 0;
}

int request_read_start(json_object *parameters, const struct passed *passed,
                       const struct config *config, struct start_request *ret_request,
                       struct failure *failure)
{
    struct start_request request = {
        .name = "",
        .options = {.output_fd = -1,
                    .output_path = "-",
                    .sidecar_fd = -1,
                    .reserve_bytes = config->reserve_bytes},
    };
    struct session_options *options = &request.options;
    const struct target targets[] = {
        {FIELD_NAME, TYPE_TEXT, &request.name},
        {FIELD_EVENTS, TYPE_TEXT, &options->events},
        {FIELD_CPUS, TYPE_TEXT, &options->cpus},
        {FIELD_TIME, TYPE_UINT64, &options->time_usec},
        {FIELD_RESERVE, TYPE_UINT64, &options->reserve_bytes},
        {FIELD_MAX_SIZE, TYPE_UINT64, &options->max_size_bytes},
        {FIELD_BUFFER_PAGES, TYPE_UINT, &options->buffer_pages},
        {FIELD_POLL, TYPE_UINT64, &options->poll_usec},
        {FIELD_DISCARD, TYPE_BOOL, &options->discard},
        {FIELD_KEEP_ENABLED, TYPE_BOOL, &options->keep_enabled},
        {FIELD_START_DISABLED, TYPE_BOOL, &options->start_disabled},
        {FIELD_ATTACHED, TYPE_BOOL, &request.attached},
        {FIELD_MEMORY, TYPE_UINT64, &options->memory_bytes},
        {FIELD_MAX_AGE, TYPE_UINT64, &options->max_age_usec},
        {FIELD_ON_RESERVE, TYPE_TEXT, &options->on_reserve},
        {FIELD_SEGMENT_SIZE, TYPE_UINT64, &options->segment_size_bytes},
        {FIELD_SEGMENT_TIME, TYPE_UINT64, &options->segment_time_usec},
        {FIELD_KEEP_FILES, TYPE_UINT, &options->keep_files},
        {FIELD_KEEP_SIZE, TYPE_UINT64, &options->keep_size_bytes},
        {FIELD_PERSIST, TYPE_BOOL, &options->persist},
        {FIELD_COMPRESS, TYPE_TEXT, &options->compress},
        {FIELD_OUTPUT_FD, TYPE_FD, &options->output_fd},
        {FIELD_OUTPUT_PATH, TYPE_TEXT, &options->output_path},
        {FIELD_SIDECAR_FD, TYPE_FD, &options->sidecar_fd},
    };
    size_t nr;
    int r;

    r = read_parameters(parameters, passed, targets, ARRAY_SIZE(targets), &nr, failure);
    if (r < 0)
        return r;
    request.has_options = nr > (request.name[0] ? 1u : 0u);
    options->has_output = options->output_fd >= 0;
    if (request.attached && options->persist)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A capture that ends with its client cannot continue after a restart: "
                           "use either attached or persist.");
    *ret_request = request;
    return 0;
}

int request_read_snapshot(json_object *parameters, const struct passed *passed,
                          const struct config *config, struct snapshot_request *ret_request,
                          struct failure *failure)
{
    struct snapshot_request request = {
        .session = "",
        .options = {.name = "",
                    .output_fd = -1,
                    .output_path = "-",
                    .sidecar_fd = -1,
                    .reserve_bytes = disk_snapshot_reserve_bytes(config->reserve_bytes),
                    .cause = SNAPSHOT_REQUEST},
    };
    struct snapshot_options *options = &request.options;
    const struct target targets[] = {
        {FIELD_NAME, TYPE_TEXT, &options->name},
        {FIELD_INTERVAL, TYPE_UINT64, &request.interval_usec},
        {FIELD_SESSION, TYPE_TEXT, &request.session},
        {FIELD_LAST, TYPE_UINT64, &options->span.last_usec},
        {FIELD_SINCE, TYPE_UINT64, &options->span.since_ns},
        {FIELD_UNTIL, TYPE_UINT64, &options->span.until_ns},
        {FIELD_UNTIL_AGO, TYPE_UINT64, &options->span.until_ago_usec},
        {FIELD_MAX_SIZE, TYPE_UINT64, &options->max_size_bytes},
        {FIELD_LABEL, TYPE_TEXT, &options->label},
        {FIELD_COMPRESS, TYPE_TEXT, &options->compress},
        {FIELD_OUTPUT_FD, TYPE_FD, &options->output_fd},
        {FIELD_OUTPUT_PATH, TYPE_TEXT, &options->output_path},
        {FIELD_SIDECAR_FD, TYPE_FD, &options->sidecar_fd},
    };
    size_t nr;
    int r;

    r = read_parameters(parameters, passed, targets, ARRAY_SIZE(targets), &nr, failure);
    if (r < 0)
        return r;
    options->has_output = options->output_fd >= 0;
    /* Who passes an output reads what is in it, and may expect plain records. */
    if (!options->compress && !options->has_output)
        options->compress = compression_name(config->recorder.compress);
    *ret_request = request;
    return 0;
}

static struct disk_limit limit_of(uint64_t bytes)
{
    return (struct disk_limit){.kind = bytes ? DISK_LIMIT_BYTES : DISK_LIMIT_NONE, .value = bytes};
}

int request_read_clean(json_object *parameters, const struct config *config,
                       struct clean_request *ret_request, struct failure *failure)
{
    uint64_t max_use_bytes = 0, keep_free_bytes = 0, max_age_usec = 0;
    bool dry_run = false;
    const struct target targets[] = {
        {FIELD_MAX_USE, TYPE_UINT64, &max_use_bytes},
        {FIELD_KEEP_FREE, TYPE_UINT64, &keep_free_bytes},
        {FIELD_MAX_AGE, TYPE_UINT64, &max_age_usec},
        {FIELD_DRY_RUN, TYPE_BOOL, &dry_run},
    };
    size_t nr;
    int r = read_parameters(parameters, NULL, targets, ARRAY_SIZE(targets), &nr, failure);

    if (r < 0)
        return r;
    *ret_request = (struct clean_request){.limits = config->disk, .dry_run = dry_run};
    if (max_use_bytes || keep_free_bytes || max_age_usec)
        ret_request->limits = (struct disk_limits){
            .max_use = limit_of(max_use_bytes),
            .keep_free = limit_of(keep_free_bytes),
            .max_age_usec = max_age_usec,
        };
    return 0;
}
