/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Making JSON documents. Any thread that owns the document.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>

/* The value at PATH; NULL if there is none. Borrowed. */
struct json_object *doc_find(struct json_object *doc, const char *path);

/*
 * Without memory a key is left out; NULL as the object is fine and adds nothing.
 * TEXT NULL becomes null. Objects that are added are borrowed by the caller.
 */
void doc_add_text(struct json_object *doc, const char *key, const char *text);
void doc_set_text(struct json_object *doc, const char *key, const char *text); /* replaces it */
void doc_add_number(struct json_object *doc, const char *key, uint64_t number);
void doc_add_flag(struct json_object *doc, const char *key, bool flag);
struct json_object *doc_add_object(struct json_object *doc, const char *key);
struct json_object *doc_add_array(struct json_object *doc, const char *key);
struct json_object *doc_append_object(struct json_object *array);
void doc_append_text(struct json_object *array, const char *text);
void doc_append_number(struct json_object *array, uint64_t number);

/* Adds VALUE, which the caller keeps. */
void doc_add_document(struct json_object *doc, const char *key, struct json_object *value);
