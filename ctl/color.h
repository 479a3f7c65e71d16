/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Colors for people: sequences to be printed before and after a text, all of them empty where
 * colors are not wanted. Any thread.
 */

struct palette {
    const char *good, *warn, *bad; /* green, yellow, red; bold */
    const char *strong, *dim;
    const char *inverse;
    const char *end; /* of any of them */
};

/*
 * The palette for what is written to the descriptor FD: with colors only if that is a terminal that
 * has some. As systemctl(1): NO_COLOR, or SYSTEMD_COLORS=0, turns them off; SYSTEMD_COLORS=1 turns
 * them on, terminal or not. Static.
 *
 * To be called before a pager is started.
 */
const struct palette *palette_for(int fd);

/* With colors, or without any. Static. */
const struct palette *palette_of(int has_colors);
