/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The traces in the state directory, with the facts of their sidecars and whether they are in use.
 * All functions may wait for the disk, and run on a worker.
 *
 * A file is open if another process has it open, or a thread of ours: then it cannot be leased
 * (fcntl(2), F_SETLEASE). On a file system without leases, only files of running sessions are known
 * to be open.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "daemon/base/name.h"

struct held_files;

enum state_file_kind {
    STATE_FILE_UNKNOWN, /* no sidecar of ours, or not our file */
    STATE_FILE_CAPTURE,
    STATE_FILE_SEGMENT,
    STATE_FILE_SNAPSHOT,
};

#define STATE_FILE_CAUSE_MAX  16u
#define STATE_FILE_DOMAIN_MAX 128u

struct state_file {
    char name[NAME_MAX + 1]; /* without the ending */
    bool is_packed;          /* NAME.xentrace.zst */
    uint64_t bytes;          /* with its sidecar, its report, and blocks beyond its end */
    bool has_spare;          /* there are such blocks */
    uint64_t time_ns;        /* when it was written last */

    /* From its sidecar; "" or false: it does not say. */
    enum state_file_kind kind;
    bool is_of_user; /* another user than root asked for it */
    bool is_of_ring; /* a segment whose capture deletes its oldest, or is configured */
    char cause[STATE_FILE_CAUSE_MAX];
    char session[SESSION_NAME_MAX + 1]; /* that it is of */
    char label[SESSION_NAME_MAX + 1];   /* the trigger's */
    char domain[STATE_FILE_DOMAIN_MAX]; /* that the trigger was about */

    bool is_of_running;       /* its session runs */
    bool is_in_use;           /* it is what a running session writes */
    bool is_open;             /* see above */
    uint64_t open_since_usec; /* CLOCK_BOOTTIME, of the first of the looks that found it so */

    /* Of the sidecar that this was read from. */
    ino_t sidecar_inode;
    struct timespec sidecar_time;
};

struct state_files {
    struct state_file *files; /* oldest first */
    size_t count;
    uint64_t total_bytes; /* of the file system */
    uint64_t free_bytes;
};

/* Names of sessions that run. */
struct state_names {
    char (*names)[SESSION_NAME_MAX + 1];
    size_t count;
};

/*
 * Reads the directory. What BEFORE (NULL: nothing) knew of a file is taken over if its sidecar is
 * the same. -ENOMEM, and the errors of open(2).
 */
int state_files_read(int directory_fd, const struct state_files *before,
                     const struct state_names *running, struct state_files **ret_files);
struct state_files *state_files_free(struct state_files *files);

/* Finds out of each file whether it is open, at NOW_USEC. */
void state_files_look_for_open(int directory_fd, struct state_files *files, uint64_t now_usec);
/* It does not matter now: the next look that asks is the first one again. */
void state_files_forget_open(struct state_files *files);

/* Whether NAME is a segment's of SESSION: "SESSION.00001". */
bool state_name_is_segment(const char *name, const char *session);
/* Whether NAME is SESSION's, its only file or a segment. The session's name; NULL: of none. */
const char *state_name_find_session(const char *name, const struct state_names *running);

/* The trace NAME's file. */
void state_file_name(char file[static NAME_MAX + 1], const char *name, bool is_packed);

struct json_object;

/* NAME's sidecar, untrusted; NULL: there is none, or it is no JSON. To be put. */
struct json_object *state_sidecar_read(int directory_fd, const char *name);

void state_sidecar_remove(int directory_fd, const char *name);

/* After the name of a snapshot: its report, and its page (report=yes of its trigger). */
#define STATE_REPORT_SUFFIX ".report.txt"
#define STATE_PAGE_SUFFIX   ".report.html"

/*
 * Removes the trace, compressed or not, then its sidecar, its report and its page, if there are
 * any. Returns 0 or a negative errno. If another process has the trace open, it is added to HELD
 * (NULL: it is not).
 */
int state_file_remove(int directory_fd, const char *name, struct held_files *held);
