// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inih reads the file; a table of keys says what each value is. An unknown section or key is an
 * error: a misspelt limit that is silently ignored fills a disk.
 */

#include "daemon/config.h"

#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <string.h>

#include "common/suggest.h"
#include "common/units.h"
#include "common/util.h"

#define POOL_MIN_BYTES (UINT64_C(1) << 20)
#define POOL_MAX_BYTES (UINT64_C(64) << 30)

static const struct config config_defaults = {
    .pool_bytes = UINT64_C(64) << 20, .buffer_pages = 32, /* as xentrace */
};

struct parser {
    struct config config;
    FILE *file;
    int line;         /* that inih has read last */
    int problem_line; /* that the problem is in; inih's own complaints have none */
    char problem[256];
};

typedef int (*parse_fn)(struct parser *parser, const char *value);

static int parse_pool(struct parser *parser, const char *value)
{
    uint64_t bytes;

    if (size_parse(value, 1, &bytes) < 0 || bytes < POOL_MIN_BYTES || bytes > POOL_MAX_BYTES) {
        (void)snprintf(parser->problem, sizeof(parser->problem),
                       "'%s' is not a size from 1M to 64G, such as 64M", value);
        return -EINVAL;
    }
    parser->config.pool_bytes = bytes;
    return 0;
}

static int parse_control_group(struct parser *parser, const char *value)
{
    if (strlen(value) >= sizeof(parser->config.control_group)) {
        (void)snprintf(parser->problem, sizeof(parser->problem), "the group's name is too long");
        return -EINVAL;
    }
    (void)snprintf(parser->config.control_group, sizeof(parser->config.control_group), "%s", value);
    return 0;
}

static int parse_buffer_pages(struct parser *parser, const char *value)
{
    uint64_t pages;

    /* t_info holds the number in 16 bits; a page more or less is Xen's to decide. */
    if (size_parse(value, 1, &pages) < 0 || pages == 0 || pages > UINT16_MAX) {
        (void)snprintf(parser->problem, sizeof(parser->problem),
                       "'%s' is not a number of pages from 1 to 65535", value);
        return -EINVAL;
    }
    parser->config.buffer_pages = (uint32_t)pages;
    return 0;
}

static int parse_reserve(struct parser *parser, const char *value)
{
    if (size_parse(value, UINT64_C(1) << 20, &parser->config.reserve_bytes) < 0) {
        (void)snprintf(parser->problem, sizeof(parser->problem), "'%s' is not a size, such as 512M",
                       value);
        return -EINVAL;
    }
    return 0;
}

static const struct {
    const char *section;
    const char *key;
    parse_fn parse;
} keys[] = {
    {"daemon", "pool", parse_pool},
    {"daemon", "control-group", parse_control_group},
    {"capture", "buffer-pages", parse_buffer_pages},
    {"capture", "reserve", parse_reserve},
};

static void report_unknown(struct parser *parser, const char *section, const char *key)
{
    const char *words[ARRAY_SIZE(keys)];
    const char *nearest;

    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        words[i] = keys[i].key;
        if (strcmp(key, keys[i].key) != 0)
            continue;
        (void)snprintf(parser->problem, sizeof(parser->problem), "'%s' belongs in [%s], not [%s]",
                       key, keys[i].section, section);
        return;
    }
    nearest = suggest_nearest(key, words, ARRAY_SIZE(words));
    (void)snprintf(parser->problem, sizeof(parser->problem), "there is no key '%s' in [%s]%s%s%s",
                   key, section, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                   nearest ? "'?" : "");
}

/* inih's reader, which counts lines as inih does: it does not tell its handler. */
static char *read_line(char *buffer, int size, void *context)
{
    struct parser *parser = context;

    parser->line++;
    return fgets(buffer, size, parser->file);
}

/* inih's handler: 0 means that the line is wrong. It goes on; the first problem is kept. */
static int handle_key(void *context, const char *section, const char *key, const char *value)
{
    struct parser *parser = context;

    if (parser->problem[0])
        return 0;
    parser->problem_line = parser->line;
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
        if (strcmp(section, keys[i].section) == 0 && strcmp(key, keys[i].key) == 0)
            return keys[i].parse(parser, value) == 0;
    report_unknown(parser, section, key);
    return 0;
}

int config_load(const char *path, bool required, struct config *ret_config, char **ret_error)
{
    struct parser parser = {.config = config_defaults};
    _cleanup_file_ FILE *file = fopen(path, "re");
    int line;

    if (!file) {
        int error = errno;

        if (error == ENOENT && !required) {
            *ret_config = config_defaults;
            return 0;
        }
        if (asprintf(ret_error, "Cannot read the configuration %s: %s.", path, strerror(error)) < 0)
            return -ENOMEM;
        return -error;
    }
    parser.file = file;
    line = ini_parse_stream(read_line, &parser, handle_key, &parser);
    if (ferror(file)) {
        if (asprintf(ret_error, "Cannot read the configuration %s: %s.", path, strerror(errno)) < 0)
            return -ENOMEM;
        return -EIO;
    }
    if (line != 0) {
        const char *problem =
            line == parser.problem_line ? parser.problem : "this is not 'key = value'";

        if (asprintf(ret_error, "%s, line %d: %s; see xentraced(8).", path, line, problem) < 0)
            return -ENOMEM;
        return -EINVAL;
    }
    *ret_config = parser.config;
    return 0;
}
