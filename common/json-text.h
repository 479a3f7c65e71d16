/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parses JSON that may be hostile: files of strangers, messages of clients, replies of another
 * host. The only caller of json-c's parser (tests/structure.sh). Any thread.
 */

#include <stddef.h>
#include <stdint.h>

struct json_object;

/* Of a file: the sidecar of 16383 CPUs and a few thousand domains takes less. */
#define JSON_FILE_MAX_MEMORY (UINT64_C(128) << 20)

/* Returns the memory that json-c allocates for the BYTES at TEXT, rounded up. Never less. */
uint64_t json_text_memory(const char *text, size_t bytes);

/*
 * Parses the object at the beginning of the BYTES at TEXT. RET_USED: how many of them are its own,
 * with white space after it; the rest is not looked at. NULL: only white space may follow. 0;
 * -EFBIG: json_text_memory() is more than MAX_MEMORY, and nothing was allocated; -EBADMSG: this is
 * no JSON object, or is nested deeper than 32; -ENOMEM.
 */
int json_text_parse(const char *text, size_t bytes, uint64_t max_memory, size_t *ret_used,
                    struct json_object **ret_object);

/*
 * The same of a message, which is JSON to the letter (RFC 8259), in UTF-8, without a NUL in any
 * string, and with nothing after it but white space.
 */
int json_text_parse_strict(const char *text, size_t bytes, uint64_t max_memory,
                           struct json_object **ret_object);

/*
 * The same of a whole file. -EFBIG: also before it is read. -EBADMSG: also what is no regular file.
 * Or what read(2) says. FD is borrowed.
 */
int json_text_read(int fd, uint64_t max_memory, struct json_object **ret_object);
