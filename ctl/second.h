/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The newest second of the flight recorder, again and again, for live views: its records in memory
 * and the snapshot document. Members of the group xentrace may ask for it once a second, outside of
 * their limits (docs/control-protocol.md). One thread.
 */

#include <stddef.h>
#include <stdint.h>

#include "common/units.h"
#include "ctl/doc.h"

struct client;

/* More than that is not read: a view of it would cost a twentieth of a CPU. */
#define SECOND_BYTES_MAX (UINT64_C(32) << 20)

/* Between two requests, and for an answer. */
#define SECOND_INTERVAL_USEC (1 * USEC_PER_SEC)
#define SECOND_LEAST_USEC    (950 * USEC_PER_MSEC) /* the daemon permits one in 900 ms */
#define SECOND_ANSWER_USEC   (2 * USEC_PER_SEC)

/* Begins with zeroes; needs second_done(). Read only. */
struct second {
    uint8_t *data; /* of the trace; aligned to 4 */
    size_t bytes, max_bytes;
    struct json_object *doc; /* the snapshot's, made printable; NULL: none was taken yet */
    uint64_t span_usec;      /* asked for: a second, or less if that has too many bytes */
    uint64_t next_usec;      /* to be asked for next time; 0: a second */
};

/*
 * Takes the newest one from the daemon, which has TIMEOUT_USEC for it. As client_call(); -EFBIG if
 * it has too many bytes: a shorter span is asked for next time. On failure there is no document.
 */
int second_take(struct second *second, struct client *client, uint64_t timeout_usec,
                char **ret_error);
void second_done(struct second *second);

#define _cleanup_second_ _cleanup_(second_done)
