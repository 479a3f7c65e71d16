/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The group whose members may look, and read what was recorded.
 */

#define VIEW_GROUP "xentrace"

/*
 * Files that this process makes belong to VIEW_GROUP from now on, if there is one, and nobody else
 * may read them. Before the first thread. As a service it is the unit's Group= that does it, and
 * nothing is left to do here. Returns 0, or a negative errno: -EPERM where that is not for us.
 */
int view_group_own_files(void);
