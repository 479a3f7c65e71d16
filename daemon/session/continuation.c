// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A capture that is continued needs its next segment before it can take records
 * (segments-resume.c). Until then they are left in Xen's buffers, also by the flight recorder: if
 * it took them, the capture would have to drop them. That costs nobody a record as long as the
 * buffers have room.
 */

#include "daemon/session/continuation.h"

#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "common/units.h"
#include "daemon/output/compression.h"
#include "daemon/session/persist.h"
#include "daemon/session/segments.h"

#define HOLD_USEC (500 * USEC_PER_MSEC)

/* --- Which. --- */

struct starting {
    int runtime_dir_fd;
    const struct capture_configs *configs;
    void (*start)(void *userdata, const char *name, const struct session_options *options);
    void *userdata;
    bool has_state;
};

static const struct capture_config *find_config(const struct capture_configs *configs,
                                                const char *name)
{
    for (size_t i = 0; i < configs->count; i++)
        if (strcmp(configs->captures[i].name, name) == 0)
            return &configs->captures[i];
    return NULL;
}

/* One of the configuration has the options that it says now. */
static void start_by_hand(void *userdata, const struct persist_state *state)
{
    struct starting *starting = userdata;
    const struct session_options options = persist_options(state);
    const struct capture_config *config = find_config(starting->configs, state->name);

    starting->has_state = true;
    if (config && config->enabled)
        return;
    if (state->is_configured)
        persist_remove(starting->runtime_dir_fd, state->name); /* it is configured no more */
    else
        starting->start(starting->userdata, state->name, &options);
}

static void start_configured(const struct starting *starting, const struct capture_config *config)
{
    struct persist_state *state = persist_read(starting->runtime_dir_fd, config->name);
    const struct session_options options = {
        .events = config->events,
        .cpus = config->cpus,
        .segment_size_bytes = config->segment_size_bytes,
        .segment_time_usec = config->segment_time_usec,
        .keep_files = config->keep_files,
        .keep_size_bytes = config->keep_size_bytes,
        .reserve_bytes = config->reserve_bytes,
        .on_reserve = config->on_reserve,
        .compress = compression_name(config->compress),
        .output_fd = -1,
        .sidecar_fd = -1,
        .output_path = "-",
        .persist = true,
        .is_configured = true,
        .resume = state,
        .since = state ? &state->started : NULL,
    };

    starting->start(starting->userdata, config->name, &options);
    persist_free(state);
}

bool continuation_start_captures(int runtime_dir_fd, const struct capture_configs *configs,
                                 void (*start)(void *userdata, const char *name,
                                               const struct session_options *options),
                                 void *userdata)
{
    struct starting starting = {
        .runtime_dir_fd = runtime_dir_fd,
        .configs = configs,
        .start = start,
        .userdata = userdata,
    };

    persist_read_all(runtime_dir_fd, start_by_hand, &starting);
    for (size_t i = 0; i < configs->count; i++)
        if (configs->captures[i].enabled)
            start_configured(&starting, &configs->captures[i]);
    return starting.has_state;
}

/* --- When. --- */

static bool any_holds(struct session *const *sessions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (sessions[i]->state <= SESSION_RUNNING && storage_is_segmented(sessions[i]->storage) &&
            segments_of(sessions[i]->storage)->is_holding)
            return true;
    return false;
}

static void send_hold(const struct continuation *continuation, bool holds, bool softly)
{
    collector_send(continuation->collector, MESSAGE_HOLD, NULL, holds, softly);
}

static void continuation_end(struct continuation *continuation)
{
    continuation->source = sd_event_source_disable_unref(continuation->source);
    send_hold(continuation, false, false);
}

static int continuation_handle_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source, (void)usec;
    continuation_end(userdata);
    return 0;
}

void continuation_begin(struct continuation *continuation)
{
    send_hold(continuation, true, false);
}

void continuation_limit(struct continuation *continuation, struct session *const *sessions,
                        size_t count)
{
    if (any_holds(sessions, count) &&
        sd_event_add_time_relative(continuation->event, &continuation->source, CLOCK_MONOTONIC,
                                   HOLD_USEC, USEC_PER_MSEC, continuation_handle_time,
                                   continuation) >= 0)
        send_hold(continuation, true, true); /* also has the accounts settled: all are attached */
    else
        continuation_end(continuation);
}

void continuation_check(struct continuation *continuation, struct session *const *sessions,
                        size_t count)
{
    if (continuation->source && !any_holds(sessions, count))
        continuation_end(continuation);
}

void continuation_hand_over(struct continuation *continuation)
{
    continuation_done(continuation);
    send_hold(continuation, true, false);
}

void continuation_done(struct continuation *continuation)
{
    continuation->source = sd_event_source_disable_unref(continuation->source);
}
