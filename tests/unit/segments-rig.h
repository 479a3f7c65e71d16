/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Segments with a worker, a collector and a session that do nothing by themselves.
 *
 * The fake worker keeps requests in order until the test answers them: asks() checks which comes
 * first, and with what it is answered. So the test can hold every state between a request and its
 * completion, and do there what it likes. The fake collector notes what it is sent, until says()
 * asks for it; the fake session notes what it and the manager hear, until hears() does.
 */

#include "daemon/session/persist.h"
#include "daemon/session/segment-recovery.h"
#include "daemon/session/segments.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/host/explain.h"
#include "daemon/output/output.h"
#include "daemon/output/sidecar.h"
#include "daemon/session/loss-report.h"
#include "daemon/session/session.h"
#include "daemon/session/space.h"
#include "daemon/session/storage.h"
#include "tests/unit/test.h"

#define MIB UINT64_C(1048576)

static char directory[] = "test-segments-XXXXXX"; /* in the working directory */

/* --- The fake worker: requests in order. --- */

#define REQUESTS_MAX 16
#define TEXT_MAX     160
#define CPUS         2u

struct request {
    char text[TEXT_MAX];
    struct output *output; /* NULL: none */
    enum output_operation operation;
    output_done_fn done;
    struct job *job; /* NULL: none */
    void (*sidecar_done)(void *userdata, int error);
    void *userdata;
};

static struct request requests[REQUESTS_MAX];
static size_t nr_requests;
static unsigned int nr_outputs; /* not freed */
static unsigned int nr_sinks;
static unsigned int nr_armed; /* timers */
static char collector_text[TEXT_MAX];
static char session_text[4 * TEXT_MAX]; /* what the session and the manager heard */
static char log_text[1024];
static bool fails_sink; /* the next one cannot be made */

_printf_(3, 4) static void append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list arguments;

    if (length > 0 && length + 2 < size) {
        (void)strcat(text, ", ");
        length += 2;
    }
    va_start(arguments, format);
    (void)vsnprintf(text + length, size - length, format, arguments);
    va_end(arguments);
}

#define NOTE_SESSION(...) append(session_text, sizeof(session_text), __VA_ARGS__)

static struct request *add_request(void)
{
    assert(nr_requests < REQUESTS_MAX);
    requests[nr_requests] = (struct request){0};
    return &requests[nr_requests++];
}

static void answer(const struct request *request, int error)
{
    struct failure failure = {.name = error < 0 ? ERROR_OUTPUT : NULL};
    struct output *output = request->output;

    (void)snprintf(failure.text, sizeof(failure.text), "It failed.");
    if (request->job) {
        request->job->run(request->job);
        request->job->done(request->job);
        return;
    }
    if (request->sidecar_done) {
        request->sidecar_done(request->userdata, error);
        return;
    }
    if (!output)
        return; /* freed meanwhile */
    output->under_way &= ~(UINT32_C(1) << request->operation);
    if (error >= 0 && request->operation == OUTPUT_OPEN)
        output->figures.granted_bytes = request->output->written_bytes;
    if (request->done)
        request->done(output->userdata, error, &failure);
}

/* The oldest request is TEXT; it is answered with ERROR. */
static bool asks(const char *text, int error)
{
    struct request request = requests[0];
    bool ok = CHECK_STR(nr_requests > 0 ? request.text : "", text);

    if (nr_requests == 0)
        return false;
    memmove(&requests[0], &requests[1], --nr_requests * sizeof(requests[0]));
    if (ok)
        answer(&request, error);
    return ok;
}

/* All that is asked before TEXT is granted. */
static void grants_until(const char *text)
{
    while (nr_requests > 0 && strcmp(requests[0].text, text) != 0)
        asks(requests[0].text, 0);
}

static bool asks_nothing(void)
{
    return CHECK_STR(nr_requests > 0 ? requests[0].text : "", "");
}

/* What was sent to the collector since the last time. */
static bool says(const char *text)
{
    bool ok = CHECK_STR(collector_text, text);

    collector_text[0] = '\0';
    return ok;
}

/* What the session and the manager heard. */
static bool hears(const char *text)
{
    bool ok = CHECK_STR(session_text, text);

    session_text[0] = '\0';
    return ok;
}

void worker_send(struct worker *worker, struct job *job)
{
    struct request *request = add_request();

    (void)worker;
    request->job = job;
    (void)snprintf(request->text, TEXT_MAX, "remove %s",
                   job_container(job, struct segment_removal, job)->name);
}

bool output_is_busy(const struct output *output, enum output_operation operation)
{
    return output->under_way >> operation & 1;
}

_printf_(4, 5) static void request_output(struct output *output, enum output_operation operation,
                                          output_done_fn done, const char *format, ...)
{
    struct request *request = add_request();
    va_list arguments;

    assert(!output_is_busy(output, operation));
    output->under_way |= UINT32_C(1) << operation;
    request->output = output;
    request->operation = operation;
    request->done = done;
    va_start(arguments, format);
    (void)vsnprintf(request->text, TEXT_MAX, format, arguments);
    va_end(arguments);
}

int output_new(struct worker *worker, const struct output_request *request, output_done_fn done,
               void *userdata, struct output **ret_output)
{
    struct output *output = calloc(1, sizeof(*output));

    (void)worker;
    assert(output);
    (void)snprintf(output->name, sizeof(output->name), "%s", request->name);
    output->userdata = userdata;
    output->written_bytes =
        request->first_aim_bytes ? request->first_aim_bytes : request->aim_bytes;
    output->request = *request;
    nr_outputs++;
    *ret_output = output;
    request_output(output, OUTPUT_OPEN, done, "%s %s",
                   request->naming == OUTPUT_PREPARED ? "prepare" : "create", request->name);
    return 0;
}

struct output *output_free(struct output *output)
{
    if (!output)
        return NULL;
    for (size_t i = 0; i < nr_requests; i++)
        if (requests[i].output == output)
            requests[i].output = NULL;
    nr_outputs--;
    free(output->figures.path);
    free(output);
    return NULL;
}

void output_publish(struct output *output, const char *name, output_done_fn done)
{
    request_output(output, OUTPUT_PUBLISH, done, "publish %s as %s", output->name, name);
}

void output_finish(struct output *output, uint64_t bytes, output_done_fn done)
{
    request_output(output, OUTPUT_FINISH, done, "finish %s at %" PRIu64, output->name, bytes);
}

void output_remove(struct output *output, output_done_fn done)
{
    request_output(output, OUTPUT_REMOVE, done, "take back %s", output->name);
}

void output_set_path(struct output *output, const char *path)
{
    free(output->figures.path);
    output->figures.path = strdup(path);
}

void sidecar_init(struct sidecar *sidecar)
{
    *sidecar = (struct sidecar){.fd = -1};
}

void sidecar_done(struct sidecar *sidecar, struct worker *worker)
{
    (void)worker;
    free_charp(&sidecar->name);
}

int sidecar_name(struct sidecar *sidecar, int directory_fd, const char *directory_path,
                 const char *name)
{
    (void)directory_fd, (void)directory_path;
    sidecar->name = strdup(name);
    return sidecar->name ? 0 : -ENOMEM;
}

int sidecar_write(const struct sidecar *sidecar, struct worker *worker,
                  struct json_object *document, bool is_last,
                  void (*done)(void *userdata, int error), void *userdata)
{
    (void)is_last;
    struct request *request = add_request();

    (void)worker, (void)document;
    request->sidecar_done = done;
    request->userdata = userdata;
    (void)snprintf(request->text, TEXT_MAX, "sidecar %s", sidecar->name);
    return 0;
}

int sidecar_check_none(int directory_fd, const char *directory_path, const char *name,
                       struct failure *failure)
{
    (void)directory_fd, (void)directory_path;
    if (strcmp(name, "old") != 0)
        return 0;
    return failure_set(failure, -EEXIST, ERROR_NAME_IN_USE, "its sidecar");
}

/* --- The fake collector. --- */

struct sink {
    unsigned int serial; /* in the order in which they are made */
    struct ledger ledger;
    struct sink_totals totals;
};

static unsigned int last_serial;

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger)
{
    *ret_ledger = cpu == 0 ? sink->ledger : (struct ledger){0};
}

void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals)
{
    *ret_totals = sink->totals;
}

struct sink *sink_free(struct sink *sink)
{
    nr_sinks -= sink != NULL;
    free(sink);
    return NULL;
}

/* RECORDS, of 100 bytes each. */
static void record(struct sink *sink, uint64_t records)
{
    sink->ledger.produced += records;
    sink->ledger.delivered += records;
    sink->ledger.first_tsc = sink->ledger.first_tsc ? sink->ledger.first_tsc : 1;
    sink->ledger.last_tsc++;
    sink->totals.windows++;
    sink->totals.output_bytes += 100 * records;
}

void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value)
{
    (void)collector, (void)flag, (void)value;
    assert(type == MESSAGE_ABORT);
    append(collector_text, sizeof(collector_text), "abort %u", sink->serial);
}

void collector_send_successor(struct collector *collector, struct sink *sink,
                              struct sink *successor, bool now)
{
    (void)collector;
    append(collector_text, sizeof(collector_text), "%u after %u%s", successor->serial, sink->serial,
           now ? ", now" : "");
}

const struct xen_host_info *xen_host_info(const struct xen_host *host)
{
    static const struct xen_host_info info = {.nr_cpus = CPUS, .tsc_khz = 1000000};

    (void)host;
    return &info;
}

/* --- The fake session, and what else there is. --- */

const char *explain_write(int error)
{
    return error == -EIO ? "the disk failed" : "it failed";
}

void log_line(int priority, const char *session, const char *format, ...)
{
    va_list arguments;

    (void)priority, (void)session;
    va_start(arguments, format);
    (void)vsnprintf(log_text, sizeof(log_text), format, arguments);
    va_end(arguments);
}

int storage_init(struct storage *storage, const struct storage_kind *kind, struct session *session,
                 const struct session_options *options, struct failure *failure)
{
    (void)failure;
    storage->kind = kind;
    storage->session = session;
    storage->is_sink_closed = true;
    if (options->on_reserve)
        storage->space.on_reserve = ON_RESERVE_ROTATE;
    return 0;
}

int storage_make_sink(const struct storage *storage, const struct output *output,
                      uint64_t rotate_bytes, struct sink **ret_sink)
{
    struct sink *sink;

    (void)storage, (void)rotate_bytes;
    assert(!output_is_busy(output, OUTPUT_OPEN));
    if (fails_sink)
        return -ENOMEM;
    sink = calloc(1, sizeof(*sink));
    assert(sink);
    sink->serial = ++last_serial;
    nr_sinks++;
    *ret_sink = sink;
    return 0;
}

static void handle_removed(void *userdata, int error, const struct failure *failure)
{
    const struct storage *storage = userdata;

    (void)error, (void)failure;
    session_handle_finished(storage->session);
}

void storage_remove_output(struct storage *storage)
{
    output_remove(storage->output, handle_removed);
}

void space_stop_waiting(struct storage *storage)
{
    (void)storage;
}

void space_reset(struct storage *storage)
{
    (void)storage;
    NOTE_SESSION("space reset");
}

void session_handle_opened(struct session *session, const char *name, int error,
                           const struct failure *failure)
{
    (void)failure;
    NOTE_SESSION("opened %s %d", name, error);
    CHECK_STR(name, session->name);
}

void session_handle_failure(struct session *session, const struct output *output, int error)
{
    (void)session;
    NOTE_SESSION("%s failed %d", output->name, error);
}

void session_end_output(struct session *session, enum end_reason reason)
{
    CHECK_INT(reason, END_OUTPUT_ERROR);
    NOTE_SESSION("ends");
    session->reason = reason;
    session->storage->kind->stop(session->storage);
    session->state = SESSION_DRAINING;
}

void session_explain_finish(struct session *session, const struct output *output, int error)
{
    (void)session, (void)error;
    NOTE_SESSION("%s not finished", output->name);
}

void session_handle_handover(struct session *session)
{
    (void)session;
    NOTE_SESSION("handover");
}

/* As session.c: when all is quiet, finish(). */
static bool is_closing;

void session_continue_end(struct session *session)
{
    if (!is_closing || !session->storage->is_sink_closed ||
        !session->storage->kind->is_quiet(session->storage))
        return;
    is_closing = false;
    session->storage->kind->finish(session->storage);
}

void session_handle_finished(struct session *session)
{
    (void)session;
    NOTE_SESSION("finished");
}

void session_note_sidecar(struct session *session, bool begins)
{
    (void)session;
    NOTE_SESSION("%s", begins ? "seals" : "sealed");
}

/* Captures that continue have a test of their own: test-persist. */
void persist_save(struct session *session)
{
    (void)session;
}

int recovery_read(const struct recovery_request *request, struct recovery *ret_recovery,
                  struct failure *failure)
{
    (void)request, (void)failure;
    *ret_recovery = (struct recovery){0};
    return 0;
}

int recovery_complete(const struct recovery_request *request, struct recovered_segment *segment)
{
    (void)request, (void)segment;
    return 0;
}

int worker_new(struct workers *workers, const char *name, struct worker **ret_worker)
{
    (void)workers, (void)name, (void)ret_worker;
    return -ENOMEM;
}

struct worker *worker_free(struct worker *worker)
{
    (void)worker;
    return NULL;
}

void recovery_done(struct recovery *recovery)
{
    (void)recovery;
}

int sink_new(const struct sink_config *config, struct pool *pool, struct sink **ret_sink)
{
    (void)config, (void)pool, (void)ret_sink;
    CHECK_NEVER("a sink that holds");
    return -ENOMEM;
}

void sink_add_gap(struct sink *sink, unsigned int cpu, uint64_t count, uint64_t first_tsc)
{
    (void)sink, (void)cpu, (void)count, (void)first_tsc;
}

void session_note_reserve(struct session *session, const struct output *output)
{
    (void)session, (void)output;
}

void session_expect_answer(struct session *session)
{
    (void)session;
}

/* Timers that go off when the test says. */
struct sd_event_source {
    sd_event_time_handler_t handler;
    void *userdata;
};

static sd_event_source *last_timer;

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret_source, clockid_t clock,
                               uint64_t usec, uint64_t accuracy, sd_event_time_handler_t handler,
                               void *userdata)
{
    (void)event, (void)clock, (void)usec, (void)accuracy;
    last_timer = calloc(1, sizeof(*last_timer));
    assert(last_timer);
    *last_timer = (struct sd_event_source){.handler = handler, .userdata = userdata};
    *ret_source = last_timer;
    nr_armed++;
    return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
    nr_armed -= source != NULL;
    free(source);
    return NULL;
}

int sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret_usec)
{
    (void)event, (void)clock;
    *ret_usec = 1;
    return 0;
}

void loss_report_look(struct session *session, uint64_t now_usec)
{
    (void)session, (void)now_usec;
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
    (void)source, (void)usec;
    return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
    (void)source, (void)enabled;
    return 0;
}

static void expire(sd_event_source *source)
{
    (void)source->handler(source, 0, source->userdata);
}

static struct json_object *describe_segment(const struct session *session,
                                            const struct segment *segment, const struct sink *sink)
{
    (void)session, (void)segment, (void)sink;
    return NULL;
}

static void handle_segment_finished(void *userdata, const struct session *session,
                                    unsigned int number, const struct segment *segment)
{
    (void)userdata, (void)session;
    if (segment)
        NOTE_SESSION("segment %u %s %" PRIu64, number, segment_reason_name(segment->reason),
                     segment->records);
    else
        NOTE_SESSION("segment %u empty", number);
}

static struct session_context context = {
    .state_dir = directory,
    .describe_segment = describe_segment,
    .segment_finished = handle_segment_finished,
};

/* --- The rig. --- */

struct rig {
    struct session session;
    struct storage *storage;
    const struct segments *segments;
};

static void rig_open(struct rig *rig, const struct session_options *options)
{
    struct session *session = &rig->session;
    struct failure failure = {0};

    *rig = (struct rig){.session = {.context = &context, .name = "a"}};
    session->selection.nr_cpus = CPUS;
    session->state = SESSION_OPENING;
    last_serial = 0;
    is_closing = false;
    log_text[0] = '\0';
    CHECK_INT(segments_new(session, options, &rig->storage, &failure), 0);
    session->storage = rig->storage;
    rig->segments = segments_of(rig->storage);
    CHECK_INT(rig->storage->kind->open(rig->storage, options, &failure), 0);
}

/* It runs; the next one is being prepared. */
static void rig_run(struct rig *rig, const struct session_options *options)
{
    struct failure failure = {0};

    rig_open(rig, options);
    asks("create a.00001", 0);
    hears("opened a 0");
    CHECK_INT(rig->storage->kind->make_sink(rig->storage, NULL, &failure), 0);
    rig->storage->is_sink_closed = false;
    rig->session.state = SESSION_RUNNING;
    rig->storage->kind->begin(rig->storage);
}

static const struct session_options by_size = {.segment_size_bytes = MIB};

static void rig_send(struct rig *rig, enum message_type type, struct sink *sink, int64_t value)
{
    struct message message = {.type = type, .sink = sink, .value = value};

    CHECK(sink == rig->storage->sink || rig->storage->kind->owns_sink(rig->storage, sink));
    rig->storage->kind->handle_message(rig->storage, &message);
}

/* RECORDS go into the current segment, and the collector hands over. */
static void rig_succeed(struct rig *rig, uint64_t records)
{
    if (records > 0)
        record(rig->storage->sink, records);
    rig_send(rig, MESSAGE_SUCCEEDED, rig->storage->sink, 0);
}

/* From prepared to prepared: segment NUMBER, of 10 records, is followed by another. */
static void rig_pass(struct rig *rig, unsigned int number)
{
    char text[TEXT_MAX];

    rig_succeed(rig, 10);
    rig_send(rig, MESSAGE_CLOSED, rig->segments->before, 0);
    (void)snprintf(text, sizeof(text), "publish a.%05u as a.%05u", number + 1, number + 1);
    asks(text, 0);
    (void)snprintf(text, sizeof(text), "prepare a.%05u", number + 2);
    grants_until(text);
    asks(text, 0);
    (void)snprintf(text, sizeof(text), "sidecar a.%05u", number);
    grants_until(text);
    asks(text, 0);
    collector_text[0] = session_text[0] = '\0';
}

/* As session_stop() does it. */
static void rig_stop(struct rig *rig)
{
    rig->storage->kind->stop(rig->storage);
    rig->session.state = SESSION_DRAINING;
}

/* The collector has given back the current sink. */
static void rig_close(struct rig *rig)
{
    rig->storage->is_sink_closed = true;
    is_closing = true;
    session_continue_end(&rig->session);
}

/* As session_abort(). */
static void rig_abort(struct rig *rig)
{
    rig->storage->kind->stop(rig->storage);
    rig->session.is_aborted = true;
    rig->storage->kind->abort(rig->storage);
}

/* Of all sinks that there were: nothing is counted twice, or not at all. */
static void check_balance(const struct rig *rig, uint64_t produced, uint64_t evicted)
{
    struct ledger ledger = {0};

    sink_read_ledger(rig->storage->sink, 0, &ledger);
    rig->storage->kind->add_ledger(rig->storage, 0, &ledger);
    CHECK_UINT(ledger.produced, produced);
    CHECK_UINT(ledger.evicted, evicted);
    CHECK_UINT(ledger.delivered + ledger.evicted, produced);
}

static void rig_done(struct rig *rig)
{
    CHECK(rig->storage->kind->is_quiet(rig->storage));
    rig->storage->kind->free(rig->storage);
    while (nr_requests > 0)
        asks(requests[0].text, 0);
    CHECK_UINT(nr_outputs, 0);
    CHECK_UINT(nr_sinks, 0);
    CHECK_UINT(nr_armed, 0);
    collector_text[0] = session_text[0] = '\0';
}
