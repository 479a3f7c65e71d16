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
#include "daemon/base/disk-limit.h"
#include "daemon/config/capture-config.h"

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
    uint64_t within_usec;    /* within=: all of them in that time; 0 if count is 1 */
    uint64_t latency_usec;   /* runnable-latency= */
    uint64_t delay_usec;     /* delay=: records after it fired, too */
    uint64_t cooldown_usec;  /* cooldown=: after a snapshot */
    uint32_t max_per_day;    /* max-per-day=: snapshots in 24 hours, 1 to 1000 */
    uint32_t max_per_domain; /* max-per-domain=: of them, for one domain; 0: it has no domains */
    uint32_t kept_for_new;   /* of max_per_day: for domains that had none in 24 hours */
    char domain[CONFIG_LIST_MAX]; /* domain=: name, glob or UUID; "": any */
    uint64_t last_usec;           /* last=: of the ring; 0: everything */
    bool report;                  /* report=: is written beside the snapshot */
};

#define LIMITS_AUTO UINT64_MAX

/* [limits]: of each user but root. */
struct limits_config {
    uint64_t snapshot_interval_usec;  /* snapshot-interval=: one in that time; 0: any */
    uint32_t snapshots_per_day;       /* snapshots-per-day=: in any 24 hours, 1 to 1000 */
    uint64_t snapshot_bytes_per_day;  /* snapshot-bytes-per-day=; LIMITS_AUTO */
    uint64_t keep_for_triggers_bytes; /* keep-for-triggers=: of the disk; LIMITS_AUTO */
};

/* [flight-recorder] */
struct recorder_config {
    bool enabled;
    uint64_t memory_bytes;
    char events[CONFIG_LIST_MAX]; /* as typed; valid */
    char cpus[CONFIG_LIST_MAX];   /* as typed; valid but for CPUs that this host may not have */
    uint64_t max_age_usec;        /* 0: none */
    bool keep_enabled;            /* tracing stays enabled while the daemon is restarted */
    bool compress;                /* compress=zstd: of snapshots in the state directory */
};

struct config {
    int log_level;                 /* [daemon] log-level=: LOG_ERR to LOG_DEBUG */
    uint64_t pool_bytes;           /* [daemon] pool= */
    uint64_t pool_max_bytes;       /* [daemon] pool-max=; 0: auto, 512M or an eighth
                                      of dom0's memory, whichever is less */
    char control_group[64];        /* [daemon] control-group=, "" for none but root */
    char metrics_file[CONFIG_LIST_MAX]; /* [daemon] metrics-file=: absolute; "" for none */
    uint32_t memory_share_percent; /* [daemon] memory-share=: of dom0's free memory, for rings */
    uint32_t buffer_pages;         /* [capture] buffer-pages=: if Xen has none yet; 0: auto */
    uint64_t reserve_bytes;        /* [capture] reserve=: of captures that do not say;
                                      DISK_RESERVE_AUTO: as disk.keep_free */
    struct disk_limits disk;       /* [disk] */
    char segment_unit[CONFIG_LIST_MAX]; /* [capture] segment-unit=: "NAME@.service"; "" for none */
    struct limits_config limits;
    struct recorder_config recorder;
    struct trigger_config triggers[CONFIG_TRIGGERS_MAX]; /* in the order of the file */
    size_t nr_triggers;
    struct capture_configs captures; /* [capture NAME] */
};

/*
 * [limits] with numbers for `auto`, which follow the flight recorder's memory=: 16 times that and
 * no less than 1G a day, and 4 times that for triggers.
 */
struct limits_config config_limits(const struct config *config);

/* The syslog(3) priority of a level's name, "err" to "debug"; -EINVAL. */
int config_read_log_level(const char *name, int *ret_level);

/* The key or word that stands for a condition: "event", "domain-crash". Static. */
const char *trigger_condition_name(enum trigger_condition condition);
