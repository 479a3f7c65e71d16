/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line. Each command has one table of its options, from which parsing, help, the
 * D-Bus message and the shell's completion are made: a new option is a line of that table and a
 * member of the struct that its value goes into.
 *
 * getopt's state is global: one parser at a time, main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct ctl;
struct verb;

/* What an option takes, and the member that its value goes into. */
enum args_type {
    ARGS_FLAG,     /* bool: no argument */
    ARGS_TEXT,     /* const char *, borrowed from argv, as all texts but ARGS_EVENTS */
    ARGS_NAME,     /* const char *: a word without a slash */
    ARGS_SESSION,  /* const char *: such a word, which names a session */
    ARGS_FILE,     /* const char *: not empty */
    ARGS_CHOICE,   /* const char *: one of the words in DETAIL, separated by blanks */
    ARGS_DURATION, /* uint64_t, microseconds, not 0; a number alone is in UNIT */
    ARGS_SIZE,     /* uint64_t, bytes, not 0; a number alone is in UNIT */
    ARGS_SIZE_OR_0,
    ARGS_COUNT,  /* uint32_t, not 0, of DETAIL ("pages") */
    ARGS_EVENTS, /* char *, to be freed: all lists that were given, joined by commas */
    ARGS_CPUS,   /* const char *: a CPU list that is not empty */
};

struct args_option {
    const char *name;     /* without the dashes; NULL in a heading of the help */
    char letter;          /* 0: none */
    const char *argument; /* how the help calls it; NULL: none */
    enum args_type type;
    size_t offset;      /* of the member */
    uint64_t unit;      /* of a number alone; ARGS_DURATION, ARGS_SIZE */
    const char *detail; /* ARGS_CHOICE, ARGS_COUNT; of a name, what it names ("a session") */
    const char *key;    /* in the D-Bus message; NULL: the option is the client's own */
    const char *help;   /* lines; NULL with a name of NULL: the table ends */
};

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
 * Ends a command whose arguments were refused with R < 0: shows VERB's help for -ECANCELED, else
 * ERROR (which it frees) and where to read on. Returns the exit code.
 */
int args_exit(const struct verb *verb, int r, char *error);

/* -EINVAL with a sentence if NAME cannot name WHAT ("a capture"): a word without a slash can. */
int args_check_name(const char *name, const char *what, char **ret_error);

/* The options of TABLE (NULL: none), as a help page shows them. */
void args_print_help(FILE *file, const struct args_option *table);

/*
 * The same and the global options for the shell's completion, a line each: "--time|-T duration",
 * "--on-reserve|--on-reserve choice stop rotate pause".
 */
void args_print_completion(FILE *file, const struct args_option *table);
