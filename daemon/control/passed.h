/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Descriptors that a client passes with a message. sd-bus never has them: it closes those of a
 * message on the main thread, where a file system that does not answer would be waited for. It is
 * given stand-ins, each of which is known by its file. Main thread.
 */

#include <stdbool.h>

#define PASSED_MAX 2u /* an output and its sidecar */

/* Those of one message. */
struct passed {
    int fds[PASSED_MAX];
    unsigned int count;
    bool is_refused; /* there were more, or this client may not: `fds` has none of them */
};

/* Each is a file of its own. */
struct stand_ins {
    int fds[PASSED_MAX];
};

/* Returns 0 or a negative errno. stand_ins_done() takes what that leaves, too. */
int stand_ins_init(struct stand_ins *stand_ins);
void stand_ins_done(struct stand_ins *stand_ins);

/* The descriptor of PASSED for which FD stands; -1 if FD is no stand-in. */
int stand_ins_find(const struct stand_ins *stand_ins, const struct passed *passed, int fd);
