/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Members of documents. json-c copies what it is given. An object that could not be allocated is
 * NULL and printed as null: the document is then incomplete, but not wrong. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include <json-c/json.h>

typedef struct json_object json;

static inline void json_put(json *object, const char *key, json *value)
{
    (void)json_object_object_add(object, key, value);
}

static inline void json_put_text(json *object, const char *key, const char *text)
{
    json_put(object, key, json_object_new_string(text ? text : ""));
}

static inline void json_put_count(json *object, const char *key, uint64_t count)
{
    json_put(object, key, json_object_new_uint64(count));
}

static inline void json_put_bool(json *object, const char *key, bool value)
{
    json_put(object, key, json_object_new_boolean(value));
}
