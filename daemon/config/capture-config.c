// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A capture that nobody looks at must not fill the disk, nor end there: by default it has segments,
 * and deletes its oldest ones when the disk has no more than is to stay free.
 */

#include "daemon/config/capture-config.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/event-set.h"
#include "common/protocol.h"
#include "common/suggest.h"
#include "common/text.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/disk-limit.h"

#define SECTION_WORD      "capture"
#define SEGMENT_BYTES     (UINT64_C(100) << 20)
#define SEGMENT_MIN_BYTES (UINT64_C(1) << 20)
#define KEEP_FILES_MAX    99999u

static const struct capture_config defaults = {
    .enabled = true,
    .events = "all",
    .cpus = "all",
    .reserve_bytes = DISK_RESERVE_AUTO,
    .on_reserve = "rotate",
};

_printf_(2, 3) static int refuse(char problem[static CAPTURE_PROBLEM_MAX], const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(problem, CAPTURE_PROBLEM_MAX, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* Passes on a sentence of common/'s, as half a sentence. */
static int refuse_list(char problem[static CAPTURE_PROBLEM_MAX], char *sentence)
{
    size_t length = sentence ? strlen(sentence) : 0;

    if (length > 0 && sentence[length - 1] == '.')
        sentence[length - 1] = '\0';
    return refuse(problem, "%s", sentence ? sentence : "Out of memory");
}

/* --- Values. --- */

static int set_enabled(struct capture_config *capture, const char *value, char *problem)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};
    const struct text_item item = {.begin = value, .length = strlen(value)};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (text_item_is(&item, words[i])) {
            capture->enabled = i % 2;
            return 0;
        }
    }
    return refuse(problem, "'%s' is neither 'yes' nor 'no'", value);
}

static int set_events(struct capture_config *capture, const char *value, char *problem)
{
    _cleanup_free_ char *error = NULL;
    struct event_set set;

    if (event_set_parse(value, &set, &error) < 0)
        return refuse_list(problem, error);
    (void)snprintf(capture->events, sizeof(capture->events), "%s", value);
    return 0;
}

static int set_cpus(struct capture_config *capture, const char *value, char *problem)
{
    _cleanup_free_ char *error = NULL;
    struct cpu_set set;

    if (cpu_set_parse(value, CPU_SET_MAX, &set, &error) < 0)
        return refuse_list(problem, error);
    (void)snprintf(capture->cpus, sizeof(capture->cpus), "%s", value);
    return 0;
}

static int set_segment_size(struct capture_config *capture, const char *value, char *problem)
{
    if (size_parse(value, 1, &capture->segment_size_bytes) < 0 ||
        capture->segment_size_bytes < SEGMENT_MIN_BYTES ||
        capture->segment_size_bytes >= UINT64_MAX / 4)
        return refuse(problem, "'%s' is not a size of 1M or more, such as 100M", value);
    return 0;
}

static int set_segment_time(struct capture_config *capture, const char *value, char *problem)
{
    if (duration_parse(value, USEC_PER_SEC, &capture->segment_time_usec) < 0 ||
        capture->segment_time_usec < USEC_PER_SEC)
        return refuse(problem, "'%s' is not a time of 1 s or more, such as 10min", value);
    return 0;
}

static int set_keep_files(struct capture_config *capture, const char *value, char *problem)
{
    uint64_t number = 0;
    const char *c = value;

    for (; text_is_digit(*c) && number <= KEEP_FILES_MAX; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == value || *c || number < 2 || number > KEEP_FILES_MAX)
        return refuse(problem, "'%s' is not a number from 2 to %u", value, KEEP_FILES_MAX);
    capture->keep_files = (uint32_t)number;
    return 0;
}

static int set_keep_size(struct capture_config *capture, const char *value, char *problem)
{
    if (size_parse(value, 1, &capture->keep_size_bytes) < 0 ||
        capture->keep_size_bytes >= UINT64_MAX / 4)
        return refuse(problem, "'%s' is not a size, such as 2G", value);
    return 0;
}

static int set_reserve(struct capture_config *capture, const char *value, char *problem)
{
    if (strcmp(value, "auto") == 0)
        capture->reserve_bytes = DISK_RESERVE_AUTO;
    else if (size_parse(value, UINT64_C(1) << 20, &capture->reserve_bytes) < 0)
        return refuse(problem, "'%s' is neither 'auto' nor a size, such as 512M", value);
    return 0;
}

static int set_on_reserve(struct capture_config *capture, const char *value, char *problem)
{
    static const char *const words[] = {"stop", "rotate", "pause"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(value, words[i]) == 0) {
            capture->on_reserve = words[i];
            return 0;
        }
    }
    return refuse(problem, "'%s' is none of stop, rotate and pause", value);
}

static const struct {
    const char *key;
    int (*set)(struct capture_config *capture, const char *value, char *problem);
} keys[] = {
    {"enabled", set_enabled},
    {"events", set_events},
    {"cpus", set_cpus},
    {"segment-size", set_segment_size},
    {"segment-time", set_segment_time},
    {"keep-files", set_keep_files},
    {"keep-size", set_keep_size},
    {"reserve", set_reserve},
    {"on-reserve", set_on_reserve},
};

/* --- Sections. --- */

bool capture_config_is_section(const char *text)
{
    size_t length = strlen(SECTION_WORD);

    return strncmp(text, SECTION_WORD, length) == 0 && text_is_blank(text[length]);
}

int capture_config_begin(struct capture_configs *configs, const char *section,
                         char problem[static CAPTURE_PROBLEM_MAX])
{
    const char *name = section + strlen(SECTION_WORD);
    struct capture_config *capture;

    while (text_is_blank(*name))
        name++;
    if (!name_is_valid(name, SESSION_NAME_MAX) || strcmp(name, PROTOCOL_RECORDER) == 0)
        return refuse(
            problem,
            "'%s' cannot be a capture's name: write [capture NAME], with 1 to %u letters, "
            "digits or ._-@: and none of '.' and '-' first",
            name, SESSION_NAME_MAX);
    for (size_t i = 0; i < configs->count; i++)
        if (strcmp(configs->captures[i].name, name) == 0)
            return refuse(problem, "there is a capture '%s' already", name);
    if (configs->count == CAPTURE_CONFIGS_MAX)
        return refuse(problem, "there may be %u captures at most", CAPTURE_CONFIGS_MAX);
    capture = &configs->captures[configs->count++];
    *capture = defaults;
    (void)strcpy(capture->name, name); /* a valid one fits */
    return 0;
}

static int refuse_key(const char *key, char problem[static CAPTURE_PROBLEM_MAX])
{
    const char *words[ARRAY_SIZE(keys)];
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        words[i] = keys[i].key;
    nearest = suggest_nearest(key, words, ARRAY_SIZE(words));
    return refuse(problem, "there is no key '%s' in [%s]%s%s%s", key, CAPTURE_SECTION,
                  nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

int capture_config_set(struct capture_configs *configs, const char *key, const char *value,
                       char problem[static CAPTURE_PROBLEM_MAX])
{
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(key, keys[i].key) == 0)
            return keys[i].set(&configs->captures[configs->count - 1], value, problem);
    return refuse_key(key, problem);
}

int capture_config_check(struct capture_configs *configs, char problem[static CAPTURE_PROBLEM_MAX])
{
    struct capture_config *capture = &configs->captures[configs->count - 1];
    char text[UNITS_TEXT_MAX];
    uint64_t least_bytes;

    if (!capture->segment_size_bytes && !capture->segment_time_usec && !capture->keep_size_bytes)
        capture->segment_size_bytes = SEGMENT_BYTES;
    if (!capture->segment_size_bytes && !capture->segment_time_usec)
        capture->segment_size_bytes =
            max_u64(min_u64(capture->keep_size_bytes / 8, SEGMENT_BYTES), SEGMENT_MIN_BYTES);
    least_bytes = 2 * capture->segment_size_bytes + SEGMENT_MIN_BYTES;
    if (capture->keep_size_bytes && capture->keep_size_bytes < least_bytes)
        return refuse(problem,
                      "keep-size= of the capture '%s' has to hold two segments and 1 MiB: it is at "
                      "least %s here",
                      capture->name, size_format(text, least_bytes));
    return 0;
}
