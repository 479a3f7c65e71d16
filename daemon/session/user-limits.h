/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Snapshots of users other than root, held within [limits]: what each user may take (budget.h), and
 * what is set aside for root and the triggers whatever users do:
 *
 *   places   fewer snapshots at once than a ring has pins and than the daemon writes (budget.h)
 *   disk     keep-for-triggers= of free space, beyond the reserve
 *   memory   half of what pool and rings may take beyond their own: beyond that, users' snapshots
 *            are refused, and those that are being written are given up
 *   names    of their own, with the prefix "snapshot-user-", and a hundredth of the numbers that
 * made-up names may have
 *
 * Main thread; nothing here waits.
 */

#include "daemon/base/failure.h"
#include "daemon/config/config.h"
#include "daemon/session/snapshot.h"

struct grower;
struct sd_event;
struct user_limits;
struct workers;

/*
 * EVENT, WORKERS and GROWER are borrowed, CONFIG is copied. What was used of the day's limits is
 * read from and saved to the directory STATE_DIR_FD, which is copied. -ENOMEM, or an error of the
 * event loop's.
 */
int user_limits_new(struct sd_event *event, struct workers *workers, int state_dir_fd,
                    const struct config *config, struct grower *grower,
                    struct user_limits **ret_limits);
/* Other limits from now on: CONFIG was read again. Usage so far counts. */
void user_limits_set_config(struct user_limits *limits, const struct config *config);
/* When no snapshot is left. Takes NULL; returns NULL. */
struct user_limits *user_limits_free(struct user_limits *limits);

/*
 * A snapshot is asked for by OPTIONS->user: adds the limits to OPTIONS, for snapshot_new(). NAME is
 * room for the name that it is given. Returns 0; or -EDQUOT (ERROR_LIMIT), -EPERM
 * (ERROR_NOT_PERMITTED), -EINVAL or -ENOMEM, and FAILURE. A grant of the budget is given back by
 * one of the two that follow.
 */
int user_limits_admit(struct user_limits *limits, struct snapshot_options *options,
                      char name[static SESSION_NAME_MAX + 1], struct failure *failure);

/* Whether a live view is asked for: the newest second, into a pipe. */
bool user_limits_is_live(const struct snapshot_options *options);

/* Space that users' snapshots leave free on the disk, in addition to the reserve. */
uint64_t user_limits_keep_bytes(const struct user_limits *limits);

/* SNAPSHOT was begun with OPTIONS; NULL: it could not be. */
void user_limits_begin(struct user_limits *limits, const struct snapshot_options *options,
                       struct snapshot *snapshot);

/* SNAPSHOT is released. */
void user_limits_end(struct user_limits *limits, struct snapshot *snapshot);
