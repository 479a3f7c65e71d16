// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/ask-status.h"

#include <errno.h>

static int call_status(struct client *client, uint64_t timeout_usec, struct json_object **ret_doc,
                       char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
    int r;

    r = client_make_call(client, PROTOCOL_STATUS, &call, ret_error);
    if (r < 0)
        return r;
    r = sd_bus_message_append(call, "s", "");
    if (r < 0)
        return r;
    return client_call(client, call, timeout_usec, DOC_FORMAT_STATUS, ret_doc, ret_error);
}

int ask_status(struct client **client, const char *path, uint64_t timeout_usec,
               struct json_object **ret_doc, char **ret_error)
{
    int r = *client ? 0 : client_new(path, client, ret_error);

    if (r < 0)
        return r;
    r = call_status(*client, timeout_usec, ret_doc, ret_error);
    if (r < 0 && r != -ETIMEDOUT)
        *client = client_free(*client);
    return r;
}
