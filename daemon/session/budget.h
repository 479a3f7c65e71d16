/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Limits of the snapshots of each person but root (daemon/base/person.h), so that root and the
 * triggers always have what they need: the rules, without I/O. user-limits.h applies them.
 *
 *   file     in the state directory: one at a time, one in each interval, a number and an amount of
 *            bytes in any 24 hours
 *   live     the newest second, into a pipe: one at a time, one each second
 *   output   into an output that the user opened: no limit but the places, of which one user leaves
 *            the last one to others
 *
 * All of them together have BUDGET_PLACES places, which are fewer than a ring has pins and than the
 * daemon writes snapshots: the others are for root and the triggers.
 *
 * There is room for all persons. Usage outlasts the daemon by budget_save() and budget_load().
 * Main thread. Times (_usec) are of any clock that never goes back, CLOCK_MONOTONIC in the daemon,
 * and later than two days; realtime_usec is the wall clock at the same moment.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/failure.h"
#include "daemon/config/config.h"

#define BUDGET_PLACES    4u
#define BUDGET_OF_USER   3u    /* of them, for one user */
#define BUDGET_FILES_MAX 1000u /* of each, in 24 hours: the largest snapshots-per-day= */

/* What budget_save() returns at most: of more files than fit, the oldest are left out. */
#define BUDGET_SAVED_MAX_BYTES (1u << 20)

enum budget_kind {
    BUDGET_FILE,
    BUDGET_LIVE,
    BUDGET_OUTPUT,
    BUDGET_KINDS,
};

struct budget;

/* A snapshot that was let through. A value. */
struct budget_grant {
    bool is_taken; /* else it is nobody's: root's, or a trigger's */
    enum budget_kind kind;
    uid_t person;
    uint64_t allowed_bytes; /* of a file: at most that long. UINT64_MAX: any */
    uint64_t more_usec;     /* ... and in that time from now on there is more; 0: that is all */
};

/* LIMITS is copied; from config_limits(). -ENOMEM. */
int budget_new(const struct limits_config *limits, struct budget **ret_budget);
/* Other limits from now on, of which usage so far is counted against. */
void budget_set_limits(struct budget *budget, const struct limits_config *limits);
/* Takes NULL; returns NULL. */
struct budget *budget_free(struct budget *budget);

/*
 * PERSON wants a snapshot of KIND now. Returns 0; or -EDQUOT with a FAILURE (ERROR_LIMIT) that
 * names the limit, when it ends, and what root can do; without memory, ERROR_NO_MEMORY. Whatever
 * was granted is given back with budget_end(), once.
 */
int budget_begin(struct budget *budget, uid_t person, enum budget_kind kind, uint64_t now_usec,
                 struct budget_grant *ret_grant, struct failure *failure);

/*
 * Nothing of it is under way any more: BYTES are on the disk. WRITTEN: it succeeded; one that
 * failed counts for its interval only.
 */
void budget_end(struct budget *budget, const struct budget_grant *grant, bool written,
                uint64_t bytes);

/*
 * Copies the files of the last 24 hours into *RET_BYTES, to be freed by the caller, for
 * budget_load() of a later daemon. Returns their length, or -ENOMEM.
 */
ssize_t budget_save(struct budget *budget, uint64_t now_usec, uint64_t realtime_usec,
                    void **ret_bytes);
/*
 * Adds what an earlier daemon saved to what was used since. BYTES are any: those of another
 * version, or damaged, are -EBADMSG, and nothing is added. -ENOMEM: a part of it may be.
 */
int budget_load(struct budget *budget, const void *bytes_untrusted, size_t length,
                uint64_t now_usec, uint64_t realtime_usec);

/* FAILURE is that there is no space: adds what is set aside for triggers. */
void budget_explain_space(const struct budget *budget, struct failure *failure);

/* Why a file of BYTES is longer than GRANT allows. Sets FAILURE, returns -EDQUOT. */
int budget_explain_bytes(const struct budget *budget, const struct budget_grant *grant,
                         uint64_t bytes, struct failure *failure);
