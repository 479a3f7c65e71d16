// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What can fail is done before the ring is pinned, but for the space: how much is needed is known
 * only then.
 */

#include "daemon/session/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/units.h"
#include "daemon/document/document.h"
#include "daemon/host/explain.h"
#include "daemon/base/log.h"
#include "daemon/session/ring-writer.h"
#include "daemon/output/sidecar.h"

#define PATIENCE_USEC (5 * USEC_PER_SEC) /* with a reader, in which it has read nothing */

const char *snapshot_cause_name(enum snapshot_cause cause)
{
    switch (cause) {
    case SNAPSHOT_REQUEST:
        return "request";
    case SNAPSHOT_SIGNAL:
        return "signal";
    case SNAPSHOT_TRIGGER:
        return "trigger";
    case SNAPSHOT_END:
        return "end";
    }
    return "request";
}

static const struct session_context *context_of(const struct snapshot *snapshot)
{
    return snapshot->session->context;
}

/* --- Ending. --- */

static void release_pin(struct snapshot *snapshot)
{
    if (snapshot->pin >= 0)
        ring_advance_pin(snapshot->session->ring, snapshot->pin, NULL);
    snapshot->pin = -1;
}

/* Nothing torn stays behind: our own file goes, a client's is cut to what is whole. */
static void undo_output(struct snapshot *snapshot)
{
    uint64_t bytes = snapshot->writer ? ring_writer_bytes(snapshot->writer) : 0;

    if (snapshot->owns_output)
        output_discard(context_of(snapshot)->state_dir_fd, snapshot->name);
    else if (snapshot->output.fd >= 0)
        (void)output_finish(&snapshot->output, bytes); /* it has failed already */
    snapshot->plan.bytes = snapshot->owns_output ? 0 : bytes;
    (void)snprintf(snapshot->message, sizeof(snapshot->message), "%s", snapshot->failure.text);
}

/* The ring of a capture that has ended goes with it: what is not in the output is dropped. */
static void drop_rest(const struct snapshot *snapshot)
{
    const struct chunk *unwritten =
        snapshot->writer ? ring_writer_unwritten(snapshot->writer) : snapshot->plan.first;

    ring_drop_from(snapshot->session->ring, unwritten);
}

static void end(struct snapshot *snapshot)
{
    snapshot->patience_source = sd_event_source_disable_unref(snapshot->patience_source);
    if (snapshot->failure.name && snapshot->cause == SNAPSHOT_END)
        drop_rest(snapshot);
    if (snapshot->failure.name)
        undo_output(snapshot);
    snapshot->writer = ring_writer_free(snapshot->writer);
    snapshot->ended = clock_pair_now();
    snapshot->state = SNAPSHOT_ENDED;
    fd_close(&snapshot->output.fd);
    snapshot->done(snapshot->userdata, snapshot);
}

static void describe(struct snapshot *snapshot)
{
    char size[UNITS_TEXT_MAX];
    uint64_t usec = (clock_pair_now().realtime_ns - snapshot->requested.realtime_ns) / 1000;

    (void)snprintf(snapshot->message, sizeof(snapshot->message), "Wrote %s in %llu.%03llu s.%s",
                   size_format(size, snapshot->plan.bytes),
                   (unsigned long long)(usec / USEC_PER_SEC),
                   (unsigned long long)(usec / USEC_PER_MSEC % 1000),
                   snapshot->plan.damaged
                       ? " Older records, of before xentraced was restarted, were damaged and are "
                         "left out."
                       : "");
}

static void write_sidecar(const struct snapshot *snapshot)
{
    int r;

    if (!snapshot->sidecar_path)
        return;
    r = sidecar_write(context_of(snapshot)->state_dir_fd, snapshot->name, snapshot->sidecar_fd,
                      document_of_snapshot(snapshot));
    if (r < 0)
        log_line(LOG_ERR, snapshot->session->name,
                 "The sidecar %s could not be written: %s. %s is complete without it.",
                 snapshot->sidecar_path, strerror(-r), snapshot->output.path);
}

static int finish_output(struct snapshot *snapshot)
{
    const struct session_context *context = context_of(snapshot);
    int r;

    r = output_finish(&snapshot->output, snapshot->plan.bytes);
    if (r >= 0 && snapshot->owns_output)
        r = output_publish(context->state_dir_fd, snapshot->name);
    if (r >= 0 && snapshot->owns_output && fsync(context->state_dir_fd) < 0)
        r = -errno;
    return r;
}

static void handle_written(void *userdata, int error)
{
    struct snapshot *snapshot = userdata;

    snapshot->pin = -1; /* the writer has given it up */
    if (error >= 0)
        error = finish_output(snapshot);
    if (error < 0) {
        (void)failure_set(
            &snapshot->failure, error, ERROR_OUTPUT, "%s could not be written: %s. %s",
            snapshot->output.path, explain_write(error),
            snapshot->cause == SNAPSHOT_END ? "It holds what was written before, in whole windows; "
                                              "the rest is counted as dropped."
                                            : "The ring goes on; take another snapshot.");
    } else {
        snapshot->ended = clock_pair_now();
        describe(snapshot);
        write_sidecar(snapshot);
    }
    end(snapshot);
}

/* --- Patience. --- */

static int handle_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct snapshot *snapshot = userdata;
    uint64_t bytes = snapshot->writer ? ring_writer_bytes(snapshot->writer) : 0;

    (void)usec;
    if (snapshot->writer && bytes == snapshot->patience_bytes) {
        ring_writer_abort(snapshot->writer); /* may be the end of it */
        return 0;
    }
    snapshot->patience_bytes = bytes;
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time_relative(source, PATIENCE_USEC);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

void snapshot_limit_patience(struct snapshot *snapshot)
{
    int r;

    if (!snapshot->output.is_stream || snapshot->patience_source)
        return;
    snapshot->patience_bytes = snapshot->writer ? ring_writer_bytes(snapshot->writer) : 0;
    r = sd_event_add_time_relative(context_of(snapshot)->event, &snapshot->patience_source,
                                   CLOCK_MONOTONIC, PATIENCE_USEC, USEC_PER_MSEC, handle_patience,
                                   snapshot);
    if (r < 0)
        log_line(LOG_WARNING, snapshot->session->name, "Cannot set a timer: %s.", strerror(-r));
}

/* --- Writing. --- */

static int plan(struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;
    uint64_t last_usec = snapshot->last_usec;
    struct snapshot_bounds bounds = {
        .max_bytes = snapshot->max_size_bytes,
        .verify_seq = session->adopted_seq,
    };
    uint64_t last_tsc;

    /* At the end all of the ring is the capture. */
    if (snapshot->cause != SNAPSHOT_END && session->max_age_usec &&
        (!last_usec || session->max_age_usec < last_usec))
        last_usec = session->max_age_usec;
    last_tsc = clock_tsc_of_usec(last_usec, xen_host_info(context_of(snapshot)->xen)->tsc_khz);
    if (last_usec && last_tsc < snapshot->requested.tsc)
        bounds.since_tsc = snapshot->requested.tsc - last_tsc;
    return snapshot_make_plan(session->ring, snapshot->pin, &bounds, session->nr_cpus,
                              &snapshot->plan);
}

static int explain_plan(struct snapshot *snapshot, int error)
{
    const struct session *session = snapshot->session;
    struct failure *failure = &snapshot->failure;
    char when[UNITS_TEXT_MAX];
    uint64_t usec = (clock_pair_now().realtime_ns - session->started.realtime_ns) / 1000;

    (void)duration_format(when, usec);
    if (error == -EFBIG)
        return failure_set(failure, error, ERROR_INVALID,
                           "Not even the newest round of records fits into --max-size. Ask for "
                           "more.");
    if (ring_pin_first(session->ring, snapshot->pin))
        return failure_set(failure, error, ERROR_EMPTY,
                           "'%s' has recorded nothing in that time. Ask for more with --last.",
                           session->name);
    return failure_set(failure, error, ERROR_EMPTY,
                       "'%s' holds no records: it runs since %s, and nothing it records has "
                       "happened. `xentracectl status %s` shows what it records.",
                       session->name, when, session->name);
}

static int begin_writing(struct snapshot *snapshot)
{
    const struct ring_writer_config config = {
        .event = context_of(snapshot)->event,
        .ring = snapshot->session->ring,
        .pin = snapshot->pin,
        .fd = snapshot->output.fd,
        .is_stream = snapshot->output.is_stream,
        .align_bytes = snapshot->output.is_direct ? PAGE_BYTES : 1,
        .done = handle_written,
        .userdata = snapshot,
    };
    int r;

    r = plan(snapshot);
    if (r < 0)
        return explain_plan(snapshot, r);
    if (!snapshot->output.is_stream) {
        r = output_require(&snapshot->output, snapshot->plan.bytes, &snapshot->failure);
        if (r < 0)
            return r;
    }
    r = ring_writer_new(&config, &snapshot->plan, &snapshot->writer);
    if (r < 0)
        return failure_set(&snapshot->failure, r, ERROR_NO_MEMORY, "Cannot write %s: %s.",
                           snapshot->output.path, strerror(-r));
    snapshot->state = SNAPSHOT_WRITING;
    if (snapshot->cause == SNAPSHOT_END)
        snapshot_limit_patience(snapshot);
    return 0;
}

static uint64_t evicted_of(const struct session *session)
{
    uint64_t evicted = 0;

    for (unsigned int cpu = 0; cpu < session->nr_cpus; cpu++) {
        struct ledger ledger;

        sink_read_ledger(session->sink, cpu, &ledger);
        evicted += ledger.evicted;
    }
    return evicted;
}

void snapshot_handle_pinned(struct snapshot *snapshot)
{
    snapshot->pin_nsec = ring_pin_nsec(snapshot->session->ring, snapshot->pin);
    snapshot->evicted = evicted_of(snapshot->session);
    if (begin_writing(snapshot) >= 0)
        return;
    release_pin(snapshot);
    end(snapshot);
}

/* --- Making. --- */

static bool name_is_taken(const void *userdata, const char *name)
{
    const struct snapshot *snapshot = userdata;
    int directory = context_of(snapshot)->state_dir_fd;
    char file[SESSION_NAME_MAX + 32];

    (void)snprintf(file, sizeof(file), "%s.xentrace", name);
    if (faccessat(directory, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return true;
    (void)snprintf(file, sizeof(file), ".%s.xentrace.new", name);
    return faccessat(directory, file, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make_up_name(struct snapshot *snapshot)
{
    char stem[sizeof("snapshot-") + SESSION_NAME_MAX];

    (void)snprintf(stem, sizeof(stem), "snapshot%s%s", snapshot->label[0] ? "-" : "",
                   snapshot->label);
    name_make_up(stem, name_is_taken, snapshot, snapshot->name);
}

/* A label becomes part of a file's name: what cannot be there becomes "_". */
static void take_label(struct snapshot *snapshot, const char *label)
{
    (void)snprintf(snapshot->label, sizeof(snapshot->label), "%s", label ? label : "");
    for (char *p = snapshot->label; *p; p++) {
        const char letter[2] = {*p, '\0'};

        if (!name_is_valid(letter, 1) && !strchr(".-", *p))
            *p = '_';
    }
}

static int open_output(struct snapshot *snapshot, const struct snapshot_options *options,
                       struct failure *failure)
{
    const struct session_context *context = context_of(snapshot);
    int r;

    if (options->output) {
        snapshot->output = *options->output;
        output_init(options->output, 0, UINT64_MAX);
        return 0;
    }
    output_init(&snapshot->output, options->reserve_bytes, UINT64_MAX);
    if (!options->has_output) {
        snapshot->owns_output = true;
        if (asprintf(&snapshot->sidecar_path, "%s/%s.json", context->state_dir, snapshot->name) < 0)
            return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
        return output_create_hidden(&snapshot->output, context->state_dir_fd, context->state_dir,
                                    snapshot->name, failure);
    }
    r = sidecar_adopt(options->sidecar_fd, options->output_path, &snapshot->sidecar_fd,
                      &snapshot->sidecar_path, failure);
    if (r < 0)
        return r;
    return output_adopt(&snapshot->output, options->output_fd, options->output_path, failure);
}

static int take_pin(struct snapshot *snapshot, struct failure *failure)
{
    snapshot->pin = ring_take_pin(snapshot->session->ring);
    if (snapshot->pin < 0)
        return failure_set(failure, -EBUSY, ERROR_BUSY,
                           "%u snapshots of '%s' are being written already. Wait for one of them.",
                           RING_PINS_MAX, snapshot->session->name);
    return 0;
}

static int prepare(struct snapshot *snapshot, const struct snapshot_options *options,
                   struct failure *failure)
{
    bool is_named = options->name && options->name[0];
    int r;

    r = is_named ? name_check(options->name, failure) : 0;
    if (r < 0)
        return r;
    take_label(snapshot, options->label);
    if (is_named)
        (void)snprintf(snapshot->name, sizeof(snapshot->name), "%s", options->name);
    else
        make_up_name(snapshot);
    r = take_pin(snapshot, failure);
    if (r < 0)
        return r;
    r = open_output(snapshot, options, failure);
    if (r < 0)
        release_pin(snapshot);
    return r;
}

int snapshot_new(struct session *session, const struct snapshot_options *options,
                 void (*done)(void *userdata, struct snapshot *snapshot), void *userdata,
                 struct snapshot **ret_snapshot, struct failure *failure)
{
    struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
    int r;

    if (!snapshot)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    snapshot->session = session;
    snapshot->cause = options->cause;
    snapshot->trigger = options->trigger;
    snapshot->last_usec = options->last_usec;
    snapshot->max_size_bytes = options->max_size_bytes;
    snapshot->requested = clock_pair_now();
    snapshot->output.fd = -1;
    snapshot->sidecar_fd = -1;
    snapshot->pin = -1;
    snapshot->done = done;
    snapshot->userdata = userdata;
    r = prepare(snapshot, options, failure);
    if (r < 0) {
        snapshot_free(snapshot);
        return r;
    }
    *ret_snapshot = snapshot;
    if (options->cause != SNAPSHOT_END) {
        collector_send(session->context->collector, MESSAGE_PIN, session->sink, false,
                       snapshot->pin);
        return 0;
    }
    ring_pin(session->ring, snapshot->pin); /* it is ours again */
    snapshot_handle_pinned(snapshot);       /* may be the end of it already */
    return 0;
}

struct snapshot *snapshot_free(struct snapshot *snapshot)
{
    if (!snapshot)
        return NULL;
    sd_event_source_disable_unref(snapshot->patience_source);
    ring_writer_free(snapshot->writer);
    output_done(&snapshot->output);
    fd_close(&snapshot->sidecar_fd);
    free(snapshot->sidecar_path);
    free(snapshot);
    return NULL;
}
