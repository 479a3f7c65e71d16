// SPDX-License-Identifier: GPL-2.0-or-later
#include "common/doc-make.h"

#include <string.h>

struct json_object *doc_find(struct json_object *doc, const char *path)
{
    while (doc) {
        size_t length = strcspn(path, ".");
        char key[64];

        if (!json_object_is_type(doc, json_type_object) || length >= sizeof(key))
            return NULL;
        memcpy(key, path, length);
        key[length] = 0;
        if (!json_object_object_get_ex(doc, key, &doc))
            return NULL;
        if (!path[length])
            break;
        path += length + 1;
    }
    return doc;
}

/* Takes VALUE in any case. Returns it, borrowed, or NULL if it was not added. */
static struct json_object *add(struct json_object *doc, const char *key, struct json_object *value)
{
    if (doc && json_object_object_add(doc, key, value) == 0)
        return value;
    (void)json_object_put(value); /* NULL is fine */
    return NULL;
}

void doc_add_text(struct json_object *doc, const char *key, const char *text)
{
    (void)add(doc, key, text ? json_object_new_string(text) : NULL);
}

void doc_set_text(struct json_object *doc, const char *key, const char *text)
{
    doc_add_text(doc, key, text); /* json-c replaces what is there */
}

void doc_add_number(struct json_object *doc, const char *key, uint64_t number)
{
    (void)add(doc, key, json_object_new_uint64(number));
}

void doc_add_flag(struct json_object *doc, const char *key, bool flag)
{
    (void)add(doc, key, json_object_new_boolean(flag));
}

struct json_object *doc_add_object(struct json_object *doc, const char *key)
{
    return add(doc, key, json_object_new_object());
}

struct json_object *doc_add_array(struct json_object *doc, const char *key)
{
    return add(doc, key, json_object_new_array());
}

/* As add(). */
static struct json_object *append(struct json_object *array, struct json_object *value)
{
    if (array && json_object_array_add(array, value) == 0)
        return value;
    (void)json_object_put(value);
    return NULL;
}

struct json_object *doc_append_object(struct json_object *array)
{
    return append(array, json_object_new_object());
}

void doc_append_text(struct json_object *array, const char *text)
{
    (void)append(array, json_object_new_string(text));
}

void doc_append_number(struct json_object *array, uint64_t number)
{
    (void)append(array, json_object_new_uint64(number));
}

void doc_add_document(struct json_object *doc, const char *key, struct json_object *value)
{
    (void)add(doc, key, json_object_get(value));
}
