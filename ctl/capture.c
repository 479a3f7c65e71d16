// SPDX-License-Identifier: GPL-2.0-or-later

#include "ctl/capture.h"

#include <string.h>

#include "ctl/request.h"
#include "ctl/session.h"

static bool is_given(const struct capture_options *options, const char *key)
{
    for (size_t i = 0; options->table[i].help; i++)
        if (options->table[i].key && strcmp(options->table[i].key, key) == 0)
            return options->given >> i & 1;
    return false;
}

int capture_start(struct client *client, const struct capture_options *options,
                  struct target *ret_target, struct json_object **ret_session, char **ret_error)
{
    bool attached = ret_target;
    bool takes_memory =
        options->memory_bytes || (options->name && strcmp(options->name, PROTOCOL_RECORDER) == 0);
    const struct request request = {
        .method = PROTOCOL_START,
        .name = options->name,
        .table = options->table,
        .values = options,
        .given = options->given,
        .flag = attached ? FIELD_ATTACHED : NULL,
        .answer = REPLY_SESSION,
        .format = DOC_FORMAT_SESSION,
        .timeout_usec = takes_memory ? CLIENT_LONG_TIMEOUT_USEC : CLIENT_TIMEOUT_USEC,
        .nothing = "Nothing was started",
        .unknown = attached ? "If the capture was started, it ends now."
                            : "To see whether the capture was started: xentracectl list",
    };
    const struct output_options how = {
        .typed = options->output,
        .nothing = request.nothing,
        .force = options->force,
        .for_daemon = true,
        .may_copy = attached,
        .reserve_bytes =
            is_given(options, FIELD_RESERVE) ? options->reserve_bytes : OUTPUT_RESERVE_AUTO,
        .is_packed = options->compress && strcmp(options->compress, "zstd") == 0,
    };
    _cleanup_target_ struct target target = {};
    _cleanup_free_ char *missing = NULL;
    int r;

    r = target_open(&target, &how, options->bundle, ret_error);
    if (r < 0)
        return r;
    r = request_make(client, &request, target.output, ret_session, ret_error);
    if (r < 0)
        return r;
    missing = session_missing_cpus(*ret_session);
    if (missing)
        ctl_warning("%s", missing);
    if (target.output) /* a sidecar is complete at any time */
        r = output_describe(target.output, *ret_session, ret_error);
    if (ret_target) {
        *ret_target = target;
        target = (struct target){};
    }
    return r;
}
