// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Input is looked at (MSG_PEEK) before it is taken, and never a byte beyond the NUL of the message
 * that is being read. So the kernel, which delivers descriptors with the bytes that they were sent
 * with, itself says to which message they belong, and what is not read yet stays in the kernel, on
 * the client's account. Looking makes no descriptors: there is no room for any.
 *
 * One recvmsg(2) delivers the descriptors of one sendmsg(2), SCM_MAX_FD at most. There is always
 * room for as many, in the batch and in the table: what does not fit would be closed by the kernel,
 * within recvmsg(2).
 *
 * Source: unix(7), cmsg(3); unix_stream_read_generic() of Linux 6.1.
 */

#include "daemon/control/connection.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/json-text.h"
#include "common/util.h"
#include "common/varlink.h"
#include "daemon/base/vacate.h"
#include "daemon/control/old-client.h"

#define BUFFER_BYTES 1024u /* to begin with: nearly all calls are shorter */

/* Steps of input, or of output, in one turn of the event loop: others are served in between. */
#define ROUNDS_MAX 16u

/* A reply that is being sent. */
struct output {
    struct output *next;
    size_t bytes;
    char text[];
};

struct connection {
    const struct connection_server *server;
    void *userdata;
    struct vacate_person *person;
    struct vacate_batch *socket;
    int fd; /* its */
    sd_event_source *source;
    sd_event_source *input_source;  /* the time for a message is over */
    sd_event_source *output_source; /* the client does not read */
    const char *end_reason;         /* it is to be disconnected */

    char *message; /* that is being read */
    size_t message_size;
    size_t message_bytes;
    struct vacate_batch *passed; /* with it; NULL: room for none */
    bool has_refused;            /* ... others, which are closed already */
    enum old_client_step old_client;

    bool has_call; /* which is not answered */
    struct output *output;
    struct output **output_tail;
    size_t sent_bytes; /* of the first one */
    size_t unsent_bytes;
};

/* --- Ends. --- */

struct connection *connection_free(struct connection *connection)
{
    struct output *output;

    if (!connection)
        return NULL;
    sd_event_source_disable_unref(connection->source);
    sd_event_source_disable_unref(connection->input_source);
    sd_event_source_disable_unref(connection->output_source);
    if (connection->socket)
        (void)shutdown(connection->fd, SHUT_RDWR); /* the client need not wait for close(2) */
    vacate_close(connection->passed);
    vacate_close(connection->socket);
    while ((output = connection->output)) {
        connection->output = output->next;
        free(output);
    }
    free(connection->message);
    free(connection);
    return NULL;
}

static const char *describe_error(int error)
{
    switch (-error) {
    case ECONNRESET:
    case EPIPE:
        return "disconnected";
    case EBADMSG:
        return "sent data that is not a Varlink call";
    case EFBIG:
        return "sent a call that would take too much memory";
    case EMSGSIZE:
        return "sent a message of more than 64 KiB";
    case EBUSY:
        return "sent a message while too many descriptors are not closed yet";
    case EMFILE:
        return "passed descriptors for which there is no room";
    case EPERM:
        return "made a oneway call that would change something";
    default:
        return strerror(-error);
    }
}

/* For `return` in a handler of the event loop. */
static int connection_close(struct connection *connection, const char *reason)
{
    connection->server->closed(connection->userdata, reason);
    return 0;
}

int connection_fd(const struct connection *connection)
{
    return connection->fd;
}

/* --- Time. --- */

static int set_timer(sd_event_source *source, uint64_t usec)
{
    int r = sd_event_source_set_time_relative(source, usec);

    if (r < 0)
        return r;
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int handle_input_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct connection *connection = userdata;

    (void)source, (void)usec;
    return connection_close(connection, connection->end_reason
                                            ? connection->end_reason
                                            : "did not complete a message in time");
}

static int handle_output_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source, (void)usec;
    return connection_close(userdata, "does not read its replies");
}

/* --- What is waited for. --- */

static int connection_watch(struct connection *connection)
{
    uint32_t events = 0;

    if (connection->output)
        events |= EPOLLOUT;
    else if (!connection->has_call &&
             (connection->message_bytes > 0 || connection->server->may_read(connection->userdata)))
        events |= EPOLLIN;
    return sd_event_source_set_io_events(connection->source, events);
}

void connection_end(struct connection *connection, const char *reason)
{
    if (!connection->end_reason)
        connection->end_reason = reason;
    (void)set_timer(connection->input_source, 0); /* as valid as any time before */
}

void connection_resume(struct connection *connection)
{
    if (connection_watch(connection) < 0)
        connection_end(connection, "cannot be watched");
}

/* --- Replies. --- */

size_t connection_unsent_bytes(const struct connection *connection)
{
    return connection->unsent_bytes;
}

/* Copies the text: the objects of a long status take several times its memory. */
static int connection_queue(struct connection *connection, const char *text, size_t bytes)
{
    struct output *output = malloc(sizeof(*output) + bytes);
    int r;

    if (!output)
        return -ENOMEM;
    *output = (struct output){.bytes = bytes};
    memcpy(output->text, text, bytes);
    *connection->output_tail = output;
    connection->output_tail = &output->next;
    connection->unsent_bytes += bytes;
    if (connection->unsent_bytes == bytes) {
        r = set_timer(connection->output_source, CONNECTION_OUTPUT_USEC);
        if (r < 0)
            return r;
    }
    return connection_watch(connection);
}

void connection_reply(struct connection *connection, struct json_object *message, bool continues)
{
    size_t bytes = 0;
    const char *text = message ? varlink_text(message, &bytes) : NULL;
    int r;

    if (!continues)
        connection->has_call = false;
    r = text ? connection_queue(connection, text, bytes) : -ENOMEM;
    json_object_put(message);
    if (r < 0)
        connection_end(connection, "a reply could not be made");
}

/* Returns 1 if nothing is left, 0 if the client has to read first, or others are to be served. */
static int connection_send(struct connection *connection)
{
    int r;

    for (unsigned int i = 0; connection->output && i < ROUNDS_MAX; i++) {
        struct output *output = connection->output;
        ssize_t n = send(connection->fd, output->text + connection->sent_bytes,
                         output->bytes - connection->sent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        connection->sent_bytes += (size_t)n;
        connection->unsent_bytes -= (size_t)n;
        (void)set_timer(connection->output_source, CONNECTION_OUTPUT_USEC); /* it worked before */
        if (connection->sent_bytes < output->bytes)
            continue;
        connection->output = output->next;
        if (!connection->output)
            connection->output_tail = &connection->output;
        connection->sent_bytes = 0;
        free(output);
    }
    if (connection->output)
        return 0;
    r = sd_event_source_set_enabled(connection->output_source, SD_EVENT_OFF);
    return r < 0 ? r : 1;
}

void connection_send_last(struct connection *connection)
{
    (void)connection_send(connection); /* it is disconnected next */
}

/* --- Calls. --- */

static int connection_make_room(struct connection *connection)
{
    size_t size = connection->message_size ? 2 * connection->message_size : BUFFER_BYTES;
    char *message;

    if (connection->message_bytes < connection->message_size)
        return 0;
    if (size > VARLINK_CALL_BYTES_MAX)
        return -EMSGSIZE;
    message = realloc(connection->message, size);
    if (!message)
        return -ENOMEM;
    connection->message = message;
    connection->message_size = size;
    return 0;
}

/* All descriptors of MESSAGE are in the batch then, whatever comes next. */
static void connection_keep_passed(struct connection *connection, struct msghdr *message)
{
    for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(message); cmsg; cmsg = CMSG_NXTHDR(message, cmsg)) {
        size_t n = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < n; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
            vacate_batch_add(connection->passed, fd);
        }
    }
    if (connection->passed->n <= CONNECTION_PASSED_MAX)
        return;
    connection->has_refused = true;
    vacate_close(TAKE_PTR(connection->passed));
}

/* Takes BYTES of the socket, which are there. Returns how many. */
static ssize_t connection_take(struct connection *connection, size_t bytes)
{
    struct iovec iov = {connection->message + connection->message_bytes, bytes};
    union {
        char buffer[CMSG_SPACE(VACATE_RECEIVE_MAX * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct msghdr message = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.buffer,
        .msg_controllen = sizeof(control.buffer),
    };
    ssize_t n;

    if (!connection->passed)
        connection->passed = vacate_batch_new(connection->person, VACATE_BATCH_MAX);
    if (!connection->passed)
        return -ENOMEM;
    if (!vacate_may_receive(connection->person))
        return -EBUSY;
    n = recvmsg(connection->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    connection_keep_passed(connection, &message);
    return message.msg_flags & MSG_CTRUNC ? -EMFILE : n;
}

/*
 * Returns 1 if the message is complete, 0 if more is there, -EAGAIN if nothing is there now, or
 * another negative errno.
 */
static int connection_read(struct connection *connection)
{
    char *begin, *nul;
    ssize_t n;
    int r;

    r = connection_make_room(connection);
    if (r < 0)
        return r;
    begin = connection->message + connection->message_bytes;
    n = recv(connection->fd, begin, connection->message_size - connection->message_bytes,
             MSG_PEEK | MSG_DONTWAIT);
    if (n <= 0)
        return n < 0 ? -errno : -ECONNRESET;
    nul = connection->old_client ? NULL : memchr(begin, '\0', (size_t)n);
    n = connection_take(connection, nul ? (size_t)(nul + 1 - begin) : (size_t)n);
    if (n <= 0)
        return n < 0 ? (int)n : -ECONNRESET;
    if (connection->message_bytes == 0) {
        r = set_timer(connection->input_source, CONNECTION_INPUT_USEC);
        if (r < 0)
            return r;
    }
    connection->message_bytes += (size_t)n;
    return connection->old_client || begin[n - 1] == '\0';
}

static int connection_dispatch(struct connection *connection, struct json_object *message)
{
    struct varlink_call call;
    struct passed passed = {.is_refused = connection->has_refused};
    int r;

    r = varlink_read_call(message, &call);
    if (r < 0)
        return r;
    if (!passed.is_refused && connection->passed) {
        passed.count = connection->passed->n;
        memcpy(passed.fds, connection->passed->fds, passed.count * sizeof(passed.fds[0]));
    }
    connection->has_call = !call.oneway;
    return connection->server->call(connection->userdata, message, &call, &passed);
}

/* Afterwards there is room for the next message. */
static void connection_forget_message(struct connection *connection)
{
    if (connection->passed && connection->passed->n > 0)
        vacate_close(TAKE_PTR(connection->passed));
    connection->has_refused = false;
    free(TAKE_PTR(connection->message));
    connection->message_size = 0;
    connection->message_bytes = 0;
}

/* What it has sent so far is in MESSAGE, without the NUL that came first. */
static int connection_handle_old_client(struct connection *connection)
{
    char answer[OLD_CLIENT_ANSWER_MAX];
    size_t bytes = old_client_continue(&connection->old_client, connection->message,
                                       connection->message_bytes, answer);

    if (bytes == 0)
        return 0;
    connection_forget_message(connection);
    return connection_queue(connection, answer, bytes);
}

/* A whole message is there. */
static int connection_handle_message(struct connection *connection)
{
    struct json_object *message = NULL;
    int r;

    if (connection->old_client)
        return connection_handle_old_client(connection);
    if (connection->message_bytes == 1) {
        connection->old_client = OLD_CLIENT_AUTHENTICATES;
        connection_forget_message(connection);
        return 0;
    }
    r = sd_event_source_set_enabled(connection->input_source, SD_EVENT_OFF);
    if (r >= 0)
        r = json_text_parse_strict(connection->message, connection->message_bytes - 1,
                                   VARLINK_CALL_MEMORY_MAX, &message);
    if (r >= 0)
        r = connection_dispatch(connection, message);
    json_object_put(message);
    connection_forget_message(connection);
    return r;
}

static int connection_receive(struct connection *connection)
{
    int r = 0;

    for (unsigned int i = 0; r == 0 && i < ROUNDS_MAX; i++)
        r = connection_read(connection);
    if (r == -EAGAIN || r == -EINTR)
        return 0;
    if (r <= 0)
        return r;
    r = connection_handle_message(connection);
    return r < 0 ? r : 0;
}

/* --- Both. --- */

static int connection_handle_io(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct connection *connection = userdata;
    int r = 0;

    (void)source, (void)fd;
    if (connection->end_reason)
        return connection_close(connection, connection->end_reason);
    if (revents & EPOLLOUT)
        r = connection_send(connection);
    else if (revents & EPOLLIN)
        r = connection_receive(connection);
    else if (revents & (EPOLLHUP | EPOLLERR))
        r = -ECONNRESET;
    if (r < 0)
        return connection_close(connection, describe_error(r));
    if (r > 0 && connection->old_client == OLD_CLIENT_ANSWERED)
        return connection_close(connection, "is older than this xentraced");
    if (r > 0)
        connection->server->drained(connection->userdata);
    r = connection_watch(connection);
    return r < 0 ? connection_close(connection, strerror(-r)) : 0;
}

int connection_set_priority(struct connection *connection, int64_t priority)
{
    return sd_event_source_set_priority(connection->source, priority);
}

static int add_timer(struct connection *connection, sd_event *event, int64_t priority,
                     sd_event_time_handler_t handler, sd_event_source **ret_source)
{
    int r = sd_event_add_time_relative(event, ret_source, CLOCK_MONOTONIC, 0, USEC_PER_MSEC,
                                       handler, connection);

    if (r < 0)
        return r;
    r = sd_event_source_set_enabled(*ret_source, SD_EVENT_OFF);
    return r < 0 ? r : sd_event_source_set_priority(*ret_source, priority);
}

static int connection_add_sources(struct connection *connection,
                                  const struct connection_options *options)
{
    int r;

    r = add_timer(connection, options->event, options->priority, handle_input_time,
                  &connection->input_source);
    if (r < 0)
        return r;
    r = add_timer(connection, options->event, options->priority, handle_output_time,
                  &connection->output_source);
    if (r < 0)
        return r;
    r = sd_event_add_io(options->event, &connection->source, connection->fd, EPOLLIN,
                        connection_handle_io, connection);
    return r < 0 ? r : connection_set_priority(connection, options->priority);
}

int connection_new(const struct connection_options *options, struct vacate_batch *socket,
                   struct connection **ret_connection)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    int r;

    if (!connection)
        return -ENOMEM;
    connection->server = options->server;
    connection->userdata = options->userdata;
    connection->person = options->person;
    connection->fd = socket->fds[0];
    connection->output_tail = &connection->output;
    r = connection_add_sources(connection, options);
    if (r < 0) {
        connection_free(connection);
        return r;
    }
    connection->socket = socket;
    *ret_connection = connection;
    return 0;
}
