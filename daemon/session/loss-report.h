/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Logs lost and dropped records of a session: the first within a second. A continuing loss is
 * reported once a second at first, then less often, but at least once a minute. Main thread.
 */

#include <stdint.h>

#define LOSS_REPORT_MIN_USEC UINT64_C(1000000)
#define LOSS_REPORT_MAX_USEC UINT64_C(60000000)

struct loss_report; /* a session's: session-data.h */
struct session;

/* Also of one that is all zeroes. */
void loss_report_done(struct loss_report *report);

/* What is missing so far is known: SESSION continues a ring of an earlier daemon. */
void loss_report_begin(struct session *session);

/* Records may be missing, at NOW_USEC (CLOCK_MONOTONIC): reports them now, or in time. */
void loss_report_look(struct session *session, uint64_t now_usec);

/* SESSION has ended: reports what was not reported yet. */
void loss_report_finish(struct session *session);
