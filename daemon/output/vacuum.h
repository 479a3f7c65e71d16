/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the state directory within its limits, and lists its files. vacuum-policy.h decides which
 * files are removed, and in which order; state-files.h lists them. Everything that may wait for the
 * disk runs on a separate worker. Requests are carried out one at a time, in order. Each removed
 * file is logged with its size and the reason, up to VACUUM_LINES_MAX in VACUUM_LINES_USEC; the
 * number and size of the others are logged together.
 *
 * Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/disk-limit.h"
#include "daemon/base/failure.h"
#include "daemon/base/requester.h"
#include "daemon/output/held-files.h"
#include "daemon/output/state-files.h"
#include "daemon/output/vacuum-policy.h"

struct held_files;
struct sd_event;
struct vacuum;
struct workers;

struct vacuum_context {
    struct sd_event *event;
    struct workers *workers;
    int state_dir_fd;
    const char *state_dir;
    struct held_files *held; /* lent */
    struct disk_limits limits;
    /* Adds the names of the sessions that run, ROOM at most; returns how many. */
    size_t (*list_running)(void *userdata, char (*names)[SESSION_NAME_MAX + 1], size_t room);
    /* SESSION, which runs, is to delete its COUNT oldest segments: its ledger has them. */
    void (*evict)(void *userdata, const char *session, unsigned int count);
    void *userdata;
};

#define VACUUM_RUNNING_MAX 32u
#define VACUUM_LINES_MAX   20u
#define VACUUM_LINES_USEC  UINT64_C(60000000)
/* How long a file that ought to go stays for a process that has it open. */
#define VACUUM_OPEN_USEC UINT64_C(60000000)
#define VACUUM_WAITING_MAX                                                                         \
    64u /* requests, beside the one that is being carried out; half for users */

enum vacuum_action { VACUUM_LIST, VACUUM_CLEAN, VACUUM_REMOVE };

struct vacuum_request {
    enum vacuum_action action;
    struct requester who;      /* the client */
    struct disk_limits limits; /* VACUUM_CLEAN */
    bool dry_run;              /* ... only finds out what it would remove */
    const char *const *names;  /* VACUUM_REMOVE: copied */
    size_t nr_names;
};

struct vacuum_result {
    const struct state_files *files; /* as they were found; NULL: failure */
    const struct vacuum_file *plan;  /* of each: its class and, of VACUUM_CLEAN, whether it goes */
    struct vacuum_limits limits;     /* in force */
    struct vacuum_outcome outcome;   /* what was, or would be, removed */
    struct held_sum held;            /* removed, and still open */
    bool dry_run;
    const struct failure *failure; /* its name is NULL on success */
};

/* The disk, as of the last look. */
struct vacuum_disk {
    uint64_t free_bytes;
    uint64_t keep_free_bytes; /* in force; 0: none */
    bool is_of_others;        /* as in struct vacuum_outcome */
    int error;                /* < 0: why no file can be written to it */
    struct held_sum held;
};

/* CONTEXT is copied. The first look comes with the event loop. -ENOMEM, -EAGAIN. */
int vacuum_new(const struct vacuum_context *context, struct vacuum **ret_vacuum);
/*
 * What is being carried out is, if the process lives; what waits is not. No `done` follows. Takes
 * NULL.
 */
struct vacuum *vacuum_free(struct vacuum *vacuum);

/* A file was finished: looks soon. */
void vacuum_poke(struct vacuum *vacuum);

/* Lent. */
const struct vacuum_disk *vacuum_disk(const struct vacuum *vacuum);

/* The configuration was read again. */
void vacuum_set_limits(struct vacuum *vacuum, const struct disk_limits *limits);

/*
 * DONE follows from the event loop; what it is given goes after it. Returns 0, -ENOMEM, or -EAGAIN:
 * VACUUM_WAITING_MAX requests wait, or half as many, and the request is not root's.
 */
int vacuum_send(struct vacuum *vacuum, const struct vacuum_request *request,
                void (*done)(void *userdata, uint64_t ticket, const struct vacuum_result *result),
                void *userdata, uint64_t *ret_ticket);
