/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Chosen fields of records, as dump --fields prints them: one line a record, values in the order of
 * the list. One thread.
 */

#include <stddef.h>

#include "common/util.h"
#include "trace/record-text.h"

#define COLUMNS_MAX 32u

/* Enough for the line of any record. */
#define COLUMNS_TEXT_MAX (COLUMNS_MAX * (RECORD_VALUE_MAX + 64u))

struct columns;

/* LIST is "time,cpu,name,vcpu". -EINVAL with a sentence in *RET_ERROR (free it); -ENOMEM. */
int columns_new(const char *list, struct columns **ret_columns, char **ret_error);
struct columns *columns_free(struct columns *columns);

static inline void columns_freep(struct columns **columns)
{
    *columns = columns_free(*columns);
}

#define _cleanup_columns_ _cleanup_(columns_freep)

/*
 * "0.001234567 3 runnable_to_running d1v2" and a newline, no terminating zero; "-" for what the
 * record does not have. As JSON: an object, without what it does not have. Return their length; 0:
 * it has none of the fields, and no line.
 */
size_t columns_text(const struct columns *columns, char text[static COLUMNS_TEXT_MAX],
                    const struct merge_record *record, const struct record_text_style *style);
size_t columns_json(const struct columns *columns, char text[static COLUMNS_TEXT_MAX],
                    const struct merge_record *record, const struct record_text_style *style);
