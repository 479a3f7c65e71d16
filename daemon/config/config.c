// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inih reads the file; a table of keys says what each value is. An unknown section or key is an
 * error: a misspelt limit that is silently ignored fills a disk.
 *
 * inih tells its handler of keys only, so the headers of sections, which make triggers, are taken
 * from the lines on their way to it.
 *
 * The flight recorder's default events have one and the same subclass in two classes, so that Xen's
 * own mask selects exactly them (0x00061000) and nothing else takes up room in its buffers.
 */

#include "daemon/config/config-parser.h"

#include <errno.h>
#include <ini.h>
#include <stdarg.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/suggest.h"
#include "common/text.h"
#include "common/units.h"

#define MEMORY_MIN_BYTES (UINT64_C(2) << 20)
#define MEMORY_MAX_BYTES (UINT64_C(64) << 30)

static const struct config config_defaults = {
    .pool_bytes = UINT64_C(64) << 20,
    .memory_share_percent = 50,
    .recorder =
        {
            .enabled = true,
            .memory_bytes = UINT64_C(64) << 20,
            .events = "sched-min,dom0op-domops",
            .cpus = "all",
            .keep_enabled = true,
        },
};

int config_problem(struct config_parser *parser, int line, const char *format, ...)
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

int config_parse_memory(struct config_parser *parser, const char *value, uint64_t *ret_bytes)
{
    uint64_t bytes;

    if (size_parse(value, 1, &bytes) < 0 || bytes < MEMORY_MIN_BYTES || bytes > MEMORY_MAX_BYTES)
        return config_problem(parser, parser->line,
                              "'%s' is not a size from 2M to 64G, such as 64M", value);
    *ret_bytes = bytes;
    return 0;
}

int config_parse_bool(struct config_parser *parser, const char *value, bool *ret_bool)
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

int config_parse_duration(struct config_parser *parser, const char *value, uint64_t *ret_usec)
{
    if (duration_parse(value, USEC_PER_SEC, ret_usec) < 0)
        return config_problem(parser, parser->line, "'%s' is not a time, such as 500ms, 30s or 2h",
                              value);
    return 0;
}

int config_parse_number(struct config_parser *parser, const char *value, uint32_t min, uint32_t max,
                        uint32_t *ret_number)
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
static int refuse_list(struct config_parser *parser, int error, char *sentence)
{
    size_t length = sentence ? strlen(sentence) : 0;

    if (length > 0 && sentence[length - 1] == '.')
        sentence[length - 1] = '\0';
    (void)config_problem(parser, parser->line, "%s", sentence ? sentence : "Out of memory");
    return error;
}

int config_parse_events(struct config_parser *parser, const char *value, struct event_set *ret_set)
{
    _cleanup_free_ char *error = NULL;
    int r = event_set_parse(value, ret_set, &error);

    return r < 0 ? refuse_list(parser, r, error) : 0;
}

/* Keeps a list as it was typed; it is on one line of inih's, so it fits. */
static void keep_list(char list[static CONFIG_LIST_MAX], const char *value)
{
    (void)snprintf(list, CONFIG_LIST_MAX, "%s", value);
}

/* --- Keys. --- */

static int parse_pool(struct config_parser *parser, const char *value)
{
    return config_parse_memory(parser, value, &parser->config.pool_bytes);
}

static int parse_control_group(struct config_parser *parser, const char *value)
{
    if (strlen(value) >= sizeof(parser->config.control_group))
        return config_problem(parser, parser->line, "the group's name is too long");
    (void)snprintf(parser->config.control_group, sizeof(parser->config.control_group), "%s", value);
    return 0;
}

static int parse_memory_share(struct config_parser *parser, const char *value)
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

static int parse_buffer_pages(struct config_parser *parser, const char *value)
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
static int parse_segment_unit(struct config_parser *parser, const char *value)
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

static int parse_reserve(struct config_parser *parser, const char *value)
{
    if (size_parse(value, UINT64_C(1) << 20, &parser->config.reserve_bytes) < 0)
        return config_problem(parser, parser->line, "'%s' is not a size, such as 512M", value);
    return 0;
}

static int parse_recorder_enabled(struct config_parser *parser, const char *value)
{
    return config_parse_bool(parser, value, &parser->config.recorder.enabled);
}

static int parse_recorder_memory(struct config_parser *parser, const char *value)
{
    return config_parse_memory(parser, value, &parser->config.recorder.memory_bytes);
}

static int parse_recorder_events(struct config_parser *parser, const char *value)
{
    struct event_set set;
    int r = config_parse_events(parser, value, &set);

    if (r >= 0)
        keep_list(parser->config.recorder.events, value);
    return r;
}

static int parse_recorder_cpus(struct config_parser *parser, const char *value)
{
    _cleanup_free_ char *error = NULL;
    struct cpu_set set;
    int r = cpu_set_parse(value, CPU_SET_MAX, &set, &error);

    if (r < 0)
        return refuse_list(parser, r, error);
    keep_list(parser->config.recorder.cpus, value);
    return 0;
}

static int parse_recorder_max_age(struct config_parser *parser, const char *value)
{
    const struct text_item item = {.begin = value, .length = strlen(value)};

    if (text_item_is(&item, "none")) {
        parser->config.recorder.max_age_usec = 0;
        return 0;
    }
    return config_parse_duration(parser, value, &parser->config.recorder.max_age_usec);
}

static int parse_recorder_keep_enabled(struct config_parser *parser, const char *value)
{
    return config_parse_bool(parser, value, &parser->config.recorder.keep_enabled);
}

/* TRIGGER_SECTION stands for each of them. */
#define TRIGGER_SECTION "trigger NAME"

static const struct {
    const char *section;
    const char *key;
    config_parse_fn parse;
} keys[] = {
    {"daemon", "pool", parse_pool},
    {"daemon", "control-group", parse_control_group},
    {"daemon", "memory-share", parse_memory_share},
    {"capture", "buffer-pages", parse_buffer_pages},
    {"capture", "reserve", parse_reserve},
    {"capture", "segment-unit", parse_segment_unit},
    {"flight-recorder", "enabled", parse_recorder_enabled},
    {"flight-recorder", "memory", parse_recorder_memory},
    {"flight-recorder", "events", parse_recorder_events},
    {"flight-recorder", "cpus", parse_recorder_cpus},
    {"flight-recorder", "max-age", parse_recorder_max_age},
    {"flight-recorder", "keep-enabled", parse_recorder_keep_enabled},
    {TRIGGER_SECTION, "event", config_parse_trigger_event},
    {TRIGGER_SECTION, "count", config_parse_trigger_count},
    {TRIGGER_SECTION, "within", config_parse_trigger_within},
    {TRIGGER_SECTION, "runnable-latency", config_parse_trigger_latency},
    {TRIGGER_SECTION, "condition", config_parse_trigger_condition},
    {TRIGGER_SECTION, "delay", config_parse_trigger_delay},
    {TRIGGER_SECTION, "cooldown", config_parse_trigger_cooldown},
    {TRIGGER_SECTION, "max-per-day", config_parse_trigger_max_per_day},
    {TRIGGER_SECTION, "last", config_parse_trigger_last},
};

/* The key's own section first: [trigger] knows `event`, [flight-recorder] `events`. */
static const char *nearest_key(const char *section, const char *key)
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

static void report_unknown(struct config_parser *parser, const char *section, const char *shown,
                           const char *key)
{
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        if (strcmp(key, keys[i].key) == 0) {
            (void)config_problem(parser, parser->line, "'%s' belongs in [%s], not [%s]", key,
                                 keys[i].section, shown);
            return;
        }
    }
    nearest = nearest_key(section, key);
    (void)config_problem(parser, parser->line, "there is no key '%s' in [%s]%s%s%s", key, shown,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "",
                         nearest ? "'?" : "");
}

/* --- The file. --- */

/* A section begins with LINE, which inih has not seen yet: what it takes for one is one here. */
static void begin_section(struct config_parser *parser, const char *line)
{
    char text[64];
    size_t length = strcspn(line + 1, "]\r\n");

    if (line[1 + length] != ']' || length >= sizeof(text))
        return; /* inih complains, or handle_key() does not know it */
    (void)snprintf(text, sizeof(text), "%.*s", (int)length, line + 1);
    parser->in_trigger = config_is_trigger_section(text);
    if (parser->in_trigger)
        (void)config_begin_trigger(parser, text); /* the problem is kept */
}

/* inih's reader, which counts lines as inih does: it does not tell its handler. */
static char *read_line(char *buffer, int size, void *context)
{
    struct config_parser *parser = context;
    char *line = fgets(buffer, size, parser->file);

    parser->line++;
    if (line && line[0] == '[')
        begin_section(parser, line);
    return line;
}

/* inih's handler: 0 means that the line is wrong. It goes on; the first problem is kept. */
static int handle_key(void *context, const char *section, const char *key, const char *value)
{
    struct config_parser *parser = context;
    const char *known = parser->in_trigger ? TRIGGER_SECTION : section;

    if (parser->problem[0])
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(known, keys[i].section) == 0 && strcmp(key, keys[i].key) == 0)
            return keys[i].parse(parser, value) >= 0;
    report_unknown(parser, known, section, key);
    return 0;
}

/* Puts what is wrong into *RET_ERROR: the first of our problem and the line that inih refused. */
static int report(const struct config_parser *parser, const char *path, int refused_line,
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

static int refuse_file(const char *path, int error, char **ret_error)
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
        return refuse_file(path, errno, ret_error);
    }
    parser.file = file;
    line = ini_parse_stream(read_line, &parser, handle_key, &parser);
    if (ferror(file))
        return refuse_file(path, EIO, ret_error);
    if (line == 0 && !parser.problem[0])
        (void)config_check_triggers(&parser); /* the problem is kept */
    if (line != 0 || parser.problem[0])
        return report(&parser, path, line, ret_error);
    *ret_config = parser.config;
    return 0;
}
