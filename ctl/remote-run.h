/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Commands that -H has run on the other host: those about files and devices there, whose output and
 * exit status are passed through, and those that write to a file of this host, to which their
 * records are streamed. The other commands connect to the daemon there (client_new()). One thread.
 */

#include <stdbool.h>

struct ctl;
struct verb;

/*
 * Runs the command line of VERB on the other host if it names one and the command is of that kind:
 * true with the exit code in *RET_CODE. False: it is to run here, also if it has a mistake.
 */
bool remote_run(struct ctl *ctl, const struct verb *verb, int argc, char **argv, int *ret_code);
