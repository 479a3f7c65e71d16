// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The collector sends a message when records are missing, twice a second at most. A message that it
 * saved is made up for here: after each report there is another look, and reports end with a look
 * that finds nothing new.
 */

#include "daemon/session/loss-report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/ledger.h"
#include "collector/sink.h"
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
    uint64_t drops[DROP_CAUSES];
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
    struct sink_totals totals;

    for (unsigned int cpu = 0; cpu < report->nr_cpus; cpu++) {
        struct loss_count *known = &report->counts[cpu];
        struct ledger ledger;

        session_read_ledger(session, cpu, &ledger);
        if (ledger.lost > known->lost) {
            ret_losses->count.lost += ledger.lost - known->lost;
            cpu_set_add(&ret_losses->lost_cpus, cpu);
        }
        if (ledger.dropped > known->dropped)
            cpu_set_add(&ret_losses->dropped_cpus, cpu);
        *known = (struct loss_count){.lost = ledger.lost, .dropped = ledger.dropped};
    }
    if (cpu_set_count(&ret_losses->dropped_cpus) == 0)
        return;
    /* Read after the ledger, which the collector enters a drop into after its cause. */
    session_read_totals(session, &totals);
    for (unsigned int i = 0; i < DROP_CAUSES; i++) {
        ret_losses->drops[i] = totals.drops[i] - min_u64(report->drops[i], totals.drops[i]);
        ret_losses->count.dropped += ret_losses->drops[i];
        report->drops[i] = totals.drops[i];
    }
}

/* "3 records of CPUs 0-2 were ..." */
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

/* Returns "dropped: WHY. ADVICE", for each cause; with several, each has its count before it. */
static char *describe_drops(const struct losses *losses)
{
    char *text = strdup("dropped:");

    for (unsigned int i = 0; text && i < DROP_CAUSES; i++) {
        const struct drop_cause_text *cause = &drop_causes[i];
        char count[32] = "", *longer;

        if (losses->drops[i] == 0)
            continue;
        if (losses->drops[i] != losses->count.dropped)
            (void)snprintf(count, sizeof(count), " %" PRIu64 " because", losses->drops[i]);
        if (asprintf(&longer, "%s%s %s. %s", text, count, cause->why, cause->advice) < 0)
            longer = NULL;
        free(text);
        text = longer;
    }
    return text;
}

/* Whether there was anything. */
static bool loss_report_log(struct session *session)
{
    _cleanup_free_ char *why = NULL;
    struct losses losses = {0};

    loss_report_take(session, &losses);
    why = losses.count.dropped ? describe_drops(&losses) : NULL;
    log_missing(session, LOG_ID_RECORDS_LOST, losses.count.lost, &losses.lost_cpus,
                "lost: Xen's trace buffers were full. Record fewer events, or set larger buffers "
                "(buffer-pages=) and reboot the host.");
    log_missing(session, LOG_ID_RECORDS_DROPPED, losses.count.dropped, &losses.dropped_cpus,
                why ? why : "dropped.");
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
