/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line is parsed by the tables of ctl/args-table.h.
 *
 * getopt's state is global: one parser at a time, main thread.
 */

#include <stdint.h>
#include <stdio.h>

#include "ctl/args-table.h"

struct ctl;
struct verb;

/*
 * Parses the options of TABLE (NULL: none) into the struct VALUES, and sets bit i of *RET_GIVEN
 * (may be NULL) if the i-th option of TABLE was given; at most 64. Global options may stand
 * anywhere and go into CTL. At most MAX_WORDS other words may be left, which stand from
 * argv[optind] on; MAX_WORDS < 0: parsing ends at the first word that is no option.
 *
 * Returns 0; -ECANCELED for --help; -EINVAL with a sentence in *RET_ERROR (free it); -ENOMEM.
 * VALUES may have been written to in any case.
 */
int args_parse(struct ctl *ctl, const struct args_option *table, int argc, char **argv,
               int max_words, void *values, uint64_t *ret_given, char **ret_error);

/*
 * The command line again, as words for another xentracectl, NULL at the end: argv[0], the options
 * of TABLE and the global ones in their long form but for those whose names are in LEFT_OUT, then
 * the words of ADDED (may be NULL), then the other words. 0; -ENOMEM; -EINVAL if it has a mistake.
 */
int args_rebuild(const struct args_option *table, int argc, char **argv,
                 const char *const *left_out, const char *const *added, char ***ret_words);
void args_free_words(char ***words);

/*
 * Ends a command whose arguments were refused with R < 0: shows VERB's help for -ECANCELED, else
 * ERROR (which it frees) and where to read on. Returns the exit code.
 */
int args_exit(const struct verb *verb, int r, char *error);

/* -EINVAL with a sentence if NAME cannot name WHAT ("a capture"): a word without a slash can. */
int args_check_name(const char *name, const char *what, char **ret_error);

/* The options of TABLE (NULL: none), as a help page shows them. */
void args_print_help(FILE *file, const struct args_option *table);
