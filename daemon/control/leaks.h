/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that libsystemd (252) leaks: those of a message that it cannot parse. Their number is
 * known, but not which they are, so only a restart closes them. No correct client sends such a
 * message. Main thread.
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
 * A client of user UID has leaked COUNT more. If there are many, the daemon restarts itself as soon
 * as no capture is running, provided that the service manager starts it again and keeps the flight
 * recorder.
 */
void leaks_note(struct leaks *leaks, uid_t uid, unsigned int count);

/* Whether clients of user UID may pass descriptors; root always may. */
bool leaks_permit(const struct leaks *leaks, uid_t uid);
