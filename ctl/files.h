/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The traces in the daemon's state directory: calls, and how they are shown. Print functions take
 * documents that were made printable.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "ctl/client.h"

/* Limits of Vacuum(); 0: not given. All 0: those of the configuration. */
struct files_limits {
    uint64_t max_use_bytes, keep_free_bytes, max_age_usec;
    bool dry_run;
};

/* As client_call(). */
int files_list(const char *socket, struct json_object **ret_files, char **ret_error);
int files_vacuum(const char *socket, const struct files_limits *limits,
                 struct json_object **ret_files, char **ret_error);
/* NAMES ends with NULL. */
int files_remove(const char *socket, char *const *names, struct json_object **ret_files,
                 char **ret_error);

/* The table, and a line with the sums and the limits. */
void files_print(FILE *file, struct json_object *files, int width);

/* What vacuum or remove removed, or would remove. */
void files_print_removed(FILE *file, struct json_object *files, int width);
