// SPDX-License-Identifier: GPL-2.0-or-later
/* Comments stand on lines of their own: '#' after a value would be a part of it. */

#include "daemon/config/config-print.h"

#include "daemon/config/config-keys.h"

static void print_problem(FILE *file, const struct config_problem *problem)
{
    _cleanup_free_ char *text = config_describe_problem(problem);

    (void)fprintf(file, "%s%s\n",
                  problem->is_error ? "" : "Warning: ", text ? text : "Out of memory.");
}

void config_print_check(FILE *file, const struct config_reading *reading)
{
    for (size_t i = 0; i < reading->nr_problems; i++)
        print_problem(file, &reading->problems[i]);
    if (reading->nr_errors > 0) {
        (void)fprintf(file, "%zu error%s: xentraced does not start with this configuration.\n",
                      reading->nr_errors, reading->nr_errors == 1 ? "" : "s");
        return;
    }
    (void)fputs(reading->nr_files ? "The configuration is valid. Files:\n"
                                  : "There is no configuration file: the defaults apply.\n",
                file);
    for (size_t i = 0; i < reading->nr_files; i++)
        (void)fprintf(file, "  %s\n", reading->files[i]);
}

/* "/etc/xentraced/xentraced.conf:3"; "default". */
static void print_origin(FILE *file, const struct config_setting *setting)
{
    if (!setting)
        (void)fputs("default", file);
    else if (setting->origin.line == 0)
        (void)fputs(setting->origin.file, file);
    else
        (void)fprintf(file, "%s:%d", setting->origin.file, setting->origin.line);
}

static void print_key(FILE *file, const struct config_reading *reading, const char *title,
                      const struct config_key *key)
{
    const struct config_setting *setting = config_find_setting(reading, title, key);
    const char *value = setting && setting->value[0] ? setting->value : key->standard;

    (void)fputs("# ", file);
    print_origin(file, setting);
    (void)fprintf(file, "; a %s applies a change\n%s=%s\n",
                  key->applies == CONFIG_AT_RELOAD ? "reload" : "restart", key->name, value);
}

static void print_section(FILE *file, const struct config_reading *reading,
                          const struct config_section *section, const char *title)
{
    (void)fprintf(file, "[%s]\n", title);
    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);

        /* Conditions that a trigger does not use have no value. */
        if (config_is_in_section(key, section) && (section->items_max == 0 || key->standard[0] ||
                                                   config_find_setting(reading, title, key)))
            print_key(file, reading, title, key);
    }
    (void)fputc('\n', file);
}

void config_print(FILE *file, const struct config_reading *reading)
{
    for (size_t i = 0; i < config_section_count(); i++) {
        const struct config_section *section = config_section_at(i);

        if (section->items_max == 0)
            print_section(file, reading, section, section->title);
        for (size_t j = 0; j < config_item_count(&reading->config, section); j++) {
            char title[CONFIG_TITLE_MAX];

            print_section(file, reading, section,
                          config_item_title(title, &reading->config, section, j));
        }
    }
}
