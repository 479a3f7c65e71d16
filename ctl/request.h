/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A call with a name and options (Start, Snapshot), and what becomes of the user's files when it
 * has been answered, or has not.
 *
 * Functions that append return 0 or more, or a negative errno, for request_new()'s FILL to return.
 */

#include "ctl/client.h"
#include "ctl/output.h"

/* Append an option if it is given: TEXT not NULL, NUMBER and COUNT not 0, FLAG true. */
int request_append_text(sd_bus_message *call, const char *key, const char *text);
int request_append_number(sd_bus_message *call, const char *key, uint64_t number);
int request_append_count(sd_bus_message *call, const char *key, uint32_t count);
int request_append_flag(sd_bus_message *call, const char *key, bool flag);

/* The words in which a request's failures are told. */
struct request_words {
    const char *member;
    const char *nothing; /* "Nothing was started" */
    const char *unknown; /* when no answer came: "Whether ..., xentracectl list tells" */
    const char *no_file; /* the advice to those who may not pass files: "; ..." */
};

/*
 * Makes the call, with NAME ("" lets the daemon make one), FILL's options and OUTPUT (may be NULL),
 * waits for its answer, a document of FORMAT, and lets the files of OUTPUT stand or removes them:
 * they are removed only if the daemon refused. Returns as client_call().
 */
int request_make(struct client *client, const struct request_words *words, const char *name,
                 int (*fill)(sd_bus_message *call, const void *context), const void *context,
                 struct output *output, uint64_t timeout_usec, const char *format,
                 struct json_object **ret_doc, char **ret_error);
