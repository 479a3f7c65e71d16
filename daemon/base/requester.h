/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Who asked for something: a user and a process, as the kernel reported them when the client
 * connected. Recorded in the log, in sidecars and in `status`. Any thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/person.h"

#define REQUESTER_COMM_MAX 64u
#define REQUESTER_TEXT_MAX 192u

struct requester {
    bool is_set;                   /* else nobody asked: the configuration, a trigger, a signal */
    uid_t uid;                     /* (uid_t)-1: unknown */
    uid_t person;                  /* whom limits count it as: person.h */
    pid_t pid;                     /* 0: unknown */
    char comm[REQUESTER_COMM_MAX]; /* valid UTF-8; "": unknown. A process chooses it itself */
};

/* Whether it is a user other than root, for whom limits are. */
bool requester_is_user(const struct requester *requester);

/* "root, UID 0 (xentracectl, PID 1234)". Returns TEXT. */
const char *requester_describe(char text[static REQUESTER_TEXT_MAX],
                               const struct requester *requester);
