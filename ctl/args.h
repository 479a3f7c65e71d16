/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line: getopt_long() with the global options built in, so that they may stand before
 * or after the command, and with sentences in place of its messages.
 *
 * getopt's state is global: one struct args at a time, main thread.
 */

#include <getopt.h>

#include "ctl/ctl.h"

struct args {
    struct ctl *ctl;
    int argc;
    char **argv;
    const struct option *options; /* of the command; val is its letter, or above 255 without one */
    bool until_command;           /* stop at the first word that is no option */
    /* internal */
    struct option *long_options;
    char *short_options;
};

/*
 * Finds the next option: 1 with its val in *RET_OPTION and its value in optarg; 0 at the end, when
 * the words that are left stand from argv[optind] on; -ECANCELED for --help; -EINVAL with a
 * sentence in *RET_ERROR (free it); -ENOMEM. Global options are stored in ctl and skipped.
 */
int args_next(struct args *args, int *ret_option, char **ret_error);

/* Frees what args_next() made; args_next() may then begin anew. */
void args_done(struct args *args);

/*
 * Ends a command whose arguments were refused with R < 0: shows VERB's help for -ECANCELED, else
 * ERROR (which it frees) and where to read on. Returns the exit code.
 */
int args_exit(const char *verb, int r, char *error);

/* Parses the arguments of a command with no options of its own and at most MAX words. */
int args_parse_words(struct ctl *ctl, int argc, char **argv, int max, char **ret_error);

/* -EINVAL with a sentence in *RET_ERROR if more than MAX words are left. */
int args_check_words(int argc, char **argv, int max, char **ret_error);
