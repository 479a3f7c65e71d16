// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The output is written in whole buffers, into the page cache: a frame ends at any byte, and what
 * the kernel has outlives this process. A pipe may not be written to for ever, so it is waited for
 * together with the handoff, and gets no more than it takes at once: PIPE_BUF bytes.
 *
 * A frame whose rounds do not come waits for half a second; its chunks do, too.
 */

#include "daemon/output/packer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "collector/handoff.h"
#include "common/thread.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/output/pack.h"

#define STACK_BYTES     (256u * 1024u) /* libzstd's sequence building is the deepest */
#define BUFFER_BYTES    (512u << 10)
#define FRAME_MIN_BYTES (UINT64_C(1) << 20)
#define FRAME_AGE_USEC  (500 * USEC_PER_MSEC)

struct packer {
    struct packer_config config;
    struct handoff *handoff;
    pthread_t thread;
    struct pack *pack;
    uint8_t *buffer;
    size_t write_max;    /* at once */
    uint64_t written;    /* to the output */
    uint64_t raw_bytes;  /* in frames that are stored as they are */
    uint64_t frame_usec; /* CLOCK_MONOTONIC, when the frame began */
    bool frame_is_raw;
    int error;
    bool is_left; /* nobody waits for the thread: it frees all. Valid when it quits */
    bool quits;   /* atomic: the sink is gone */
};

static uint64_t monotonic_usec(void)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return (uint64_t)ts.tv_sec * USEC_PER_SEC + (uint64_t)ts.tv_nsec / NSEC_PER_USEC;
}

static bool packer_quits(const struct packer *packer)
{
    return __atomic_load_n(&packer->quits, __ATOMIC_ACQUIRE);
}

/* --- Writing. --- */

static bool packer_gives_up(const struct packer *packer)
{
    return packer_quits(packer) || handoff_is_canceled(packer->handoff);
}

/* Until the pipe takes something. Returns 0 or -ECANCELED. */
static int packer_await_pipe(const struct packer *packer)
{
    struct pollfd fds[2] = {
        {.fd = packer->config.fd, .events = POLLOUT},
        {.fd = handoff_fd(packer->handoff), .events = POLLIN},
    };

    while (!packer_gives_up(packer)) {
        (void)poll(fds, 2, -1); /* EINTR: once more */
        if (fds[0].revents)
            return 0; /* an error, too: write(2) says which */
        if (fds[1].revents)
            handoff_quieten(packer->handoff); /* the queue is looked at before the next wait */
    }
    return -ECANCELED;
}

static ssize_t packer_write_some(const struct packer *packer, const uint8_t *p, size_t bytes)
{
    if (!packer->config.is_stream)
        return pwrite(packer->config.fd, p, bytes, (off_t)packer->written);
    return write(packer->config.fd, p, min_u64(bytes, packer->write_max));
}

static int packer_write(struct packer *packer, const uint8_t *p, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n;

        if (packer->config.is_stream) {
            int r = packer_await_pipe(packer);

            if (r < 0)
                return r;
        }
        n = packer_write_some(packer, p, bytes);
        if (n == 0)
            return -ENOSPC; /* write(2) of more than nothing gives 0 only where nothing fits */
        if (n < 0 && errno != EINTR && errno != EAGAIN)
            return -errno;
        if (n < 0)
            continue;
        packer->written += (uint64_t)n;
        p += n;
        bytes -= (size_t)n;
    }
    return 0;
}

/* Writes what is in the buffer, and empties it. */
static void packer_flush(struct packer *packer)
{
    int r = packer_write(packer, packer->buffer, pack_output_bytes(packer->pack));

    pack_set_output(packer->pack, packer->buffer, BUFFER_BYTES);
    if (packer->error)
        return;
    packer->error = r < 0 ? r : pack_error(packer->pack);
}

/* --- Frames. --- */

static void packer_return(struct packer *packer)
{
    const struct handoff_done done = {
        .error = packer->error,
        .stored_bytes = packer->written,
        .least_bytes = packer->written + pack_table_bytes(packer->pack),
        .raw_bytes = packer->raw_bytes,
    };

    if (!packer_quits(packer))
        handoff_return(packer->handoff, &done);
}

static void packer_close_frame(struct packer *packer)
{
    if (packer->frame_is_raw)
        packer->raw_bytes += pack_frame_bytes(packer->pack);
    while (!packer->error && !pack_end_frame(packer->pack))
        packer_flush(packer);
}

/* Has all of it written, and gives back its chunks. */
static void packer_end_frame(struct packer *packer)
{
    packer_close_frame(packer);
    if (!packer->error)
        packer_flush(packer);
    packer_return(packer);
}

static bool packer_has_frame(const struct packer *packer)
{
    return pack_frame_bytes(packer->pack) > 0;
}

static void packer_begin_frame(struct packer *packer)
{
    packer->frame_usec = monotonic_usec();
    packer->frame_is_raw = handoff_is_behind(packer->handoff);
    pack_set_fast(packer->pack, packer->frame_is_raw);
}

static void packer_add(struct packer *packer, const struct handoff_item *item)
{
    uint32_t added = 0;

    if (!packer_has_frame(packer))
        packer_begin_frame(packer);
    while (added < item->bytes && !packer->error && !packer_gives_up(packer)) {
        added += (uint32_t)pack_add(packer->pack, item->data + added, item->bytes - added);
        if (added < item->bytes)
            packer_flush(packer);
    }
    if ((item->ends_round && pack_frame_bytes(packer->pack) >= FRAME_MIN_BYTES) ||
        handoff_is_full(packer->handoff))
        packer_end_frame(packer);
}

static void packer_end(struct packer *packer)
{
    packer_close_frame(packer);
    while (!packer->error && !pack_end(packer->pack))
        packer_flush(packer);
    packer_end_frame(packer);
}

/* --- The thread. --- */

/* All comes back as it is; what is in the output of it is not counted. */
static void packer_return_rest(struct packer *packer)
{
    struct handoff_item item;

    if (!packer->error)
        packer->error = -ECANCELED;
    while (handoff_take(packer->handoff, &item))
        continue;
    packer_return(packer);
}

/* How long the frame may still wait for more; -1: there is none. */
static int packer_patience_msec(const struct packer *packer)
{
    uint64_t age_usec;

    if (!packer_has_frame(packer))
        return -1;
    age_usec = monotonic_usec() - packer->frame_usec;
    if (age_usec >= FRAME_AGE_USEC || handoff_is_held_up(packer->handoff))
        return 0;
    return (int)((FRAME_AGE_USEC - age_usec) / USEC_PER_MSEC + 1);
}

static void packer_wait(struct packer *packer)
{
    struct pollfd fd = {.fd = handoff_fd(packer->handoff), .events = POLLIN};
    int patience_msec = packer_patience_msec(packer);

    if (patience_msec == 0) {
        packer_end_frame(packer);
        return;
    }
    (void)poll(&fd, 1, patience_msec);
    handoff_quieten(packer->handoff);
}

static void packer_run_once(struct packer *packer)
{
    struct handoff_item item;

    if (packer->error || handoff_is_canceled(packer->handoff)) {
        packer_return_rest(packer);
        pack_set_output(packer->pack, packer->buffer, BUFFER_BYTES);
        (void)poll(&(struct pollfd){.fd = handoff_fd(packer->handoff), .events = POLLIN}, 1, -1);
        handoff_quieten(packer->handoff);
    } else if (!handoff_take(packer->handoff, &item)) {
        packer_wait(packer);
    } else if (item.bytes > 0) {
        packer_add(packer, &item);
    } else {
        packer_end(packer);
    }
}

static void packer_destroy(struct packer *packer)
{
    pack_free(packer->pack);
    free(packer->buffer);
    if (packer->handoff)
        handoff_destroy(packer->handoff);
    free(packer);
}

static void packer_destroyp(struct packer **packer)
{
    if (*packer)
        packer_destroy(*packer);
}

static void *packer_thread(void *argument)
{
    struct packer *packer = argument;

    while (!packer_quits(packer))
        packer_run_once(packer);
    if (packer->is_left)
        packer_destroy(packer);
    return NULL;
}

/* --- Main thread. --- */

/* One that is stuck with the disk frees itself when that answers; nobody waits for it. */
static void packer_leave(struct packer *packer)
{
    _cleanup_fd_ int fd = fcntl(handoff_fd(packer->handoff), F_DUPFD_CLOEXEC, 3);
    pthread_t thread = packer->thread;

    packer->is_left = true;
    __atomic_store_n(&packer->quits, true, __ATOMIC_RELEASE); /* it may be gone after that */
    (void)eventfd_write(fd, 1);
    (void)pthread_detach(thread);
}

static void packer_release(void *userdata)
{
    struct packer *packer = userdata;

    if (!handoff_is_idle(packer->handoff)) {
        packer_leave(packer);
        return;
    }
    __atomic_store_n(&packer->quits, true, __ATOMIC_RELEASE);
    (void)eventfd_write(handoff_fd(packer->handoff), 1);
    (void)pthread_join(packer->thread, NULL);
    packer_destroy(packer);
}

static void packer_wake(void *userdata)
{
    const struct packer *packer = userdata;

    packer->config.wake(packer->config.userdata);
}

static int packer_set_up(struct packer *packer)
{
    const struct handoff_config config = {
        .wake = packer_wake, .release = packer_release, .userdata = packer};
    struct stat st;
    int r;

    packer->buffer = malloc(BUFFER_BYTES);
    if (!packer->buffer)
        return -ENOMEM;
    packer->write_max = SIZE_MAX;
    if (packer->config.is_stream && fstat(packer->config.fd, &st) >= 0 && S_ISFIFO(st.st_mode))
        packer->write_max = PIPE_BUF;
    r = pack_new(&packer->pack);
    if (r < 0)
        return r;
    pack_set_output(packer->pack, packer->buffer, BUFFER_BYTES);
    return handoff_new(&config, &packer->handoff);
}

int packer_new(const struct packer_config *config, struct handoff **ret_handoff)
{
    _cleanup_(packer_destroyp) struct packer *packer = calloc(1, sizeof(*packer));
    int r;

    if (!packer)
        return -ENOMEM;
    packer->config = *config;
    r = packer_set_up(packer);
    if (r < 0)
        return r;
    r = thread_start(&packer->thread, "packer", STACK_BYTES, packer_thread, packer);
    if (r < 0)
        return r;
    *ret_handoff = TAKE_PTR(packer)->handoff;
    return 0;
}
