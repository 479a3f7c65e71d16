/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Another host, through ssh(1): the option -H, and socket addresses such as
 * "ssh://root@dom0/run/xentraced/control", where the path may be left out.
 *
 * The other host needs xentracectl. Its hidden command `bridge` connects ssh's two streams to the
 * daemon's socket; with arguments it runs another command instead, and ends that when our end of
 * the stream closes. Descriptors do not pass: what writes to a file of this host has its records
 * streamed (ctl/remote-run.h). One thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The environment variable by which record learns of its bridge, and reports that it runs. */
#define REMOTE_BRIDGE "XENTRACECTL_BRIDGE"

struct remote; /* an ssh process */

/* NULL: no memory. SOCKET NULL: the default one of that host. */
char *remote_address(const char *host, const char *socket);

bool remote_is_address(const char *socket);

/* Of an address: its host, to be freed (NULL: no memory); its path, borrowed (NULL: it has none).
 */
char *remote_address_host(const char *address);
const char *remote_address_path(const char *address);

/* What runs on the other host, and with which descriptors of this one. */
struct remote_command {
    char *const *words; /* after "xentracectl"; NULL at the end */
    int in, out;        /* -1: inherited */
    int err;            /* -1: kept, for remote_explain() */
};

/* Begins the command on HOST. 0 or a negative errno with a sentence in *RET_ERROR (free it). */
int remote_new(const char *host, const struct remote_command *command, struct remote **ret_remote,
               char **ret_error);

/* Begins the bridge to the socket at ADDRESS; *RET_FD is the stream to it. As remote_new(). */
int remote_connect(const char *address, struct remote **ret_remote, int *ret_fd, char **ret_error);

/* Ends what still runs, frees. NULL is fine. Returns NULL. */
struct remote *remote_free(struct remote *remote);

static inline void remote_freep(struct remote **remote)
{
    *remote = remote_free(*remote);
}

const char *remote_host(const struct remote *remote);

#define REMOTE_NOT_FOUND 127 /* the shell there: it did not begin */

bool remote_has_ended(const struct remote *remote);

/* Waits for the end of the command: its exit status; 255 is ssh's own failure. */
int remote_wait(struct remote *remote);

/*
 * Why it ended: -ECONNRESET with a sentence in *RET_ERROR, made from its exit status and the last
 * line that it wrote to standard error. A command that has not ended within a second is ended.
 */
int remote_explain(struct remote *remote, char **ret_error);

/* The command's standard error up to MAX_BYTES, a text to be freed; NULL: not kept, or no memory.
 */
char *remote_errors(const struct remote *remote, size_t max_bytes);

/* Asks ssh to end now. */
void remote_kill(struct remote *remote);
