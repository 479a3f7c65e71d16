/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The audit trail: one line of the log for each call that changes something, with who asked and how
 * it went. Calls of root are always logged, those of other users at a limited rate for each person,
 * whether they are carried out or not; the log reports how many were left out (log-quota.h). Calls
 * that change nothing are never logged. Main thread.
 */

#include "daemon/base/failure.h"
#include "daemon/base/name.h"
#include "daemon/base/requester.h"

/* One call. */
struct audit_call {
    struct requester who;
    const char *what;                  /* the method's name; static. NULL: it changes nothing */
    char object[SESSION_NAME_MAX + 1]; /* a capture's, snapshot's or trigger's name; "": none */
};

/* Names CALL's object: NAME if it is a valid name, else nothing. */
void audit_name_object(struct audit_call *call, const char *name_untrusted);

/* CALL was carried out; or it was not, for FAILURE, if that is not NULL. */
void audit_log(const struct audit_call *call, const struct failure *failure);
/* CALL is being carried out, but its client has disconnected. */
void audit_log_abandoned(const struct audit_call *call);
