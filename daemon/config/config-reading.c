// SPDX-License-Identifier: GPL-2.0-or-later
/* Lists that grow; a failed allocation is noted, and the caller of config_read() learns of it. */

#include "daemon/config/config-reading.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/utf8.h"

struct config_reading *config_reading_free(struct config_reading *reading)
{
    if (!reading)
        return NULL;
    for (size_t i = 0; i < reading->nr_files; i++)
        free(reading->files[i]);
    for (size_t i = 0; i < reading->nr_settings; i++) {
        free(reading->settings[i].section);
        free(reading->settings[i].value);
    }
    for (size_t i = 0; i < reading->nr_problems; i++)
        free(reading->problems[i].text);
    free(reading->files);
    free(reading->settings);
    free(reading->problems);
    free(reading);
    return NULL;
}

/* TEXT, of a file, as it can be shown and sent. Free it; NULL: no memory. */
static char *clean_copy(const char *text)
{
    size_t size = 4 * strlen(text) + 1; /* "\\xNN" is the longest that a byte becomes */
    char *copy = malloc(size);

    if (copy)
        (void)utf8_copy(copy, size, text);
    return copy;
}

/* Room for one more item in *ITEMS, which has COUNT. */
static bool config_grow(struct config_reading *reading, void **items, size_t count,
                        size_t item_bytes)
{
    void *more = reallocarray(*items, count + 1, item_bytes);

    if (more)
        *items = more;
    else
        reading->has_no_memory = true;
    return more;
}

const char *config_add_file(struct config_reading *reading, const char *path)
{
    char *copy = clean_copy(path);

    if (!copy || !config_grow(reading, (void **)&reading->files, reading->nr_files,
                              sizeof(*reading->files))) {
        reading->has_no_memory = true;
        free(copy);
        return NULL;
    }
    reading->files[reading->nr_files++] = copy;
    return copy;
}

/* --- Settings. --- */

static struct config_setting *config_seek(const struct config_reading *reading, const char *section,
                                          const struct config_key *key)
{
    for (size_t i = 0; i < reading->nr_settings; i++)
        if (reading->settings[i].key == key && strcmp(reading->settings[i].section, section) == 0)
            return &reading->settings[i];
    return NULL;
}

const struct config_setting *config_find_setting(const struct config_reading *reading,
                                                 const char *section, const struct config_key *key)
{
    return config_seek(reading, section, key);
}

void config_set(struct config_reading *reading, const char *section, const struct config_key *key,
                const char *value, const struct config_origin *origin)
{
    struct config_setting *setting = config_seek(reading, section, key);
    struct config_setting fresh = {
        .section = strdup(section), .key = key, .value = clean_copy(value), .origin = *origin};

    if (!fresh.section || !fresh.value ||
        (!setting && !config_grow(reading, (void **)&reading->settings, reading->nr_settings,
                                  sizeof(*reading->settings)))) {
        reading->has_no_memory = true;
        free(fresh.section);
        free(fresh.value);
        return;
    }
    if (!setting) {
        setting = &reading->settings[reading->nr_settings++];
    } else {
        free(setting->section);
        free(setting->value);
    }
    *setting = fresh;
}

/* --- Problems. --- */

_printf_(4, 0) static void config_note(struct config_reading *reading,
                                       const struct config_origin *origin, bool is_error,
                                       const char *format, va_list arguments)
{
    struct config_problem problem = {.is_error = is_error, .origin = *origin};
    _cleanup_free_ char *text = NULL;

    reading->nr_errors += is_error;
    if (vasprintf(&text, format, arguments) < 0)
        text = NULL; /* it is undefined then */
    problem.text = text ? clean_copy(text) : NULL;
    if (!problem.text) {
        reading->has_no_memory = true;
        return;
    }
    if (!config_grow(reading, (void **)&reading->problems, reading->nr_problems,
                     sizeof(*reading->problems))) {
        free(problem.text);
        return;
    }
    reading->problems[reading->nr_problems++] = problem;
}

int config_refuse(struct config_reading *reading, const struct config_origin *origin,
                  const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    config_note(reading, origin, true, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

void config_warn(struct config_reading *reading, const struct config_origin *origin,
                 const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    config_note(reading, origin, false, format, arguments);
    va_end(arguments);
}

/* By insertion: it keeps the order of one line's problems, and there are few. */
void config_sort_problems(struct config_reading *reading, size_t first)
{
    for (size_t i = first + 1; i < reading->nr_problems; i++) {
        struct config_problem moved = reading->problems[i];
        size_t at = i;

        for (; at > first && reading->problems[at - 1].origin.line > moved.origin.line; at--)
            reading->problems[at] = reading->problems[at - 1];
        reading->problems[at] = moved;
    }
}

char *config_describe_problem(const struct config_problem *problem)
{
    const struct config_origin *origin = &problem->origin;
    char *text;
    int r;

    if (origin->line == 0)
        r = asprintf(&text, "%s.", problem->text);
    else
        r = asprintf(&text, "%s, line %d: %s%s xentraced.conf(5).", origin->file, origin->line,
                     problem->text,
                     problem->text[strlen(problem->text) - 1] == '?' ? " See" : "; see");
    return r < 0 ? NULL : text;
}

char *config_describe_first_error(const struct config_reading *reading)
{
    for (size_t i = 0; i < reading->nr_problems; i++)
        if (reading->problems[i].is_error)
            return config_describe_problem(&reading->problems[i]);
    return NULL;
}
