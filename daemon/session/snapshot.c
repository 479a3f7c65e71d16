// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * At any time the snapshot waits for one answer: of its worker (is_busy) or, while PINNING, of the
 * collector. Each answer leads to the next request, or to the end.
 *
 * A snapshot that fails after its file was opened undoes the file before it ends. One that ends
 * because the disk has not answered undoes it afterwards; the session may be gone by then.
 */

#include "daemon/session/snapshot.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/host/explain.h"
#include "daemon/output/compression.h"
#include "daemon/output/output.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/session.h"
#include "daemon/session/storage.h"

#define READER_PATIENCE_USEC (5 * USEC_PER_SEC) /* since the reader's last progress */

const char *snapshot_cause_name(enum snapshot_cause cause)
{
    switch (cause) {
    case SNAPSHOT_REQUEST:
        return "request";
    case SNAPSHOT_SIGNAL:
        return "signal";
    case SNAPSHOT_TRIGGER:
        return "trigger";
    }
    return "request";
}

const char *snapshot_path(const struct snapshot *snapshot)
{
    const char *path = snapshot->output ? snapshot->output->figures.path : NULL;

    return path ? path : "";
}

static const char *for_people(const char *path)
{
    return strcmp(path, "-") == 0 ? "standard output" : path;
}

static void snapshot_set_state(struct snapshot *snapshot, enum snapshot_state state)
{
    static const char *const names[] = {
        [SNAPSHOT_OPENING] = "opening", [SNAPSHOT_PINNING] = "pinning",
        [SNAPSHOT_WRITING] = "writing", [SNAPSHOT_FINISHING] = "finishing",
        [SNAPSHOT_SEALING] = "sealing", [SNAPSHOT_ENDED] = "ended",
    };

    assert(state > snapshot->state);
    log_line(LOG_DEBUG, snapshot->session->name, "Snapshot %s: %s.", snapshot->name, names[state]);
    snapshot->state = state;
}

static bool snapshot_has_open_file(const struct snapshot *snapshot)
{
    return snapshot->output && snapshot->output->figures.fd >= 0;
}

static struct ring *snapshot_ring(const struct snapshot *snapshot)
{
    return ring_storage_of(snapshot->session)->ring; /* the session keeps it for us */
}

/* Of the ring, since it began. */
static uint64_t snapshot_read_shortened(const struct snapshot *snapshot)
{
    struct ring_stats stats;

    ring_read_stats(snapshot_ring(snapshot), &stats);
    return stats.shortened_bytes;
}

static void snapshot_release_pin(struct snapshot *snapshot)
{
    if (snapshot->pin >= 0)
        ring_advance_pin(snapshot_ring(snapshot), snapshot->pin, NULL);
    snapshot->pin = -1;
}

static void snapshot_destroy(struct snapshot *snapshot)
{
    output_free(snapshot->output);
    sidecar_done(&snapshot->sidecar, snapshot->worker);
    worker_free(snapshot->worker);
    free(snapshot);
}

/* An answer of the worker; false: nobody waits for it any more, and SNAPSHOT is gone. */
static bool snapshot_take_answer(struct snapshot *snapshot)
{
    snapshot->is_busy = false;
    if (!snapshot->is_freed)
        return true;
    snapshot_destroy(snapshot);
    return false;
}

/* --- Ending. --- */

/* Reports the result to the requester; `released` follows when no request is pending. */
static void snapshot_tell_end(struct snapshot *snapshot)
{
    snapshot->open_source = sd_event_source_disable_unref(snapshot->open_source);
    snapshot->patience_source = sd_event_source_disable_unref(snapshot->patience_source);
    if (snapshot->failure.name) {
        (void)snprintf(snapshot->message, sizeof(snapshot->message), "%s", snapshot->failure.text);
        snapshot->plan.bytes = snapshot->owns_output ? 0 : snapshot->write.written_bytes;
        snapshot->ended = clock_pair_now();
    }
    snapshot_set_state(snapshot, SNAPSHOT_ENDED);
    snapshot->done(snapshot->userdata, snapshot);
    snapshot->session = NULL;
}

static void snapshot_end(struct snapshot *snapshot)
{
    if (snapshot->state != SNAPSHOT_ENDED)
        snapshot_tell_end(snapshot);
    snapshot->released(snapshot->userdata, snapshot);
}

static void snapshot_handle_undone(void *userdata, int error, const struct failure *failure)
{
    struct snapshot *snapshot = userdata;

    (void)error, (void)failure; /* it has failed already */
    if (snapshot_take_answer(snapshot))
        snapshot_end(snapshot);
}

/* Nothing torn stays: our own file is removed, a client's is cut to what is whole. */
static void snapshot_undo(struct snapshot *snapshot)
{
    if (!snapshot_has_open_file(snapshot)) {
        snapshot_end(snapshot);
        return;
    }
    snapshot->is_busy = true;
    if (snapshot->owns_output)
        output_remove(snapshot->output, snapshot_handle_undone);
    else
        output_finish(snapshot->output, snapshot->write.written_bytes, snapshot_handle_undone);
}

/* --- Sealing. --- */

/* The wall clock at the end of what was asked for. */
static uint64_t snapshot_end_ns(const struct snapshot *snapshot)
{
    if (!snapshot->ticks.has_until)
        return snapshot->requested.realtime_ns;
    return clock_history_realtime_ns(snapshot->context->clock, snapshot->ticks.end_tsc);
}

/* The part of the requested time that it covers. */
static void snapshot_measure(struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;
    const struct ring_storage *ring = ring_storage_of(session);
    const struct history_snapshot facts = {
        .tsc_khz = xen_host_info(snapshot->context->xen)->tsc_khz,
        .asked_usec = snapshot->ticks.asked_usec,
        .requested_tsc = snapshot->ticks.end_tsc,
        .pinned_tsc = clock_pair_tsc(snapshot->pinned),
        .started_tsc = clock_pair_tsc(session->started),
        .complete_from_tsc = ring_complete_from_tsc(ring->ring),
        .oldest_tsc = snapshot->oldest_tsc,
        .max_age_usec = ring->max_age_usec,
        .chunk_bytes = ring_chunk_bytes(ring->ring),
        .is_resumed = session->is_resumed,
        .from_tsc = snapshot->plan.complete_from_tsc,
        .bytes = snapshot->plain_bytes,
        .max_size_bytes = snapshot->max_size_bytes,
        .is_damaged = snapshot->plan.damaged,
    };
    const struct history_words words = {
        .coverage = history_of_snapshot(&facts),
        .is_recorder = session->settings.is_recorder,
        .memory_bytes = ring->memory_bytes,
        .max_age_usec = ring->max_age_usec,
        /* From a part in the middle nothing follows about the memory that all of it takes. */
        .bytes = snapshot->ticks.has_until ? 0 : snapshot->plain_bytes,
        .requested_ns = snapshot_end_ns(snapshot),
    };

    snapshot->coverage = words.coverage;
    (void)history_explain(&words, snapshot->shorter);
}

_printf_(2, 3) static void snapshot_add_sentence(struct snapshot *snapshot, const char *format, ...)
{
    size_t length = strlen(snapshot->message);
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(snapshot->message + length, sizeof(snapshot->message) - length, format,
                    arguments);
    va_end(arguments);
}

static void snapshot_describe(struct snapshot *snapshot)
{
    static const struct history_words damaged = {.coverage.limit = HISTORY_DAMAGED};
    const struct history_coverage *coverage = &snapshot->coverage;
    uint64_t usec = clock_usec_between(snapshot->requested, snapshot->ended,
                                       xen_host_info(snapshot->context->xen)->tsc_khz);
    char size[UNITS_TEXT_MAX], part[UNITS_PART_MAX], older[HISTORY_TEXT_MAX];

    (void)snprintf(snapshot->message, sizeof(snapshot->message), "Wrote %s in %llu.%03llu s.",
                   size_format(size, snapshot->plan.bytes),
                   (unsigned long long)(usec / USEC_PER_SEC),
                   (unsigned long long)(usec / USEC_PER_MSEC % 1000));
    if (snapshot->is_packed)
        snapshot_add_sentence(snapshot, " They are %s of records, compressed with zstd.",
                              size_format(size, snapshot->plain_bytes));
    if (coverage->limit != HISTORY_NO_LIMIT)
        snapshot_add_sentence(snapshot, " The file covers %s requested. %s",
                              duration_format_part(part, coverage->held_usec, coverage->asked_usec),
                              snapshot->shorter);
    else if (snapshot->plan.damaged)
        snapshot_add_sentence(snapshot, " %s", history_explain(&damaged, older));
    if (snapshot->shortened_bytes)
        snapshot_add_sentence(snapshot,
                              " In the meantime, the ring became %s shorter, because it may borrow "
                              "no more memory (pool-max= in [daemon]).",
                              size_format(size, snapshot->shortened_bytes));
}

static void snapshot_log_sidecar(const struct snapshot *snapshot, int error)
{
    log_line(LOG_ERR, snapshot->session->name,
             "Cannot write the sidecar %s: %s. %s itself is complete.", snapshot->sidecar.path,
             explain_write(error), snapshot_path(snapshot));
}

static void snapshot_handle_sealed(void *userdata, int error)
{
    struct snapshot *snapshot = userdata;

    if (!snapshot_take_answer(snapshot))
        return;
    if (error < 0)
        snapshot_log_sidecar(snapshot, error);
    snapshot_end(snapshot);
}

static void snapshot_seal(struct snapshot *snapshot)
{
    int r;

    snapshot->ended = clock_pair_now();
    snapshot_measure(snapshot);
    snapshot_describe(snapshot);
    if (!snapshot->sidecar.path) {
        snapshot_end(snapshot);
        return;
    }
    snapshot_set_state(snapshot, SNAPSHOT_SEALING);
    snapshot->is_busy = true;
    r = sidecar_write(&snapshot->sidecar, snapshot->worker,
                      snapshot->context->describe_snapshot(snapshot), true, snapshot_handle_sealed,
                      snapshot);
    if (r < 0)
        snapshot_handle_sealed(snapshot, r);
}

/* --- Finishing. --- */

static void snapshot_fail_write(struct snapshot *snapshot, int error)
{
    const char *path = snapshot_path(snapshot);

    (void)failure_set(&snapshot->failure, error, ERROR_OUTPUT,
                      "Cannot write %s: %s. The ring is intact; take another snapshot.",
                      strcmp(path, "-") == 0 ? "the output" : path, explain_write(error));
    snapshot_undo(snapshot);
}

static void snapshot_handle_published(void *userdata, int error, const struct failure *failure)
{
    struct snapshot *snapshot = userdata;

    (void)failure; /* it has no words for it */
    if (!snapshot_take_answer(snapshot))
        return;
    if (error < 0)
        snapshot_fail_write(snapshot, error);
    else
        snapshot_seal(snapshot);
}

static void snapshot_handle_finished(void *userdata, int error, const struct failure *failure)
{
    struct snapshot *snapshot = userdata;

    (void)failure; /* it has no words for it */
    if (!snapshot_take_answer(snapshot))
        return;
    if (error < 0) {
        snapshot_fail_write(snapshot, error);
        return;
    }
    if (!snapshot->owns_output) {
        snapshot_seal(snapshot);
        return;
    }
    /* Only now: under its own name it is complete, also after a power cut. */
    snapshot->is_busy = true;
    output_publish(snapshot->output, snapshot->name, snapshot_handle_published);
}

/* --- Patience. --- */

static int snapshot_handle_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct snapshot *snapshot = userdata;
    uint64_t end_usec =
        max_u64(snapshot->patient_since_usec, ring_write_progress_usec(&snapshot->write)) +
        READER_PATIENCE_USEC;

    if (usec >= end_usec) {
        snapshot->is_reader_late = true;
        ring_write_abort(&snapshot->write);
        return 0;
    }
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time(source, end_usec);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

/* From now on its reader has to read: the ring is pinned for it. */
static void snapshot_limit_patience(struct snapshot *snapshot)
{
    sd_event *event = snapshot->context->event;
    int r;

    if (!snapshot->output->figures.is_stream)
        return;
    /* Cannot fail for a clock that exists. */
    (void)sd_event_now(event, CLOCK_MONOTONIC, &snapshot->patient_since_usec);
    r = sd_event_add_time(event, &snapshot->patience_source, CLOCK_MONOTONIC,
                          snapshot->patient_since_usec + READER_PATIENCE_USEC, USEC_PER_MSEC,
                          snapshot_handle_patience, snapshot);
    if (r < 0)
        log_line(LOG_WARNING, snapshot->session->name, "Cannot set a timer: %s.", strerror(-r));
}

/* --- Writing. --- */

static void snapshot_explain_time(struct snapshot *snapshot, int error)
{
    uint64_t oldest_ns = clock_history_realtime_ns(snapshot->context->clock, snapshot->oldest_tsc);
    char oldest[UNITS_TEXT_MAX];

    (void)failure_set(&snapshot->failure, error, ERROR_EMPTY,
                      "'%s' holds no records of that time. Its oldest record is from %s.",
                      snapshot->session->name, clock_format_date(oldest, oldest_ns));
}

/* Of the space that is missing, a part may be there, and set aside. */
static void snapshot_explain_space(struct snapshot *snapshot)
{
    const struct failure *failure = &snapshot->failure;

    if (failure->name && strcmp(failure->name, ERROR_NO_SPACE) == 0 && snapshot->limits.budget)
        budget_explain_space(snapshot->limits.budget, &snapshot->failure);
}

/* Other snapshots hold its memory, or nothing was recorded, or it is older than the ring keeps. */
static void snapshot_explain_empty(struct snapshot *snapshot, int error)
{
    const struct session *session = snapshot->session;
    struct failure *failure = &snapshot->failure;
    char when[UNITS_TEXT_MAX];
    uint64_t usec = clock_usec_between(session->started, clock_pair_now(),
                                       xen_host_info(snapshot->context->xen)->tsc_khz);

    if (ring_pin_is_refused(snapshot_ring(snapshot), snapshot->pin))
        (void)failure_set(failure, -EBUSY, ERROR_BUSY,
                          "Other snapshots hold the memory of '%s' until they are written; only "
                          "what new records need is left. Recording continues. Take this snapshot "
                          "again when they are written; to see which output is waiting: "
                          "xentracectl status",
                          session->name);
    else if (snapshot->evicted > 0 && ring_storage_of(session)->max_age_usec)
        (void)failure_set(failure, error, ERROR_EMPTY,
                          "'%s' holds no records: it keeps them for %s, and none of its events "
                          "occurred since. To keep them for longer: --max-age, or max-age= in "
                          "[flight-recorder]",
                          session->name,
                          duration_format(when, ring_storage_of(session)->max_age_usec));
    else if (snapshot->evicted > 0)
        (void)failure_set(failure, error, ERROR_EMPTY,
                          "'%s' holds no records: its memory is too small for one round over the "
                          "CPUs. Set more with --memory, or memory= in [flight-recorder].",
                          session->name);
    else
        (void)failure_set(failure, error, ERROR_EMPTY,
                          "'%s' holds no records: it has been running for %s, and none of its "
                          "events occurred. To see its events: xentracectl status %s",
                          session->name, duration_format(when, usec), session->name);
}

static void snapshot_explain_plan(struct snapshot *snapshot, int error)
{
    struct failure *failure = &snapshot->failure;

    if (error == -EFBIG)
        (void)failure_set(
            failure, error, ERROR_INVALID,
            "The newest round of records is larger than --max-size. Use a larger --max-size.");
    else if (!ring_pin_first(snapshot_ring(snapshot), snapshot->pin))
        snapshot_explain_empty(snapshot, error);
    else if (snapshot->span.since_ns || snapshot->ticks.has_until)
        snapshot_explain_time(snapshot, error);
    else
        (void)failure_set(failure, error, ERROR_EMPTY,
                          "'%s' has recorded nothing in that time. Use a longer --last.",
                          snapshot->session->name);
}

static void snapshot_explain_reader(struct snapshot *snapshot)
{
    (void)failure_set(
        &snapshot->failure, -ETIMEDOUT, ERROR_OUTPUT,
        "The reader of %s has read nothing for %u s, so the snapshot was canceled, because it "
        "holds memory of the ring. For a slow reader, write to a file first.",
        for_people(snapshot_path(snapshot)), (unsigned int)(READER_PATIENCE_USEC / USEC_PER_SEC));
}

/* Leaves to snapshot_fail_write() what there are no special words for. */
static void snapshot_explain_write(struct snapshot *snapshot, int error,
                                   const struct failure *failure)
{
    const struct snapshot_limits *limits = &snapshot->limits;

    if (failure->name)
        snapshot->failure = *failure;
    else if (snapshot->is_reader_late)
        snapshot_explain_reader(snapshot);
    else if (!snapshot->write.is_planned)
        snapshot_explain_plan(snapshot, error);
    else if (snapshot->write.is_too_long)
        (void)budget_explain_bytes(limits->budget, &limits->grant, snapshot->plan.bytes,
                                   &snapshot->failure);
    snapshot_explain_space(snapshot);
}

static void snapshot_handle_written(void *userdata, int error, const struct failure *failure)
{
    struct snapshot *snapshot = userdata;

    if (!snapshot_take_answer(snapshot))
        return;
    snapshot->patience_source = sd_event_source_disable_unref(snapshot->patience_source);
    snapshot->plan = snapshot->write.plan;
    snapshot->plain_bytes = snapshot->plan.bytes;
    if (snapshot->is_packed && error >= 0)
        snapshot->plan.bytes = snapshot->write.written_bytes;
    if (error < 0 && !snapshot->failure.name)
        snapshot_explain_write(snapshot, error, failure);
    snapshot->shortened_bytes =
        snapshot_read_shortened(snapshot) - snapshot->shortened_before_bytes;
    snapshot_release_pin(snapshot);
    if (snapshot->failure.name) {
        snapshot_undo(snapshot);
    } else if (error < 0) {
        snapshot_fail_write(snapshot, error);
    } else {
        snapshot_set_state(snapshot, SNAPSHOT_FINISHING);
        snapshot->is_busy = true;
        output_finish(snapshot->output, snapshot->plan.bytes, snapshot_handle_finished);
    }
}

static struct snapshot_ticks snapshot_read_span(const struct snapshot *snapshot,
                                                const struct snapshot_span *span)
{
    return snapshot_span_read(span, snapshot->context->clock,
                              xen_host_info(snapshot->context->xen)->tsc_khz,
                              clock_pair_tsc(snapshot->requested));
}

static struct snapshot_bounds snapshot_bounds_of(const struct snapshot *snapshot)
{
    const struct ring_storage *ring = ring_storage_of(snapshot->session);
    const struct snapshot_span all = {.last_usec = ring->max_age_usec}; /* that the ring is for */

    return (struct snapshot_bounds){
        .since_tsc =
            max_u64(snapshot->ticks.since_tsc, snapshot_read_span(snapshot, &all).since_tsc),
        .until_tsc = snapshot->ticks.has_until ? snapshot->ticks.end_tsc : 0,
        .max_bytes = snapshot->max_size_bytes,
        .verify_seq = ring->adopted_seq,
    };
}

static uint64_t snapshot_count_evicted(const struct session *session)
{
    uint64_t evicted = 0;

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(session->storage->sink, cpu, &ledger);
        evicted += ledger.evicted;
    }
    return evicted;
}

void snapshot_handle_pinned(struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;
    struct ring *ring = snapshot_ring(snapshot);
    struct ring_stats stats;

    ring_read_stats(ring, &stats);
    snapshot->pinned = clock_pair_now();
    snapshot->ticks = snapshot_read_span(snapshot, &snapshot->span);
    snapshot->oldest_tsc = stats.oldest_tsc;
    snapshot->pin_nsec = ring_pin_nsec(ring, snapshot->pin);
    snapshot->evicted = snapshot_count_evicted(session);
    snapshot->write = (struct ring_write){
        .ring = ring,
        .pin = snapshot->pin,
        .nr_cpus = session->selection.nr_cpus,
        .bounds = snapshot_bounds_of(snapshot),
        .allowed_bytes = snapshot->limits.grant.allowed_bytes,
        .is_packed = snapshot->is_packed,
    };
    snapshot_set_state(snapshot, SNAPSHOT_WRITING);
    snapshot_limit_patience(snapshot);
    snapshot->is_busy = true;
    output_run(snapshot->output, ring_write_run, &snapshot->write, snapshot_handle_written);
}

/* --- Pinning. --- */

void snapshot_handle_sink_closed(struct snapshot *snapshot)
{
    if (snapshot->state != SNAPSHOT_PINNING)
        return;
    ring_pin_closed(snapshot_ring(snapshot), snapshot->pin);
    snapshot_handle_pinned(snapshot);
}

static void snapshot_begin_pinning(struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;

    snapshot_set_state(snapshot, SNAPSHOT_PINNING);
    snapshot->pin = ring_take_pin(snapshot_ring(snapshot));
    if (snapshot->pin < 0) {
        snapshot->pin = -1;
        (void)failure_set(&snapshot->failure, -EBUSY, ERROR_BUSY,
                          "%u snapshots of '%s' are being written already. Wait for one of them.",
                          RING_PINS_MAX, session->name);
        snapshot_undo(snapshot);
        return;
    }
    snapshot->shortened_before_bytes = snapshot_read_shortened(snapshot);
    /* The session may have been stopped in the meantime. Its ring stays, and is ours again once its
     * sink has come back. */
    if (session->storage->is_sink_closed)
        snapshot_handle_sink_closed(snapshot);
    else
        collector_send(session->context->collector, MESSAGE_PIN, session->storage->sink, false,
                       snapshot->pin);
}

/* --- Opening. --- */

static int snapshot_take_name(struct snapshot *snapshot)
{
    const struct session_context *context = snapshot->context;

    if (!snapshot->owns_output)
        return 0;
    (void)snprintf(snapshot->name, sizeof(snapshot->name), "%.*s", (int)SESSION_NAME_MAX,
                   snapshot->output->name);
    return sidecar_name(&snapshot->sidecar, context->state_dir_fd, context->state_dir,
                        snapshot->name);
}

static void snapshot_handle_opened(void *userdata, int error, const struct failure *failure)
{
    struct snapshot *snapshot = userdata;

    if (!snapshot_take_answer(snapshot))
        return;
    snapshot->open_source = sd_event_source_disable_unref(snapshot->open_source);
    if (error < 0) {
        if (snapshot->state != SNAPSHOT_ENDED)
            snapshot->failure = *failure; /* opening has words for every error */
        snapshot_explain_space(snapshot);
        snapshot_end(snapshot); /* nothing was left of it */
        return;
    }
    if (snapshot->state == SNAPSHOT_ENDED) {
        snapshot_undo(snapshot);
        return;
    }
    if (snapshot_take_name(snapshot) < 0) {
        (void)failure_set(&snapshot->failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
        snapshot_undo(snapshot);
        return;
    }
    snapshot_begin_pinning(snapshot);
}

/* It stays until the worker comes back. */
static int snapshot_handle_open_timeout(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct snapshot *snapshot = userdata;

    (void)source, (void)usec;
    (void)failure_set(
        &snapshot->failure, -ETIMEDOUT, ERROR_WAITING,
        "The disk of %s has not answered for %u s. Nothing was written; take another snapshot when "
        "it answers again. To see which outputs are waiting: xentracectl status",
        snapshot->owns_output ? snapshot->context->state_dir
                              : for_people(snapshot->output->request_path),
        (unsigned int)(SESSION_PATIENCE_USEC / USEC_PER_SEC));
    snapshot_tell_end(snapshot);
    return 0;
}

static int snapshot_open(struct snapshot *snapshot, const struct snapshot_options *options,
                         struct failure *failure)
{
    const struct session_context *context = snapshot->context;
    const struct output_request request = {
        .is_adopted = options->has_output,
        .by_root = options->by_root,
        .fd = options->output_fd,
        .path = options->output_path,
        .sidecar = &snapshot->sidecar,
        .directory_fd = context->state_dir_fd,
        .directory = context->state_dir,
        .name = snapshot->name,
        .naming = OUTPUT_HIDDEN,
        .is_packed = snapshot->is_packed,
        .may_rename = !options->name || !options->name[0],
        .number_max = options->limits.number_max,
        .check = sidecar_check_none,
        .reserve_bytes = options->reserve_bytes,
        .max_bytes = UINT64_MAX,
    };
    int r;

    r = output_new(snapshot->worker, &request, snapshot_handle_opened, snapshot, &snapshot->output);
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT, "Cannot begin to write a snapshot: %s.",
                           strerror(-r));
    snapshot->is_busy = true;
    return 0;
}

/* --- Making. --- */

/* Whether a file has that name is checked when it is created. */
static bool snapshot_name_is_taken(const void *userdata, const char *name)
{
    (void)userdata, (void)name;
    return false;
}

/* A user's label may be a trigger's name. */
static void snapshot_make_up_name(struct snapshot *snapshot, bool is_limited)
{
    char stem[sizeof(NAME_USER_SNAPSHOT_PREFIX) + SESSION_NAME_MAX] = "snapshot";

    if (snapshot->label[0])
        (void)snprintf(stem, sizeof(stem), "%s%s",
                       is_limited ? NAME_USER_SNAPSHOT_PREFIX : "snapshot-", snapshot->label);
    name_make_up(stem, snapshot_name_is_taken, NULL, snapshot->name);
}

/* A label becomes part of a file's name: characters that cannot be in one become "_". */
static void snapshot_take_label(struct snapshot *snapshot, const char *label)
{
    (void)snprintf(snapshot->label, sizeof(snapshot->label), "%s", label ? label : "");
    for (char *p = snapshot->label; *p; p++) {
        const char letter[2] = {*p, '\0'};

        if (!name_is_valid(letter, 1) && !strchr(".-", *p))
            *p = '_';
    }
}

static int snapshot_take_options(struct snapshot *snapshot, const struct snapshot_options *options,
                                 struct failure *failure)
{
    int r;

    snapshot->cause = options->cause;
    snapshot->requester = options->requester;
    snapshot->trigger = options->trigger;
    r = snapshot_span_check(&options->span, failure);
    if (r < 0)
        return r;
    snapshot->span = options->span;
    snapshot->ticks = snapshot_read_span(snapshot, &snapshot->span);
    snapshot->max_size_bytes = options->max_size_bytes;
    snapshot->limits = options->limits;
    snapshot->owns_output = !options->has_output;
    r = compression_parse(options->compress, &snapshot->is_packed, failure);
    if (r < 0)
        return r;
    snapshot_take_label(snapshot, options->label);
    if (!options->name || !options->name[0]) {
        snapshot_make_up_name(snapshot, options->user.is_limited);
    } else {
        r = name_check(options->name, failure);
        if (r < 0)
            return r;
        (void)snprintf(snapshot->name, sizeof(snapshot->name), "%s", options->name);
    }
    if (snapshot->owns_output)
        return 0;
    return sidecar_adopt(&snapshot->sidecar, options->sidecar_fd, options->output_path, failure);
}

static int snapshot_begin(struct snapshot *snapshot, const struct snapshot_options *options,
                          struct failure *failure)
{
    int r;

    r = worker_new(snapshot->context->workers, "snapshot", &snapshot->worker);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    r = snapshot_take_options(snapshot, options, failure);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(snapshot->context->event, &snapshot->open_source,
                                   CLOCK_MONOTONIC, SESSION_PATIENCE_USEC, USEC_PER_MSEC,
                                   snapshot_handle_open_timeout, snapshot);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot set a timer: %s.", strerror(-r));
    return snapshot_open(snapshot, options, failure);
}

int snapshot_new(struct session *session, const struct snapshot_options *options, snapshot_fn done,
                 snapshot_fn released, void *userdata, struct snapshot **ret_snapshot,
                 struct failure *failure)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    int r;

    if (!snapshot)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    snapshot->context = session->context;
    snapshot->session = session;
    snapshot->requested = clock_pair_now();
    snapshot->pin = -1;
    snapshot->done = done;
    snapshot->released = released;
    snapshot->userdata = userdata;
    sidecar_init(&snapshot->sidecar);
    r = snapshot_begin(snapshot, options, failure);
    if (r < 0) {
        snapshot_free(snapshot);
        return r;
    }
    *ret_snapshot = snapshot;
    return 0;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return NULL;
    snapshot->open_source = sd_event_source_disable_unref(snapshot->open_source);
    snapshot->patience_source = sd_event_source_disable_unref(snapshot->patience_source);
    snapshot->is_freed = true;
    if (snapshot->is_busy)
        ring_write_abort(&snapshot->write);
    else
        snapshot_destroy(snapshot);
    return NULL;
}

void snapshot_give_up(struct snapshot *snapshot, const struct failure *failure)
{
    if (snapshot->state != SNAPSHOT_WRITING || snapshot->failure.name)
        return;
    snapshot->failure = *failure;
    ring_write_abort(&snapshot->write);
}

uint64_t snapshot_waiting_since_usec(const struct snapshot *snapshot)
{
    uint64_t since_usec = worker_busy_since_usec(snapshot->worker), now_usec;

    if (since_usec && snapshot->state == SNAPSHOT_WRITING)
        since_usec = max_u64(since_usec, ring_write_progress_usec(&snapshot->write));
    /* Cannot fail for a clock that exists. */
    (void)sd_event_now(snapshot->context->event, CLOCK_MONOTONIC, &now_usec);
    if (!since_usec || now_usec < since_usec + SESSION_PATIENCE_USEC)
        return 0;
    return since_usec;
}
