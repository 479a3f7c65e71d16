// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Two special watches: @releaseDomain reports crashes, and @introduceDomain is the time to read the
 * name of a new domain, because xenstore removes it with the domain.
 */

#include "daemon/host/xenstore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <xenstore.h>

#include "common/utf8.h"
#include "common/util.h"

struct xenstore_watch {
    struct xs_handle *xs;
    int fd;
};

/* libxenstore leaves errno, sometimes 0. */
static int store_error(void)
{
    return errno > 0 ? -errno : -EIO;
}

static int open_store(struct xs_handle **ret_xs)
{
    struct xs_handle *xs;

    errno = 0;
    xs = xs_open(0);
    if (!xs)
        return store_error();
    *ret_xs = xs;
    return 0;
}

/* -ENOENT and -EACCES are xenstored's own answers. */
static int read_name(struct xs_handle *xs, struct xen_domain *domain)
{
    _cleanup_free_ char *name = NULL;
    char path[64];

    (void)snprintf(path, sizeof(path), "/local/domain/%u/name", domain->domid);
    errno = 0;
    name = xs_read(xs, XBT_NULL, path, NULL);
    if (!name)
        return store_error();
    (void)utf8_copy_short(domain->name, sizeof(domain->name), name);
    return 0;
}

int xenstore_name_domains(struct xen_domain *domains, unsigned int n)
{
    struct xs_handle *xs;
    int r;

    for (unsigned int i = 0; i < n; i++)
        domains[i].name[0] = '\0';
    r = open_store(&xs);
    if (r < 0)
        return r;
    for (unsigned int i = 0; i < n; i++) {
        r = read_name(xs, &domains[i]);
        if (r < 0 && r != -ENOENT && r != -EACCES)
            break;
        r = 0;
    }
    xs_close(xs);
    return r;
}

static int watch_domains(struct xenstore_watch *watch)
{
    int r;

    r = open_store(&watch->xs);
    if (r < 0)
        return r;
    watch->fd = xs_fileno(watch->xs);
    /* The tokens would distinguish the watches; Xen is asked who came or went anyway. */
    if (watch->fd < 0 || !xs_watch(watch->xs, "@releaseDomain", "release") ||
        !xs_watch(watch->xs, "@introduceDomain", "introduce"))
        return store_error();
    return 0;
}

int xenstore_watch_new(struct xenstore_watch **ret_watch)
{
    struct xenstore_watch *watch = calloc(1, sizeof(*watch));
    int r;

    if (!watch)
        return -ENOMEM;
    r = watch_domains(watch);
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
