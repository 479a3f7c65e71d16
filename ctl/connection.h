/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * One connection to a Varlink service: a JSON object and a NUL in each direction. One call at a
 * time is under way. Nothing here waits: the owner polls the descriptor for what
 * connection_events() says, and calls connection_advance() then.
 *
 * The service is not trusted: a reply is bounded before it is parsed (common/varlink.h). One
 * thread.
 */

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/util.h"

struct connection;

/* FD is a connected stream socket, and the connection's from here on even if this fails. */
int connection_new(int fd, struct connection **ret_connection);
struct connection *connection_free(struct connection *connection);

static inline void connection_freep(struct connection **connection)
{
    *connection = connection_free(*connection);
}

/*
 * Sends a call of METHOD with PARAMETERS (NULL: none) and the descriptors; MORE: several replies
 * are wanted. Returns 0; -EBUSY: the last reply to another call has not been returned yet; -EILSEQ:
 * a text is not UTF-8; -EMSGSIZE: the daemon would not take it; -ENOMEM and the like.
 */
int connection_call(struct connection *connection, const char *method,
                    struct json_object *parameters, const int *fds, size_t nr_fds, bool more);

int connection_fd(const struct connection *connection);

/* As of poll(2). */
short connection_events(const struct connection *connection);

/*
 * Sends and receives what is possible without waiting. Returns 1 with a message in *RET_REPLY that
 * varlink_read_reply() understands (doc_free() it); 0: there is none yet; -ECONNRESET: the
 * connection ended before; -EBADMSG: what came is no reply; -EFBIG: it is too large; -ENOMEM. After
 * an error the connection is of no use.
 */
int connection_advance(struct connection *connection, struct json_object **ret_reply);
