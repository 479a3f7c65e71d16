// SPDX-License-Identifier: GPL-2.0-or-later

/*
 * Damerau-Levenshtein in its restricted form (optimal string alignment: no pair of letters is
 * swapped and then changed again), which is what typing errors look like. Three rows of the table
 * are enough, and words are short, so everything lives on the stack.
 */

#include "common/suggest.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "common/text.h"

#define WORD_MAX 63u /* a longer word is not a typing error of anything we know */

struct distance_rows {
    unsigned int before_last[WORD_MAX + 1];
    unsigned int last[WORD_MAX + 1];
    unsigned int current[WORD_MAX + 1];
};

static unsigned int min_uint(unsigned int a, unsigned int b)
{
    return a < b ? a : b;
}

static bool same_letter(char a, char b)
{
    return text_to_lower(a) == text_to_lower(b);
}

/* Fills rows->current for the letter A[i - 1], from the two rows before it. */
static void distance_row(struct distance_rows *rows, const char *a, size_t i, const char *b,
                         size_t b_length)
{
    rows->current[0] = (unsigned int)i;
    for (size_t j = 1; j <= b_length; j++) {
        unsigned int change = same_letter(a[i - 1], b[j - 1]) ? 0 : 1;
        unsigned int best = rows->last[j - 1] + change;

        best = min_uint(best, rows->last[j] + 1);
        best = min_uint(best, rows->current[j - 1] + 1);
        if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
            best = min_uint(best, rows->before_last[j - 2] + 1);
        rows->current[j] = best;
    }
}

static unsigned int distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    struct distance_rows rows = {0};

    for (size_t j = 0; j <= b_length; j++)
        rows.current[j] = (unsigned int)j;
    for (size_t i = 1; i <= a_length; i++) {
        memcpy(rows.before_last, rows.last, sizeof(rows.last));
        memcpy(rows.last, rows.current, sizeof(rows.current));
        distance_row(&rows, a, i, b, b_length);
    }
    return rows.current[b_length];
}

static bool is_beginning(const char *typed, size_t typed_length, const char *word)
{
    for (size_t i = 0; i < typed_length; i++) {
        if (word[i] == '\0' || !same_letter(typed[i], word[i]))
            return false;
    }
    return true;
}

const char *suggest_nearest(const char *typed, const char *const *words, size_t count)
{
    size_t typed_length = strnlen(typed, WORD_MAX + 1);
    unsigned int nearest_distance = UINT32_MAX;
    const char *nearest = NULL;

    if (typed_length == 0 || typed_length > WORD_MAX)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        size_t length = strnlen(words[i], WORD_MAX + 1);
        size_t longer = length > typed_length ? length : typed_length;
        unsigned int wrong;

        if (length > WORD_MAX)
            continue;
        wrong = distance(typed, typed_length, words[i], length);
        if (wrong * 3 > longer && !is_beginning(typed, typed_length, words[i]))
            continue;
        if (wrong < nearest_distance) {
            nearest_distance = wrong;
            nearest = words[i];
        }
    }
    return nearest;
}
