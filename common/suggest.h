/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * "Did you mean ...?": the nearest known word. Any thread; nothing is owned.
 */

#include <stddef.h>

/*
 * The one of COUNT WORDS that is nearest to TYPED by Damerau-Levenshtein distance (or of which
 * TYPED is a beginning), or NULL if none is near enough to be meant: at most a third of the letters
 * of the longer one wrong. Upper and lower case are alike; of several equally near ones the first.
 */
const char *suggest_nearest(const char *typed, const char *const *words, size_t count);
