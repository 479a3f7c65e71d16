/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * A condition on records, as --where takes it: 'FIELD OP VALUE', several with "and" between them.
 *
 *   vcpu = d1v2       reason = NPF      runtime >= 1000000 and cpu = 3     error & 4
 *
 * OP is = (or ==), !=, <, <=, >, >= or & (some of these bits are set). VALUE is a number (decimal,
 * 0x..., negative), a vCPU, or the name of a value. A record without the field does not match.
 *
 * One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/util.h"

struct condition;
struct merge_record;
struct record_text_style;

/* -EINVAL with a sentence in *RET_ERROR (free it); -ENOMEM. */
int condition_new(const char *text, struct condition **ret_condition, char **ret_error);
struct condition *condition_free(struct condition *condition);

static inline void condition_freep(struct condition **condition)
{
    *condition = condition_free(*condition);
}

#define _cleanup_condition_ _cleanup_(condition_freep)

bool condition_matches(const struct condition *condition, const struct merge_record *record,
                       const struct record_text_style *style);
