// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * FDPOLL=0: an event channel's descriptor would be dropped at the first sign of an error. The
 * barrier makes sure that the manager has the descriptor before what it stands for is relied on.
 */

#include "daemon/host/fd-store.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <systemd/sd-daemon.h>

#include "common/units.h"
#include "common/util.h"
#include "daemon/host/systemd-state.h"

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

/* --- Jobs of systemd's worker. --- */

#define TEXT_MAX      128u /* for sd_notify(3) */
#define KEEP_FORMAT   "FDSTORE=1\nFDNAME=%s\nFDPOLL=0"
#define FORGET_FORMAT "FDSTOREREMOVE=1\nFDNAME=%s"

struct store_job {
    struct systemd_job base;
    void (*done)(void *userdata, bool is_kept); /* of fd_store_keep() */
    void *userdata;
    int fd; /* our own copy */
    bool is_kept;
    char text[TEXT_MAX];
};

static void run_keep(struct systemd_job *job)
{
    struct store_job *store = (struct store_job *)job;

    if (store->fd < 0 || sd_pid_notify_with_fds(0, false, store->text, &store->fd, 1) <= 0)
        return;
    store->is_kept = sd_notify_barrier(false, BARRIER_USEC) > 0;
}

static void forget_now(const char *text)
{
    if (sd_notify(false, text) > 0) /* nobody may be listening */
        (void)sd_notify_barrier(false, BARRIER_USEC);
}

static void run_forget(struct systemd_job *job)
{
    forget_now(((struct store_job *)job)->text);
}

static void finish_keep(struct systemd_job *job, bool is_late)
{
    struct store_job *store = (struct store_job *)job;

    (void)is_late; /* it has no deadline */
    store->done(store->userdata, store->is_kept);
}

static void release_store(struct systemd_job *job)
{
    fd_close(&((struct store_job *)job)->fd);
}

void fd_store_keep(struct systemd *systemd, const char *name, int fd,
                   void (*done)(void *userdata, bool is_kept), void *userdata)
{
    struct store_job *store = calloc(1, sizeof(*store));

    if (!store) {
        done(userdata, false);
        return;
    }
    store->base.run = run_keep;
    store->base.finish = finish_keep;
    store->base.release = release_store;
    store->done = done;
    store->userdata = userdata;
    store->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3); /* -1: it is not kept */
    (void)snprintf(store->text, sizeof(store->text), KEEP_FORMAT, name);
    systemd_send(systemd, &store->base, false);
}

void fd_store_forget(struct systemd *systemd, const char *name)
{
    struct store_job *store = calloc(1, sizeof(*store));

    if (!store)
        return; /* the next daemon finds it, and drops it if it is of no use */
    store->base.run = run_forget;
    store->fd = -1;
    (void)snprintf(store->text, sizeof(store->text), FORGET_FORMAT, name);
    systemd_send(systemd, &store->base, false);
}

/* --- At start. --- */

bool fd_store_keep_now(const char *name, int fd)
{
    char text[TEXT_MAX];

    (void)snprintf(text, sizeof(text), KEEP_FORMAT, name);
    if (sd_pid_notify_with_fds(0, false, text, &fd, 1) <= 0)
        return false;
    (void)sd_notify_barrier(false, BARRIER_USEC); /* it is read in order, if late */
    return true;
}

void fd_store_forget_now(const char *name)
{
    char text[TEXT_MAX];

    (void)snprintf(text, sizeof(text), FORGET_FORMAT, name);
    forget_now(text);
}
