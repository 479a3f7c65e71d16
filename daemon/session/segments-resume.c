// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segmented capture that an earlier daemon has begun. It is recorded from the first round on,
 * into a sink that holds: Xen's buffers keep what comes, or, if another session takes it, it is
 * dropped and counted. Meanwhile the worker reads what the next segment has to report: the files
 * that the state does not include. Then that segment is made, and its sink takes over. The finished
 * ones, which may be thousands, are read beside it, by a worker of their own.
 *
 * The ledger: the account says what was taken from Xen, the state what became of it up to the last
 * finished segment, and the files what else reached the disk. The difference was in the memory of
 * the daemon that ended: the capture has dropped it, and the next segment reports it. Records of
 * finished segments count as delivered until all of these are read; those that were not found are
 * evicted then.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/account.h"
#include "collector/collector.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/log.h"
#include "daemon/session/loss-report.h"
#include "daemon/session/persist.h"
#include "daemon/session/segment-recovery.h"
#include "daemon/session/segments-state.h"

#define SETTLE_PAUSE_NSEC 1000000
#define SIDECARS_AHEAD    16u /* being written: the capture's worker has other work, too */

struct segments_resume {
    struct job job;
    struct segments *segments;
    struct recovery_request request;
    char name[SESSION_NAME_MAX + 1];
    const struct account *account;
    struct recovery recovery;
    struct ledger *added; /* [nr_cpus]: what was found out; NULL: of a new run */
    size_t nr_left;       /* the first of `recovery`, which are not completed yet */
    uint64_t *unseen;     /* [nr_cpus]: delivered by finished segments that are not read yet */
    int error;
    struct failure failure;
};

/* --- On the worker. --- */

static void resume_run(struct job *job)
{
    struct segments_resume *resume = job_container(job, struct segments_resume, job);
    const struct timespec pause = {.tv_nsec = SETTLE_PAUSE_NSEC};

    while (!account_is_settled(resume->account)) /* before the collector's first round */
        (void)nanosleep(&pause, NULL);
    resume->error = recovery_read(&resume->request, &resume->recovery, &resume->failure);
}

static void resume_run_completion(struct job *job)
{
    struct segments_resume *resume = job_container(job, struct segments_resume, job);

    resume->error =
        recovery_complete(&resume->request, &resume->recovery.segments[resume->nr_left - 1]);
}

/* --- Main thread. --- */

static void sum_segments(const struct recovery *recovery, unsigned int cpu,
                         struct recovered_sums *sums)
{
    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovered_cpu *line = &recovery->segments[i].cpus[cpu];

        if (!recovery->segments[i].is_read)
            continue;
        sums->last_tsc = max_u64(sums->last_tsc, line->last_tsc);
        sums->read += line->delivered;
        sums->told += line->told;
    }
}

uint64_t segments_settle_ledger(struct ledger *past, struct account_sum taken,
                                const struct recovered_sums *sums, struct ledger *ret_added)
{
    uint64_t produced = taken.produced - min_u64(past->produced, taken.produced);
    uint64_t lost = min_u64(taken.lost - min_u64(past->lost, taken.lost), produced);
    uint64_t to_report;

    produced = max_u64(produced, sums->read + lost); /* else the account is older than the disk */
    to_report = produced + sums->pending;
    *ret_added = (struct ledger){
        .produced = produced,
        .delivered = sums->read,
        .lost = lost,
        .dropped = produced - sums->read - lost,
    };
    past->produced += produced;
    past->lost += lost;
    past->dropped += ret_added->dropped;
    past->delivered += sums->read;
    return to_report - min_u64(sums->read + sums->told, to_report);
}

/* The line of CPU in a segment's own ledger. What was not read from it is the last one's. */
static struct ledger line_of(const struct recovered_segment *recovered, unsigned int cpu,
                             const struct ledger *added)
{
    struct ledger line = {
        .delivered = recovered->cpus[cpu].delivered,
        .last_tsc = recovered->cpus[cpu].last_tsc,
    };

    if (added) {
        line.lost = added[cpu].lost;
        line.dropped = added[cpu].dropped;
    }
    line.produced = line.delivered + line.lost + line.dropped;
    return line;
}

/* The last one that was being written; NULL: none was. */
static struct recovered_segment *find_last_read(const struct recovery *recovery)
{
    for (size_t i = recovery->count; i-- > 0;)
        if (recovery->segments[i].is_read)
            return &recovery->segments[i];
    return NULL;
}

static void resume_date(const struct session *session, struct segment *segment)
{
    segment->first_ns = clock_history_realtime_ns(session->context->clock, segment->first_tsc);
    segment->last_ns = clock_history_realtime_ns(session->context->clock, segment->last_tsc);
}

/* Of an older run of a configured capture nothing is in this one's ledger. */
static void resume_list_segments(struct segments *segments, const struct recovery *recovery)
{
    uint64_t *delivered = calloc(segments->nr_cpus, sizeof(*delivered));

    for (size_t i = 0; i < recovery->count && delivered; i++) {
        struct recovered_segment *recovered = &recovery->segments[i];
        bool is_older = recovered->segment.number < segments->first_number;

        for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++)
            delivered[cpu] = is_older ? 0 : recovered->cpus[cpu].delivered;
        if (recovered->is_read)
            resume_date(segments_session(segments), &recovered->segment);
        segments_list_old(segments, &recovered->segment, delivered, recovered->is_unread);
    }
    free(delivered);
}

/* Brings the ledger up to date. Returns how many records were dropped in between. */
static uint64_t resume_settle(struct segments *segments, const struct recovery *recovery,
                              struct ledger *added)
{
    const struct session *session = segments_session(segments);
    uint64_t dropped = 0;

    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
        struct recovered_sums sums = {
            .pending = segments->missing[cpu].records,
            .last_tsc = segments->past[cpu].last_tsc,
        };
        uint64_t since_tsc = clock_pair_tsc(session->started);
        uint64_t missing;

        sum_segments(recovery, cpu, &sums);
        missing = segments_settle_ledger(&segments->past[cpu], account_base(session->account, cpu),
                                         &sums, &added[cpu]);
        segments->past[cpu].last_tsc = sums.last_tsc;
        segments->missing[cpu] = (struct missing){
            .records = missing,
            .since_tsc = sums.last_tsc ? sums.last_tsc : since_tsc,
        };
        segments->missing_before += missing;
        dropped += added[cpu].dropped;
    }
    return dropped;
}

static void resume_add_totals(struct segments *segments, const struct recovery *recovery)
{
    struct sink_totals *totals = &segments->past_totals;

    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovered_segment *segment = &recovery->segments[i];

        if (!segment->is_read)
            continue;
        segments->written++;
        totals->output_bytes += segment->segment.bytes;
        totals->plain_bytes += segment->segment.plain_bytes;
        totals->windows += segment->windows;
        for (unsigned int n = 0; n < EVENT_CLASSES; n++)
            totals->class_records[n] += segment->class_records[n];
    }
}

static void resume_take(struct segments_resume *resume)
{
    struct segments *segments = resume->segments;
    const struct recovery *recovery = &resume->recovery;
    struct recovered_segment *last = find_last_read(recovery);
    uint64_t dropped = 0;

    if (!segments->is_new_run) {
        resume->added = calloc(segments->nr_cpus, sizeof(*resume->added));
        resume->unseen = calloc(segments->nr_cpus, sizeof(*resume->unseen));
    }
    for (unsigned int cpu = 0; resume->unseen && cpu < segments->nr_cpus; cpu++)
        resume->unseen[cpu] = segments->past[cpu].delivered;
    if (resume->added)
        dropped = resume_settle(segments, recovery, resume->added);
    if (!segments->is_new_run)
        resume_add_totals(segments, recovery);
    segments->past_totals.drops[DROP_RESTART] += dropped;
    if (last)
        last->segment.dropped = dropped;
    if (recovery->last_number > segments->number)
        segments->number = recovery->last_number;
    if (segments->is_new_run)
        segments->first_number = segments->number + 1;
    resume_list_segments(segments, recovery);
    segments->is_recovered = true;
    segments->due = SEGMENT_TIME; /* the first one begins at once */
    segments_advance(segments);   /* first, since records wait for it */
    persist_save(segments_session(segments));
}

static void resume_fail(struct segments *segments, const struct failure *failure)
{
    struct session *session = segments_session(segments);

    if (session->is_aborted)
        return;
    (void)snprintf(session->message, sizeof(session->message), "%s", failure->text);
    session_end_output(session, END_OUTPUT_ERROR);
}

/* All is over, or given up: the session may be waiting for it. */
static void resume_end(struct segments_resume *resume)
{
    struct segments *segments = resume->segments;

    segments->reader = worker_free(segments->reader);
    free(resume->added);
    free(resume->unseen);
    recovery_done(&resume->recovery);
    free(resume);
    segments->is_recovering = false;
    if (!segments->is_released)
        session_continue_end(segments_session(segments)); /* may free the segments */
}

/* RECOVERED has gone, or cannot be read; of one that was read in time only the sync failed. */
static void resume_note_error(const struct segments_resume *resume,
                              const struct recovered_segment *recovered)
{
    struct segments *segments = resume->segments;
    const char *name = segments_session(segments)->name;
    unsigned int number = recovered->segment.number;

    if (resume->error > 0 || resume->error == -ENOENT) {
        if (recovered->is_unread)
            segments_drop_old(segments, number);
        return;
    }
    if (recovered->is_unread)
        log_line(LOG_WARNING, name, "Cannot read segment %u: %s. Its records count as evicted.",
                 number, strerror(-resume->error));
    else
        log_line(LOG_WARNING, name,
                 "Cannot sync segment %u: %s. It is complete, but a power cut may truncate it, and "
                 "it has no sidecar.",
                 number, strerror(-resume->error));
}

/* Enters a segment that was read, and has the sidecar written that it lacks. */
static void resume_enter(struct segments_resume *resume, struct recovered_segment *recovered)
{
    struct segments *segments = resume->segments;
    bool is_older = recovered->segment.number < segments->first_number;
    bool is_last = recovered->is_read && recovered == find_last_read(&resume->recovery);
    uint64_t *delivered = calloc(segments->nr_cpus, sizeof(*delivered));
    struct ledger *lines = calloc(segments->nr_cpus, sizeof(*lines));

    for (unsigned int cpu = 0; delivered && lines && cpu < segments->nr_cpus; cpu++) {
        delivered[cpu] = is_older ? 0 : recovered->cpus[cpu].delivered;
        lines[cpu] = line_of(recovered, cpu, is_last ? resume->added : NULL);
        if (resume->unseen && !recovered->is_read)
            resume->unseen[cpu] -= min_u64(delivered[cpu], resume->unseen[cpu]);
    }
    if (delivered && lines) {
        if (!recovered->has_sidecar)
            resume_date(segments_session(segments), &recovered->segment);
        segments_update_old(segments, &recovered->segment, delivered);
        recovered->segment.ledger = lines;
        /* Its daemon ended first. Those of more, which somebody removed, wait for a restart. */
        if (!recovered->has_sidecar && segments->nr_sidecars < SIDECARS_AHEAD)
            segments_write_sidecar(segments, &recovered->segment, NULL);
    }
    free(delivered);
    free(lines);
}

/* All finished segments were read: records of the others are not on the disk any more. */
static void resume_evict_unseen(struct segments_resume *resume)
{
    struct segments *segments = resume->segments;

    for (unsigned int cpu = 0; resume->unseen && cpu < segments->nr_cpus; cpu++) {
        segments->past[cpu].delivered -= resume->unseen[cpu];
        segments->past[cpu].evicted += resume->unseen[cpu];
    }
}

static void resume_completion_done(struct job *job);

/* The newest ones first: these are shown. */
static void resume_complete_next(struct segments_resume *resume)
{
    const struct segments *segments = resume->segments;
    const struct session *session = segments_session(segments);

    if (resume->nr_left == 0)
        resume_evict_unseen(resume);
    if (resume->nr_left == 0 || session->is_handed_over || session->is_aborted) {
        resume_end(resume);
        return;
    }
    resume->job = (struct job){.run = resume_run_completion, .done = resume_completion_done};
    worker_send(segments->reader ? segments->reader : session->worker, &resume->job);
}

static void resume_completion_done(struct job *job)
{
    struct segments_resume *resume = job_container(job, struct segments_resume, job);
    struct recovered_segment *recovered = &resume->recovery.segments[--resume->nr_left];

    if (resume->segments->is_released) {
        resume_end(resume);
        return;
    }
    if (recovered->segment.number > resume->segments->gone_number) {
        if (resume->error != 0)
            resume_note_error(resume, recovered);
        else
            resume_enter(resume, recovered);
    }
    resume_complete_next(resume);
}

/* A capture of the configuration replaces the sidecar of its last run, and no other. */
static void resume_take_sidecar(struct session *session, const struct recovery *recovery)
{
    if (!recovery->sidecar_is_foreign) {
        session->sidecar.is_ours = true;
        return;
    }
    log_line(
        LOG_WARNING, session->name,
        "%s is another capture's sidecar, and stays as it is. Only the segments have sidecars. "
        "To have one for the whole capture, rename %s or the other one, and restart xentraced.",
        session->sidecar.path, session->name);
    sidecar_done(&session->sidecar, NULL);
}

static void resume_done(struct job *job)
{
    struct segments_resume *resume = job_container(job, struct segments_resume, job);
    struct segments *segments = resume->segments;

    if (!segments->is_released)
        resume_take_sidecar(segments_session(segments), &resume->recovery);
    if (!segments->is_released && resume->error < 0)
        resume_fail(segments, &resume->failure);
    if (segments->is_released || resume->error < 0) {
        resume_end(resume);
        return;
    }
    resume_take(resume);
    resume->nr_left = resume->recovery.count;
    /* Without a worker of its own, the capture's: its jobs wait for this now and then. */
    (void)worker_new(segments_session(segments)->context->workers, "recovery", &segments->reader);
    resume_complete_next(resume);
}

void segments_resume(struct segments *segments)
{
    const struct session *session = segments_session(segments);
    const struct session_context *context = session->context;
    struct segments_resume *resume = calloc(1, sizeof(*resume));
    const struct failure failure = {.text = "Out of memory."};

    segments->holds_since = clock_pair_now();
    if (!resume) {
        resume_fail(segments, &failure);
        return;
    }
    resume->job = (struct job){.run = resume_run, .done = resume_done};
    resume->segments = segments;
    resume->account = session->account;
    (void)strcpy(resume->name, session->name); /* of the same length */
    resume->request = (struct recovery_request){
        .directory_fd = context->state_dir_fd,
        .directory = context->state_dir,
        .name = resume->name,
        .nr_cpus = segments->nr_cpus,
        .has_state = !segments->is_new_run,
        .finished_number = segments->number,
    };
    segments->is_recovering = true;
    worker_send(session->worker, &resume->job);
}

int segments_take_state(struct segments *segments, const struct persist_state *state,
                        struct failure *failure)
{
    segments->is_holding = true;
    segments->is_new_run = !state;
    segments->number = 0;
    segments->missing = calloc(segments->nr_cpus, sizeof(*segments->missing));
    if (!segments->missing)
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "Out of memory.");
    if (!state)
        return 0;
    if (state->nr_cpus != segments->nr_cpus)
        return failure_set(failure, -EINVAL, ERROR_INVALID,
                           "The number of CPUs has changed since the restart.");
    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++)
        segments->missing[cpu].records = state->pending[cpu];
    memcpy(segments->past, state->past, segments->nr_cpus * sizeof(*segments->past));
    segments->past_totals = state->totals;
    segments->number = state->finished_number;
    segments->first_number = state->first_number;
    segments->written = state->written;
    segments->deleted = state->deleted;
    return 0;
}

int segments_make_holder(struct segments *segments, struct failure *failure)
{
    const struct session *session = segments_session(segments);
    const struct sink_config config = {
        .fd = -1,
        .align_bytes = RECORD_MIN_BYTES,
        .granted_bytes = SINK_NO_LIMIT,
        .max_bytes = SINK_NO_LIMIT,
        .poll_usec = session->settings.poll_usec,
        .account = session->account,
        .holds = true,
        .events = session->selection.events,
        .cpus = session->selection.cpus,
        .nr_cpus = session->selection.nr_cpus,
    };
    int r = sink_new(&config, session->context->pool, &segments->storage.sink);

    if (r < 0)
        return failure_set(failure, r, ERROR_NO_MEMORY, "Out of memory.");
    return 0;
}

void segments_pass_missing(struct segments *segments, struct sink *sink)
{
    for (unsigned int cpu = 0; cpu < segments->nr_cpus && segments->is_holding; cpu++)
        if (segments->missing[cpu].records > 0)
            sink_add_gap(sink, cpu, segments->missing[cpu].records,
                         segments->missing[cpu].since_tsc);
}

void segments_end_holding(struct segments *segments)
{
    struct session *session = segments_session(segments);
    uint64_t usec, now_usec = 0;

    segments->is_holding = false;
    segments->is_open = true;
    segments->before_held = true;
    segments->before_number = 0; /* it has no file */
    segments->number++;
    segments->continued_number = segments->number;
    segments->current_missing = segments->missing_before;
    if (segments->is_new_run)
        return;
    usec = clock_usec_between(segments->holds_since, clock_pair_now(),
                              xen_host_info(session->context->xen)->tsc_khz);
    log_line(LOG_INFO, session->name,
             "Continued after a restart of xentraced, with segment %u, which was ready after %llu "
             "ms.",
             segments->number, (unsigned long long)(usec / USEC_PER_MSEC));
    (void)sd_event_now(session->context->event, CLOCK_MONOTONIC, &now_usec); /* of its own thread */
    loss_report_look(session, now_usec);
}

/* Its records are in the past ledger now, and are reported by the first one, too. */
void segments_note_held(struct segments *segments, const struct sink *sink)
{
    for (unsigned int cpu = 0; cpu < segments->nr_cpus && segments->before_held; cpu++) {
        struct ledger ledger;

        sink_read_ledger(sink, cpu, &ledger);
        segments->missing[cpu].records += ledger.produced;
        segments->current_missing += ledger.produced; /* no other was begun: it waits for this */
    }
    segments->before_held = false;
}

void segments_stop_holding(struct segments *segments)
{
    /* No successor comes: records left in Xen's buffers are dropped, and counted. */
    if (segments->is_holding && segments->storage.sink)
        collector_send(segments_session(segments)->context->collector, MESSAGE_GRANT,
                       segments->storage.sink, true, 0);
}

unsigned int segments_finished_number(const struct segments *segments)
{
    if (segments->is_holding)
        return segments->number;
    if (segments->is_over)
        return segments->is_last_removed ? segments->number - 1 : segments->number;
    return segments->number - 1 - (segments->before && segments->before_number ? 1 : 0);
}

void segments_read_finished(const struct segments *segments, struct ledger *ret_past,
                            uint64_t *ret_pending, struct sink_totals *ret_totals)
{
    bool is_pending =
        segments->missing &&
        (segments->is_holding || segments_finished_number(segments) < segments->continued_number);

    /* The first one after a restart reports these, and is not finished. */
    for (unsigned int cpu = 0; cpu < segments->nr_cpus && is_pending; cpu++)
        ret_pending[cpu] = segments->missing[cpu].records;
    memcpy(ret_past, segments->past, segments->nr_cpus * sizeof(*ret_past));
    *ret_totals = segments->past_totals;
    if (segments->is_over && segments->storage.sink)
        segments_add_sink(segments->storage.sink, segments->nr_cpus, ret_past, ret_totals);
}
