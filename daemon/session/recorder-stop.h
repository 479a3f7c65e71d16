/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Records that the flight recorder was stopped on request, by whom, and when. This note is a memfd
 * in the service manager's fd store. It exists exactly as long as the recorder must stay stopped:
 * systemd keeps it while the daemon is restarted, and drops it when the unit is stopped. Without a
 * service manager it lasts as long as the daemon. Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/requester.h"

#define RECORDER_STOP_COMM_MAX REQUESTER_COMM_MAX
#define RECORDER_STOP_TEXT_MAX REQUESTER_TEXT_MAX

struct failure;
struct fd_store;
struct systemd;

struct recorder_stop {
    bool is_set;          /* else nothing here means anything: it was not stopped on request */
    bool is_kept;         /* the service manager has the note, too */
    uint64_t realtime_ns; /* 0: unknown */
    uid_t uid;            /* (uid_t)-1: unknown */
    pid_t pid;            /* 0: unknown */
    char comm[RECORDER_STOP_COMM_MAX]; /* valid UTF-8; "": unknown */
};

/* A note of STOP, and what is in one. Descriptor or negative errno; -EBADMSG: FD is no note. */
int recorder_stop_write(const struct recorder_stop *stop);
int recorder_stop_read(int fd, struct recorder_stop *ret_stop);

/*
 * Takes over the note of an earlier daemon. If it is unreadable, the recorder still counts as
 * stopped, by an unknown user.
 */
void recorder_stop_take(struct fd_store *inherited, struct recorder_stop *ret_stop);

/* Has STOP kept; DONE is called as that of fd_store_keep(). And: has it forgotten. */
void recorder_stop_keep(struct systemd *systemd, const struct recorder_stop *stop,
                        void (*done)(void *userdata, bool is_kept), void *userdata);
void recorder_stop_forget(struct systemd *systemd);

/* "root, UID 0 (xentracectl, PID 1234)". Returns TEXT. */
const char *recorder_stop_describe(char text[static RECORDER_STOP_TEXT_MAX],
                                   const struct recorder_stop *stop);

/* There is no ring, because of STOP. Returns a negative errno. */
int recorder_stop_explain(const struct recorder_stop *stop, struct failure *failure);
