/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Only what was asked for is sent: a daemon that is older refuses the options it does not know. */

#include "ctl/capture.h"

#include "ctl/output.h"
#include "ctl/request.h"
#include "ctl/session.h"

struct start {
    const struct capture_options *options;
    bool attached;
};

static int append_rings(sd_bus_message *call, const struct capture_options *options)
{
    int r;

    if ((r = request_append_number(call, OPTION_MEMORY, options->memory_bytes)) < 0 ||
        (r = request_append_number(call, OPTION_MAX_AGE, options->max_age_usec)) < 0 ||
        (r = request_append_number(call, OPTION_SEGMENT_SIZE, options->segment_size_bytes)) < 0 ||
        (r = request_append_number(call, OPTION_SEGMENT_TIME, options->segment_time_usec)) < 0 ||
        (r = request_append_count(call, OPTION_KEEP_FILES, options->keep_files)) < 0 ||
        (r = request_append_number(call, OPTION_KEEP_SIZE, options->keep_size_bytes)) < 0)
        return r;
    return request_append_text(call, OPTION_ON_RESERVE, options->on_reserve);
}

static int fill(sd_bus_message *call, const void *context)
{
    const struct start *start = context;
    const struct capture_options *options = start->options;
    int r = 0;

    if ((r = request_append_text(call, OPTION_EVENTS, options->events)) < 0 ||
        (r = request_append_text(call, OPTION_CPUS, options->cpus)) < 0 ||
        (r = request_append_number(call, OPTION_TIME, options->time_usec)) < 0 ||
        (r = request_append_number(call, OPTION_MAX_SIZE, options->max_size_bytes)) < 0 ||
        (r = request_append_count(call, OPTION_BUFFER_PAGES, options->buffer_pages)) < 0 ||
        (r = request_append_number(call, OPTION_POLL, options->poll_usec)) < 0 ||
        (r = request_append_flag(call, OPTION_DISCARD, options->discard)) < 0 ||
        (r = request_append_flag(call, OPTION_KEEP_ENABLED, options->keep_enabled)) < 0 ||
        (r = request_append_flag(call, OPTION_START_DISABLED, options->start_disabled)) < 0 ||
        (r = request_append_flag(call, OPTION_ATTACHED, start->attached)) < 0 ||
        (r = append_rings(call, options)) < 0)
        return r;
    if (options->has_reserve) /* 0 is one too */
        r = sd_bus_message_append(call, "{sv}", OPTION_RESERVE, "t", options->reserve_bytes);
    return r;
}

int capture_start(struct client *client, const struct capture_options *options, bool attached,
                  struct json_object **ret_session, char **ret_error)
{
    const struct request_words words = {
        .member = PROTOCOL_START,
        .nothing = "Nothing was started",
        .unknown = attached ? "If the capture had begun, it ends now"
                            : "Whether the capture runs, xentracectl list tells",
        .no_file = "",
    };
    const struct start start = {.options = options, .attached = attached};
    _cleanup_output_ struct output *output = NULL;
    _cleanup_free_ char *missing = NULL;
    int r;

    if (options->output) {
        r = output_open(options->output, options->force, words.nothing, &output, ret_error);
        if (r < 0)
            return r;
    }
    r = request_make(client, &words, options->name ? options->name : "", fill, &start, output,
                     options->memory_bytes ? CLIENT_LONG_TIMEOUT_USEC : CLIENT_TIMEOUT_USEC,
                     DOC_FORMAT_SESSION, ret_session, ret_error);
    if (r < 0)
        return r;
    missing = session_missing_cpus(*ret_session);
    if (missing)
        ctl_error("%s", missing);
    return 0;
}
