/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A table whose columns are as wide as their widest cell, or as a terminal permits. Any thread that
 * owns it.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/util.h"

struct table;

/*
 * COLUMNS is the head, separated by blanks: "~NAME STATE >RECORDS". Before a name stand its marks:
 *
 *   '>'  it is aligned to the right
 *   '~'  its cells may be shortened in the middle
 *   '?'  it may be left out, the last such column first
 *   '/'  its cells may have a line of their own, after the row
 *
 * The last three apply if the table is wider than it may be. Returns 0 or -ENOMEM.
 */
int table_new(const char *columns, struct table **ret_table);
struct table *table_free(struct table *table);

static inline void table_freep(struct table **table)
{
    *table = table_free(*table);
}

#define _cleanup_table_ _cleanup_(table_freep)

/* Appends the next cell, row by row. A cell for which there is no memory stays empty. */
void table_add(struct table *table, const char *format, ...) _printf_(2, 3);

/* The same for a count, with its thousands separated. */
void table_add_count(struct table *table, uint64_t count);

/*
 * Prints the head and all rows, each line after INDENT blanks. WIDTH is what fits on a line, 0: any
 * number of characters. Once.
 */
void table_print(struct table *table, FILE *file, int indent, int width);

/*
 * The WIDTH of tables on standard output: 0 if they are wanted in full, or if it is no terminal.
 * To be called before a pager takes its place.
 */
int table_terminal_width(bool full);

/* One labelled line, "   File: ...", as all blocks of status have them. */
void table_print_field(FILE *file, const char *label, const char *format, ...) _printf_(3, 4);
