/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Parsers for the kinds of values. Each parses TEXT, as typed and not empty, into FIELD, and
 * reports problems with config_refuse() or config_warn(). See config_parse_fn. Any thread.
 */

#include "daemon/config/config-key.h"

/* uint64_t, in bytes: from 2M to 64G; ... or 0 for "auto". */
int config_value_memory(const struct config_value *value, const char *text, void *field);
int config_value_memory_or_auto(const struct config_value *value, const char *text, void *field);

/*
 * uint64_t, in bytes. What is to stay free; a number alone is MiB, DISK_RESERVE_AUTO for "auto".
 * A limit from key->min on, LIMITS_AUTO for "auto". Of segments, 1M or more; of all of them.
 */
int config_value_reserve(const struct config_value *value, const char *text, void *field);
int config_value_limit(const struct config_value *value, const char *text, void *field);
int config_value_segment_size(const struct config_value *value, const char *text, void *field);
int config_value_keep_size(const struct config_value *value, const char *text, void *field);

/* struct disk_limit */
int config_value_disk_limit(const struct config_value *value, const char *text, void *field);

/* uint64_t, in microseconds. A number without a unit is seconds, and a warning says so. */
int config_value_time(const struct config_value *value, const char *text, void *field);
int config_value_time_above_zero(const struct config_value *value, const char *text, void *field);
int config_value_segment_time(const struct config_value *value, const char *text, void *field);
int config_value_time_or_none(const struct config_value *value, const char *text, void *field);

/* uint32_t, from key->min to key->max; a percent sign may follow; 0 for "auto". */
int config_value_number(const struct config_value *value, const char *text, void *field);
int config_value_number_or_auto(const struct config_value *value, const char *text, void *field);
int config_value_percent(const struct config_value *value, const char *text, void *field);
int config_value_pages_or_auto(const struct config_value *value, const char *text, void *field);

/* bool; of "zstd" or "no"; int: a priority of syslog(3); enum trigger_condition, by its word. */
int config_value_bool(const struct config_value *value, const char *text, void *field);
int config_value_compress(const struct config_value *value, const char *text, void *field);
int config_value_log_level(const struct config_value *value, const char *text, void *field);
int config_value_condition(const struct config_value *value, const char *text, void *field);

/* const char *: "rotate", "pause" or "stop"; static. */
int config_value_on_reserve(const struct config_value *value, const char *text, void *field);

/* char[], as typed; and valid as what the name says. */
int config_value_text(const struct config_value *value, const char *text, void *field);
int config_value_path(const struct config_value *value, const char *text,
                      void *field); /* absolute */
int config_value_group(const struct config_value *value, const char *text, void *field);
int config_value_unit_template(const struct config_value *value, const char *text, void *field);
int config_value_events(const struct config_value *value, const char *text, void *field);
int config_value_cpus(const struct config_value *value, const char *text, void *field);

/* struct event_set: events that a trigger can wait for. */
int config_value_watched_events(const struct config_value *value, const char *text, void *field);
