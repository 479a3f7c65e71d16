// SPDX-License-Identifier: GPL-2.0-or-later
/* Checks the options of a user before anything is changed. */

#include <errno.h>
#include <string.h>

#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "daemon/output/compression.h"
#include "daemon/session/session-state.h"

#define DEFAULT_POLL_USEC (100 * USEC_PER_MSEC) /* as xentrace */
#define MIN_POLL_USEC     USEC_PER_MSEC
#define MAX_POLL_USEC     (3600 * USEC_PER_SEC)

static int check_settings(const struct settings *settings, struct failure *failure)
{
    if (settings->poll_usec < MIN_POLL_USEC || settings->poll_usec > MAX_POLL_USEC)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "The poll interval must be from 1 ms to 1 h.");
    if (settings->buffer_pages > UINT16_MAX)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A trace buffer has at most 65535 pages per CPU.");
    return 0;
}

static int parse_selection(struct selection *selection, const struct session_options *options,
                           struct failure *failure)
{
    const char *events = options->events ? options->events : "all";
    const char *cpus = options->cpus ? options->cpus : "all";
    _cleanup_free_ char *error = NULL;
    int r;

    selection->events_spec = strdup(events);
    selection->cpus_spec = strdup(cpus);
    if (!selection->events_spec || !selection->cpus_spec)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = event_set_parse(events, &selection->events, &error);
    if (r < 0)
        return failure_set(failure, r, ERROR_INVALID, "%s", error ? error : "Out of memory.");
    r = cpu_set_parse(cpus, selection->nr_cpus, &selection->cpus, &error);
    if (r < 0)
        return failure_set(failure, r, ERROR_INVALID, "%s", error ? error : "Out of memory.");
    return 0;
}

int session_take_options(struct session *session, const struct session_options *options,
                         struct failure *failure)
{
    int r;

    session->settings = (struct settings){
        .time_usec = options->time_usec,
        .poll_usec = options->poll_usec ? options->poll_usec : DEFAULT_POLL_USEC,
        .reserve_bytes = options->reserve_bytes,
        .max_size_bytes = options->max_size_bytes,
        .buffer_pages = options->buffer_pages,
        .discard = options->discard,
        .keep_enabled = options->keep_enabled,
        .start_disabled = options->start_disabled,
        .is_recorder = options->is_recorder,
        .is_persistent = options->persist,
        .is_configured = options->is_configured,
    };
    session->requester = options->requester;
    session->watch = options->watch;
    session->selection.nr_cpus = xen_host_info(session->context->xen)->nr_cpus;
    r = silence_init(&session->silence, session->selection.nr_cpus);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    r = check_settings(&session->settings, failure);
    if (r < 0)
        return r;
    r = compression_parse(options->compress, &session->settings.is_packed, failure);
    if (r < 0)
        return r;
    if (options->persist && !options->segment_size_bytes && !options->segment_time_usec)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--persist continues a capture in its next segment: it needs "
                           "--segment-size or --segment-time.");
    return parse_selection(&session->selection, options, failure);
}
