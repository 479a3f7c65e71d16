/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Commands on another host, through ssh(1): the option -H, and socket addresses such as
 * "ssh://root@dom0/run/xentraced/control", where the path may be omitted. All commands run on that
 * host (ctl/served.h); their output is printed here, and the files that they write are files here.
 * What comes from that host is bounded and cleaned: it may be hostile. One thread.
 */

#include <stdbool.h>

struct ctl;
struct verb;

/*
 * Runs the command line of VERB on the other host if it names one: true with the exit code in
 * *RET_CODE. False: it is to run here, also if it has a mistake.
 */
bool remote_run(struct ctl *ctl, const struct verb *verb, int argc, char **argv, int *ret_code);

/* The same of a command with a syntax of its own, which writes the trace OUTPUT. */
bool remote_run_words(struct ctl *ctl, char **words, const char *output, bool force, int *ret_code);
