// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sink that gets neither a grant nor its last one just waits: its chunks stay in the pool, then
 * records in Xen's buffers, where Xen counts what it drops; or, if others go on, they are dropped
 * and told by us. So a pause needs nothing of the collector.
 */

#include "daemon/session/session-space.h"

#include <errno.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"

#define LOOK_USEC    USEC_PER_SEC
#define LOOK_SLACK   (100 * USEC_PER_MSEC)
#define RESUME_BYTES (UINT64_C(1) << 20) /* less would be used up before the next look */

static const char *const names[] = {
    [ON_RESERVE_STOP] = "stop",
    [ON_RESERVE_ROTATE] = "rotate",
    [ON_RESERVE_PAUSE] = "pause",
};

int on_reserve_parse(const char *text, enum on_reserve *ret_on_reserve)
{
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_on_reserve = (enum on_reserve)i;
            return 0;
        }
    }
    return -EINVAL;
}

const char *on_reserve_name(enum on_reserve on_reserve)
{
    return names[on_reserve];
}

/* --- Waiting. --- */

static uint64_t written_bytes(const struct session *session)
{
    struct sink_totals totals;

    sink_read_totals(session->sink, &totals);
    return totals.output_bytes;
}

static void note_pause(struct session *session)
{
    char reserve[UNITS_TEXT_MAX];

    if (session->space.is_paused ||
        session->output.granted_bytes >= written_bytes(session) + CHUNK_BYTES)
        return; /* or not yet */
    session->space.is_paused = true;
    log_line(LOG_WARNING, session->name,
             "Paused: the disk of %s has no more than the %s that are to stay free. Records wait "
             "in memory, and what does not fit there is counted as lost or dropped. Free some "
             "space: it goes on by itself.",
             session->output.path, size_format(reserve, session->output.reserve_bytes));
}

void space_stop_waiting(struct session *session)
{
    session->space.source = sd_event_source_disable_unref(session->space.source);
    session->space.is_paused = false;
}

static int handle_look(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct session *session = userdata;

    (void)usec;
    note_pause(session);
    (void)sd_event_source_set_time_relative(source, LOOK_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    if (output_headroom_bytes(&session->output, written_bytes(session)) >= RESUME_BYTES)
        space_extend(session); /* may end the looking */
    return 0;
}

/* Returns false if it cannot wait. */
static bool wait_for_space(struct session *session)
{
    if (!session->space.source &&
        sd_event_add_time_relative(session->context->event, &session->space.source, CLOCK_MONOTONIC,
                                   LOOK_USEC, LOOK_SLACK, handle_look, session) < 0)
        return false;
    note_pause(session);
    return true;
}

/* --- Extending. --- */

/* Gets more, or deletes what may be deleted for it, or waits, or gets no more for good. */
static void extend(struct session *session)
{
    enum on_reserve on_reserve = session->space.on_reserve;
    struct output *output = &session->output;
    uint64_t written = written_bytes(session);

    /* At the end there is nothing to wait for. */
    output->waits = on_reserve == ON_RESERVE_ROTATE ||
                    (on_reserve == ON_RESERVE_PAUSE && session->state <= SESSION_RUNNING);
    segments_make_room(session, output_step_bytes(output));
    output_extend(output, written);
    while (output->ran_out && on_reserve == ON_RESERVE_ROTATE && segments_delete_oldest(session))
        output_extend(output, written);
    if (!output->ran_out || !output->waits)
        return;
    if (on_reserve == ON_RESERVE_PAUSE && wait_for_space(session))
        return;
    output->waits = false;
    output_extend(output, written);
}

void space_extend(struct session *session)
{
    const struct output *output = &session->output;

    extend(session);
    if (output->ran_out && !output->is_final)
        return;
    if (session->space.is_paused && session->state == SESSION_RUNNING)
        log_line(LOG_NOTICE, session->name, "There is space again: it goes on.");
    space_stop_waiting(session);
    collector_send(session->context->collector, MESSAGE_GRANT, session->sink, output->is_final,
                   (int64_t)output->granted_bytes);
}
