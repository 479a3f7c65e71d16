// SPDX-License-Identifier: GPL-2.0-or-later
/* The names are part of the protocol: docs/control-protocol.md. */

#include "daemon/session/end-reason.h"

#include <errno.h>

static const struct {
    const char *name;
    bool ok;
    const char *sentence;
} end_reasons[] = {
    [END_NONE] = {"", true, ""},
    [END_STOP] = {"stop", true, "Stopped on request."},
    [END_TIME] = {"time", true, "The requested time is over."},
    [END_MAX_SIZE] = {"max-size", true, "The file has reached the requested size."},
    [END_RESERVE] =
        {"reserve", false,
         "The disk has reached the reserve. The capture ended there, and its file is complete."},
    [END_DISK_FULL] = {"disk-full", false,
                       "The disk is full. The capture ended there, and its file is complete."},
    [END_OUTPUT_ERROR] = {"output-error", false, "The output could not be written."},
    [END_OUTPUT_CLOSED] = {"output-closed", false, "The reader closed the output."},
    [END_CLIENT_GONE] = {"client-gone", true, "The client disconnected."},
    [END_DAEMON_EXIT] = {"daemon-exit", false, "xentraced was stopped."},
    [END_XEN_ERROR] = {"xen-error", false, "A request to Xen failed."},
    [END_ABORT] = {"abort", false, "Aborted on request."},
};

const char *end_reason_name(enum end_reason reason)
{
    return end_reasons[reason].name;
}

bool end_reason_is_ok(enum end_reason reason)
{
    return end_reasons[reason].ok;
}

const char *end_reason_sentence(enum end_reason reason)
{
    return end_reasons[reason].sentence;
}

enum end_reason end_reason_of_write(int error)
{
    switch (error) {
    case -ENOSPC:
    case -EDQUOT:
        return END_DISK_FULL;
    case -EPIPE:
        return END_OUTPUT_CLOSED;
    default:
        return END_OUTPUT_ERROR;
    }
}
