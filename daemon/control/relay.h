/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Relays messages between a client's socket and sd-bus, which has no limits of its own:
 * authenticates the client, then passes on whole messages, one at a time. Limits the bytes,
 * descriptors and time that a client may use:
 *
 *   authentication        SASL_LINES_MAX lines, RELAY_INPUT_USEC in all
 *   a message             WIRE_MESSAGE_MAX bytes, RELAY_INPUT_USEC from its first to its last byte
 *   its descriptors       as many as its header says; more than PASSED_MAX, or any of a client that
 *                         may pass none, are closed, and the server learns of it
 *   what it does not read RELAY_OUTPUT_BYTES, for RELAY_OUTPUT_USEC since it last read something;
 *                         no further message is taken from it meanwhile
 *
 * A client that exceeds a limit is disconnected. Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/units.h"

#define RELAY_INPUT_USEC   (2 * USEC_PER_SEC)
#define RELAY_OUTPUT_USEC  (5 * USEC_PER_SEC)
#define RELAY_OUTPUT_BYTES 32768u
struct passed;
struct relay;
struct sd_event;
struct stand_ins;
struct vacate;

/* What the server does; USERDATA is the owner's. None of them may free the relay, but `closed`. */
struct relay_server {
    /*
     * The client is authenticated: messages will come through FD, an end of a socket pair, and
     * answers go there. FD is given away, also on an error, which disconnects the client. Through
     * CLIENT_FD, the other end, which stays the relay's, the server may prepare itself.
     */
    int (*begin)(void *userdata, int fd, int client_fd);
    /*
     * A whole message is in FD, and must be read now. Its descriptors are in PASSED, and are closed
     * afterwards; their stand-ins are in FD. A negative errno disconnects the client.
     */
    int (*receive)(void *userdata, const struct passed *passed);
    /* Whether the client may pass descriptors with its next message. */
    bool (*may_pass)(void *userdata);
    /*
     * Answers were taken from FD: writes what did not fit before. Returns whether anything is left,
     * or a negative errno, which disconnects the client.
     */
    int (*flush)(void *userdata);
    /* The client has gone, or was disconnected, for REASON. The last thing that the relay does. */
    void (*closed)(void *userdata, const char *reason);
};

struct relay_options {
    struct sd_event *event;
    int64_t priority;
    uid_t uid;
    uid_t person;
    bool passes_descriptors; /* it is agreed in the handshake that messages may have some */
    struct vacate *vacate;   /* closes them */
    const struct stand_ins *stand_ins;
    const struct relay_server *server;
    void *userdata;
};

/* *FD, the client's socket (non-blocking), is given away on success. */
int relay_new(const struct relay_options *options, int *fd, struct relay **ret_relay);
/* Disconnects the client without calling `closed`. Takes NULL; returns NULL. */
struct relay *relay_free(struct relay *relay);

/* Whether the client has authenticated. */
bool relay_has_begun(const struct relay *relay);

/* The client's socket, borrowed: the kernel knows who is at the other end. */
int relay_fd(const struct relay *relay);

/* In place of the priority in its options. A negative errno of the event loop. */
int relay_set_priority(struct relay *relay, int64_t priority);

/*
 * When the event loop has ended: sends the pending answers that the client's socket accepts without
 * blocking.
 */
void relay_send_last(struct relay *relay);
