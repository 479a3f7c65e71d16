/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The data of a session, and its context. It is read by all modules of this folder and by the
 * documents; session.h has the functions and states of a session. Main thread.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/cpu-set.h"
#include "common/event-set.h"
#include "daemon/base/clock.h"
#include "daemon/base/disk-limit.h"
#include "daemon/base/failure.h"
#include "daemon/base/name.h"
#include "daemon/base/requester.h"
#include "daemon/host/domains.h"
#include "common/drop-cause.h"
#include "daemon/host/tracing.h"
#include "daemon/output/sidecar.h"
#include "daemon/session/end-reason.h"
#include "daemon/session/silence.h"

struct account;
struct clock_history;
struct collector;
struct domain_names;
struct host;
struct json_object;
struct ledger;
struct message;
struct grower;
struct persist_state;
struct pool;
struct ring;
struct ring_share;
struct sd_event;
struct sd_event_source;
struct segment;
struct session;
struct sink;
struct sink_totals;
struct snapshot;
struct storage;
struct systemd;
struct watch_set;
struct worker;
struct workers;
struct xen_host;

/* An output that has not answered for this long is reported as waiting. */
#define SESSION_PATIENCE_USEC UINT64_C(2000000)

/* What a session works with; lent by the manager, which outlives all sessions. */
struct session_context {
    struct sd_event *event;
    struct workers *workers;
    struct xen_host *xen;
    struct clock_history *clock;
    const struct host *host;
    struct domain_names *names;
    struct systemd *systemd;
    struct tracing *tracing;
    struct collector *collector;
    struct pool *pool;
    struct grower *grower;
    int state_dir_fd;
    const char *state_dir;
    struct held_files *held; /* files of the state directory that were removed while open */
    int runtime_dir_fd;      /* in memory; emptied by a boot */
    uint32_t default_buffer_pages;
    uint32_t memory_share_percent; /* of the free memory that rings may take */
    struct ring_share *ring_share; /* what they have taken */
    struct disk_limit keep_free;   /* what DISK_RESERVE_AUTO follows from */

    /* What sidecars hold: documents, the caller's. */
    struct json_object *(*describe_session)(const struct session *session);
    struct json_object *(*describe_segment)(const struct session *session,
                                            const struct segment *segment, const struct sink *sink);
    struct json_object *(*describe_snapshot)(const struct snapshot *snapshot);

    /*
     * Called when a session came to SESSION_RUNNING or SESSION_ENDED, last thing in the transition;
     * and when one that has ended is released: then it may be freed.
     */
    void (*changed)(void *userdata, struct session *session);
    void (*released)(void *userdata, struct session *session);
    /* Called when segment NUMBER is finished; SEGMENT NULL: it was empty, and there is no file. */
    void (*segment_finished)(void *userdata, const struct session *session, unsigned int number,
                             const struct segment *segment);
    void *userdata;
};

/* As asked for; NULL, 0 and false stand for "not said". Nothing here is kept. */
struct session_options {
    const char *events; /* "all" */
    const char *cpus;   /* "all" */
    uint64_t time_usec;
    uint64_t reserve_bytes; /* or DISK_RESERVE_AUTO */
    uint64_t max_size_bytes;
    uint32_t buffer_pages;
    uint64_t poll_usec;
    bool discard;
    bool keep_enabled;
    bool start_disabled;
    bool has_output;
    bool by_root;  /* root has passed the output */
    int output_fd; /* borrowed */
    const char *output_path;
    int sidecar_fd;  /* borrowed; -1: none */
    bool may_rename; /* its name was made up: if a file has it already, it is given another one */
    struct requester requester;

    const char *on_reserve; /* "stop" */
    uint64_t segment_size_bytes;
    uint64_t segment_time_usec;
    uint32_t keep_files;
    uint64_t keep_size_bytes;

    const char *compress; /* "zstd", "no"; NULL: "no" */

    bool persist;       /* it continues in its next segment after a restart of the daemon */
    bool is_configured; /* [capture NAME]: its files may be removed for want of space */
    const struct persist_state *resume; /* it does now; NULL: it is new, or its state was lost */

    uint64_t memory_bytes; /* a ring */
    uint64_t max_age_usec;
    bool is_recorder;               /* no output; of a ring */
    bool makes_ring_later;          /* ... whose memory a worker makes, or it is there at once */
    struct ring *ring;              /* taken over: it continues with that; given away on success */
    const struct clock_pair *since; /* it continues, and was started then */
    struct watch_set *watch;        /* of a ring; lent. NULL: none */
};

enum session_state {
    SESSION_OPENING,
    SESSION_STARTING,
    SESSION_RUNNING,
    SESSION_DRAINING,
    SESSION_SETTLING,
    SESSION_CLOSING,
    SESSION_FINISHING,
    SESSION_SEALING,
    SESSION_ENDED,
};

/* What is recorded, from whom. */
struct selection {
    char *events_spec;
    char *cpus_spec;
    struct event_set events;
    struct cpu_set cpus;
    unsigned int nr_cpus; /* of the host */
};

/* How: as asked for. */
struct settings {
    uint64_t time_usec;
    uint64_t poll_usec;
    uint64_t reserve_bytes;  /* DISK_RESERVE_AUTO until its first file is open */
    uint64_t max_size_bytes; /* 0: none */
    uint32_t buffer_pages;
    bool discard;
    bool keep_enabled;
    bool start_disabled;
    bool is_recorder;
    bool is_persistent;
    bool is_configured;
    bool is_packed; /* its file is compressed */
};

/* Of missing records, what the log has: loss-report.c's own; all zeroes at first. */
struct loss_report {
    struct loss_count {
        uint64_t lost, dropped;
    } * counts; /* [cpu]: as of the last report; NULL: all are 0 */
    unsigned int nr_cpus;
    uint64_t drops[DROP_CAUSES]; /* likewise, of all CPUs */
    uint64_t next_usec;          /* no report before that; 0: at once */
    uint64_t interval_usec;
    struct sd_event_source *source;
};

/* Read only, but for session*.c and the storages. */
struct session {
    const struct session_context *context;
    char name[SESSION_NAME_MAX + 1]; /* may still change while OPENING */
    enum session_state state;
    bool is_released;           /* ended, and holds nothing any more */
    struct requester requester; /* its owner */
    struct selection selection;
    struct settings settings;
    struct storage *storage;
    struct worker *worker; /* of all its outputs */
    struct sidecar sidecar;

    struct clock_pair started;
    struct clock_pair ended;
    enum end_reason reason;
    char message[768];            /* how it ended, for people */
    struct failure start_failure; /* why it ended before it ran: its name is set */
    struct cpu_set loss_unknown;  /* CPUs that may have lost more than Xen reported */
    struct cpu_set silent;        /* CPUs of which Xen records nothing, although they are busy */
    struct cpu_set missing;       /* CPUs asked for that have no trace buffer */
    struct domains domains;

    /* session.c's own. */
    struct tracing_use use;
    enum end_reason stop_reason; /* it is to be stopped as soon as it is open; END_NONE: not */
    bool told_xen; /* masks are set for it, and tracing is enabled unless start_disabled */
    bool keeps_enabled;
    bool ends_tracing;   /* nobody else is traced for: draining comes to an end */
    bool is_resumed;     /* it continues where an earlier daemon stopped */
    bool is_handed_over; /* ... or the next daemon continues it */
    bool is_aborted;
    bool is_freed; /* ... and the answer to its sidecar takes the rest */
    bool is_finishing;
    bool is_sealed; /* the last sidecars are under way */
    bool is_sidecar_due;
    uint64_t told_tsc_offset; /* in the last sidecar */
    uint32_t told_clock;      /* likewise: clock_history_version() */
    bool is_wait_logged;
    unsigned int nr_sidecars;  /* being written */
    unsigned int nr_snapshots; /* that read its ring */
    struct account *account;   /* of a persistent one; NULL: none */
    uint32_t continued;        /* times it was */
    struct watch_set *watch;
    struct cpu_set set_aside_logged;
    struct silence silence;
    struct loss_report losses;
    struct sd_event_source *start_source;    /* the disk has to answer by then */
    struct sd_event_source *time_source;     /* -T */
    struct sd_event_source *tick_source;     /* every few seconds while running */
    struct sd_event_source *patience_source; /* for a reader that does not read */
    uint64_t patient_since_usec;             /* CLOCK_MONOTONIC */
};

/* The ledger of all its sinks, those of segments that are gone included. session.c. */
void session_read_ledger(const struct session *session, unsigned int cpu,
                         struct ledger *ret_ledger);
/* Likewise. session.c. */
void session_read_totals(const struct session *session, struct sink_totals *ret_totals);
