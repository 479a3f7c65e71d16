// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * inih reads the files; the tables of config-keys.c say what there may be. An unknown section or
 * key is an error: a misspelt limit that is silently ignored fills a disk.
 *
 * inih passes keys to its handler, but no headers of sections, and no numbers of lines. Both are
 * therefore taken from the lines as inih reads them.
 */

#include "daemon/config/config-read.h"

#include <errno.h>
#include <ini.h>
#include <string.h>

#include "common/text.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/name.h"
#include "daemon/config/config-captures.h"
#include "daemon/config/config-files.h"
#include "daemon/config/config-keys.h"
#include "daemon/config/config-reading.h"
#include "daemon/config/config-triggers.h"

#define HEADER_MAX 64u

/* One file while it is read. */
struct config_parser {
    struct config_reading *reading;
    FILE *file;
    struct config_origin origin; /* the line that inih has read last */
    bool is_indented;            /* that line */

    char header[HEADER_MAX];              /* what is between [ and ]; "" before the first one */
    char title[HEADER_MAX];               /* the same without needless blanks */
    const struct config_section *section; /* NULL: what is in it is left out */
    void *base;                           /* what its keys' fields are in */
    const struct config_key *last_key;    /* of this section */
};

/* --- Values. --- */

/* Defaults are typed by us: they are right. */
static void config_set_defaults(struct config_reading *reading,
                                const struct config_section *section, void *base)
{
    const struct config_origin nowhere = {0};

    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);
        const struct config_value value = {reading, &nowhere, key};

        if (config_is_in_section(key, section) && key->standard[0])
            (void)key->parse(&value, key->standard, config_field(base, key));
    }
}

/* An empty value is the default, so that a drop-in can take back what was set before it. */
static void config_assign(struct config_parser *parser, const struct config_key *key,
                          const char *text)
{
    const struct config_value value = {parser->reading, &parser->origin, key};
    const char *typed = text[0] ? text : key->standard;
    void *field = config_field(parser->base, key);

    if (typed[0])
        (void)key->parse(&value, typed, field); /* the problem is noted */
    else
        memset(field, 0, key->bytes);
}

/* The same key twice in one file is a mistake; in several files, the last one is meant. */
static void config_check_repeated(struct config_parser *parser, const struct config_key *key,
                                  const char *value)
{
    const struct config_setting *before = config_find_setting(parser->reading, parser->title, key);

    if (!before || before->origin.file != parser->origin.file)
        return;
    if (key->is_condition && before->value[0] && value[0])
        (void)config_refuse(
            parser->reading, &parser->origin,
            "%s= is already set at line %d: a trigger has one condition; use two triggers",
            key->name, before->origin.line);
    else
        config_warn(parser->reading, &parser->origin,
                    "%s= is already set at line %d; this value applies", key->name,
                    before->origin.line);
}

static void config_report_unknown_key(struct config_parser *parser, const char *key)
{
    const char *title = parser->section ? parser->section->title : "";
    const char *belongs = config_section_of_key(key);
    const char *nearest = parser->section ? config_nearest_key(title, key) : NULL;

    /* [trigger NAME] knows `event`, [flight-recorder] `events`. */
    if (nearest)
        belongs = NULL;
    if (belongs && !parser->section)
        (void)config_refuse(parser->reading, &parser->origin,
                            "'%s' belongs in [%s], but is before the first section", key, belongs);
    else if (belongs)
        (void)config_refuse(parser->reading, &parser->origin, "'%s' belongs in [%s], not [%s]", key,
                            belongs, parser->title);
    if (belongs)
        return;
    if (!nearest)
        nearest = config_nearest_key(NULL, key);
    (void)config_refuse(parser->reading, &parser->origin, "there is no key '%s' in [%s]%s%s%s", key,
                        parser->title, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                        nearest ? "'?" : "");
}

/*
 * The handler for inih. It always returns success, so that inih reports only lines that it cannot
 * parse itself.
 */
static int config_handle_key(void *context, const char *header, const char *name, const char *value)
{
    struct config_parser *parser = context;
    const struct config_key *key;

    if (!parser->section && parser->header[0])
        return 1; /* the header was refused */
    if (strcmp(header, parser->header) != 0) {
        (void)config_refuse(parser->reading, &parser->origin,
                            "the header [%s] must be at the beginning of the line", header);
        return 1;
    }
    if (parser->is_indented && parser->last_key) {
        (void)config_refuse(parser->reading, &parser->origin,
                            "a line that begins with a blank continues the one before: write the "
                            "key at the beginning of its line");
        return 1;
    }
    key = parser->section ? config_find_key(parser->section->title, name) : NULL;
    if (!key) {
        config_report_unknown_key(parser, name);
        return 1;
    }
    config_check_repeated(parser, key, value);
    parser->last_key = key;
    config_assign(parser, key, value);
    config_set(parser->reading, parser->title, key, value, &parser->origin);
    return 1;
}

/* --- Sections. --- */

/* The struct of [WORD NAME], which is made if there is none yet; NULL: the problem is noted. */
static void *config_open_item(struct config_parser *parser, const struct config_section *section,
                              const char *name)
{
    struct config_reading *reading = parser->reading;
    struct config *config = &reading->config;
    const struct config_setting *before = config_find_setting(reading, parser->title, NULL);
    void *item = config_find_item(config, section, name);

    if (!name_is_valid(name, section->name_max)) {
        (void)config_refuse(reading, &parser->origin,
                            "'%s' is not a valid name for a %s: write [%s], with 1 to %u letters, "
                            "digits or ._-@: not beginning with '.' or '-'",
                            name, section->word, section->title, section->name_max);
        return NULL;
    }
    if (item && before && before->origin.file == parser->origin.file) {
        (void)config_refuse(reading, &parser->origin, "the %s '%s' is already defined at line %d",
                            section->word, name, before->origin.line);
        return NULL;
    }
    if (item)
        return item; /* a drop-in changes it */
    if (config_item_count(config, section) == section->items_max) {
        (void)config_refuse(reading, &parser->origin, "at most %u %ss are supported",
                            section->items_max, section->word);
        return NULL;
    }
    item = config_add_item(config, section, name);
    config_set_defaults(reading, section, item);
    return item;
}

static void config_report_unknown_section(struct config_parser *parser)
{
    char word[HEADER_MAX];
    const char *nearest;

    (void)snprintf(word, sizeof(word), "%.*s", (int)strcspn(parser->title, " \t"), parser->title);
    nearest = config_nearest_section(word);
    (void)config_refuse(parser->reading, &parser->origin, "there is no section [%s]%s%s%s",
                        parser->title, nearest ? "; did you mean [" : "", nearest ? nearest : "",
                        nearest ? "]?" : "");
}

/* A section begins with LINE, which inih has not seen yet: what it takes for one is one here. */
static void config_begin_section(struct config_parser *parser, const char *line)
{
    size_t length = strcspn(line + 1, "]\r\n");
    const char *name;

    if (line[1 + length] != ']')
        return; /* inih refuses it */
    parser->section = NULL;
    parser->last_key = NULL;
    (void)snprintf(parser->header, sizeof(parser->header), "%.*s", (int)length, line + 1);
    (void)snprintf(parser->title, sizeof(parser->title), "%s", parser->header);
    if (length >= sizeof(parser->header)) { /* longer than inih keeps, too */
        config_report_unknown_section(parser);
        return;
    }
    parser->section = config_find_section(parser->header, &name);
    if (!parser->section) {
        config_report_unknown_section(parser);
        return;
    }
    parser->base = &parser->reading->config;
    if (parser->section->items_max == 0)
        return;
    (void)snprintf(parser->title, sizeof(parser->title), "%s%s%s", parser->section->word,
                   name[0] ? " " : "", name);
    parser->base = config_open_item(parser, parser->section, name);
    if (!parser->base)
        parser->section = NULL;
    else if (!config_find_setting(parser->reading, parser->title, NULL))
        config_set(parser->reading, parser->title, NULL, "", &parser->origin);
}

/* --- Files. --- */

/* The rest of a line that is longer than inih's buffer. */
static void config_skip_line(struct config_parser *parser, int max)
{
    int c = fgetc(parser->file);

    if (c == EOF || c == '\n')
        return; /* it just fits */
    (void)config_refuse(parser->reading, &parser->origin,
                        "the line is longer than %d characters; only its beginning is read", max);
    while (c != EOF && c != '\n')
        c = fgetc(parser->file);
}

/* inih's reader. It counts lines as inih does, which does not pass the number to its handler. */
static char *config_read_line(char *buffer, int size, void *context)
{
    struct config_parser *parser = context;
    char *line = fgets(buffer, size, parser->file);
    size_t length = line ? strlen(line) : 0;
    bool has_mark;

    parser->origin.line++;
    if (!line)
        return NULL;
    if (length + 1 == (size_t)size && line[length - 1] != '\n')
        config_skip_line(parser, size - 1);
    has_mark = parser->origin.line == 1 && strncmp(line, "\xef\xbb\xbf", 3) == 0; /* of UTF-8 */
    parser->is_indented = text_is_blank(line[0]);
    if (line[has_mark ? 3 : 0] == '[')
        config_begin_section(parser, line + (has_mark ? 3 : 0));
    return line;
}

static void config_read_file(struct config_reading *reading, const char *path, FILE *file)
{
    struct config_parser parser = {.reading = reading, .file = file, .origin = {.file = path}};
    struct config_origin refused = {.file = path};
    size_t first = reading->nr_problems;

    refused.line = ini_parse_stream(config_read_line, &parser, config_handle_key, &parser);
    if (refused.line != 0)
        (void)config_refuse(reading, &refused, "this line is not of the form 'key = value'");
    config_sort_problems(reading, first);
}

/* --- When all is read. --- */

static void config_check_pool(struct config_reading *reading)
{
    const struct config *config = &reading->config;
    const struct config_setting *setting =
        config_find_setting(reading, "daemon", config_find_key("daemon", "pool-max"));
    char pool[UNITS_TEXT_MAX], max[UNITS_TEXT_MAX];

    /* Where only pool= is given, pool-max= is auto. */
    if (!setting || config->pool_max_bytes == 0 || config->pool_max_bytes >= config->pool_bytes)
        return;
    (void)config_refuse(
        reading, &setting->origin, "pool-max=%s is less than pool=%s, which is taken at start",
        size_format(max, config->pool_max_bytes), size_format(pool, config->pool_bytes));
}

static void config_set_log_level(struct config_reading *reading, int level)
{
    static const char *const names[] = {"", "", "", "err", "warning", "notice", "info", "debug"};
    const struct config_origin origin = {.file = "--log-level"};

    reading->config.log_level = level;
    config_set(reading, "daemon", config_find_key("daemon", "log-level"), names[level & 7],
               &origin);
}

int config_read(const struct config_source *source, struct config_reading **ret_reading)
{
    _cleanup_reading_ struct config_reading *reading = calloc(1, sizeof(*reading));

    if (!reading)
        return -ENOMEM;
    for (size_t i = 0; i < config_section_count(); i++)
        if (config_section_at(i)->items_max == 0)
            config_set_defaults(reading, config_section_at(i), &reading->config);
    config_visit_files(reading, source, config_read_file);
    if (source->log_level >= 0)
        config_set_log_level(reading, source->log_level);
    /* An invalid value is reported once, without errors that follow from it. */
    if (reading->nr_errors == 0) {
        config_check_pool(reading);
        config_check_captures(reading);
        config_check_triggers(reading);
    }
    if (reading->has_no_memory)
        return -ENOMEM;
    *ret_reading = TAKE_PTR(reading);
    return 0;
}
