/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that outlive the process: the service manager keeps them while the daemon is
 * restarted, killed or upgraded. Without such a service manager, nothing is kept, and everything
 * else works the same. Main thread; nothing here waits, except where stated.
 *
 * Source: sd_notify(3) (FDSTORE=1), sd_listen_fds(3), systemd.service(5)
 * (FileDescriptorStoreMax=).
 */

#include <stdbool.h>

struct systemd;

#define FD_STORE_INHERITED_MAX 16u

/* What we were started with. */
struct fd_store {
    struct {
        int fd;
        char *name;
    } inherited[FD_STORE_INHERITED_MAX];
    unsigned int count;
};

/* Takes what the service manager passed; our children do not get it. */
void fd_store_read(struct fd_store *store);
/* Closes what was not taken. */
void fd_store_done(struct fd_store *store);

/*
 * The first descriptor whose name begins with PREFIX: the rest of the name in *RET_REST, which
 * stays the store's. -1: none. It is the caller's from then on.
 */
int fd_store_take(struct fd_store *store, const char *prefix, const char **ret_rest);

/*
 * Has a copy of FD kept under NAME; the caller may close FD at once. DONE is called, with whether
 * the service manager has it, as the callbacks of systemd.h are.
 */
void fd_store_keep(struct systemd *systemd, const char *name, int fd,
                   void (*done)(void *userdata, bool is_kept), void *userdata);

/* Has what is called NAME forgotten, after what was to be kept before. */
void fd_store_forget(struct systemd *systemd, const char *name);

/*
 * Synchronous versions of both, for use before the daemon serves clients: they wait until the
 * service manager has read the message, at most 5 s. Returns whether it was sent; from then on the
 * service manager has the descriptor even if we are killed.
 */
bool fd_store_keep_now(const char *name, int fd);
void fd_store_forget_now(const char *name);
