// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Perfetto's trace: a sequence of packets in protobuf's encoding. export/perfetto.proto has the
 * messages that are written here, with their sources.
 *
 * The packets are encoded by hand, as an interval is two of them and more. protobuf-c takes 130 ns
 * for a packet, nanopb 800 ns. A trace with many exits has 30 packets in a kilobyte, so it would be
 * written at 230 MB/s, or 40, if nothing else were to be done. Tests decode them by the schema. The
 * length of each nested message has two bytes, which are filled in when it ends, as Perfetto's own
 * writer does.
 *
 * Times are nanoseconds since the trace's first record, in the clock that packets have by default
 * (BOOTTIME). Snapshots of the clocks relate it to the wall clock.
 *
 * A domain is a process, a vCPU a thread. Numbers of threads are (domain + 1) * 10000 + vCPU, those
 * of processes the same of vCPU 0; the idle domain's are 0, as Linux's idle threads have it.
 *
 * The lanes of the CPUs are made of the running intervals: a switch to each vCPU, and to the idle
 * thread where nobody is known to run. What follows an interval on its CPU is known when the next
 * one there has ended.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/units.h"
#include "common/util.h"
#include "export/export.h"
#include "export/formats.h"

#define SEQUENCE      1u /* all packets are of one sequence */
#define STATE_CLEARED 1u
#define NEEDS_STATE   2u
#define BOOTTIME      6u
#define REALTIME      1u
#define SLICE_BEGIN   1u
#define SLICE_END     2u
#define INSTANT       3u

#define THREADS_OF_DOMAIN 10000u
#define NAME_MAX_BYTES    128u
#define INTERNED_MAX      4096u /* names; more are written where they are used */
#define INTERNED_SLOTS    8192u
#define CPUS_MAX          65536u
#define THREADS_MAX       65536u /* that records alone make known: as many as have intervals */

/* Annotations of slices. Their names are interned first, with these numbers. */
enum annotation {
    NO_ANNOTATION,
    OF_CPU,
    OF_CYCLES,
    OF_REASON,
    OF_RECORDS,
    OF_LOST,
    ANNOTATIONS,
};

static const char *const annotation_names[ANNOTATIONS] = {
    [OF_CPU] = "cpu",         [OF_CYCLES] = "cycles", [OF_REASON] = "reason",
    [OF_RECORDS] = "records", [OF_LOST] = "lost",
};

/* The tracks of a vCPU or CPU: the low bits of their UUIDs. */
enum track {
    TRACK_SELF, /* the thread, the process, the CPU: a heading */
    TRACK_RUNSTATE,
    TRACK_EXITS,
    TRACK_C_STATES,
    TRACK_FREQUENCY,
    TRACK_INTERRUPTS,
    TRACK_LOST,
};

#define TRACK_BITS 4u
#define CPU_TRACKS (UINT64_C(1) << 40)
#define DOMAINS    (UINT64_C(1) << 41)
#define VCPUS      (UINT64_C(1) << 42)

struct thread {
    uint32_t key; /* domain << 16 | vCPU */
    bool is_used;
    int32_t tid;
    uint8_t tracks; /* those that were described, by their bits */
    uint8_t name_bytes;
    char name[NAME_MAX_BYTES];
};

/* A CPU's lane. */
struct lane {
    bool is_known; /* its tracks have a heading */
    uint8_t tracks;
    bool has_thread; /* somebody ran up to: */
    uint64_t until;
    uint32_t key, next;
    uint32_t current_tid; /* by the records: in whose context others are woken */
};

struct interned {
    uint64_t key;
    uint32_t iid; /* 0: free */
};

struct perfetto {
    bool has_begun;
    uint64_t next_snapshot_nsec, last_realtime;
    struct thread *threads; /* [1 << bits], open addressing */
    unsigned int bits, nr_threads;
    struct lane *lanes; /* [nr_lanes], by CPU */
    uint32_t nr_lanes;
    uint64_t domains[65536 / 64]; /* those that have a process */
    uint32_t nr_interned;
    struct interned interned[INTERNED_SLOTS];
};

/* --- Protobuf. --- */

#define VARINT 0u
#define BYTES  2u

static uint8_t *put_tag(uint8_t *p, unsigned int field, unsigned int type)
{
    return put_varint(p, field << 3 | type);
}

static uint8_t *put_uint(uint8_t *p, unsigned int field, uint64_t value)
{
    return put_varint(put_tag(p, field, VARINT), value);
}

static uint8_t *put_text(uint8_t *p, unsigned int field, const char *text, size_t length)
{
    return put_bytes(put_varint(put_tag(p, field, BYTES), length), text, length);
}

/* Returns where its content begins, which is at most 16383 bytes. */
static uint8_t *begin_message(uint8_t *p, unsigned int field)
{
    return put_tag(p, field, BYTES) + 2;
}

static uint8_t *end_message(uint8_t *begin, uint8_t *p)
{
    size_t length = (size_t)(p - begin);

    begin[-2] = (uint8_t)(length | 0x80);
    begin[-1] = (uint8_t)(length >> 7);
    return p;
}

/* A packet, of Trace. */
static uint8_t *begin_packet(struct export *export)
{
    return begin_message(export_buffer_reserve(&export->buffer, EXPORT_ROW_MAX), 1);
}

static void end_packet(struct export *export, uint8_t *begin, uint8_t *p, uint32_t flags)
{
    struct perfetto *perfetto = export->state;

    if (!perfetto->has_begun)
        flags |= STATE_CLEARED;
    perfetto->has_begun = true;
    p = put_uint(p, 10, SEQUENCE);
    if (flags)
        p = put_uint(p, 13, flags);
    export_buffer_take(&export->buffer, end_message(begin, p));
}

/* --- Clocks. --- */

static void snapshot_clocks(struct export *export, uint64_t tsc, uint64_t nsec)
{
    struct perfetto *perfetto = export->state;
    uint64_t realtime = xentrace_realtime_nsec(export->trace, tsc);
    uint8_t *packet, *snapshot, *clock, *p;

    if (nsec < perfetto->next_snapshot_nsec)
        return;
    perfetto->next_snapshot_nsec = nsec + NSEC_PER_SEC;
    if (perfetto->has_begun && realtime <= perfetto->last_realtime) /* unknown, or set back */
        return;
    perfetto->last_realtime = realtime;
    packet = begin_packet(export);
    p = put_uint(packet, 8, nsec);
    snapshot = p = begin_message(p, 6);
    clock = p = begin_message(p, 1);
    p = end_message(clock, put_uint(put_uint(p, 1, BOOTTIME), 2, nsec));
    if (realtime > 0) {
        clock = p = begin_message(p, 1);
        p = end_message(clock, put_uint(put_uint(p, 1, REALTIME), 2, realtime));
    }
    p = end_message(snapshot, put_uint(p, 2, BOOTTIME));
    end_packet(export, packet, p, 0);
}

/* --- Processes and threads. --- */

static int32_t pid_of(uint32_t domid)
{
    if (domid == EXPORT_DOMAIN_IDLE)
        return 0;
    return (int32_t)((domid % 65536 + 1) * THREADS_OF_DOMAIN);
}

static int32_t tid_of(uint32_t key)
{
    uint32_t domid = key >> 16;

    return domid == EXPORT_DOMAIN_IDLE ? 0
                                       : pid_of(domid) + (int32_t)(key % 65536 % THREADS_OF_DOMAIN);
}

/* A heading: a process, a thread, a CPU. */
struct heading {
    uint64_t uuid, parent;
    const char *name;
    size_t name_bytes;
    int32_t pid, tid; /* -1: none */
};

static void describe(struct export *export, const struct heading *heading)
{
    uint8_t *packet = begin_packet(export), *descriptor, *part, *p = packet;

    descriptor = p = begin_message(p, 60);
    p = put_uint(p, 1, heading->uuid);
    if (heading->parent > 0)
        p = put_uint(p, 5, heading->parent);
    if (heading->tid >= 0) {
        part = p = begin_message(p, 4);
        p = put_uint(put_uint(p, 1, (uint64_t)heading->pid), 2, (uint64_t)heading->tid);
        p = end_message(part, put_text(p, 5, heading->name, heading->name_bytes));
    } else if (heading->pid >= 0) {
        part = p = begin_message(p, 3);
        p = put_uint(p, 1, (uint64_t)heading->pid);
        p = end_message(part, put_text(p, 6, heading->name, heading->name_bytes));
    } else {
        p = put_text(p, 2, heading->name, heading->name_bytes);
    }
    end_packet(export, packet, end_message(descriptor, p), 0);
}

static void put_process(struct export *export, const struct heading *heading, uint64_t tsc)
{
    uint8_t *packet = begin_packet(export), *tree, *process, *p;

    p = put_uint(packet, 8, export_nsec(export, tsc));
    tree = p = begin_message(p, 2);
    process = p = begin_message(p, 1);
    p = put_uint(put_uint(p, 1, (uint64_t)heading->pid), 2, 0);
    p = end_message(process, put_text(p, 3, heading->name, heading->name_bytes));
    end_packet(export, packet, end_message(tree, p), 0);
}

static void put_thread(struct export *export, const struct heading *heading, uint64_t tsc)
{
    uint8_t *packet = begin_packet(export), *tree, *thread, *p;

    p = put_uint(packet, 8, export_nsec(export, tsc));
    tree = p = begin_message(p, 2);
    thread = p = begin_message(p, 2);
    p = put_uint(p, 1, (uint64_t)heading->tid);
    p = put_text(p, 2, heading->name, heading->name_bytes);
    p = end_message(thread, put_uint(p, 3, (uint64_t)heading->pid));
    end_packet(export, packet, end_message(tree, p), 0);
}

/*
 * Its process, when its first thread is seen. Readers know the idle process and its threads, which
 * are one to them: those of the idle domain have plain headings.
 */
static void add_domain(struct export *export, uint32_t domid, uint64_t tsc)
{
    struct perfetto *perfetto = export->state;
    uint64_t bit = UINT64_C(1) << domid % 64;
    char name[EXPORT_NAME_MAX];
    struct heading heading = {
        .uuid = DOMAINS | domid << TRACK_BITS,
        .pid = domid == EXPORT_DOMAIN_IDLE ? -1 : pid_of(domid),
        .tid = -1,
        .name = export_domain_name(export, domid, tsc, name),
    };

    if (perfetto->domains[domid / 64] & bit)
        return;
    perfetto->domains[domid / 64] |= bit;
    heading.name_bytes = strlen(name);
    if (heading.pid >= 0)
        put_process(export, &heading, tsc);
    describe(export, &heading);
}

static void add_thread(struct export *export, const struct thread *thread, uint64_t tsc)
{
    uint32_t domid = thread->key >> 16;
    struct heading heading = {
        .uuid = VCPUS | (uint64_t)thread->key << TRACK_BITS,
        .name = thread->name,
        .name_bytes = thread->name_bytes,
        .pid = pid_of(domid),
        .tid = thread->tid,
    };

    add_domain(export, domid, tsc);
    if (domid == EXPORT_DOMAIN_IDLE) {
        heading.pid = heading.tid = -1;
        heading.parent = DOMAINS | domid << TRACK_BITS;
    } else {
        put_thread(export, &heading, tsc);
    }
    describe(export, &heading);
}

static struct thread *slot_of(const struct perfetto *perfetto, uint32_t key)
{
    uint32_t mask = (1u << perfetto->bits) - 1, at = key * UINT32_C(2654435761) >> 8 & mask;

    while (perfetto->threads[at].is_used && perfetto->threads[at].key != key)
        at = (at + 1) & mask;
    return &perfetto->threads[at];
}

static int grow_threads(struct perfetto *perfetto)
{
    struct thread *old = perfetto->threads;
    unsigned int nr_old = old ? 1u << perfetto->bits : 0;

    perfetto->bits = old ? perfetto->bits + 1 : 8;
    perfetto->threads = calloc((size_t)1 << perfetto->bits, sizeof(*old));
    if (!perfetto->threads) {
        perfetto->threads = old;
        perfetto->bits -= old ? 1 : 0;
        return -ENOMEM;
    }
    for (unsigned int i = 0; i < nr_old; i++)
        if (old[i].is_used)
            *slot_of(perfetto, old[i].key) = old[i];
    free(old);
    return 0;
}

static int find_thread(struct export *export, uint32_t key, uint64_t tsc,
                       struct thread **ret_thread)
{
    struct perfetto *perfetto = export->state;
    char domain[EXPORT_NAME_MAX];
    struct thread *thread;
    int r;

    if (!perfetto->threads || perfetto->nr_threads * 2 >= 1u << perfetto->bits) {
        r = grow_threads(perfetto);
        if (r < 0)
            return r;
    }
    thread = slot_of(perfetto, key);
    *ret_thread = thread;
    if (thread->is_used)
        return 0;
    *thread = (struct thread){.key = key, .is_used = true, .tid = tid_of(key)};
    perfetto->nr_threads++;
    (void)snprintf(thread->name, sizeof(thread->name), "%.96s.%" PRIu32,
                   export_domain_name(export, key >> 16, tsc, domain), key & 0xffff);
    thread->name_bytes = (uint8_t)strlen(thread->name);
    add_thread(export, thread, tsc);
    return 0;
}

/* --- Lanes. --- */

static int find_lane(struct perfetto *perfetto, uint32_t cpu, struct lane **ret_lane)
{
    uint32_t nr = cpu + 1;
    struct lane *lanes;

    if (cpu >= CPUS_MAX)
        return -EBADMSG; /* no trace has them */
    if (nr > perfetto->nr_lanes) {
        lanes = reallocarray(perfetto->lanes, nr, sizeof(*lanes));
        if (!lanes)
            return -ENOMEM;
        memset(lanes + perfetto->nr_lanes, 0, (nr - perfetto->nr_lanes) * sizeof(*lanes));
        perfetto->lanes = lanes;
        perfetto->nr_lanes = nr;
    }
    *ret_lane = &perfetto->lanes[cpu];
    return 0;
}

/* As sched_switch has it: R, S, D of what the vCPU did then. */
static uint64_t prev_state(uint32_t next)
{
    switch (next) {
    case XENTRACE_RUNNABLE:
    case XENTRACE_RUNNING:
        return 0;
    case XENTRACE_OFFLINE:
        return 2;
    default:
        return 1;
    }
}

/* An idle thread, if there is none. */
struct comm {
    const char *name;
    size_t bytes;
    int32_t tid;
};

static const struct comm idle = {"swapper", sizeof("swapper") - 1, 0};

static struct comm comm_of(const struct thread *thread)
{
    if (thread->tid == 0)
        return idle;
    return (struct comm){thread->name, thread->name_bytes, thread->tid};
}

static void put_switch(struct export *export, uint32_t cpu, uint64_t tsc, struct comm prev,
                       uint64_t state, struct comm next)
{
    uint8_t *packet = begin_packet(export), *bundle, *event, *part, *p = packet;

    bundle = p = begin_message(p, 1);
    p = put_uint(p, 1, cpu);
    event = p = begin_message(p, 2);
    p = put_uint(p, 1, export_nsec(export, tsc));
    p = put_uint(p, 2, (uint64_t)prev.tid);
    part = p = begin_message(p, 4);
    p = put_text(p, 1, prev.name, prev.bytes);
    p = put_uint(p, 2, (uint64_t)prev.tid);
    p = put_uint(p, 4, prev.tid == 0 ? 0 : state);
    p = put_text(p, 5, next.name, next.bytes);
    p = put_uint(p, 6, (uint64_t)next.tid);
    p = end_message(bundle, end_message(event, end_message(part, p)));
    end_packet(export, packet, p, 0);
}

/* Who ran there leaves. */
static int leave_lane(struct export *export, uint32_t cpu, struct lane *lane)
{
    struct thread *prev;
    int r;

    if (!lane->has_thread)
        return 0;
    r = find_thread(export, lane->key, lane->until, &prev);
    if (r < 0)
        return r;
    if (prev->tid != 0)
        put_switch(export, cpu, lane->until, comm_of(prev), prev_state(lane->next), idle);
    lane->has_thread = false;
    return 0;
}

static int run_on_lane(struct export *export, const struct export_interval *interval)
{
    uint32_t key = interval->domid << 16 | interval->vcpu;
    struct thread *prev, *next;
    struct comm comm = idle;
    struct lane *lane;
    int r;

    r = find_lane(export->state, interval->cpu, &lane);
    if (r < 0)
        return r;
    if (lane->has_thread && lane->until != interval->from_tsc) {
        r = leave_lane(export, interval->cpu, lane);
        if (r < 0)
            return r;
    }
    if (lane->has_thread) {
        r = find_thread(export, lane->key, lane->until, &prev);
        if (r < 0)
            return r;
        comm = comm_of(prev);
    }
    r = find_thread(export, key, interval->from_tsc, &next);
    if (r < 0)
        return r;
    if (comm.tid != next->tid) /* else it continues */
        put_switch(export, interval->cpu, interval->from_tsc, comm, prev_state(lane->next),
                   comm_of(next));
    lane->has_thread = true;
    lane->until = interval->to_tsc;
    lane->key = key;
    lane->next = interval->next;
    return 0;
}

/* --- Slices. --- */

static void intern(struct export *export, unsigned int field, uint64_t iid, const char *name)
{
    uint8_t *packet = begin_packet(export), *data, *entry, *p = packet;

    data = p = begin_message(p, 12);
    entry = p = begin_message(p, field);
    p = put_text(put_uint(p, 1, iid), 2, name, strlen(name));
    end_packet(export, packet, end_message(data, end_message(entry, p)), NEEDS_STATE);
}

static void name_interval(const struct export_interval *interval, char name[static NAME_MAX_BYTES])
{
    const char *text = export_kind_name(interval->kind);

    switch (interval->kind) {
    case EXPORT_EXIT:
        (void)snprintf(name, NAME_MAX_BYTES, "%s", interval->name);
        return;
    case EXPORT_C_STATE:
        (void)snprintf(name, NAME_MAX_BYTES, "C%" PRIu64, interval->value);
        return;
    case EXPORT_MHZ:
        (void)snprintf(name, NAME_MAX_BYTES, "%" PRIu64 " MHz", interval->value);
        return;
    case EXPORT_INTERRUPT:
        (void)snprintf(name, NAME_MAX_BYTES, "IRQ %" PRIu64, interval->value);
        return;
    case EXPORT_GAP:
        (void)snprintf(name, NAME_MAX_BYTES, "records lost");
        return;
    default:
        (void)snprintf(name, NAME_MAX_BYTES, "%s%s%s", text,
                       interval->wait != XENTRACE_NO_WAIT ? ": " : "",
                       export_wait_name(interval->wait));
    }
}

/* The number of its name, which is interned if it is new. 0: there are too many. */
static uint32_t name_iid(struct export *export, const struct export_interval *interval)
{
    struct perfetto *perfetto = export->state;
    bool has_value = interval->kind >= EXPORT_EXIT && interval->kind <= EXPORT_INTERRUPT;
    uint64_t key = (uint64_t)interval->kind << 40 | (uint64_t)interval->wait << 36 |
                   (has_value ? (uint32_t)interval->value : 0);
    uint64_t hash = key * UINT64_C(0x9e3779b97f4a7c15) >> 51;
    char name[NAME_MAX_BYTES];
    struct interned *slot;

    for (;; hash++) {
        slot = &perfetto->interned[hash % INTERNED_SLOTS];
        if (slot->iid == 0)
            break;
        if (slot->key == key)
            return slot->iid;
    }
    if (perfetto->nr_interned == INTERNED_MAX)
        return 0;
    name_interval(interval, name);
    *slot = (struct interned){.key = key, .iid = ++perfetto->nr_interned};
    intern(export, 2, slot->iid, name);
    return slot->iid;
}

static uint8_t *put_annotation(uint8_t *p, enum annotation name, uint64_t value)
{
    uint8_t *annotation;

    annotation = p = begin_message(p, 4);
    return end_message(annotation, put_uint(put_uint(p, 1, name), 3, value));
}

static uint8_t *put_annotations(uint8_t *p, const struct export_interval *interval)
{
    if (interval->kind == EXPORT_EXIT) {
        p = put_annotation(p, OF_REASON, interval->value);
        if (interval->is_complete)
            p = put_annotation(p, OF_CYCLES, interval->cycles);
    }
    if (interval->kind == EXPORT_GAP)
        p = put_annotation(p, OF_RECORDS, interval->value);
    if (interval->domid != EXPORT_NOBODY && interval->cpu != EXPORT_NOBODY)
        p = put_annotation(p, OF_CPU, interval->cpu);
    if (interval->ends_in_loss)
        p = put_annotation(p, OF_LOST, 1);
    return p;
}

static void put_slice(struct export *export, uint64_t track, const struct export_interval *interval)
{
    uint32_t iid = name_iid(export, interval);
    /* Of an exit whose end is unknown, an interrupt without times: */
    bool is_instant = !interval->is_complete && interval->to_tsc == interval->from_tsc;
    char name[NAME_MAX_BYTES];
    uint8_t *packet = begin_packet(export), *event, *p;

    p = put_uint(packet, 8, export_nsec(export, interval->from_tsc));
    event = p = begin_message(p, 11);
    p = put_uint(p, 9, is_instant ? INSTANT : SLICE_BEGIN);
    p = put_uint(p, 11, track);
    if (iid > 0) {
        p = put_uint(p, 10, iid);
    } else {
        name_interval(interval, name);
        p = put_text(p, 23, name, strlen(name));
    }
    p = end_message(event, put_annotations(p, interval));
    end_packet(export, packet, p, NEEDS_STATE);
    if (is_instant)
        return;
    packet = begin_packet(export);
    p = put_uint(packet, 8, export_nsec(export, interval->to_tsc));
    event = p = begin_message(p, 11);
    p = end_message(event, put_uint(put_uint(p, 9, SLICE_END), 11, track));
    end_packet(export, packet, p, NEEDS_STATE);
}

/* --- Tracks. --- */

static uint64_t use_track(struct export *export, uint8_t *tracks, uint64_t self, enum track track,
                          const char *name)
{
    const struct heading heading = {
        .uuid = self | (uint64_t)track,
        .parent = self,
        .name = name,
        .name_bytes = strlen(name),
        .pid = -1,
        .tid = -1,
    };

    if (!(*tracks >> track & 1))
        describe(export, &heading);
    *tracks |= (uint8_t)(1u << track);
    return heading.uuid;
}

static int put_of_vcpu(struct export *export, const struct export_interval *interval)
{
    uint32_t key = interval->domid << 16 | interval->vcpu;
    bool is_exit = interval->kind == EXPORT_EXIT;
    struct thread *thread;
    uint64_t track;
    int r;

    r = find_thread(export, key, interval->from_tsc, &thread);
    if (r < 0)
        return r;
    track = use_track(export, &thread->tracks, VCPUS | (uint64_t)key << TRACK_BITS,
                      is_exit ? TRACK_EXITS : TRACK_RUNSTATE, is_exit ? "VM exits" : "runstate");
    put_slice(export, track, interval);
    return interval->kind == EXPORT_RUNNING ? run_on_lane(export, interval) : 0;
}

static int put_of_cpu(struct export *export, const struct export_interval *interval)
{
    static const struct {
        enum track track;
        const char *name;
    } tracks[] = {
        [EXPORT_C_STATE] = {TRACK_C_STATES, "idle states"},
        [EXPORT_MHZ] = {TRACK_FREQUENCY, "frequency"},
        [EXPORT_INTERRUPT] = {TRACK_INTERRUPTS, "interrupts"},
        [EXPORT_GAP] = {TRACK_LOST, "lost records"},
    };
    uint64_t self = CPU_TRACKS | (uint64_t)interval->cpu << TRACK_BITS;
    struct lane *lane;
    char name[32];
    int r;

    r = find_lane(export->state, interval->cpu, &lane);
    if (r < 0)
        return r;
    (void)snprintf(name, sizeof(name), "CPU %" PRIu32, interval->cpu);
    if (!lane->is_known)
        describe(export,
                 &(const struct heading){
                     .uuid = self, .name = name, .name_bytes = strlen(name), .pid = -1, .tid = -1});
    lane->is_known = true;
    put_slice(export,
              use_track(export, &lane->tracks, self, tracks[interval->kind].track,
                        tracks[interval->kind].name),
              interval);
    return 0;
}

/* --- The format. --- */

static void perfetto_begin_trace(struct export *export, uint64_t tsc)
{
    struct perfetto *perfetto = export->state;

    if (!perfetto->has_begun) {
        snapshot_clocks(export, tsc, export_nsec(export, tsc));
        for (unsigned int i = 1; i < ANNOTATIONS; i++)
            intern(export, 3, i, annotation_names[i]);
    }
}

static int perfetto_interval(struct export *export, const struct export_interval *interval)
{
    perfetto_begin_trace(export, interval->from_tsc);
    return interval->domid == EXPORT_NOBODY ? put_of_cpu(export, interval)
                                            : put_of_vcpu(export, interval);
}

static int put_waking(struct export *export, const struct xentrace_record *record,
                      const struct lane *lane)
{
    const struct perfetto *perfetto = export->state;
    uint8_t *packet, *bundle, *event, *part, *p;
    struct thread *thread;
    int r;

    if (perfetto->nr_threads >= THREADS_MAX)
        return 0;
    r = find_thread(export, record->words[0], record->tsc, &thread);
    if (r < 0 || thread->tid == 0)
        return r;
    packet = p = begin_packet(export);
    bundle = p = begin_message(p, 1);
    p = put_uint(p, 1, record->cpu);
    event = p = begin_message(p, 2);
    p = put_uint(p, 1, record->nsec);
    p = put_uint(p, 2, lane->current_tid);
    part = p = begin_message(p, 20);
    p = put_text(p, 1, thread->name, thread->name_bytes);
    p = put_uint(p, 2, (uint64_t)thread->tid);
    p = put_uint(put_uint(p, 4, 1), 5, record->cpu);
    p = end_message(bundle, end_message(event, end_message(part, p)));
    end_packet(export, packet, p, 0);
    return 0;
}

/* Wakes are at once in the trace; all else is when it has ended. */
static int perfetto_record(struct export *export, const struct xentrace_record *record)
{
    bool is_runstate = (record->event & ~UINT32_C(0x330)) == 0x21001 && record->nr_words > 0;
    uint32_t old = record->event >> 8 & 3, new = record->event >> 4 & 3;
    struct lane *lane;
    int r;

    perfetto_begin_trace(export, record->tsc);
    snapshot_clocks(export, record->tsc, record->nsec);
    if (!is_runstate)
        return 0;
    r = find_lane(export->state, record->cpu, &lane);
    if (r < 0)
        return r;
    if (new == XENTRACE_RUNNING || old == XENTRACE_RUNNING)
        lane->current_tid = new == XENTRACE_RUNNING ? (uint32_t)tid_of(record->words[0]) : 0;
    if (new == XENTRACE_RUNNABLE && (old == XENTRACE_BLOCKED || old == XENTRACE_OFFLINE))
        return put_waking(export, record, lane);
    return 0;
}

static int perfetto_finish(struct export *export)
{
    struct perfetto *perfetto = export->state;
    int r = 0;

    for (uint32_t cpu = 0; cpu < perfetto->nr_lanes && r == 0; cpu++)
        r = leave_lane(export, cpu, &perfetto->lanes[cpu]);
    return r;
}

static void perfetto_done(struct export *export)
{
    struct perfetto *perfetto = export->state;

    free(perfetto->threads);
    free(perfetto->lanes);
}

const struct export_format export_perfetto = {
    .name = "perfetto",
    .summary = "a trace for ui.perfetto.dev and its SQL (.pftrace)",
    .is_binary = true,
    .state_bytes = sizeof(struct perfetto),
    .record = perfetto_record,
    .interval = perfetto_interval,
    .finish = perfetto_finish,
    .done = perfetto_done,
};
