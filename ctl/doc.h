/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * JSON documents from the daemon or a sidecar, which are untrusted: a key that is missing or has
 * another type reads as absent, never as an error.
 *
 * A PATH names nested keys: "ledger.lost". Any thread that owns the document.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/doc-make.h"
#include "common/util.h"

#define DOC_FORMAT_ERROR    "xentraced-error"
#define DOC_FORMAT_SESSION  "xentraced-session"
#define DOC_FORMAT_SNAPSHOT "xentraced-snapshot"
#define DOC_FORMAT_STATUS   "xentraced-status"
#define DOC_FORMAT_RELOAD   "xentraced-reload"

/*
 * Parses BYTES of TEXT, which must be one whole JSON object. Returns as json_text_parse(). Free with
 * doc_free().
 */
int doc_parse(const char *text, size_t bytes, struct json_object **ret_doc);

/* Reads a file (a sidecar). As json_text_read(); also errors of open(2). */
int doc_read_file(const char *path, struct json_object **ret_doc);

/* NULL is fine. Returns NULL. */
struct json_object *doc_free(struct json_object *doc);

static inline void doc_freep(struct json_object **doc)
{
    *doc = doc_free(*doc);
}

#define _cleanup_doc_ _cleanup_(doc_freep)

/* Whether the document says of itself that it is a FORMAT of a version that this program reads. */
bool doc_is(struct json_object *doc, const char *format);

/* The string at PATH, else FALLBACK. Borrowed. */
const char *doc_text(struct json_object *doc, const char *path, const char *fallback);

/* The number at PATH; 0 if it is none or negative. */
uint64_t doc_number(struct json_object *doc, const char *path);

/* Whether true stands at PATH. */
bool doc_flag(struct json_object *doc, const char *path);
/* Whether the flag at PATH is there and off. One that is absent is of an older daemon, and says
 * nothing. */
bool doc_says_no(struct json_object *doc, const char *path);

/* The array at PATH, or NULL; doc_length() of NULL is 0. Borrowed. */
struct json_object *doc_array(struct json_object *doc, const char *path);
size_t doc_length(struct json_object *array);
struct json_object *doc_at(struct json_object *array, size_t i);

/* Cleans all strings in it of control characters, before they are shown to people. */
void doc_make_printable(struct json_object *doc);

/* Prints the document as people and jq like it, with a newline. */
void doc_print(FILE *file, struct json_object *doc);

/* The same in one line, for documents that come one after the other. */
void doc_print_line(FILE *file, struct json_object *doc);

/* A document with its FORMAT and version; NULL: no memory. doc-make.h adds to it. */
struct json_object *doc_new(const char *format);

/* Of a session's document: nothing is recorded into it any more, and its output is complete. */
bool doc_session_has_ended(struct json_object *session);
