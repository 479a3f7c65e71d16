/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The flight recorder's records as they come: its newest second is read again and again
 * (ctl/second.h), and what is new in it is passed on, each record once. Where two of these do not
 * meet, a warning reports how much is missing.
 *
 * One thread.
 */

#include <stdbool.h>

struct client;
struct json_object;
struct merge_record;

struct follow_sink {
    /*
     * Once, before the first record: the snapshot's document, borrowed. 0; a negative errno with a
     * sentence in *RET_ERROR ends follow_run() with it.
     */
    int (*begin)(void *context, struct json_object *doc, char **ret_error);
    /* In the order of time within a second. */
    bool (*record)(void *context, const struct merge_record *record);
    /* After those of a second. */
    bool (*flush)(void *context);
    void *context;
};

/*
 * Runs until RECORD or FLUSH returns false: 0. Else a negative errno of client_call() or -ENOMEM,
 * with a sentence in *RET_ERROR (free it; NULL: no memory).
 */
int follow_run(struct client *client, const struct follow_sink *sink, char **ret_error);
