/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Gives a finished file its name. Nothing that exists is ever replaced. May wait for the disk:
 * belongs to a worker.
 */

/*
 * Renames HIDDEN to NAME, both in DIRECTORY_FD. Returns 0; -EEXIST if there is a NAME already, of
 * any kind, and nothing has changed then; or another negative errno.
 */
int place_file(int directory_fd, const char *hidden, const char *name);
