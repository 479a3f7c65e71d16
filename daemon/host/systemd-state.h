/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The jobs of systemd's worker: what systemd.c and fd-store.c share.
 */

#include <stdbool.h>

#include "daemon/base/worker.h"

struct sd_event_source;
struct systemd;

/*
 * Embedded as the first member of an allocated struct, which is freed when the job is done. The
 * struct is the worker's, not the main thread's, from systemd_send() until `finish` is called with
 * IS_LATE false, or `release`.
 */
struct systemd_job {
    /* On the worker. */
    void (*run)(struct systemd_job *job);
    /*
     * On the main thread: answers. IS_LATE: the deadline has passed while the worker is still at
     * it. NULL: nobody wants an answer. Not called after systemd_free().
     */
    void (*finish)(struct systemd_job *job, bool is_late);
    /* On the main thread, last: releases what the struct refers to. NULL: nothing. */
    void (*release)(struct systemd_job *job);

    /* systemd.c's own. */
    struct job job;
    struct systemd *systemd; /* NULL: it has been freed */
    struct systemd_job *next, *previous;
    struct sd_event_source *deadline;
    bool is_finished;
};

/* Sends JOB to the worker. With HAS_DEADLINE, `finish` is called within 2 s. */
void systemd_send(struct systemd *systemd, struct systemd_job *job, bool has_deadline);
