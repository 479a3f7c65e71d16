/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The fake daemon's socket: Varlink as xentraced speaks it, one thread, and writes that wait. What
 * is answered is for the handler to decide, and so is nonsense.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FAKE_FDS_MAX 4u

struct fake_peer;

/* A call; all of it is borrowed. */
struct fake_call {
    struct fake_peer *peer;
    const char *method; /* without its interface */
    struct json_object *parameters;
    const int *fds;
    size_t nr_fds;
    bool more;
};

struct fake_server {
    const char *version;
    bool accepts; /* else nobody is answered */
    bool closes;  /* every connection, at once */
    bool speaks_dbus;
    bool in_pieces;        /* each reply, byte by byte */
    const char *interface; /* that GetInfo names */
    bool is_over;          /* the handler sets it */
    void *context;
    void (*handle)(void *context, const struct fake_call *call);
    /* A stream's next reply is due, if the handler has begun one: some times a second. */
    void (*tick)(void *context, struct fake_peer *peer);
    void (*gone)(void *context, struct fake_peer *peer);
};

/* Runs until is_over, on a socket that appears at PATH. Returns an exit code. */
int fake_server_run(struct fake_server *server, const char *path);

/* What the handler keeps of a stream; 0 at first. Its descriptor is closed with the peer. */
struct fake_stream {
    const char *method; /* NULL: there is none */
    uint64_t interval_usec, next_usec;
    uint64_t last_usec, sent;
    int fd;
    char name[64];
};
struct fake_stream *fake_peer_stream(struct fake_peer *peer);

/* TEXT is that of a JSON value. */
void fake_reply(struct fake_peer *peer, const char *key, const char *text, bool continues);
void fake_reply_document(struct fake_peer *peer, const char *key, struct json_object *doc,
                         bool continues); /* takes DOC */
/* NAME with its interface. SENTENCE, HINT may be NULL. */
void fake_error(struct fake_peer *peer, const char *name, const char *sentence, const char *hint);
/* Any bytes. */
void fake_send(struct fake_peer *peer, const char *bytes, size_t count);
/* The peer is disconnected when the handler returns. */
void fake_close(struct fake_peer *peer);

/* A parameter, or "", 0, false, -1 (a duplicate). */
const char *fake_text(const struct fake_call *call, const char *key);
uint64_t fake_number(const struct fake_call *call, const char *key);
bool fake_flag(const struct fake_call *call, const char *key);
int fake_fd(const struct fake_call *call, const char *key);

uint64_t fake_now_usec(void);
