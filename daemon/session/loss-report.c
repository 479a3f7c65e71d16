// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The collector sends a message when records are missing, twice a second at most. A message that it
 * saved is made up for here: after each report there is another look, and reports end with a look
 * that finds nothing new.
 */

#include "daemon/session/loss-report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/ledger.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/log-id.h"
#include "daemon/session/session-data.h"

#define ACCURACY_USEC (100 * USEC_PER_MSEC)

/* Records missing since the last report. */
struct losses {
    struct loss_count count;
    struct cpu_set lost_cpus, dropped_cpus;
};

void loss_report_done(struct loss_report *report)
{
    sd_event_source_disable_unref(report->source);
    free(report->counts);
    *report = (struct loss_report){0};
}

/* False: there is no memory. */
static bool loss_report_init(struct loss_report *report, unsigned int nr_cpus)
{
    if (!report->counts)
        report->counts = calloc(nr_cpus, sizeof(*report->counts));
    report->nr_cpus = report->counts ? nr_cpus : 0;
    return report->counts;
}

/* The ledger since the last time; RET_LOSSES is all zeroes before. */
static void loss_report_take(struct session *session, struct losses *ret_losses)
{
    struct loss_report *report = &session->losses;

    for (unsigned int cpu = 0; cpu < report->nr_cpus; cpu++) {
        struct loss_count *known = &report->counts[cpu];
        struct ledger ledger;

        session_read_ledger(session, cpu, &ledger);
        if (ledger.lost > known->lost) {
            ret_losses->count.lost += ledger.lost - known->lost;
            cpu_set_add(&ret_losses->lost_cpus, cpu);
        }
        if (ledger.dropped > known->dropped) {
            ret_losses->count.dropped += ledger.dropped - known->dropped;
            cpu_set_add(&ret_losses->dropped_cpus, cpu);
        }
        *known = (struct loss_count){.lost = ledger.lost, .dropped = ledger.dropped};
    }
}

/* "3 records of CPUs 0-2 ..." */
static void log_missing(const struct session *session, const char *id, uint64_t count,
                        const struct cpu_set *cpus, const char *why)
{
    _cleanup_free_ char *list = NULL;
    struct log_about about = {.id = id, .session = session->name};

    if (count == 0)
        return;
    if (cpu_set_format(cpus, &list) >= 0)
        about.cpus = list;
    log_event(LOG_WARNING, &about, "%" PRIu64 " record%s of CPU%s %s %s %s", count,
              count == 1 ? "" : "s", cpu_set_count(cpus) == 1 ? "" : "s", list ? list : "?",
              count == 1 ? "was" : "were", why);
}

/* Whether there was anything. */
static bool loss_report_log(struct session *session)
{
    struct losses losses = {0};

    loss_report_take(session, &losses);
    log_missing(session, LOG_ID_RECORDS_LOST, losses.count.lost, &losses.lost_cpus,
                "lost: Xen's trace buffers were full. Record fewer events, or set larger buffers "
                "(buffer-pages=) and reboot the host.");
    log_missing(session, LOG_ID_RECORDS_DROPPED, losses.count.dropped, &losses.dropped_cpus,
                "dropped: the output does not keep up, and its memory (pool-max=) is full. Record "
                "fewer events, use a faster disk, or set a larger pool-max=.");
    return losses.count.lost || losses.count.dropped;
}

static int loss_report_handle_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct timespec now;

    (void)source, (void)usec;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    loss_report_look(userdata,
                     (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC);
    return 0;
}

/* Without a timer the next message brings the next look. */
static void loss_report_set_timer(struct session *session)
{
    struct loss_report *report = &session->losses;

    if (!report->source) {
        (void)sd_event_add_time(session->context->event, &report->source, CLOCK_MONOTONIC,
                                report->next_usec, ACCURACY_USEC, loss_report_handle_timer,
                                session);
        return;
    }
    (void)sd_event_source_set_time(report->source, report->next_usec);
    (void)sd_event_source_set_enabled(report->source, SD_EVENT_ONESHOT);
}

void loss_report_begin(struct session *session)
{
    struct losses known = {0};

    if (loss_report_init(&session->losses, session->selection.nr_cpus))
        loss_report_take(session, &known);
}

void loss_report_look(struct session *session, uint64_t now_usec)
{
    struct loss_report *report = &session->losses;

    if (now_usec < report->next_usec || session->state == SESSION_ENDED ||
        !loss_report_init(report, session->selection.nr_cpus))
        return; /* the timer is set, or there is nothing to be done */
    if (!loss_report_log(session)) {
        report->next_usec = 0;
        report->interval_usec = 0;
        return;
    }
    report->interval_usec = min_u64(LOSS_REPORT_MAX_USEC, report->interval_usec * 2);
    report->interval_usec = max_u64(LOSS_REPORT_MIN_USEC, report->interval_usec);
    report->next_usec = now_usec + report->interval_usec;
    loss_report_set_timer(session);
}

void loss_report_finish(struct session *session)
{
    struct loss_report *report = &session->losses;

    if (loss_report_init(report, session->selection.nr_cpus))
        (void)loss_report_log(session);
    loss_report_done(report);
}
