// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lives of sessions, as words: what the user asks for, and what the worker, the collector and the
 * clock answer.
 *
 *   opened     the output is open               renamed    ... under the name s-2
 *   unopened   it could not be opened           ok, eio    the oldest sidecar is written, or failed
 *   attached, drained, wanted, limit, abandoned, closed    messages of the collector
 *   unsettled  drained, but losses are untold   failed, canceled, full, unread    a write failed
 *   finished   the storage is completed         quiet      nothing of it is under way any more
 *   stop, gone, abort, time                     requests, the client is gone, the time limit
 *   snap, unsnap                                a snapshot begins to read the ring, or has ended
 *   second, late, hour                          time passes: late is more than the 2 s of patience
 *   read       the reader of a stream has read  free       the event loop has ended
 *
 * What the session does in between is written down likewise. Of its storage: open, sink, begin,
 * halt, room, give-up, finish, seal. Of a sidecar: write. Of Xen: prepare, start, mute, leave,
 * provoke, disable. Of the collector: attach, drain, settle, close, ABORT. Of the log: waits,
 * answers, outdated (a sidecar). Its owner hears: running, ended:REASON, refused:ERROR, released.
 *
 * Each life is lived twice: by a session that is freed as soon as it is released, and by one that
 * is kept, as the manager keeps those that have ended, for an hour more.
 */

#include "daemon/session/persist.h"
#include "daemon/session/session.h"

#include <errno.h>
#include <stdarg.h>
#include <time.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/drain.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "common/util.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/host/domain-names.h"
#include "daemon/host/explain.h"
#include "daemon/output/output.h"
#include "daemon/session/file-storage.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/segments.h"
#include "daemon/session/space.h"
#include "daemon/session/storage.h"
#include "tests/unit/test.h"

#define HOUR_USEC    (3600 * USEC_PER_SEC)
#define SIDECARS_MAX 4u

/* What a life begins with. */
enum {
    CLIENTS = 1 << 0,      /* a client's output, without a sidecar */
    STREAM = 1 << 1,       /* ... which is a pipe */
    OTHERS = 1 << 2,       /* another session is traced for, too */
    KEEP_ENABLED = 1 << 3, /* --keep-enabled */
    LIMITED = 1 << 4,      /* --time 10 */
    NO_BUFFERS = 1 << 5,   /* tracing_prepare() fails */
    NO_SINK = 1 << 6,      /* make_sink() fails */
    NO_TRACING = 1 << 7,   /* tracing_start() fails */
    NO_MEMORY = 1 << 8,    /* sidecar_write() fails */
    BUSY = 1 << 9,         /* the storage has more under way than its sink, until `quiet` */
    RECORDER = 1 << 10,    /* nothing to open, and nothing to finish */
    RAN_OUT = 1 << 11,     /* the limit is the disk's */
    RESERVE = 1 << 12,     /* --reserve */
    PERSISTENT = 1 << 13,  /* --persist */
    NO_STATE = 1 << 14,    /* persist_save_now() fails */
};

static struct {
    unsigned int flags;
    char text[1024]; /* what happened */
    uint64_t now_usec;
    uint64_t busy_since_usec;
    uint64_t writing_since_usec;
    uint64_t output_bytes;
    uint64_t progress_usec;
    uint64_t held_bytes; /* of the pool, by the sink */
    bool is_idle_known;  /* Xen reports idle times: half of the time, for both CPUs */
    uint64_t drained_bytes;
    unsigned int nr_workers;
    bool has_writer; /* the thread of a compressed capture */
    unsigned int nr_storages;
    unsigned int nr_removed_states;
    unsigned int nr_ticks;  /* that looked after the page cache */
    char finished_name[64]; /* of the sidecar, when the storage was completed */
    const struct tracing_use *use;
    bool is_enabled;
    bool is_quiet;
    bool is_finishing;

    struct fake_sidecar {
        void (*done)(void *userdata, int error);
        void *userdata;
    } sidecars[SIDECARS_MAX];
    unsigned int nr_sidecars;

    struct fake_timer {
        sd_event_time_handler_t handler;
        void *userdata;
        uint64_t usec;
        bool is_set;
        bool is_on;
    } timers[4];

    struct sink {
        char byte;
    } sink;
    struct cpu_set unsettled;
} fake;

_printf_(1, 2) static void note(const char *format, ...)
{
    size_t length = strlen(fake.text);
    va_list arguments;

    if (length > 0 && length + 1 < sizeof(fake.text)) {
        fake.text[length++] = ' ';
        fake.text[length] = '\0';
    }
    va_start(arguments, format);
    (void)vsnprintf(fake.text + length, sizeof(fake.text) - length, format, arguments);
    va_end(arguments);
}

static bool has(unsigned int flag)
{
    return fake.flags & flag;
}

/* --- Of captures that continue. --- */

int persist_map_account(struct session *session, bool is_new, struct failure *failure)
{
    (void)session, (void)is_new, (void)failure;
    return 0;
}

int persist_save_now(const struct session *session, struct failure *failure)
{
    CHECK(session->state == SESSION_STARTING);
    note("save");
    return has(NO_STATE) ? failure_set(failure, -ENOSPC, ERROR_OUTPUT, "No space.") : 0;
}

void persist_end(struct session *session)
{
    (void)session;
}

void persist_remove(int runtime_dir_fd, const char *name)
{
    (void)runtime_dir_fd, (void)name;
    fake.nr_removed_states++;
}

/* --- The fakes: log, host. --- */

static void note_line(const char *line)
{
    CHECK(!strstr(line, "(null)"));
    if (strstr(line, "has been waiting for the disk"))
        note("waits");
    else if (strstr(line, "answers again"))
        note("answers");
    else if (strstr(line, "sidecar"))
        note("outdated");
    else if (strstr(line, "are in use"))
        note("silent:%.3s", strstr(line, "CPUs ") + strlen("CPUs "));
    else if (strstr(line, "are recorded again"))
        note("speaks:%.1s", strstr(line, "CPUs ") + strlen("CPUs "));
}

void log_line(int priority, const char *session, const char *format, ...)
{
    char line[1024];
    va_list arguments;

    (void)session;
    if (priority == LOG_DEBUG)
        return;
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    note_line(line);
}

void log_event(int priority, const struct log_about *about, const char *format, ...)
{
    char line[1024];
    va_list arguments;

    (void)priority;
    CHECK(about->id && about->session);
    va_start(arguments, format);
    (void)vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    note_line(line);
}

const char *explain_write(int error)
{
    return strerror(-error);
}

int explain_xen(struct failure *failure, enum xen_step step, int error)
{
    (void)step;
    return failure_set(failure, error, ERROR_XEN, "Xen refused.");
}

const struct xen_host_info *xen_host_info(const struct xen_host *host)
{
    static const struct xen_host_info info = {.tsc_khz = 1000, .nr_cpus = 2};

    (void)host;
    return &info;
}

int xen_host_read_idle(struct xen_host *host, uint64_t *ret_idle_ns, unsigned int nr_cpus)
{
    (void)host;
    if (!fake.is_idle_known)
        return -EPERM;
    for (unsigned int cpu = 0; cpu < nr_cpus; cpu++)
        ret_idle_ns[cpu] = fake.now_usec * NSEC_PER_USEC / 2;
    return 0;
}

void domain_names_refresh(struct domain_names *names)
{
    (void)names;
}

void domains_update(struct domains *domains, const struct domain_names *names, uint64_t now_ns)
{
    (void)domains, (void)names, (void)now_ns;
}

void domains_done(struct domains *domains)
{
    (void)domains;
}

/* --- Tracing. --- */

int tracing_prepare(struct tracing *tracing, uint32_t wanted_pages, uint32_t default_pages,
                    struct failure *failure)
{
    (void)tracing, (void)wanted_pages, (void)default_pages;
    note("prepare");
    return has(NO_BUFFERS) ? failure_set(failure, -EBUSY, ERROR_BUFFER_SIZE, "Another size.") : 0;
}

int tracing_start(struct tracing *tracing, struct tracing_use *use, struct failure *failure)
{
    (void)tracing;
    CHECK(!fake.use);
    note("start");
    if (has(NO_TRACING))
        return failure_set(failure, -EPERM, ERROR_XEN, "Xen refused.");
    fake.use = use;
    fake.is_enabled = true;
    return 0;
}

bool tracing_is_used(const struct tracing *tracing, const struct tracing_use *other_than)
{
    (void)tracing;
    return has(OTHERS) || (fake.use && fake.use != other_than);
}

int tracing_mute(struct tracing *tracing, struct tracing_use *use)
{
    (void)tracing;
    note("mute");
    if (fake.use == use)
        fake.use = NULL;
    return 0;
}

void tracing_leave(struct tracing *tracing, struct tracing_use *use, bool is_kept)
{
    note("leave");
    (void)is_kept, (void)tracing;
    if (fake.use == use)
        fake.use = NULL;
}

int tracing_provoke(struct tracing *tracing, const struct cpu_set *cpus)
{
    (void)tracing, (void)cpus;
    CHECK(fake.is_enabled);
    note("provoke");
    return 0;
}

int tracing_stop(struct tracing *tracing)
{
    note("disable");
    if (!tracing_is_used(tracing, NULL))
        fake.is_enabled = false;
    return 0;
}

enum tracing_state tracing_state(const struct tracing *tracing)
{
    (void)tracing;
    return fake.is_enabled ? TRACING_ON : TRACING_OFF;
}

/* --- The collector. --- */

void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value)
{
    (void)collector, (void)value;
    CHECK(sink == &fake.sink);
    switch (type) {
    case MESSAGE_ATTACH:
        note("attach");
        break;
    case MESSAGE_DRAIN:
        CHECK(flag == !(has(OTHERS) || has(KEEP_ENABLED)) || !fake.is_enabled);
        note("drain");
        break;
    case MESSAGE_SETTLE:
        note("settle");
        break;
    case MESSAGE_CLOSE:
        note("close");
        break;
    case MESSAGE_ABORT:
        note("ABORT");
        break;
    default:
        CHECK_NEVER("a message of the session's");
    }
}

struct drain *collector_drain(const struct collector *collector)
{
    (void)collector;
    return NULL;
}

/* CPU 1 has no buffer. */
void drain_read_cpu(const struct drain *drain, unsigned int cpu, struct drain_cpu *ret_cpu)
{
    (void)drain;
    *ret_cpu = (struct drain_cpu){
        .has_buffer = cpu == 0,
        .drained_bytes = cpu == 0 ? fake.drained_bytes : 0,
    };
}

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger)
{
    (void)sink, (void)cpu;
    *ret_ledger = (struct ledger){.delivered = 3};
}

void sink_read_totals(const struct sink *sink, struct sink_totals *ret_totals)
{
    CHECK(sink == &fake.sink);
    *ret_totals = (struct sink_totals){
        .output_bytes = fake.output_bytes,
        .progress_usec = fake.progress_usec,
        .held_bytes = fake.held_bytes,
        .writing_since_usec = fake.writing_since_usec,
    };
}

void sink_release_writer(struct sink *sink)
{
    CHECK(sink == &fake.sink);
    fake.has_writer = false;
}

const struct cpu_set *sink_unsettled(const struct sink *sink)
{
    (void)sink;
    return &fake.unsettled;
}

/* --- The worker, and what it is asked for. --- */

int worker_new(struct workers *workers, const char *name, struct worker **ret_worker)
{
    (void)workers, (void)name;
    fake.nr_workers++;
    *ret_worker = (struct worker *)&fake;
    return 0;
}

struct worker *worker_free(struct worker *worker)
{
    fake.nr_workers -= !!worker;
    return NULL;
}

void worker_close(struct worker *worker, int *fd)
{
    (void)worker;
    CHECK_INT(*fd, -1);
}

uint64_t worker_busy_since_usec(const struct worker *worker)
{
    (void)worker;
    return fake.busy_since_usec;
}

/* It has one thing to do, or none. */
static void set_busy(bool is_busy)
{
    if (!is_busy)
        fake.busy_since_usec = 0;
    else if (!fake.busy_since_usec)
        fake.busy_since_usec = fake.now_usec;
}

void output_close(struct output *output)
{
    CHECK(!output->is_closed);
    output->is_closed = true;
}

void output_drop_cache(struct output *output, uint64_t bytes)
{
    (void)output, (void)bytes;
    fake.nr_ticks++;
}

void sidecar_init(struct sidecar *sidecar)
{
    *sidecar = (struct sidecar){.directory_fd = -1, .fd = -1};
}

void sidecar_done(struct sidecar *sidecar, struct worker *worker)
{
    (void)worker;
    free_charp(&sidecar->path);
    free_charp(&sidecar->name);
}

int sidecar_adopt(struct sidecar *sidecar, int fd, const char *output_path, struct failure *failure)
{
    (void)sidecar, (void)output_path, (void)failure;
    CHECK_INT(fd, -1);
    return 0;
}

int sidecar_name(struct sidecar *sidecar, int directory_fd, const char *directory, const char *name)
{
    (void)directory_fd, (void)directory;
    sidecar_done(sidecar, NULL);
    sidecar->path = strdup("/dir/s.json");
    sidecar->name = strdup(name);
    return 0;
}

int sidecar_write(const struct sidecar *sidecar, struct worker *worker,
                  struct json_object *document, bool is_last,
                  void (*done)(void *userdata, int error), void *userdata)
{
    (void)is_last;
    (void)sidecar, (void)worker, (void)document;
    note("write");
    if (has(NO_MEMORY))
        return -ENOMEM;
    if (!CHECK(fake.nr_sidecars < SIDECARS_MAX))
        return -ENOMEM;
    fake.sidecars[fake.nr_sidecars++] = (struct fake_sidecar){done, userdata};
    set_busy(true);
    return 0;
}

static void answer_sidecar(int error)
{
    struct fake_sidecar sidecar = fake.sidecars[0];

    if (!CHECK(fake.nr_sidecars > 0))
        return;
    memmove(&fake.sidecars[0], &fake.sidecars[1], --fake.nr_sidecars * sizeof(sidecar));
    set_busy(fake.nr_sidecars > 0);
    sidecar.done(sidecar.userdata, error);
}

/* --- The storage. --- */

void space_extend(struct storage *storage)
{
    (void)storage;
    note("room");
}

void space_stop_waiting(struct storage *storage)
{
    (void)storage;
}

static int fake_open(struct storage *storage, const struct session_options *options,
                     struct failure *failure)
{
    (void)storage, (void)options, (void)failure;
    note("open");
    if (has(RECORDER))
        return 1;
    set_busy(true);
    return 0;
}

static int fake_make_sink(struct storage *storage, struct watch_set *watch, struct failure *failure)
{
    (void)watch;
    note("sink");
    if (has(NO_SINK))
        return failure_set(failure, -ENOMEM, ERROR_NO_MEMORY, "No memory.");
    storage->sink = &fake.sink;
    fake.has_writer = true;
    return 0;
}

static void fake_begin(struct storage *storage)
{
    (void)storage;
    note("begin");
}

static void fake_stop(struct storage *storage)
{
    (void)storage;
    note("halt");
}

static void fake_abort(struct storage *storage)
{
    (void)storage;
    note("give-up");
}

static void fake_finish(struct storage *storage)
{
    const struct session *session = storage->session;

    CHECK(storage->is_sink_closed);
    CHECK_UINT(session->nr_snapshots, 0);
    CHECK(!fake.is_finishing);
    note("finish");
    (void)snprintf(fake.finished_name, sizeof(fake.finished_name), "%s",
                   session->sidecar.name ? session->sidecar.name : "");
    if (has(RECORDER)) {
        session_handle_finished(storage->session); /* may free the storage */
        return;
    }
    fake.is_finishing = true;
    set_busy(true);
    session_expect_answer(storage->session);
}

static void fake_seal(struct storage *storage)
{
    (void)storage;
    note("seal");
}

static bool fake_is_quiet(const struct storage *storage)
{
    (void)storage;
    return fake.is_quiet;
}

static void fake_add_totals(const struct storage *storage, struct sink_totals *totals)
{
    (void)storage;
    totals->output_bytes += 1000;
}

static void fake_add_ledger(const struct storage *storage, unsigned int cpu, struct ledger *ledger)
{
    (void)storage, (void)cpu;
    ledger->delivered += 4;
}

static struct storage *fake_free(struct storage *storage)
{
    fake.nr_storages--;
    if (storage->output)
        free(storage->output->figures.path);
    free(storage->output);
    free(storage);
    return NULL;
}

static const struct storage_kind fake_kind = {
    .name = "fake",
    .open = fake_open,
    .make_sink = fake_make_sink,
    .begin = fake_begin,
    .stop = fake_stop,
    .abort = fake_abort,
    .finish = fake_finish,
    .seal = fake_seal,
    .is_quiet = fake_is_quiet,
    .add_ledger = fake_add_ledger,
    .add_totals = fake_add_totals,
    .free = fake_free,
};

int segments_check_options(const struct session_options *options, bool *ret_segmented,
                           struct failure *failure)
{
    (void)options, (void)failure;
    *ret_segmented = false;
    return 0;
}

int segments_new(struct session *session, const struct session_options *options,
                 struct storage **ret_storage, struct failure *failure)
{
    (void)session, (void)options, (void)ret_storage, (void)failure;
    CHECK_NEVER("segments");
    return -ENOMEM;
}

int ring_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure)
{
    (void)session, (void)options, (void)ret_storage, (void)failure;
    CHECK_NEVER("a ring");
    return -ENOMEM;
}

int file_storage_new(struct session *session, const struct session_options *options,
                     struct storage **ret_storage, struct failure *failure)
{
    struct storage *storage = calloc(1, sizeof(*storage));

    (void)options, (void)failure;
    if (!CHECK(storage))
        return -ENOMEM;
    fake.nr_storages++;
    storage->kind = &fake_kind;
    storage->session = session;
    storage->is_sink_closed = true;
    if (!has(RECORDER)) {
        storage->output = calloc(1, sizeof(*storage->output));
        storage->output->figures.path = strdup("/dir/s.xentrace");
        storage->output->figures.is_stream = has(STREAM);
        storage->output->figures.ran_out = has(RAN_OUT);
    }
    *ret_storage = storage;
    return 0;
}

/* --- A clock. --- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
    (void)clock;
    *ts = (struct timespec){
        .tv_sec = (time_t)(fake.now_usec / USEC_PER_SEC),
        .tv_nsec = (long)(fake.now_usec % USEC_PER_SEC * NSEC_PER_USEC),
    };
    return 0;
}

int sd_event_add_time(sd_event *event, sd_event_source **ret_source, clockid_t clock, uint64_t usec,
                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata)
{
    struct fake_timer *timer = fake.timers;

    (void)event, (void)clock, (void)accuracy;
    while (timer->is_set)
        timer++;
    if (!CHECK(timer < fake.timers + ARRAY_SIZE(fake.timers)))
        return -ENOMEM;
    *timer = (struct fake_timer){handler, userdata, usec, true, true};
    *ret_source = (sd_event_source *)timer;
    return 0;
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret_source, clockid_t clock,
                               uint64_t usec, uint64_t accuracy, sd_event_time_handler_t handler,
                               void *userdata)
{
    return sd_event_add_time(event, ret_source, clock, fake.now_usec + usec, accuracy, handler,
                             userdata);
}

int sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
    CHECK(((struct fake_timer *)source)->is_set);
    ((struct fake_timer *)source)->usec = usec;
    return 0;
}

int sd_event_source_get_time(sd_event_source *source, uint64_t *ret_usec)
{
    *ret_usec = ((struct fake_timer *)source)->usec;
    return 0;
}

int sd_event_source_set_time_relative(sd_event_source *source, uint64_t usec)
{
    CHECK(((struct fake_timer *)source)->is_set);
    ((struct fake_timer *)source)->usec = fake.now_usec + usec;
    return 0;
}

int sd_event_source_set_enabled(sd_event_source *source, int enabled)
{
    ((struct fake_timer *)source)->is_on = enabled != SD_EVENT_OFF;
    return 0;
}

sd_event_source *sd_event_source_disable_unref(sd_event_source *source)
{
    if (source)
        ((struct fake_timer *)source)->is_set = false;
    return NULL;
}

/* The time passes, and timers fire. */
static void pass(uint64_t usec)
{
    uint64_t end_usec = fake.now_usec + usec;

    for (; fake.now_usec < end_usec; fake.now_usec += 100 * USEC_PER_MSEC)
        for (size_t i = 0; i < ARRAY_SIZE(fake.timers); i++) {
            struct fake_timer *timer = &fake.timers[i];

            if (!timer->is_set || !timer->is_on || timer->usec > fake.now_usec)
                continue;
            timer->is_on = false; /* once */
            (void)timer->handler((sd_event_source *)timer, timer->usec, timer->userdata);
        }
    fake.now_usec = end_usec;
}

/* --- A session and its owner. --- */

struct rig {
    struct session_context context;
    struct session *session; /* NULL: freed */
    bool keeps;              /* it is not freed when it is released */
    bool is_released;
};

static struct json_object *describe_session(const struct session *session)
{
    (void)session;
    return NULL;
}

static void handle_changed(void *userdata, struct session *session)
{
    (void)userdata;
    CHECK(session->state == SESSION_RUNNING || session->state == SESSION_ENDED);
    if (session->state == SESSION_RUNNING) {
        CHECK(!session->start_failure.name);
        note("running");
        return;
    }
    if (session->start_failure.name) {
        CHECK(session->start_failure.text[0]);
        note("refused:%s", session->start_failure.name + strlen(ERROR_PREFIX));
        return;
    }
    CHECK(session->message[0]);
    CHECK(session->ended.realtime_ns > 0);
    note("ended:%s", end_reason_name(session->reason));
}

static void handle_released(void *userdata, struct session *session)
{
    struct rig *rig = userdata;

    CHECK_INT(session->state, SESSION_ENDED);
    CHECK(session->storage->is_sink_closed);
    CHECK(!session->storage->output || session->storage->output->is_closed);
    CHECK_UINT(fake.nr_workers, 0);
    CHECK_UINT(session->nr_snapshots, 0);
    CHECK_UINT(session_waiting_since_usec(session), 0);
    CHECK_UINT(session_held_bytes(session), 0);
    CHECK_UINT(fake.nr_sidecars, 0);
    for (size_t i = 0; i < ARRAY_SIZE(fake.timers); i++)
        CHECK(!fake.timers[i].is_set);
    note("released");
    rig->is_released = true;
    if (!rig->keeps)
        rig->session = session_free(session);
}

static void rig_init(struct rig *rig, unsigned int flags, bool keeps)
{
    struct session_options options = {
        .output_fd = -1,
        .sidecar_fd = -1,
        .has_output = flags & (CLIENTS | STREAM),
        .output_path = "/dir/s.xentrace",
        .may_rename = true,
        .keep_enabled = flags & KEEP_ENABLED,
        .time_usec = flags & LIMITED ? 10 * USEC_PER_SEC : 0,
        .reserve_bytes = flags & RESERVE ? 1 : 0,
        .is_recorder = flags & RECORDER,
    };
    struct failure failure = {0};

    memset(&fake, 0, sizeof(fake));
    fake.flags = flags;
    fake.now_usec = USEC_PER_SEC;
    fake.held_bytes = 8192;
    fake.is_enabled = flags & OTHERS;
    fake.is_quiet = !(flags & BUSY);
    *rig = (struct rig){
        .context = {.state_dir = "/dir",
                    .describe_session = describe_session,
                    .changed = handle_changed,
                    .released = handle_released,
                    .userdata = rig},
        .keeps = keeps,
    };
    CHECK_INT(session_new(&rig->context, "s", &options, &rig->session, &failure), 0);
    rig->session->settings.is_persistent = flags & PERSISTENT; /* the fake has no segments */
}

/* Nothing comes after the release, and all is given back. */
static void rig_done(struct rig *rig)
{
    char before[sizeof(fake.text)];

    memcpy(before, fake.text, sizeof(before));
    if (rig->is_released) {
        pass(HOUR_USEC);
        if (rig->session) {
            CHECK(rig->session->sidecar.path || has(CLIENTS | STREAM | RECORDER));
            CHECK(!fake.has_writer);
            session_stop(rig->session, END_STOP);
            session_abort(rig->session);
        }
        CHECK_STR(fake.text, before);
    }
    if (rig->session)
        rig->session = session_free(rig->session);
    CHECK(!fake.use);
    CHECK_INT(fake.is_enabled, has(OTHERS) || has(KEEP_ENABLED));
    CHECK_UINT(fake.nr_workers, 0);
    CHECK_UINT(fake.nr_storages, 0);
    for (size_t i = 0; i < ARRAY_SIZE(fake.timers); i++)
        CHECK(!fake.timers[i].is_set);
}

/* A message of the collector; as the manager passes it on, which keeps the session meanwhile. */
static void tell(struct rig *rig, enum message_type type, int64_t value)
{
    const struct message message = {.type = type, .sink = &fake.sink, .value = value};

    if (!CHECK(rig->session) || !CHECK(session_owns_sink(rig->session, &fake.sink)))
        return;
    if (type == MESSAGE_CLOSED)
        fake.held_bytes = 0;
    if (rig->keeps)
        session_note_snapshot(rig->session, true);
    session_handle_message(rig->session, &message);
    if (rig->keeps)
        session_note_snapshot(rig->session, false);
}

static void answer_open(struct rig *rig, const char *name, int error)
{
    struct failure failure = {0};

    set_busy(false);
    if (error < 0)
        (void)failure_set(&failure, error, ERROR_OUTPUT, "It failed.");
    session_handle_opened(rig->session, name, error, &failure);
}

static void answer_finish(struct rig *rig)
{
    if (!CHECK(fake.is_finishing))
        return;
    fake.is_finishing = false;
    set_busy(false);
    session_handle_finished(rig->session);
}

static const struct {
    const char *word;
    enum message_type type;
    int64_t value;
} messages[] = {
    {"attached", MESSAGE_ATTACHED, 0},
    {"drained", MESSAGE_DRAINED, 0},
    {"unsettled", MESSAGE_DRAINED, 2},
    {"wanted", MESSAGE_GRANT_WANTED, 0},
    {"limit", MESSAGE_LIMIT, 0},
    {"failed", MESSAGE_FAILED, -EIO},
    {"canceled", MESSAGE_FAILED, -ECANCELED},
    {"full", MESSAGE_FAILED, -ENOSPC},
    {"unread", MESSAGE_FAILED, -EPIPE},
    {"abandoned", MESSAGE_ABANDONED, 0},
    {"closed", MESSAGE_CLOSED, 0},
};

static bool play_message(struct rig *rig, const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
        if (strcmp(word, messages[i].word) != 0)
            continue;
        tell(rig, messages[i].type, messages[i].value);
        return true;
    }
    return false;
}

static void play(struct rig *rig, const char *word)
{
    if (play_message(rig, word))
        return;
    if (strcmp(word, "opened") == 0) {
        answer_open(rig, "s", 0);
    } else if (strcmp(word, "renamed") == 0) {
        answer_open(rig, "s-2", 0);
    } else if (strcmp(word, "unopened") == 0) {
        answer_open(rig, NULL, -EIO);
    } else if (strcmp(word, "ok") == 0) {
        answer_sidecar(0);
    } else if (strcmp(word, "eio") == 0) {
        answer_sidecar(-EIO);
    } else if (strcmp(word, "finished") == 0) {
        answer_finish(rig);
    } else if (strcmp(word, "quiet") == 0) {
        fake.is_quiet = true;
        session_continue_end(rig->session);
    } else if (strcmp(word, "stop") == 0) {
        session_stop(rig->session, END_STOP);
    } else if (strcmp(word, "gone") == 0) {
        session_stop(rig->session, END_CLIENT_GONE);
    } else if (strcmp(word, "abort") == 0) {
        session_abort(rig->session);
    } else if (strcmp(word, "snap") == 0 || strcmp(word, "unsnap") == 0) {
        session_note_snapshot(rig->session, word[0] == 's');
    } else if (strcmp(word, "time") == 0) {
        pass(10100 * USEC_PER_MSEC);
    } else if (strcmp(word, "second") == 0) {
        pass(USEC_PER_SEC);
    } else if (strcmp(word, "late") == 0) {
        pass(2200 * USEC_PER_MSEC);
    } else if (strcmp(word, "hour") == 0) {
        pass(HOUR_USEC);
    } else if (strcmp(word, "read") == 0) {
        pass(4900 * USEC_PER_MSEC);
        fake.progress_usec = fake.now_usec;
    } else if (strcmp(word, "free") == 0) {
        rig->session = session_free(rig->session);
    } else {
        CHECK_NEVER("a word");
    }
}

struct life_case {
    const char *name;
    unsigned int flags;
    const char *words;
    const char *expected;
};

/* How far a session comes by itself; and what it has said by then. */
#define TO_START  "opened ok"
#define TO_RUN    TO_START " attached ok"
#define TO_SETTLE TO_RUN " stop unsettled"
#define TO_CLOSE  TO_RUN " stop drained"
#define TO_FINISH TO_CLOSE " closed"
#define TO_SEAL   TO_FINISH " finished"
#define OPENED    "open prepare sink write"
#define STARTED   OPENED " attach"
#define RAN       STARTED " start running write begin"
#define DRAINED   RAN " mute halt drain"
#define SETTLED   DRAINED " provoke settle"
#define CLOSED    DRAINED " disable close"
#define FINISHED  CLOSED " finish"
#define SEALED    FINISHED " write seal"
#define RAN_BARE  "open prepare sink attach start running begin" /* without a sidecar */

static const struct life_case life_cases[] = {
    /* As it should be. */
    {"it is started and stopped", 0, TO_SEAL " ok", SEALED " ended:stop released"},
    {"losses are untold", 0, TO_SETTLE " unsettled closed finished ok",
     SETTLED " disable close finish write seal ended:stop released"},
    {"a client's output", CLIENTS, "opened attached stop drained closed finished",
     RAN_BARE " mute halt drain disable close finish seal ended:stop released"},
    {"the recorder", RECORDER, "attached stop drained closed",
     RAN_BARE " mute halt drain disable close finish seal ended:stop released"},
    {"others are traced for", OTHERS, TO_SEAL " ok", SEALED " ended:stop released"},
    {"tracing stays enabled", KEEP_ENABLED, TO_RUN " stop unsettled closed finished ok",
     RAN " leave halt drain close finish write seal ended:stop released"},
    {"the time is over", LIMITED, TO_RUN " time drained closed finished ok",
     SEALED " ended:time released"},
    {"the time is over twice", LIMITED, TO_RUN " stop time drained closed finished ok",
     SEALED " ended:stop released"},
    {"it wants space, also while it drains", 0,
     TO_RUN " wanted stop wanted drained wanted closed finished ok",
     RAN " room mute halt drain room disable close room finish write seal ended:stop released"},
    {"a storage that has more under way", BUSY, TO_FINISH " quiet finished ok",
     SEALED " ended:stop released"},

    /* The start fails. */
    {"the output cannot be opened", 0, "unopened finished", "open refused:Output finish released"},
    {"Xen has buffers of another size", NO_BUFFERS, "opened finished",
     "open prepare refused:BufferSize finish released"},
    {"there is no memory for a sink", NO_SINK, "opened finished",
     "open prepare sink refused:NoMemory finish released"},
    {"the first sidecar cannot be written", 0, "opened eio finished",
     OPENED " refused:Output finish released"},
    {"nor sent", NO_MEMORY, "opened finished", OPENED " refused:NoMemory finish released"},
    {"Xen refuses to trace", NO_TRACING, TO_START " attached drained closed finished",
     STARTED " start halt drain close finish refused:Xen released"},
    {"Xen refuses to trace, and it is stopped", NO_TRACING,
     TO_START " attached stop drained stop closed finished",
     STARTED " start halt drain close finish refused:Xen released"},
    {"Xen refuses to trace, and it is aborted", NO_TRACING,
     TO_START " attached abort abandoned closed finished",
     STARTED " start halt drain give-up ABORT refused:Xen finish released"},

    {"its state is saved before it runs", PERSISTENT, TO_SEAL " ok",
     STARTED " save start running write begin mute halt drain disable close finish write seal "
             "ended:stop released"},
    {"its state cannot be saved", PERSISTENT | NO_STATE,
     TO_START " attached drained closed finished",
     STARTED " save halt drain close finish refused:Output released"},

    /* The disk does not answer. */
    {"it is opened late", 0, "late opened finished", "open refused:OutputWaiting finish released"},
    {"late, and in vain", 0, "late unopened finished",
     "open refused:OutputWaiting finish released"},
    {"late, and stopped and aborted", 0, "late stop abort opened finished",
     "open refused:OutputWaiting finish released"},
    {"its first sidecar is late", 0, "opened late ok finished",
     OPENED " refused:OutputWaiting finish released"},
    {"late, and in vain, too", 0, "opened late eio finished",
     OPENED " refused:OutputWaiting finish released"},
    {"slow, but in time", 0,
     "second opened second ok late attached ok stop drained closed "
     "finished ok",
     SEALED " ended:stop released"},
    {"the disk is stuck at the end", 0, TO_FINISH " late late late finished ok",
     FINISHED " waits write seal answers ended:stop released"},
    {"a sidecar is stuck", 0,
     TO_START " attached late late late hour ok time stop drained closed "
              "finished ok",
     RAN " waits answers mute halt drain disable close finish write seal ended:stop "
         "released"},

    /* It is stopped before it runs: when it has begun, it ends, or it never begins. */
    {"stopped while it is opened", 0, "stop opened ok attached drained closed finished ok",
     STARTED " halt drain close finish write seal ended:stop released"},
    {"stopped while it is opened in vain", 0, "stop unopened finished",
     "open refused:Output finish released"},
    {"stopped while it is opened, late", 0, "stop late opened finished",
     "open refused:OutputWaiting finish released"},
    {"stopped while it is opened, and aborted", 0, "stop abort opened finished",
     "open refused:ShuttingDown finish released"},
    {"stopped for two reasons", 0, "stop gone opened gone ok attached drained closed finished ok",
     STARTED " halt drain close finish write seal ended:stop released"},
    {"stopped while its first sidecar is written", 0,
     "opened stop ok attached drained closed finished ok",
     STARTED " halt drain close finish write seal ended:stop released"},
    {"stopped while that fails", 0, "opened stop eio finished",
     OPENED " refused:Output finish released"},
    {"stopped before it is attached", 0, TO_START " stop attached drained closed finished ok",
     STARTED " halt drain close finish write seal ended:stop released"},

    /* It ends by itself, or twice. */
    {"stopped again and again", 0, TO_RUN " stop stop drained stop closed stop finished stop ok",
     SEALED " ended:stop released"},
    {"the limit", 0, TO_RUN " limit drained closed finished ok", SEALED " ended:max-size released"},
    {"the disk is full", RAN_OUT, TO_RUN " limit drained closed finished ok",
     SEALED " ended:disk-full released"},
    {"only the reserve is left", RAN_OUT | RESERVE, TO_RUN " limit drained closed finished ok",
     SEALED " ended:reserve released"},
    {"the limit, while it drains", 0, TO_RUN " stop limit drained closed finished ok",
     SEALED " ended:max-size released"},
    {"the limit, before it runs", 0, TO_START " limit attached drained closed finished ok",
     STARTED " halt drain close finish write seal ended:max-size released"},
    {"a write fails", 0, TO_RUN " failed drained closed finished ok",
     SEALED " ended:output-error released"},
    {"a write fails while it drains", 0, TO_RUN " stop failed drained closed finished ok",
     SEALED " ended:output-error released"},
    {"a write fails while it is closed", 0, TO_CLOSE " failed closed finished ok",
     SEALED " ended:output-error released"},
    {"there is no space for a write", 0, TO_RUN " full drained closed finished ok",
     SEALED " ended:disk-full released"},
    {"the reader is gone", STREAM, "opened attached unread drained closed finished",
     RAN_BARE " mute halt drain disable close finish seal ended:output-closed released"},
    {"a sidecar fails", 0, TO_START " attached eio stop drained closed finished eio",
     RAN " outdated mute halt drain disable close finish write seal outdated ended:stop released"},
    {"the first of two sidecars is late", 0,
     TO_START " attached stop drained closed finished ok ok", SEALED " ended:stop released"},

    /* A snapshot holds its ring. */
    {"a snapshot reads its ring", 0, TO_RUN " snap stop drained closed unsnap finished ok",
     SEALED " ended:stop released"},
    {"two do", 0, TO_RUN " snap stop snap drained unsnap closed unsnap finished ok",
     SEALED " ended:stop released"},
    {"it is over in time", 0, TO_RUN " snap stop unsnap drained closed finished ok",
     SEALED " ended:stop released"},
    {"aborted while a snapshot reads", 0, TO_CLOSE " snap closed abort unsnap finished ok",
     CLOSED " disable give-up ended:abort finish write seal released"},
    {"the recorder is aborted while a snapshot reads", RECORDER,
     "attached stop drained snap closed abort unsnap",
     RAN_BARE " mute halt drain disable close disable give-up ended:abort finish seal released"},

    /* It is aborted. */
    {"aborted while it is opened", 0, "abort opened finished",
     "open refused:ShuttingDown finish released"},
    {"aborted while its first sidecar is written", 0, "opened abort ok finished",
     OPENED " refused:ShuttingDown finish released"},
    {"aborted before it is attached", 0, TO_START " abort abandoned closed finished ok",
     STARTED " halt give-up ABORT ended:abort finish write seal released"},
    {"aborted as it is attached", 0, TO_START " abort attached abandoned closed finished ok",
     STARTED " halt give-up ABORT ended:abort finish write seal released"},
    {"aborted while it runs", 0, TO_RUN " abort canceled abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while it drains", 0, TO_RUN " stop abort abandoned closed finished ok",
     DRAINED " disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while it settles", 0, TO_SETTLE " abort abandoned closed finished ok",
     SETTLED " disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while it is closed", 0, TO_CLOSE " abort abandoned closed finished ok",
     CLOSED " disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while it is finished", 0, TO_FINISH " abort finished ok",
     FINISHED " disable give-up ended:abort write seal released"},
    {"aborted while it is sealed", 0, TO_SEAL " abort ok",
     SEALED " disable give-up ended:abort released"},
    {"aborted twice", 0, TO_RUN " abort abort abandoned abort closed abort finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"aborted, and the kernel has nothing", 0, TO_CLOSE " abort closed finished ok",
     CLOSED " disable give-up ABORT ended:abort finish write seal released"},
    {"the recorder is aborted, and had nothing", RECORDER, "attached stop drained abort closed",
     RAN_BARE " mute halt drain disable close disable give-up ABORT ended:abort finish seal "
              "released"},
    {"aborted on a stuck disk", 0, TO_RUN " abort abandoned hour closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while it is finished on a stuck disk", 0, TO_FINISH " abort hour finished ok",
     FINISHED " disable give-up ended:abort write seal released"},
    {"aborted because of a stuck disk", 0, TO_FINISH " late late abort hour finished ok",
     FINISHED " waits disable give-up ended:abort write seal answers released"},
    {"aborted, others are traced for", OTHERS, TO_RUN " abort abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"aborted, tracing stays enabled", KEEP_ENABLED, TO_RUN " abort abandoned closed finished ok",
     RAN " leave halt give-up ABORT ended:abort finish write seal released"},
    {"aborted, a storage has more under way", BUSY,
     TO_RUN " abort abandoned closed quiet finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"aborted while a sidecar is written", 0,
     TO_START " attached abort abandoned closed ok finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},

    /* Messages that cross with an abort change nothing. */
    {"stopped after an abort", 0, TO_RUN " abort stop abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"the limit crosses with an abort", 0, TO_RUN " abort limit abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"a failure crosses with an abort", 0, TO_RUN " abort failed abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"a wish for space crosses with an abort", 0,
     TO_RUN " abort wanted abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},
    {"it is drained as it is aborted", 0, TO_RUN " stop abort drained abandoned closed finished ok",
     DRAINED " disable give-up ABORT ended:abort finish write seal released"},
    {"it is drained, losses untold, as it is aborted", OTHERS,
     TO_RUN " stop abort unsettled abandoned closed finished ok",
     DRAINED " disable give-up ABORT ended:abort finish write seal released"},
    {"it settles as it is aborted", 0, TO_SETTLE " abort drained abandoned closed finished ok",
     SETTLED " disable give-up ABORT ended:abort finish write seal released"},
    {"the time is over after an abort", LIMITED, TO_RUN " abort time abandoned closed finished ok",
     RAN " mute halt disable give-up ABORT ended:abort finish write seal released"},

    /* Patience with a reader ends 5 s after its last progress, once. */
    {"its reader does not read", STREAM, "opened attached stop time abandoned closed finished",
     RAN_BARE " mute halt drain ABORT disable close finish seal ended:stop released"},
    {"its reader does not read while it is closed", STREAM,
     "opened attached stop drained time time abandoned closed finished",
     RAN_BARE " mute halt drain disable close ABORT finish seal ended:stop released"},
    {"its reader reads slowly", STREAM,
     "opened attached stop read read read read read drained closed finished",
     RAN_BARE " mute halt drain disable close finish seal ended:stop released"},
    {"it has read all", STREAM, "opened attached stop drained closed hour finished",
     RAN_BARE " mute halt drain disable close finish waits seal answers ended:stop released"},
    {"a file has no reader", CLIENTS, "opened attached stop hour drained closed finished",
     RAN_BARE " mute halt drain disable close finish seal ended:stop released"},

    /* The event loop has ended, and the collector. */
    {"freed while it is opened", 0, "free", "open"},
    {"freed while its first sidecar is written", 0, "opened free ok", OPENED},
    {"freed while a sidecar is written", 0, TO_START " attached stop drained free ok", CLOSED},
    {"freed while it is sealed", 0, TO_SEAL " free ok", SEALED},
};

static void test_life(const struct life_case *life, bool keeps)
{
    char words[512], *word, *rest = words;
    struct rig rig;

    test_case(life->name);
    rig_init(&rig, life->flags, keeps);
    (void)snprintf(words, sizeof(words), "%s", life->words);
    while ((word = strsep(&rest, " ")))
        play(&rig, word);
    CHECK_STR(fake.text, life->expected);
    CHECK(!rig.session || rig.keeps);
    rig_done(&rig);
}

static void play_all(struct rig *rig, const char *text)
{
    char words[256], *word, *rest = words;

    (void)snprintf(words, sizeof(words), "%s", text);
    while ((word = strsep(&rest, " ")))
        play(rig, word);
}

static void test_name(void)
{
    struct rig rig;

    test_case("it is opened under another name");
    rig_init(&rig, 0, true);
    play_all(&rig, "renamed");
    CHECK_STR(rig.session->name, "s-2");
    CHECK_STR(rig.session->sidecar.name, "s-2");
    play_all(&rig, "ok attached ok stop drained closed finished ok");
    rig_done(&rig);

    test_case("late and under another name: the sidecar of that name is removed, no other");
    rig_init(&rig, 0, false);
    play_all(&rig, "late renamed");
    CHECK_STR(fake.finished_name, "s-2");
    play_all(&rig, "finished");
    rig_done(&rig);

    test_case("a name that is none");
    memset(&fake, 0, sizeof(fake));
    struct session_options options = {.output_fd = -1, .sidecar_fd = -1};
    struct failure failure = {0};
    struct session *session = NULL;

    CHECK_INT(session_new(&rig.context, "../s", &options, &session, &failure), -EINVAL);
    CHECK_STR(failure.name, ERROR_INVALID);
    options.cpus = "7";
    failure.name = NULL;
    CHECK(session_new(&rig.context, "s", &options, &session, &failure) < 0);
    CHECK_STR(failure.name, ERROR_INVALID);
    options.cpus = "0";
    options.poll_usec = 1;
    CHECK_INT(session_new(&rig.context, "s", &options, &session, &failure), -EINVAL);
    CHECK(!session);
    CHECK_STR(fake.text, "");
    CHECK_UINT(fake.nr_workers, 0);
}

static void test_figures(void)
{
    struct sink_totals totals;
    struct ledger ledger;
    struct rig rig;

    test_case("figures: its sink's, and what its storage adds");
    rig_init(&rig, 0, true);
    session_read_totals(rig.session, &totals);
    CHECK_UINT(totals.output_bytes, 1000);
    play_all(&rig, TO_RUN);
    fake.output_bytes = 5;
    session_read_totals(rig.session, &totals);
    CHECK_UINT(totals.output_bytes, 1005);
    session_read_ledger(rig.session, 0, &ledger);
    CHECK_UINT(ledger.delivered, 7);
    CHECK_UINT(session_held_bytes(rig.session), 0);
    play_all(&rig, "abort abandoned");
    CHECK_UINT(session_held_bytes(rig.session), 8192);
    CHECK(strstr(rig.session->message, "8K of memory"));
    play_all(&rig, "closed");
    CHECK_UINT(session_held_bytes(rig.session), 0);
    play_all(&rig, "finished ok");
    rig_done(&rig);
}

/* Before it has ended for its user: its worker may be stuck. */
static void test_aborted_persistent(void)
{
    struct rig rig;

    test_case("a persistent one that is aborted does not continue");
    rig_init(&rig, 0, true);
    rig.session->settings.is_persistent = true;
    play_all(&rig, TO_RUN);
    CHECK_UINT(fake.nr_removed_states, 0);
    play_all(&rig, "abort");
    CHECK_UINT(fake.nr_removed_states, 1);
    play_all(&rig, "abandoned closed finished ok");
    rig_done(&rig);

    test_case("one that is left to the next daemon does, even so");
    rig_init(&rig, 0, true);
    rig.session->settings.is_persistent = true;
    play_all(&rig, TO_RUN);
    rig.session->is_handed_over = true;
    play_all(&rig, "abort");
    CHECK_UINT(fake.nr_removed_states, 0);
    play_all(&rig, "abandoned closed finished ok");
    rig_done(&rig);
}

/* Reported once, as is its end, whoever waits. */
static void test_waiting(void)
{
    uint64_t since_usec;
    struct rig rig;

    test_case("a write waits for the disk");
    rig_init(&rig, 0, false);
    play_all(&rig, TO_RUN);
    fake.text[0] = '\0';
    since_usec = fake.writing_since_usec = fake.now_usec;
    pass(1900 * USEC_PER_MSEC);
    CHECK_UINT(session_waiting_since_usec(rig.session), 0);
    pass(100 * USEC_PER_MSEC);
    CHECK_UINT(session_waiting_since_usec(rig.session), since_usec);
    pass(60 * USEC_PER_SEC);
    CHECK_STR(fake.text, "waits");
    fake.busy_since_usec = since_usec + 1; /* and a job */
    CHECK_UINT(session_waiting_since_usec(rig.session), since_usec);
    fake.busy_since_usec = fake.writing_since_usec = 0;
    pass(60 * USEC_PER_SEC);
    CHECK_STR(fake.text, "waits answers");
    CHECK_UINT(session_waiting_since_usec(rig.session), 0);
    fake.text[0] = '\0';
    fake.busy_since_usec = fake.now_usec;
    session_expect_answer(rig.session);
    pass(3 * USEC_PER_SEC);
    CHECK_STR(fake.text, "waits");
    fake.busy_since_usec = 0;
    pass(6 * USEC_PER_SEC);
    CHECK_STR(fake.text, "waits answers");
    play_all(&rig, "stop drained closed finished ok");
    rig_done(&rig);

    test_case("a pipe waits for its reader, not for a disk");
    rig_init(&rig, STREAM, false);
    play_all(&rig, "opened attached");
    fake.writing_since_usec = fake.now_usec;
    pass(60 * USEC_PER_SEC);
    CHECK_UINT(session_waiting_since_usec(rig.session), 0);
    play_all(&rig, "stop drained closed finished");
    rig_done(&rig);

    test_case("what is looked after every few seconds is not put off by requests");
    rig_init(&rig, 0, false);
    play_all(&rig, TO_RUN);
    for (unsigned int i = 0; i < 60; i++) {
        pass(USEC_PER_SEC);
        session_expect_answer(rig.session);
    }
    CHECK(fake.nr_ticks >= 10);
    play_all(&rig, "stop drained closed finished ok");
    rig_done(&rig);
}

/* To the moment, wherever the looks fall. */
static void test_patience(void)
{
    struct rig rig;

    test_case("patience with a reader ends 5 s after its last progress");
    rig_init(&rig, STREAM, false);
    play_all(&rig, "opened attached read stop");
    fake.text[0] = '\0';
    pass(3 * USEC_PER_SEC);
    fake.progress_usec = fake.now_usec;
    pass(4900 * USEC_PER_MSEC);
    CHECK_STR(fake.text, "");
    pass(300 * USEC_PER_MSEC);
    CHECK_STR(fake.text, "ABORT");
    pass(HOUR_USEC);
    CHECK_STR(fake.text, "ABORT");
    play_all(&rig, "abandoned closed finished");
    rig_done(&rig);
}

/* One at a time: what changes while one is written is in the next. */
static void test_sidecars(void)
{
    struct rig rig;

    test_case("sidecars while it runs");
    rig_init(&rig, 0, false);
    play_all(&rig, TO_START " attached");
    fake.text[0] = '\0';
    session_update_sidecar(rig.session);
    session_update_sidecar(rig.session);
    CHECK_STR(fake.text, "");
    play_all(&rig, "ok");
    pass(6 * USEC_PER_SEC);
    CHECK_STR(fake.text, "write");
    play_all(&rig, "ok");
    session_update_sidecar(rig.session);
    CHECK_STR(fake.text, "write write");
    play_all(&rig, "ok stop drained closed");
    session_update_sidecar(rig.session); /* the last one has it */
    CHECK_STR(fake.text, "write write mute halt drain disable close finish");
    play_all(&rig, "finished");
    session_note_sidecar(rig.session, true); /* one of its storage */
    play_all(&rig, "ok");
    CHECK(!rig.is_released);
    session_note_sidecar(rig.session, false);
    CHECK(rig.is_released);
    rig_done(&rig);
}

static void test_missing_cpus(void)
{
    struct session_options options = {.output_fd = -1, .sidecar_fd = -1, .cpus = "0-1"};
    struct failure failure = {0};
    struct rig rig;

    test_case("a CPU that was asked for has no buffer");
    rig_init(&rig, CLIENTS, true);
    play_all(&rig, "opened");
    CHECK(!cpu_set_has(&rig.session->missing, 1)); /* of all there are */
    play_all(&rig, "attached stop drained closed finished");
    rig_done(&rig);
    fake.flags = 0;
    CHECK_INT(session_new(&rig.context, "s", &options, &rig.session, &failure), 0);
    play_all(&rig, "opened");
    CHECK(!cpu_set_has(&rig.session->missing, 0));
    CHECK(cpu_set_has(&rig.session->missing, 1));
    play_all(&rig, "ok attached ok stop drained closed finished ok");
    rig_done(&rig);
}

/* Reported once, as is its end; the other CPU has never had a buffer. */
static void test_silence(void)
{
    struct rig rig;

    test_case("CPUs fall silent");
    rig_init(&rig, 0, false);
    play_all(&rig, TO_RUN);
    fake.text[0] = '\0';
    pass(HOUR_USEC);
    CHECK_STR(fake.text, ""); /* Xen does not report idle times */
    fake.is_idle_known = true;
    pass(60 * USEC_PER_SEC);
    CHECK_STR(fake.text, "");
    pass(20 * USEC_PER_SEC);
    CHECK_STR(fake.text, "silent:0-1");
    CHECK(cpu_set_has(&rig.session->silent, 0) && cpu_set_has(&rig.session->silent, 1));
    pass(60 * USEC_PER_SEC);
    CHECK_STR(fake.text, "silent:0-1");
    fake.drained_bytes += 8;
    pass(6 * USEC_PER_SEC);
    CHECK_STR(fake.text, "silent:0-1 speaks:0");
    CHECK(!cpu_set_has(&rig.session->silent, 0) && cpu_set_has(&rig.session->silent, 1));
    fake.is_enabled = false; /* nothing is traced: nobody is to speak */
    pass(HOUR_USEC);
    CHECK_STR(fake.text, "silent:0-1 speaks:0");
    CHECK_UINT(cpu_set_count(&rig.session->silent), 0);
    play_all(&rig, "stop drained closed finished ok");
    rig_done(&rig);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(life_cases); i++) {
        test_life(&life_cases[i], false);
        test_life(&life_cases[i], true);
    }
    test_name();
    test_figures();
    test_aborted_persistent();
    test_waiting();
    test_patience();
    test_sidecars();
    test_missing_cpus();
    test_silence();
    return test_end();
}
