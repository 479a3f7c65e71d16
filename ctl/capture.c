/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a file is removed depends on what is known: only a daemon that said no has certainly not
 * written to it. If the answer never came, the files stay, and the sentence says so.
 */

#include "ctl/capture.h"

#include <errno.h>
#include <string.h>

#include "ctl/output.h"
#include "ctl/str.h"

static int append_text(sd_bus_message *call, const char *key, const char *text)
{
    return text ? sd_bus_message_append(call, "{sv}", key, "s", text) : 0;
}

static int append_number(sd_bus_message *call, const char *key, bool is_given, uint64_t number)
{
    return is_given ? sd_bus_message_append(call, "{sv}", key, "t", number) : 0;
}

static int append_flag(sd_bus_message *call, const char *key, bool flag)
{
    return flag ? sd_bus_message_append(call, "{sv}", key, "b", 1) : 0;
}

static int append_output(sd_bus_message *call, const struct output *output)
{
    int r;

    if (!output)
        return 0;
    r = sd_bus_message_append(call, "{sv}", OPTION_OUTPUT, "h", output->trace.fd);
    if (r >= 0)
        r = append_text(call, OPTION_OUTPUT_PATH, output->trace.path);
    if (r >= 0 && output->sidecar.fd >= 0)
        r = sd_bus_message_append(call, "{sv}", OPTION_SIDECAR, "h", output->sidecar.fd);
    return r;
}

static int append_options(sd_bus_message *call, const struct capture_options *options,
                          bool attached)
{
    int r;

    if ((r = append_text(call, OPTION_EVENTS, options->events)) < 0 ||
        (r = append_text(call, OPTION_CPUS, options->cpus)) < 0 ||
        (r = append_number(call, OPTION_TIME, options->time_usec, options->time_usec)) < 0 ||
        (r = append_number(call, OPTION_RESERVE, options->has_reserve, options->reserve_bytes)) <
            0 ||
        (r = append_number(call, OPTION_MAX_SIZE, options->max_size_bytes,
                           options->max_size_bytes)) < 0 ||
        (r = append_number(call, OPTION_POLL, options->poll_usec, options->poll_usec)) < 0 ||
        (r = append_flag(call, OPTION_DISCARD, options->discard)) < 0 ||
        (r = append_flag(call, OPTION_KEEP_ENABLED, options->keep_enabled)) < 0 ||
        (r = append_flag(call, OPTION_START_DISABLED, options->start_disabled)) < 0 ||
        (r = append_flag(call, OPTION_ATTACHED, attached)) < 0)
        return r;
    return options->buffer_pages ? sd_bus_message_append(call, "{sv}", OPTION_BUFFER_PAGES, "u",
                                                         options->buffer_pages)
                                 : 0;
}

static int make_start(struct client *client, const struct capture_options *options,
                      const struct output *output, bool attached, sd_bus_message **ret_call,
                      char **ret_error)
{
    sd_bus_message *call;
    int r;

    r = client_make_call(client, PROTOCOL_START, &call, ret_error);
    if (r < 0)
        return r;
    r = sd_bus_message_append(call, "s", options->name ? options->name : "");
    if (r >= 0)
        r = sd_bus_message_open_container(call, 'a', "{sv}");
    if (r >= 0)
        r = append_options(call, options, attached);
    if (r >= 0)
        r = append_output(call, output);
    if (r >= 0)
        r = sd_bus_message_close_container(call);
    if (r < 0) {
        sd_bus_message_unref(call);
        errno = -r;
        return r == -EOPNOTSUPP /* descriptors are negotiated only with those who may pass them */
                   ? str_refuse(-EREMOTEIO, ret_error,
                                "Nothing was started: xentraced takes no file from this user; "
                                "root and the group that control-group= names may pass one.")
                   : str_refuse(-EREMOTEIO, ret_error, "Nothing was started: %m.");
    }
    *ret_call = call;
    return 0;
}

/*
 * Adds what a failed start means to the sentence about it. In front of the daemon's sentences,
 * which may end with a command; the files stay if the outcome is not known.
 */
static int explain_failure(int r, bool attached, const struct output *output, char **ret_error)
{
    _cleanup_free_ char *sentence = *ret_error;
    const char *file = NULL;

    *ret_error = NULL;
    if (r == -EREMOTEIO)
        return str_refuse(r, ret_error, "Nothing was started: %s",
                          sentence ? sentence : "out of memory.");
    if (output)
        file = output->trace.temporary ? output->trace.temporary : output->trace.path;
    return str_refuse(r, ret_error, "%s %s%s%s.",
                      sentence ? sentence : "Interrupted before xentraced answered.",
                      attached ? "If the capture had begun, it ends now"
                               : "Whether the capture runs, xentracectl list tells",
                      file ? "; its file is " : "", file ? file : "");
}

static int settle_output(int r, struct output *output, char **ret_error)
{
    if (!output || r == -EREMOTEIO)
        return r; /* output_free() removes what was made */
    if (r >= 0)
        return output_keep(output, ret_error);
    output_abandon(output);
    return r;
}

int capture_start(struct client *client, const struct capture_options *options, bool attached,
                  struct json_object **ret_session, char **ret_error)
{
    _cleanup_output_ struct output *output = NULL;
    _cleanup_doc_ struct json_object *session = NULL;
    sd_bus_message *call = NULL;
    int r;

    if (options->output) {
        r = output_open(options->output, options->force, &output, ret_error);
        if (r < 0)
            return r;
    }
    r = make_start(client, options, output, attached, &call, ret_error);
    if (r < 0)
        return r;
    r = client_call(client, call, CLIENT_TIMEOUT_USEC, DOC_FORMAT_SESSION, &session, ret_error);
    sd_bus_message_unref(call);
    if (r < 0)
        r = explain_failure(r, attached, output, ret_error);
    r = settle_output(r, output, ret_error);
    if (r < 0)
        return r;
    *ret_session = session;
    session = NULL;
    return 0;
}

FILE *capture_talk(const struct capture_options *options)
{
    return options->output && strcmp(options->output, "-") == 0 ? stderr : stdout;
}
