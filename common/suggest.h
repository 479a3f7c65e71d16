/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * "Did you mean ...?": the nearest known word. Any thread; nothing is owned.
 */

#include <stddef.h>

/*
 * Returns the word of COUNT WORDS that is nearest to TYPED by Damerau-Levenshtein distance, or that
 * begins with TYPED. NULL: more than a third of the letters differ. Case is ignored; of several
 * equally near words, the first is returned.
 */
const char *suggest_nearest(const char *typed, const char *const *words, size_t count);
