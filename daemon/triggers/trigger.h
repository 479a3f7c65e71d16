/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The policy of one trigger, as a state machine without I/O: its owner reports what happened and
 * when, and carries out the returned action. Main thread.
 *
 *   off         there is no ring to write; what fires meanwhile is not counted
 *   armed       waits for its condition
 *   delaying    it fired; recording continues until the delay is over
 *   writing     the snapshot is being written
 *   retrying    it failed, and is tried again soon
 *   cooling     a snapshot was written or given up: nothing is written during the cooldown
 *   exhausted   the limit of snapshots in 24 hours is reached; only of a trigger that has no
 * domains
 *
 * A trigger that has domains never ends for the day, so that no guest keeps the crash of another
 * from being recorded. A domain that has had its part has another one after a pause, which doubles
 * each time; it takes the place of one of its own in the day's count. When the day's snapshots are
 * used up, a domain that had none displaces the oldest one of them in the count, after a pause that
 * doubles each time, too. The files stay.
 *
 * The counts are consistent: fired = written + failed + suppressed, plus one while it is delaying,
 * writing or retrying. A failed snapshot is tried again after 1 s, 2 s, 4 s and so on,
 * TRIGGER_RETRIES times. It does not count for the daily limit.
 *
 * Times (_usec) are of any clock that never goes back, CLOCK_MONOTONIC in the daemon.
 */

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/requester.h"
#include "daemon/config/config.h"

#define TRIGGER_REASON_MAX 256u
#define TRIGGER_NO_TIME    UINT64_MAX
#define TRIGGER_RETRIES    6u /* in a minute: by then a ring of 64 MiB has lost what it was about */

enum trigger_state {
    TRIGGER_OFF,
    TRIGGER_ARMED,
    TRIGGER_DELAYING,
    TRIGGER_WRITING,
    TRIGGER_RETRYING,
    TRIGGER_COOLING,
    TRIGGER_EXHAUSTED,
};

/* What is to be done now. */
enum trigger_action {
    TRIGGER_NOTHING,
    TRIGGER_SNAPSHOT, /* write one, of trigger_last_usec(); then trigger_written() or _failed() */
};

struct trigger_suppressed {
    uint64_t busy; /* by itself: it was delaying, writing or retrying */
    uint64_t cooldown;
    uint64_t max_per_day;
    uint64_t max_per_domain; /* or what is left of the day is kept for other domains */
    uint64_t last_ns;        /* CLOCK_REALTIME; 0: never */
    char last_reason[TRIGGER_REASON_MAX];
};

/*
 * The domain whose budget is used. A restarted domain has another id, and is the same domain if it
 * has the same UUID. Only two domains without one are compared by name, which more than one may
 * have.
 */
struct trigger_domain {
    char uuid[37]; /* "": it has none */
    char name[64];
};

/* A snapshot that was written. */
struct trigger_past {
    uint64_t usec; /* TRIGGER_NO_TIME: none was */
    struct trigger_domain domain;
    unsigned int repeats; /* over its domain's part, one after the other */
};

/* Read only, but for trigger.c, and `next` and `requester` for its owner. */
struct trigger {
    struct trigger *next;
    struct requester requester; /* who fired it by hand, of the snapshot under way */
    struct trigger_config config;
    enum trigger_state state;
    bool has_ring;
    uint64_t fired;
    uint64_t written;
    uint64_t failed;
    uint64_t last_fired_ns; /* CLOCK_REALTIME, when it led to a snapshot; 0: never */
    uint64_t last_tsc;      /* of the record that showed it then; 0: none did */
    char last_reason[TRIGGER_REASON_MAX];
    struct trigger_suppressed suppressed;
    char *last_snapshot; /* path; NULL: none */
    char *last_report;   /* path of its report, which may not be there yet; NULL: none */
    char *last_error;    /* of the last snapshot, NULL if it was written */

    unsigned int retries; /* of this snapshot, so far */
    uint64_t due_usec;    /* when it was to be written first */
    uint64_t retry_usec;
    uint64_t delay_end_usec;
    uint64_t cooldown_end_usec;   /* 0: there is none */
    struct trigger_domain domain; /* of the snapshot under way */
    struct trigger_past *past;    /* [config.max_per_day], in no order */
    unsigned int nr_displaced;    /* others of the day by new domains, one after the other */
};

/* CONFIG is copied. It is off. -ENOMEM. */
int trigger_init(struct trigger *trigger, const struct trigger_config *config);
void trigger_done(struct trigger *trigger);

/*
 * Applies CONFIG, which has the same name. The new cooldown and daily limit also apply to earlier
 * snapshots. Counts, state and a delay that has begun are kept. -ENOMEM: nothing has changed.
 */
int trigger_reconfigure(struct trigger *trigger, const struct trigger_config *config,
                        uint64_t now_usec);

/*
 * Whether there is a ring. When it goes, a delay and a retry end in a failure; a snapshot
 * that is being written continues.
 */
void trigger_set_ring(struct trigger *trigger, bool has_ring, uint64_t now_usec);

/*
 * Its condition came true: REASON is one sentence, REALTIME_NS the wall clock now, DOMAIN whose
 * budget it is. The answer is to be carried out last thing, as it may lead to
 * trigger_failed() at once.
 */
enum trigger_action trigger_fire(struct trigger *trigger, uint64_t now_usec, uint64_t realtime_ns,
                                 const char *reason, const struct trigger_domain *domain);

/* When it wants trigger_advance() to be called; TRIGGER_NO_TIME: not for the time being. */
uint64_t trigger_next_usec(const struct trigger *trigger);

/* Time has passed. */
enum trigger_action trigger_advance(struct trigger *trigger, uint64_t now_usec);

/*
 * How far back the snapshot that is to be written now reaches; 0: everything. What is asked for
 * counts from the event, not from the end of the delay. One that is tried again reaches back to
 * where the first one would have begun.
 */
uint64_t trigger_last_usec(const struct trigger *trigger, uint64_t now_usec);

/*
 * The snapshot is in the file PATH; or could not be written, ERROR says why: it is tried again, or
 * given up. Only while writing.
 */
void trigger_written(struct trigger *trigger, uint64_t now_usec, const char *path);
void trigger_failed(struct trigger *trigger, uint64_t now_usec, const char *error);

const char *trigger_state_name(enum trigger_state state); /* as in documents */
