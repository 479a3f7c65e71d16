// SPDX-License-Identifier: GPL-2.0-or-later
#include "ctl/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/record-key.h"
#include "ctl/str.h"
#include "trace/merge.h"

#define OPTION "--fields"

struct columns {
    char *list; /* the names of the keys */
    struct record_key keys[COLUMNS_MAX];
    size_t nr_keys;
    bool has_field; /* not only what every record has */
};

struct columns *columns_free(struct columns *columns)
{
    if (!columns)
        return NULL;
    free(columns->list);
    free(columns);
    return NULL;
}

int columns_new(const char *list, struct columns **ret_columns, char **ret_error)
{
    _cleanup_columns_ struct columns *columns = calloc(1, sizeof(*columns));
    char *rest, *name;

    if (!columns)
        return -ENOMEM;
    columns->list = rest = strdup(list);
    if (!rest)
        return -ENOMEM;
    while ((name = strsep(&rest, ","))) {
        struct record_key *key = &columns->keys[columns->nr_keys];
        int r;

        if (!*name)
            return str_refuse(-EINVAL, ret_error,
                              OPTION " needs names separated by commas: time,cpu,name,vcpu.");
        if (columns->nr_keys == COLUMNS_MAX)
            return str_refuse(-EINVAL, ret_error, OPTION " takes up to %u fields.", COLUMNS_MAX);
        r = record_key_parse(OPTION, name, key, ret_error);
        if (r < 0)
            return r;
        columns->nr_keys++;
        columns->has_field |= key->kind == RECORD_KEY_FIELD;
    }
    *ret_columns = TAKE_PTR(columns);
    return 0;
}

/* Its value at P, or NULL: the record has none. */
static char *put_key(char *p, const struct record_key *key, const struct merge_record *record,
                     const struct record_text_style *style, bool is_json)
{
    const struct event_field *field;
    uint64_t value;

    if (key->kind == RECORD_KEY_NAME) {
        if (is_json)
            *p++ = '"';
        p = record_name_text(p, record, style);
        if (is_json)
            *p++ = '"';
        return p;
    }
    if (!record_key_value(key, record, style, &value, &field))
        return NULL;
    if (field)
        return is_json ? record_value_json(p, field, value, style)
                       : record_value_text(p, field, value, style);
    if (key->kind == RECORD_KEY_TIME)
        return record_seconds_text(p, value);
    if (key->kind != RECORD_KEY_EVENT)
        return record_number_text(p, value);
    if (is_json)
        *p++ = '"';
    p = record_event_text(p, (uint32_t)value);
    if (is_json)
        *p++ = '"';
    return p;
}

size_t columns_text(const struct columns *columns, char text[static COLUMNS_TEXT_MAX],
                    const struct merge_record *record, const struct record_text_style *style)
{
    bool has_field = !columns->has_field;
    char *p = text;

    for (size_t i = 0; i < columns->nr_keys; i++) {
        char *end = put_key(p, &columns->keys[i], record, style, false);

        has_field |= end && columns->keys[i].kind == RECORD_KEY_FIELD;
        if (!end) {
            *p = '-';
            end = p + 1;
        }
        *end = i + 1 < columns->nr_keys ? ' ' : '\n';
        p = end + 1;
    }
    return has_field ? (size_t)(p - text) : 0;
}

size_t columns_json(const struct columns *columns, char text[static COLUMNS_TEXT_MAX],
                    const struct merge_record *record, const struct record_text_style *style)
{
    bool has_field = !columns->has_field;
    const char *before = "{\"";
    char *p = text;

    for (size_t i = 0; i < columns->nr_keys; i++) {
        const struct record_key *key = &columns->keys[i];
        char *begin = stpcpy(stpcpy(stpcpy(p, before), key->label), "\":");
        char *end = put_key(begin, key, record, style, true);

        if (!end)
            continue;
        has_field |= key->kind == RECORD_KEY_FIELD;
        before = ",\"";
        p = end;
    }
    if (p == text)
        return 0;
    *p++ = '}';
    *p++ = '\n';
    return has_field ? (size_t)(p - text) : 0;
}
