/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The table of commands for the completions of bash, zsh and fish, which `xentracectl help
 * --completion [COMMAND]` prints: one line for each thing, fields separated by a tab, "-" for an
 * empty one.
 *
 *   command  NAME    SUMMARY                                  without COMMAND
 *   words    KIND                                             what the arguments of COMMAND are
 *   option   --NAME  -LETTER  KIND  ARGUMENT  CHOICES  HELP   of COMMAND, then those of all
 *
 * KIND is flag, text, host, session, file, choice (one of CHOICES, separated by blanks), duration,
 * size, count, events, cpus; of arguments also none, captures, running, triggers, files, commands.
 */

#include <stdio.h>

struct verb;

void completion_data_print(FILE *file, const struct verb *verb); /* NULL: without COMMAND */
