// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lives of snapshots, as words: what the worker, the collector and the clock answer.
 *
 *   ok         the worker's request has succeeded       eio      it has failed
 *   rename     the file was opened under another name   eexist   it has failed because of the name
 *   pinned     the collector has pinned the ring        closed   the session's sink has come back
 *   empty, narrow, full    writing has failed: no records, a max-size too small, no space
 *   late       the disk has not answered for 2 s        free     the event loop has ended
 *   giveup     somebody else needs what it holds        aborted  ... writing has ended because of
 * that
 *
 * What the snapshot asks for in between, and what its owner hears, is written down likewise: open,
 * pin, run, finish:BYTES, publish:NAME, seal:NAME, remove, done, failed:ERROR, released, and the
 * worker's end as gone.
 *
 * Everything around the snapshot is a fake of this file's; the ring is real.
 */

#include "daemon/session/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

#include <systemd/sd-event.h>

#include "collector/collector.h"
#include "collector/sink.h"
#include "collector/xen.h"
#include "common/protocol.h"
#include "common/units.h"
#include "daemon/base/log.h"
#include "daemon/base/worker.h"
#include "daemon/host/explain.h"
#include "daemon/output/output.h"
#include "daemon/session/ring-storage.h"
#include "daemon/session/session.h"
#include "tests/unit/ring-rig.h"

#define BYTES   UINT64_C(8192)         /* in a snapshot that was written */
#define DAY     (86400 * USEC_PER_SEC) /* of a TSC that is a thousand times too fast */
#define WRITTEN UINT64_C(4096)         /* ... that failed on the way */

static struct {
    char text[512]; /* what happened */
    struct output *output;
    output_done_fn done; /* of the request under way; NULL: none */
    void (*sealed)(void *userdata, int error);
    void *userdata;
    enum output_operation operation;
    unsigned int nr_workers;
    uint64_t now_usec;
    uint64_t busy_since_usec;
    unsigned int nr_fired; /* timers */
    bool is_new;           /* the ring: nothing was evicted */

    struct fake_timer {
        sd_event_time_handler_t handler;
        void *userdata;
        uint64_t usec;
        bool is_set;
        bool is_on;
    } timers[2];
} fake;

_printf_(1, 2) static void note(const char *format, ...)
{
    size_t length = strlen(fake.text);
    va_list arguments;

    if (length > 0)
        fake.text[length++] = ' ';
    va_start(arguments, format);
    (void)vsnprintf(fake.text + length, sizeof(fake.text) - length, format, arguments);
    va_end(arguments);
}

/* --- The fakes. --- */

void log_line(int priority, const char *session, const char *format, ...)
{
    (void)priority, (void)session, (void)format;
}

const char *explain_write(int error)
{
    return strerror(-error);
}

const struct xen_host_info *xen_host_info(const struct xen_host *host)
{
    static const struct xen_host_info info = {.tsc_khz = 1000};

    (void)host;
    return &info;
}

void sink_read_ledger(const struct sink *sink, unsigned int cpu, struct ledger *ret_ledger)
{
    (void)sink, (void)cpu;
    *ret_ledger = (struct ledger){.evicted = fake.is_new ? 0 : 7};
}

struct ring_storage *ring_storage_of(const struct session *session)
{
    return (struct ring_storage *)session->storage;
}

void collector_send(struct collector *collector, enum message_type type, struct sink *sink,
                    bool flag, int64_t value)
{
    (void)collector, (void)sink, (void)flag;
    CHECK_INT(type, MESSAGE_PIN);
    CHECK_INT(value, 0);
    note("pin");
}

int worker_new(struct workers *workers, const char *name, struct worker **ret_worker)
{
    (void)workers, (void)name;
    fake.nr_workers++;
    *ret_worker = (struct worker *)&fake;
    return 0;
}

struct worker *worker_free(struct worker *worker)
{
    if (worker) {
        fake.nr_workers--;
        note("gone");
    }
    return NULL;
}

uint64_t worker_busy_since_usec(const struct worker *worker)
{
    (void)worker;
    return fake.busy_since_usec;
}

static void request(struct output *output, enum output_operation operation, output_done_fn done)
{
    CHECK(!fake.done && !fake.sealed); /* one at a time */
    CHECK(output == fake.output);
    fake.operation = operation;
    fake.done = done;
    fake.busy_since_usec = fake.now_usec;
}

int output_new(struct worker *worker, const struct output_request *asked, output_done_fn done,
               void *userdata, struct output **ret_output)
{
    struct output *output = rig_alloc(1, sizeof(*output));

    (void)worker;
    output->figures.fd = -1;
    output->request = *asked;
    output->request_path = asked->path ? strdup(asked->path) : NULL;
    output->userdata = userdata;
    (void)snprintf(output->name, sizeof(output->name), "%s", asked->name);
    fake.output = output;
    request(output, OUTPUT_OPEN, done);
    note("open");
    *ret_output = output;
    return 0;
}

struct output *output_free(struct output *output)
{
    if (!output)
        return NULL;
    free(output->figures.path);
    free(output->request_path);
    free(output);
    fake.output = NULL;
    return NULL;
}

void output_run(struct output *output, output_run_fn run, void *argument, output_done_fn done)
{
    CHECK(run == ring_write_run);
    output->jobs[OUTPUT_RUN].argument = argument;
    request(output, OUTPUT_RUN, done);
    note("run");
}

void output_finish(struct output *output, uint64_t bytes, output_done_fn done)
{
    request(output, OUTPUT_FINISH, done);
    note("finish:%" PRIu64, bytes);
}

void output_publish(struct output *output, const char *name, output_done_fn done)
{
    request(output, OUTPUT_PUBLISH, done);
    note("publish:%s", name);
}

void output_remove(struct output *output, output_done_fn done)
{
    request(output, OUTPUT_REMOVE, done);
    note("remove");
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
    (void)output_path, (void)failure;
    if (fd >= 0) {
        sidecar->path = strdup("client.json");
        sidecar->name = strdup("client");
    }
    return 0;
}

int sidecar_name(struct sidecar *sidecar, int directory_fd, const char *directory, const char *name)
{
    (void)directory_fd, (void)directory;
    sidecar->path = strdup("own.json");
    sidecar->name = strdup(name);
    return 0;
}

int sidecar_check_none(int directory_fd, const char *directory, const char *name,
                       struct failure *failure)
{
    (void)directory_fd, (void)directory, (void)name, (void)failure;
    return 0;
}

int sidecar_write(const struct sidecar *sidecar, struct worker *worker,
                  struct json_object *document, bool is_last,
                  void (*done)(void *userdata, int error), void *userdata)
{
    (void)is_last;
    (void)worker, (void)document;
    CHECK(!fake.done && !fake.sealed);
    note("seal:%s", sidecar->name);
    fake.sealed = done;
    fake.userdata = userdata;
    return 0;
}

/* --- A clock. --- */

static int add_timer(sd_event_source **ret_source, uint64_t usec, sd_event_time_handler_t handler,
                     void *userdata)
{
    struct fake_timer *timer = &fake.timers[fake.timers[0].is_set];

    CHECK(!timer->is_set);
    *timer = (struct fake_timer){handler, userdata, usec, true, true};
    *ret_source = (sd_event_source *)timer;
    return 0;
}

int sd_event_add_time_relative(sd_event *event, sd_event_source **ret_source, clockid_t clock,
                               uint64_t usec, uint64_t accuracy, sd_event_time_handler_t handler,
                               void *userdata)
{
    (void)event, (void)clock, (void)accuracy;
    return add_timer(ret_source, fake.now_usec + usec, handler, userdata);
}

int sd_event_add_time(sd_event *event, sd_event_source **ret_source, clockid_t clock, uint64_t usec,
                      uint64_t accuracy, sd_event_time_handler_t handler, void *userdata)
{
    (void)event, (void)clock, (void)accuracy;
    return add_timer(ret_source, usec, handler, userdata);
}

int sd_event_now(sd_event *event, clockid_t clock, uint64_t *ret_usec)
{
    (void)event, (void)clock;
    *ret_usec = fake.now_usec;
    return 0;
}

int sd_event_source_set_time(sd_event_source *source, uint64_t usec)
{
    ((struct fake_timer *)source)->usec = usec;
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

    for (; fake.now_usec <= end_usec; fake.now_usec += 100 * USEC_PER_MSEC)
        for (size_t i = 0; i < ARRAY_SIZE(fake.timers); i++) {
            struct fake_timer *timer = &fake.timers[i];

            if (!timer->is_set || !timer->is_on || timer->usec > fake.now_usec)
                continue;
            timer->is_on = false; /* once */
            fake.nr_fired++;
            (void)timer->handler((sd_event_source *)timer, fake.now_usec, timer->userdata);
        }
    fake.now_usec = end_usec;
}

/* --- A snapshot and its owner. --- */

struct rig {
    struct ring_rig ring;
    struct session_context context;
    struct ring_storage storage;
    struct session session;
    struct snapshot *snapshot; /* NULL: released */
    bool is_freed;             /* too early */
};

static struct json_object *describe_snapshot(const struct snapshot *snapshot)
{
    (void)snapshot;
    return NULL;
}

static void handle_done(void *userdata, struct snapshot *snapshot)
{
    const struct rig *rig = userdata;

    CHECK(snapshot->session == &rig->session);
    CHECK_INT(snapshot->state, SNAPSHOT_ENDED);
    CHECK_INT(snapshot->pin, -1);
    CHECK(snapshot->message[0]);
    if (!snapshot->failure.name) {
        CHECK_UINT(snapshot->plan.bytes, BYTES);
        CHECK_UINT(snapshot->evicted, 7 * 2);
        note("done");
        return;
    }
    CHECK_STR(snapshot->message, snapshot->failure.text);
    CHECK(!snapshot->owns_output || snapshot->plan.bytes == 0);
    note("failed:%s", snapshot->failure.name + strlen(ERROR_PREFIX));
}

static void handle_released(void *userdata, struct snapshot *snapshot)
{
    struct rig *rig = userdata;

    CHECK(!fake.done && !fake.sealed);
    note("released");
    rig->snapshot = snapshot_free(snapshot);
}

/* As rig_init(), for the last LAST_USEC of a ring in which recording began AGE_USEC ago. */
static void rig_init_since(struct rig *rig, bool is_clients, uint64_t last_usec, uint64_t age_usec)
{
    const struct snapshot_options options = {
        .cause = SNAPSHOT_REQUEST,
        .label = "x",
        .name = is_clients ? "" : "own",
        .has_output = is_clients,
        .output_path = "client",
        .output_fd = -1,
        .sidecar_fd = -1,
        .span.last_usec = last_usec,
    };
    struct failure failure = {0};

    memset(&fake, 0, sizeof(fake));
    fake.now_usec = USEC_PER_SEC;
    *rig = (struct rig){
        .context = {.state_dir = "/dir", .describe_snapshot = describe_snapshot},
        .session = {.context = &rig->context,
                    .name = "recorder",
                    .state = SESSION_RUNNING,
                    .settings.is_recorder = true,
                    .started = clock_pair_now(),
                    .selection = {.nr_cpus = 2},
                    .storage = &rig->storage.storage},
    };
    rig->session.started.tsc -= age_usec; /* of 1000 kHz: see xen_host_info() */
    ring_rig_init(&rig->ring, NULL, RING_MIN_BYTES, 2);
    (void)rig_feed_round(&rig->ring, 100, true);
    rig->storage.ring = rig->ring.ring;
    CHECK_INT(snapshot_new(&rig->session, &options, handle_done, handle_released, rig,
                           &rig->snapshot, &failure),
              0);
}

static void rig_init(struct rig *rig, bool is_clients)
{
    rig_init_since(rig, is_clients, 0, 0);
}

/* All is given back, whatever happened. */
static void rig_done(struct rig *rig)
{
    CHECK(!fake.output);
    CHECK_UINT(fake.nr_workers, 0);
    CHECK(!fake.timers[0].is_set && !fake.timers[1].is_set);
    CHECK_INT(ring_take_pin(rig->ring.ring), 0);
    ring_rig_done(&rig->ring);
}

/* The worker is done with what it was asked for. */
static void answer(int error, const char *name)
{
    output_done_fn done = fake.done;
    void (*sealed)(void *userdata, int error) = fake.sealed;
    struct failure failure = {0};

    if (error < 0 && name)
        (void)failure_set(&failure, error, name, "words");
    fake.done = NULL;
    fake.sealed = NULL;
    fake.busy_since_usec = 0;
    if (!CHECK(done || sealed))
        return;
    if (sealed) {
        sealed(fake.userdata, error);
        return;
    }
    if (fake.operation == OUTPUT_OPEN && error >= 0) {
        fake.output->figures.fd = 5;
        fake.output->figures.path = strdup("/dir/own.xentrace");
        fake.output->figures.is_stream = fake.output->request.is_adopted;
    }
    done(fake.output->userdata, error, &failure);
}

/* The worker has written; or has failed, before or after there was a plan. */
static void answer_write(int error, bool is_planned)
{
    struct ring_write *write = fake.output->jobs[OUTPUT_RUN].argument;

    write->is_planned = is_planned;
    write->plan.bytes = is_planned ? BYTES : 0;
    write->written_bytes = error >= 0 ? BYTES : is_planned ? WRITTEN : 0;
    answer(error, error == -ENOSPC ? ERROR_NO_SPACE : NULL);
}

static void give_up(struct snapshot *snapshot)
{
    struct failure failure = {0};
    bool is_writing = snapshot->state == SNAPSHOT_WRITING;

    (void)failure_set(&failure, -EDQUOT, ERROR_LIMIT, "words");
    snapshot_give_up(snapshot, &failure);
    CHECK(snapshot->write.is_aborted == is_writing);
}

static void play(struct rig *rig, const char *word)
{
    bool writes = fake.done && fake.operation == OUTPUT_RUN;
    bool opens = fake.done && fake.operation == OUTPUT_OPEN;

    if (strcmp(word, "ok") == 0 && writes)
        answer_write(0, true);
    else if (strcmp(word, "ok") == 0)
        answer(0, NULL);
    else if (strcmp(word, "eio") == 0 && writes)
        answer_write(-EIO, true);
    else if (strcmp(word, "eio") == 0)
        answer(-EIO, opens ? ERROR_OUTPUT : NULL);
    else if (strcmp(word, "eexist") == 0)
        answer(-EEXIST, opens ? ERROR_NAME_IN_USE : NULL);
    else if (strcmp(word, "empty") == 0)
        answer_write(-ENODATA, false);
    else if (strcmp(word, "narrow") == 0)
        answer_write(-EFBIG, false);
    else if (strcmp(word, "full") == 0)
        answer_write(-ENOSPC, true);
    else if (strcmp(word, "giveup") == 0)
        give_up(rig->snapshot);
    else if (strcmp(word, "aborted") == 0)
        answer_write(-ECANCELED, true);
    else if (strcmp(word, "late") == 0)
        pass(2100 * USEC_PER_MSEC);
    else if (strcmp(word, "free") == 0)
        rig->snapshot = snapshot_free(rig->snapshot);
    else if (strcmp(word, "rename") == 0) {
        (void)snprintf(fake.output->name, sizeof(fake.output->name), "own-2");
        answer(0, NULL);
    } else if (strcmp(word, "pinned") == 0) {
        ring_pin(rig->ring.ring, rig->snapshot->pin);
        snapshot_handle_pinned(rig->snapshot);
    } else if (strcmp(word, "closed") == 0) {
        rig->storage.storage.is_sink_closed = true;
        snapshot_handle_sink_closed(rig->snapshot);
    } else {
        CHECK_NEVER("a word");
    }
}

struct life_case {
    const char *name;
    bool is_clients;
    const char *words;
    const char *expected;
};

static const struct life_case life_cases[] = {
    {"a file of our own", false, "ok pinned ok ok ok ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},
    {"its name was in use", false, "rename pinned ok ok ok ok",
     "open pin run finish:8192 publish:own-2 seal:own-2 done released gone"},
    {"its sidecar fails", false, "ok pinned ok ok ok eio",
     "open pin run finish:8192 publish:own seal:own done released gone"},
    {"a client's file", true, "ok pinned ok ok", "open pin run finish:8192 done released gone"},

    {"it cannot be opened", false, "eio", "open failed:Output released gone"},
    {"its name is in use", false, "eexist", "open failed:NameInUse released gone"},
    {"the ring is empty", false, "ok pinned empty ok",
     "open pin run remove failed:Empty released gone"},
    {"a round is too large", false, "ok pinned narrow ok",
     "open pin run remove failed:InvalidArgument released gone"},
    {"no space", false, "ok pinned full ok", "open pin run remove failed:NoSpace released gone"},
    {"a write fails", false, "ok pinned eio ok", "open pin run remove failed:Output released gone"},
    {"a write of a client's fails", true, "ok pinned eio ok",
     "open pin run finish:4096 failed:Output released gone"},
    {"a client's ring is empty", true, "ok pinned empty ok",
     "open pin run finish:0 failed:Empty released gone"},
    {"it cannot be synced", false, "ok pinned ok eio ok",
     "open pin run finish:8192 remove failed:Output released gone"},
    {"it cannot get its name", false, "ok pinned ok ok eexist ok",
     "open pin run finish:8192 publish:own remove failed:Output released gone"},
    {"nor be removed", false, "ok pinned eio eio",
     "open pin run remove failed:Output released gone"},

    {"it is given up", false, "ok pinned giveup aborted ok",
     "open pin run remove failed:LimitReached released gone"},
    {"a client's is", true, "ok pinned giveup aborted ok",
     "open pin run finish:4096 failed:LimitReached released gone"},
    {"it is given up when all is written", false, "ok pinned giveup ok ok",
     "open pin run remove failed:LimitReached released gone"},
    {"it is given up twice, and fails", false, "ok pinned giveup giveup eio ok",
     "open pin run remove failed:LimitReached released gone"},
    {"nothing is given up before it is written", false, "giveup ok giveup pinned ok ok ok ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},

    {"the session ends while it is opened", false, "closed ok ok ok ok ok",
     "open run finish:8192 publish:own seal:own done released gone"},
    {"the session ends before it is pinned", false, "ok closed ok ok ok ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},
    {"the session ends while it is written", false, "ok pinned closed ok ok ok ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},

    {"the disk answers late", false, "late ok ok",
     "open failed:OutputWaiting remove released gone"},
    {"with an error", false, "late eio", "open failed:OutputWaiting released gone"},
    {"that of a client", true, "late ok ok", "open failed:OutputWaiting finish:0 released gone"},
    {"the disk is stuck later on", false, "ok pinned late ok late ok late ok late ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},
    {"the collector is", false, "ok late pinned ok ok ok ok",
     "open pin run finish:8192 publish:own seal:own done released gone"},

    {"the loop ends while it is opened", false, "free ok", "open gone"},
    {"the loop ends and the disk was late", false, "late free ok",
     "open failed:OutputWaiting gone"},
    {"the loop ends while it is sealed", false, "ok pinned ok ok ok free ok",
     "open pin run finish:8192 publish:own seal:own gone"},
};

static void test_life(const struct life_case *life)
{
    char words[256], *word, *rest = words;
    struct rig rig;

    test_case(life->name);
    rig_init(&rig, life->is_clients);
    (void)snprintf(words, sizeof(words), "%s", life->words);
    while ((word = strsep(&rest, " ")))
        play(&rig, word);
    CHECK_STR(fake.text, life->expected);
    CHECK(!rig.snapshot);
    rig_done(&rig);
}

/* Nothing is pinned for a file that is not open; a second pin is told to wait. */
static void test_pins(void)
{
    struct rig rig;

    rig_init(&rig, false);
    test_case("a stuck disk holds no pin");
    CHECK_INT(rig.snapshot->pin, -1);
    test_case("all pins are taken");
    for (unsigned int i = 0; i < RING_PINS_MAX; i++)
        CHECK_INT(ring_take_pin(rig.ring.ring), i);
    play(&rig, "ok");
    play(&rig, "ok");
    CHECK_STR(fake.text, "open remove failed:Busy released gone");
    ring_advance_pin(rig.ring.ring, 0, NULL);
    rig_done(&rig);
}

static void feed_rounds(struct rig *rig, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++)
        CHECK(rig_feed_round(&rig->ring, RIG_MAX_RECORDS / rig->ring.nr_cpus - 10, true));
}

/* Another snapshot is stuck, and no chunk is free. */
static void pin_all_but_newest(struct rig *rig)
{
    struct ring *ring = rig->ring.ring;

    ring_close_chunk(ring); /* so that each round has a chunk */
    feed_rounds(rig, 10);
    ring_pin(ring, ring_take_pin(ring));
    while (ring->nr_free > 0)
        feed_rounds(rig, 1);
}

/* Others hold the ring's memory: it is not as if nothing had been recorded. */
static void test_refused_pin(void)
{
    const struct chunk *head;
    struct ring_stats stats;
    struct ring *ring;
    struct rig rig;

    test_case("a pin that is refused");
    rig_init(&rig, false);
    ring = rig.ring.ring;
    play(&rig, "ok");
    for (unsigned int i = 1; i < RING_PINS_MAX; i++) {
        int pin = ring_take_pin(ring);

        feed_rounds(&rig, 10);
        ring_pin(ring, pin);
        if (ring_pin_is_refused(ring, pin))
            break;
    }
    ring_pin(ring, rig.snapshot->pin);
    CHECK(ring_pin_is_refused(ring, rig.snapshot->pin));
    snapshot_handle_pinned(rig.snapshot);
    answer_write(-ENODATA, false);
    CHECK(strstr(rig.snapshot->failure.text, "Other snapshots hold the memory of"));
    play(&rig, "ok");
    CHECK_STR(fake.text, "open pin run remove failed:Busy released gone");
    rig_done(&rig);

    test_case("one that evicts makes the history shorter");
    rig_init(&rig, false);
    ring = rig.ring.ring;
    play(&rig, "ok");
    pin_all_but_newest(&rig);
    play(&rig, "pinned");
    CHECK(ring_pin_first(ring, rig.snapshot->pin));
    play(&rig, "ok");
    ring_read_stats(ring, &stats);
    CHECK(stats.shortened_bytes > 0);
    CHECK_UINT(rig.snapshot->shortened_bytes, stats.shortened_bytes);
    for (unsigned int i = 0; i < 3; i++)
        play(&rig, "ok");
    rig_done(&rig);

    test_case("after the session has ended, nothing is evicted");
    rig_init(&rig, false);
    ring = rig.ring.ring;
    play(&rig, "ok");
    pin_all_but_newest(&rig);
    head = ring->head;
    play(&rig, "closed");
    CHECK(ring_pin_first(ring, rig.snapshot->pin) == head);
    for (unsigned int i = 0; i < 4; i++)
        play(&rig, "ok");
    rig_done(&rig);
}

static void test_empty(void)
{
    static const struct {
        const char *name;
        uint64_t max_age_usec, since_ns;
        bool is_new;
        const char *message; /* a part of it */
    } cases[] = {
        {"nothing has occurred yet", 0, 0, true, "none of its events occurred. To see"},
        {"nor since a time", 0, 1, true, "none of its events occurred. To see"},
        {"nothing recent enough", 30 * USEC_PER_SEC, 0, false, "it keeps them for 30"},
        {"a round is larger than the ring", 0, 0, false, "its memory is too small"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rig rig;

        test_case(cases[i].name);
        rig_init(&rig, false);
        ring_close_chunk(rig.ring.ring);
        while (rig.ring.ring->head)
            ring_evict(rig.ring.ring);
        fake.is_new = cases[i].is_new;
        rig.storage.max_age_usec = cases[i].max_age_usec;
        play(&rig, "ok");
        play(&rig, "pinned");
        rig.snapshot->span.since_ns = cases[i].since_ns;
        play(&rig, "empty");
        CHECK(strstr(rig.snapshot->failure.text, cases[i].message));
        play(&rig, "ok");
        CHECK_STR(fake.text, "open pin run remove failed:Empty released gone");
        rig_done(&rig);
    }
}

/* 5 s after its reader's last progress, not sooner, and not before there is something to read. */
static void test_patience(void)
{
    struct rig rig;

    test_case("patience with a reader");
    rig_init(&rig, true);
    play(&rig, "ok");
    pass(60 * USEC_PER_SEC);
    play(&rig, "pinned");
    pass(4900 * USEC_PER_MSEC);
    for (unsigned int i = 0; i < 10; i++) { /* slowly, but it reads */
        rig.snapshot->write.progress_usec = fake.now_usec;
        pass(4900 * USEC_PER_MSEC);
        CHECK(!rig.snapshot->write.is_aborted);
    }
    pass(300 * USEC_PER_MSEC);
    CHECK(rig.snapshot->write.is_aborted);
    answer_write(-ECANCELED, true);
    CHECK(strstr(rig.snapshot->failure.text, "has read nothing for 5 s"));
    CHECK_INT(rig.snapshot->pin, -1);
    play(&rig, "ok");
    CHECK_STR(fake.text, "open pin run finish:4096 failed:Output released gone");
    rig_done(&rig);
}

/* The timer that watches the reader does not outlive the writing; a file has none. */
static void test_patience_over(void)
{
    struct rig rig;

    test_case("patience is over with the writing");
    rig_init(&rig, true);
    play(&rig, "ok");
    play(&rig, "pinned");
    pass(USEC_PER_SEC);
    play(&rig, "ok");
    pass(60 * USEC_PER_SEC);
    CHECK_UINT(fake.nr_fired, 0);
    play(&rig, "ok");
    CHECK_STR(fake.text, "open pin run finish:8192 done released gone");
    rig_done(&rig);

    test_case("a file has no reader");
    rig_init(&rig, false);
    play(&rig, "ok");
    play(&rig, "pinned");
    pass(60 * USEC_PER_SEC);
    CHECK_UINT(fake.nr_fired, 0);
    for (unsigned int i = 0; i < 4; i++)
        play(&rig, "ok");
    CHECK(!rig.snapshot);
    rig_done(&rig);
}

static void test_waiting(void)
{
    uint64_t since_usec;
    struct rig rig;

    test_case("waiting");
    rig_init(&rig, false);
    since_usec = fake.now_usec;
    pass(USEC_PER_SEC);
    CHECK_UINT(snapshot_waiting_since_usec(rig.snapshot), 0);
    pass(USEC_PER_SEC);
    pass(USEC_PER_SEC);
    CHECK_STR(fake.text, "open failed:OutputWaiting");
    CHECK_UINT(snapshot_waiting_since_usec(rig.snapshot), since_usec); /* it still does */
    play(&rig, "ok");
    play(&rig, "ok");
    rig_done(&rig);

    rig_init(&rig, false);
    play(&rig, "ok");
    pass(10 * USEC_PER_SEC); /* not for the disk */
    CHECK_UINT(snapshot_waiting_since_usec(rig.snapshot), 0);
    play(&rig, "pinned");
    pass(USEC_PER_SEC);
    since_usec = fake.now_usec;
    rig.snapshot->write.progress_usec = since_usec;
    pass(1900 * USEC_PER_MSEC);
    CHECK_UINT(snapshot_waiting_since_usec(rig.snapshot), 0);
    pass(100 * USEC_PER_MSEC);
    CHECK_UINT(snapshot_waiting_since_usec(rig.snapshot), since_usec);
    for (unsigned int i = 0; i < 4; i++)
        play(&rig, "ok");
    CHECK(!rig.snapshot);
    rig_done(&rig);
}

/* What was asked for, what there was, and why that is less; it is complete nevertheless. */
static void test_shorter(void)
{
    static const struct {
        const char *name;
        uint64_t last_usec, age_usec;
        enum history_limit limit;
        const char *message; /* the end of it */
    } cases[] = {
        {"everything is never too short", 0, 0, HISTORY_NO_LIMIT, " s."},
        {"what was asked for", USEC_PER_SEC, 2000 * USEC_PER_SEC, HISTORY_NO_LIMIT, " s."},
        {"the ring does not go back as far", 4 * DAY, 2 * DAY, HISTORY_BEGAN,
         " of the 4d requested. Recording began at "},
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct history_coverage coverage;
        char message[768];
        struct rig rig;

        test_case(cases[i].name);
        rig_init_since(&rig, false, cases[i].last_usec, cases[i].age_usec);
        for (const char *const *word =
                 (const char *const[]){"ok", "pinned", "ok", "ok", "ok", NULL};
             *word; word++)
            play(&rig, *word);
        coverage = rig.snapshot->coverage; /* it is being sealed: the sidecar has it */
        (void)snprintf(message, sizeof(message), "%s", rig.snapshot->message);
        play(&rig, "ok");
        CHECK_INT(coverage.limit, cases[i].limit);
        CHECK_UINT(coverage.asked_usec, cases[i].last_usec);
        CHECK(strstr(message, cases[i].message));
        if (cases[i].limit == HISTORY_BEGAN)
            CHECK(coverage.held_usec >= cases[i].age_usec &&
                  coverage.held_usec < cases[i].last_usec);
        CHECK_STR(fake.text, "open pin run finish:8192 publish:own seal:own done released gone");
        rig_done(&rig);
    }
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(life_cases); i++)
        test_life(&life_cases[i]);
    test_pins();
    test_refused_pin();
    test_empty();
    test_patience();
    test_patience_over();
    test_waiting();
    test_shorter();
    return test_end();
}
