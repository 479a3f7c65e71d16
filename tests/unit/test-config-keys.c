// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * The table of keys, xentraced.conf(5) and conf/xentraced.conf say the same: which keys there are,
 * their defaults, and what applies a change.
 */

#include "daemon/config/config-keys.h"

#include "common/util.h"
#include "daemon/config/config-read.h"
#include "tests/unit/test.h"

#define MANUAL  TOP_SRCDIR "/docs/man/xentraced.conf.5"
#define SHIPPED TOP_SRCDIR "/conf/xentraced.conf"

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "re");
    char *text = calloc(1, 1u << 17);

    if (!file || !text || fread(text, 1, (1u << 17) - 1, file) == 0) {
        perror(path);
        exit(EXIT_FAILURE);
    }
    (void)fclose(file);
    return text;
}

/* The part of TEXT from the line HEADER to the next line that begins with END. Free it. */
static char *part_of(const char *text, const char *header, const char *end)
{
    const char *begin = strstr(text, header), *next;

    if (!begin)
        return strdup("");
    begin += strlen(header);
    next = strstr(begin, end);
    return strndup(begin, next ? (size_t)(next - begin) : strlen(begin));
}

/* --- The manual. --- */

/* The paragraph of a key, from its .It to the next one. */
static void check_paragraph(const struct config_key *key, const char *section_text)
{
    const char *applies = key->applies == CONFIG_AT_RELOAD ? "\nA reload applies a change."
                                                           : "\nA restart applies a change.";
    char header[128];
    _cleanup_free_ char *paragraph = NULL;

    (void)snprintf(header, sizeof(header), "\n.It Cm %s Ns =", key->name);
    if (!CHECK(strstr(section_text, header)))
        return;
    CHECK(!strstr(strstr(section_text, header) + 1, header)); /* once */
    paragraph = part_of(section_text, header, "\n.It ");
    CHECK(strstr(paragraph, applies));
    if (key->standard[0] && !CHECK(strstr(paragraph, key->standard)))
        fprintf(stderr, "    %s: the default %s is not in the manual\n", key->name, key->standard);
}

static void test_manual(void)
{
    _cleanup_free_ char *manual = read_file(MANUAL);

    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);
        char header[64], what[96];
        _cleanup_free_ char *section_text = NULL;

        (void)snprintf(header, sizeof(header), "\n.Sh [%s]\n", key->section);
        (void)snprintf(what, sizeof(what), "the manual: [%s] %s=", key->section, key->name);
        test_case(what);
        section_text = part_of(manual, header, "\n.Sh ");
        check_paragraph(key, section_text);
    }
}

/* Every .It Cm NAME of a section is one of its keys. */
static void test_manual_has_no_more(void)
{
    _cleanup_free_ char *manual = read_file(MANUAL);

    test_case("the manual has no other keys");
    for (size_t i = 0; i < config_section_count(); i++) {
        const struct config_section *section = config_section_at(i);
        _cleanup_free_ char *text = NULL;
        char header[64], name[64];

        (void)snprintf(header, sizeof(header), "\n.Sh [%s]\n", section->title);
        text = part_of(manual, header, "\n.Sh ");
        for (const char *at = strstr(text, "\n.It Cm "); at; at = strstr(at + 1, "\n.It Cm "))
            if (CHECK(sscanf(at, "\n.It Cm %63s", name) == 1) &&
                !CHECK(config_find_key(section->title, name)))
                fprintf(stderr, "    [%s] %s\n", section->title, name);
    }
}

/* --- The file that is installed. --- */

/* All keys of [trigger NAME] and [capture NAME] are comments of an example: its header is one, too. */
static void check_line(const char *line, char section[static 64])
{
    const struct config_key *key;
    char name[64] = "", value[128] = "";

    if (sscanf(line, "#[trigger %63[^]]]", name) == 1)
        (void)strcpy(section, "trigger NAME");
    else if (sscanf(line, "#[capture %63[^]]]", name) == 1)
        (void)strcpy(section, "capture NAME");
    else if (sscanf(line, "[%63[^]]]", name) == 1)
        (void)strcpy(section, name);
    if (sscanf(line, "#%63[a-z-]=%127[^\n]", name, value) < 1 || line[1] == ' ' || line[1] == '[' ||
        !strchr(line, '='))
        return;
    key = config_find_key(section, name);
    if (!CHECK(key))
        fprintf(stderr, "    [%s] %s\n", section, name);
    else if (key->standard[0] || !strchr(section, ' ')) /* else it is an example */
        CHECK_STR(value, key->standard);
}

static void test_shipped(void)
{
    _cleanup_free_ char *text = read_file(SHIPPED);
    char section[64] = "", *rest = NULL;

    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);
        char needle[96];

        test_case("the shipped file has all keys");
        (void)snprintf(needle, sizeof(needle), "%s=", key->name);
        if (!CHECK(strstr(text, needle)))
            fprintf(stderr, "    %s\n", needle);
    }
    test_case("the shipped file has the defaults");
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        check_line(line, section);
}

/* As it is, and with all its comments of values taken for values. */
static void test_shipped_is_valid(void)
{
    const struct config_source source = {.file = SHIPPED, .is_required = true, .log_level = -1};
    _cleanup_reading_ struct config_reading *reading = NULL;

    test_case("the shipped file is valid");
    CHECK_INT(config_read(&source, &reading), 0);
    CHECK_UINT(reading->nr_problems, 0);
    CHECK_UINT(reading->nr_files, 1);
}

/* --- The table. --- */

static void test_table(void)
{
    for (size_t i = 0; i < config_key_count(); i++) {
        const struct config_key *key = config_key_at(i);
        char what[96];

        (void)snprintf(what, sizeof(what), "[%s] %s=", key->section, key->name);
        test_case(what);
        CHECK(config_find_key(key->section, key->name) == key); /* there is one */
        CHECK(config_section_of_key(key->name));
        CHECK(key->parse && key->bytes > 0 && key->summary[0]);
        CHECK(key->max == 0 || key->max >= key->min);
    }
    for (size_t i = 0; i < config_section_count(); i++) {
        const char *name;

        test_case(config_section_at(i)->title);
        CHECK(config_find_section(config_section_at(i)->title, &name) == config_section_at(i));
        CHECK_INT(name[0] != '\0', config_section_at(i)->items_max > 0);
        for (size_t j = 0; j < config_key_count() && config_section_at(i)->items_max > 0; j++)
            if (config_is_in_section(config_key_at(j), config_section_at(i)))
                CHECK_INT(config_key_at(j)->applies, config_section_at(i)->applies);
    }
}

int main(void)
{
    test_table();
    test_manual();
    test_manual_has_no_more();
    test_shipped();
    test_shipped_is_valid();
    return test_end();
}
