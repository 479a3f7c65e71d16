// SPDX-License-Identifier: GPL-2.0-or-later

#include "tests/ctl/fake-server.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

#include "common/doc-make.h"
#include "common/json-text.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "common/varlink.h"

#define PEERS_MAX 64
#define TICK_MSEC 20

struct fake_peer {
    const struct fake_server *server;
    int fd; /* -1: a free place */
    bool is_closing;
    char in[VARLINK_CALL_BYTES_MAX];
    size_t in_bytes;
    int fds[FAKE_FDS_MAX];
    size_t nr_fds;
    struct fake_stream stream;
};

static struct fake_peer peers[PEERS_MAX];

uint64_t fake_now_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

struct fake_stream *fake_peer_stream(struct fake_peer *peer)
{
    return &peer->stream;
}

void fake_close(struct fake_peer *peer)
{
    peer->is_closing = true;
}

/* --- Answers. --- */

void fake_send(struct fake_peer *peer, const char *bytes, size_t count)
{
    size_t step = peer->server->in_pieces ? 1 : count;

    while (count > 0) {
        ssize_t n = send(peer->fd, bytes, min_u64(step, count), MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return; /* the client is gone, which is found by reading */
        bytes += n;
        count -= (size_t)n;
    }
}

void fake_reply(struct fake_peer *peer, const char *key, const char *text, bool continues)
{
    _cleanup_free_ char *reply = NULL;
    int bytes = asprintf(&reply, "{\"parameters\":{\"%s\":%s}%s}", key, text,
                         continues ? ",\"continues\":true" : "");

    if (bytes > 0)
        fake_send(peer, reply, (size_t)bytes + 1);
}

void fake_reply_document(struct fake_peer *peer, const char *key, struct json_object *doc,
                         bool continues)
{
    fake_reply(peer, key, json_object_to_json_string(doc), continues);
    json_object_put(doc);
}

void fake_error(struct fake_peer *peer, const char *name, const char *sentence, const char *hint)
{
    struct json_object *parameters = json_object_new_object(), *error;
    const char *text;
    size_t bytes;

    if (sentence)
        doc_add_text(parameters, FIELD_SENTENCE, sentence);
    if (hint)
        doc_add_text(parameters, FIELD_HINT, hint);
    error = varlink_make_error(name, parameters);
    text = varlink_text(error, &bytes);
    fake_send(peer, text, bytes);
    json_object_put(error);
}

/* --- Calls. --- */

const char *fake_text(const struct fake_call *call, const char *key)
{
    struct json_object *value = doc_find(call->parameters, key);

    return value ? json_object_get_string(value) : "";
}

uint64_t fake_number(const struct fake_call *call, const char *key)
{
    return json_object_get_uint64(doc_find(call->parameters, key));
}

bool fake_flag(const struct fake_call *call, const char *key)
{
    return json_object_get_boolean(doc_find(call->parameters, key));
}

int fake_fd(const struct fake_call *call, const char *key)
{
    struct json_object *value = doc_find(call->parameters, key);
    uint64_t index = json_object_get_uint64(value);

    return value && index < call->nr_fds ? fcntl(call->fds[index], F_DUPFD_CLOEXEC, 3) : -1;
}

static void answer_info(struct fake_peer *peer)
{
    struct json_object *info = json_object_new_object(), *reply;
    const char *text;
    size_t bytes;

    doc_add_text(info, "vendor", "fake");
    doc_add_text(info, "product", "xentraced");
    doc_add_text(info, "version", peer->server->version);
    doc_add_text(info, "url", "-");
    doc_append_text(doc_add_array(info, "interfaces"), peer->server->interface);
    reply = varlink_make_reply(info, false);
    text = varlink_text(reply, &bytes);
    fake_send(peer, text, bytes);
    json_object_put(reply);
}

static void close_fds(struct fake_peer *peer)
{
    while (peer->nr_fds > 0)
        (void)close(peer->fds[--peer->nr_fds]);
}

static void handle_message(const struct fake_server *server, struct fake_peer *peer, size_t bytes)
{
    struct json_object *message = NULL;
    struct varlink_call call;
    const char *method;

    if (json_text_parse_strict(peer->in, bytes, VARLINK_CALL_MEMORY_MAX, &message) < 0 ||
        varlink_read_call(message, &call) < 0) {
        peer->is_closing = true;
    } else if (strcmp(call.method, SERVICE_INTERFACE "." SERVICE_GET_INFO) == 0) {
        answer_info(peer);
    } else {
        method = strrchr(call.method, '.');
        server->handle(server->context,
                       &(struct fake_call){peer, method ? method + 1 : "", call.parameters,
                                           peer->fds, peer->nr_fds, call.more});
    }
    json_object_put(message);
    close_fds(peer);
}

/* As libdbus and sd-bus do: the first byte is a NUL, and lines follow. */
static void handle_dbus(struct fake_peer *peer)
{
    static const char auth[] = "\0AUTH\r\n", rejected[] = "REJECTED EXTERNAL\r\n";

    if (peer->in[0] != 0)
        peer->is_closing = true;
    else if (peer->in_bytes >= sizeof(auth) - 1 && memcmp(peer->in, auth, sizeof(auth) - 1) == 0)
        fake_send(peer, rejected, sizeof(rejected) - 1);
}

static ssize_t receive(struct fake_peer *peer)
{
    union {
        struct cmsghdr header;
        char buffer[CMSG_SPACE(FAKE_FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {peer->in + peer->in_bytes, sizeof(peer->in) - peer->in_bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(peer->fd, &message, MSG_CMSG_CLOEXEC);
    struct cmsghdr *header = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (header && header->cmsg_type == SCM_RIGHTS) {
        close_fds(peer);
        peer->nr_fds = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        memcpy(peer->fds, CMSG_DATA(header), peer->nr_fds * sizeof(int));
    }
    return n;
}

static void read_peer(const struct fake_server *server, struct fake_peer *peer)
{
    ssize_t n = receive(peer);
    char *end;

    if (n < 0 && errno == EINTR)
        return;
    if (n <= 0) {
        peer->is_closing = true;
        return;
    }
    peer->in_bytes += (size_t)n;
    if (server->speaks_dbus) {
        handle_dbus(peer);
        return;
    }
    while (!peer->is_closing && (end = memchr(peer->in, 0, peer->in_bytes))) {
        size_t bytes = (size_t)(end - peer->in);

        handle_message(server, peer, bytes);
        peer->in_bytes -= bytes + 1;
        memmove(peer->in, end + 1, peer->in_bytes);
    }
}

static void close_peer(const struct fake_server *server, struct fake_peer *peer)
{
    server->gone(server->context, peer);
    close_fds(peer);
    if (peer->stream.method)
        fd_close(&peer->stream.fd);
    fd_close(&peer->fd);
}

static void accept_peer(const struct fake_server *server, int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct fake_peer *peer = peers;

    while (peer < peers + PEERS_MAX && peer->fd >= 0)
        peer++;
    if (fd >= 0 && (server->closes || peer == peers + PEERS_MAX))
        fd_close(&fd);
    if (fd >= 0)
        *peer = (struct fake_peer){.server = server, .fd = fd};
}

static void serve(struct fake_server *server, int listener)
{
    struct pollfd fds[1 + PEERS_MAX];

    for (size_t i = 0; i < PEERS_MAX; i++)
        peers[i].fd = -1;
    while (!server->is_over) {
        fds[0] = (struct pollfd){.fd = server->accepts ? listener : -1, .events = POLLIN};
        for (size_t i = 0; i < PEERS_MAX; i++)
            fds[1 + i] = (struct pollfd){.fd = peers[i].fd, .events = POLLIN};
        (void)poll(fds, 1 + PEERS_MAX, TICK_MSEC);
        for (size_t i = 0; i < PEERS_MAX && !server->is_over; i++) {
            if (fds[1 + i].revents)
                read_peer(server, &peers[i]);
            if (peers[i].fd >= 0 && peers[i].stream.method && !peers[i].is_closing)
                server->tick(server->context, &peers[i]);
            if (peers[i].fd >= 0 && peers[i].is_closing)
                close_peer(server, &peers[i]);
        }
        if (fds[0].revents)
            accept_peer(server, listener);
    }
}

int fake_server_run(struct fake_server *server, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (strlen(path) + strlen(".new") >= sizeof(address.sun_path))
        return 2;
    (void)signal(SIGPIPE, SIG_IGN); /* a client may stop reading */
    /* Under its name only when it can be connected to: that is what tests wait for. */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", path);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, 16) < 0 || rename(address.sun_path, path) < 0) {
        perror("fake-daemon");
        return 1;
    }
    serve(server, fd);
    (void)unlink(path);
    return 0;
}
