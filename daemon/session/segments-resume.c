// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A segmented capture that an earlier daemon has begun. It is recorded from the first round on,
 * into a sink that holds: Xen's buffers keep what comes, or, if another session takes it, it is
 * dropped and counted. Meanwhile the worker finds out what is on the disk. Then the next segment is
 * made, and its sink takes over.
 *
 * The ledger: the account says what was taken from Xen, the state what became of it up to the last
 * finished segment, and the files what else reached the disk. The difference was in the memory of
 * the daemon that ended: the capture has dropped it, and the next segment reports it.
 */

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "collector/account.h"
#include "collector/collector.h"
#include "common/protocol.h"
#include "common/record.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/clock-history.h"
#include "daemon/base/log.h"
#include "daemon/session/persist.h"
#include "daemon/session/segment-recovery.h"
#include "daemon/session/segments-state.h"

#define SETTLE_PAUSE_NSEC 1000000

struct segments_resume {
    struct job job;
    struct segments *segments;
    struct recovery_request request;
    char name[SESSION_NAME_MAX + 1];
    const struct account *account;
    struct recovery recovery;
    struct ledger *added; /* [nr_cpus]: what was found out; NULL: of a new run */
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

/* --- Main thread. --- */

static void sum_segments(const struct recovery *recovery, unsigned int cpu,
                         unsigned int first_number, struct recovered_sums *sums)
{
    for (size_t i = 0; i < recovery->count; i++) {
        const struct recovered_cpu *line = &recovery->segments[i].cpus[cpu];

        if (recovery->segments[i].segment.number < first_number)
            continue; /* of an older run */
        sums->last_tsc = max_u64(sums->last_tsc, line->last_tsc);
        if (!recovery->segments[i].is_read) {
            sums->on_disk += line->delivered;
            continue;
        }
        sums->read += line->delivered;
        sums->told += line->told;
    }
}

uint64_t segments_settle_ledger(struct ledger *past, struct account_sum taken,
                                const struct recovered_sums *sums, struct ledger *ret_added)
{
    uint64_t produced = taken.produced - min_u64(past->produced, taken.produced);
    uint64_t lost = min_u64(taken.lost - min_u64(past->lost, taken.lost), produced);
    uint64_t gone = past->delivered - min_u64(sums->on_disk, past->delivered);
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
    past->delivered += sums->read - gone;
    past->evicted += gone;
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
        segments_list_old(segments, &recovered->segment, delivered);
    }
    free(delivered);
}

static void resume_write_sidecars(struct segments *segments, const struct recovery *recovery,
                                  const struct ledger *added)
{
    const struct recovered_segment *last = find_last_read(recovery);
    struct ledger *lines = calloc(segments->nr_cpus, sizeof(*lines));

    for (size_t i = 0; i < recovery->count && lines; i++) {
        struct recovered_segment *recovered = &recovery->segments[i];

        if (!recovered->is_read || recovered->has_sidecar)
            continue;
        for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++)
            lines[cpu] = line_of(recovered, cpu, recovered == last ? added : NULL);
        recovered->segment.ledger = lines;
        segments_write_sidecar(segments, &recovered->segment, NULL);
    }
    free(lines);
}

/* Brings the ledger up to date. Returns how many records were dropped in between. */
static uint64_t resume_settle(struct segments *segments, const struct recovery *recovery,
                              struct ledger *added)
{
    const struct session *session = segments_session(segments);
    uint64_t dropped = 0;

    for (unsigned int cpu = 0; cpu < segments->nr_cpus; cpu++) {
        struct recovered_sums sums = {.pending = segments->missing[cpu].records};
        uint64_t since_tsc = clock_pair_tsc(session->started);
        uint64_t missing;

        sum_segments(recovery, cpu, segments->first_number, &sums);
        missing = segments_settle_ledger(&segments->past[cpu], account_base(session->account, cpu),
                                         &sums, &added[cpu]);
        segments->past[cpu].last_tsc = max_u64(segments->past[cpu].last_tsc, sums.last_tsc);
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

static void resume_log(const struct segments *segments, uint64_t dropped)
{
    const struct session *session = segments_session(segments);

    if (segments->is_new_run)
        return;
    log_line(dropped ? LOG_WARNING : LOG_INFO, session->name,
             "Continued after a restart of xentraced, with segment %u. %llu records were in memory "
             "at the restart, and are counted as dropped.",
             segments->number + 1, (unsigned long long)dropped);
}

static void resume_take(struct segments_resume *resume)
{
    struct segments *segments = resume->segments;
    const struct recovery *recovery = &resume->recovery;
    struct recovered_segment *last = find_last_read(recovery);
    uint64_t dropped = 0;

    if (!segments->is_new_run)
        resume->added = calloc(segments->nr_cpus, sizeof(*resume->added));
    if (resume->added)
        dropped = resume_settle(segments, recovery, resume->added);
    if (!segments->is_new_run)
        resume_add_totals(segments, recovery);
    if (last)
        last->segment.dropped = dropped;
    if (recovery->last_number > segments->number)
        segments->number = recovery->last_number;
    if (segments->is_new_run)
        segments->first_number = segments->number + 1;
    resume_list_segments(segments, recovery);
    resume_log(segments, dropped);
    segments->is_recovered = true;
    segments->due = SEGMENT_TIME; /* the first one begins at once */
    segments_advance(segments);   /* first, since records wait for it */
    persist_save(segments_session(segments));
    resume_write_sidecars(segments, recovery, resume->added);
}

static void resume_fail(struct segments *segments, const struct failure *failure)
{
    struct session *session = segments_session(segments);

    if (session->is_aborted)
        return;
    (void)snprintf(session->message, sizeof(session->message), "%s", failure->text);
    session_end_output(session, END_OUTPUT_ERROR);
}

static void resume_done(struct job *job)
{
    struct segments_resume *resume = job_container(job, struct segments_resume, job);
    struct segments *segments = resume->segments;

    segments->is_recovering = false;
    if (!segments->is_released) {
        if (resume->error >= 0)
            resume_take(resume);
        else
            resume_fail(segments, &resume->failure);
        session_continue_end(segments_session(segments)); /* may free the segments */
    }
    free(resume->added);
    recovery_done(&resume->recovery);
    free(resume);
}

void segments_resume(struct segments *segments)
{
    const struct session *session = segments_session(segments);
    const struct session_context *context = session->context;
    struct segments_resume *resume = calloc(1, sizeof(*resume));
    const struct failure failure = {.text = "Out of memory."};

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
    segments->is_holding = false;
    segments->is_open = true;
    segments->before_held = true;
    segments->before_number = 0; /* it has no file */
    segments->number++;
    segments->continued_number = segments->number;
    segments->current_missing = segments->missing_before;
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
    /* Records left in Xen's buffers are no longer needed. */
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
