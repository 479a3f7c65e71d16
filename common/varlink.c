// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source: https://varlink.org/Method-Call; RFC 8259.
 */

#include "common/varlink.h"

#include <errno.h>
#include <string.h>

#include <json-c/json.h>

#include "common/utf8.h"

const char *varlink_text(struct json_object *message, size_t *ret_bytes)
{
    size_t length = 0;
    const char *text = json_object_to_json_string_length(
        message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &length);

    if (!text || !utf8_is_valid(text))
        return NULL;
    *ret_bytes = length + 1;
    return text;
}

/* Fetches a member of that type; 0 if there is none, or null: then *RET is left. */
static int read_member(struct json_object *message, const char *key, enum json_type type,
                       struct json_object **ret)
{
    struct json_object *value;

    if (!json_object_object_get_ex(message, key, &value) || !value)
        return 0;
    if (!json_object_is_type(value, type))
        return -EBADMSG;
    *ret = value;
    return 0;
}

static int read_flag(struct json_object *message, const char *key, bool *ret_flag)
{
    struct json_object *value = NULL;
    int r = read_member(message, key, json_type_boolean, &value);

    if (r >= 0)
        *ret_flag = json_object_get_boolean(value);
    return r;
}

int varlink_read_call(struct json_object *message, struct varlink_call *ret_call)
{
    struct json_object *method = NULL;
    struct varlink_call call = {0};

    if (read_member(message, "method", json_type_string, &method) < 0 || !method ||
        read_member(message, "parameters", json_type_object, &call.parameters) < 0 ||
        read_flag(message, "more", &call.more) < 0 ||
        read_flag(message, "oneway", &call.oneway) < 0 ||
        read_flag(message, "upgrade", &call.upgrade) < 0)
        return -EBADMSG;
    call.method = json_object_get_string(method);
    *ret_call = call;
    return 0;
}

int varlink_read_reply(struct json_object *message, struct varlink_reply *ret_reply)
{
    struct json_object *error = NULL;
    struct varlink_reply reply = {0};

    if (read_member(message, "error", json_type_string, &error) < 0 ||
        read_member(message, "parameters", json_type_object, &reply.parameters) < 0 ||
        read_flag(message, "continues", &reply.continues) < 0)
        return -EBADMSG;
    reply.error = error ? json_object_get_string(error) : NULL;
    *ret_reply = reply;
    return 0;
}

/* Adds VALUE, which is given away, to MESSAGE; without memory, MESSAGE is freed, and becomes NULL.
 */
static void add_member(struct json_object **message, const char *key, struct json_object *value)
{
    if (*message && value && json_object_object_add(*message, key, value) == 0)
        return;
    json_object_put(value);
    json_object_put(*message);
    *message = NULL;
}

/* PARAMETERS are always there: some libraries of other languages expect them. */
static void add_parameters(struct json_object **message, struct json_object *parameters)
{
    add_member(message, "parameters", parameters ? parameters : json_object_new_object());
}

struct json_object *varlink_make_call(const char *method, struct json_object *parameters, bool more)
{
    struct json_object *message = json_object_new_object();

    add_member(&message, "method", json_object_new_string(method));
    add_parameters(&message, parameters);
    if (more)
        add_member(&message, "more", json_object_new_boolean(true));
    return message;
}

struct json_object *varlink_make_reply(struct json_object *parameters, bool continues)
{
    struct json_object *message = json_object_new_object();

    add_parameters(&message, parameters);
    if (continues)
        add_member(&message, "continues", json_object_new_boolean(true));
    return message;
}

struct json_object *varlink_make_error(const char *error, struct json_object *parameters)
{
    struct json_object *message = json_object_new_object();

    add_member(&message, "error", json_object_new_string(error));
    add_parameters(&message, parameters);
    return message;
}
