// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source: https://varlink.org, "Protocol", and docs/control-protocol.md.
 *
 * IDLE -> SENDING -> RECEIVING -> IDLE. Bytes after the NUL of a reply are kept for the next one.
 * Descriptors go with the first byte; none are accepted.
 */

#include "ctl/connection.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/json-text.h"
#include "common/varlink.h"
#include "ctl/doc.h"

#define FDS_MAX        2u /* a trace and its sidecar */
#define IN_FIRST_BYTES ((size_t)16 << 10)

enum connection_state {
    CONNECTION_IDLE,
    CONNECTION_SENDING,
    CONNECTION_RECEIVING,
};

struct connection {
    int fd;
    enum connection_state state;
    char *out; /* the call */
    size_t out_bytes, out_sent;
    char *in; /* a reply, as far as it has come, and what came after it */
    size_t in_bytes, in_max;
    size_t in_searched; /* no NUL is before */
};

int connection_new(int fd, struct connection **ret_connection)
{
    struct connection *connection = calloc(1, sizeof(*connection));

    if (!connection) {
        fd_close(&fd);
        return -ENOMEM;
    }
    connection->fd = fd;
    *ret_connection = connection;
    return 0;
}

struct connection *connection_free(struct connection *connection)
{
    if (!connection)
        return NULL;
    fd_close(&connection->fd);
    free(connection->out);
    free(connection->in);
    free(connection);
    return NULL;
}

int connection_fd(const struct connection *connection)
{
    return connection->fd;
}

short connection_events(const struct connection *connection)
{
    return connection->state == CONNECTION_SENDING ? POLLOUT : POLLIN;
}

/*
 * Sends as much as the socket takes, FDS with the first byte. A service that closes the connection
 * may have answered before: so its end is not found here, but while receiving.
 */
static int connection_send(struct connection *connection, const int *fds, size_t nr_fds)
{
    union {
        struct cmsghdr header;
        char buffer[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control = {.header = {.cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS,
                            .cmsg_len = CMSG_LEN(nr_fds * sizeof(int))}};
    struct iovec part;
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (nr_fds > 0) {
        memcpy(CMSG_DATA(&control.header), fds, nr_fds * sizeof(int));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
    }
    while (connection->out_sent < connection->out_bytes) {
        ssize_t n;

        part = (struct iovec){connection->out + connection->out_sent,
                              connection->out_bytes - connection->out_sent};
        n = sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
            break;
        if (n < 0 && errno != EINTR)
            return errno == EAGAIN && connection->out_sent > 0 ? 0 : -errno;
        if (n <= 0)
            continue;
        connection->out_sent += (size_t)n;
        message.msg_controllen = 0;
    }
    connection->state = CONNECTION_RECEIVING;
    return 0;
}

int connection_call(struct connection *connection, const char *method,
                    struct json_object *parameters, const int *fds, size_t nr_fds, bool more)
{
    _cleanup_doc_ struct json_object *call =
        varlink_make_call(method, json_object_get(parameters), more);
    const char *text;
    size_t bytes;
    int r;

    if (connection->state != CONNECTION_IDLE)
        return -EBUSY;
    if (!call)
        return -ENOMEM;
    text = varlink_text(call, &bytes);
    if (!text)
        return -EILSEQ;
    if (bytes > VARLINK_CALL_BYTES_MAX || nr_fds > FDS_MAX)
        return -EMSGSIZE;
    free(connection->out);
    connection->out = strdup(text);
    if (!connection->out)
        return -ENOMEM;
    connection->out_bytes = bytes;
    connection->out_sent = 0;
    connection->state = CONNECTION_SENDING;
    r = connection_send(connection, fds, nr_fds);
    if (r < 0)
        connection->state = CONNECTION_IDLE;
    return r;
}

static int make_room(struct connection *connection)
{
    size_t max = connection->in_max ? connection->in_max * 2 : IN_FIRST_BYTES;
    char *in;

    if (connection->in_bytes < connection->in_max)
        return 0;
    if (max > VARLINK_REPLY_BYTES_MAX)
        return -EFBIG;
    in = realloc(connection->in, max);
    if (!in)
        return -ENOMEM;
    connection->in = in;
    connection->in_max = max;
    return 0;
}

/* Takes the reply of BYTES, whose NUL was found, out of what has come. */
static int connection_take_reply(struct connection *connection, size_t bytes,
                                 struct json_object **ret_reply)
{
    _cleanup_doc_ struct json_object *message = NULL;
    struct varlink_reply reply;
    int r;

    r = json_text_parse_strict(connection->in, bytes, VARLINK_REPLY_MEMORY_MAX, &message);
    if (r < 0)
        return r;
    r = varlink_read_reply(message, &reply);
    if (r < 0)
        return r;
    connection->in_bytes -= bytes + 1;
    memmove(connection->in, connection->in + bytes + 1, connection->in_bytes);
    connection->in_searched = 0;
    if (!reply.continues)
        connection->state = CONNECTION_IDLE;
    *ret_reply = TAKE_PTR(message);
    return 1;
}

/* A reply that is not complete at the end of the stream is none. */
static int connection_receive(struct connection *connection, struct json_object **ret_reply)
{
    for (;;) {
        size_t bytes = connection->in_bytes - connection->in_searched;
        const char *end =
            bytes > 0 ? memchr(connection->in + connection->in_searched, 0, bytes) : NULL;
        ssize_t n;
        int r;

        if (end)
            return connection_take_reply(connection, (size_t)(end - connection->in), ret_reply);
        connection->in_searched = connection->in_bytes;
        r = make_room(connection);
        if (r < 0)
            return r;
        n = recv(connection->fd, connection->in + connection->in_bytes,
                 connection->in_max - connection->in_bytes, MSG_DONTWAIT);
        if (n > 0)
            connection->in_bytes += (size_t)n;
        else if (n == 0 && connection->in_bytes > 0)
            return -EBADMSG;
        else if (n == 0 || errno == ECONNRESET || errno == EPIPE)
            return -ECONNRESET;
        else if (errno == EAGAIN)
            return 0;
        else if (errno != EINTR)
            return -errno;
    }
}

int connection_advance(struct connection *connection, struct json_object **ret_reply)
{
    int r = 0;

    if (connection->state == CONNECTION_SENDING)
        r = connection_send(connection, NULL, 0);
    if (r < 0 || connection->state != CONNECTION_RECEIVING)
        return r;
    return connection_receive(connection, ret_reply);
}
