/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that libsystemd (252) keeps open for good: those of a message that it cannot read. It
 * is known how many they are, but not which, so only a new process is rid of them. Main thread.
 */

#include <stdbool.h>

struct leaks;
struct manager;

/* MANAGER is borrowed. */
int leaks_new(struct manager *manager, struct leaks **ret_leaks);
struct leaks *leaks_free(struct leaks *leaks); /* Takes NULL; returns NULL. */

/*
 * COUNT more are lost. When there are many, the daemon restarts itself as soon as no capture runs,
 * if the service manager starts it again and keeps the flight recorder.
 */
void leaks_note(struct leaks *leaks, unsigned int count);

/* Whether there are so many that only root may pass descriptors, until the restart. */
bool leaks_are_too_many(const struct leaks *leaks);
