// SPDX-License-Identifier: GPL-2.0-or-later

#include "daemon/document/document.h"

#include <limits.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/ring.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "daemon/base/clock-history.h"
#include "daemon/document/domains-document.h"
#include "daemon/host/host.h"
#include "daemon/base/json-put.h"
#include "daemon/output/compression.h"
#include "daemon/output/output.h"
#include "daemon/session/history.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/segments.h"
#include "daemon/session/session.h"
#include "daemon/session/snapshot.h"
#include "daemon/triggers/trigger.h"
#include "daemon/host/tracing.h"

static void put_cpus(json *object, const char *key, const struct cpu_set *set)
{
    _cleanup_free_ char *text = NULL;

    if (cpu_set_format(set, &text) >= 0)
        json_put_text(object, key, text);
}

static void put_clock(json *object, struct clock_pair pair)
{
    json_put_count(object, "realtime_ns", pair.realtime_ns);
    json_put_count(object, "tsc", clock_pair_tsc(pair));
}

/* The wall clock when the TSC was TSC; 0: never. */
static uint64_t wall_clock_of(const struct session_context *context, uint64_t tsc)
{
    return clock_history_realtime_ns(context->clock, tsc);
}

/* Not before Xen's masks were set for the session. */
static void put_complete_from(json *object, const struct session *session, uint64_t tsc)
{
    uint64_t from_tsc = max_u64(tsc, clock_pair_tsc(session->started));

    json_put_count(object, "complete_from_tsc", from_tsc);
    json_put_count(object, "complete_from_ns", wall_clock_of(session->context, from_tsc));
}

/* A time of CLOCK_MONOTONIC, in microseconds, as CLOCK_REALTIME in nanoseconds. */
static uint64_t realtime_of_monotonic(uint64_t monotonic_usec)
{
    struct timespec ts;

    (void)clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail for this clock */
    return clock_pair_now().realtime_ns - ((uint64_t)ts.tv_sec * NSEC_PER_SEC +
                                           (uint64_t)ts.tv_nsec - monotonic_usec * NSEC_PER_USEC);
}

static json *output_document(const struct output *output, const struct sidecar *sidecar,
                             uint64_t bytes, uint64_t queued_bytes, uint64_t waiting_since_usec)
{
    json *object = json_object_new_object();

    json_put_text(object, "path", output ? output->figures.path : "");
    if (sidecar->path)
        json_put_text(object, "sidecar", sidecar->path);
    json_put_text(object, "kind", output && output->figures.is_stream ? "stream" : "file");
    json_put_bool(object, "direct_io", output && output->figures.is_direct);
    json_put_count(object, "bytes", bytes);
    json_put_count(object, "queued_bytes", queued_bytes);
    if (waiting_since_usec)
        json_put_count(object, "waiting_since_ns", realtime_of_monotonic(waiting_since_usec));
    return object;
}

/* Of a compressed file: what it holds, and what of that is stored as it was. */
static void put_compression(json *output, bool is_packed, uint64_t plain_bytes, uint64_t raw_bytes)
{
    if (!is_packed)
        return;
    json_put_text(output, "compression", compression_name(true));
    json_put_count(output, "plain_bytes", plain_bytes);
    json_put_count(output, "raw_bytes", raw_bytes);
}

static bool ring_has_evicted(const struct session *session)
{
    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct ledger ledger;

        session_read_ledger(session, cpu, &ledger);
        if (ledger.evicted)
            return true;
    }
    return false;
}

/* How far back it goes. */
static void put_history(json *object, const struct session *session,
                        const struct ring_storage *ring, const struct ring_stats *stats)
{
    const struct history_ring facts = {
        .tsc_khz = xen_host_info(session->context->xen)->tsc_khz,
        .now_tsc = tsc_now(),
        .started_tsc = clock_pair_tsc(session->started),
        .complete_from_tsc = ring_complete_from_tsc(ring->ring),
        .oldest_tsc = stats->oldest_tsc,
        .used_bytes = stats->used_bytes,
        .memory_bytes = ring->memory_bytes,
        .max_age_usec = ring->max_age_usec,
        .has_evicted = ring_has_evicted(session),
    };
    struct history history = history_of_ring(&facts);

    json_put_count(object, "history_usec", history.usec);
    json_put_count(object, "history_full_usec", history.full_usec);
    json_put_count(object, "bytes_per_second", history.bytes_per_second);
    json_put_bool(object, "full", history.is_full);
}

static json *ring_document(const struct session *session, const struct ring_storage *ring)
{
    json *object = json_object_new_object();
    struct ring_stats stats = {0};

    if (ring->ring)
        ring_read_stats(ring->ring, &stats);
    json_put_count(object, "memory_bytes", ring->memory_bytes);
    json_put_count(object, "used_bytes", stats.used_bytes);
    json_put_count(object, "borrowed_bytes", stats.borrowed_bytes);
    json_put_count(object, "shortened_bytes", stats.shortened_bytes);
    json_put_count(object, "max_age_usec", ring->max_age_usec);
    json_put_count(object, "oldest_ns", wall_clock_of(session->context, stats.oldest_tsc));
    json_put_count(object, "newest_ns", wall_clock_of(session->context, stats.newest_tsc));
    if (ring->ring && session->state < SESSION_FINISHING)
        put_history(object, session, ring, &stats);
    json_put_bool(object, "locked", ring->ring && ring_is_locked(ring->ring));
    json_put_bool(object, "kept", ring->is_kept);
    json_put_count(object, "restored", ring->restored);
    json_put_count(object, "snapshots", ring->snapshots);
    return object;
}

json *document_of_segment(const struct session *session, const struct segment *segment)
{
    json *object = json_object_new_object();
    char path[PATH_MAX];

    segment_path(session, segment, path);
    json_put_text(object, "path", path);
    json_put_count(object, "number", segment->number);
    json_put_count(object, "bytes", segment->bytes);
    put_compression(object, segment->is_packed, segment->plain_bytes, segment->raw_bytes);
    json_put_count(object, "first_ns", segment->first_ns);
    json_put_count(object, "last_ns", segment->last_ns);
    json_put_count(object, "first_tsc", segment->first_tsc);
    json_put_count(object, "last_tsc", segment->last_tsc);
    put_complete_from(object, session, segment->complete_from_tsc);
    json_put_count(object, "records", segment->records);
    json_put_count(object, "lost", segment->lost);
    json_put_count(object, "dropped", segment->dropped);
    if (segment->missing_before)
        json_put_count(object, "missing_before", segment->missing_before);
    json_put_text(object, "reason", segment_reason_name(segment->reason));
    return object;
}

static void add_open_segment(json *files, const struct session *session, const struct sink *sink,
                             unsigned int number, enum segment_reason reason, uint64_t missing)
{
    struct segment segment;

    segment_describe(session, sink, &segment);
    segment.number = number;
    segment.reason = reason;
    segment.missing_before = missing;
    (void)json_object_array_add(files, document_of_segment(session, &segment));
}

static json *segment_files_document(const struct session *session, const struct segments *segments)
{
    size_t first =
        segments->nr_files > SEGMENTS_SHOWN_MAX ? segments->nr_files - SEGMENTS_SHOWN_MAX : 0;
    json *files = json_object_new_array();

    for (size_t i = first; i < segments->nr_files; i++)
        if (!segments->files[i]->is_unread)
            (void)json_object_array_add(files,
                                        document_of_segment(session, &segments->files[i]->segment));
    if (segments->before && segments->before_number)
        add_open_segment(files, session, segments->before, segments->before_number,
                         segments->before_reason, segments->before_missing);
    if (!segments->is_over && segments->storage.sink && !segments->is_holding)
        add_open_segment(files, session, segments->storage.sink, segments->number,
                         SEGMENT_IS_WRITTEN, segments->current_missing);
    return files;
}

static json *segments_document(const struct session *session, const struct segments *segments)
{
    json *object = json_object_new_object();

    json_put_count(object, "size_bytes", segments->size_bytes);
    json_put_count(object, "time_usec", segments->time_usec);
    json_put_count(object, "keep_files", segments->keep_files);
    json_put_count(object, "keep_size_bytes", segments->keep_bytes);
    json_put_bool(object, "paused", segments->storage.space.is_paused);
    json_put_count(object, "written", segments->written);
    json_put_count(object, "deleted", segments->deleted);
    json_put_count(object, "continued", session->continued);
    json_put(object, "files", segment_files_document(session, segments));
    return object;
}

static json *end_document(const struct session *session)
{
    json *end = json_object_new_object();

    put_clock(end, session->ended);
    json_put_text(end, "reason", end_reason_name(session->reason));
    json_put_text(end, "message", session->message);
    json_put_bool(end, "ok", end_reason_is_ok(session->reason));
    return end;
}

static void put_selection(json *document, const struct selection *selection)
{
    json *events = json_object_new_object();
    json *cpus = json_object_new_object();

    json_put_text(events, "spec", selection->events_spec);
    json_put_count(events, "xen_mask", event_set_xen_mask(&selection->events));
    json_put_bool(events, "filtered", !event_set_is_exact(&selection->events));
    json_put(document, "events", events);
    json_put_text(cpus, "spec", selection->cpus_spec);
    put_cpus(cpus, "list", &selection->cpus);
    json_put(document, "cpus", cpus);
}

static void put_settings(json *document, const struct session *session)
{
    const struct settings *settings = &session->settings;
    json *limits = json_object_new_object();
    json *options = json_object_new_object();

    json_put_count(limits, "time_usec", settings->time_usec);
    json_put_count(limits, "reserve_bytes",
                   settings->reserve_bytes == DISK_RESERVE_AUTO ? 0 : settings->reserve_bytes);
    json_put_count(limits, "max_size_bytes", settings->max_size_bytes);
    json_put_text(limits, "on_reserve", on_reserve_name(session->storage->space.on_reserve));
    json_put(document, "limits", limits);
    json_put_count(options, "poll_usec", settings->poll_usec);
    json_put_bool(options, "discard", settings->discard);
    json_put_bool(options, "keep_enabled", settings->keep_enabled);
    json_put_bool(options, "start_disabled", settings->start_disabled);
    json_put_bool(options, "persist", settings->is_persistent);
    json_put_bool(options, "configured", settings->is_configured);
    json_put(document, "options", options);
}

static json *buffers_document(const struct session *session)
{
    const struct session_context *context = session->context;
    json *buffers = json_object_new_object();
    struct cpu_set have = {0}, set_aside = {0};

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct drain_cpu state;

        drain_read_cpu(collector_drain(context->collector), cpu, &state);
        if (state.has_buffer)
            cpu_set_add(&have, cpu);
        if (state.set_aside)
            cpu_set_add(&set_aside, cpu);
    }
    put_cpus(buffers, "silent", &session->silent);
    put_cpus(buffers, "missing", &session->missing);
    json_put_count(buffers, "pages", tracing_buffer_pages(context->tracing));
    put_cpus(buffers, "cpus", &have);
    put_cpus(buffers, "set_aside", &set_aside);
    return buffers;
}

static void put_ledger(json *object, const struct ledger *ledger)
{
    json_put_count(object, "produced", ledger->produced);
    json_put_count(object, "delivered", ledger->delivered);
    json_put_count(object, "lost", ledger->lost);
    json_put_count(object, "dropped", ledger->dropped);
    json_put_count(object, "evicted", ledger->evicted);
}

static json *cpu_document(const struct session *session, unsigned int cpu,
                          const struct ledger *ledger)
{
    json *object = json_object_new_object();
    struct drain_cpu state;

    drain_read_cpu(collector_drain(session->context->collector), cpu, &state);
    json_put_count(object, "cpu", cpu);
    put_ledger(object, ledger);
    json_put_count(object, "first_tsc", ledger->first_tsc);
    json_put_count(object, "last_tsc", ledger->last_tsc);
    if (session->state != SESSION_ENDED)
        json_put_count(object, "fill_percent", state.fill_percent);
    return object;
}

/* Those that there are; a reader takes the others as 0. */
static void put_drops(json *document, const uint64_t drops[static DROP_CAUSES])
{
    json *object = json_object_new_object();

    for (unsigned int i = 0; i < DROP_CAUSES; i++)
        if (drops[i])
            json_put_count(object, drop_causes[i].name, drops[i]);
    json_put(document, "dropped_by", object);
}

/* Of SINK alone, or as LINES are, per CPU; NULL both: of the whole session. */
static json *ledger_document(const struct session *session, const struct sink *sink,
                             const struct ledger *lines)
{
    json *document = json_object_new_object();
    json *cpus = json_object_new_array();
    struct sink_totals totals = {0};
    struct ledger total = {0};

    for (unsigned int cpu = 0; cpu < session->selection.nr_cpus; cpu++) {
        struct ledger ledger;

        if (!cpu_set_has(&session->selection.cpus, cpu))
            continue;
        if (sink)
            sink_read_ledger(sink, cpu, &ledger);
        else if (lines)
            ledger = lines[cpu];
        else
            session_read_ledger(session, cpu, &ledger);
        total.produced += ledger.produced;
        total.delivered += ledger.delivered;
        total.lost += ledger.lost;
        total.dropped += ledger.dropped;
        total.evicted += ledger.evicted;
        (void)json_object_array_add(cpus, cpu_document(session, cpu, &ledger));
    }
    put_ledger(document, &total);
    if (sink)
        sink_read_totals(sink, &totals);
    else if (lines) /* of a segment that was being written when a daemon ended */
        totals.drops[DROP_RESTART] = total.dropped;
    else
        session_read_totals(session, &totals);
    put_drops(document, totals.drops);
    put_cpus(document, "loss_unknown_cpus", &session->loss_unknown);
    json_put(document, "cpus", cpus);
    return document;
}

/* LOSS_TSC is a reading of our own TSC; 0: there was no loss. */
static json *session_ledger_document(const struct session *session, uint64_t loss_tsc)
{
    json *document = ledger_document(session, NULL, NULL);
    uint64_t xen_tsc = loss_tsc ? loss_tsc + tsc_offset() : 0;

    json_put_count(document, "last_loss_ns", wall_clock_of(session->context, xen_tsc));
    return document;
}

static json *classes_document(const struct sink_totals *totals)
{
    json *classes = json_object_new_object();

    for (unsigned int i = 0; i < EVENT_CLASSES; i++) {
        const char *name = event_class_name(UINT32_C(0x10000) << i);
        json *known = NULL;

        if (totals->class_records[i] == 0)
            continue;
        /* Several class bits have no name of their own. */
        (void)json_object_object_get_ex(classes, name, &known);
        json_put_count(classes, name, totals->class_records[i] + json_object_get_uint64(known));
    }
    return classes;
}

static json *host_document(const struct session_context *context, const struct host *host)
{
    const struct xen_host_info *xen = xen_host_info(context->xen);
    json *object = json_object_new_object();

    json_put_text(object, "hostname", host->hostname);
    json_put_text(object, "boot_id", host->boot_id);
    json_put_text(object, "xen_version", xen->version);
    json_put_text(object, "xen_changeset", xen->changeset);
    json_put_text(object, "xen_commandline", xen->commandline);
    json_put_text(object, "cpu_vendor", host->cpu_vendor);
    json_put_text(object, "cpu_model", host->cpu_model);
    json_put_count(object, "tsc_khz", xen->tsc_khz);
    json_put_count(object, "tsc_offset", tsc_offset());
    json_put_count(object, "tsc_offset_uncertainty_ns",
                   clock_nsec_of_tsc(tsc_offset_uncertainty(), xen->tsc_khz));
    json_put_count(object, "cpus", xen->nr_cpus);
    json_put_text(object, "scheduler", xen->scheduler);
    json_put_text(object, "scheduler_granularity", xen->granularity);
    return object;
}

static void add_clock(json *clocks, struct clock_pair pair)
{
    json *object = json_object_new_object();

    put_clock(object, pair);
    (void)json_object_array_add(clocks, object);
}

/*
 * Pairs by which records are dated: as of the session's start and end, or now, and between them
 * those that concern records from FROM_TSC to TO_TSC (0: all).
 */
static json *clocks_document(const struct session *session, uint64_t from_tsc, uint64_t to_tsc)
{
    struct clock_pair start = session->started, end = clock_pair_now(), pairs[CLOCK_PAIRS_MAX];
    json *clocks = json_object_new_array();
    size_t count;

    clock_history_note(session->context->clock, end, false);
    if (session->state >= SESSION_SEALING)
        end = session->ended;
    count = clock_history_read(session->context->clock, from_tsc, to_tsc, pairs);
    add_clock(clocks, start);
    for (size_t i = 0; i < count; i++)
        if (pairs[i].tsc > start.tsc && pairs[i].tsc < end.tsc)
            add_clock(clocks, pairs[i]);
    add_clock(clocks, end);
    return clocks;
}

/* Bytes that may still be written before the reserve, or the limit of the file, is reached. */
static void put_room(json *object, const struct session *session, const struct sink_totals *totals)
{
    const struct output *output = session->storage->output;
    struct sink_totals current = *totals;
    uint64_t left, granted_left;

    if (!output || output->figures.fd < 0 || output->figures.is_stream ||
        session->state > SESSION_RUNNING || ring_storage_of(session))
        return;
    if (storage_is_segmented(session->storage)) /* of this file alone */
        sink_read_totals(session->storage->sink, &current);
    granted_left = output->figures.granted_bytes -
                   min_u64(current.output_bytes, output->figures.granted_bytes);
    left = output->figures.headroom_bytes + granted_left;
    if (output->max_bytes != UINT64_MAX)
        left = min_u64(left, output->max_bytes - min_u64(current.output_bytes, output->max_bytes));
    json_put_count(object, "room_bytes", left);
}

static json *session_output_document(const struct session *session,
                                     const struct sink_totals *totals)
{
    const struct ring_storage *ring = ring_storage_of(session);
    json *object = output_document(session->storage->output, &session->sidecar,
                                   ring ? ring->final_bytes : totals->output_bytes,
                                   totals->queued_bytes, session_waiting_since_usec(session));

    put_compression(object, session->settings.is_packed,
                    ring ? ring->write.plain_bytes : totals->plain_bytes, totals->raw_bytes);
    json_put_bool(object, "paused", session->storage->space.is_paused);
    put_room(object, session, totals);
    if (session_held_bytes(session))
        json_put_count(object, "held_bytes", session_held_bytes(session));
    return object;
}

static void put_storage(json *document, const struct session *session,
                        const struct sink_totals *totals)
{
    const struct ring_storage *ring = ring_storage_of(session);

    if (!session->settings.is_recorder)
        json_put(document, "output", session_output_document(session, totals));
    if (ring)
        json_put(document, "ring", ring_document(session, ring));
    if (storage_is_segmented(session->storage))
        json_put(document, "segments", segments_document(session, segments_of(session->storage)));
}

/* A ring's file begins where the ring did when it was written. */
static uint64_t complete_from_of(const struct session *session, const struct sink_totals *totals)
{
    const struct ring_storage *ring = ring_storage_of(session);

    return ring && ring->final_bytes ? ring->write.plan.complete_from_tsc
                                     : totals->complete_from_tsc;
}

/* The domains that were there at FROM_NS or later. */
static void put_domains(json *document, const struct session *session, uint64_t from_ns)
{
    uint64_t until_ns = session->state >= SESSION_SEALING ? session->ended.realtime_ns
                                                          : clock_pair_now().realtime_ns;

    domains_put(document, &session->domains, session->context->names, from_ns, until_ns);
}

/* AS_SEALED: as its last sidecar shows it. */
static void put_requester(json *document, const struct requester *requester)
{
    json *object;

    if (!requester->is_set)
        return;
    object = json_object_new_object();
    json_put_count(object, "uid", requester->uid);
    if (requester->pid > 0)
        json_put_count(object, "pid", (uint64_t)requester->pid);
    json_put_text(object, "comm", requester->comm);
    json_put(document, "requested_by", object);
}

static json *describe_session(const struct session *session, bool as_sealed)
{
    const char *state = session_state_name(session, as_sealed);
    json *document = json_object_new_object();
    json *started = json_object_new_object();
    struct sink_totals totals;

    session_read_totals(session, &totals);
    json_put_text(document, "format", "xentraced-session");
    json_put_count(document, "version", 1);
    json_put_text(document, "name", session->name);
    json_put_text(document, "kind", session->storage->kind->name);
    json_put_bool(document, "recorder", session->settings.is_recorder);
    put_requester(document, &session->requester);
    json_put_text(document, "state", state);
    put_storage(document, session, &totals);
    put_clock(started, session->started);
    json_put(document, "started", started);
    if (strcmp(state, "ended") == 0)
        json_put(document, "ended", end_document(session));
    put_selection(document, &session->selection);
    put_settings(document, session);
    json_put(document, "buffers", buffers_document(session));
    json_put(document, "ledger", session_ledger_document(session, totals.last_loss_tsc));
    json_put(document, "classes", classes_document(&totals));
    json_put_count(document, "windows", totals.windows);
    put_complete_from(document, session, complete_from_of(session, &totals));
    json_put(document, "host", host_document(session->context, session->context->host));
    json_put(document, "clock", clocks_document(session, 0, 0));
    put_domains(document, session, 0);
    return document;
}

json *document_of_session(const struct session *session)
{
    return describe_session(session, false);
}

json *document_for_sidecar(const struct session *session)
{
    return describe_session(session, true);
}

json *document_of_segment_file(const struct session *session, const struct segment *segment,
                               const struct sink *sink)
{
    json *document = document_for_sidecar(session);
    json *object = document_of_segment(session, segment), *output = NULL, *path = NULL;

    json_put(object, "ledger", ledger_document(session, sink, segment->ledger));
    (void)json_object_object_get_ex(object, "path", &path);
    (void)json_object_object_get_ex(document, "output", &output);
    json_put(output, "path", json_object_get(path));
    json_put_count(output, "bytes", segment->bytes);
    json_put_count(output, "queued_bytes", 0);
    put_compression(output, segment->is_packed, segment->plain_bytes, segment->raw_bytes);
    json_object_object_del(output, "sidecar"); /* that is the session's */
    json_put(document, "clock", clocks_document(session, segment->first_tsc, segment->last_tsc));
    put_domains(document, session, wall_clock_of(session->context, segment->first_tsc));
    json_put(document, "segment", object);
    return document;
}

static json *snapshot_object(const struct snapshot *snapshot)
{
    const struct session_context *context = snapshot->session->context;
    const struct snapshot_plan *plan = &snapshot->plan;
    json *object = json_object_new_object();

    json_put_text(object, "session", snapshot->session->name);
    json_put_text(object, "label", snapshot->label);
    json_put_text(object, "cause", snapshot_cause_name(snapshot->cause));
    json_put_text(object, "reason", snapshot->trigger ? snapshot->trigger->last_reason : "");
    json_put_count(object, "reason_ns", snapshot->trigger ? snapshot->trigger->last_fired_ns : 0);
    json_put_count(object, "reason_tsc", snapshot->trigger ? snapshot->trigger->last_tsc : 0);
    json_put_text(object, "message", snapshot->message);
    json_put_bool(object, "ok", !snapshot->failure.name);
    json_put_count(object, "first_ns", wall_clock_of(context, plan->first_tsc));
    json_put_count(object, "last_ns", wall_clock_of(context, plan->last_tsc));
    json_put_count(object, "first_tsc", plan->first_tsc);
    json_put_count(object, "last_tsc", plan->last_tsc);
    put_complete_from(object, snapshot->session, plan->complete_from_tsc);
    json_put_count(object, "asked_usec", snapshot->ticks.asked_usec);
    json_put_count(object, "asked_since_ns", snapshot->span.since_ns);
    json_put_count(object, "asked_until_ns",
                   snapshot->ticks.has_until ? wall_clock_of(context, snapshot->ticks.end_tsc) : 0);
    json_put_count(object, "held_usec", snapshot->coverage.held_usec);
    json_put_text(object, "shorter_because", history_limit_name(snapshot->coverage.limit));
    json_put_text(object, "shorter_message", snapshot->shorter);
    json_put_count(object, "records", plan->records);
    json_put_count(object, "lost", plan->lost);
    json_put_count(object, "evicted", snapshot->evicted);
    json_put_count(object, "shortened_bytes", snapshot->shortened_bytes);
    json_put_count(object, "pin_usec", (snapshot->pin_nsec + 999) / 1000);
    json_put_count(object, "write_usec",
                   clock_usec_between(snapshot->requested, snapshot->ended,
                                      xen_host_info(context->xen)->tsc_khz));
    return object;
}

static void put_snapshot(json *document, const struct snapshot *snapshot)
{
    json *times = json_object_new_object();
    json *output = output_document(snapshot->output, &snapshot->sidecar, snapshot->plan.bytes, 0,
                                   snapshot_waiting_since_usec(snapshot));

    put_compression(output, snapshot->is_packed, snapshot->plain_bytes, 0);
    json_put_text(document, "format", "xentraced-snapshot");
    json_put_count(document, "version", 1);
    json_put_text(document, "name", snapshot->name);
    json_put_text(document, "kind", "snapshot");
    put_requester(document, &snapshot->requester);
    json_put_text(document, "state", "ended");
    json_put(document, "output", output);
    json_put(document, "snapshot", snapshot_object(snapshot));
    put_clock(times, snapshot->session->started);
    json_put(document, "started", times);
    times = json_object_new_object();
    put_clock(times, snapshot->ended);
    json_put(document, "ended", times);
    put_selection(document, &snapshot->session->selection);
}

json *document_of_snapshot_summary(const struct snapshot *snapshot)
{
    json *document = json_object_new_object();

    put_snapshot(document, snapshot);
    return document;
}

json *document_of_snapshot(const struct snapshot *snapshot)
{
    const struct session *session = snapshot->session;
    json *document = document_of_snapshot_summary(snapshot);

    json_put(document, "buffers", buffers_document(session));
    json_put(document, "host", host_document(session->context, session->context->host));
    json_put(document, "clock",
             clocks_document(session, snapshot->plan.first_tsc, snapshot->plan.last_tsc));
    put_domains(document, session, wall_clock_of(session->context, snapshot->plan.first_tsc));
    return document;
}
