// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/config/config-values.h"

#include <errno.h>
#include <grp.h>
#include <string.h>

#include "common/cpu-set.h"
#include "common/text.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/config/config-reading.h"
#include "daemon/config/config.h"

#define MEMORY_MIN_BYTES (UINT64_C(2) << 20)
#define MEMORY_MAX_BYTES (UINT64_C(64) << 30)

#define refuse(value, ...) config_refuse((value)->reading, (value)->origin, __VA_ARGS__)

static bool is_word(const char *text, const char *word)
{
    const struct text_item item = {.begin = text, .length = strlen(text)};

    return text_item_is(&item, word);
}

/* --- Sizes. --- */

int config_value_memory(const struct config_value *value, const char *text, void *field)
{
    uint64_t bytes;

    if (size_parse(text, 1, &bytes) < 0 || bytes < MEMORY_MIN_BYTES || bytes > MEMORY_MAX_BYTES)
        return refuse(value, "'%s' is not a size from 2M to 64G, such as 64M", text);
    *(uint64_t *)field = bytes;
    return 0;
}

int config_value_memory_or_auto(const struct config_value *value, const char *text, void *field)
{
    if (!is_word(text, "auto"))
        return config_value_memory(value, text, field);
    *(uint64_t *)field = 0;
    return 0;
}

int config_value_reserve(const struct config_value *value, const char *text, void *field)
{
    if (is_word(text, "auto"))
        *(uint64_t *)field = DISK_RESERVE_AUTO;
    else if (size_parse(text, UINT64_C(1) << 20, field) < 0)
        return refuse(value, "'%s' is neither 'auto' nor a size, such as 512M", text);
    return 0;
}

int config_value_limit(const struct config_value *value, const char *text, void *field)
{
    uint64_t bytes = LIMITS_AUTO;

    if (!is_word(text, "auto") &&
        (size_parse(text, 1, &bytes) < 0 || bytes < value->key->min || bytes == LIMITS_AUTO))
        return refuse(value, "'%s' is neither 'auto' nor a size, such as 512M", text);
    *(uint64_t *)field = bytes;
    return 0;
}

int config_value_segment_size(const struct config_value *value, const char *text, void *field)
{
    uint64_t bytes;

    if (size_parse(text, 1, &bytes) < 0 || bytes < CAPTURE_SEGMENT_MIN_BYTES ||
        bytes >= UINT64_MAX / 4)
        return refuse(value, "'%s' is not a size of 1M or more, such as 100M", text);
    *(uint64_t *)field = bytes;
    return 0;
}

int config_value_keep_size(const struct config_value *value, const char *text, void *field)
{
    uint64_t bytes;

    if (size_parse(text, 1, &bytes) < 0 || bytes >= UINT64_MAX / 4)
        return refuse(value, "'%s' is not a size, such as 2G", text);
    *(uint64_t *)field = bytes;
    return 0;
}

int config_value_disk_limit(const struct config_value *value, const char *text, void *field)
{
    struct disk_limit limit;

    if (disk_limit_parse(text, &limit) < 0)
        return refuse(value,
                      "'%s' is not a size such as 2G, a part of the disk such as 10%%, 'auto' or "
                      "'none'",
                      text);
    memset(field, 0, sizeof(limit)); /* padding, too: values are compared by their bytes */
    ((struct disk_limit *)field)->kind = limit.kind;
    ((struct disk_limit *)field)->value = limit.value;
    return 0;
}

/* --- Times. --- */

/* "50" was meant as milliseconds by somebody who got 50 seconds. */
static void warn_without_unit(const struct config_value *value, const char *text, uint64_t usec)
{
    size_t length = strlen(text);
    char taken[UNITS_TEXT_MAX];

    if (usec == 0 || !(text_is_digit(text[length - 1]) || text[length - 1] == '.'))
        return;
    config_warn(
        value->reading, value->origin,
        "%s=%s has no unit and means %s; write %s=%ss, or %s=%sms if milliseconds are meant",
        value->key->name, text, duration_format(taken, usec), value->key->name, text,
        value->key->name, text);
}

int config_value_time(const struct config_value *value, const char *text, void *field)
{
    uint64_t usec;

    if (duration_parse(text, USEC_PER_SEC, &usec) < 0)
        return refuse(value, "'%s' is not a time, such as 500ms, 30s or 2h", text);
    warn_without_unit(value, text, usec);
    *(uint64_t *)field = usec;
    return 0;
}

int config_value_time_above_zero(const struct config_value *value, const char *text, void *field)
{
    uint64_t usec = 0;
    int r = config_value_time(value, text, &usec);

    if (r < 0)
        return r;
    if (usec == 0)
        return refuse(value, "'%s' is not a time greater than 0", text);
    *(uint64_t *)field = usec;
    return 0;
}

int config_value_segment_time(const struct config_value *value, const char *text, void *field)
{
    uint64_t usec = 0;
    int r = config_value_time(value, text, &usec);

    if (r < 0)
        return r;
    if (usec < USEC_PER_SEC)
        return refuse(value, "'%s' is less than 1 s", text);
    *(uint64_t *)field = usec;
    return 0;
}

int config_value_time_or_none(const struct config_value *value, const char *text, void *field)
{
    if (!is_word(text, "none"))
        return config_value_time(value, text, field);
    *(uint64_t *)field = 0;
    return 0;
}

/* --- Numbers and words. --- */

int config_value_number(const struct config_value *value, const char *text, void *field)
{
    const struct config_key *key = value->key;
    uint64_t number = 0;
    const char *c = text;

    for (; text_is_digit(*c) && number <= key->max; c++)
        number = number * 10 + (uint64_t)(*c - '0');
    if (c == text || *c || number < key->min || number > key->max)
        return refuse(value, "'%s' is not a number from %u to %u", text, key->min, key->max);
    *(uint32_t *)field = (uint32_t)number;
    return 0;
}

int config_value_number_or_auto(const struct config_value *value, const char *text, void *field)
{
    if (!is_word(text, "auto"))
        return config_value_number(value, text, field);
    *(uint32_t *)field = 0;
    return 0;
}

int config_value_percent(const struct config_value *value, const char *text, void *field)
{
    size_t length = strcspn(text, "%");
    char digits[8];

    if (text[length] == '%' && text[length + 1] == '\0' && length < sizeof(digits)) {
        (void)snprintf(digits, sizeof(digits), "%.*s", (int)length, text);
        text = digits;
    }
    return config_value_number(value, text, field);
}

int config_value_pages_or_auto(const struct config_value *value, const char *text, void *field)
{
    uint64_t pages;

    if (is_word(text, "auto")) {
        *(uint32_t *)field = 0;
        return 0;
    }
    /* t_info holds the number in 16 bits; a page more or less is Xen's to decide. */
    if (size_parse(text, 1, &pages) < 0 || pages == 0 || pages > UINT16_MAX)
        return refuse(value, "'%s' is neither 'auto' nor a number of pages from 1 to 65535", text);
    *(uint32_t *)field = (uint32_t)pages;
    return 0;
}

int config_value_bool(const struct config_value *value, const char *text, void *field)
{
    static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (is_word(text, words[i])) {
            *(bool *)field = i % 2;
            return 0;
        }
    }
    return refuse(value, "'%s' is neither 'yes' nor 'no'", text);
}

int config_value_log_level(const struct config_value *value, const char *text, void *field)
{
    if (config_read_log_level(text, field) < 0)
        return refuse(value, "'%s' is not a level: use err, warning, notice, info or debug", text);
    return 0;
}

/* event and runnable-latency may be said here too; what they need is in their own keys. */
int config_value_condition(const struct config_value *value, const char *text, void *field)
{
    for (enum trigger_condition c = TRIGGER_EVENT; c <= TRIGGER_MANUAL; c++) {
        if (strcmp(text, trigger_condition_name(c)) != 0)
            continue;
        *(enum trigger_condition *)field = c;
        return 0;
    }
    return refuse(value,
                  "'%s' is not a condition: use domain-crash, lost-records or manual, or the keys "
                  "event= and runnable-latency=",
                  text);
}

int config_value_on_reserve(const struct config_value *value, const char *text, void *field)
{
    static const char *const words[] = {"rotate", "pause", "stop"};

    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            *(const char **)field = words[i];
            return 0;
        }
    }
    return refuse(value, "'%s' is not an action: use rotate, pause or stop", text);
}

int config_value_compress(const struct config_value *value, const char *text, void *field)
{
    if (strcmp(text, "zstd") != 0 && strcmp(text, "no") != 0)
        return refuse(value, "'%s' is no compression: use zstd or no", text);
    *(bool *)field = strcmp(text, "zstd") == 0;
    return 0;
}

/* --- Texts. --- */

/* Zero up to its end, so that two of them can be compared by their bytes. */
static int keep_text(const struct config_value *value, const char *text, char *field)
{
    size_t length = strlen(text);

    if (length >= value->key->bytes)
        return refuse(value, "the value of %s= is longer than %zu characters", value->key->name,
                      value->key->bytes - 1);
    memset(field, 0, value->key->bytes);
    memcpy(field, text, length);
    return 0;
}

int config_value_text(const struct config_value *value, const char *text, void *field)
{
    return keep_text(value, text, field);
}

int config_value_path(const struct config_value *value, const char *text, void *field)
{
    if (text[0] != '/' || text[strlen(text) - 1] == '/')
        return refuse(value,
                      "'%s' is not the absolute path of a file, such as "
                      "/var/lib/prometheus/node-exporter/xentraced.prom",
                      text);
    return keep_text(value, text, field);
}

int config_value_group(const struct config_value *value, const char *text, void *field)
{
    const size_t bytes = 65536; /* a group with more members than fit is one, too: ERANGE */
    _cleanup_free_ char *buffer = malloc(bytes);
    struct group group, *found = NULL;

    if (!buffer)
        return refuse(value, "out of memory");
    if (getgrnam_r(text, &group, buffer, bytes, &found) == 0 && !found)
        return refuse(
            value, "this group does not exist: create it (groupadd --system %s) or remove the key",
            text);
    return keep_text(value, text, field);
}

/* systemd.unit(5): what a template's name is made of. */
int config_value_unit_template(const struct config_value *value, const char *text, void *field)
{
    static const char suffix[] = "@.service";
    size_t length = strlen(text);

    if (length < sizeof(suffix) || strcmp(text + length + 1 - sizeof(suffix), suffix) != 0 ||
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:-_.\\") !=
            length + 1 - sizeof(suffix))
        return refuse(value, "'%s' is not the name of a template unit, such as compress@.service",
                      text);
    return keep_text(value, text, field);
}

/* Passes on a sentence of common/'s, as the half sentence that a problem is. */
static int refuse_list(const struct config_value *value, char *sentence)
{
    size_t length = sentence ? strlen(sentence) : 0;

    if (length > 0 && sentence[length - 1] == '.')
        sentence[length - 1] = '\0';
    return refuse(value, "%s", sentence ? sentence : "out of memory");
}

int config_value_events(const struct config_value *value, const char *text, void *field)
{
    _cleanup_free_ char *error = NULL;
    struct event_set set;

    if (event_set_parse(text, &set, &error) < 0)
        return refuse_list(value, error);
    return keep_text(value, text, field);
}

int config_value_cpus(const struct config_value *value, const char *text, void *field)
{
    _cleanup_free_ char *error = NULL;
    struct cpu_set set;

    if (cpu_set_parse(text, CPU_SET_MAX, &set, &error) < 0)
        return refuse_list(value, error);
    return keep_text(value, text, field);
}

int config_value_watched_events(const struct config_value *value, const char *text, void *field)
{
    _cleanup_free_ char *error = NULL;
    struct event_set set;

    if (event_set_parse(text, &set, &error) < 0)
        return refuse_list(value, error);
    set.subclasses[0] = 0; /* GEN */
    if (event_set_xen_mask(&set) == 0)
        return refuse(
            value,
            "'%s' cannot be an event of a trigger; for lost records, write condition=lost-records",
            text);
    *(struct event_set *)field = set;
    return 0;
}
