// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A sink that is given neither a grant nor its last one just waits: its chunks stay in the pool,
 * then records in Xen's buffers, where Xen counts what it drops; or, if other sessions record them
 * too, the collector drops and counts them. So a pause needs nothing of the collector, and neither
 * does a disk that does not answer.
 */

#include "daemon/session/space.h"

#include <errno.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/pool.h"
#include "collector/sink.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/output/output.h"
#include "daemon/session/storage.h"

#define LOOK_USEC    USEC_PER_SEC
#define LOOK_SLACK   (100 * USEC_PER_MSEC)
#define RESUME_BYTES (UINT64_C(1) << 20) /* less would be used up before the next look */

/* --- Waiting. --- */

static uint64_t written_bytes(const struct storage *storage)
{
    struct sink_totals totals;

    sink_read_totals(storage->sink, &totals);
    return totals.output_bytes;
}

/* At the end there is nothing to wait for. */
static bool space_may_wait(const struct storage *storage)
{
    return storage->space.on_reserve == ON_RESERVE_PAUSE &&
           storage->session->state <= SESSION_RUNNING;
}

static void space_note_pause(struct storage *storage)
{
    const struct output *output = storage->output;
    char reserve[UNITS_TEXT_MAX];

    if (storage->space.is_paused ||
        output->figures.granted_bytes >= written_bytes(storage) + CHUNK_BYTES)
        return; /* or not yet */
    storage->space.is_paused = true;
    log_event(LOG_WARNING,
              &(struct log_about){.id = LOG_ID_RESERVE,
                                  .session = storage->session->name,
                                  .file = output->figures.path},
              "Paused: the disk of %s has reached the reserve of %s. Records are kept in memory; "
              "when it is full, they are lost or dropped, and counted. Free some space, and "
              "recording to the disk continues.",
              output->figures.path, size_format(reserve, output->figures.reserve_bytes));
}

void space_stop_waiting(struct storage *storage)
{
    storage->space.source = sd_event_source_disable_unref(storage->space.source);
    storage->space.is_paused = false;
}

void space_reset(struct storage *storage)
{
    space_stop_waiting(storage);
    storage->space.is_asked = false;
    storage->space.is_asked_again = false;
    if (storage->output)
        output_forget(storage->output, OUTPUT_EXTEND);
}

static void space_ask(struct storage *storage, bool waits, uint64_t min_headroom_bytes);

static int space_handle_look(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct storage *storage = userdata;

    (void)usec;
    space_note_pause(storage);
    (void)sd_event_source_set_time_relative(source, LOOK_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    if (!storage->space.is_asked)
        space_ask(storage, true, RESUME_BYTES); /* may end the looking */
    return 0;
}

/* Returns false if it cannot wait. */
static bool space_wait(struct storage *storage)
{
    struct space *space = &storage->space;

    if (!space->source && sd_event_add_time_relative(storage->session->context->event,
                                                     &space->source, CLOCK_MONOTONIC, LOOK_USEC,
                                                     LOOK_SLACK, space_handle_look, storage) < 0)
        return false;
    space_note_pause(storage);
    return true;
}

/* --- Extending. --- */

static void space_grant(struct storage *storage)
{
    const struct output_figures *figures = &storage->output->figures;
    struct space *space = &storage->space;
    bool is_asked_again = space->is_asked_again;

    if (space->is_paused && storage->session->state == SESSION_RUNNING)
        log_event(LOG_NOTICE,
                  &(struct log_about){.id = LOG_ID_SPACE_AGAIN,
                                      .session = storage->session->name,
                                      .file = figures->path},
                  "There is space again: recording to the disk continues.");
    space_stop_waiting(storage);
    collector_send(storage->session->context->collector, MESSAGE_GRANT, storage->sink,
                   figures->is_final, (int64_t)figures->granted_bytes);
    space->is_asked_again = false;
    if (is_asked_again && !figures->is_final)
        space_extend(storage);
}

/* There is more, or the disk has none and nothing can be deleted for it. */
static void space_conclude(struct storage *storage)
{
    const struct output_figures *figures = &storage->output->figures;

    if (!figures->ran_out || figures->is_final) {
        space_grant(storage);
        return;
    }
    if (space_may_wait(storage) && space_wait(storage))
        return;
    space_ask(storage, false, 0);
}

static void space_handle_deleted(struct storage *storage, bool has_deleted)
{
    storage->space.is_asked = false;
    if (has_deleted)
        space_ask(storage, true, 0);
    else
        space_conclude(storage);
}

static void space_handle_extended(void *userdata, int error, const struct failure *failure)
{
    struct storage *storage = userdata;
    struct space *space = &storage->space;

    (void)error, (void)failure; /* the figures say it all */
    space->is_asked = false;
    if (storage->session->is_aborted || storage->is_sink_closed)
        return;
    if (storage->output->figures.ran_out && !storage->output->figures.is_final &&
        space->on_reserve == ON_RESERVE_ROTATE) {
        space->is_asked = true;
        storage->kind->make_room(storage, 0, true, space_handle_deleted);
        return;
    }
    space_conclude(storage);
}

static void space_ask(struct storage *storage, bool waits, uint64_t min_headroom_bytes)
{
    storage->space.is_asked = true;
    output_extend(storage->output, written_bytes(storage), waits, min_headroom_bytes,
                  space_handle_extended);
    session_expect_answer(storage->session);
}

static void space_handle_room(struct storage *storage, bool has_deleted)
{
    (void)has_deleted; /* either way there is as much as there can be */
    space_ask(storage, storage->space.on_reserve == ON_RESERVE_ROTATE || space_may_wait(storage),
              0);
}

void space_extend(struct storage *storage)
{
    struct space *space = &storage->space;

    if (space->is_asked) {
        space->is_asked_again = true;
        return;
    }
    space->is_asked = true;
    if (storage->kind->make_room)
        storage->kind->make_room(storage, storage->output->figures.next_step_bytes, false,
                                 space_handle_room);
    else
        space_handle_room(storage, false);
}
