/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that libsystemd (252) keeps open for good: those of a message that it cannot read. It
 * is known how many they are, but not which, so only a new process is rid of them. No honest client
 * sends such a message. Main thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#define LEAKS_OF_USER_MAX 8u /* descriptors; a user who cost more may pass none any more */
#define LEAKS_USERS_MAX   8u /* with more such users, only root may */

struct leaks;
struct manager;

/* MANAGER is borrowed. */
int leaks_new(struct manager *manager, struct leaks **ret_leaks);
struct leaks *leaks_free(struct leaks *leaks); /* Takes NULL; returns NULL. */

/*
 * A client of user UID has cost COUNT more. When there are many, the daemon restarts itself as soon
 * as no capture runs, if the service manager starts it again and keeps the flight recorder.
 */
void leaks_note(struct leaks *leaks, uid_t uid, unsigned int count);

/* Whether clients of user UID may pass descriptors; root always may. */
bool leaks_permit(const struct leaks *leaks, uid_t uid);
