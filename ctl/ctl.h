/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * xentracectl: what all of its commands share. One thread; nothing here outlives main().
 */

#include <stdbool.h>
#include <stdio.h>

#include "common/util.h"

struct args_option;

/* Exit codes, promised in xentracectl(1). */
enum ctl_exit {
    CTL_OK = 0,
    CTL_FAILURE = 1, /* refused, ended early, damaged, no daemon */
    CTL_USAGE = 2,   /* the command line */
    CTL_SHORTER = 3, /* a snapshot is complete, but covers less time than was asked for */
};

/* The global options. */
struct ctl {
    const char *socket;
    bool json;
};

/* A command. Each cmd-*.c defines one. */
struct verb {
    const char *name;
    /* Receives argv[0] = the command's name and returns an enum ctl_exit. */
    int (*run)(struct ctl *ctl, int argc, char **argv);
    const char *words;                 /* its arguments: "[NAME]"; "": none */
    const char *completes;             /* what the shell offers for them: "captures"; NULL: none */
    const char *summary;               /* in the overview */
    const char *help;                  /* first part of its help page */
    const struct args_option *options; /* NULL: none */
    const char *examples;              /* last part of its help page; NULL: none */
};

extern const struct verb verb_start, verb_record, verb_stop, verb_snapshot, verb_trigger,
    verb_rotate, verb_reload, verb_status, verb_list, verb_info, verb_events, verb_version,
    verb_help;

/* The command called NAME, or NULL. */
const struct verb *verb_find(const char *name);

/* Reports on stderr that there is no command TYPED, and returns the exit code. */
int verb_refuse(const char *typed);

/* The help page of VERB; NULL: the overview. */
void verb_print_help(FILE *file, const struct verb *verb);

/* Prints one line for people on stderr: "xentracectl: ...". */
void ctl_error(const char *format, ...) _printf_(1, 2);

/* As ctl_error() with a sentence that another module made; NULL means there was no memory for it.
 */
void ctl_error_sentence(const char *sentence);
