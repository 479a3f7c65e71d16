// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A table of options: key, D-Bus type, and where the value goes. What the values mean is checked
 * where they are used, in session-options.c and snapshot.c.
 */

#include "daemon/control/request.h"

#include <errno.h>
#include <string.h>

#include <systemd/sd-bus.h>

#include "common/protocol.h"
#include "daemon/output/compression.h"

/* One option: its D-Bus type and where it goes. */
struct option_target {
    const char *key;
    char type;
    void *value;
};

static int read_option(sd_bus_message *call, const struct option_target *targets, size_t count,
                       struct failure *failure)
{
    const char *key, *contents;
    char type;
    int r;

    r = sd_bus_message_read(call, "s", &key);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++) {
        const struct option_target *target = &targets[i];
        char signature[2] = {target->type, '\0'};

        if (strcmp(key, target->key) != 0)
            continue;
        r = sd_bus_message_peek_type(call, &type, &contents);
        if (r < 0 || strcmp(contents, signature) != 0)
            return failure_set(failure, -EINVAL, ERROR_INVALID,
                               "The option '%s' has the D-Bus type '%s', not '%s'.", key, signature,
                               r < 0 ? "?" : contents);
        return sd_bus_message_read(call, "v", signature, target->value);
    }
    return failure_set(
        failure, -EINVAL, ERROR_INVALID,
        "This xentraced (" PACKAGE_VERSION
        ") does not know the option '%s': xentracectl is newer than the daemon. To run the "
        "installed version: systemctl restart xentraced. Captures without --persist end then.",
        key);
}

static int read_options(sd_bus_message *call, const struct option_target *targets, size_t count,
                        bool *ret_any, struct failure *failure)
{
    bool any = false;
    int r;

    r = sd_bus_message_enter_container(call, 'a', "{sv}");
    if (r < 0)
        return r;
    while ((r = sd_bus_message_enter_container(call, 'e', "sv")) > 0) {
        r = read_option(call, targets, count, failure);
        if (r < 0)
            return r;
        r = sd_bus_message_exit_container(call);
        if (r < 0)
            return r;
        any = true;
    }
    if (r < 0)
        return r;
    *ret_any = any;
    return sd_bus_message_exit_container(call);
}

static int refuse_call(int error, struct failure *failure)
{
    return failure_set(failure, error, ERROR_INVALID, "The call cannot be read: %s.",
                       strerror(-error));
}

/* The arguments of Start and Snapshot: a name, and options. */
static int read_arguments(sd_bus_message *call, const char **ret_name,
                          const struct option_target *targets, size_t count, bool *ret_any_option,
                          struct failure *failure)
{
    int r;

    r = sd_bus_message_read(call, "s", ret_name);
    if (r < 0)
        return refuse_call(r, failure);
    r = read_options(call, targets, count, ret_any_option, failure);
    if (r < 0 && !failure->name)
        return refuse_call(r, failure);
    return r;
}

int request_read_start(sd_bus_message *call, const struct config *config,
                       struct start_request *ret_request, struct failure *failure)
{
    struct start_request request = {
        .options = {.output_fd = -1,
                    .output_path = "-",
                    .sidecar_fd = -1,
                    .reserve_bytes = config->reserve_bytes},
    };
    struct session_options *options = &request.options;
    const struct option_target targets[] = {
        {OPTION_EVENTS, 's', &options->events},
        {OPTION_CPUS, 's', &options->cpus},
        {OPTION_TIME, 't', &options->time_usec},
        {OPTION_RESERVE, 't', &options->reserve_bytes},
        {OPTION_MAX_SIZE, 't', &options->max_size_bytes},
        {OPTION_BUFFER_PAGES, 'u', &options->buffer_pages},
        {OPTION_POLL, 't', &options->poll_usec},
        {OPTION_DISCARD, 'b', &request.discard},
        {OPTION_KEEP_ENABLED, 'b', &request.keep_enabled},
        {OPTION_START_DISABLED, 'b', &request.start_disabled},
        {OPTION_ATTACHED, 'b', &request.attached},
        {OPTION_MEMORY, 't', &options->memory_bytes},
        {OPTION_MAX_AGE, 't', &options->max_age_usec},
        {OPTION_ON_RESERVE, 's', &options->on_reserve},
        {OPTION_SEGMENT_SIZE, 't', &options->segment_size_bytes},
        {OPTION_SEGMENT_TIME, 't', &options->segment_time_usec},
        {OPTION_KEEP_FILES, 'u', &options->keep_files},
        {OPTION_KEEP_SIZE, 't', &options->keep_size_bytes},
        {OPTION_PERSIST, 'b', &request.persist},
        {OPTION_COMPRESS, 's', &options->compress},
        {OPTION_OUTPUT, 'h', &options->output_fd},
        {OPTION_OUTPUT_PATH, 's', &options->output_path},
        {OPTION_SIDECAR, 'h', &options->sidecar_fd},
    };
    int r;

    r = read_arguments(call, &request.name, targets, ARRAY_SIZE(targets), &request.has_options,
                       failure);
    options->has_output = options->output_fd >= 0;
    options->discard = request.discard;
    options->keep_enabled = request.keep_enabled;
    options->start_disabled = request.start_disabled;
    options->persist = request.persist;
    if (request.attached && request.persist)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A capture that ends with its client cannot continue after a restart: "
                           "use either attached or persist.");
    *ret_request = request;
    return r;
}

int request_read_snapshot(sd_bus_message *call, const struct config *config,
                          struct snapshot_request *ret_request, struct failure *failure)
{
    struct snapshot_request request = {
        .session = "",
        .options = {.output_fd = -1,
                    .output_path = "-",
                    .sidecar_fd = -1,
                    .reserve_bytes = disk_snapshot_reserve_bytes(config->reserve_bytes),
                    .cause = SNAPSHOT_REQUEST},
    };
    struct snapshot_options *options = &request.options;
    const struct option_target targets[] = {
        {OPTION_SESSION, 's', &request.session},
        {OPTION_LAST, 't', &options->span.last_usec},
        {OPTION_SINCE, 't', &options->span.since_ns},
        {OPTION_UNTIL, 't', &options->span.until_ns},
        {OPTION_UNTIL_AGO, 't', &options->span.until_ago_usec},
        {OPTION_MAX_SIZE, 't', &options->max_size_bytes},
        {OPTION_LABEL, 's', &options->label},
        {OPTION_COMPRESS, 's', &options->compress},
        {OPTION_OUTPUT, 'h', &options->output_fd},
        {OPTION_OUTPUT_PATH, 's', &options->output_path},
        {OPTION_SIDECAR, 'h', &options->sidecar_fd},
    };
    bool has_options;
    int r;

    r = read_arguments(call, &options->name, targets, ARRAY_SIZE(targets), &has_options, failure);
    options->has_output = options->output_fd >= 0;
    /* Who passes an output reads what is in it, and may expect plain records. */
    if (!options->compress && !options->has_output)
        options->compress = compression_name(config->recorder.compress);
    *ret_request = request;
    return r;
}

static struct disk_limit limit_of(uint64_t bytes)
{
    return (struct disk_limit){.kind = bytes ? DISK_LIMIT_BYTES : DISK_LIMIT_NONE, .value = bytes};
}

int request_read_clean(sd_bus_message *call, const struct config *config,
                       struct clean_request *ret_request, struct failure *failure)
{
    uint64_t max_use_bytes = 0, keep_free_bytes = 0, max_age_usec = 0;
    int dry_run = 0;
    const struct option_target targets[] = {
        {OPTION_MAX_USE, 't', &max_use_bytes},
        {OPTION_KEEP_FREE, 't', &keep_free_bytes},
        {OPTION_FILE_AGE, 't', &max_age_usec},
        {OPTION_DRY_RUN, 'b', &dry_run},
    };
    bool has_options;
    int r = read_options(call, targets, ARRAY_SIZE(targets), &has_options, failure);

    if (r < 0)
        return failure->name ? r : refuse_call(r, failure);
    *ret_request = (struct clean_request){.limits = config->disk, .dry_run = dry_run};
    if (max_use_bytes || keep_free_bytes || max_age_usec)
        ret_request->limits = (struct disk_limits){
            .max_use = limit_of(max_use_bytes),
            .keep_free = limit_of(keep_free_bytes),
            .max_age_usec = max_age_usec,
        };
    return 0;
}
