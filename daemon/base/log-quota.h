/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * How many lines of the log persons other than root may cause: the rules, without I/O. log.c
 * applies them to the audit trail, and to what captures and snapshots of users log. Root's lines
 * and the daemon's own are never counted, so nobody can make systemd-journald(8) drop them:
 * RateLimitBurst= is 10,000 in 30 s by default.
 *
 * Main thread. Times (_usec) are of any clock that never goes back, and not 0.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/person.h"

#define LOG_QUOTA_INTERVAL_USEC UINT64_C(10000000)
#define LOG_QUOTA_LINES_MAX     20u  /* of one person in that time: four captures and their calls */
#define LOG_QUOTA_ALL_MAX       200u /* ... and of all of them, less than the log's queue has */
#define LOG_QUOTA_PERSONS_MAX   32u  /* who are told apart at a time */

struct log_quota_person {
    uid_t person;
    uint64_t since_usec; /* 0: free */
    unsigned int lines;
    uint64_t suppressed;
};

/* Zeroes are an empty one. */
struct log_quota {
    struct log_quota_person persons[LOG_QUOTA_PERSONS_MAX];
    struct log_quota_person all; /* `suppressed`: of those who were forgotten for others */
};

/* Whether PERSON, who is not root, may cause a line now. If not, it is counted. */
bool log_quota_admit(struct log_quota *quota, uid_t person, uint64_t now_usec);

/* When the next sum is due; 0: nothing was suppressed. */
uint64_t log_quota_next_usec(const struct log_quota *quota);

/*
 * Takes one sum that is due: *RET_LINES of *RET_PERSON were suppressed; (uid_t)-2: of several.
 * False: there is none.
 */
#define LOG_QUOTA_SEVERAL ((uid_t)-2)
bool log_quota_take_sum(struct log_quota *quota, uint64_t now_usec, uid_t *ret_person,
                        uint64_t *ret_lines);
