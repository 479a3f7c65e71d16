// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether a file is removed depends on what is known: only a daemon that said no has certainly not
 * written to it, or has nothing in it that is worth keeping. If the answer never came, the files
 * stay, and the sentence says so.
 */

#include "ctl/request.h"

#include <errno.h>

#include "ctl/str.h"

static int append_option(sd_bus_message *call, const struct args_option *option, const void *values)
{
    const void *value = (const char *)values + option->offset;

    switch (option->type) {
    case ARGS_FLAG:
    case ARGS_DESTROY:
        return sd_bus_message_append(call, "{sv}", option->key, "b", *(const bool *)value);
    case ARGS_DURATION:
    case ARGS_SIZE:
    case ARGS_SIZE_OR_0:
        return sd_bus_message_append(call, "{sv}", option->key, "t", *(const uint64_t *)value);
    case ARGS_COUNT:
        return sd_bus_message_append(call, "{sv}", option->key, "u", *(const uint32_t *)value);
    case ARGS_TEXT:
    case ARGS_NAME:
    case ARGS_SESSION:
    case ARGS_FILE:
    case ARGS_HOST:
    case ARGS_CHOICE:
    case ARGS_EVENTS:
    case ARGS_CPUS:
        return sd_bus_message_append(call, "{sv}", option->key, "s", *(char *const *)value);
    case ARGS_LIST: /* the client's own */
        break;
    }
    return -EINVAL;
}

/* Only what was given is sent: an older daemon refuses options that it does not know. */
static int append_options(sd_bus_message *call, const struct request *request)
{
    int r;

    for (size_t i = 0; request->table[i].help; i++) {
        if (!request->table[i].key || !(request->given & (UINT64_C(1) << i)))
            continue;
        r = append_option(call, &request->table[i], request->values);
        if (r < 0)
            return r;
    }
    for (const struct request_number *n = request->numbers; n && n->key; n++) {
        r = n->value ? sd_bus_message_append(call, "{sv}", n->key, "t", n->value) : 0;
        if (r < 0)
            return r;
    }
    return request->flag ? sd_bus_message_append(call, "{sv}", request->flag, "b", 1) : 0;
}

static int append_output(sd_bus_message *call, const struct output *output)
{
    int r;

    r = sd_bus_message_append(call, "{sv}", OPTION_OUTPUT, "h", output->trace.fd);
    if (r < 0)
        return r;
    if (output->trace.path) {
        r = sd_bus_message_append(call, "{sv}", OPTION_OUTPUT_PATH, "s", output->trace.path);
        if (r < 0)
            return r;
    }
    if (output->sidecar.fd < 0)
        return 0;
    return sd_bus_message_append(call, "{sv}", OPTION_SIDECAR, "h", output->sidecar.fd);
}

static int fill_call(sd_bus_message *call, const struct request *request,
                     const struct output *output)
{
    int r;

    r = sd_bus_message_append(call, "s", request->name ? request->name : "");
    if (r < 0)
        return r;
    r = sd_bus_message_open_container(call, 'a', "{sv}");
    if (r < 0)
        return r;
    r = append_options(call, request);
    if (r < 0)
        return r;
    if (output && output->trace.fd >= 0) {
        r = append_output(call, output);
        if (r < 0)
            return r;
    }
    return sd_bus_message_close_container(call);
}

static int explain_fill(int r, const struct request *request, char **ret_error)
{
    if (r == -EOPNOTSUPP) /* descriptors are negotiated only with those who may pass them */
        return str_refuse(-EREMOTEIO, ret_error,
                          "%s: only root and members of the group set by control-group= may "
                          "write to files of their own%s.",
                          request->nothing, request->no_file);
    if (r == -EINVAL) /* D-Bus texts are UTF-8 */
        return str_refuse(-EREMOTEIO, ret_error, "%s: the name or an option is not valid UTF-8.",
                          request->nothing);
    errno = -r;
    return str_refuse(-EREMOTEIO, ret_error, "%s: %m.", request->nothing);
}

/*
 * Adds the consequence to the sentence about a failure. It comes before the daemon's sentences, as
 * these may end with a command. The files stay if the outcome is not known.
 */
static int explain_failure(int r, const struct request *request, const struct output *output,
                           char **ret_error)
{
    _cleanup_free_ char *sentence = *ret_error;
    const char *file = NULL;

    *ret_error = NULL;
    if (r == -EREMOTEIO)
        return str_refuse(r, ret_error, "%s: %s", request->nothing,
                          sentence ? sentence : "out of memory.");
    if (output)
        file = output->trace.temporary ? output->trace.temporary : output->trace.path;
    return str_refuse(
        r, ret_error, "%s%s%s%s %s", sentence ? sentence : "Interrupted before xentraced answered.",
        file ? " The file is " : "", file ? file : "", file ? "." : "", request->unknown);
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

int request_make(struct client *client, const struct request *request, struct output *output,
                 struct json_object **ret_doc, char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
    _cleanup_doc_ struct json_object *doc = NULL;
    int r;

    r = client_make_call(client, request->member, &call, ret_error);
    if (r < 0)
        return r;
    r = fill_call(call, request, output);
    if (r < 0)
        return explain_fill(r, request, ret_error);
    r = client_call(client, call, request->timeout_usec, request->format, &doc, ret_error);
    if (r < 0)
        r = explain_failure(r, request, output, ret_error);
    r = settle_output(r, output, ret_error);
    if (r < 0)
        return r;
    *ret_doc = TAKE_PTR(doc);
    return 0;
}
