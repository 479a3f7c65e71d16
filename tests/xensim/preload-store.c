// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * libxenstore, as much as domains need: reading /local/domain/N/name, and watches, of which
 * @introduceDomain and @releaseDomain fire. A connection for them is made when it is first asked
 * for.
 *
 * The real library has a thread that reads the socket, so its descriptor is readable once for
 * several events that wait; here it is readable as long as one does. A caller that reads until
 * EAGAIN sees no difference.
 *
 * Where the real library may wait for xenstored or for that thread, this one waits while xenstored
 * hangs. xs_fileno() and xs_check_watch() never do: they concern the process alone.
 */

#include "preload.h"
#include "domains.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>

#include <xenstore.h>

struct xs_handle {
    struct sim *sim;
    uint32_t connection;
    int fd; /* -1: nothing is watched */
};

static void wait_for_xenstored(const struct sim *sim)
{
    const struct timespec pause = {.tv_nsec = 2000000};

    while (sim_has_fault(sim, SIM_FAULT_XENSTORE_HANGS))
        (void)nanosleep(&pause, NULL);
}

EXPORT struct xs_handle *xs_open(unsigned long flags)
{
    struct sim *sim = preload_open();
    struct xs_handle *xsh;

    (void)flags;
    if (!sim)
        return NULL;
    wait_for_xenstored(sim);
    if (sim_has_fault(sim, SIM_FAULT_NO_XENSTORE)) {
        errno = ENOENT; /* no socket */
        return NULL;
    }
    xsh = malloc(sizeof(*xsh));
    if (xsh)
        *xsh = (struct xs_handle){.sim = sim, .fd = -1};
    return xsh;
}

EXPORT void xs_close(struct xs_handle *xsh)
{
    if (!xsh)
        return;
    wait_for_xenstored(xsh->sim);
    fd_close(&xsh->fd); /* its watches go with it */
    free(xsh);
}

EXPORT void *xs_read(struct xs_handle *h, xs_transaction_t t, const char *path, unsigned int *len)
{
    struct sim_domain domains[SIM_MAX_DOMAINS];
    uint32_t n;

    (void)t;
    wait_for_xenstored(h->sim);
    n = domains_list(h->sim, domains);
    for (uint32_t i = 0; i < n; i++) {
        char name_path[64];

        (void)snprintf(name_path, sizeof(name_path), "/local/domain/%u/name", domains[i].domid);
        if (strcmp(path, name_path) != 0)
            continue;
        if (len)
            *len = (unsigned int)strlen(domains[i].name);
        return strdup(domains[i].name);
    }
    errno = ENOENT;
    return NULL;
}

EXPORT int xs_fileno(struct xs_handle *h)
{
    if (h->fd < 0) {
        int fd = domains_connect(h->sim, &h->connection);

        if (fd < 0)
            return preload_result(fd);
        h->fd = fd;
    }
    return h->fd;
}

EXPORT bool xs_watch(struct xs_handle *h, const char *path, const char *token)
{
    wait_for_xenstored(h->sim);
    if (xs_fileno(h) < 0)
        return false;
    return preload_result(domains_watch(h->sim, h->connection, path, token)) == 0;
}

EXPORT bool xs_unwatch(struct xs_handle *h, const char *path, const char *token)
{
    wait_for_xenstored(h->sim);
    if (h->fd < 0) {
        errno = ENOENT;
        return false;
    }
    return preload_result(domains_unwatch(h->sim, h->connection, path, token)) == 0;
}

/* Path and token behind the two pointers to them, in one piece. */
static char **new_result(const struct domains_event *event)
{
    size_t path_bytes = strlen(event->path) + 1, token_bytes = strlen(event->token) + 1;
    char **result = malloc(2 * sizeof(*result) + path_bytes + token_bytes);

    if (!result)
        return NULL;
    result[XS_WATCH_PATH] = (char *)(result + 2);
    result[XS_WATCH_TOKEN] = result[XS_WATCH_PATH] + path_bytes;
    memcpy(result[XS_WATCH_PATH], event->path, path_bytes);
    memcpy(result[XS_WATCH_TOKEN], event->token, token_bytes);
    return result;
}

EXPORT char **xs_check_watch(struct xs_handle *h)
{
    struct domains_event event;
    int fd = xs_fileno(h);
    ssize_t n;

    if (fd < 0)
        return NULL;
    n = read(fd, &event, sizeof(event));
    if (n == sizeof(event))
        return new_result(&event);
    if (n >= 0)
        errno = EBADF; /* xensim run is gone, as xenstored would be */
    return NULL;
}

EXPORT char **xs_read_watch(struct xs_handle *h, unsigned int *num)
{
    char **result;

    while (!(result = xs_check_watch(h)) && errno == EAGAIN) {
        struct pollfd p = {.fd = h->fd, .events = POLLIN};

        if (poll(&p, 1, -1) < 0)
            return NULL;
    }
    if (result)
        *num = 2;
    return result;
}
