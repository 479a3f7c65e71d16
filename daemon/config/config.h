/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The configuration: files in INI format, described in xentraced.conf(5). Any thread, but a reading
 * is one thread's at a time.
 *
 * A struct config is a value: it is copied and owns nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/event-set.h"

#define CONFIG_TRIGGERS_MAX 16u
#define CONFIG_LIST_MAX     200u /* a line of the file, as inih reads it */
#define TRIGGER_NAME_MAX    32u

/* What a trigger waits for. */
enum trigger_condition {
    TRIGGER_NEVER, /* none was given; config_read() refuses that */
    TRIGGER_EVENT,
    TRIGGER_RUNNABLE_LATENCY,
    TRIGGER_DOMAIN_CRASH,
    TRIGGER_LOST_RECORDS,
    TRIGGER_MANUAL,
};

/* [trigger NAME]. The name comes first, as in every section that has one (config-keys.h). */
struct trigger_config {
    char name[TRIGGER_NAME_MAX + 1]; /* valid as a session's name */
    enum trigger_condition condition;
    char condition_text[CONFIG_LIST_MAX + 32]; /* "domain-crash", "runnable-latency=50ms" */
    struct event_set events;                   /* event=: never GEN alone */
    uint32_t count;                            /* count=: their number, at least 1 */
    uint64_t within_usec;   /* within=: all of them in that time; 0 if count is 1 */
    uint64_t latency_usec;  /* runnable-latency= */
    uint64_t delay_usec;    /* delay=: records after it fired, too */
    uint64_t cooldown_usec; /* cooldown=: after a snapshot */
    uint32_t max_per_day;   /* max-per-day=: snapshots in 24 hours, 1 to 1000 */
    uint64_t last_usec;     /* last=: of the ring; 0: everything */
};

/* [flight-recorder] */
struct recorder_config {
    bool enabled;
    uint64_t memory_bytes;
    char events[CONFIG_LIST_MAX]; /* as typed; valid */
    char cpus[CONFIG_LIST_MAX];   /* as typed; valid but for CPUs that this host may not have */
    uint64_t max_age_usec;        /* 0: none */
    bool keep_enabled;            /* tracing stays enabled while the daemon is restarted */
};

struct config {
    int log_level;                 /* [daemon] log-level=: LOG_ERR to LOG_DEBUG */
    uint64_t pool_bytes;           /* [daemon] pool= */
    uint64_t pool_max_bytes;       /* [daemon] pool-max=; 0: auto, 512M or an eighth
                                      of dom0's memory, whichever is less */
    char control_group[64];        /* [daemon] control-group=, "" for none but root */
    uint32_t memory_share_percent; /* [daemon] memory-share=: of dom0's free memory, for a ring */
    uint32_t buffer_pages;         /* [capture] buffer-pages=: if Xen has none yet; 0: auto */
    uint64_t reserve_bytes;        /* [capture] reserve=: of captures that do not say */
    char segment_unit[CONFIG_LIST_MAX]; /* [capture] segment-unit=: "NAME@.service"; "" for none */
    struct recorder_config recorder;
    struct trigger_config triggers[CONFIG_TRIGGERS_MAX]; /* in the order of the file */
    size_t nr_triggers;
};

/* The syslog(3) priority of a level's name, "err" to "debug"; -EINVAL. */
int config_read_log_level(const char *name, int *ret_level);

/* The key or word that stands for a condition: "event", "domain-crash". Static. */
const char *trigger_condition_name(enum trigger_condition condition);
