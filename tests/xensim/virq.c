// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * VIRQ_TBUF through FIFOs.
 *
 * `xensim run` holds a write end of every FIFO, so a handle that is empty is empty and not at its
 * end.
 *
 * The driver masks a port when it delivers it and the consumer's unmask lets it fire again; what is
 * raised in between is remembered once.
 *
 * The driver has a ring of delivered events for each handle, and wakes nobody for an event that it
 * adds to others (evtchn_interrupt() in Linux' drivers/xen/evtchn.c). Only one of them is in the
 * FIFO, whose every write wakes its readers; the others are just counted.
 *
 * The hypervisor waits for nobody in dom0: a consumer may be stopped (SIGSTOP) anywhere in here,
 * for as long as it likes, and the CPUs go on making records. So an event channel is one atomic
 * word, as in Xen, and the lock is only for consumers among themselves, when they open, bind and
 * unbind.
 */

#include "virq.h"
#include "fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define KIND "evtchn"

/* The bits beside the port in a handle's channel. */
#define MASKED  1u
#define PENDING 2u

static uint64_t channel_of_port(uint32_t port)
{
    return (uint64_t)port << 32;
}

/* Acquire: pairs with the release of whoever bound it. 0: nothing bound. */
static uint64_t get_channel(const struct sim_shared *s, unsigned int handle)
{
    return __atomic_load_n(&s->handles[handle].channel, __ATOMIC_ACQUIRE);
}

static uint32_t port_of(uint64_t channel)
{
    return (uint32_t)(channel >> 32);
}

static void set_channel(struct sim_shared *s, unsigned int handle, uint64_t channel)
{
    __atomic_store_n(&s->handles[handle].channel, channel, __ATOMIC_RELEASE);
}

/* False, and *CHANNEL is what there is now: it was changed meanwhile. */
static bool change_channel(struct sim_shared *s, unsigned int handle, uint64_t *channel,
                           uint64_t to)
{
    return __atomic_compare_exchange_n(&s->handles[handle].channel, channel, to, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

/* 1 + the handle that VIRQ_TBUF is bound to; its channel is there before it is. */
static uint32_t get_bound(const struct sim_shared *s)
{
    return __atomic_load_n(&s->virq_handle, __ATOMIC_ACQUIRE);
}

static void set_bound(struct sim_shared *s, uint32_t bound)
{
    __atomic_store_n(&s->virq_handle, bound, __ATOMIC_RELEASE);
}

static bool is_held(const struct sim *sim, unsigned int handle)
{
    return fifo_is_held(sim->directory, KIND, handle);
}

static void forget_handle(struct sim_shared *s, unsigned int handle)
{
    s->handles[handle].used = 0;
    set_channel(s, handle, 0);
    __atomic_store_n(&s->handles[handle].unread, 0, __ATOMIC_RELAXED);
    if (get_bound(s) == handle + 1)
        set_bound(s, 0);
}

static int open_handle_locked(struct sim *sim, int flags)
{
    struct sim_shared *s = sim->shared;

    for (unsigned int i = 0; i < SIM_MAX_HANDLES; i++) {
        int fd;

        if (s->handles[i].used && is_held(sim, i))
            continue;
        forget_handle(s, i);
        fd = fifo_open(sim->directory, KIND, i, O_RDONLY | flags);
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

bool virq_is_bound(const struct sim *sim)
{
    uint32_t bound = get_bound(sim->shared);

    return bound && is_held(sim, bound - 1);
}

static int bind_locked(struct sim *sim, unsigned int handle)
{
    struct sim_shared *s = sim->shared;

    if (sim_has_fault(sim, SIM_FAULT_VIRQ_TAKEN))
        return -EEXIST;
    if (sim_has_fault(sim, SIM_FAULT_VIRQ_BUSY))
        return -EBUSY;
    if (virq_is_bound(sim))
        return -EEXIST;
    if (get_bound(s))
        forget_handle(s, get_bound(s) - 1);
    set_channel(s, handle, channel_of_port(++s->last_port));
    set_bound(s, handle + 1);
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

int virq_unbind(struct sim *sim, int handle, uint32_t port)
{
    struct sim_shared *s = sim->shared;
    int r = -EINVAL;

    sim_lock(&s->virq_lock);
    if (port && port_of(get_channel(s, (unsigned int)handle)) == port) {
        forget_handle(s, (unsigned int)handle);
        s->handles[handle].used = 1;
        r = 0;
    }
    sim_unlock(&s->virq_lock);
    return r;
}

static bool wake(const struct sim *sim, unsigned int handle, uint32_t port)
{
    _cleanup_fd_ int own = -1;
    int fd = sim->writers[handle];

    if (fd < 0)
        fd = own = fifo_open(sim->directory, KIND, handle, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return fd >= 0 && write(fd, &port, sizeof(port)) == sizeof(port);
}

/* Tells the holder of PORT, which is masked now. A holder that is gone misses nothing. */
static void deliver(struct sim *sim, unsigned int handle, uint32_t port)
{
    uint32_t *unread = &sim->shared->handles[handle].unread;

    if (__atomic_fetch_add(unread, 1, __ATOMIC_ACQ_REL) > 0 || wake(sim, handle, port))
        __atomic_add_fetch(&sim->shared->virqs_delivered, 1, __ATOMIC_RELAXED);
}

/* Takes one off the count and returns what it was. */
static uint32_t take_unread(uint32_t *unread)
{
    uint32_t n = __atomic_load_n(unread, __ATOMIC_ACQUIRE);

    while (n > 0 && !__atomic_compare_exchange_n(unread, &n, n - 1, false, __ATOMIC_ACQ_REL,
                                                 __ATOMIC_ACQUIRE))
        ;
    return n;
}

/*
 * The last of several events is the one in the FIFO, which is readable as long as any is unread. It
 * is counted off before it is read: an event that comes in between is written anew and wakes.
 */
int virq_read(struct sim *sim, int handle, int fd)
{
    uint32_t *unread = &sim->shared->handles[handle].unread, port, n = take_unread(unread);
    ssize_t size;

    if (n > 1)
        return (int)port_of(get_channel(sim->shared, (unsigned int)handle));
    size = read(fd, &port, sizeof(port));
    if (size < 0)
        return -errno;
    if (size != sizeof(port))
        return -EIO; /* `xensim run` is gone */
    if (n == 0)
        (void)take_unread(unread); /* it came while we waited */
    return (int)port;
}

int virq_unmask(struct sim *sim, int handle, uint32_t port)
{
    struct sim_shared *s = sim->shared;
    uint64_t channel = get_channel(s, (unsigned int)handle), to;

    do {
        if (!port || port_of(channel) != port)
            return -EINVAL;
        to = channel_of_port(port) | (channel & PENDING ? MASKED : 0);
    } while (!change_channel(s, (unsigned int)handle, &channel, to));
    if (channel & PENDING)
        deliver(sim, (unsigned int)handle, port);
    return 0;
}

int virq_notify(const struct sim *sim, int handle, uint32_t port)
{
    return port && port_of(get_channel(sim->shared, (unsigned int)handle)) == port ? 0 : -ENOTCONN;
}

static void fire(struct sim *sim, unsigned int handle)
{
    uint64_t channel = get_channel(sim->shared, handle);

    do {
        if (!channel)
            return; /* unbound just now */
    } while (!change_channel(sim->shared, handle, &channel,
                             channel | (channel & MASKED ? PENDING : MASKED)));
    if (!(channel & MASKED))
        deliver(sim, handle, port_of(channel));
}

void virq_raise(struct sim *sim)
{
    struct sim_shared *s = sim->shared;
    uint32_t bound = get_bound(s);

    __atomic_add_fetch(&s->virqs_raised, 1, __ATOMIC_RELAXED);
    if (!bound)
        __atomic_add_fetch(&s->virqs_unbound, 1, __ATOMIC_RELAXED);
    else if (!sim_has_fault(sim, SIM_FAULT_VIRQ_DROP)) /* else it is lost on its way */
        fire(sim, bound - 1);
}
