// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The input is what a client sends: bytes in pieces, each with some descriptors, to a real
 * connection, whose calls are read as those of Start and Snapshot. Nothing may be left open. The
 * first byte of each piece says how long it is and how many descriptors it has. Descriptors are
 * closed at once: a thread would take most of the time.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/varlink.h"
#include "daemon/base/vacate.h"
#include "daemon/base/worker.h"
#include "daemon/control/connection.h"
#include "daemon/control/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static sd_event *event;
static struct vacate *vacate;
static struct connection *connection;
static int null_fd;

static void expect(int condition)
{
    if (!condition)
        abort();
}

int worker_new(struct workers *workers, const char *name, struct worker **ret_worker)
{
    (void)workers, (void)name;
    *ret_worker = NULL;
    return 0;
}

struct worker *worker_free(struct worker *worker)
{
    return worker;
}

void worker_send(struct worker *worker, struct job *job)
{
    (void)worker;
    job->run(job);
    job->done(job);
}

static bool may_read(void *userdata)
{
    (void)userdata;
    return true;
}

static int handle_call(void *userdata, struct json_object *message, const struct varlink_call *call,
                       const struct passed *passed)
{
    static const struct config config;
    struct start_request start;
    struct snapshot_request snapshot;
    struct failure failure = {0};

    (void)userdata, (void)message;
    expect(passed->count <= CONNECTION_PASSED_MAX && (!passed->is_refused || passed->count == 0));
    for (unsigned int i = 0; i < passed->count; i++)
        expect(fcntl(passed->fds[i], F_GETFD) >= 0);
    if (request_read_start(call->parameters, passed, &config, &start, &failure) < 0)
        expect(failure.name && failure.text[0]);
    (void)request_read_snapshot(call->parameters, passed, &config, &snapshot, &failure);
    if (!call->oneway)
        connection_reply(connection, varlink_make_error(call->method, NULL), false);
    return 0;
}

static void note(void *userdata)
{
    (void)userdata;
}

static void handle_closed(void *userdata, const char *reason)
{
    (void)userdata, (void)reason;
    connection = connection_free(connection);
}

static const struct connection_server server = {
    .may_read = may_read,
    .call = handle_call,
    .drained = note,
    .closed = handle_closed,
};

static void send_piece(int fd, const uint8_t *data, size_t bytes, size_t nr_fds)
{
    union {
        char buffer[CMSG_SPACE(VACATE_RECEIVE_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {(void *)data, bytes};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (nr_fds > 0) {
        message.msg_control = control.buffer;
        message.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
        *CMSG_FIRSTHDR(&message) = (struct cmsghdr){.cmsg_len = CMSG_LEN(nr_fds * sizeof(int)),
                                                    .cmsg_level = SOL_SOCKET,
                                                    .cmsg_type = SCM_RIGHTS};
        for (size_t i = 0; i < nr_fds; i++)
            memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)) + i * sizeof(int), &null_fd, sizeof(int));
    }
    (void)!sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); /* it may be disconnected */
}

static void run(void)
{
    while (sd_event_run(event, 0) > 0)
        continue;
}

/* Between two runs libFuzzer may open some of its own, as for the symbolizer. */
static int lowest_free(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    close(fd);
    return fd;
}

/* With what an event loop opens for its first timer. */
static void set_up(void)
{
    sd_event_source *timer;

    if (event)
        return;
    null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    expect(null_fd >= 0 && sd_event_new(&event) >= 0 && vacate_new(NULL, note, NULL, &vacate) >= 0);
    expect(sd_event_add_time(event, &timer, CLOCK_MONOTONIC, 0, 0, NULL, NULL) >= 0);
    sd_event_source_unref(timer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct connection_options options = {.server = &server};
    struct vacate_batch *socket;
    struct vacate_person *person;
    bool had_many = false;
    int fds[2], lowest;

    set_up();
    lowest = lowest_free();
    socket = vacate_prepare(vacate);
    expect(socket && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    person = vacate_join(vacate, 1000, socket, fds[1]);
    options.event = event;
    options.person = person;
    expect(connection_new(&options, socket, &connection) >= 0);
    while (bytes > 0 && connection) {
        size_t nr_fds = data[0] & 7u, piece = data[0] >> 3;

        data++, bytes--;
        piece = piece == 31 || piece > bytes ? bytes : piece;
        if (nr_fds == 7 && !had_many) { /* once: each costs the kernel a microsecond */
            nr_fds = VACATE_RECEIVE_MAX;
            had_many = true;
        }
        if (piece > 0)
            send_piece(fds[0], data, piece, nr_fds);
        data += piece, bytes -= piece;
        run();
    }
    close(fds[0]);
    run();
    connection = connection_free(connection);
    vacate_leave(person);
    expect(lowest_free() == lowest); /* all others are closed */
    return 0;
}
