// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/capture.h"

#include <string.h>

#include "ctl/output.h"
#include "ctl/request.h"
#include "ctl/session.h"

int capture_start(struct client *client, const struct capture_options *options, bool attached,
                  struct json_object **ret_session, char **ret_error)
{
    bool takes_memory =
        options->memory_bytes || (options->name && strcmp(options->name, PROTOCOL_RECORDER) == 0);
    const struct request request = {
        .member = PROTOCOL_START,
        .name = options->name,
        .table = options->table,
        .values = options,
        .given = options->given,
        .flag = attached ? OPTION_ATTACHED : NULL,
        .format = DOC_FORMAT_SESSION,
        .timeout_usec = takes_memory ? CLIENT_LONG_TIMEOUT_USEC : CLIENT_TIMEOUT_USEC,
        .nothing = "Nothing was started",
        .unknown = attached ? "If the capture was started, it ends now."
                            : "To see whether the capture was started: xentracectl list",
        .no_file = "",
    };
    _cleanup_output_ struct output *output = NULL;
    _cleanup_free_ char *missing = NULL;
    int r;

    if (options->output) {
        r = output_open(options->output, options->force, request.nothing, &output, ret_error);
        if (r < 0)
            return r;
    }
    r = request_make(client, &request, output, ret_session, ret_error);
    if (r < 0)
        return r;
    missing = session_missing_cpus(*ret_session);
    if (missing)
        ctl_warning("%s", missing);
    return 0;
}
