/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Session documents (docs/control-protocol.md) as people read them. All print functions first make
 * the document printable.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/drop-cause.h"
#include "ctl/doc.h"

struct table;

/* Whether it ended as it was asked to: false if it ended early. */
bool session_is_ok(struct json_object *session);

/* Whether `stop --abort` ended it. */
bool session_was_aborted(struct json_object *session);

/* How long it runs or ran. */
uint64_t session_duration_usec(struct json_object *session);

/* The commands that look into the file at PATH, of SESSION. */
void session_print_next(FILE *file, struct json_object *session, const char *path);

/* "10 by Xen (CPU 2: 7, CPU 3: 3), 0 by xentraced", or "none". NULL: no memory. */
char *session_losses(struct json_object *session);

/* How many records xentraced dropped because of CAUSE. */
uint64_t session_drops(struct json_object *session, enum drop_cause cause);

/* One sentence about the CPUs that were asked for and have no trace buffer; NULL if there are none.
 */
char *session_missing_cpus(struct json_object *session);

/*
 * When a capture without a limit ends by itself: "when 5G are left free: about 58h", without the
 * forecast if nothing was written yet. NULL: it does not, or there is no memory.
 */
char *session_end_forecast(struct json_object *session);
bool session_has_forecast(struct json_object *session); /* with the second part */

/* A CPU whose trace buffer is fuller is shown even if it has lost nothing. */
#define SESSION_FULL_PERCENT 50u

/*
 * The whole block of status. WITH_CPUS: the table has all CPUs; otherwise those with losses or a
 * fill above SESSION_FULL_PERCENT.
 */
void session_print(FILE *file, struct json_object *session, bool with_cpus, int width);

/* One line: "NAME: FILE, 990 records, 80K in 12s, lost: none". */
void session_print_result(FILE *file, struct json_object *session);

/* One that has ended: "NAME >RECORDS >SIZE TIME LOST FILE RESULT". */
void session_add_ended(struct table *table, struct json_object *session);

/* What an aborted session kept, dropped, and still holds. */
void session_print_aborted(FILE *file, struct json_object *session);

/* The summary at the end of record, with what to type next. */
void session_print_summary(FILE *file, struct json_object *session);
