/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What a user may name of a record: what every record has, by the keys of `dump --json` (tsc, nsec,
 * cpu, event, name; and time, the seconds that dump prints), or a field of its event. A field that
 * is called as one of these is named with a prefix: "fields.cpu". One thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "trace/events.h"

struct merge_record;
struct record_text_style;

enum record_key_kind {
    RECORD_KEY_TIME, /* nanoseconds since the first record */
    RECORD_KEY_NSEC, /* the same */
    RECORD_KEY_TSC,
    RECORD_KEY_CPU,
    RECORD_KEY_EVENT,
    RECORD_KEY_NAME, /* has no number */
    RECORD_KEY_FIELD,
};

struct record_key {
    enum record_key_kind kind;
    const char *label; /* as the user wrote it; borrowed */
    const char *name;  /* without "fields." */
};

/*
 * NAME, which is borrowed. -EINVAL with a sentence in *RET_ERROR (free it): no event has such a
 * field; OPTION is the label of the option that it was given to.
 */
int record_key_parse(const char *option, const char *name, struct record_key *ret_key,
                     char **ret_error);

/* Whether some field of that name has TYPE. */
bool record_key_has_type(const struct record_key *key, enum event_type type);

/*
 * The number of KEY in RECORD, and the field that it is from (NULL: of every record). False: the
 * record does not have it.
 */
bool record_key_value(const struct record_key *key, const struct merge_record *record,
                      const struct record_text_style *style, uint64_t *ret_value,
                      const struct event_field **ret_field);
