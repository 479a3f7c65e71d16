/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* What one key of the configuration is. Any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_key;
struct config_reading;
struct config_origin;

/* A value that is being read: where from, and where complaints go (config-reading.h). */
struct config_value {
    struct config_reading *reading;
    const struct config_origin *origin;
    const struct config_key *key;
};

/* Reads TEXT into FIELD; if it is wrong, leaves FIELD as it is and returns config_refuse(). */
typedef int (*config_parse_fn)(const struct config_value *value, const char *text, void *field);

/* When a changed value is applied. */
enum config_applies {
    CONFIG_AT_RELOAD,
    CONFIG_AT_RESTART,
};

struct config_key {
    const char *section; /* config_section.title */
    const char *name;
    config_parse_fn parse; /* config-values.h */
    size_t offset;         /* of the field in struct config, or in the section's struct */
    size_t bytes;          /* of the field */
    const char *standard;  /* the default, as it is typed; "": the field is zero */
    enum config_applies applies;
    const char *summary; /* half a line */
    uint32_t min, max;   /* of numbers */
    bool is_condition;   /* of a trigger; given twice, one of them would be lost */
};

/* Where KEY's value is: BASE is the struct config, or the item. */
static inline void *config_field(void *base, const struct config_key *key)
{
    return (char *)base + key->offset;
}
