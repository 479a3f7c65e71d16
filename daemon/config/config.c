// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inih reads the file; a table of keys says what each value is. An unknown section or key is an
 * error: a misspelt limit that is silently ignored fills a disk.
 *
 * inih passes keys to its handler, but no headers of sections. Those of triggers are therefore
 * taken from the lines as inih reads them.
 *
 * A trigger that can never fire is worse than none, because somebody relies on it: one without a
 * condition, or one that waits for events that the flight recorder does not record, is refused.
 *
 * The flight recorder's default events have one and the same subclass in two classes, so that Xen's
 * own mask selects exactly them (0x00061000) and nothing else takes up room in its buffers.
 */

#include "daemon/config/config.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>
#include <syslog.h>

#include <xen/trace.h>

#include "common/cpu-set.h"
#include "common/suggest.h"
#include "common/text.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/name.h"

#define MEMORY_MIN_BYTES (UINT64_C(2) << 20)
#define MEMORY_MAX_BYTES (UINT64_C(64) << 30)

#define SECTION_WORD "trigger"

/* The collector keeps the times of this many events at most, and looks at all of them at each
 * event. */
#define COUNT_MAX       1000u
#define MAX_PER_DAY_MAX 1000u

struct config_parser {
    struct config config;
    FILE *file;
    int line;          /* that inih has read last */
    int pool_max_line; /* of pool-max= */
    int problem_line;  /* that the problem is in; inih's own complaints have none */
    char problem[512]; /* "": none. Half a sentence; the first one is kept */

    /* The sections of triggers, config.triggers[i] each. */
    bool in_trigger; /* whether the section that is being read is one */
    bool in_capture; /* ... or a [capture NAME] */
    int capture_line; /* where that began */
    struct {
        int line;       /* of its header */
        uint32_t given; /* conditions, 1 << enum trigger_condition each: one is right */
        bool has_count; /* count= was given */
        bool has_within;
    } trigger_notes[CONFIG_TRIGGERS_MAX];
};

typedef int (*config_parse_fn)(struct config_parser *parser, const char *value);

static const struct config config_defaults = {
    .log_level = LOG_INFO,
    .pool_bytes = UINT64_C(64) << 20,
    .memory_share_percent = 50,
    .limits =
        {
            .snapshot_interval_usec = 10 * USEC_PER_SEC,
            .snapshots_per_day = 100,
            .snapshot_bytes_per_day = LIMITS_AUTO,
            .keep_for_triggers_bytes = LIMITS_AUTO,
        },
    .reserve_bytes = DISK_RESERVE_AUTO,
    .recorder =
        {
            .enabled = true,
            .memory_bytes = UINT64_C(64) << 20,
            .events = "sched-min,dom0op-domops",
            .cpus = "all",
            .keep_enabled = true,
        },
};

static const struct trigger_config trigger_defaults = {
    .count = 1,
    .cooldown_usec = 60 * USEC_PER_SEC,
    .max_per_day = 10,
};

/* Notes what is wrong at LINE, unless something was before, and returns -EINVAL. */
_printf_(3, 4) static int config_problem(struct config_parser *parser, int line, const char *format,
                                         ...)
{
    va_list arguments;

    if (parser->problem[0])
        return -EINVAL;
    parser->problem_line = line;
    va_start(arguments, format);
    (void)vsnprintf(parser->problem, sizeof(parser->problem), format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* --- Values. --- */

static int config_parse_memory(struct config_parser *parser, const char *value, uint64_t *ret_bytes)
{
    uint64_t bytes;

    if (size_parse(value, 1, &bytes) < 0 || bytes < MEMORY_MIN_BYTES || bytes > MEMORY_MAX_BYTES)
        return config_problem(parser, parser->line,
                              "'%s' is not a size from 2M to 64G, such as 64M", value);
    *ret_bytes = bytes;
    return 0;
}

static int config_parse_bool(struct config_parser *parser, const char *value, bool *ret_bool)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    const struct text_item item = {.begin = value, .length = strlen(value)};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (text_item_is(&item, words[i])) {
            *ret_bool = i % 2;
            return 0;
        }
    }
    return config_problem(parser, parser->line, "'%s' is neither 'yes' nor 'no'", value);
}

static int config_parse_duration(struct config_parser *parser, const char *value,
                                 uint64_t *ret_usec)
{
    if (duration_parse(value, USEC_PER_SEC, ret_usec) < 0)
        return config_problem(parser, parser->line, "'%s' is not a time, such as 500ms, 30s or 2h",
                              value);
    return 0;
}

static int config_parse_number(struct config_parser *parser, const char *value, uint32_t min,
                               uint32_t max, uint32_t *ret_number)
{
    uint64_t number = 0;
    const char *c = value;

    for (; text_is_digit(*c) && number <= max; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == value || *c || number < min || number > max)
        return config_problem(parser, parser->line, "'%s' is not a number from %u to %u", value,
                              min, max);
    *ret_number = (uint32_t)number;
    return 0;
}

/* Passes on a sentence of common/'s, as the half sentence that a problem is. */
static int config_refuse_list(struct config_parser *parser, int error, char *sentence)
{
    size_t length = sentence ? strlen(sentence) : 0;

    if (length > 0 && sentence[length - 1] == '.')
        sentence[length - 1] = '\0';
    (void)config_problem(parser, parser->line, "%s", sentence ? sentence : "Out of memory");
    return error;
}

static int config_parse_events(struct config_parser *parser, const char *value,
                               struct event_set *ret_set)
{
    _cleanup_free_ char *error = NULL;
    int r = event_set_parse(value, ret_set, &error);

    return r < 0 ? config_refuse_list(parser, r, error) : 0;
}

/* Keeps a list as it was typed; it is on one line of inih's, so it fits. */
static void config_keep_list(char list[static CONFIG_LIST_MAX], const char *value)
{
    (void)snprintf(list, CONFIG_LIST_MAX, "%s", value);
}

/* --- Keys. --- */

static int config_parse_pool(struct config_parser *parser, const char *value)
{
    return config_parse_memory(parser, value, &parser->config.pool_bytes);
}

static int config_parse_pool_max(struct config_parser *parser, const char *value)
{
    if (strcmp(value, "auto") == 0) {
        parser->config.pool_max_bytes = 0;
        return 0;
    }
    parser->pool_max_line = parser->line;
    return config_parse_memory(parser, value, &parser->config.pool_max_bytes);
}

static int config_check_pool(struct config_parser *parser)
{
    const struct config *config = &parser->config;
    char pool[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX];

    if (config->pool_max_bytes == 0 || config->pool_max_bytes >= config->pool_bytes)
        return 0;
    return config_problem(
        parser, parser->pool_max_line, "pool-max=%s is less than pool=%s, which is taken at start",
        size_format(max, config->pool_max_bytes), size_format(pool, config->pool_bytes));
}

int config_read_log_level(const char *name, int *ret_level)
{
    /* As systemd.exec(5) calls them, LogLevelMax=. */
    static const struct {
        const char *name;
        int level;
    } levels[] = {
        {"err", LOG_ERR},   {"warning", LOG_WARNING}, {"notice", LOG_NOTICE},
        {"info", LOG_INFO}, {"debug", LOG_DEBUG},
    };

    for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
        if (strcmp(name, levels[i].name) == 0) {
            *ret_level = levels[i].level;
            return 0;
        }
    }
    return -EINVAL;
}

static int config_parse_log_level(struct config_parser *parser, const char *value)
{
    if (config_read_log_level(value, &parser->config.log_level) < 0)
        return config_problem(parser, parser->line,
                              "'%s' is not a level: use err, warning, notice, info or debug",
                              value);
    return 0;
}

static int config_parse_control_group(struct config_parser *parser, const char *value)
{
    if (strlen(value) >= sizeof(parser->config.control_group))
        return config_problem(parser, parser->line, "the group's name is too long");
    (void)snprintf(parser->config.control_group, sizeof(parser->config.control_group), "%s", value);
    return 0;
}

static int config_parse_metrics_file(struct config_parser *parser, const char *value)
{
    const char *slash = strrchr(value, '/');

    if (value[0] != '\0' && (value[0] != '/' || slash[1] == '\0'))
        return config_problem(parser, parser->line,
                              "'%s' is not the absolute path of a file, such as "
                              "/var/lib/prometheus/node-exporter/xentraced.prom",
                              value);
    config_keep_list(parser->config.metrics_file, value);
    return 0;
}

static int config_parse_memory_share(struct config_parser *parser, const char *value)
{
    const struct text_item item = {.begin = value, .length = strcspn(value, "%")};
    char digits[8];

    if (value[item.length] == '%' && value[item.length + 1] == '\0' &&
        item.length < sizeof(digits)) {
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)item.length, value);
        value = digits;
    }
    return config_parse_number(parser, value, 1, 90, &parser->config.memory_share_percent);
}

static int config_parse_buffer_pages(struct config_parser *parser, const char *value)
{
    uint64_t pages;

    if (strcmp(value, "auto") == 0) {
        parser->config.buffer_pages = 0;
        return 0;
    }
    /* t_info holds the number in 16 bits; a page more or less is Xen's to decide. */
    if (size_parse(value, 1, &pages) < 0 || pages == 0 || pages > UINT16_MAX)
        return config_problem(parser, parser->line,
                              "'%s' is neither 'auto' nor a number of pages from 1 to 65535",
                              value);
    parser->config.buffer_pages = (uint32_t)pages;
    return 0;
}

/* systemd.unit(5): what a template's name is made of. */
static int config_parse_segment_unit(struct config_parser *parser, const char *value)
{
    static const char suffix[] = "@.service";
    size_t length = strlen(value);

    if (length < sizeof(suffix) || strcmp(value + length + 1 - sizeof(suffix), suffix) != 0 ||
        strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\") !=
            length + 1 - sizeof(suffix))
        return config_problem(
            parser, parser->line,
            "'%s' is not the name of a unit's template, such as compress@.service", value);
    (void)snprintf(parser->config.segment_unit, sizeof(parser->config.segment_unit), "%s", value);
    return 0;
}

static int config_parse_reserve(struct config_parser *parser, const char *value)
{
    if (strcmp(value, "auto") == 0) {
        parser->config.reserve_bytes = DISK_RESERVE_AUTO;
        return 0;
    }
    if (size_parse(value, UINT64_C(1) << 20, &parser->config.reserve_bytes) < 0)
        return config_problem(parser, parser->line, "'%s' is not a size, such as 512M", value);
    return 0;
}

static int config_refuse_limit(struct config_parser *parser, const char *value)
{
    return config_problem(parser, parser->line,
                          "'%s' is not a size such as 2G, a part of the disk such as 10%%, 'auto' "
                          "or 'none'",
                          value);
}

static int config_parse_disk_limit(struct config_parser *parser, const char *value,
                                   struct disk_limit *ret_limit)
{
    return disk_limit_parse(value, ret_limit) < 0 ? config_refuse_limit(parser, value) : 0;
}

static int config_parse_max_use(struct config_parser *parser, const char *value)
{
    return config_parse_disk_limit(parser, value, &parser->config.disk.max_use);
}

static int config_parse_keep_free(struct config_parser *parser, const char *value)
{
    return config_parse_disk_limit(parser, value, &parser->config.disk.keep_free);
}

static int config_parse_max_file_age(struct config_parser *parser, const char *value)
{
    if (strcmp(value, "none") == 0) {
        parser->config.disk.max_age_usec = 0;
        return 0;
    }
    return config_parse_duration(parser, value, &parser->config.disk.max_age_usec);
}

/* --- The section of limits. --- */

static int config_parse_limit_bytes(struct config_parser *parser, const char *value, uint64_t min,
                                    uint64_t *ret_bytes)
{
    if (strcmp(value, "auto") == 0)
        *ret_bytes = LIMITS_AUTO;
    else if (size_parse(value, 1, ret_bytes) < 0 || *ret_bytes < min)
        return config_problem(parser, parser->line,
                              "'%s' is neither 'auto' nor a size, such as 512M", value);
    return 0;
}

static int config_parse_snapshot_interval(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &parser->config.limits.snapshot_interval_usec);
}

static int config_parse_snapshots_per_day(struct config_parser *parser, const char *value)
{
    return config_parse_number(parser, value, 1, MAX_PER_DAY_MAX,
                               &parser->config.limits.snapshots_per_day);
}

static int config_parse_snapshot_bytes(struct config_parser *parser, const char *value)
{
    return config_parse_limit_bytes(parser, value, 1,
                                    &parser->config.limits.snapshot_bytes_per_day);
}

static int config_parse_keep_for_triggers(struct config_parser *parser, const char *value)
{
    return config_parse_limit_bytes(parser, value, 0,
                                    &parser->config.limits.keep_for_triggers_bytes);
}

struct limits_config config_limits(const struct config *config)
{
    uint64_t memory_bytes = config->recorder.memory_bytes;
    struct limits_config limits = config->limits;

    if (limits.snapshot_bytes_per_day == LIMITS_AUTO)
        limits.snapshot_bytes_per_day = max_u64(16 * memory_bytes, UINT64_C(1) << 30);
    if (limits.keep_for_triggers_bytes == LIMITS_AUTO)
        limits.keep_for_triggers_bytes = 4 * memory_bytes;
    return limits;
}

/* --- The flight recorder's section. --- */

static int config_parse_recorder_enabled(struct config_parser *parser, const char *value)
{
    return config_parse_bool(parser, value, &parser->config.recorder.enabled);
}

static int config_parse_recorder_memory(struct config_parser *parser, const char *value)
{
    return config_parse_memory(parser, value, &parser->config.recorder.memory_bytes);
}

static int config_parse_recorder_events(struct config_parser *parser, const char *value)
{
    struct event_set set;
    int r = config_parse_events(parser, value, &set);

    if (r < 0)
        return r;
    config_keep_list(parser->config.recorder.events, value);
    return 0;
}

static int config_parse_recorder_cpus(struct config_parser *parser, const char *value)
{
    _cleanup_free_ char *error = NULL;
    struct cpu_set set;
    int r = cpu_set_parse(value, CPU_SET_MAX, &set, &error);

    if (r < 0)
        return config_refuse_list(parser, r, error);
    config_keep_list(parser->config.recorder.cpus, value);
    return 0;
}

static int config_parse_recorder_max_age(struct config_parser *parser, const char *value)
{
    const struct text_item item = {.begin = value, .length = strlen(value)};

    if (text_item_is(&item, "none")) {
        parser->config.recorder.max_age_usec = 0;
        return 0;
    }
    return config_parse_duration(parser, value, &parser->config.recorder.max_age_usec);
}

static int config_parse_recorder_keep_enabled(struct config_parser *parser, const char *value)
{
    return config_parse_bool(parser, value, &parser->config.recorder.keep_enabled);
}

/* --- The sections of triggers. --- */

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

static bool config_is_trigger_section(const char *text)
{
    size_t length = strlen(SECTION_WORD);

    return strncmp(text, SECTION_WORD, length) == 0 &&
           (text[length] == '\0' || text_is_blank(text[length]));
}

static int config_begin_trigger(struct config_parser *parser, const char *text)
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
    memcpy(trigger->name, name, strlen(name) + 1); /* a valid name fits */
    return 0;
}

/* The trigger whose section is being read. */
static struct trigger_config *config_current_trigger(struct config_parser *parser)
{
    return &parser->config.triggers[parser->config.nr_triggers - 1];
}

/* Notes that a condition was given; the same one again replaces the first, as with every key. */
static void config_give_condition(struct config_parser *parser, enum trigger_condition condition,
                                  const char *value)
{
    size_t index = parser->config.nr_triggers - 1;
    struct trigger_config *trigger = &parser->config.triggers[index];

    parser->trigger_notes[index].given |= 1u << condition;
    trigger->condition = condition;
    (void)snprintf(trigger->condition_text, sizeof(trigger->condition_text), "%s%s%s",
                   trigger_condition_name(condition), value ? "=" : "", value ? value : "");
}

static int config_parse_trigger_event(struct config_parser *parser, const char *value)
{
    struct trigger_config *trigger = config_current_trigger(parser);
    int r = config_parse_events(parser, value, &trigger->events);

    if (r < 0)
        return r;
    trigger->events.subclasses[0] = 0; /* GEN */
    if (event_set_xen_mask(&trigger->events) == 0)
        return config_problem(parser, parser->line,
                              "'%s' is what the trace buffers say about themselves; write "
                              "condition=lost-records to wait for lost records",
                              value);
    config_give_condition(parser, TRIGGER_EVENT, value);
    return 0;
}

static int config_parse_trigger_count(struct config_parser *parser, const char *value)
{
    parser->trigger_notes[parser->config.nr_triggers - 1].has_count = true;
    return config_parse_number(parser, value, 1, COUNT_MAX, &config_current_trigger(parser)->count);
}

/* A time that must not be nothing. */
static int config_parse_some_time(struct config_parser *parser, const char *value,
                                  uint64_t *ret_usec)
{
    int r = config_parse_duration(parser, value, ret_usec);

    if (r >= 0 && *ret_usec == 0)
        return config_problem(parser, parser->line, "'%s' is no time at all", value);
    return r;
}

static int config_parse_trigger_within(struct config_parser *parser, const char *value)
{
    parser->trigger_notes[parser->config.nr_triggers - 1].has_within = true;
    return config_parse_some_time(parser, value, &config_current_trigger(parser)->within_usec);
}

static int config_parse_trigger_latency(struct config_parser *parser, const char *value)
{
    int r = config_parse_some_time(parser, value, &config_current_trigger(parser)->latency_usec);

    if (r < 0)
        return r;
    config_give_condition(parser, TRIGGER_RUNNABLE_LATENCY, value);
    return 0;
}

/* event and runnable-latency may be said here too; what they need is in their own keys. */
static int config_parse_trigger_condition(struct config_parser *parser, const char *value)
{
    for (enum trigger_condition c = TRIGGER_EVENT; c <= TRIGGER_MANUAL; c++) {
        if (strcmp(value, trigger_condition_name(c)) != 0)
            continue;
        if (c == TRIGGER_EVENT || c == TRIGGER_RUNNABLE_LATENCY)
            parser->trigger_notes[parser->config.nr_triggers - 1].given |= 1u << c;
        else
            config_give_condition(parser, c, NULL);
        return 0;
    }
    return config_problem(parser, parser->line,
                          "'%s' is no condition: use domain-crash, lost-records or manual, or the "
                          "keys event= and runnable-latency=",
                          value);
}

static int config_parse_trigger_delay(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &config_current_trigger(parser)->delay_usec);
}

static int config_parse_trigger_cooldown(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &config_current_trigger(parser)->cooldown_usec);
}

static int config_parse_trigger_max_per_day(struct config_parser *parser, const char *value)
{
    return config_parse_number(parser, value, 1, MAX_PER_DAY_MAX,
                               &config_current_trigger(parser)->max_per_day);
}

static int config_parse_trigger_max_per_domain(struct config_parser *parser, const char *value)
{
    struct trigger_config *trigger = config_current_trigger(parser);

    trigger->max_per_domain = 0;
    if (strcmp(value, "auto") == 0)
        return 0;
    return config_parse_number(parser, value, 1, MAX_PER_DAY_MAX, &trigger->max_per_domain);
}

static int config_parse_trigger_domain(struct config_parser *parser, const char *value)
{
    if (!value[0])
        return config_problem(parser, parser->line,
                              "domain= is empty: give it a domain's name or UUID, or a pattern "
                              "such as web*");
    (void)snprintf(config_current_trigger(parser)->domain, CONFIG_LIST_MAX, "%s", value);
    return 0;
}

static int config_parse_trigger_last(struct config_parser *parser, const char *value)
{
    return config_parse_duration(parser, value, &config_current_trigger(parser)->last_usec);
}

/* --- All keys. --- */

/* TRIGGER_SECTION stands for each of them. */
#define TRIGGER_SECTION "trigger NAME"

static const struct {
    const char *section;
    const char *key;
    config_parse_fn parse;
} keys[] = {
    {"daemon", "pool", config_parse_pool},
    {"daemon", "pool-max", config_parse_pool_max},
    {"daemon", "log-level", config_parse_log_level},
    {"daemon", "control-group", config_parse_control_group},
    {"daemon", "memory-share", config_parse_memory_share},
    {"daemon", "metrics-file", config_parse_metrics_file},
    {"capture", "buffer-pages", config_parse_buffer_pages},
    {"capture", "reserve", config_parse_reserve},
    {"capture", "segment-unit", config_parse_segment_unit},
    {"limits", "snapshot-interval", config_parse_snapshot_interval},
    {"limits", "snapshots-per-day", config_parse_snapshots_per_day},
    {"limits", "snapshot-bytes-per-day", config_parse_snapshot_bytes},
    {"limits", "keep-for-triggers", config_parse_keep_for_triggers},
    {"disk", "max-use", config_parse_max_use},
    {"disk", "keep-free", config_parse_keep_free},
    {"disk", "max-file-age", config_parse_max_file_age},
    {"flight-recorder", "enabled", config_parse_recorder_enabled},
    {"flight-recorder", "memory", config_parse_recorder_memory},
    {"flight-recorder", "events", config_parse_recorder_events},
    {"flight-recorder", "cpus", config_parse_recorder_cpus},
    {"flight-recorder", "max-age", config_parse_recorder_max_age},
    {"flight-recorder", "keep-enabled", config_parse_recorder_keep_enabled},
    {TRIGGER_SECTION, "event", config_parse_trigger_event},
    {TRIGGER_SECTION, "count", config_parse_trigger_count},
    {TRIGGER_SECTION, "within", config_parse_trigger_within},
    {TRIGGER_SECTION, "runnable-latency", config_parse_trigger_latency},
    {TRIGGER_SECTION, "condition", config_parse_trigger_condition},
    {TRIGGER_SECTION, "delay", config_parse_trigger_delay},
    {TRIGGER_SECTION, "cooldown", config_parse_trigger_cooldown},
    {TRIGGER_SECTION, "max-per-day", config_parse_trigger_max_per_day},
    {TRIGGER_SECTION, "max-per-domain", config_parse_trigger_max_per_domain},
    {TRIGGER_SECTION, "domain", config_parse_trigger_domain},
    {TRIGGER_SECTION, "last", config_parse_trigger_last},
};

/* The key's own section first: [trigger] knows `event`, [flight-recorder] `events`. */
static const char *config_nearest_key(const char *section, const char *key)
{
    const char *words[ARRAY_SIZE(keys)];
    const char *nearest;
    size_t count = 0;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(section, keys[i].section) == 0)
            words[count++] = keys[i].key;
    nearest = suggest_nearest(key, words, count);
    if (nearest)
        return nearest;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        words[i] = keys[i].key;
    return suggest_nearest(key, words, ARRAY_SIZE(words));
}

static void config_report_unknown(struct config_parser *parser, const char *section,
                                  const char *shown, const char *key)
{
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strcmp(key, keys[i].key) == 0) {
            (void)config_problem(parser, parser->line, "'%s' belongs in [%s], not [%s]", key,
                                 keys[i].section, shown);
            return;
        }
    }
    nearest = config_nearest_key(section, key);
    (void)config_problem(parser, parser->line, "there is no key '%s' in [%s]%s%s%s", key, shown,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

/* --- When all is read. --- */

/* One condition, and what belongs to it. */
static int config_check_condition(struct config_parser *parser, size_t index)
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
static int config_check_recorded(struct config_parser *parser, size_t index)
{
    const struct config *config = &parser->config;
    const struct trigger_config *trigger = &config->triggers[index];
    _cleanup_free_ char *error = NULL;
    struct event_set recorded, needed = trigger->events;

    if (trigger->condition == TRIGGER_RUNNABLE_LATENCY ||
        (trigger->condition == TRIGGER_EVENT && trigger->domain[0]))
        event_set_add_mask(&needed, TRC_SCHED_MIN);
    if (event_set_parse(config->recorder.events, &recorded, &error) < 0 ||
        set_covers(&recorded, &needed))
        return 0; /* it was parsed before: only memory can be lacking, and others report that */
    return config_problem(
        parser, parser->trigger_notes[index].line,
        "the trigger '%s' waits for events that events=%s of [flight-recorder] leaves out: "
        "add %s to it%s",
        trigger->name, config->recorder.events,
        trigger->condition == TRIGGER_EVENT ? strchr(trigger->condition_text, '=') + 1
                                            : "sched-min",
        trigger->condition == TRIGGER_EVENT && trigger->domain[0]
            ? ", and sched-min, which shows whose they are"
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
static int config_settle_domains(struct config_parser *parser, size_t index)
{
    struct trigger_config *trigger = &parser->config.triggers[index];
    bool is_one = trigger->domain[0] && !strpbrk(trigger->domain, "*?[");

    if (!trigger_has_domains(trigger)) {
        if (!trigger->domain[0] && !trigger->max_per_domain)
            return 0;
        return config_problem(parser, parser->trigger_notes[index].line,
                              "the trigger '%s' has domain= or max-per-domain=, but %s is not "
                              "about a domain",
                              trigger->name, trigger_condition_name(trigger->condition));
    }
    if (!trigger->max_per_domain)
        trigger->max_per_domain =
            is_one ? trigger->max_per_day : (uint32_t)max_u64(1, trigger->max_per_day / 3);
    if (trigger->max_per_domain < trigger->max_per_day)
        trigger->kept_for_new = trigger->max_per_day / 5;
    return 0;
}

static int config_check_triggers(struct config_parser *parser)
{
    int r;

    for (size_t i = 0; i < parser->config.nr_triggers; i++) {
        struct trigger_config *trigger = &parser->config.triggers[i];

        r = config_check_condition(parser, i);
        if (r < 0)
            return r;
        if (parser->config.recorder.enabled) {
            r = config_check_recorded(parser, i);
            if (r < 0)
                return r;
        }
        r = config_settle_domains(parser, i);
        if (r < 0)
            return r;
        if (trigger->count == 1)
            trigger->within_usec = 0;
    }
    return 0;
}

/* --- The file. --- */

/* --- The sections of captures: capture-config.c. --- */

static void config_end_capture(struct config_parser *parser)
{
    char problem[CAPTURE_PROBLEM_MAX];

    if (parser->in_capture && capture_config_check(&parser->config.captures, problem) < 0)
        (void)config_problem(parser, parser->capture_line, "%s", problem);
    parser->in_capture = false;
}

static void config_begin_capture(struct config_parser *parser, const char *section)
{
    char problem[CAPTURE_PROBLEM_MAX];

    parser->capture_line = parser->line;
    if (capture_config_begin(&parser->config.captures, section, problem) < 0)
        (void)config_problem(parser, parser->line, "%s", problem);
    else
        parser->in_capture = true;
}

static int config_set_capture(struct config_parser *parser, const char *key, const char *value)
{
    char problem[CAPTURE_PROBLEM_MAX];

    if (capture_config_set(&parser->config.captures, key, value, problem) < 0)
        return config_problem(parser, parser->line, "%s", problem);
    return 0;
}

/* A section begins with LINE, which inih has not seen yet: what it takes for one is one here. */
static void config_begin_section(struct config_parser *parser, const char *line)
{
    char text[64];
    size_t length = strcspn(line + 1, "]\r\n");

    if (line[1 + length] != ']' || length >= sizeof(text))
        return; /* inih complains, or config_handle_key() does not know it */
    (void)snprintf(text, sizeof(text), "%.*s", (int)length, line + 1);
    config_end_capture(parser);
    if (capture_config_is_section(text))
        config_begin_capture(parser, text);
    parser->in_trigger = config_is_trigger_section(text);
    if (parser->in_trigger)
        (void)config_begin_trigger(parser, text); /* the problem is kept */
}

/* inih's reader. It counts lines as inih does, which does not pass the number to its handler. */
static char *config_read_line(char *buffer, int size, void *context)
{
    struct config_parser *parser = context;
    char *line = fgets(buffer, size, parser->file);

    parser->line++;
    if (line && line[0] == '[')
        config_begin_section(parser, line);
    return line;
}

/* inih's handler: 0 means that the line is wrong. inih continues; the first problem is kept. */
static int config_handle_key(void *context, const char *section, const char *key, const char *value)
{
    struct config_parser *parser = context;
    const char *known = parser->in_trigger ? TRIGGER_SECTION : section;

    if (parser->problem[0])
        return 0;
    if (parser->in_capture)
        return config_set_capture(parser, key, value) >= 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(known, keys[i].section) == 0 && strcmp(key, keys[i].key) == 0)
            return keys[i].parse(parser, value) >= 0;
    config_report_unknown(parser, known, section, key);
    return 0;
}

/* Puts what is wrong into *RET_ERROR: the first of our problem and the line that inih refused. */
static int config_report(const struct config_parser *parser, const char *path, int refused_line,
                         char **ret_error)
{
    bool is_ours =
        parser->problem[0] && (refused_line == 0 || parser->problem_line <= refused_line);
    int line = is_ours ? parser->problem_line : refused_line;
    const char *problem = is_ours ? parser->problem : "this is not 'key = value'";

    if (asprintf(ret_error, "%s, line %d: %s; see xentraced(8).", path, line, problem) < 0)
        return -ENOMEM;
    return -EINVAL;
}

static int config_refuse_file(const char *path, int error, char **ret_error)
{
    if (asprintf(ret_error, "Cannot read the configuration %s: %s.", path, strerror(error)) < 0)
        return -ENOMEM;
    return -error;
}

int config_load(const char *path, bool required, struct config *ret_config, char **ret_error)
{
    struct config_parser parser = {.config = config_defaults};
    _cleanup_file_ FILE *file = fopen(path, "re");
    int line;

    if (!file) {
        if (errno == ENOENT && !required) {
            *ret_config = config_defaults;
            return 0;
        }
        return config_refuse_file(path, errno, ret_error);
    }
    parser.file = file;
    line = ini_parse_stream(config_read_line, &parser, config_handle_key, &parser);
    if (ferror(file))
        return config_refuse_file(path, EIO, ret_error);
    config_end_capture(&parser);
    if (line == 0 && !parser.problem[0] && config_check_pool(&parser) == 0)
        (void)config_check_triggers(&parser); /* the problem is kept */
    if (line != 0 || parser.problem[0])
        return config_report(&parser, path, line, ret_error);
    *ret_config = parser.config;
    return 0;
}
