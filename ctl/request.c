/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a file is removed depends on what is known: only a daemon that said no has certainly not
 * written to it, or has nothing in it that is worth keeping. If the answer never came, the files
 * stay, and the sentence says so.
 */

#include "ctl/request.h"

#include <errno.h>

#include "ctl/str.h"

int request_append_text(sd_bus_message *call, const char *key, const char *text)
{
    return text ? sd_bus_message_append(call, "{sv}", key, "s", text) : 0;
}

int request_append_number(sd_bus_message *call, const char *key, uint64_t number)
{
    return number ? sd_bus_message_append(call, "{sv}", key, "t", number) : 0;
}

int request_append_count(sd_bus_message *call, const char *key, uint32_t count)
{
    return count ? sd_bus_message_append(call, "{sv}", key, "u", count) : 0;
}

int request_append_flag(sd_bus_message *call, const char *key, bool flag)
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
        r = request_append_text(call, OPTION_OUTPUT_PATH, output->trace.path);
    if (r >= 0 && output->sidecar.fd >= 0)
        r = sd_bus_message_append(call, "{sv}", OPTION_SIDECAR, "h", output->sidecar.fd);
    return r;
}

static int fill_call(sd_bus_message *call, const char *name,
                     int (*fill)(sd_bus_message *call, const void *context), const void *context,
                     const struct output *output)
{
    int r;

    r = sd_bus_message_append(call, "s", name);
    if (r >= 0)
        r = sd_bus_message_open_container(call, 'a', "{sv}");
    if (r >= 0)
        r = fill(call, context);
    if (r >= 0)
        r = append_output(call, output);
    return r < 0 ? r : sd_bus_message_close_container(call);
}

static int explain_fill(int r, const struct request_words *words, char **ret_error)
{
    if (r == -EOPNOTSUPP) /* descriptors are negotiated only with those who may pass them */
        return str_refuse(-EREMOTEIO, ret_error,
                          "%s: xentraced takes no file from this user; root and the group that "
                          "control-group= names may pass one%s.",
                          words->nothing, words->no_file);
    if (r == -EINVAL) /* D-Bus texts are UTF-8 */
        return str_refuse(-EREMOTEIO, ret_error,
                          "%s: a name or another text is not UTF-8; write it anew.",
                          words->nothing);
    errno = -r;
    return str_refuse(-EREMOTEIO, ret_error, "%s: %m.", words->nothing);
}

/*
 * Adds what the failure means to the sentence about it. In front of the daemon's sentences, which
 * may end with a command; the files stay if the outcome is not known.
 */
static int explain_failure(int r, const struct request_words *words, const struct output *output,
                           char **ret_error)
{
    _cleanup_free_ char *sentence = *ret_error;
    const char *file = NULL;

    *ret_error = NULL;
    if (r == -EREMOTEIO)
        return str_refuse(r, ret_error, "%s: %s", words->nothing,
                          sentence ? sentence : "out of memory.");
    if (output)
        file = output->trace.temporary ? output->trace.temporary : output->trace.path;
    return str_refuse(r, ret_error, "%s %s%s%s.",
                      sentence ? sentence : "Interrupted before xentraced answered.",
                      words->unknown, file ? "; its file is " : "", file ? file : "");
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

int request_make(struct client *client, const struct request_words *words, const char *name,
                 int (*fill)(sd_bus_message *call, const void *context), const void *context,
                 struct output *output, uint64_t timeout_usec, const char *format,
                 struct json_object **ret_doc, char **ret_error)
{
    _cleanup_doc_ struct json_object *doc = NULL;
    sd_bus_message *call = NULL;
    int r;

    r = client_make_call(client, words->member, &call, ret_error);
    if (r < 0)
        return r;
    r = fill_call(call, name, fill, context, output);
    if (r < 0) {
        sd_bus_message_unref(call);
        return explain_fill(r, words, ret_error);
    }
    r = client_call(client, call, timeout_usec, format, &doc, ret_error);
    sd_bus_message_unref(call);
    if (r < 0)
        r = explain_failure(r, words, output, ret_error);
    r = settle_output(r, output, ret_error);
    if (r < 0)
        return r;
    *ret_doc = doc;
    doc = NULL;
    return 0;
}
