/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Whom limits count: a person. A person is a uid_t, like the UIDs that it replaces wherever
 * something is counted:
 *
 *   PERSON_ROOT     root, who has no limits
 *   a UID           a member of a group with access, as the group database has it
 *   PERSON_OTHERS   everybody else who comes with such a group, together: subordinate UIDs of user
 *                   namespaces, DynamicUser= units, and UIDs that are not looked up yet
 *
 * A user has one UID, but may change to 65,536 subordinate ones and keep its groups. Who owns a
 * capture and who is named in the log is still decided by UID. control/persons.h looks persons up.
 */

#include <sys/types.h>

#define PERSON_ROOT   ((uid_t)0)
#define PERSON_OTHERS ((uid_t)-1) /* no user has this UID: setresuid(2) takes it as "unchanged" */

/* "UID 1000", or "users that the group database does not name". Returns TEXT. */
#define PERSON_TEXT_MAX 64u
const char *person_describe(char text[static PERSON_TEXT_MAX], uid_t person);
