// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two special watches. @releaseDomain is the one that matters; @introduceDomain gives the occasion
 * to learn a new domain's name while it has one, for xenstore forgets it when the domain goes.
 */

#include "collector/xenstore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <xenstore.h>

struct xenstore_watch {
    struct xs_handle *xs;
    int fd;
};

/* libxenstore leaves errno, sometimes 0. */
static int store_error(void)
{
    return errno > 0 ? -errno : -EIO;
}

void xenstore_name_domains(struct xen_domain *domains, unsigned int n)
{
    struct xs_handle *xs = xs_open(XS_OPEN_SOCKETONLY);

    for (unsigned int i = 0; i < n; i++) {
        char path[64];
        char *name = NULL;

        (void)snprintf(path, sizeof(path), "/local/domain/%u/name", domains[i].domid);
        if (xs)
            name = xs_read(xs, XBT_NULL, path, NULL);
        (void)snprintf(domains[i].name, sizeof(domains[i].name), "%s", name ? name : "");
        free(name);
    }
    if (xs)
        xs_close(xs);
}

int xenstore_watch_new(struct xenstore_watch **ret_watch)
{
    struct xenstore_watch *watch = calloc(1, sizeof(*watch));
    int r = 0;

    if (!watch)
        return -ENOMEM;
    errno = 0;
    watch->xs = xs_open(XS_OPEN_SOCKETONLY);
    if (watch->xs) {
        watch->fd = xs_fileno(watch->xs);
        /* The token is for telling watches apart; who came or went is asked of Xen anyway. */
        if (watch->fd < 0 || !xs_watch(watch->xs, "@releaseDomain", "release") ||
            !xs_watch(watch->xs, "@introduceDomain", "introduce"))
            r = store_error();
    } else {
        r = store_error();
    }
    if (r < 0) {
        xenstore_watch_free(watch);
        return r;
    }
    *ret_watch = watch;
    return 0;
}

struct xenstore_watch *xenstore_watch_free(struct xenstore_watch *watch)
{
    if (!watch)
        return NULL;
    if (watch->xs)
        xs_close(watch->xs);
    free(watch);
    return NULL;
}

int xenstore_watch_fd(const struct xenstore_watch *watch)
{
    return watch->fd;
}

int xenstore_watch_read(struct xenstore_watch *watch)
{
    char **event;
    int n = 0;

    for (;;) {
        errno = 0;
        event = xs_check_watch(watch->xs);
        if (!event)
            break;
        free(event);
        n++;
    }
    /* An event that was lost to memory will not come again: what happened must be looked at. */
    if (errno == EAGAIN || errno == ENOMEM)
        return errno == ENOMEM ? n + 1 : n;
    return store_error();
}
