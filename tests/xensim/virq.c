/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * VIRQ_TBUF through FIFOs.
 *
 * `xensim run` holds a write end of every FIFO, so a handle that is empty is empty and not at its
 * end.
 *
 * The driver masks a port when it delivers it and the consumer's unmask lets it fire again; what is
 * raised in between is remembered once.
 */

#include "virq.h"
#include "fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define KIND "evtchn"

static bool is_held(const struct sim *sim, unsigned int handle)
{
    return fifo_is_held(sim, KIND, handle);
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
        fd = fifo_open(sim, KIND, i, O_RDONLY | flags);
        if (fd < 0)
            return fd;
        fifo_drain(fd);
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
        fd = own = fifo_open(sim, KIND, handle, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
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
