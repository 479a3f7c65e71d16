// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The sections of triggers. A trigger that can never fire is worse than none, because somebody
 * relies on it: one without a condition, or one that waits for events that the flight recorder does
 * not record, is refused.
 */

#include "daemon/config/config-parser.h"

#include <errno.h>
#include <string.h>

#include <xen/trace.h>

#include "common/text.h"
#include "common/units.h"
#include "daemon/base/name.h"

#define SECTION_WORD "trigger"

/* The collector keeps the times of so many events at most, and looks at them at each. */
#define COUNT_MAX       1000u
#define MAX_PER_DAY_MAX 1000u

static const struct trigger_config trigger_defaults = {
    .count = 1,
    .cooldown_usec = 60 * USEC_PER_SEC,
    .max_per_day = 10,
};

const char *trigger_condition_name(enum trigger_condition condition)
{
    switch (condition) {
    case TRIGGER_NEVER:
        break;
    case TRIGGER_EVENT:
        return "event";
    case TRIGGER_RUNNABLE_LATENCY:
        return "runnable-latency";
    case TRIGGER_DOMAIN_CRASH:
        return "domain-crash";
    case TRIGGER_LOST_RECORDS:
        return "lost-records";
    case TRIGGER_MANUAL:
        return "manual";
    }
    return "";
}

bool config_is_trigger_section(const char *text)
{
    size_t length = strlen(SECTION_WORD);

    return strncmp(text, SECTION_WORD, length) == 0 &&
           (text[length] == '\0' || text_is_blank(text[length]));
}

int config_begin_trigger(struct config_parser *parser, const char *text)
{
    struct config *config = &parser->config;
    const char *name = text + strlen(SECTION_WORD);
    struct trigger_config *trigger;

    while (text_is_blank(*name))
        name++;
    if (!name_is_valid(name, TRIGGER_NAME_MAX))
        return config_problem(parser, parser->line,
                              "'%s' cannot be a trigger's name: write [trigger NAME], with 1 to %u "
                              "letters, digits or ._-@: and none of '.' and '-' first",
                              name, TRIGGER_NAME_MAX);
    for (size_t i = 0; i < config->nr_triggers; i++)
        if (strcmp(config->triggers[i].name, name) == 0)
            return config_problem(parser, parser->line,
                                  "there is a trigger '%s' already, at line %d", name,
                                  parser->trigger_notes[i].line);
    if (config->nr_triggers == CONFIG_TRIGGERS_MAX)
        return config_problem(parser, parser->line, "there may be %u triggers at most",
                              CONFIG_TRIGGERS_MAX);
    parser->trigger_notes[config->nr_triggers].line = parser->line;
    trigger = &config->triggers[config->nr_triggers++];
    *trigger = trigger_defaults;
    (void)snprintf(trigger->name, sizeof(trigger->name), "%s", name);
    return 0;
}

/* The trigger whose section is being read. */
static struct trigger_config *current(struct config_parser *parser)
{
    return &parser->config.triggers[parser->config.nr_triggers - 1];
}

/* Notes that a condition was given; the same one again replaces the first, as with every key. */
static void give_condition(struct config_parser *parser, enum trigger_condition condition,
                           const char *value)
{
    size_t index = parser->config.nr_triggers - 1;
    struct trigger_config *trigger = &parser->config.triggers[index];

    parser->trigger_notes[index].given |= 1u << condition;
    trigger->condition = condition;
    (void)snprintf(trigger->condition_text, sizeof(trigger->condition_text), "%s%s%s",
                   trigger_condition_name(condition), value ? "=" : "", value ? value : "");
}

int config_parse_trigger_event(struct config_parser *parser, const char *value)
{
    struct trigger_config *trigger = current(parser);
    int r = config_parse_events(parser, value, &trigger->events);

    if (r < 0)
        return r;
    trigger->events.subclasses[0] = 0; /* GEN */
    if (event_set_xen_mask(&trigger->events) == 0)
        return config_problem(parser, parser->line,
                              "'%s' is what the trace buffers say about themselves; write "
                              "condition=lost-records to wait for lost records",
                              value);
    give_condition(parser, TRIGGER_EVENT, value);
    return 0;
}

int config_parse_trigger_count(struct config_parser *parser, const char *value)
{
    parser->trigger_notes[parser->config.nr_triggers - 1].has_count = true;
    return config_parse_number(parser, value, 1, COUNT_MAX, &current(parser)->count);
}

/* A time that must not be nothing. */
static int parse_some_time(struct config_parser *parser, const char *value, uint64_t *ret_usec)
{
    int r = config_parse_duration(parser, value, ret_usec);

    if (r >= 0 && *ret_usec == 0)
        return config_problem(parser, parser->line, "'%s' is no time at all", value);
    return r;
}

int config_parse_trigger_within(struct config_parser *parser, const char *value)
{
    parser->trigger_notes[parser->config.nr_triggers - 1].has_within = true;
    return parse_some_time(parser, value, &current(parser)->within_usec);
}

int config_parse_trigger_latency(struct config_parser *parser, const char *value)
{
    int r = parse_some_time(parser, value, &current(parser)->latency_usec);

    if (r >= 0)
        give_condition(parser, TRIGGER_RUNNABLE_LATENCY, value);
    return r;
}

/* event and runnable-latency may be said here too; what they need is in their own keys. */
int config_parse_trigger_condition(struct config_parser *parser, const char *value)
{
    for (enum trigger_condition c = TRIGGER_EVENT; c <= TRIGGER_MANUAL; c++) {
        if (strcmp(value, trigger_condition_name(c)) != 0)
            continue;
        if (c == TRIGGER_EVENT || c == TRIGGER_RUNNABLE_LATENCY)
            parser->trigger_notes[parser->config.nr_triggers - 1].given |= 1u << c;
        else
            give_condition(parser, c, NULL);
        return 0;
    }
    return config_problem(parser, parser->line,
                          "'%s' is no condition: use domain-crash, lost-records or manual, or the "
                          "keys event= and runnable-latency=",
                          value);
}

int config_parse_trigger_delay(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &current(parser)->delay_usec);
}

int config_parse_trigger_cooldown(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &current(parser)->cooldown_usec);
}

int config_parse_trigger_max_per_day(struct config_parser *parser, const char *value)
{
    return config_parse_number(parser, value, 1, MAX_PER_DAY_MAX, &current(parser)->max_per_day);
}

int config_parse_trigger_last(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &current(parser)->last_usec);
}

/* --- When all is read. --- */

/* One condition, and what belongs to it. */
static int check_condition(struct config_parser *parser, size_t index)
{
    const struct trigger_config *trigger = &parser->config.triggers[index];
    uint32_t given = parser->trigger_notes[index].given;
    int line = parser->trigger_notes[index].line;
    enum trigger_condition first = given ? (enum trigger_condition)__builtin_ctz(given) : 0;

    if (given == 0)
        return config_problem(parser, line,
                              "the trigger '%s' has no condition: give it event=, "
                              "runnable-latency= or condition=",
                              trigger->name);
    if (given & (given - 1)) {
        uint32_t rest = given & (given - 1);

        return config_problem(parser, line,
                              "the trigger '%s' has two conditions, %s and %s: make it two "
                              "triggers",
                              trigger->name, trigger_condition_name(first),
                              trigger_condition_name((enum trigger_condition)__builtin_ctz(rest)));
    }
    if (trigger->condition == TRIGGER_NEVER)
        return config_problem(parser, line, "the trigger '%s' needs %s=", trigger->name,
                              trigger_condition_name(first));
    if (trigger->condition != TRIGGER_EVENT &&
        (parser->trigger_notes[index].has_count || parser->trigger_notes[index].has_within))
        return config_problem(parser, line,
                              "the trigger '%s' has count= or within=, which go with event= only",
                              trigger->name);
    if (parser->trigger_notes[index].has_count != parser->trigger_notes[index].has_within)
        return config_problem(parser, line,
                              "the trigger '%s' has one of count= and within= without the other",
                              trigger->name);
    return 0;
}

/* Whether every event that NEEDED lets pass is in RECORDED. */
static bool set_covers(const struct event_set *recorded, const struct event_set *needed)
{
    for (size_t i = 0; i < EVENT_CLASSES; i++)
        if (needed->subclasses[i] & ~recorded->subclasses[i])
            return false;
    return true;
}

/* What the flight recorder does not record, nothing can be seen of. */
static int check_recorded(struct config_parser *parser, size_t index)
{
    const struct config *config = &parser->config;
    const struct trigger_config *trigger = &config->triggers[index];
    _cleanup_free_ char *error = NULL;
    struct event_set recorded, needed = trigger->events;

    if (trigger->condition == TRIGGER_RUNNABLE_LATENCY)
        event_set_add_mask(&needed, TRC_SCHED_MIN);
    if (event_set_parse(config->recorder.events, &recorded, &error) < 0 ||
        set_covers(&recorded, &needed))
        return 0; /* it was parsed before: no memory, and that is told soon enough */
    return config_problem(
        parser, parser->trigger_notes[index].line,
        "the trigger '%s' waits for events that events=%s of [flight-recorder] leaves out: "
        "add %s to it",
        trigger->name, config->recorder.events,
        trigger->condition == TRIGGER_EVENT ? strchr(trigger->condition_text, '=') + 1
                                            : "sched-min");
}

int config_check_triggers(struct config_parser *parser)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < parser->config.nr_triggers; i++) {
        struct trigger_config *trigger = &parser->config.triggers[i];

        r = check_condition(parser, i);
        if (r >= 0 && parser->config.recorder.enabled)
            r = check_recorded(parser, i);
        if (trigger->count == 1)
            trigger->within_usec = 0;
    }
    return r;
}
