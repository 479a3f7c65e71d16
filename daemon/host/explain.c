// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The same errno means different things at different steps, so each step has its own table; see
 * Xen's do_sysctl() and tb_control(), and the privcmd and evtchn drivers of Linux, for what each
 * can say.
 */

#include "daemon/host/explain.h"

#include <errno.h>
#include <string.h>

#include "common/protocol.h"
#include "common/tracer.h"
#include "common/util.h"

struct explanation {
    enum xen_step step;
    int error;
    const char *text;
};

static const char no_xen[] = "This is not a Xen host: /dev/xen/privcmd does not exist. Boot the "
                             "machine under Xen, or load the module xen-privcmd.";
static const char not_allowed[] =
    "No access to /dev/xen/privcmd: run xentraced as root, or give its user the Xen devices.";
static const char no_evtchn[] =
    "/dev/xen/evtchn does not exist: load the module xen-evtchn and try again.";
static const char evtchn_not_allowed[] =
    "No access to /dev/xen/evtchn: run xentraced as root, or give its user the Xen devices.";
static const char not_dom0[] =
    "This is not the control domain: only dom0 may trace its hypervisor. Run xentraced there.";
static const char version_or_flask[] =
    "Xen denies access: the Xen libraries do not match the hypervisor's version (reboot into the "
    "installed Xen, or install matching libraries), or a Flask policy forbids tracing (see xl "
    "dmesg).";
static const char no_trace_buffers[] =
    "This hypervisor was built without trace buffers (CONFIG_TRACEBUFFER): nothing can be traced. "
    "Boot a Xen with trace buffers.";
static const char no_memory[] =
    "Xen has no memory for trace buffers of that size: free some (xl destroy, xl mem-set) or ask "
    "for fewer with --buffer-pages. Nothing was changed.";

static const struct explanation explanations[] = {
    {XEN_STEP_OPEN, -ENOENT, no_xen},
    {XEN_STEP_OPEN, -ENODEV, no_xen},
    {XEN_STEP_OPEN, -ENXIO, no_xen},
    {XEN_STEP_OPEN, -EACCES, not_allowed},
    {XEN_STEP_OPEN, -EPERM, not_allowed},
    {XEN_STEP_OPEN_EVTCHN, -ENOENT, no_evtchn},
    {XEN_STEP_OPEN_EVTCHN, -ENODEV, no_evtchn},
    {XEN_STEP_OPEN_EVTCHN, -ENXIO, no_evtchn},
    {XEN_STEP_OPEN_EVTCHN, -EACCES, evtchn_not_allowed},
    {XEN_STEP_OPEN_EVTCHN, -EPERM, evtchn_not_allowed},
    {XEN_STEP_HOST_INFO, -EPERM, not_dom0},
    {XEN_STEP_HOST_INFO, -EACCES, version_or_flask},
    {XEN_STEP_TRACE_INFO, -EPERM, not_dom0},
    {XEN_STEP_TRACE_INFO, -EACCES, version_or_flask},
    {XEN_STEP_TRACE_INFO, -ENOSYS, no_trace_buffers},
    {XEN_STEP_TRACE_INFO, -EOPNOTSUPP, no_trace_buffers},
    {XEN_STEP_BUFFER_SIZE, -ENOMEM, no_memory},
    {XEN_STEP_BUFFER_SIZE, -EACCES, version_or_flask},
    {XEN_STEP_CPU_MASK, -EACCES, version_or_flask},
    {XEN_STEP_EVENT_MASK, -EACCES, version_or_flask},
    {XEN_STEP_ENABLE, -EACCES, version_or_flask},
    {XEN_STEP_DISABLE, -EACCES, version_or_flask},
};

static const char *step_name(enum xen_step step)
{
    switch (step) {
    case XEN_STEP_OPEN:
        return "open its control interface";
    case XEN_STEP_OPEN_EVTCHN:
        return "open its event channels";
    case XEN_STEP_HOST_INFO:
        return "report its host information";
    case XEN_STEP_TRACE_INFO:
        return "report its trace buffers";
    case XEN_STEP_BIND_VIRQ:
        return "bind VIRQ_TBUF";
    case XEN_STEP_ADOPT_VIRQ:
        return "hand over VIRQ_TBUF from the previous daemon";
    case XEN_STEP_BUFFER_SIZE:
        return "allocate trace buffers";
    case XEN_STEP_MAP:
        return "map its trace buffers";
    case XEN_STEP_CPU_MASK:
        return "set the CPU mask";
    case XEN_STEP_EVENT_MASK:
        return "set the event mask";
    case XEN_STEP_ENABLE:
        return "enable tracing";
    case XEN_STEP_DISABLE:
        return "disable tracing";
    }
    return "answer";
}

static int explain_virq(struct failure *failure, int error)
{
    char who[TRACER_TEXT_MAX];

    if (error == -EEXIST && tracer_find(false, who))
        return failure_set(failure, error, ERROR_XEN,
                           "%s is already tracing this host (it holds VIRQ_TBUF), and Xen allows "
                           "one tracer at a time. Nothing was changed; end it first.",
                           who);
    if (error == -EEXIST || error == -EBUSY)
        return failure_set(failure, error, ERROR_XEN,
                           "Another %s is already tracing this host (VIRQ_TBUF is taken), and Xen "
                           "allows one tracer at a time. Nothing was changed; end it first.",
                           error == -EBUSY ? "domain" : "program");
    return failure_set(failure, error, ERROR_XEN, "Xen did not bind VIRQ_TBUF: %s.",
                       strerror(-error));
}

/* Where no daemon can ever do its work, as opposed to what somebody can put right. */
static const char *error_name_of(const char *text)
{
    return text == no_xen || text == not_dom0 || text == no_trace_buffers ? ERROR_NO_CONTROL_DOMAIN
                                                                          : ERROR_XEN;
}

int explain_xen(struct failure *failure, enum xen_step step, int error)
{
    if (step == XEN_STEP_BIND_VIRQ)
        return explain_virq(failure, error);
    for (size_t i = 0; i < ARRAY_SIZE(explanations); i++)
        if (explanations[i].step == step && explanations[i].error == error)
            return failure_set(failure, error, error_name_of(explanations[i].text), "%s",
                               explanations[i].text);
    return failure_set(failure, error, ERROR_XEN, "Xen did not %s: %s; xl dmesg may show more.",
                       step_name(step), strerror(-error));
}

const char *explain_write(int error)
{
    switch (error) {
    case -ENOSPC:
        return "the disk is full";
    case -EDQUOT:
        return "the disk quota is used up";
    case -EFBIG:
        return "the file system does not support larger files";
    case -EPIPE:
        return "the reader has closed the pipe";
    case -EIO:
        return "the disk reports an I/O error (see dmesg)";
    case -EROFS:
        return "the file system is read-only";
    case -ECANCELED:
        return "the reader stopped reading";
    default:
        return strerror(-error);
    }
}
