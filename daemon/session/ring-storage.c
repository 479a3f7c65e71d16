// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A ring that has an output is written to it by the output's worker, when the session has ended;
 * the space for it was taken when the session was started, for its end is no time to find that
 * there is none.
 */

#include "daemon/session/ring-storage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/host/explain.h"
#include "daemon/host/host.h"
#include "daemon/output/output.h"
#include "daemon/session/ring-share.h"
#include "daemon/session/space.h"

#define PATIENCE_USEC (5 * USEC_PER_SEC) /* with a reader, since it read last */

/* Makes or frees the recorder's memory, on a worker of its own: it has no output that has one. */
struct ring_job {
    struct job job;
    struct ring_storage *storage; /* the main thread's; NULL: it has been freed */
    struct ring *ring;
    uint64_t bytes;
    unsigned int nr_cpus;
    struct grower *grower;
    int error;
};

static struct ring_storage *ring_of(struct storage *storage)
{
    return (struct ring_storage *)storage; /* its first member */
}

struct ring_storage *ring_storage_of(const struct session *session)
{
    return session->storage->kind == &storage_ring ? ring_of(session->storage) : NULL;
}

/* --- Making. --- */

static int refuse_memory(const struct ring_storage *ring, struct failure *failure)
{
    char wanted[UNITS_TEXT_MAX], min[UNITS_TEXT_MAX];

    if (ring->memory_bytes < RING_MIN_BYTES)
        return failure_set(
            failure, -EINVAL, ERROR_INVALID, "A ring of %s is too small: use at least %s.",
            size_format(wanted, ring->memory_bytes), size_format(min, RING_MIN_BYTES));
    return ring_share_check(ring->storage.session->context->ring_share, ring->is_of_user,
                            ring->memory_bytes, host_available_bytes(), failure);
}

static void count_memory(struct ring_storage *ring)
{
    ring->shared_bytes = ring->memory_bytes;
    ring_share_take(ring->storage.session->context->ring_share, ring->is_of_user,
                    ring->shared_bytes);
}

static void uncount_memory(struct ring_storage *ring)
{
    if (ring->shared_bytes)
        ring_share_give(ring->storage.session->context->ring_share, ring->is_of_user,
                        ring->shared_bytes);
    ring->shared_bytes = 0;
}

static int check_options(const struct ring_storage *ring, const struct session_options *options,
                         struct failure *failure)
{
    if (ring->storage.space.on_reserve == ON_RESERVE_PAUSE)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A ring reserves its space on the disk when it starts, and never "
                           "pauses: use either --memory or --on-reserve pause.");
    if (options->max_size_bytes)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "A ring does not end at a size: use either --memory or --max-size.");
    /* Before space for it is taken on the disk, which may be all there is. */
    return options->ring ? 0 : refuse_memory(ring, failure);
}

static struct storage *ring_storage_free(struct storage *storage)
{
    struct ring_storage *ring = ring_of(storage);

    if (ring->job)
        ring->job->storage = NULL;
    uncount_memory(ring);
    ring->patience_source = sd_event_source_disable_unref(ring->patience_source);
    space_stop_waiting(storage);
    if (storage->output && output_is_busy(storage->output, OUTPUT_RUN)) {
        /* The process is about to end, and the worker may not be done with the ring before. */
        ring_write_abort(&ring->write);
        output_free(storage->output);
        return NULL;
    }
    sink_free(storage->sink);
    ring_free(ring->ring);
    ring_free(ring->made);
    output_free(storage->output);
    free(ring);
    return NULL;
}

int ring_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure)
{
    struct ring_storage *ring = calloc(1, sizeof(*ring));
    int r;

    if (!ring)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    ring->memory_bytes = options->memory_bytes;
    ring->max_age_usec = options->max_age_usec;
    ring->is_of_user = requester_is_user(&options->requester);
    r = storage_init(&ring->storage, &storage_ring, session, options, failure);
    if (r >= 0)
        r = check_options(ring, options, failure);
    if (r < 0) {
        ring_storage_free(&ring->storage);
        return r;
    }
    count_memory(ring);
    *ret_storage = &ring->storage;
    return 0;
}

/* --- Its memory: a GiB takes most of a second to populate and to unmap, so a worker does it. ---
 */

static int ring_storage_run_make(struct output_file *file, void *argument, struct failure *failure)
{
    struct ring_storage *ring = argument;
    char wanted[UNITS_TEXT_MAX];
    int r;

    (void)file;
    r = ring_new(ring->memory_bytes, ring->storage.session->selection.nr_cpus, false,
                 ring->storage.session->context->grower, &ring->made);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "No memory for a ring of %s: %s.",
                           size_format(wanted, ring->memory_bytes), strerror(-r));
    return 0;
}

static int ring_storage_run_free(struct output_file *file, void *argument, struct failure *failure)
{
    struct ring_storage *ring = argument;

    (void)file, (void)failure;
    ring->made = ring_free(ring->made);
    return 0;
}

static void ring_job_free(struct ring_job *job)
{
    if (job->storage)
        job->storage->job = NULL;
    free(job);
}

/* JOB is given away on success. */
static int ring_storage_send(struct ring_storage *storage, struct ring_job *job)
{
    struct worker *worker;
    int r;

    r = worker_new(storage->storage.session->context->workers, "ring", &worker);
    if (r < 0)
        return r;
    job->storage = storage;
    storage->job = job;
    worker_send(worker, &job->job);
    worker_free(worker); /* it ends with its job */
    return 0;
}

static void ring_job_run_make(struct job *job)
{
    struct ring_job *make = job_container(job, struct ring_job, job);

    make->error = ring_new(make->bytes, make->nr_cpus, true, make->grower, &make->ring);
}

static void ring_job_make_done(struct job *job)
{
    struct ring_job *make = job_container(job, struct ring_job, job);
    struct ring_storage *storage = make->storage;
    int error = make->error;
    struct failure failure = {0};
    char wanted[UNITS_TEXT_MAX];

    if (!storage)
        ring_free(make->ring);
    else
        storage->made = make->ring;
    ring_job_free(make);
    if (!storage)
        return;
    if (error < 0)
        (void)failure_set(&failure, error, ERROR_NO_MEMORY, "No memory for a ring of %s: %s.",
                          size_format(wanted, storage->memory_bytes), strerror(-error));
    session_handle_opened(storage->storage.session, NULL, error, &failure);
}

/* The session receives session_handle_opened(). */
static int ring_storage_make_later(struct ring_storage *storage, struct failure *failure)
{
    const struct session *session = storage->storage.session;
    struct ring_job *make = calloc(1, sizeof(*make));
    int r;

    if (!make)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    *make = (struct ring_job){
        .job = {.run = ring_job_run_make, .done = ring_job_make_done},
        .bytes = storage->memory_bytes,
        .nr_cpus = session->selection.nr_cpus,
        .grower = session->context->grower,
    };
    r = ring_storage_send(storage, make);
    if (r < 0) {
        free(make);
        return failure_set(failure, r, ERROR_NO_MEMORY, "Cannot start a thread: %s.", strerror(-r));
    }
    return 0;
}

static void ring_job_run_free(struct job *job)
{
    struct ring_job *unmap = job_container(job, struct ring_job, job);

    unmap->ring = ring_free(unmap->ring);
}

static void ring_storage_handle_freed(void *userdata, int error, const struct failure *failure);

static void ring_job_free_done(struct job *job)
{
    struct ring_job *unmap = job_container(job, struct ring_job, job);
    struct ring_storage *storage = unmap->storage;

    ring_job_free(unmap);
    if (storage)
        ring_storage_handle_freed(storage, 0, NULL);
}

/* ring_storage_handle_freed() follows; at once if there is no thread for it. */
static void ring_storage_free_later(struct ring_storage *storage)
{
    struct ring_job *unmap = calloc(1, sizeof(*unmap));

    if (unmap) {
        unmap->job = (struct job){.run = ring_job_run_free, .done = ring_job_free_done};
        unmap->ring = storage->made;
        if (ring_storage_send(storage, unmap) >= 0) {
            storage->made = NULL;
            return;
        }
        free(unmap);
    }
    storage->made = ring_free(storage->made);
    ring_storage_handle_freed(storage, 0, NULL);
}

static void ring_storage_handle_made(void *userdata, int error, const struct failure *failure)
{
    struct ring_storage *ring = userdata;

    session_limit_start(ring->storage.session);
    storage_handle_opened(&ring->storage, error, failure);
}

static void ring_storage_handle_opened(void *userdata, int error, const struct failure *failure)
{
    struct ring_storage *ring = userdata;
    struct session *session = ring->storage.session;

    if (error < 0 || session->state != SESSION_OPENING) {
        storage_handle_opened(&ring->storage, error, failure);
        return;
    }
    session_unlimit_start(session); /* the disk has answered */
    output_run(ring->storage.output, ring_storage_run_make, ring, ring_storage_handle_made);
}

static int ring_storage_open(struct storage *storage, const struct session_options *options,
                             struct failure *failure)
{
    struct output_request request = storage_request(storage, storage->session->name, options);

    ring_of(storage)->offered = options->ring;
    if (options->is_recorder)
        return options->makes_ring_later ? ring_storage_make_later(ring_of(storage), failure) : 1;
    request.require_bytes = options->memory_bytes;
    request.is_packed = storage->session->settings.is_packed;
    return storage_open_output(storage, &request, ring_storage_handle_opened, failure);
}

/* A ring that was taken over continues where Xen's consumer stood. */
static int resume_buffers(const struct session *session, const struct ring *ring,
                          struct failure *failure)
{
    struct drain *drain = collector_drain(session->context->collector);
    unsigned int last_cpu;

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        uint32_t xen_cons, cons;

        if (!cpu_set_has(ring_cpus(ring), cpu) || !drain_read_cons(drain, cpu, &xen_cons))
            continue;
        if (!ring_resume_cpu(ring, cpu, xen_cons, &cons) || drain_resume_cpu(drain, cpu, cons) < 0)
            return failure_set(
                failure, -EBADMSG, ERROR_XEN,
                "another program has read the trace buffer of CPU %u in the meantime", cpu);
    }
    if (ring_last_cpu(ring, &last_cpu))
        drain_resume_round(drain, last_cpu);
    return 0;
}

/* Takes over the ring that is offered, takes the one that was made, or makes the recorder's. */
static int take_ring(struct ring_storage *ring, struct ring **ret_ring, struct failure *failure)
{
    const struct session *session = ring->storage.session;
    char wanted[UNITS_TEXT_MAX];
    int r;

    if (ring->offered) {
        if (ring_buffer_pages(ring->offered) != tracing_buffer_pages(session->context->tracing))
            return failure_set(failure, -EBADMSG, ERROR_XEN,
                               "it is from trace buffers of another size");
        *ret_ring = ring->offered;
        return resume_buffers(session, ring->offered, failure);
    }
    if (ring->made) {
        *ret_ring = TAKE_PTR(ring->made);
        return 0;
    }
    r = ring_new(ring->memory_bytes, session->selection.nr_cpus, true, session->context->grower,
                 ret_ring);
    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "No memory for a ring of %s: %s.",
                           size_format(wanted, ring->memory_bytes), strerror(-r));
    return 0;
}

static int ring_storage_make_sink(struct storage *storage, struct watch_set *watch,
                                  struct failure *failure)
{
    const struct session *session = storage->session;
    struct ring_storage *ring_storage = ring_of(storage);
    uint32_t khz = xen_host_info(session->context->xen)->tsc_khz;
    const struct sink_config config = {
        .fd = -1,
        .poll_usec = session->settings.poll_usec,
        .discard = session->settings.discard,
        .watch = watch,
        .max_age_tsc = clock_tsc_of_usec(ring_storage->max_age_usec, khz),
        .events = session->selection.events,
        .cpus = session->selection.cpus,
        .nr_cpus = session->selection.nr_cpus,
    };
    struct ring *ring;
    int r;

    r = take_ring(ring_storage, &ring, failure);
    if (r < 0)
        return r;
    ring_set_source(ring, &session->selection.cpus,
                    tracing_buffer_pages(session->context->tracing));
    r = sink_new_ring(&config, ring, &storage->sink);
    if (r < 0) {
        if (!ring_storage->offered)
            ring_free(ring);
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    }
    ring_storage->ring = ring;
    ring_storage->offered = NULL;
    return 0;
}

static void ring_storage_handle_message(struct storage *storage, const struct message *message)
{
    (void)storage, (void)message; /* it has one sink, which the session knows */
}

/* --- The end. --- */

/* Its figures stay; its memory is wanted elsewhere. */
static void release_ring(struct ring_storage *ring)
{
    if (!ring->ring)
        return;
    if (ring->storage.sink)
        sink_release_ring(ring->storage.sink);
    ring->made = TAKE_PTR(ring->ring);
}

static void ring_storage_handle_freed(void *userdata, int error, const struct failure *failure)
{
    struct ring_storage *ring = userdata;

    (void)error, (void)failure;
    uncount_memory(ring);
    if (ring->storage.session->start_failure.name)
        storage_remove_output(&ring->storage);
    else
        session_handle_finished(ring->storage.session);
}

/* The last step: gives back the memory. */
static void ring_storage_end(struct ring_storage *ring)
{
    ring->patience_source = sd_event_source_disable_unref(ring->patience_source);
    release_ring(ring);
    if (ring->made && ring->storage.output) {
        output_run(ring->storage.output, ring_storage_run_free, ring, ring_storage_handle_freed);
        return;
    }
    if (ring->made)
        ring_storage_free_later(ring);
    else
        ring_storage_handle_freed(ring, 0, NULL);
}

static void ring_storage_handle_cut(void *userdata, int error, const struct failure *failure)
{
    struct ring_storage *ring = userdata;

    (void)failure;
    if (error < 0)
        session_explain_finish(ring->storage.session, ring->storage.output, error);
    ring_storage_end(ring);
}

/* An empty ring is no failure: its file is empty then. */
static void explain_write_error(struct ring_storage *ring, int error, const struct failure *failure)
{
    struct session *session = ring->storage.session;

    if (error == -ENODATA || session->is_aborted)
        return;
    session->reason = END_OUTPUT_ERROR;
    if (failure->name)
        (void)snprintf(session->message, sizeof(session->message), "%s", failure->text);
    else
        (void)snprintf(session->message, sizeof(session->message),
                       "Cannot write %s: %s. The windows written before are readable; the "
                       "remaining records are counted as dropped.",
                       ring->storage.output->figures.path, explain_write(error));
}

static void ring_storage_handle_written(void *userdata, int error, const struct failure *failure)
{
    struct ring_storage *ring = userdata;
    const struct ring_write *write = &ring->write;

    ring->final_bytes = write->written_bytes;
    if (error < 0) {
        explain_write_error(ring, error, failure);
        ring_drop_from(ring->ring,
                       write->is_planned ? write->unwritten
                                         : ring_pin_first(ring->ring, write->pin),
                       write->is_partly_written,
                       ring->storage.session->is_aborted ? DROP_ABORTED : DROP_OUTPUT_FAILED);
    }
    ring_advance_pin(ring->ring, write->pin, NULL);
    output_finish(ring->storage.output, ring->final_bytes, ring_storage_handle_cut);
}

static int ring_storage_handle_patience(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct ring_storage *ring = userdata;
    uint64_t progress_usec = ring_write_progress_usec(&ring->write);
    uint64_t end_usec = max_u64(ring->patient_since_usec, progress_usec) + PATIENCE_USEC;

    if (usec >= end_usec) {
        ring_write_abort(&ring->write);
        return 0;
    }
    /* Neither can fail for a source that exists, in this process. */
    (void)sd_event_source_set_time(source, end_usec);
    (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    return 0;
}

static void ring_storage_limit_patience(struct ring_storage *ring)
{
    sd_event *event = ring->storage.session->context->event;

    if (!ring->storage.output->figures.is_stream)
        return;
    /* Cannot fail for a clock that exists. */
    (void)sd_event_now(event, CLOCK_MONOTONIC, &ring->patient_since_usec);
    (void)sd_event_add_time(event, &ring->patience_source, CLOCK_MONOTONIC,
                            ring->patient_since_usec + PATIENCE_USEC, USEC_PER_MSEC,
                            ring_storage_handle_patience, ring);
}

static void ring_storage_finish(struct storage *storage)
{
    struct session *session = storage->session;
    struct ring_storage *ring = ring_of(storage);
    int pin;

    if (session->start_failure.name || !storage->output) {
        ring_storage_end(ring);
        return;
    }
    pin = ring_take_pin(ring->ring);
    if (pin < 0) { /* no snapshot is left that could hold one */
        session_explain_finish(session, storage->output, pin);
        ring_storage_end(ring);
        return;
    }
    ring_close_chunk(ring->ring); /* if the collector has died; nothing fills it any more */
    ring_pin_closed(ring->ring, pin);
    ring->write = (struct ring_write){
        .ring = ring->ring,
        .pin = pin,
        .nr_cpus = session->selection.nr_cpus,
        .bounds = {.verify_seq = ring->adopted_seq},
        .is_aborted = session->is_aborted,
        .is_packed = session->settings.is_packed,
    };
    ring_storage_limit_patience(ring);
    output_run(storage->output, ring_write_run, &ring->write, ring_storage_handle_written);
    session_expect_answer(session);
}

static uint64_t ring_storage_progress_usec(const struct storage *storage)
{
    return ring_write_progress_usec(&((const struct ring_storage *)storage)->write);
}

/* While the ring is written; else nothing is on its way to a disk. */
static void ring_storage_abort(struct storage *storage)
{
    ring_write_abort(&ring_of(storage)->write);
}

const struct storage_kind storage_ring = {
    .name = "ring",
    .open = ring_storage_open,
    .make_sink = ring_storage_make_sink,
    .handle_message = ring_storage_handle_message,
    .abort = ring_storage_abort,
    .finish = ring_storage_finish,
    .progress_usec = ring_storage_progress_usec,
    .free = ring_storage_free,
};
