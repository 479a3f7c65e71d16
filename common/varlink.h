/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Messages of the control socket: Varlink, that is, JSON objects that end with a NUL byte. This is
 * the part that daemon and client share: the objects and their text. Neither sockets nor
 * descriptors. docs/control-protocol.md. Any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_object;

#define VARLINK_CALL_BYTES_MAX  (64u * 1024u)         /* from a client, with its NUL */
#define VARLINK_REPLY_BYTES_MAX (16u * 1024u * 1024u) /* from a daemon; Status reaches 1.2 MB */

/* For json_text_parse_strict(), with which both sides read messages. */
#define VARLINK_CALL_MEMORY_MAX  (UINT64_C(4) << 20)
#define VARLINK_REPLY_MEMORY_MAX (UINT64_C(512) << 20)

/*
 * Returns the text of MESSAGE, with *RET_BYTES that include its NUL: MESSAGE's own, until that is
 * changed or freed. NULL: without memory, or a string of MESSAGE is not UTF-8.
 */
const char *varlink_text(struct json_object *message, size_t *ret_bytes);

/* A call. All members are borrowed from its message. */
struct varlink_call {
    const char *method;             /* with its interface */
    struct json_object *parameters; /* NULL: there are none */
    bool more, oneway, upgrade;
};

/* Likewise. */
struct varlink_reply {
    const char *error; /* NULL: the call succeeded */
    struct json_object *parameters;
    bool continues;
};

/* -EBADMSG: MESSAGE is none; unknown members are passed over, as in the specification. */
int varlink_read_call(struct json_object *message, struct varlink_call *ret_call);
int varlink_read_reply(struct json_object *message, struct varlink_reply *ret_reply);

/*
 * Make messages, which the caller owns; NULL without memory. PARAMETERS, which may be NULL, are
 * given away in any case.
 */
struct json_object *varlink_make_call(const char *method, struct json_object *parameters,
                                      bool more);
struct json_object *varlink_make_reply(struct json_object *parameters, bool continues);
struct json_object *varlink_make_error(const char *error, struct json_object *parameters);
