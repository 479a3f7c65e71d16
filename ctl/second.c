// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A stream of snapshots into one pipe: the daemon answers when all bytes of a snapshot are in the
 * pipe, and reports their number. The memory is used again for the next second, so that its pages
 * are there.
 */

#include "ctl/second.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/util.h"
#include "ctl/str.h"

#define PIPE_BYTES      (1 << 20) /* what a user may have, by default: fs.pipe-max-size in proc(5) */
#define ROOM_FIRST      ((size_t)1 << 20)
#define SPAN_LEAST_USEC (10 * USEC_PER_MSEC)
/* A span that was made shorter is doubled if this part of the memory would still be free. */
#define FREE_PART 4u

static uint64_t monotonic_usec(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock */
    return (uint64_t)now.tv_sec * USEC_PER_SEC + (uint64_t)now.tv_nsec / NSEC_PER_USEC;
}

static int make_room(struct second *second)
{
    size_t max = second->max_bytes ? second->max_bytes * 2 : ROOM_FIRST;
    uint8_t *data;

    if (second->read_bytes < second->max_bytes)
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

/* Reads what is there, up to BYTES in all. Returns false at the end, and after an error. */
static bool read_up_to(struct second *second, size_t bytes)
{
    while (second->error == 0 && second->read_bytes < bytes) {
        ssize_t n;

        second->error = make_room(second);
        if (second->error < 0)
            break;
        n = read(second->fd, second->data + second->read_bytes,
                 second->max_bytes - second->read_bytes);
        if (n > 0)
            second->read_bytes += (size_t)n;
        else if (n == 0 || errno == EAGAIN)
            return n < 0;
        else if (errno != EINTR)
            second->error = -errno;
    }
    return second->error == 0;
}

static bool read_some(void *context)
{
    return read_up_to(context, SIZE_MAX);
}

void second_init(struct second *second, struct client *client, uint64_t interval_usec)
{
    *second = (struct second){
        .client = client,
        .interval_usec = max_u64(interval_usec, SECOND_LEAST_USEC),
        .span_usec = USEC_PER_SEC,
        .fd = -1,
    };
}

void second_pause(struct second *second)
{
    if (second->stream)
        second->begin_usec = monotonic_usec() + SECOND_LEAST_USEC;
    second->stream = client_stream_free(second->stream);
    fd_close(&second->fd);
    second->bytes = second->read_bytes = 0;
    second->error = 0;
}

void second_done(struct second *second)
{
    second_pause(second);
    free(second->data);
    second->data = NULL;
    second->doc = doc_free(second->doc);
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

static int second_begin(struct second *second, char **ret_error)
{
    _cleanup_doc_ struct json_object *parameters = json_object_new_object();
    _cleanup_fd_ int write_fd = -1;

    second->reader = (struct client_reader){&second->fd, read_some, second};
    if (open_pipe(&second->fd, &write_fd) < 0)
        return str_refuse(-errno, ret_error, "Cannot create a pipe: %m.");
    doc_add_number(parameters, FIELD_LAST, second->span_usec);
    doc_add_number(parameters, FIELD_INTERVAL, second->interval_usec);
    doc_add_number(parameters, FIELD_OUTPUT_FD, 0);
    return client_stream(second->client,
                         &(struct client_call){.method = PROTOCOL_SNAPSHOT,
                                               .parameters = parameters,
                                               .fds = &write_fd,
                                               .nr_fds = 1,
                                               .answer = REPLY_SNAPSHOT,
                                               .format = DOC_FORMAT_SNAPSHOT,
                                               .reader = &second->reader},
                         &second->stream, ret_error);
}

/* A call that failed may count, too. */
static int second_fail(struct second *second, int r)
{
    second_pause(second);
    second->begin_usec = monotonic_usec() + SECOND_LEAST_USEC;
    return r;
}

static int fail_to_read(struct second *second, char **ret_error)
{
    int r = second_fail(second, second->error);

    free(*ret_error);
    *ret_error = NULL;
    if (r == -ENOMEM)
        return r;
    if (r != -EFBIG)
        return str_refuse(r, ret_error, "Cannot read from a pipe: %s.", strerror(-r));
    (void)str_refuse(r, ret_error,
                     "The newest %" PRIu64 " ms have more than %" PRIu64 " MiB of records: the "
                     "next view is shorter.",
                     second->span_usec / USEC_PER_MSEC, SECOND_BYTES_MAX >> 20);
    second->span_usec = max_u64(second->span_usec / 2, SPAN_LEAST_USEC);
    return r;
}

/* Gives up what was returned before; bytes of the next one may be there already. */
static void second_drop(struct second *second)
{
    second->doc = doc_free(second->doc);
    if (second->bytes == 0)
        return;
    second->read_bytes -= second->bytes;
    if (second->read_bytes > 0)
        memmove(second->data, second->data + second->bytes, second->read_bytes);
    second->bytes = 0;
}

/* A stream has one span, so a longer one is another stream. */
static void lengthen_span(struct second *second)
{
    if (!second->doc || second->span_usec >= USEC_PER_SEC ||
        second->bytes >= SECOND_BYTES_MAX / 2 / FREE_PART * (FREE_PART - 1))
        return;
    second->span_usec = min_u64(second->span_usec * 2, USEC_PER_SEC);
    second_pause(second);
}

int second_next(struct second *second, uint64_t timeout_usec, char **ret_error)
{
    uint64_t now;
    int r;

    lengthen_span(second);
    now = monotonic_usec();
    if (!second->stream && now < second->begin_usec) {
        if (timeout_usec == 0)
            return 0;
        r = client_sleep(second->client, second->begin_usec - now);
        if (r < 0)
            return r;
    }
    second_drop(second);
    r = second->stream ? 0 : second_begin(second, ret_error);
    if (r < 0)
        return second_fail(second, r);
    r = client_next(second->stream, timeout_usec, &second->doc, ret_error);
    if (r > 0) {
        second->bytes = (size_t)min_u64(doc_number(second->doc, "output.bytes"), SIZE_MAX);
        if (second->fd >= 0)
            (void)read_up_to(second, second->bytes); /* all of it is in the pipe */
        second->bytes = (size_t)min_u64(second->bytes, second->read_bytes);
    }
    if (second->error < 0) {
        second->doc = doc_free(second->doc);
        return fail_to_read(second, ret_error);
    }
    if (r < 0 && r != -EINTR)
        return second_fail(second, r);
    if (r <= 0)
        return r;
    doc_make_printable(second->doc);
    return r;
}

size_t second_fds(const struct second *second, struct pollfd fds[static CLIENT_STREAM_FDS_MAX],
                  uint64_t *ret_begin_usec)
{
    *ret_begin_usec = second->begin_usec;
    return second->stream ? client_stream_fds(second->stream, fds) : 0;
}
