// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A trigger that can never fire is worse than none, because somebody relies on it: one without a
 * condition, or one that waits for events that the flight recorder does not record, is refused.
 */

#include "daemon/config/config-triggers.h"

#include <string.h>

#include <xen/trace.h>

#include "common/util.h"
#include "daemon/base/name.h"
#include "daemon/config/config-keys.h"

#define WORD  "trigger"
#define TITLE WORD " NAME"

/* A trigger, and where its section is. */
struct checked {
    struct config_reading *reading;
    struct trigger_config *trigger;
    char section[sizeof(WORD) + 1 + TRIGGER_NAME_MAX];
    const struct config_origin *origin;
};

/* The value of KEY as typed; NULL: it was not given. */
static const char *checked_value(const struct checked *checked, const char *key)
{
    const struct config_setting *setting =
        config_find_setting(checked->reading, checked->section, config_find_key(TITLE, key));

    return setting && setting->value[0] ? setting->value : NULL;
}

static uint32_t bit(enum trigger_condition condition)
{
    return UINT32_C(1) << condition;
}

/* Sets the one condition from what was GIVEN, and its text. */
static void set_condition(const struct checked *checked, enum trigger_condition condition)
{
    struct trigger_config *trigger = checked->trigger;
    const char *value = NULL;

    if (condition == TRIGGER_EVENT || condition == TRIGGER_RUNNABLE_LATENCY)
        value = checked_value(checked, trigger_condition_name(condition));
    trigger->condition = condition;
    memset(trigger->condition_text, 0, sizeof(trigger->condition_text));
    (void)snprintf(trigger->condition_text, sizeof(trigger->condition_text), "%s%s%s",
                   trigger_condition_name(condition), value ? "=" : "", value ? value : "");
}

static int check_count(const struct checked *checked)
{
    const struct trigger_config *trigger = checked->trigger;
    bool has_count = checked_value(checked, "count");
    bool has_within = checked_value(checked, "within");

    if (trigger->condition != TRIGGER_EVENT && (has_count || has_within))
        return config_refuse(
            checked->reading, checked->origin,
            "the trigger '%s' has count= or within=, which require event=", trigger->name);
    if (has_count != has_within)
        return config_refuse(checked->reading, checked->origin,
                             "the trigger '%s' needs both count= and within=, or neither",
                             trigger->name);
    return 0;
}

/* One condition, and what belongs to it. */
static int check_condition(const struct checked *checked)
{
    struct trigger_config *trigger = checked->trigger;
    uint32_t given = trigger->condition == TRIGGER_NEVER ? 0 : bit(trigger->condition);
    enum trigger_condition first;

    if (checked_value(checked, "event"))
        given |= bit(TRIGGER_EVENT);
    if (checked_value(checked, "runnable-latency"))
        given |= bit(TRIGGER_RUNNABLE_LATENCY);
    if (given == 0)
        return config_refuse(
            checked->reading, checked->origin,
            "the trigger '%s' has no condition: add event=, runnable-latency= or condition=",
            trigger->name);
    first = (enum trigger_condition)__builtin_ctz(given);
    if (given & (given - 1))
        return config_refuse(
            checked->reading, checked->origin,
            "the trigger '%s' has two conditions, %s and %s: use two triggers", trigger->name,
            trigger_condition_name(first),
            trigger_condition_name((enum trigger_condition)__builtin_ctz(given & (given - 1))));
    if ((first == TRIGGER_EVENT || first == TRIGGER_RUNNABLE_LATENCY) &&
        !checked_value(checked, trigger_condition_name(first)))
        return config_refuse(checked->reading, checked->origin,
                             "the trigger '%s' needs %s=", trigger->name,
                             trigger_condition_name(first));
    set_condition(checked, first);
    return check_count(checked);
}

/* Whether every event that NEEDED lets pass is in RECORDED. */
static bool set_covers(const struct event_set *recorded, const struct event_set *needed)
{
    for (size_t i = 0; i < EVENT_CLASSES; i++)
        if (needed->subclasses[i] & ~recorded->subclasses[i])
            return false;
    return true;
}

bool config_records_for(const struct config *config, const struct trigger_config *trigger,
                        const char **ret_missing)
{
    _cleanup_free_ char *error = NULL;
    struct event_set recorded, needed = trigger->events;

    if (trigger->condition == TRIGGER_RUNNABLE_LATENCY ||
        (trigger->condition == TRIGGER_EVENT && trigger->domain[0]))
        event_set_add_mask(&needed, TRC_SCHED_MIN);
    if (event_set_parse(config->recorder.events, &recorded, &error) < 0 ||
        set_covers(&recorded, &needed))
        return true; /* it was parsed before: only memory can be lacking, and others report that */
    *ret_missing = trigger->condition == TRIGGER_EVENT ? strchr(trigger->condition_text, '=') + 1
                                                       : "sched-min";
    return false;
}

static void check_recorded(const struct checked *checked)
{
    const struct config *config = &checked->reading->config;
    const char *missing;

    if (config_records_for(config, checked->trigger, &missing))
        return;
    (void)config_refuse(checked->reading, checked->origin,
                        "the trigger '%s' waits for events that events=%s in [flight-recorder] "
                        "does not include: add %s%s",
                        checked->trigger->name, config->recorder.events, missing,
                        checked->trigger->condition == TRIGGER_EVENT && checked->trigger->domain[0]
                            ? ", and sched-min, which shows the domains"
                            : "");
}

/* Whether what it waits for happens to one domain, which is known. */
static bool trigger_has_domains(const struct trigger_config *trigger)
{
    switch (trigger->condition) {
    case TRIGGER_RUNNABLE_LATENCY:
    case TRIGGER_DOMAIN_CRASH:
    case TRIGGER_LOST_RECORDS:
        return true;
    case TRIGGER_EVENT:
        return trigger->domain[0];
    case TRIGGER_NEVER:
    case TRIGGER_MANUAL:
        break;
    }
    return false;
}

/*
 * One guest that crashes ten times must not use up the day of all others: a domain has a third of
 * max-per-day, and a fifth is kept for domains that had none. With domain= of one domain, that has
 * all of it.
 */
static void settle_domains(const struct checked *checked)
{
    struct trigger_config *trigger = checked->trigger;
    bool is_one = trigger->domain[0] && !strpbrk(trigger->domain, "*?[");

    if (!trigger_has_domains(trigger)) {
        if (trigger->domain[0] || trigger->max_per_domain)
            (void)config_refuse(
                checked->reading, checked->origin,
                "the trigger '%s' has domain= or max-per-domain=, but %s does not concern a domain",
                trigger->name, trigger_condition_name(trigger->condition));
        return;
    }
    if (!trigger->max_per_domain)
        trigger->max_per_domain =
            is_one ? trigger->max_per_day : (uint32_t)max_u64(1, trigger->max_per_day / 3);
    if (trigger->max_per_domain < trigger->max_per_day)
        trigger->kept_for_new = trigger->max_per_day / 5;
}

void config_check_triggers(struct config_reading *reading)
{
    struct config *config = &reading->config;

    for (size_t i = 0; i < config->nr_triggers; i++) {
        struct checked checked = {.reading = reading, .trigger = &config->triggers[i]};
        const struct config_setting *header;

        (void)snprintf(checked.section, sizeof(checked.section), WORD " %s", checked.trigger->name);
        header = config_find_setting(reading, checked.section, NULL);
        if (!header)
            continue; /* no memory for it, which is noted */
        checked.origin = &header->origin;
        if (strncmp(checked.trigger->name, NAME_USER_WORD, strlen(NAME_USER_WORD)) == 0) {
            (void)config_refuse(reading, checked.origin,
                                "'%s' is not a valid name for a trigger: names of snapshots that "
                                "begin with snapshot-user- are of users other than root",
                                checked.trigger->name);
            continue;
        }
        if (check_condition(&checked) < 0)
            continue;
        if (config->recorder.enabled)
            check_recorded(&checked);
        settle_domains(&checked);
        checked.trigger->count += checked.trigger->count == 0; /* each of them */
        if (checked.trigger->count == 1)
            checked.trigger->within_usec = 0;
    }
}
