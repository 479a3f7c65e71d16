/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The manager's end of $NOTIFY_SOCKET: messages as sd_notify(3) describes them. Results are 0 or a
 * negative errno.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NOTIFY_MOST_FDS 253u /* SCM_MAX_FD */

struct notify_message {
    char text[4097]; /* lines, each with its end replaced by '\0', and one empty line after them */
    pid_t sender;    /* the kernel's word */
    uint32_t nr_fds;
    int fds[NOTIFY_MOST_FDS]; /* close-on-exec; -1 when they were taken */
};

/* A socket at PATH that everybody may write to. */
int notify_open(const char *path, int *ret_fd);

/* The next message, without waiting: -EAGAIN if there is none. */
int notify_receive(int fd, struct notify_message *ret_message);

/* Closes what was not taken. */
void notify_done(struct notify_message *message);

/* Is LINE one of the message's? */
bool notify_has(const struct notify_message *message, const char *line);

/* What follows FIELD ("FDNAME=") in the first line that begins with it, or NULL. */
const char *notify_field(const struct notify_message *message, const char *field);
