/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Keeps the state directory within its limits, and answers what is in it. What may go and in which
 * order is vacuum-policy.h's; which files there are state-files.h's. Everything that may wait for
 * the disk runs on a worker of its own, in order.
 *
 * Main thread; nothing here waits.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/disk-limit.h"
#include "daemon/base/failure.h"
#include "daemon/output/state-files.h"
#include "daemon/output/vacuum-policy.h"

struct sd_event;
struct vacuum;
struct workers;

struct vacuum_context {
    struct sd_event *event;
    struct workers *workers;
    int state_dir_fd;
    const char *state_dir;
    struct disk_limits limits;
    /* Adds the names of the sessions that run, ROOM at most; returns how many. */
    size_t (*list_running)(void *userdata, char (*names)[SESSION_NAME_MAX + 1], size_t room);
    /* SESSION, which runs, is to delete its COUNT oldest segments: its ledger has them. */
    void (*evict)(void *userdata, const char *session, unsigned int count);
    void *userdata;
};

#define VACUUM_RUNNING_MAX 32u

enum vacuum_action { VACUUM_LIST, VACUUM_CLEAN, VACUUM_REMOVE };

struct vacuum_request {
    enum vacuum_action action;
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
    bool dry_run;
    const struct failure *failure; /* its name is NULL on success */
};

/* CONTEXT is copied. The first look comes with the event loop. -ENOMEM, -EAGAIN. */
int vacuum_new(const struct vacuum_context *context, struct vacuum **ret_vacuum);
/* What is under way is carried out if the process lives; no `done` follows. Takes NULL. */
struct vacuum *vacuum_free(struct vacuum *vacuum);

/* A file was finished: looks soon. */
void vacuum_poke(struct vacuum *vacuum);

/* The configuration was read again. */
void vacuum_set_limits(struct vacuum *vacuum, const struct disk_limits *limits);

/* DONE follows from the event loop; what it is given goes after it. Returns 0 or -ENOMEM. */
int vacuum_send(struct vacuum *vacuum, const struct vacuum_request *request,
                void (*done)(void *userdata, uint64_t ticket, const struct vacuum_result *result),
                void *userdata, uint64_t *ret_ticket);
