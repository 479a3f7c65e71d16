/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that a service gave its manager to keep, by name: systemd's fd store (see
 * sd_notify(3), FDSTORE=1, and systemd.service(5), FileDescriptorStoreMax=).
 */

#include <stdbool.h>
#include <stdint.h>

#define FDSTORE_MOST 253u /* one message's limit (SCM_MAX_FD) is enough for a store, too */

struct fdstore_entry {
    int fd;
    bool poll; /* goes when the descriptor hangs up */
    char name[256];
};

struct fdstore {
    uint32_t max;
    uint32_t count;
    struct fdstore_entry entries[FDSTORE_MOST]; /* oldest first */
};

enum fdstore_result {
    FDSTORE_ADDED,
    FDSTORE_THERE, /* the same open file is kept already, maybe under another name */
    FDSTORE_FULL,
};

/* Is NAME one that systemd takes? Else a descriptor is kept as "stored". */
bool fdstore_name_is_valid(const char *name);

/* Owns FD afterwards, whatever the result. */
enum fdstore_result fdstore_add(struct fdstore *store, const char *name, bool poll, int fd);

/* Closes all of that name; how many there were. */
uint32_t fdstore_remove(struct fdstore *store, const char *name);

/* Closes one that is polled and has hung up, and tells its name in RET_NAME. False: none has. */
bool fdstore_drop_hung_up(struct fdstore *store, char ret_name[static 256]);

/*
 * In a child that is about to exec: puts the descriptors at 3, 4, ..., newest first as systemd
 * does, to be inherited; and nothing else above. Sets LISTEN_FDS, LISTEN_PID and LISTEN_FDNAMES, or
 * unsets them if there is nothing. 0 or a negative errno.
 */
int fdstore_pass(const struct fdstore *store);

void fdstore_done(struct fdstore *store);
