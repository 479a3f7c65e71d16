/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Sentences in lines as wide as a terminal. Any thread.
 */

#include <stdio.h>

/*
 * Prints TEXT and a newline after INDENT blanks; further lines after HANGING ones. Lines are
 * divided between words, so that each has at most WIDTH columns; 0: any number. Color sequences
 * have none. Returns the number of lines.
 */
unsigned int wrap_print(FILE *file, const char *text, unsigned int width, unsigned int indent,
                        unsigned int hanging);

/* How many lines of WIDTH columns that would be. */
unsigned int wrap_count(const char *text, unsigned int width, unsigned int indent,
                        unsigned int hanging);
