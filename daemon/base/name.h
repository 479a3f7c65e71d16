/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Names of sessions, snapshots and triggers. They become file names, and words of a command line:
 * letters, digits, "._-@:", the first neither "." nor "-". Main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/base/failure.h"

#define SESSION_NAME_MAX 64u /* of a snapshot's too */

/* Whether NAME is one, of 1 to MAX_LENGTH characters. */
bool name_is_valid(const char *name, size_t max_length);

/* Returns 0, or -EINVAL and FAILURE if NAME can be no session's and no snapshot's. */
int name_check(const char *name, struct failure *failure);

/*
 * The names of snapshots that users other than root have named or labelled begin with it, those of
 * triggers do not: "snapshot-user-crash-..." is no snapshot of the trigger "crash".
 */
#define NAME_USER_WORD            "user-"
#define NAME_USER_SNAPSHOT_PREFIX "snapshot-" NAME_USER_WORD

/*
 * Names of captures of users other than root begin with the UID: "uid1000-NAME". So no user takes a
 * name that root, the configuration or another user wants. NAME may have that prefix already; ""
 * gives the prefix without "-". Returns 0; or -EINVAL and FAILURE if NAME is not valid, or is too
 * long.
 */
int name_of_user(uid_t uid, const char *name, char ret_name[static SESSION_NAME_MAX + 1],
                 struct failure *failure);

/* Whether NAME is one of those, of any user. */
bool name_is_of_user(const char *name);

#define NAME_NUMBER_MAX 99999u /* of names that are alike, made up in the same second */

/*
 * NAME with a number, such as "capture-20261121-060512-002": with three digits or more, so that
 * lists of them are sorted. A NAME that is too long loses its end.
 */
void name_number(const char *name, unsigned int number, char ret_name[static SESSION_NAME_MAX + 1]);

/*
 * Makes up a name that is not taken: STEM (at most 42 characters) and the local time, such as
 * "capture-20261121-060512"; if that is taken, it is numbered from 2 on.
 */
void name_make_up(const char *stem, bool (*is_taken)(const void *userdata, const char *name),
                  const void *userdata, char ret_name[static SESSION_NAME_MAX + 1]);
