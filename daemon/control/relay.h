/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Between a client's socket and the server of its calls (sd-bus, which has no limits of its own):
 * authenticates the client, then passes messages on, one at a time and each as a whole. What a
 * client can make the daemon hold is bounded here, in bytes, descriptors and time:
 *
 *   authentication        SASL_LINES_MAX lines, RELAY_INPUT_USEC in all
 *   a message             WIRE_MESSAGE_MAX bytes, RELAY_INPUT_USEC from its first to its last byte
 *   its descriptors       as many as its header says, and as this client may pass
 *   what it does not read RELAY_OUTPUT_BYTES, for RELAY_OUTPUT_USEC since it last read something;
 *                         no further message is taken from it meanwhile
 *
 * Whoever exceeds one of them is disconnected. Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/units.h"

#define RELAY_INPUT_USEC      (2 * USEC_PER_SEC)
#define RELAY_OUTPUT_USEC     (5 * USEC_PER_SEC)
#define RELAY_OUTPUT_BYTES    32768u
#define RELAY_DESCRIPTORS_MAX 8u

struct relay;
struct sd_event;

/* What the server does; USERDATA is the owner's. None of them may free the relay, but `closed`. */
struct relay_server {
    /*
     * The client is authenticated: messages will come through FD, an end of a socket pair, and
     * answers go there. FD is given away, also on an error, which disconnects the client. Through
     * CLIENT_FD, the other end, which stays the relay's, the server may prepare itself.
     */
    int (*begin)(void *userdata, int fd, int client_fd);
    /*
     * A whole message with that many descriptors is in FD: it is to be read there, now. A negative
     * errno disconnects the client.
     */
    int (*receive)(void *userdata, unsigned int nr_descriptors);
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
    unsigned int max_descriptors; /* of one message */
    const struct relay_server *server;
    void *userdata;
};

/* *FD, the client's socket (non-blocking), is given away on success. */
int relay_new(const struct relay_options *options, int *fd, struct relay **ret_relay);
/* Disconnects the client without calling `closed`. Takes NULL; returns NULL. */
struct relay *relay_free(struct relay *relay);

/* Whether the client has authenticated. */
bool relay_has_begun(const struct relay *relay);

/* When the event loop has ended: sends what is answered, as far as the client takes it at once. */
void relay_send_last(struct relay *relay);
