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
    CTL_FAILURE = 1,     /* refused, ended early, damaged, no daemon */
    CTL_USAGE = 2,       /* the command line */
    CTL_SHORTER = 3,     /* a snapshot is complete, but covers less time than was asked for */
    CTL_NO_RECORDER = 3, /* status: the flight recorder, or the daemon, does not run */
    CTL_LOSING = 4,      /* status: records are being lost now */
};

/* The global options. */
struct ctl {
    const char *socket; /* for client_new(): a path */
    const char *host;   /* -H; NULL: this machine */
    bool json;
    bool no_pager;
    const char *default_socket; /* without --socket */
};

/* What -H means for a command. */
enum verb_remote {
    VERB_RUNS_THERE,
    VERB_LIVE,       /* the same; a terminal is passed through */
    VERB_STAYS_HERE, /* it needs no host, or calls remote_run_words() */
};

/*
 * A command. Each cmd-*.c defines one, and verbs.c lists them. The verbs and their options
 * (ctl/args-table.h) are the only description of the command line: the parser, the help pages, the
 * shells' completions, the synopsis of xentracectl(1) and the hints for wrong input are made from
 * them.
 */
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
    bool destroys;                     /* takes something away for good: no hint suggests it */
    enum verb_remote remote;           /* with -H */
};

extern const struct verb verb_cut, verb_diff, verb_repair, verb_start, verb_record, verb_stop,
    verb_snapshot, verb_trigger, verb_rotate, verb_reload, verb_doctor, verb_monitor, verb_status,
    verb_list, verb_vacuum, verb_remove, verb_info, verb_report, verb_why, verb_dump, verb_export,
    verb_events, verb_metrics, verb_timeline, verb_top, verb_version, verb_xentrace, verb_help;

/* The command called NAME, or NULL. */
const struct verb *verb_find(const char *name);

/* Whether "--" begins another program's command in its arguments. */
bool verb_takes_command(const struct verb *verb);

/* All commands for people, in the order of the overview. Static. */
const struct verb *const *verbs_all(size_t *ret_count);

/* Reports on stderr that there is no command TYPED, and returns the exit code. */
int verb_refuse(const char *typed);

/* The help page of VERB; NULL: the overview. */
void verb_print_help(FILE *file, const struct verb *verb);

/*
 * Prints one line on stderr: "xentracectl: ..." for people; with --json the error object of
 * docs/control-protocol.md. A warning is about something that does not make the command fail.
 */
void ctl_error(const char *format, ...) _printf_(1, 2);
void ctl_warning(const char *format, ...) _printf_(1, 2);

/* As ctl_error() with a sentence that another module made; NULL means there was no memory for it.
 */
void ctl_error_sentence(const char *sentence);
