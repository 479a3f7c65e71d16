/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The command line. Each command has one table of its options, from which parsing, help, the
 * call to the daemon, the shells' completions and the hints for wrong input are made: a new option
 * is a line of that table, a member of the struct that its value goes into, and an entry in
 * xentracectl(1), which tests/ctl/test-manual compares with the tables. Constant; any thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The type of an option's value, and of the member that stores it. */
enum args_type {
    ARGS_FLAG,     /* bool: no argument */
    ARGS_DESTROY,  /* bool: no argument; takes something away for good: no hint suggests it */
    ARGS_TEXT,     /* const char *, borrowed from argv, as all texts but ARGS_EVENTS */
    ARGS_NAME,     /* const char *: a word without a slash */
    ARGS_SESSION,  /* const char *: such a word, which names a session */
    ARGS_FILE,     /* const char *: not empty */
    ARGS_HOST,     /* const char *: "user@host"; remote_run() checks it */
    ARGS_CHOICE,   /* const char *: one of the words in DETAIL, separated by blanks */
    ARGS_DURATION, /* uint64_t, microseconds, not 0; a number alone is in UNIT */
    ARGS_SIZE,     /* uint64_t, bytes, not 0; a number alone is in UNIT */
    ARGS_SIZE_OR_0,
    ARGS_COUNT,  /* uint32_t, not 0, of DETAIL ("pages") */
    ARGS_EVENTS, /* char *, to be freed: all lists that were given, joined by commas */
    ARGS_CPUS,   /* const char *: a CPU list that is not empty */
    ARGS_LIST,   /* struct args_list: all values that were given, none of them empty */
};

/* Borrowed from argv. */
#define ARGS_LIST_MAX 32u
struct args_list {
    const char *values[ARGS_LIST_MAX];
    unsigned int nr;
};

struct args_option {
    const char *name;     /* without the dashes; NULL in a heading of the help */
    char letter;          /* 0: none */
    const char *argument; /* how the help calls it; NULL: none */
    enum args_type type;
    size_t offset;      /* of the member */
    uint64_t unit;      /* of a number alone; ARGS_DURATION, ARGS_SIZE */
    const char *detail; /* ARGS_CHOICE, ARGS_COUNT; of a name, what it names ("a session") */
    const char *key;    /* in the call to the daemon; NULL: the option is the client's own */
    const char *help;   /* lines; NULL with a name of NULL: the table ends */
};

/* Those that all commands have. */
extern const struct args_option args_global_options[];

/* "-T", or "--max-size" where there is no letter. Returns BUFFER. */
#define ARGS_LABEL_MAX 64u
const char *args_label(char buffer[static ARGS_LABEL_MAX], const struct args_option *option);

/* The number of lines of TABLE (NULL: 0), headings too. */
size_t args_count(const struct args_option *table);

/* Whether a hint may suggest it. */
static inline bool args_is_suggested(const struct args_option *option)
{
    return option->name && option->type != ARGS_DESTROY;
}

/* The option of TABLE (NULL: none) with that name, or NULL. */
const struct args_option *args_find(const struct args_option *table, const char *name);
