/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A pager for what a command prints, as systemctl(1) starts it: $SYSTEMD_PAGER, else $PAGER, else
 * less or more; none if that is empty or "cat", or if standard output is no terminal. less is given
 * the options in $SYSTEMD_LESS, else "FRXMK": it ends by itself if all fits on one screen.
 *
 * While one runs, standard output is a pipe to it. One at a time; main thread.
 */

#include <stdbool.h>

struct pager;

/*
 * Starts it, unless it is not WANTED or there is none: then *RET_PAGER is NULL, and standard output
 * is as before. Decide about colors and the terminal's size first.
 */
void pager_open(bool wanted, struct pager **ret_pager);

/* Gives it the rest, and waits until the user has left it. NULL is fine. Returns NULL. */
struct pager *pager_close(struct pager *pager);

static inline void pager_closep(struct pager **pager)
{
    *pager = pager_close(*pager);
}

#define _cleanup_pager_ __attribute__((cleanup(pager_closep)))
