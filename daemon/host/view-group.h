/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* The group whose members may see the status and read the recorded files. */

#define VIEW_GROUP "xentrace"

/*
 * From now on, files created by this process belong to VIEW_GROUP, if it exists, and other users
 * may not read them. Called before the first thread is started. As a service, Group= of the unit
 * does this, and nothing remains to do. Returns 0 or a negative errno; -EPERM: not permitted.
 */
int view_group_own_files(void);
