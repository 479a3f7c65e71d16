/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The newest second of the flight recorder, again and again, for live views: its records in memory
 * and the snapshot document. Members of the group xentrace may ask for it once a second, outside of
 * their limits (docs/control-protocol.md). One thread.
 */

#include <poll.h>
#include <stddef.h>
#include <stdint.h>

#include "common/units.h"
#include "ctl/client.h"

/* More than that is not read: a view of it would cost a twentieth of a CPU. */
#define SECOND_BYTES_MAX (UINT64_C(32) << 20)

/* Between two of them, and for an answer. */
#define SECOND_INTERVAL_USEC (1 * USEC_PER_SEC)
#define SECOND_LEAST_USEC    (950 * USEC_PER_MSEC) /* the daemon permits one in 900 ms */
#define SECOND_ANSWER_USEC   (2 * USEC_PER_SEC)

/* Read only. */
struct second {
    uint8_t *data; /* of the trace; aligned to 4 */
    size_t bytes;
    struct json_object *doc; /* the snapshot's, made printable; NULL: none was taken yet */
    uint64_t span_usec;      /* asked for: a second, or less if that has too many bytes */

    struct client *client;        /* borrowed */
    struct client_stream *stream; /* NULL: it is to begin at BEGIN_USEC */
    uint64_t interval_usec, begin_usec;
    struct client_reader reader;
    int fd;                       /* of the pipe; -1: none */
    size_t read_bytes, max_bytes; /* of DATA: with what belongs to the next one */
    int error;                    /* of the pipe */
};

/*
 * INTERVAL_USEC between two of them: SECOND_LEAST_USEC at least, which has them overlap. Needs
 * second_done().
 */
void second_init(struct second *second, struct client *client, uint64_t interval_usec);
void second_done(struct second *second);

/*
 * Takes the next one, as client_next(). -EFBIG: it had too many bytes, and the next one is shorter.
 * After an error there is no document, and the next call asks again.
 */
int second_next(struct second *second, uint64_t timeout_usec, char **ret_error);

/* Stops asking until second_next() is called again. */
void second_pause(struct second *second);

/* As client_stream_fds(). If there are none: when second_next() asks again, CLOCK_MONOTONIC. */
size_t second_fds(const struct second *second, struct pollfd fds[static CLIENT_STREAM_FDS_MAX],
                  uint64_t *ret_begin_usec);

#define _cleanup_second_ _cleanup_(second_done)
