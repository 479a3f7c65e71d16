// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whether a file is removed depends on what is known: only a daemon that said no has certainly not
 * written to it, or has nothing in it that is worth keeping. If the answer never came, the files
 * stay, and the sentence says so.
 */

#include "ctl/request.h"

#include <errno.h>

#include "ctl/str.h"

static void add_option(struct json_object *parameters, const struct args_option *option,
                       const void *values)
{
    const void *value = (const char *)values + option->offset;

    switch (option->type) {
    case ARGS_FLAG:
    case ARGS_DESTROY:
        doc_add_flag(parameters, option->key, *(const bool *)value);
        break;
    case ARGS_DURATION:
    case ARGS_SIZE:
    case ARGS_SIZE_OR_0:
        doc_add_number(parameters, option->key, *(const uint64_t *)value);
        break;
    case ARGS_COUNT:
        doc_add_number(parameters, option->key, *(const uint32_t *)value);
        break;
    case ARGS_TEXT:
    case ARGS_NAME:
    case ARGS_SESSION:
    case ARGS_FILE:
    case ARGS_HOST:
    case ARGS_CHOICE:
    case ARGS_EVENTS:
    case ARGS_CPUS:
        doc_add_text(parameters, option->key, *(char *const *)value);
        break;
    case ARGS_LIST: /* the client's own */
        break;
    }
}

/* Only what was given is sent: an older daemon refuses options that it does not know. */
static void add_options(struct json_object *parameters, const struct request *request)
{
    for (size_t i = 0; request->table[i].help; i++)
        if (request->table[i].key && request->given & (UINT64_C(1) << i))
            add_option(parameters, &request->table[i], request->values);
    for (const struct request_number *n = request->numbers; n && n->key; n++)
        if (n->value)
            doc_add_number(parameters, n->key, n->value);
    if (request->flag)
        doc_add_flag(parameters, request->flag, true);
}

/* Returns the number of descriptors in FDS. */
static size_t add_output(struct json_object *parameters, const struct output *output, int fds[2])
{
    size_t nr = 0;

    if (!output || output->trace.fd < 0)
        return 0;
    doc_add_number(parameters, FIELD_OUTPUT_FD, nr);
    fds[nr++] = output->trace.fd;
    if (output->trace.path)
        doc_add_text(parameters, FIELD_OUTPUT_PATH, output->trace.path);
    if (output->sidecar.fd < 0)
        return nr;
    doc_add_number(parameters, FIELD_SIDECAR_FD, nr);
    fds[nr++] = output->sidecar.fd;
    return nr;
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
    _cleanup_doc_ struct json_object *parameters = json_object_new_object(), *doc = NULL;
    int fds[2], r;
    const struct client_call call = {
        .method = request->method,
        .parameters = parameters,
        .fds = fds,
        .nr_fds = add_output(parameters, output, fds),
        .answer = request->answer,
        .format = request->format,
        .timeout_usec = request->timeout_usec,
        .on_progress = request->on_progress,
        .context = request->context,
    };

    if (!parameters)
        return -ENOMEM;
    if (request->name)
        doc_add_text(parameters, FIELD_NAME, request->name);
    add_options(parameters, request);
    r = client_call(client, &call, &doc, ret_error);
    if (r < 0)
        r = explain_failure(r, request, output, ret_error);
    r = settle_output(r, output, ret_error);
    if (r < 0)
        return r;
    *ret_doc = TAKE_PTR(doc);
    return 0;
}
