// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The records come through a pipe while the daemon's answer is awaited, and are read by the event
 * loop of that call: the daemon answers when all of them are in the pipe. The memory is used again
 * for the next second, so that its pages are there.
 */

#include "ctl/second.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "ctl/client.h"
#include "ctl/str.h"

#define PIPE_BYTES      (1 << 20) /* what a user may have, by default: fs.pipe-max-size in proc(5) */
#define ROOM_FIRST      ((size_t)1 << 20)
#define SPAN_LEAST_USEC (10 * USEC_PER_MSEC)
/* A span that was made shorter is doubled if this part of the memory would still be free. */
#define FREE_PART 4u

struct reading {
    struct second *second;
    int fd; /* -1: its end was reached */
    int error;
};

void second_done(struct second *second)
{
    free(second->data);
    second->doc = doc_free(second->doc);
    *second = (struct second){0};
}

static int make_room(struct second *second)
{
    size_t max = second->max_bytes ? second->max_bytes * 2 : ROOM_FIRST;
    uint8_t *data;

    if (second->bytes < second->max_bytes)
        return 0;
    if (max > SECOND_BYTES_MAX)
        return -EFBIG;
    data = realloc(second->data, max);
    if (!data)
        return -ENOMEM;
    second->data = data;
    second->max_bytes = max;
    return 0;
}

/* Reads what is there. Returns false at the end, and if no more can be taken. */
static bool read_some(void *context)
{
    struct reading *reading = context;
    struct second *second = reading->second;

    while (reading->error == 0) {
        ssize_t n;

        reading->error = make_room(second);
        if (reading->error < 0)
            break;
        n = read(reading->fd, second->data + second->bytes, second->max_bytes - second->bytes);
        if (n > 0)
            second->bytes += (size_t)n;
        else if (n == 0 || errno == EAGAIN)
            return n < 0;
        else if (errno != EINTR)
            reading->error = -errno;
    }
    return false;
}

/* Only the end that is read does not wait: the other one is the daemon's. */
static int open_pipe(int *ret_read_fd, int *ret_write_fd)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    *ret_read_fd = fds[0];
    *ret_write_fd = fds[1];
    (void)fcntl(fds[1], F_SETPIPE_SZ, PIPE_BYTES); /* with a small one it is only slower */
    return fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
}

static int fill_call(sd_bus_message *call, uint64_t span_usec, int fd)
{
    int r;

    r = sd_bus_message_append(call, "s", "");
    if (r < 0)
        return r;
    return sd_bus_message_append(call, "a{sv}", 2, OPTION_LAST, "t", span_usec, OPTION_OUTPUT, "h",
                                 fd);
}

static int make_call(struct client *client, uint64_t span_usec, int *fd, sd_bus_message **ret_call,
                     char **ret_error)
{
    int r;

    r = client_make_call(client, PROTOCOL_SNAPSHOT, ret_call, ret_error);
    if (r < 0)
        return r;
    r = fill_call(*ret_call, span_usec, *fd);
    fd_close(fd); /* the call has a duplicate */
    if (r == -EOPNOTSUPP)
        return str_refuse(-EREMOTEIO, ret_error,
                          "Records do not pass through this connection. For another host: "
                          "ssh -t HOST xentracectl top");
    if (r < 0)
        return str_refuse(-EREMOTEIO, ret_error, "Cannot create the call %s: %s.",
                          PROTOCOL_SNAPSHOT, strerror(-r));
    return 0;
}

static void choose_next_span(struct second *second, bool is_too_long)
{
    if (is_too_long)
        second->next_usec = max_u64(second->span_usec / 2, SPAN_LEAST_USEC);
    else if (second->bytes < SECOND_BYTES_MAX / 2 / FREE_PART * (FREE_PART - 1))
        second->next_usec = min_u64(second->span_usec * 2, USEC_PER_SEC);
}

static int take(struct second *second, struct client *client, uint64_t timeout_usec,
                char **ret_error)
{
    _cleanup_(sd_bus_message_unrefp) sd_bus_message *call = NULL;
    _cleanup_fd_ int write_fd = -1;
    struct reading reading = {.second = second, .fd = -1};
    int r;

    if (open_pipe(&reading.fd, &write_fd) < 0)
        return str_refuse(-errno, ret_error, "Cannot create a pipe: %m.");
    r = make_call(client, second->span_usec, &write_fd, &call, ret_error);
    if (r >= 0) {
        r = client_call_reading(client, call, timeout_usec, DOC_FORMAT_SNAPSHOT,
                                &(struct client_reader){&reading.fd, read_some, &reading},
                                &second->doc, ret_error);
        call = sd_bus_message_unref(call);
    }
    if (r >= 0 && reading.fd >= 0)
        (void)read_some(&reading); /* all of the rest is in the pipe */
    fd_close(&reading.fd);
    choose_next_span(second, reading.error == -EFBIG);
    if (reading.error == 0)
        return r;
    free(*ret_error);
    *ret_error = NULL;
    if (reading.error == -EFBIG)
        return str_refuse(-EFBIG, ret_error,
                          "The newest %" PRIu64 " ms have more than %" PRIu64 " MiB of records: "
                          "the next view is shorter.",
                          second->span_usec / USEC_PER_MSEC, SECOND_BYTES_MAX >> 20);
    return reading.error == -ENOMEM
               ? -ENOMEM
               : str_refuse(reading.error, ret_error, "Cannot read from a pipe: %s.",
                            strerror(-reading.error));
}

int second_take(struct second *second, struct client *client, uint64_t timeout_usec,
                char **ret_error)
{
    int r;

    second->doc = doc_free(second->doc);
    second->bytes = 0;
    second->span_usec = second->next_usec ? second->next_usec : USEC_PER_SEC;
    r = take(second, client, timeout_usec, ret_error);
    if (r < 0)
        second->doc = doc_free(second->doc);
    else
        doc_make_printable(second->doc);
    return r;
}
