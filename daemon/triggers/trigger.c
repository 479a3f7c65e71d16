// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * `state` is written by trigger_set_state() alone. Delaying and writing are left when the caller
 * reports what comes next. Off, cooling, exhausted and armed follow from facts (the ring, the end
 * of the cooldown, the times of the day's snapshots), which trigger_settle() looks at.
 */

#include "daemon/triggers/trigger.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "common/units.h"
#include "common/util.h"

#define DAY_USEC (24 * 3600 * USEC_PER_SEC)

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
    case TRIGGER_COOLING:
        return "cooling";
    case TRIGGER_EXHAUSTED:
        return "exhausted";
    }
    return "off";
}

/* Room for the times of COUNT snapshots, none of which was; NULL: no memory. */
static uint64_t *new_times(uint32_t count)
{
    uint64_t *times = calloc(count, sizeof(*times));

    for (uint32_t i = 0; i < count && times; i++)
        times[i] = TRIGGER_NO_TIME;
    return times;
}

int trigger_init(struct trigger *trigger, const struct trigger_config *config)
{
    assert(config->max_per_day > 0);
    *trigger = (struct trigger){.config = *config, .state = TRIGGER_OFF};
    trigger->written_usec = new_times(config->max_per_day);
    return trigger->written_usec ? 0 : -ENOMEM;
}

void trigger_done(struct trigger *trigger)
{
    free(trigger->written_usec);
    free(trigger->last_snapshot);
    free(trigger->last_error);
    *trigger = (struct trigger){0};
}

static void trigger_set_state(struct trigger *trigger, enum trigger_state state)
{
    /* A snapshot comes from a delay or from nothing, and only its end leads out of it. */
    assert(state != TRIGGER_DELAYING || trigger->state == TRIGGER_ARMED);
    assert(state != TRIGGER_WRITING || trigger->state == TRIGGER_ARMED ||
           trigger->state == TRIGGER_DELAYING);
    trigger->state = state;
}

/* When the oldest of the day's snapshots is a day old, if there may be no more; else 0. */
static uint64_t trigger_exhausted_until(const struct trigger *trigger)
{
    uint64_t oldest = trigger->written_usec[trigger->written % trigger->config.max_per_day];

    return oldest == TRIGGER_NO_TIME ? 0 : oldest + DAY_USEC;
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
    return trigger->state == TRIGGER_DELAYING || trigger->state == TRIGGER_WRITING;
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

/* The times of the newest snapshots, at the places that another max_per_day gives them. */
static void trigger_copy_times(const struct trigger *trigger, uint64_t *times, uint32_t max)
{
    uint64_t kept = min_u64(trigger->written, min_u64(trigger->config.max_per_day, max));

    for (uint64_t i = trigger->written - kept; i < trigger->written; i++)
        times[i % max] = trigger->written_usec[i % trigger->config.max_per_day];
}

int trigger_reconfigure(struct trigger *trigger, const struct trigger_config *config,
                        uint64_t now_usec)
{
    uint64_t *times;

    assert(config->max_per_day > 0);
    times = new_times(config->max_per_day);
    if (!times)
        return -ENOMEM;
    trigger_copy_times(trigger, times, config->max_per_day);
    free(trigger->written_usec);
    trigger->written_usec = times;
    if (trigger->cooldown_end_usec > 0) /* counted from the same end */
        trigger->cooldown_end_usec =
            trigger->cooldown_end_usec - trigger->config.cooldown_usec + config->cooldown_usec;
    trigger->config = *config;
    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec);
    return 0;
}

void trigger_written(struct trigger *trigger, uint64_t now_usec, const char *path)
{
    assert(trigger->state == TRIGGER_WRITING);
    trigger->written_usec[trigger->written % trigger->config.max_per_day] = now_usec;
    trigger->written++;
    replace_text(&trigger->last_snapshot, path);
    replace_text(&trigger->last_error, NULL);
    trigger_finish(trigger, now_usec);
}

static void trigger_fail(struct trigger *trigger, uint64_t now_usec, const char *error)
{
    trigger->failed++;
    replace_text(&trigger->last_error, error);
    trigger_finish(trigger, now_usec);
}

void trigger_failed(struct trigger *trigger, uint64_t now_usec, const char *error)
{
    assert(trigger->state == TRIGGER_WRITING);
    trigger_fail(trigger, now_usec, error);
}

void trigger_set_ring(struct trigger *trigger, bool has_ring, uint64_t now_usec)
{
    trigger->has_ring = has_ring;
    if (!has_ring && trigger->state == TRIGGER_DELAYING)
        trigger_fail(trigger, now_usec, "The flight recorder ended before the delay was over.");
    else if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec);
}

static void trigger_suppress(struct trigger *trigger, uint64_t *count, uint64_t realtime_ns,
                             const char *reason)
{
    struct trigger_suppressed *suppressed = &trigger->suppressed;

    ++*count;
    suppressed->last_ns = realtime_ns;
    (void)snprintf(suppressed->last_reason, sizeof(suppressed->last_reason), "%s", reason);
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
    trigger_set_state(trigger, TRIGGER_WRITING);
    return TRIGGER_SNAPSHOT;
}

enum trigger_action trigger_fire(struct trigger *trigger, uint64_t now_usec, uint64_t realtime_ns,
                                 const char *reason)
{
    struct trigger_suppressed *suppressed = &trigger->suppressed;

    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec); /* the timer for that may be late */
    trigger->fired += trigger->state != TRIGGER_OFF;
    switch (trigger->state) {
    case TRIGGER_OFF:
        break;
    case TRIGGER_ARMED:
        return trigger_accept(trigger, now_usec, realtime_ns, reason);
    case TRIGGER_DELAYING:
    case TRIGGER_WRITING:
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
    if (trigger->state == TRIGGER_DELAYING && now_usec >= trigger->delay_end_usec) {
        trigger_set_state(trigger, TRIGGER_WRITING);
        return TRIGGER_SNAPSHOT;
    }
    if (!trigger_is_at_work(trigger))
        trigger_settle(trigger, now_usec);
    return TRIGGER_NOTHING;
}
