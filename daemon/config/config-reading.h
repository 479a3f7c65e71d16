/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What config_read() found: the configuration, where each of its values comes from, and what is
 * wrong with the files. It owns all its texts. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>

#include "common/util.h"
#include "daemon/config/config.h"

struct config_key;

/* A place in a file. The file's name is the reading's. */
struct config_origin {
    const char *file;
    int line; /* from 1; 0: the file as a whole */
};

/* A value that a file gives; the last one of a section and key is in force. */
struct config_setting {
    char *section;                /* as in the file: "daemon", "trigger crash" */
    const struct config_key *key; /* NULL: the section's header */
    char *value;                  /* as typed, in UTF-8 that can be printed */
    struct config_origin origin;
};

struct config_problem {
    bool is_error; /* the configuration cannot be used; else a warning */
    char *text;    /* half a sentence: no capital letter, no full stop */
    struct config_origin origin;
};

struct config_reading {
    struct config config; /* the defaults, if there are errors that say nothing better */
    char **files;         /* that were read, in that order */
    size_t nr_files;
    struct config_setting *settings; /* in the order in which they were first given */
    size_t nr_settings;
    struct config_problem *problems; /* by file and line */
    size_t nr_problems;
    size_t nr_errors; /* of the problems */
    bool has_no_memory;
};

struct config_reading *config_reading_free(struct config_reading *reading);

static inline void config_reading_freep(struct config_reading **reading)
{
    config_reading_free(*reading);
}

#define _cleanup_reading_ _cleanup_(config_reading_freep)

/* The setting of KEY in SECTION ("trigger crash"); NULL: no file has it. An empty value is one. */
const struct config_setting *config_find_setting(const struct config_reading *reading,
                                                 const char *section, const struct config_key *key);

/*
 * One line for people of PROBLEM: "FILE, line 3: 'x' is not a size; see xentraced.conf(5)." Free
 * it. NULL: out of memory.
 */
char *config_describe_problem(const struct config_problem *problem);

/* The first error, described; NULL: there is none, or no memory. */
char *config_describe_first_error(const struct config_reading *reading);

/* --- For those who read. Out of memory, has_no_memory is set. --- */

/* Adds a file's name, which lives as long as READING. NULL: out of memory. */
const char *config_add_file(struct config_reading *reading, const char *path);

/* KEY (NULL: the header) of SECTION is VALUE from here on. */
void config_set(struct config_reading *reading, const char *section, const struct config_key *key,
                const char *value, const struct config_origin *origin);

/* Something is wrong at ORIGIN. config_refuse() returns -EINVAL. */
_printf_(3, 4) int config_refuse(struct config_reading *reading, const struct config_origin *origin,
                                 const char *format, ...);
_printf_(3, 4) void config_warn(struct config_reading *reading, const struct config_origin *origin,
                                const char *format, ...);

/* Sorts the problems from index FIRST on by their lines. */
void config_sort_problems(struct config_reading *reading, size_t first);
