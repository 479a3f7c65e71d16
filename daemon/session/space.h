/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Disk space for the output of a session: requests grants from the output for the sink, and handles
 * a full disk. Main thread; nothing here waits.
 */

struct storage;

/*
 * The storage's sink comes near the end of its grant: has another one sent to it, or the last one,
 * or waits until there is space.
 */
void space_extend(struct storage *storage);

/* No more looking: the session stops, or writes to another file. */
void space_stop_waiting(struct storage *storage);

/* STORAGE has another output, with a grant of its own: the answer to an old request is void. */
void space_reset(struct storage *storage);
