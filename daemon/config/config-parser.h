/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * What the parts of the configuration's parser share. Private to daemon/config*.c. Main thread.
 */

#include <stdio.h>

#include "common/util.h"
#include "daemon/config/config.h"

struct config_parser {
    struct config config;
    FILE *file;
    int line;          /* that inih has read last */
    int problem_line;  /* that the problem is in; inih's own complaints have none */
    char problem[512]; /* "": none. Half a sentence; the first one is kept */

    /* The sections of triggers, config.triggers[i] each. */
    bool in_trigger; /* whether the section that is being read is one */
    struct {
        int line;       /* of its header */
        uint32_t given; /* conditions, 1 << enum trigger_condition each: one is right */
        bool has_count; /* count= was given */
        bool has_within;
    } trigger_notes[CONFIG_TRIGGERS_MAX];
};

/* Notes what is wrong at LINE, unless something was before, and returns -EINVAL. */
_printf_(3, 4) int config_problem(struct config_parser *parser, int line, const char *format, ...);

typedef int (*config_parse_fn)(struct config_parser *parser, const char *value);

/* A value of the line that is being read; each returns 0, or config_problem(). */
int config_parse_bool(struct config_parser *parser, const char *value, bool *ret_bool);
int config_parse_duration(struct config_parser *parser, const char *value, uint64_t *ret_usec);
int config_parse_number(struct config_parser *parser, const char *value, uint32_t min, uint32_t max,
                        uint32_t *ret_number);
int config_parse_memory(struct config_parser *parser, const char *value, uint64_t *ret_bytes);
int config_parse_events(struct config_parser *parser, const char *value, struct event_set *ret_set);

/* --- config-trigger.c --- */

/* Whether TEXT, the inside of a section's header, is a trigger's. */
bool config_is_trigger_section(const char *text);

/* Begins the section [TEXT], for which config_is_trigger_section() holds. */
int config_begin_trigger(struct config_parser *parser, const char *text);

/* The keys of a trigger's section, each for the last one that was begun. */
int config_parse_trigger_event(struct config_parser *parser, const char *value);
int config_parse_trigger_count(struct config_parser *parser, const char *value);
int config_parse_trigger_within(struct config_parser *parser, const char *value);
int config_parse_trigger_latency(struct config_parser *parser, const char *value);
int config_parse_trigger_condition(struct config_parser *parser, const char *value);
int config_parse_trigger_delay(struct config_parser *parser, const char *value);
int config_parse_trigger_cooldown(struct config_parser *parser, const char *value);
int config_parse_trigger_max_per_day(struct config_parser *parser, const char *value);
int config_parse_trigger_last(struct config_parser *parser, const char *value);

/* When all is read: whether each trigger has one condition, and can ever fire. */
int config_check_triggers(struct config_parser *parser);
