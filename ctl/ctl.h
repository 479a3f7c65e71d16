/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * xentracectl: what all of its commands share. One thread; nothing here outlives main().
 */

#include <stdbool.h>

#include "common/util.h"

/* Exit codes, promised in xentracectl(1). */
enum ctl_exit {
    CTL_OK = 0,
    CTL_FAILURE = 1, /* refused, ended early, damaged, no daemon */
    CTL_USAGE = 2,   /* the command line */
};

/* The global options, as far as they have been read. */
struct ctl {
    const char *socket;
    bool json;
};

/* A command. RUN gets argv[0] = the command's name and returns an enum ctl_exit. */
struct verb {
    const char *name;
    int (*run)(struct ctl *ctl, int argc, char **argv);
    const char *help; /* the whole page of `COMMAND --help` */
};

/* The command called NAME, or NULL. */
const struct verb *verb_find(const char *name);

/* The one nearest to TYPED, for a suggestion, or NULL. Static. */
const char *verb_suggest(const char *typed);

/* The page of `xentracectl --help`. Static. */
const char *verb_overview(void);

/* Prints one line for people on stderr: "xentracectl: ...". */
void ctl_error(const char *format, ...) _printf_(1, 2);

/* As ctl_error() with a sentence that another module made; NULL means there was no memory for it.
 */
void ctl_error_sentence(const char *sentence);

int cmd_start(struct ctl *ctl, int argc, char **argv);
int cmd_record(struct ctl *ctl, int argc, char **argv);
int cmd_stop(struct ctl *ctl, int argc, char **argv);
int cmd_snapshot(struct ctl *ctl, int argc, char **argv);
int cmd_trigger(struct ctl *ctl, int argc, char **argv);
int cmd_rotate(struct ctl *ctl, int argc, char **argv);
int cmd_status(struct ctl *ctl, int argc, char **argv);
int cmd_list(struct ctl *ctl, int argc, char **argv);
int cmd_info(struct ctl *ctl, int argc, char **argv);
int cmd_events(struct ctl *ctl, int argc, char **argv);
int cmd_version(struct ctl *ctl, int argc, char **argv);
int cmd_help(struct ctl *ctl, int argc, char **argv);
