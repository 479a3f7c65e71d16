// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FDPOLL=0: an event channel's descriptor would be dropped at the first sign of an error. The
 * barrier makes sure that the manager has the descriptor before what it stands for is relied on.
 */

#include "daemon/host/fd-store.h"

#include <stdio.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#include "common/units.h"
#include "common/util.h"

#define BARRIER_USEC (5 * USEC_PER_SEC) /* a manager that does not answer is not waited for */

void fd_store_read(struct fd_store *store)
{
    char **names = NULL;
    int count = sd_listen_fds_with_names(true, &names);

    *store = (struct fd_store){0};
    for (int i = 0; i < count; i++) {
        int fd = SD_LISTEN_FDS_START + i;

        if (store->count == FD_STORE_INHERITED_MAX || !names[i]) {
            fd_close(&fd);
            free(names[i]);
            continue;
        }
        store->inherited[store->count].fd = fd;
        store->inherited[store->count++].name = names[i];
    }
    free(names);
}

void fd_store_done(struct fd_store *store)
{
    for (unsigned int i = 0; i < store->count; i++) {
        fd_close(&store->inherited[i].fd);
        free(store->inherited[i].name);
    }
    store->count = 0;
}

int fd_store_take(struct fd_store *store, const char *prefix, const char **ret_rest)
{
    size_t length = strlen(prefix);

    for (unsigned int i = 0; i < store->count; i++) {
        if (store->inherited[i].fd < 0 || strncmp(store->inherited[i].name, prefix, length) != 0)
            continue;
        *ret_rest = store->inherited[i].name + length;
        return fd_take(&store->inherited[i].fd);
    }
    return -1;
}

bool fd_store_keep(const char *name, int fd)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
    if (sd_pid_notify_with_fds(0, false, text, &fd, 1) <= 0)
        return false;
    return sd_notify_barrier(false, BARRIER_USEC) > 0;
}

void fd_store_forget(const char *name)
{
    char text[128];

    (void)snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%s", name);
    if (sd_notify(false, text) > 0) /* nobody may be listening */
        (void)sd_notify_barrier(false, BARRIER_USEC);
}
