/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A call with a name and options (Start, Snapshot), and what becomes of the user's files when it
 * has been answered, or has not.
 */

#include "ctl/args.h"
#include "ctl/client.h"
#include "ctl/output.h"

/* An option that is a number, and not in the table. */
struct request_number {
    const char *key; /* NULL: the list ends */
    uint64_t value;  /* 0: it is not sent */
};

struct request {
    const char *method;
    const char *name; /* NULL: the daemon makes one */

    /* Options: those of TABLE that have a key and were GIVEN, as args_parse() left them. */
    const struct args_option *table;
    const void *values;
    uint64_t given;
    const char *flag;                     /* the key of one more, which is true; NULL: none */
    const struct request_number *numbers; /* NULL: none */

    const char *answer, *format; /* as of struct client_call, as the three below */
    uint64_t timeout_usec;
    void (*on_progress)(void *context, uint64_t bytes, uint64_t total_bytes);
    void *context;

    /* How failures are reported. */
    const char *nothing; /* "Nothing was started" */
    const char *unknown; /* if no answer came: "To see whether ...: xentracectl list" */
};

/*
 * Makes the call with the files of OUTPUT (may be NULL), waits for its answer, and lets the files
 * stand or removes them: they are removed only if the daemon refused. Returns as client_call().
 */
int request_make(struct client *client, const struct request *request, struct output *output,
                 struct json_object **ret_doc, char **ret_error);
