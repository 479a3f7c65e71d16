// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `state` is written by trigger_set_state() alone. Delaying, writing and retrying are left when the
 * caller reports what comes next. Off, cooling, exhausted and armed follow from facts (the ring,
 * the end of the cooldown, the times of the day's snapshots), which trigger_settle() looks at.
 */

#include "daemon/triggers/trigger.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/output/state-files.h"

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

/*
 * Pauses of a domain in a loop: with the default limits, some 15 snapshots of it in a day, and
 * another domain's crash is missed for two hours at most, when ten new ones came before.
 */
#define PAUSE_FIRST_USEC (600 * USEC_PER_SEC)
#define PAUSE_MAX_USEC   (7200 * USEC_PER_SEC)

const char *trigger_state_name(enum trigger_state state)
{
    switch (state) {
    case TRIGGER_OFF:
        return "off";
    case TRIGGER_ARMED:
        return "armed";
    case TRIGGER_DELAYING:
        return "delaying";
    case TRIGGER_WRITING:
        return "writing";
    case TRIGGER_RETRYING:
        return "retrying";
    case TRIGGER_COOLING:
        return "cooling";
    case TRIGGER_EXHAUSTED:
        return "exhausted";
    }
    return "off";
}

/* Room for COUNT snapshots, none of which was; NULL: no memory. */
static struct trigger_past *new_past(uint32_t count)
{
    struct trigger_past *past = calloc(count, sizeof(*past));

    for (uint32_t i = 0; i < count && past; i++)
        past[i].usec = TRIGGER_NO_TIME;
    return past;
}

int trigger_init(struct trigger *trigger, const struct trigger_config *config)
{
    assert(config->max_per_day > 0);
    *trigger = (struct trigger){.config = *config, .state = TRIGGER_OFF};
    trigger->past = new_past(config->max_per_day);
    return trigger->past ? 0 : -ENOMEM;
}

void trigger_done(struct trigger *trigger)
{
    free(trigger->past);
    free(trigger->last_snapshot);
    free(trigger->last_report);
    free(trigger->last_error);
    *trigger = (struct trigger){0};
}

static void trigger_set_state(struct trigger *trigger, enum trigger_state state)
{
    /* A snapshot comes from a delay or from nothing, and only its end leads out of it. */
    assert(state != TRIGGER_DELAYING || trigger->state == TRIGGER_ARMED);
    assert(state != TRIGGER_WRITING || trigger->state == TRIGGER_ARMED ||
           trigger->state == TRIGGER_DELAYING || trigger->state == TRIGGER_RETRYING);
    assert(state != TRIGGER_RETRYING || trigger->state == TRIGGER_WRITING);
    trigger->state = state;
}

/* When the oldest of the day's snapshots is a day old, if there may be no more; else 0. */
static uint64_t trigger_exhausted_until(const struct trigger *trigger)
{
    uint64_t oldest = TRIGGER_NO_TIME;

    if (trigger->config.max_per_domain)
        return 0;
    for (size_t i = 0; i < trigger->config.max_per_day; i++) {
        if (trigger->past[i].usec == TRIGGER_NO_TIME)
            return 0;
        oldest = min_u64(oldest, trigger->past[i].usec);
    }
    return oldest + DAY_USEC;
}

/* The state that follows from the facts, of a trigger that is not at work. */
static void trigger_settle(struct trigger *trigger, uint64_t now_usec)
{
    if (!trigger->has_ring)
        trigger_set_state(trigger, TRIGGER_OFF);
    else if (now_usec < trigger->cooldown_end_usec)
        trigger_set_state(trigger, TRIGGER_COOLING);
    else if (now_usec < trigger_exhausted_until(trigger))
        trigger_set_state(trigger, TRIGGER_EXHAUSTED);
    else
        trigger_set_state(trigger, TRIGGER_ARMED);
}

static bool trigger_is_at_work(const struct trigger *trigger)
{
    return trigger->state == TRIGGER_DELAYING || trigger->state == TRIGGER_WRITING ||
           trigger->state == TRIGGER_RETRYING;
}

/* A copy that may be lacking: it is for people. */
static void replace_text(char **text, const char *by)
{
    free(*text);
    *text = by ? strdup(by) : NULL;
}

static void trigger_finish(struct trigger *trigger, uint64_t now_usec)
{
    trigger->cooldown_end_usec = now_usec + trigger->config.cooldown_usec;
    trigger_settle(trigger, now_usec);
}

/* The newest first; those that were not, last. */
static int compare_past(const void *a, const void *b)
{
    const struct trigger_past *one = a, *other = b;
    uint64_t one_usec = one->usec + 1, other_usec = other->usec + 1; /* TRIGGER_NO_TIME is 0 */

    return (one_usec < other_usec) - (one_usec > other_usec);
}

int trigger_reconfigure(struct trigger *trigger, const struct trigger_config *config,
                        uint64_t now_usec)
{
    struct trigger_past *past;

    assert(config->max_per_day > 0);
    past = new_past(config->max_per_day);
    if (!past)
        return -ENOMEM;
    qsort(trigger->past, trigger->config.max_per_day, sizeof(*past), compare_past);
    memcpy(past, trigger->past,
           min_u64(config->max_per_day, trigger->config.max_per_day) * sizeof(*past));
    free(trigger->past);
    trigger->past = past;
    if (trigger->cooldown_end_usec > 0) /* counted from the same end */
        trigger->cooldown_end_usec =
            trigger->cooldown_end_usec - trigger->config.cooldown_usec + config->cooldown_usec;
    trigger->config = *config;
    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec);
    return 0;
}

/* --- The day of each domain. --- */

static bool is_same(const struct trigger_domain *a, const struct trigger_domain *b)
{
    return a->uuid[0] || b->uuid[0] ? strcmp(a->uuid, b->uuid) == 0 : strcmp(a->name, b->name) == 0;
}

/* The snapshots of the last 24 hours; NULL: there is none. */
struct day {
    uint32_t of_all, of_domain;
    struct trigger_past *free;             /* a place for another one */
    struct trigger_past *oldest, *counted; /* of all; the newest within its domain's part */
    struct trigger_past *own_oldest, *own_newest;
};

static struct day trigger_look_at_day(const struct trigger *trigger, uint64_t now_usec,
                                      const struct trigger_domain *domain)
{
    struct day day = {0};

    for (size_t i = 0; i < trigger->config.max_per_day; i++) {
        struct trigger_past *past = &trigger->past[i];

        if (past->usec == TRIGGER_NO_TIME || now_usec >= past->usec + DAY_USEC) {
            day.free = past;
            continue;
        }
        day.of_all++;
        if (!day.oldest || past->usec < day.oldest->usec)
            day.oldest = past;
        if (past->repeats == 0 && (!day.counted || past->usec > day.counted->usec))
            day.counted = past;
        if (!is_same(&past->domain, domain))
            continue;
        day.of_domain++;
        if (!day.own_oldest || past->usec < day.own_oldest->usec)
            day.own_oldest = past;
        if (!day.own_newest || past->usec > day.own_newest->usec)
            day.own_newest = past;
    }
    return day;
}

/* Whether the domain of DAY has had its part, or what is left is kept for those that had none. */
static bool trigger_exceeds_domain(const struct trigger *trigger, const struct day *day)
{
    const struct trigger_config *config = &trigger->config;

    return config->max_per_domain && day->of_domain > 0 &&
           (day->of_domain >= config->max_per_domain ||
            day->of_all + config->kept_for_new >= config->max_per_day);
}

static uint64_t pause_usec(unsigned int repeats)
{
    return min_u64(PAUSE_FIRST_USEC << min_u64(repeats, 8), PAUSE_MAX_USEC);
}

/* Returns NULL if DOMAIN may have a snapshot now; else the count of those that it may not have. */
static uint64_t *trigger_check_day(struct trigger *trigger, uint64_t now_usec,
                                   const struct trigger_domain *domain)
{
    const struct day day = trigger_look_at_day(trigger, now_usec, domain);
    uint64_t since_usec;

    if (!trigger->config.max_per_domain)
        return NULL;
    if (trigger_exceeds_domain(trigger, &day))
        return now_usec < day.own_newest->usec + pause_usec(day.own_newest->repeats)
                   ? &trigger->suppressed.max_per_domain
                   : NULL;
    if (day.free)
        return NULL;
    since_usec = day.counted ? day.counted->usec : day.oldest->usec;
    return now_usec < since_usec + pause_usec(trigger->nr_displaced)
               ? &trigger->suppressed.max_per_day
               : NULL;
}

/* The snapshot under way is written: counts it. */
static void trigger_count(struct trigger *trigger, uint64_t now_usec)
{
    const struct day day = trigger_look_at_day(trigger, now_usec, &trigger->domain);
    struct trigger_past *past = day.free ? day.free : day.oldest;
    unsigned int repeats = 0;

    if (trigger_exceeds_domain(trigger, &day)) {
        past = day.own_oldest;
        repeats = day.own_newest->repeats + 1;
    } else {
        trigger->nr_displaced = day.free ? 0 : trigger->nr_displaced + 1;
    }
    *past = (struct trigger_past){.usec = now_usec, .domain = trigger->domain, .repeats = repeats};
}

/* --- Snapshots. --- */

/* The snapshots NAME.xentrace and NAME.xentrace.zst have the report NAME.report.txt. */
static void trigger_note_report(struct trigger *trigger, const char *path)
{
    char *report = NULL;

    if (trigger->config.report && trace_path_is_trace(path) &&
        asprintf(&report, "%.*s" STATE_REPORT_SUFFIX, (int)trace_path_stem(path), path) < 0)
        report = NULL; /* a path that is not shown */
    free(trigger->last_report);
    trigger->last_report = report;
}

void trigger_written(struct trigger *trigger, uint64_t now_usec, const char *path)
{
    assert(trigger->state == TRIGGER_WRITING);
    trigger_count(trigger, now_usec);
    trigger->written++;
    replace_text(&trigger->last_snapshot, path);
    trigger_note_report(trigger, path);
    replace_text(&trigger->last_error, NULL);
    trigger_finish(trigger, now_usec);
}

static void trigger_give_up(struct trigger *trigger, uint64_t now_usec)
{
    trigger->failed++;
    trigger_finish(trigger, now_usec);
}

void trigger_failed(struct trigger *trigger, uint64_t now_usec, const char *error)
{
    assert(trigger->state == TRIGGER_WRITING);
    replace_text(&trigger->last_error, error);
    if (!trigger->has_ring || trigger->retries == TRIGGER_RETRIES) {
        trigger_give_up(trigger, now_usec);
        return;
    }
    trigger->retry_usec = now_usec + (USEC_PER_SEC << trigger->retries++);
    trigger_set_state(trigger, TRIGGER_RETRYING);
}

void trigger_set_ring(struct trigger *trigger, bool has_ring, uint64_t now_usec)
{
    trigger->has_ring = has_ring;
    if (!has_ring && trigger->state == TRIGGER_DELAYING) {
        replace_text(&trigger->last_error, "The flight recorder ended before the delay was over.");
        trigger_give_up(trigger, now_usec);
    } else if (!has_ring && trigger->state == TRIGGER_RETRYING) {
        trigger_give_up(trigger, now_usec); /* why the last attempt failed is known */
    } else if (!trigger_is_at_work(trigger)) {
        trigger_settle(trigger, now_usec);
    }
}

static void trigger_suppress(struct trigger *trigger, uint64_t *count, uint64_t realtime_ns,
                             const char *reason)
{
    struct trigger_suppressed *suppressed = &trigger->suppressed;

    ++*count;
    suppressed->last_ns = realtime_ns;
    (void)snprintf(suppressed->last_reason, sizeof(suppressed->last_reason), "%s", reason);
}

/* The first attempt. */
static enum trigger_action trigger_begin_writing(struct trigger *trigger, uint64_t now_usec)
{
    trigger->retries = 0;
    trigger->due_usec = now_usec;
    trigger_set_state(trigger, TRIGGER_WRITING);
    return TRIGGER_SNAPSHOT;
}

uint64_t trigger_last_usec(const struct trigger *trigger, uint64_t now_usec)
{
    uint64_t last_usec = trigger->config.last_usec;

    if (last_usec == 0)
        return 0;
    last_usec += trigger->config.delay_usec;
    return trigger->retries > 0 ? last_usec + (now_usec - trigger->due_usec) : last_usec;
}

static enum trigger_action trigger_accept(struct trigger *trigger, uint64_t now_usec,
                                          uint64_t realtime_ns, const char *reason)
{
    trigger->last_fired_ns = realtime_ns;
    (void)snprintf(trigger->last_reason, sizeof(trigger->last_reason), "%s", reason);
    if (trigger->config.delay_usec > 0) {
        trigger->delay_end_usec = now_usec + trigger->config.delay_usec;
        trigger_set_state(trigger, TRIGGER_DELAYING);
        return TRIGGER_NOTHING;
    }
    return trigger_begin_writing(trigger, now_usec);
}

enum trigger_action trigger_fire(struct trigger *trigger, uint64_t now_usec, uint64_t realtime_ns,
                                 const char *reason, const struct trigger_domain *domain)
{
    struct trigger_suppressed *suppressed = &trigger->suppressed;
    uint64_t *count;

    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec); /* the timer for that may be late */
    trigger->fired += trigger->state != TRIGGER_OFF;
    switch (trigger->state) {
    case TRIGGER_OFF:
        break;
    case TRIGGER_ARMED:
        count = trigger_check_day(trigger, now_usec, domain);
        if (!count) {
            trigger->domain = *domain;
            return trigger_accept(trigger, now_usec, realtime_ns, reason);
        }
        trigger_suppress(trigger, count, realtime_ns, reason);
        break;
    case TRIGGER_DELAYING:
    case TRIGGER_WRITING:
    case TRIGGER_RETRYING:
        trigger_suppress(trigger, &suppressed->busy, realtime_ns, reason);
        break;
    case TRIGGER_COOLING:
        trigger_suppress(trigger, &suppressed->cooldown, realtime_ns, reason);
        break;
    case TRIGGER_EXHAUSTED:
        trigger_suppress(trigger, &suppressed->max_per_day, realtime_ns, reason);
        break;
    }
    return TRIGGER_NOTHING;
}

uint64_t trigger_next_usec(const struct trigger *trigger)
{
    switch (trigger->state) {
    case TRIGGER_DELAYING:
        return trigger->delay_end_usec;
    case TRIGGER_RETRYING:
        return trigger->retry_usec;
    case TRIGGER_COOLING:
        return trigger->cooldown_end_usec;
    case TRIGGER_EXHAUSTED:
        return trigger_exhausted_until(trigger);
    case TRIGGER_OFF:
    case TRIGGER_ARMED:
    case TRIGGER_WRITING:
        break;
    }
    return TRIGGER_NO_TIME;
}

enum trigger_action trigger_advance(struct trigger *trigger, uint64_t now_usec)
{
    if (trigger->state == TRIGGER_DELAYING && now_usec >= trigger->delay_end_usec)
        return trigger_begin_writing(trigger, now_usec);
    if (trigger->state == TRIGGER_RETRYING && now_usec >= trigger->retry_usec) {
        trigger_set_state(trigger, TRIGGER_WRITING);
        return TRIGGER_SNAPSHOT;
    }
    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec);
    return TRIGGER_NOTHING;
}
