// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * All that a session needs, before anything is traced: its output and its space, its memory, Xen's
 * buffers. What a user may have got wrong comes first.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/pool.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/units.h"
#include "daemon/document/document.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/host.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"
#include "daemon/output/sidecar.h"
#include "daemon/host/tracing.h"

#define DEFAULT_POLL_USEC (100 * USEC_PER_MSEC) /* as xentrace */
#define MIN_POLL_USEC     USEC_PER_MSEC

/* Of a grant that is left when a segment asks for more; before its end it does not need all. */
#define SEGMENT_AHEAD_BYTES (UINT64_C(64) << 20)

static int refuse_memory(const struct session *session, struct failure *failure)
{
    uint32_t percent = session->context->memory_share_percent;
    uint64_t available = host_available_bytes();
    char wanted[UNITS_TEXT_MAX], free_text[UNITS_TEXT_MAX], share[UNITS_TEXT_MAX];

    if (session->memory_bytes < RING_MIN_BYTES)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID, "A ring of %s is too small: give it at least %s.",
            size_format(wanted, session->memory_bytes), size_format(share, RING_MIN_BYTES));
    if (session->memory_bytes / 100 < available / 10000 * percent || available == 0)
        return 0;
    return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY,
                       "A ring of %s is more than dom0 can spare: %s are free, and memory-share= "
                       "lets a ring take %u %% of that, %s. Ask for less, or set another "
                       "memory-share=.",
                       size_format(wanted, session->memory_bytes),
                       size_format(free_text, available), percent,
                       size_format(share, available / 100 * percent));
}

static int check_reserve(struct session *session, const struct session_options *options,
                         struct failure *failure)
{
    if (options->on_reserve &&
        on_reserve_parse(options->on_reserve, &session->space.on_reserve) < 0)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "'%s' is nothing to do at the reserve: --on-reserve is stop, rotate or "
                           "pause.",
                           options->on_reserve);
    if (session->space.on_reserve == ON_RESERVE_PAUSE && session->memory_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A ring takes its space on the disk when it starts, and never pauses: "
                           "give either --memory or --on-reserve pause.");
    return 0;
}

static int check_limits(struct session *session, const struct session_options *options,
                        struct failure *failure)
{
    session->time_usec = options->time_usec;
    session->poll_usec = options->poll_usec ? options->poll_usec : DEFAULT_POLL_USEC;
    if (session->poll_usec < MIN_POLL_USEC || session->poll_usec > 3600 * USEC_PER_SEC)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "The poll interval must be from 1 ms to 1 h.");
    if (options->buffer_pages > UINT16_MAX)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "Trace buffers have 65535 pages per CPU at most.");
    if (options->max_age_usec && !options->memory_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--max-age is about records in memory: it needs --memory.");
    if (options->max_size_bytes && options->memory_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A ring never ends because of its size: give either --memory or "
                           "--max-size.");
    session->memory_bytes = options->memory_bytes;
    session->max_age_usec = options->max_age_usec;
    session->is_recorder = options->is_recorder;
    session->discard = options->discard;
    session->keep_enabled = options->keep_enabled;
    session->start_disabled = options->start_disabled;
    /* Before space for it is taken on the disk, which may be all there is. */
    if (session->memory_bytes && !options->ring)
        return refuse_memory(session, failure);
    return 0;
}

/* What is recorded, from whom. */
static int parse_selection(struct session *session, const struct session_options *options,
                           struct failure *failure)
{
    const char *events = options->events ? options->events : "all";
    const char *cpus = options->cpus ? options->cpus : "all";
    _cleanup_free_ char *error = NULL;
    int r;

    session->nr_cpus = xen_host_info(session->context->xen)->nr_cpus;
    session->events_spec = strdup(events);
    session->cpus_spec = strdup(cpus);
    if (!session->events_spec || !session->cpus_spec)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = event_set_parse(events, &session->events, &error);
    if (r >= 0)
        r = cpu_set_parse(cpus, session->nr_cpus, &session->cpus, &error);
    if (r < 0)
        return failure_set(failure, r, ERROR_INVALID, "%s", error ? error : "Out of memory.");
    return 0;
}

/* Its trace may have been moved away; the sidecar would be replaced without a word. */
static int refuse_old_sidecar(const struct session *session, struct failure *failure)
{
    char file[SESSION_NAME_MAX + 16];

    (void)snprintf(file, sizeof(file), "%s.json", session->name);
    if (faccessat(session->context->state_dir_fd, file, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    return failure_set(
        failure, -EEXIST, ERROR_NAME_IN_USE,
        "%s exists, and sidecars are never overwritten. Choose another name, or none.",
        session->sidecar_path);
}

/* Its first file's name, without the ending. */
static void name_output(const struct session *session, char stem[static SEGMENT_NAME_MAX])
{
    if (session->segments)
        segment_name(session, session->segments->number, stem);
    else
        (void)snprintf(stem, SEGMENT_NAME_MAX, "%s", session->name);
}

static int adopt_output(struct session *session, const struct session_options *options,
                        struct failure *failure)
{
    int r;

    r = sidecar_adopt(options->sidecar_fd, options->output_path, &session->sidecar_fd,
                      &session->sidecar_path, failure);
    if (r < 0)
        return r;
    return output_adopt(&session->output, options->output_fd, options->output_path, failure);
}

static int create_output(struct session *session, struct failure *failure)
{
    const struct session_context *context = session->context;
    char stem[SEGMENT_NAME_MAX];
    int r;

    session->owns_output = true;
    if (asprintf(&session->sidecar_path, "%s/%s.json", context->state_dir, session->name) < 0)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    r = refuse_old_sidecar(session, failure);
    if (r >= 0 && session->segments)
        r = segments_refuse_old(session, failure);
    if (r < 0)
        return r;
    name_output(session, stem);
    return output_create(&session->output, context->state_dir_fd, context->state_dir, stem,
                         failure);
}

static int open_output(struct session *session, const struct session_options *options,
                       struct failure *failure)
{
    uint64_t max_bytes = options->max_size_bytes ? options->max_size_bytes : UINT64_MAX;
    int r;

    output_init(&session->output, options->reserve_bytes, max_bytes);
    if (session->segments)
        session->output.aim_bytes = segments_aim_bytes(session->segments);
    if (session->is_recorder)
        return 0;
    if (options->has_output)
        r = adopt_output(session, options, failure);
    else
        r = create_output(session, failure);
    if (r >= 0 && session->output.is_stream && session->space.on_reserve != ON_RESERVE_STOP)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "--on-reserve is about the space on a disk: standard output and pipes "
                           "have none.");
    /* The end is no time to find that there is no space. */
    if (r >= 0 && session->memory_bytes && !session->output.is_stream)
        r = output_require(&session->output, session->memory_bytes, failure);
    return r;
}

/* --- The ring. --- */

/* A ring that was taken over goes on where Xen's consumer stood. */
static int resume_buffers(const struct session *session, const struct ring *ring,
                          struct failure *failure)
{
    struct drain *drain = collector_drain(session->context->collector);

    for (unsigned int cpu = 0; cpu < session->nr_cpus; cpu++) {
        uint32_t xen_cons, cons;

        if (!cpu_set_has(ring_cpus(ring), cpu) || !drain_read_cons(drain, cpu, &xen_cons))
            continue;
        if (!ring_resume_cpu(ring, cpu, xen_cons, &cons) || drain_resume_cpu(drain, cpu, cons) < 0)
            return failure_set(failure, -EBADMSG, ERROR_XEN,
                               "somebody else has read CPU %u's trace buffer meanwhile", cpu);
    }
    return 0;
}

static int take_over_ring(struct session *session, const struct session_options *options,
                          struct failure *failure)
{
    uint32_t pages = ring_buffer_pages(options->ring);

    if (pages != tracing_buffer_pages(session->context->tracing))
        return failure_set(failure, -EBADMSG, ERROR_XEN, "it is of trace buffers of another size");
    return resume_buffers(session, options->ring, failure);
}

static int make_ring(struct session *session, const struct session_options *options,
                     struct failure *failure)
{
    char wanted[UNITS_TEXT_MAX];
    int r;

    if (!session->memory_bytes)
        return 0;
    if (options->ring)
        return take_over_ring(session, options, failure);
    r = ring_new(session->memory_bytes, session->nr_cpus, session->is_recorder, &session->ring);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "No memory for a ring of %s: %s.",
                           size_format(wanted, session->memory_bytes), strerror(-r));
    return 0;
}

int session_make_sink(const struct session *session, const struct output *output,
                      struct watch_set *watch, struct sink **ret_sink)
{
    const struct segments *segments = session->segments;
    struct sink_config config = {
        .fd = output->fd,
        .is_stream = output->is_stream,
        .align_bytes = output->is_direct ? PAGE_BYTES : RECORD_MIN_BYTES,
        .granted_bytes = output->granted_bytes,
        .max_bytes = output->is_final ? output->granted_bytes : output->max_bytes,
        .grant_ahead_bytes = segments ? SEGMENT_AHEAD_BYTES : output->granted_bytes / 2,
        .rotate_bytes = segments ? segments->size_bytes : 0,
        .poll_usec = session->poll_usec,
        .discard = session->discard,
        .watch = watch,
        .max_age_tsc =
            clock_tsc_of_usec(session->max_age_usec, xen_host_info(session->context->xen)->tsc_khz),
        .events = session->events,
        .cpus = session->cpus,
        .nr_cpus = session->nr_cpus,
    };

    if (session->ring)
        return sink_new_ring(&config, session->ring, ret_sink);
    return sink_new(&config, session->context->pool, ret_sink);
}

/* From here on nothing fails any more but for want of memory. */
static int make_data_plane(struct session *session, const struct session_options *options,
                           struct failure *failure)
{
    struct ring *ring = session->ring ? session->ring : options->ring;
    int r;

    if (ring)
        ring_set_source(ring, &session->cpus, tracing_buffer_pages(session->context->tracing));
    session->ring = ring;
    r = session_make_sink(session, &session->output, options->watch, &session->sink);
    if (r < 0)
        (void)failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    if (r < 0 && ring == options->ring)
        session->ring = NULL; /* still the caller's */
    session->use = (struct tracing_use){
        .event_mask = event_set_xen_mask(&session->events),
        .cpus = session->cpus,
        .enable = !session->start_disabled,
    };
    return r;
}

void session_remove_files(struct session *session)
{
    const struct session_context *context = session->context;
    char stem[SEGMENT_NAME_MAX], file[SEGMENT_NAME_MAX + 16];

    if (!session->owns_output || session->output.fd < 0)
        return;
    name_output(session, stem);
    (void)snprintf(file, sizeof(file), "%s.xentrace", stem);
    (void)unlinkat(context->state_dir_fd, file, 0);
    (void)snprintf(file, sizeof(file), "%s.json", session->name);
    (void)unlinkat(context->state_dir_fd, file, 0);
}

static int write_first_sidecar(struct session *session, struct failure *failure)
{
    int r;

    domain_names_refresh(session->context->names);
    domains_update(&session->domains, session->context->names, session->started.realtime_ns);
    if (!session->sidecar_path)
        return 0;
    r = sidecar_write(session->context->state_dir_fd, session->name, session->sidecar_fd,
                      document_of_session(session));
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT, "Cannot write %s: %s.", session->sidecar_path,
                           strerror(-r));
    return 0;
}

int session_prepare(struct session *session, const struct session_options *options,
                    struct failure *failure)
{
    const struct session_context *context = session->context;
    int r;

    r = check_limits(session, options, failure);
    if (r >= 0)
        r = check_reserve(session, options, failure);
    if (r >= 0)
        r = segments_new(options, xen_host_info(context->xen)->nr_cpus, &session->segments,
                         failure);
    if (r >= 0)
        r = parse_selection(session, options, failure);
    if (r >= 0)
        r = open_output(session, options, failure);
    if (r >= 0)
        r = tracing_prepare(context->tracing, options->buffer_pages, context->default_buffer_pages,
                            failure);
    if (r >= 0)
        r = make_ring(session, options, failure);
    session->started = options->since ? *options->since : clock_pair_now();
    if (r >= 0)
        r = make_data_plane(session, options, failure);
    if (r >= 0)
        r = write_first_sidecar(session, failure);
    return r;
}
