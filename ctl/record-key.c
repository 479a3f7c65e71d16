// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/record-key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/suggest.h"
#include "ctl/str.h"
#include "trace/merge.h"
#include "trace/record-text.h"

static const char *const own_names[] = {
    [RECORD_KEY_TIME] = "time", [RECORD_KEY_NSEC] = "nsec",   [RECORD_KEY_TSC] = "tsc",
    [RECORD_KEY_CPU] = "cpu",   [RECORD_KEY_EVENT] = "event", [RECORD_KEY_NAME] = "name",
};

static const struct event_field *find_field(const struct event_info *info, const char *name)
{
    for (const struct event_field *field = info->fields; field->name; field++) {
        if (strcmp(field->name, name) == 0)
            return field;
    }
    return NULL;
}

static bool is_field(const char *name)
{
    size_t count;
    const struct event_info *all = event_info_all(&count);

    for (size_t i = 0; i < count; i++) {
        if (find_field(&all[i], name))
            return true;
    }
    return false;
}

bool record_key_has_type(const struct record_key *key, enum event_type type)
{
    size_t count;
    const struct event_info *all = event_info_all(&count);

    for (size_t i = 0; key->kind == RECORD_KEY_FIELD && i < count; i++) {
        const struct event_field *field = find_field(&all[i], key->name);

        if (field && field->type == type)
            return true;
    }
    return false;
}

static int refuse_name(const char *option, const char *name, char **ret_error)
{
    size_t count, nr_words = 0;
    const struct event_info *all = event_info_all(&count);
    const char **words, *nearest;

    words = calloc(ARRAY_SIZE(own_names) + count * EVENT_FIELDS_MAX, sizeof(*words));
    if (!words)
        return -ENOMEM;
    for (size_t i = 0; i < ARRAY_SIZE(own_names); i++)
        words[nr_words++] = own_names[i];
    for (size_t i = 0; i < count; i++) {
        for (const struct event_field *field = all[i].fields; field->name; field++)
            words[nr_words++] = field->name;
    }
    nearest = suggest_nearest(name, words, nr_words);
    free(words);
    if (nearest)
        return str_refuse(-EINVAL, ret_error,
                          "%s: no event has a field \"%s\"; did you mean \"%s\"?", option, name,
                          nearest);
    return str_refuse(-EINVAL, ret_error,
                      "%s: no event has a field \"%s\". The fields of all events are in "
                      "docs/events.md.",
                      option, name);
}

int record_key_parse(const char *option, const char *name, struct record_key *ret_key,
                     char **ret_error)
{
    static const char prefix[] = "fields.";
    const char *field = name;

    if (strncmp(name, prefix, strlen(prefix)) == 0) {
        field = name + strlen(prefix);
    } else {
        for (size_t i = 0; i < ARRAY_SIZE(own_names); i++) {
            if (strcmp(name, own_names[i]) == 0) {
                *ret_key = (struct record_key){(enum record_key_kind)i, name, name};
                return 0;
            }
        }
    }
    if (!is_field(field))
        return refuse_name(option, field, ret_error);
    *ret_key = (struct record_key){RECORD_KEY_FIELD, name, field};
    return 0;
}

static bool field_value(const struct record_key *key, const struct merge_record *record,
                        const struct record_text_style *style, uint64_t *ret_value,
                        const struct event_field **ret_field)
{
    const struct event_info *info = record_info(record, style);
    const struct event_field *field = info ? find_field(info, key->name) : NULL;

    if (!field || !event_field_value(field, record->words, merge_words(record), ret_value))
        return false;
    *ret_field = field;
    return true;
}

bool record_key_value(const struct record_key *key, const struct merge_record *record,
                      const struct record_text_style *style, uint64_t *ret_value,
                      const struct event_field **ret_field)
{
    if (key->kind == RECORD_KEY_FIELD)
        return field_value(key, record, style, ret_value, ret_field);
    *ret_field = NULL;
    switch (key->kind) {
    case RECORD_KEY_TIME:
    case RECORD_KEY_NSEC:
        *ret_value = record_nsec(record, style);
        return true;
    case RECORD_KEY_TSC:
        *ret_value = record->tsc;
        return true;
    case RECORD_KEY_CPU:
        *ret_value = record->cpu;
        return true;
    case RECORD_KEY_EVENT:
        *ret_value = record_event(record->header);
        return true;
    case RECORD_KEY_NAME:
    case RECORD_KEY_FIELD:
        break;
    }
    return false;
}
