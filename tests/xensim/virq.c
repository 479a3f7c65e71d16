/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VIRQ_TBUF through FIFOs.
 *
 * `xensim run` holds a write end of every FIFO, so a handle that is empty is empty and not at its
 * end. Whether anybody still holds a handle is asked of the kernel: opening a FIFO for writing
 * without waiting fails with ENXIO when it has no reader.
 *
 * The driver masks a port when it delivers it and the consumer's unmask lets it fire again; what is
 * raised in between is remembered once.
 */

#include "virq.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

static int open_fifo(const struct sim *sim, unsigned int handle, int flags)
{
    char path[320];
    int fd;

    (void)snprintf(path, sizeof(path), "%s/evtchn.%u", sim->directory, handle);
    fd = open(path, flags);
    return fd < 0 ? -errno : fd;
}

static bool is_held(const struct sim *sim, unsigned int handle)
{
    _cleanup_fd_ int fd = open_fifo(sim, handle, O_WRONLY | O_NONBLOCK | O_CLOEXEC);

    return fd >= 0;
}

/* What an earlier holder left unread. */
static void drain(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    uint32_t port;

    while (poll(&p, 1, 0) > 0 && read(fd, &port, sizeof(port)) > 0)
        ;
}

static void forget_handle(struct sim_shared *s, unsigned int handle)
{
    s->handles[handle].used = 0;
    s->handles[handle].port = 0;
    s->handles[handle].masked = 0;
    s->handles[handle].pending = 0;
    if (s->virq_handle == handle + 1)
        s->virq_handle = 0;
}

static int open_handle_locked(struct sim *sim, int flags)
{
    struct sim_shared *s = sim->shared;

    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++) {
        int fd;

        if (s->handles[i].used && is_held(sim, i))
            continue;
        forget_handle(s, i);
        fd = open_fifo(sim, i, O_RDONLY | flags);
        if (fd < 0)
            return fd;
        drain(fd);
        s->handles[i].used = 1;
        return fd;
    }
    return -EMFILE;
}

int virq_open_handle(struct sim *sim, int flags)
{
    int r;

    sim_lock(&sim->shared->virq_lock);
    r = open_handle_locked(sim, flags);
    sim_unlock(&sim->shared->virq_lock);
    return r;
}

int virq_handle_of_fd(const struct sim *sim, int fd)
{
    struct stat st;

    if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode))
        return -EBADF;
    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++)
        if (sim->shared->handles[i].inode == st.st_ino)
            return (int)i;
    return -EBADF;
}

static int bind_locked(struct sim *sim, unsigned int handle)
{
    struct sim_shared *s = sim->shared;

    if (sim_has_fault(sim, SIM_FAULT_VIRQ_TAKEN))
        return -EEXIST;
    if (sim_has_fault(sim, SIM_FAULT_VIRQ_BUSY))
        return -EBUSY;
    if (s->virq_handle && is_held(sim, s->virq_handle - 1))
        return -EEXIST;
    if (s->virq_handle)
        forget_handle(s, s->virq_handle - 1);
    s->handles[handle].port = ++s->last_port;
    s->handles[handle].masked = 0;
    s->handles[handle].pending = 0;
    s->virq_handle = handle + 1;
    return (int)s->last_port;
}

int virq_bind(struct sim *sim, int handle)
{
    int r;

    sim_lock(&sim->shared->virq_lock);
    r = bind_locked(sim, (unsigned int)handle);
    sim_unlock(&sim->shared->virq_lock);
    return r;
}

bool virq_is_bound(struct sim *sim)
{
    bool bound;

    sim_lock(&sim->shared->virq_lock);
    bound = sim->shared->virq_handle && is_held(sim, sim->shared->virq_handle - 1);
    sim_unlock(&sim->shared->virq_lock);
    return bound;
}

int virq_unbind(struct sim *sim, int handle, uint32_t port)
{
    struct sim_shared *s = sim->shared;
    int r = -EINVAL;

    sim_lock(&s->virq_lock);
    if (port && s->handles[handle].port == port) {
        forget_handle(s, (unsigned int)handle);
        s->handles[handle].used = 1;
        r = 0;
    }
    sim_unlock(&s->virq_lock);
    return r;
}

/* Masks the port and tells the holder; the lock is held. */
static void deliver(struct sim *sim, unsigned int handle)
{
    struct sim_handle *h = &sim->shared->handles[handle];
    _cleanup_fd_ int own = -1;
    int fd = sim->writers[handle];

    if (fd < 0)
        fd = own = open_fifo(sim, handle, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    h->masked = 1;
    /* A holder that is gone misses nothing. */
    if (fd >= 0 && write(fd, &h->port, sizeof(h->port)) == sizeof(h->port))
        sim->shared->virqs_delivered++;
}

int virq_unmask(struct sim *sim, int handle, uint32_t port)
{
    struct sim_shared *s = sim->shared;
    struct sim_handle *h = &s->handles[handle];
    int r = -EINVAL;

    sim_lock(&s->virq_lock);
    if (port && h->port == port) {
        h->masked = 0;
        if (h->pending) {
            h->pending = 0;
            deliver(sim, (unsigned int)handle);
        }
        r = 0;
    }
    sim_unlock(&s->virq_lock);
    return r;
}

int virq_notify(struct sim *sim, int handle, uint32_t port)
{
    struct sim_shared *s = sim->shared;
    bool is_own;

    sim_lock(&s->virq_lock);
    is_own = port && s->handles[handle].port == port;
    sim_unlock(&s->virq_lock);
    return is_own ? 0 : -ENOTCONN;
}

void virq_raise(struct sim *sim)
{
    struct sim_shared *s = sim->shared;

    sim_lock(&s->virq_lock);
    s->virqs_raised++;
    if (!s->virq_handle)
        s->virqs_unbound++;
    else if (sim_has_fault(sim, SIM_FAULT_VIRQ_DROP))
        ; /* lost on its way */
    else if (s->handles[s->virq_handle - 1].masked)
        s->handles[s->virq_handle - 1].pending = 1;
    else
        deliver(sim, s->virq_handle - 1);
    sim_unlock(&s->virq_lock);
}
