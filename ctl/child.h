/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Runs a command while something else is done, as perf(1) does: its process is created first and
 * waits, so that it is recorded from its beginning. One thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#define CHILD_NOT_FOUND 127 /* exit codes of shells */
#define CHILD_NOT_RUN   126
#define CHILD_BY_SIGNAL 128 /* plus the signal */

struct child;

/*
 * Prepares the command ARGV, which is looked for in PATH. QUIET_STDOUT: its standard output is our
 * standard error, as ours carries records. Signals that are blocked now are blocked in it. Returns
 * 0; -ENOENT or -EACCES with a sentence in *RET_ERROR (free it) if it cannot be run; another errno.
 */
int child_new(char **argv, bool quiet_stdout, struct child **ret_child, char **ret_error);

/* Ends a command that has not begun; one that runs is left alone. NULL is fine. Returns NULL. */
struct child *child_free(struct child *child);

static inline void child_freep(struct child **child)
{
    *child = child_free(*child);
}

/* Lets it begin. -EACCES with a sentence if it turns out that it cannot be run. */
int child_begin(struct child *child, char **ret_error);

pid_t child_pid(const struct child *child);

/* STATUS as of waitpid(2), as shells report it. */
int child_exit_code(int wait_status);
