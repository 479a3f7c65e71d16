/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The audit trail: one line of the log for each call that changes something, with who asked and how
 * it went. Calls that succeed are always logged. Failed calls and triggers, which every viewer may
 * fire, are logged at a limited rate for each user, and the rest is counted. Calls of root are
 * always logged, calls that change nothing never. Main thread.
 */

#include <stdint.h>

#include "daemon/base/failure.h"
#include "daemon/base/name.h"
#include "daemon/base/person.h"
#include "daemon/base/requester.h"

#define AUDIT_USERS_MAX     16u
#define AUDIT_LINES_MAX     10u /* of one user in AUDIT_INTERVAL_USEC */
#define AUDIT_INTERVAL_USEC UINT64_C(10000000)

/* One call. */
struct audit_call {
    struct requester who;
    const char *what;                  /* the method's name; static. NULL: it changes nothing */
    char object[SESSION_NAME_MAX + 1]; /* a capture's, snapshot's or trigger's name; "": none */
};

struct audit_user {
    uid_t person;
    uint64_t since_usec; /* 0: free */
    unsigned int lines;
    uint64_t suppressed;
};

/* Zeroes are an empty one. */
struct audit {
    struct audit_user users[AUDIT_USERS_MAX];
};

/* Names CALL's object: NAME if it is a valid name, else nothing. */
void audit_name_object(struct audit_call *call, const char *name_untrusted);

/* CALL was carried out; or it was not, for FAILURE, if that is not NULL. */
void audit_log(struct audit *audit, const struct audit_call *call, const struct failure *failure);
/* CALL is being carried out, but its client has disconnected. */
void audit_log_abandoned(struct audit *audit, const struct audit_call *call);

/*
 * Whether PERSON may have a line at NOW_USEC (CLOCK_MONOTONIC, not 0). If so, *RET_SUPPRESSED is how
 * many were left out since its last one. For audit.c and its test.
 */
bool audit_admit(struct audit *audit, uid_t person, uint64_t now_usec, uint64_t *ret_suppressed);
