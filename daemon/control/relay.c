// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Input is read without ever taking a byte beyond the line or the message that is being read: first
 * the 16 bytes from which the length follows, then the rest. So the kernel, which delivers
 * descriptors with the bytes that they were sent with, itself says to which message they belong,
 * and what is not read yet stays in the kernel, on the client's account.
 *
 * A message goes into the socket pair only when the server has answered everything before and the
 * client has read it. So the pair is empty, and takes the message as a whole: neither side waits
 * for the other.
 *
 * Source: unix(7), cmsg(3); the D-Bus specification, "Authentication Protocol".
 */

#include "daemon/control/relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include "common/util.h"
#include "daemon/base/vacate.h"
#include "daemon/control/passed.h"
#include "daemon/control/sasl.h"
#include "daemon/control/wire.h"

/* Descriptors in one read: what does not fit is closed by the kernel. */
#define RECEIVE_MAX 8u

/* Rounds of output in one turn of the event loop: others are served in between. */
#define OUTPUT_ROUNDS_MAX 4u

struct relay {
    const struct relay_server *server;
    void *userdata;
    struct vacate *vacate;
    const struct stand_ins *stand_ins;
    uid_t uid, person;
    int fd;
    int server_fd; /* our end of the socket pair; -1: not begun */
    sd_event_source *client_source;
    sd_event_source *server_source;
    sd_event_source *input_source;  /* the time for a message, or authentication, is over */
    sd_event_source *output_source; /* the client does not read */
    struct sasl sasl;
    bool has_greeted; /* with the NUL that comes before the first line */
    char line[SASL_LINE_MAX];
    size_t line_bytes;

    uint8_t header[WIRE_HEADER_BYTES];
    uint8_t *message; /* once the header is there */
    size_t message_bytes;
    size_t have_bytes;
    struct passed passed; /* with it */
    bool has_more_passed; /* ... than PASSED_MAX */
    bool has_dropped;     /* ... that were not received */

    bool may_be_called; /* nothing is left to be read by the client */
    size_t output_bytes;
    size_t sent_bytes;
    uint8_t output[RELAY_OUTPUT_BYTES];
};

/* --- Ends. --- */

static void relay_close_descriptors(struct relay *relay)
{
    vacate_close(relay->vacate, relay->person, relay->passed.fds, relay->passed.count);
    relay->passed = (struct passed){0};
    relay->has_more_passed = false;
    relay->has_dropped = false;
}

struct relay *relay_free(struct relay *relay)
{
    if (!relay)
        return NULL;
    relay_close_descriptors(relay);
    sd_event_source_disable_unref(relay->client_source);
    sd_event_source_disable_unref(relay->server_source);
    sd_event_source_disable_unref(relay->input_source);
    sd_event_source_disable_unref(relay->output_source);
    if (relay->fd >= 0)
        vacate_close_connection(relay->vacate, relay->person, relay->fd);
    fd_close(&relay->server_fd);
    free(relay->message);
    free(relay);
    return NULL;
}

static const char *describe_error(int error)
{
    switch (-error) {
    case ECONNRESET:
    case EPIPE:
        return "disconnected";
    case EPROTO:
        return "did not authenticate";
    case EBADMSG:
        return "sent data that is not a D-Bus message";
    case EMSGSIZE:
        return "sent a message of more than 64 KiB";
    case EBADF:
        return "passed descriptors that its message does not announce";
    case EDQUOT:
        return "passed more descriptors while earlier ones are not closed yet";
    default:
        return strerror(-error);
    }
}

/* For `return` in a handler of the event loop. */
static int relay_close(struct relay *relay, const char *reason)
{
    relay->server->closed(relay->userdata, reason);
    return 0;
}

bool relay_has_begun(const struct relay *relay)
{
    return relay->server_fd >= 0;
}

int relay_fd(const struct relay *relay)
{
    return relay->fd;
}

/* --- Time. --- */

static int relay_set_timer(sd_event_source *source, uint64_t usec)
{
    int r = sd_event_source_set_time_relative(source, usec);

    if (r < 0)
        return r;
    return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

static int handle_input_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    struct relay *relay = userdata;

    (void)source, (void)usec;
    return relay_close(relay, relay_has_begun(relay) ? "did not complete a message in time"
                                                     : "did not authenticate in time");
}

static int handle_output_time(sd_event_source *source, uint64_t usec, void *userdata)
{
    (void)source, (void)usec;
    return relay_close(userdata, "does not read its answers");
}

/* --- Output. --- */

static int relay_watch_client(struct relay *relay)
{
    uint32_t events = 0;

    if (!relay_has_begun(relay) || relay->may_be_called || relay->have_bytes > 0)
        events |= EPOLLIN;
    if (relay->output_bytes > 0)
        events |= EPOLLOUT;
    return sd_event_source_set_io_events(relay->client_source, events);
}

/* Returns 1 if nothing is left, 0 if the client has to read first. Its progress stops the time. */
static int relay_send_output(struct relay *relay)
{
    ssize_t n;
    int r;

    while (relay->sent_bytes < relay->output_bytes) {
        n = send(relay->fd, relay->output + relay->sent_bytes,
                 relay->output_bytes - relay->sent_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        relay->sent_bytes += (size_t)n;
        r = sd_event_source_set_enabled(relay->output_source, SD_EVENT_OFF);
        if (r < 0)
            return r;
    }
    relay->sent_bytes = relay->output_bytes = 0;
    return 1;
}

/* Returns 1 if there is something to send, 0 if the server has no more for now. */
static int relay_fetch_output(struct relay *relay)
{
    ssize_t n = recv(relay->server_fd, relay->output, sizeof(relay->output), MSG_DONTWAIT);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        return -errno;
    if (n == 0)
        return -ECONNRESET;
    relay->output_bytes = n < 0 ? 0 : (size_t)n;
    relay->sent_bytes = 0;
    return n > 0;
}

/* As much as client, server and fairness allow. */
static int relay_move_output(struct relay *relay)
{
    int r, is_left;

    relay->may_be_called = false;
    for (unsigned int i = 0; i < OUTPUT_ROUNDS_MAX; i++) {
        r = relay_send_output(relay);
        if (r <= 0)
            return r;
        is_left = relay->server->flush(relay->userdata);
        if (is_left < 0)
            return is_left;
        r = relay_fetch_output(relay);
        if (r < 0)
            return r;
        if (r == 0 && !is_left) {
            relay->may_be_called = true;
            return 0;
        }
    }
    return 0; /* the rest makes the server's end readable */
}

/* Afterwards the loop waits for what can happen next. */
static int relay_handle_output(struct relay *relay)
{
    bool has_output;
    int r;

    r = relay_move_output(relay);
    if (r < 0)
        return r;
    has_output = relay->output_bytes > 0;
    r = sd_event_source_set_enabled(relay->server_source, has_output ? SD_EVENT_OFF : SD_EVENT_ON);
    if (r < 0)
        return r;
    if (has_output && sd_event_source_get_enabled(relay->output_source, NULL) == 0) {
        r = relay_set_timer(relay->output_source, RELAY_OUTPUT_USEC);
        if (r < 0)
            return r;
    }
    return relay_watch_client(relay);
}

void relay_send_last(struct relay *relay)
{
    if (relay_has_begun(relay))
        (void)relay_move_output(relay); /* nobody is left to learn of an error */
}

static int handle_server(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct relay *relay = userdata;
    int r = relay_handle_output(relay);

    (void)source, (void)fd, (void)revents;
    return r < 0 ? relay_close(relay, describe_error(r)) : 0;
}

/* --- Input. --- */

/* One more of the message. */
static void relay_take_descriptor(struct relay *relay, int fd)
{
    struct passed *passed = &relay->passed;

    if (passed->count < PASSED_MAX && !relay->has_more_passed) {
        passed->fds[passed->count++] = fd;
        return;
    }
    relay->has_more_passed = true;
    vacate_close(relay->vacate, relay->person, &fd, 1);
}

/* Those that came with what was read. */
static void relay_take_descriptors(struct relay *relay, struct msghdr *header)
{
    struct cmsghdr *part;

    for (part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);

        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t i = 0; i < count; i++) {
            int fd;

            memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
            relay_take_descriptor(relay, fd);
        }
    }
    if (header->msg_flags & MSG_CTRUNC && header->msg_control)
        relay->has_more_passed = true;
    else if (header->msg_flags & MSG_CTRUNC)
        relay->has_dropped = true;
}

/* Up to BYTES. Returns how many, 0 if there are none now, or a negative errno. */
static ssize_t relay_receive(struct relay *relay, void *to, size_t bytes)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * RECEIVE_MAX)];
    struct iovec vector = {.iov_base = to, .iov_len = bytes};
    struct msghdr header = {
        .msg_iov = &vector,
        .msg_iovlen = 1,
        .msg_control = control,
        .msg_controllen = sizeof(control),
    };
    bool had_more = relay->has_more_passed;
    ssize_t n;

    if (vacate_is_full(relay->vacate, relay->person)) {
        if (relay->person != PERSON_ROOT)
            return -EDQUOT;
        header.msg_control = NULL; /* the kernel drops them; root's other calls are answered */
        header.msg_controllen = 0;
    }
    n = recvmsg(relay->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    relay_take_descriptors(relay, &header);
    return had_more && header.msg_controllen > 0 ? -EBADF : n; /* there is no end of them */
}

/* --- Authentication. --- */

static int relay_reply(struct relay *relay, const char *reply)
{
    size_t length = strlen(reply);
    ssize_t n = send(relay->fd, reply, length, MSG_DONTWAIT | MSG_NOSIGNAL);

    /* SASL_LINES_MAX of them fit into any socket. */
    return n == (ssize_t)length ? 0 : -EPROTO;
}

static int relay_listen_to_server(struct relay *relay)
{
    int64_t priority;
    int r;

    r = sd_event_add_io(sd_event_source_get_event(relay->client_source), &relay->server_source,
                        relay->server_fd, EPOLLIN, handle_server, relay);
    if (r < 0)
        return r;
    r = sd_event_source_get_priority(relay->client_source, &priority);
    if (r < 0)
        return r;
    return sd_event_source_set_priority(relay->server_source, priority);
}

static int relay_begin(struct relay *relay)
{
    int fds[2], r;

    r = sd_event_source_set_enabled(relay->input_source, SD_EVENT_OFF);
    if (r < 0)
        return r;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    relay->server_fd = fds[0];
    r = relay->server->begin(relay->userdata, fds[1], fds[0]);
    if (r < 0)
        return r;
    r = relay_listen_to_server(relay);
    if (r < 0)
        return r;
    return relay_handle_output(relay);
}

/*
 * The rest of the line, or what there is of it. Nothing after it is taken: that may be a message.
 * No descriptors come with it. Returns 1 if the line is complete.
 */
static int relay_read_line(struct relay *relay)
{
    size_t room = sizeof(relay->line) - relay->line_bytes;
    char *to = relay->line + relay->line_bytes;
    const char *end;
    ssize_t n;

    if (room == 0)
        return -EPROTO;
    n = recv(relay->fd, to, room, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : -errno;
    if (n == 0)
        return -ECONNRESET;
    end = memchr(to, '\n', (size_t)n);
    if (end)
        n = end + 1 - to;
    if (relay_receive(relay, to, (size_t)n) != n || relay->passed.count > 0)
        return -EPROTO;
    relay->line_bytes += (size_t)n;
    return end ? 1 : 0;
}

static int relay_take_line(struct relay *relay)
{
    const char *text = relay->line;
    size_t length = relay->line_bytes;
    char reply[SASL_REPLY_MAX];
    int r;

    relay->line_bytes = 0;
    if (!relay->has_greeted) { /* with a NUL before the first line */
        if (text[0] != '\0')
            return -EPROTO;
        relay->has_greeted = true;
        text++;
        length--;
    }
    if (length < 2 || text[length - 2] != '\r')
        return -EPROTO;
    r = sasl_feed(&relay->sasl, text, length - 2, reply);
    if (r < 0)
        return r;
    return relay->sasl.state == SASL_BEGUN ? relay_begin(relay) : relay_reply(relay, reply);
}

/* All lines that are there. */
static int relay_authenticate(struct relay *relay)
{
    int r;

    while (!relay_has_begun(relay)) {
        r = relay_read_line(relay);
        if (r <= 0)
            return r;
        r = relay_take_line(relay);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- Messages. --- */

static void relay_forget_message(struct relay *relay)
{
    free(TAKE_PTR(relay->message));
    relay->have_bytes = 0;
    relay_close_descriptors(relay);
}

/* The length is known: room for the whole message. */
static int relay_begin_message(struct relay *relay)
{
    int r;

    r = wire_read_length(relay->header, &relay->message_bytes);
    if (r < 0)
        return r;
    relay->message = malloc(relay->message_bytes);
    if (!relay->message)
        return -ENOMEM;
    memcpy(relay->message, relay->header, WIRE_HEADER_BYTES);
    return 0;
}

/* One read. Returns 1 if there may be more, 0 if not. */
static int relay_read_part(struct relay *relay)
{
    size_t end = relay->message ? relay->message_bytes : WIRE_HEADER_BYTES;
    uint8_t *to = relay->message ? relay->message : relay->header;
    ssize_t n = relay_receive(relay, to + relay->have_bytes, end - relay->have_bytes);
    int r = 0;

    if (n <= 0)
        return (int)n;
    if (relay->have_bytes == 0)
        r = relay_set_timer(relay->input_source, RELAY_INPUT_USEC);
    if (r < 0)
        return r;
    relay->have_bytes += (size_t)n;
    if (!relay->message && relay->have_bytes == WIRE_HEADER_BYTES)
        r = relay_begin_message(relay);
    return r < 0 ? r : 1;
}

static bool relay_has_message(const struct relay *relay)
{
    return relay->message && relay->have_bytes == relay->message_bytes;
}

/* The stand-ins are the first of the server's, in the order of the descriptors. */
static int relay_pass_message(struct relay *relay)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * PASSED_MAX)] = {0};
    struct iovec vector = {.iov_base = relay->message, .iov_len = relay->message_bytes};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    size_t bytes = sizeof(int) * relay->passed.count;
    struct cmsghdr *part = (struct cmsghdr *)control;
    ssize_t n;

    if (relay->passed.count > 0) {
        *part = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(bytes), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(part), relay->stand_ins->fds, bytes);
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(bytes);
    }
    n = sendmsg(relay->server_fd, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0)
        return -errno;
    return n == (ssize_t)relay->message_bytes ? 0 : -EIO; /* the pair was empty: it fits */
}

/* The message is complete: are its descriptors those of which its header says, and permitted? */
static int relay_check_descriptors(struct relay *relay)
{
    bool has_more = relay->has_more_passed, has_dropped = relay->has_dropped;
    uint32_t expected;
    int r;

    r = wire_count_descriptors(relay->message, relay->message_bytes, &expected);
    if (r < 0)
        return r;
    if (!has_dropped && (has_more ? expected <= PASSED_MAX : expected != relay->passed.count))
        return -EBADF;
    if (!has_more && !has_dropped && (expected == 0 || relay->server->may_pass(relay->userdata)))
        return 0;
    relay_close_descriptors(relay);
    relay->passed.is_refused = true;
    wire_clear_descriptors(relay->message, relay->message_bytes);
    return 0;
}

/* The message is complete: the server reads it. */
static int relay_deliver_message(struct relay *relay)
{
    int r;

    r = sd_event_source_set_enabled(relay->input_source, SD_EVENT_OFF);
    if (r < 0)
        return r;
    r = relay_check_descriptors(relay);
    if (r < 0)
        return r;
    r = relay_pass_message(relay);
    if (r < 0)
        return r;
    r = relay->server->receive(relay->userdata, &relay->passed);
    relay_forget_message(relay);
    if (r < 0)
        return r;
    return relay_handle_output(relay);
}

/* One message at most: others have their turn in between. */
static int relay_handle_messages(struct relay *relay)
{
    int r = 1;

    while (r > 0 && !relay_has_message(relay))
        r = relay_read_part(relay);
    if (r < 0)
        return r;
    return relay_has_message(relay) ? relay_deliver_message(relay) : 0;
}

/* --- The client's socket. --- */

static int relay_handle_client(struct relay *relay, uint32_t revents)
{
    int r;

    if (revents & EPOLLOUT) {
        r = relay_handle_output(relay);
        if (r < 0)
            return r;
    }
    if (!relay_has_begun(relay))
        return relay_authenticate(relay);
    if (revents & EPOLLIN && (relay->may_be_called || relay->have_bytes > 0))
        return relay_handle_messages(relay);
    /* It will not read what waits for it. */
    return revents & (EPOLLHUP | EPOLLERR) ? -ECONNRESET : 0;
}

static int handle_client(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
    struct relay *relay = userdata;
    int r = relay_handle_client(relay, revents);

    (void)source, (void)fd;
    return r < 0 ? relay_close(relay, describe_error(r)) : 0;
}

/* --- Priority. --- */

/* A time that is over comes after what has arrived in time, however late the loop looks at both. */
int relay_set_priority(struct relay *relay, int64_t priority)
{
    struct {
        sd_event_source *source;
        int64_t priority;
    } sources[] = {
        {relay->client_source, priority},
        {relay->server_source, priority},
        {relay->input_source, priority + 1},
        {relay->output_source, priority + 1},
    };
    int r;

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        r = sources[i].source ? sd_event_source_set_priority(sources[i].source, sources[i].priority)
                              : 0;
        if (r < 0)
            return r;
    }
    return 0;
}

/* --- Construction. --- */

static int relay_add_timers(struct relay *relay, const struct relay_options *options)
{
    struct sd_event *event = options->event;
    int r;

    r = sd_event_add_time_relative(event, &relay->input_source, CLOCK_MONOTONIC, RELAY_INPUT_USEC,
                                   USEC_PER_MSEC, handle_input_time, relay);
    if (r < 0)
        return r;
    r = sd_event_add_time_relative(event, &relay->output_source, CLOCK_MONOTONIC, RELAY_OUTPUT_USEC,
                                   USEC_PER_MSEC, handle_output_time, relay);
    if (r < 0)
        return r;
    return sd_event_source_set_enabled(relay->output_source, SD_EVENT_OFF);
}

static int relay_add_sources(struct relay *relay, const struct relay_options *options, int fd)
{
    int r;

    r = relay_add_timers(relay, options);
    if (r < 0)
        return r;
    r = sd_event_add_io(options->event, &relay->client_source, fd, EPOLLIN, handle_client, relay);
    if (r < 0)
        return r;
    return relay_set_priority(relay, options->priority);
}

int relay_new(const struct relay_options *options, int *fd, struct relay **ret_relay)
{
    struct relay *relay = calloc(1, sizeof(*relay));
    char guid[SD_ID128_STRING_MAX];
    sd_id128_t id;
    int r;

    if (!relay)
        return -ENOMEM;
    relay->server = options->server;
    relay->userdata = options->userdata;
    relay->fd = relay->server_fd = -1;
    relay->vacate = options->vacate;
    relay->stand_ins = options->stand_ins;
    relay->uid = options->uid;
    relay->person = options->person;
    r = sd_id128_randomize(&id);
    if (r >= 0)
        r = relay_add_sources(relay, options, *fd);
    if (r < 0) {
        relay_free(relay);
        return r;
    }
    sasl_init(&relay->sasl, options->uid, options->passes_descriptors,
              sd_id128_to_string(id, guid));
    relay->fd = fd_take(fd);
    *ret_relay = relay;
    return 0;
}
