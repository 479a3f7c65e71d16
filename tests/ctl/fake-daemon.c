// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fake-daemon SOCKET MODE: speaks the control protocol as xentraced does, or as it never should.
 *
 * It keeps one session and writes small, sound windows to the descriptor it was given. Time passes
 * only when it is asked: each Status adds a round to the file, and so does each reply of a stream.
 *
 *   ok       as documented                    die        exits at the first Status of a session
 *   refuse   refuses every Start              die-start  exits at Start
 *   early    sessions end early, reserve      mute       never answers Start
 *   lossy    Xen lost 10 records on CPU 1     slow-stop  never answers Stop
 *   close    closes every connection          silent     accepts no connection
 *   text     answers "none of your business"  number     answers a number in place of an object
 *   types    every value has a wrong type     bare       documents without any key but the format
 *   escape   texts with terminal sequences    array      answers "[]"
 *   no-files permits no descriptors           old        knows Start, Stop and Status only
 *   dbus     speaks D-Bus                     stranger   is another service
 *   pieces   as recorder, byte by byte        break      streams end after their second reply
 *   progress a snapshot takes 2 s
 *   raw:F    answers with the bytes of the file F, and end:F closes the connection then
 *   recorder a flight recorder runs, too      no-right   permits no snapshot, trigger, rotation
 *   several  Stop("") is ambiguous           stuck      the disk stopped answering 14 s ago: Stop
 *   stuck-start  Start fails for that reason            is answered after Abort
 *   restart  ends the session at its first Status, and exits
 *   disk     the disk has room for some time
 *   quiet    CPU 1 is silent, CPU 5 has no trace buffer
 *   second:T answers Snapshot with the bytes of the file T, and two domains
 *   file:F   answers Status with the text of the file F, in which "@9" is the time 9 s ago
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>
#include <time.h>

#include "common/protocol.h"
#include "common/record.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/ctl/fake-files.h"
#include "tests/ctl/fake-recorder.h"
#include "tests/ctl/fake-server.h"

#define NR_CPUS     2u
#define RECORD_SIZE 12u

struct fake {
    const char *mode;
    struct fake_server server;
    struct fake_peer *attached; /* whose session it is; NULL: nobody's */
    bool has_session, has_ended, recorder_ended;
    struct fake_storage storage;
    char name[64], path[4096], reason[32];
    int fd, sidecar_fd;
    uint64_t time_usec, started_ns, ended_ns, rounds, tsc;
    struct fake_peer *stop; /* waits for the stuck disk */
};

static bool is_mode(const struct fake *fake, const char *mode)
{
    return strcmp(fake->mode, mode) == 0;
}

static bool has_recorder(const struct fake *fake)
{
    return is_mode(fake, "recorder") || is_mode(fake, "pieces");
}

/* "file:F" is FILE with the argument F; NULL: it is another mode. */
static const char *mode_argument(const struct fake *fake, const char *name)
{
    size_t length = strlen(name);

    return strncmp(fake->mode, name, length) == 0 && fake->mode[length] == ':'
               ? fake->mode + length + 1
               : NULL;
}

static uint64_t realtime_ns(void)
{
    struct timespec now = {};

    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

/* One round: a window of two sched records for each CPU. */
static void write_windows(int fd, uint64_t *tsc)
{
    for (uint32_t cpu = 0; cpu < NR_CPUS; cpu++) {
        uint32_t words[3 + 6] = {WINDOW_HEADER, cpu, 2 * RECORD_SIZE};

        for (int i = 0; i < 2; i++) {
            *tsc += 1000;
            words[3 + 3 * i] = 0x80021002u; /* sched-min, with a TSC */
            words[4 + 3 * i] = (uint32_t)*tsc;
        }
        if (fd >= 0 && write(fd, words, sizeof(words)) != sizeof(words))
            perror("fake-daemon: write");
    }
}

static void write_round(struct fake *fake)
{
    write_windows(fake->fd, &fake->tsc);
    fake->rounds++;
}

static struct json_object *number(uint64_t value)
{
    return json_object_new_uint64(value);
}

static struct json_object *text(const char *value)
{
    return json_object_new_string(value);
}

static struct json_object *add_object(struct json_object *doc, const char *key)
{
    struct json_object *object = json_object_new_object();

    json_object_object_add(doc, key, object);
    return object;
}

static void add_ledger(const struct fake *fake, struct json_object *doc)
{
    struct json_object *ledger = add_object(doc, "ledger"), *cpus = json_object_new_array();
    uint64_t lost = is_mode(fake, "lossy") ? 10 : 0, delivered = fake->rounds * NR_CPUS * 2;
    uint64_t dropped = strcmp(fake->reason, "abort") == 0 ? 123 : 0;

    json_object_object_add(ledger, "produced", number(delivered + lost + dropped));
    json_object_object_add(ledger, "delivered", number(delivered));
    json_object_object_add(ledger, "lost", number(lost));
    json_object_object_add(ledger, "dropped", number(dropped));
    json_object_object_add(ledger, "evicted", number(0));
    json_object_object_add(ledger, "loss_unknown_cpus", text(""));
    json_object_object_add(ledger, "cpus", cpus);
    for (uint64_t i = 0; i < NR_CPUS; i++) {
        struct json_object *cpu = json_object_new_object();

        json_object_object_add(cpu, "cpu", number(i));
        json_object_object_add(cpu, "delivered", number(fake->rounds * 2));
        json_object_object_add(cpu, "lost", number(i == 1 ? lost : 0));
        json_object_object_add(cpu, "dropped", number(0));
        json_object_object_add(cpu, "fill_percent", number(12));
        json_object_array_add(cpus, cpu);
    }
}

static void add_ended(const struct fake *fake, struct json_object *doc)
{
    struct json_object *ended = add_object(doc, "ended");
    bool aborted = strcmp(fake->reason, "abort") == 0;
    bool exits = strcmp(fake->reason, "daemon-exit") == 0;
    bool early = aborted || exits || strcmp(fake->reason, "reserve") == 0;

    json_object_object_add(ended, "realtime_ns", number(fake->ended_ns));
    json_object_object_add(ended, "reason", text(fake->reason));
    json_object_object_add(ended, "message",
                           text(aborted ? "Aborted on request."
                                : exits ? "xentraced ended."
                                : early ? "The disk reached its reserve."
                                        : "It was to end."));
    json_object_object_add(ended, "ok", json_object_new_boolean(!early));
}

static struct json_object *session_document(const struct fake *fake)
{
    struct json_object *doc = json_object_new_object(), *part;

    json_object_object_add(doc, "format", text("xentraced-session"));
    json_object_object_add(doc, "version", number(1));
    if (is_mode(fake, "bare"))
        return doc;
    json_object_object_add(doc, "name",
                           text(is_mode(fake, "escape") ? "\033[31mred\n" : fake->name));
    json_object_object_add(doc, "state",
                           text(fake->has_ended ? "ended"
                                : fake->stop    ? "stopping"
                                                : "running"));
    part = add_object(doc, "output");
    json_object_object_add(part, "path", text(*fake->path ? fake->path : "-"));
    json_object_object_add(part, "kind", text(*fake->path ? "file" : "stream"));
    if (fake->sidecar_fd >= 0) {
        _cleanup_free_ char *sidecar = sidecar_path_of(fake->path);

        json_object_object_add(part, "sidecar", text(sidecar ? sidecar : ""));
    }
    json_object_object_add(
        part, "bytes", number(fake->rounds * NR_CPUS * (WINDOW_HEADER_BYTES + 2 * RECORD_SIZE)));
    if (is_mode(fake, "disk"))
        json_object_object_add(part, "room_bytes", number(UINT64_C(20000000)));
    if (is_mode(fake, "stuck"))
        json_object_object_add(part, fake->has_ended ? "held_bytes" : "waiting_since_ns",
                               number(fake->has_ended ? 4194304 : fake_stuck_since(realtime_ns())));
    if (is_mode(fake, "quiet"))
        json_object_object_add(doc, "buffers",
                               json_tokener_parse("{\"pages\":32,\"cpus\":\"0-1\","
                                                  "\"set_aside\":\"\",\"silent\":\"1\","
                                                  "\"missing\":\"5\"}"));
    part = add_object(doc, "started");
    json_object_object_add(part, "realtime_ns", number(fake->started_ns));
    if (fake->has_ended)
        add_ended(fake, doc);
    part = add_object(doc, "events");
    json_object_object_add(part, "spec", text("sched"));
    json_object_object_add(part, "xen_mask", number(0x2f000));
    part = add_object(doc, "cpus");
    json_object_object_add(part, "list", text("0-1"));
    part = add_object(doc, "limits");
    json_object_object_add(part, "time_usec", number(fake->time_usec));
    json_object_object_add(part, "on_reserve",
                           text(*fake->storage.on_reserve ? fake->storage.on_reserve : "stop"));
    if (is_mode(fake, "disk"))
        json_object_object_add(part, "reserve_bytes", number(UINT64_C(5) << 30));
    fake_add_storage(doc, &fake->storage, fake->rounds, realtime_ns());
    add_ledger(fake, doc);
    part = add_object(doc, "host");
    json_object_object_add(part, "tsc_khz", number(2300000));
    return doc;
}

/* The same keys, and nothing under them that fits. */
static const char wrong_types[] =
    "{\"format\":\"xentraced-session\",\"version\":1,\"name\":\"odd\",\"state\":7,"
    "\"output\":[1,2],\"started\":{\"realtime_ns\":\"noon\"},\"ended\":\"yes\",\"events\":null,"
    "\"cpus\":{\"list\":{}},\"limits\":{\"time_usec\":-5},\"ledger\":{\"delivered\":1e400,"
    "\"lost\":18446744073709551615,\"dropped\":18446744073709551615,\"cpus\":[1,null,[],{\"lost\":"
    "99999999999999999999999}]},\"host\":5,\"sessions\":{}}";

static char *made_status_text(const struct fake *fake)
{
    struct json_object *doc = json_object_new_object(), *part, *sessions;
    char *result;

    json_object_object_add(doc, "format", text("xentraced-status"));
    json_object_object_add(doc, "version", number(1));
    if (!is_mode(fake, "bare")) {
        part = add_object(doc, "daemon");
        json_object_object_add(part, "version", text("9.9"));
        json_object_object_add(part, "pid", number(4711));
        part = add_object(doc, "xen");
        json_object_object_add(part, "version", text("4.17.6"));
        json_object_object_add(part, "cpus", number(NR_CPUS));
        json_object_object_add(part, "buffer_pages", number(32));
        sessions = json_object_new_array();
        json_object_object_add(doc, "sessions", sessions);
        if (fake->has_session)
            json_object_array_add(sessions, session_document(fake));
        if (is_mode(fake, "stuck"))
            json_object_object_add(doc, "snapshots", fake_stuck_snapshots(realtime_ns()));
        if (has_recorder(fake)) {
            json_object_array_add(sessions, fake_recorder(realtime_ns(), fake->recorder_ended));
            json_object_object_add(doc, "recorder",
                                   fake_recorder_object(realtime_ns(), fake->recorder_ended));
            json_object_object_add(doc, "snapshots", fake_snapshots(7, realtime_ns()));
            json_object_object_add(doc, "triggers", fake_triggers(realtime_ns()));
        }
    }
    result = strdup(json_object_to_json_string(doc));
    json_object_put(doc);
    return result;
}

/* The text of a file, "@SECONDS" replaced by nanoseconds since 1970. NULL: it cannot be read. */
static char *file_text(const char *path)
{
    FILE *in = fopen(path, "re"), *out;
    uint64_t now_ns = realtime_ns();
    char *result = NULL;
    size_t bytes;
    int c;

    out = in ? open_memstream(&result, &bytes) : NULL;
    while (out && (c = fgetc(in)) != EOF) {
        uint64_t seconds;

        if (c == '@' && fscanf(in, "%" SCNu64, &seconds) == 1)
            (void)fprintf(out, "%" PRIu64, now_ns - seconds * NSEC_PER_SEC);
        else
            (void)fputc(c, out);
    }
    if (out)
        (void)fclose(out);
    if (in)
        (void)fclose(in);
    return result;
}

static char *status_text(const struct fake *fake)
{
    const char *file = mode_argument(fake, "file");

    if (file)
        return file_text(file);
    return made_status_text(fake);
}

static char *session_text(const struct fake *fake)
{
    struct json_object *doc;
    char *result;

    if (is_mode(fake, "types"))
        return strdup(wrong_types);
    doc = session_document(fake);
    result = strdup(json_object_to_json_string(doc));
    json_object_put(doc);
    return result;
}

static void end_session(struct fake *fake, const char *reason)
{
    _cleanup_free_ char *document = NULL;

    if (fake->has_ended)
        return;
    fake->has_ended = true;
    fake->ended_ns = realtime_ns();
    (void)snprintf(fake->reason, sizeof(fake->reason), "%s", reason);
    document = session_text(fake);
    if (fake->sidecar_fd >= 0 && document)
        (void)!write(fake->sidecar_fd, document, strlen(document));
    fd_close(&fake->fd);
    fd_close(&fake->sidecar_fd);
}

static void look_at_clock(struct fake *fake)
{
    if (fake->has_session && !fake->has_ended && fake->time_usec &&
        realtime_ns() - fake->started_ns >= fake->time_usec * NSEC_PER_USEC)
        end_session(fake, "time");
}

static void pass_time(struct fake *fake)
{
    if (!fake->has_session || fake->has_ended)
        return;
    write_round(fake);
    if (is_mode(fake, "early"))
        end_session(fake, "reserve");
    look_at_clock(fake);
}

/* --- Answers. --- */

static void quit(struct fake *fake)
{
    fake->server.is_over = true;
}

static void send_bytes(struct fake *fake, struct fake_peer *peer, const char *path)
{
    char buffer[65536];
    FILE *in = fopen(path, "re");
    size_t bytes;

    (void)fake;
    while (in && (bytes = fread(buffer, 1, sizeof(buffer), in)) > 0)
        fake_send(peer, buffer, bytes);
    if (in)
        (void)fclose(in);
}

/* Frees DOCUMENT. */
static void answer_text(struct fake *fake, struct fake_peer *peer, const char *key, char *document,
                        bool continues)
{
    static const char business[] = "none of your business", number[] = "42", array[] = "[]";

    if (is_mode(fake, "text"))
        fake_send(peer, business, sizeof(business));
    else if (is_mode(fake, "array"))
        fake_send(peer, array, sizeof(array));
    else if (is_mode(fake, "number"))
        fake_send(peer, number, sizeof(number));
    else
        fake_reply(peer, key, document ? document : "{}", continues);
    free(document);
}

/* Takes DOC. */
static void answer(struct fake *fake, const struct fake_call *call, const char *key,
                   struct json_object *doc)
{
    char *document = strdup(json_object_to_json_string(doc));

    json_object_put(doc);
    answer_text(fake, call->peer, key, document, false);
}

static void answer_session(struct fake *fake, struct fake_peer *peer, const char *key)
{
    answer_text(fake, peer, key, session_text(fake), false);
}

static void refuse(const struct fake_call *call, const char *name, const char *sentence,
                   const char *hint)
{
    _cleanup_free_ char *error = NULL;

    if (asprintf(&error, "%s%s", ERROR_PREFIX, name) > 0)
        fake_error(call->peer, error, sentence, hint);
}

/* --- Calls. --- */

static void read_storage(struct fake_storage *storage, const struct fake_call *call)
{
    *storage = (struct fake_storage){
        .memory_bytes = fake_number(call, FIELD_MEMORY),
        .max_age_usec = fake_number(call, FIELD_MAX_AGE),
        .segment_size_bytes = fake_number(call, FIELD_SEGMENT_SIZE),
        .segment_time_usec = fake_number(call, FIELD_SEGMENT_TIME),
        .keep_files = (uint32_t)fake_number(call, FIELD_KEEP_FILES),
        .keep_size_bytes = fake_number(call, FIELD_KEEP_SIZE),
        .persist = fake_flag(call, FIELD_PERSIST),
    };
    (void)snprintf(storage->on_reserve, sizeof(storage->on_reserve), "%s",
                   fake_text(call, FIELD_ON_RESERVE));
}

static void handle_start_recorder(struct fake *fake, const struct fake_call *call)
{
    struct json_object *session = fake_recorder(realtime_ns(), false), *started;

    if (fake->recorder_ended && json_object_object_get_ex(session, "started", &started))
        json_object_object_add(started, "realtime_ns", number(realtime_ns()));
    fake->recorder_ended = false;
    answer(fake, call, REPLY_SESSION, session);
}

static void begin_session(struct fake *fake, const struct fake_call *call)
{
    const char *name = fake_text(call, FIELD_NAME);

    fake->has_session = true;
    fake->has_ended = false;
    fake->rounds = fake->tsc = 0;
    fake->started_ns = realtime_ns();
    (void)snprintf(fake->name, sizeof(fake->name), "%s", *name ? name : "capture-1");
    fake->time_usec = fake_number(call, FIELD_TIME);
    (void)snprintf(fake->path, sizeof(fake->path), "%s", fake_text(call, FIELD_OUTPUT_PATH));
    fake->fd = fake_fd(call, FIELD_OUTPUT_FD);
    fake->sidecar_fd = fake_fd(call, FIELD_SIDECAR_FD);
    fake->attached = fake_flag(call, FIELD_ATTACHED) ? call->peer : NULL;
    read_storage(&fake->storage, call);
    if (fake->fd < 0)
        (void)snprintf(fake->path, sizeof(fake->path), "/fake/%s.xentrace", fake->name);
    write_round(fake);
}

static void handle_start(struct fake *fake, const struct fake_call *call)
{
    if (has_recorder(fake) && strcmp(fake_text(call, FIELD_NAME), PROTOCOL_RECORDER) == 0) {
        handle_start_recorder(fake, call);
    } else if (is_mode(fake, "die-start")) {
        quit(fake);
    } else if (is_mode(fake, "mute")) {
        return;
    } else if (is_mode(fake, "stuck-start")) {
        refuse(call, "OutputWaiting", "The disk of /srv did not answer within 2 s.", NULL);
    } else if (is_mode(fake, "refuse") || (fake->has_session && !fake->has_ended)) {
        refuse(call, "Busy", "The capture \"first\" is running.",
               "To end it: xentracectl stop first");
    } else {
        begin_session(fake, call);
        answer_session(fake, call->peer, REPLY_SESSION);
    }
}

static void handle_stop(struct fake *fake, const struct fake_call *call)
{
    const char *name = fake_text(call, FIELD_NAME);

    if (is_mode(fake, "slow-stop"))
        return;
    if (has_recorder(fake) && strcmp(name, PROTOCOL_RECORDER) == 0) {
        refuse(call, "Recorder", "Stopping it discards its history of 12min 3s.", NULL);
    } else if (is_mode(fake, "several") && !*name) {
        refuse(call, "Busy", "Several captures run: a, b.", "Name one of them.");
    } else if (!fake->has_session || fake->has_ended || (*name && strcmp(name, fake->name) != 0)) {
        refuse(call, "NoSuchSession", "No such capture runs.", NULL);
    } else if (is_mode(fake, "stuck")) {
        fake->stop = call->peer; /* answered by handle_abort() */
    } else {
        end_session(fake, "stop");
        answer_session(fake, call->peer, REPLY_SESSION);
    }
}

static void handle_stop_recorder(struct fake *fake, const struct fake_call *call)
{
    fake->recorder_ended = true;
    answer(fake, call, REPLY_RECORDER, fake_recorder_object(realtime_ns(), true));
}

static void handle_abort(struct fake *fake, const struct fake_call *call)
{
    if (!fake->has_session || fake->has_ended ||
        strcmp(fake_text(call, FIELD_NAME), fake->name) != 0) {
        refuse(call, "NoSuchSession", "No such capture runs.", NULL);
        return;
    }
    end_session(fake, is_mode(fake, "early") ? "reserve" : "abort");
    if (fake->stop)
        answer_session(fake, fake->stop, REPLY_SESSION);
    fake->stop = NULL;
    answer_session(fake, call->peer, REPLY_SESSION);
}

static void begin_stream(struct fake *fake, const struct fake_call *call, const char *method)
{
    struct fake_stream *stream = fake_peer_stream(call->peer);

    (void)fake;
    *stream = (struct fake_stream){
        .method = method,
        .interval_usec = fake_number(call, FIELD_INTERVAL),
        .last_usec = fake_number(call, FIELD_LAST),
        .fd = fake_fd(call, FIELD_OUTPUT_FD),
    };
    (void)snprintf(stream->name, sizeof(stream->name), "%s", fake_text(call, FIELD_NAME));
}

static void end_stream(struct fake_stream *stream)
{
    fd_close(&stream->fd);
    stream->method = NULL;
}

static void handle_status(struct fake *fake, const struct fake_call *call)
{
    const char *name = fake_text(call, FIELD_NAME);
    bool is_all = !*name || mode_argument(fake, "file");

    if (!is_all && is_mode(fake, "restart"))
        end_session(fake, "daemon-exit");
    if (!is_all && (is_mode(fake, "die") || is_mode(fake, "restart"))) {
        quit(fake);
        return;
    }
    if (!is_all && !fake->has_session) {
        _cleanup_free_ char *sentence = NULL;

        if (asprintf(&sentence, "There is no capture \"%s\".", name) > 0)
            refuse(call, "NoSuchSession", sentence, NULL);
        return;
    }
    if (call->more) {
        begin_stream(fake, call, PROTOCOL_STATUS);
        return;
    }
    pass_time(fake);
    answer_text(fake, call->peer, REPLY_STATUS, is_all ? status_text(fake) : session_text(fake),
                false);
}

/* The next Status of a stream, or the last one. */
static void tick_status(struct fake *fake, struct fake_peer *peer, struct fake_stream *stream)
{
    bool is_all = !*stream->name || mode_argument(fake, "file"), is_due;

    look_at_clock(fake);
    is_due = fake_now_usec() >= stream->next_usec;
    if (!is_due && (is_all || !fake->has_ended))
        return;
    pass_time(fake);
    stream->next_usec = fake_now_usec() + stream->interval_usec;
    answer_text(fake, peer, REPLY_STATUS, is_all ? status_text(fake) : session_text(fake),
                is_all || !fake->has_ended);
    if (!is_all && fake->has_ended)
        end_stream(stream);
}

struct snapshot_call {
    struct fake_snapshot asked;
    int fd, sidecar_fd;
};

static void read_snapshot(struct snapshot_call *snapshot, const struct fake_call *call)
{
    const char *name = fake_text(call, FIELD_NAME), *session = fake_text(call, FIELD_SESSION);
    struct fake_snapshot *asked = &snapshot->asked;

    *snapshot = (struct snapshot_call){
        .asked = {.last_usec = fake_number(call, FIELD_LAST),
                  .since_ns = fake_number(call, FIELD_SINCE),
                  .until_ns = fake_number(call, FIELD_UNTIL),
                  .until_ago_usec = fake_number(call, FIELD_UNTIL_AGO),
                  .max_size_bytes = fake_number(call, FIELD_MAX_SIZE)},
        .fd = fake_fd(call, FIELD_OUTPUT_FD),
        .sidecar_fd = fake_fd(call, FIELD_SIDECAR_FD),
    };
    (void)snprintf(asked->name, sizeof(asked->name), "%s", *name ? name : "snapshot-1");
    (void)snprintf(asked->session, sizeof(asked->session), "%s",
                   *session ? session : "flight-recorder");
    (void)snprintf(asked->label, sizeof(asked->label), "%s", fake_text(call, FIELD_LABEL));
    (void)snprintf(asked->path, sizeof(asked->path), "%s", fake_text(call, FIELD_OUTPUT_PATH));
}

/* The bytes of the file at PATH, as the newest second; as many as the client wants to have. */
static uint64_t write_trace(const char *path, int fd)
{
    char buffer[65536];
    FILE *in = fopen(path, "re");
    uint64_t sum = 0;
    size_t bytes;

    while (in && (bytes = fread(buffer, 1, sizeof(buffer), in)) > 0) {
        if (write(fd, buffer, bytes) < 0)
            break;
        sum += bytes;
    }
    if (in)
        (void)fclose(in);
    return sum;
}

static void tick_second(struct fake *fake, struct fake_peer *peer, struct fake_stream *stream)
{
    const char *domains = "[{\"domid\":0,\"name\":\"Domain-0\",\"last_seen_ns\":1,"
                          "\"uuid\":\"00000000-0000-0000-0000-000000000000\"},"
                          "{\"domid\":1,\"name\":\"old\",\"last_seen_ns\":1},"
                          "{\"domid\":1,\"name\":\"web\\u001b\",\"last_seen_ns\":2}]";
    struct fake_snapshot asked = {.name = "second",
                                  .path = "-",
                                  .session = "flight-recorder",
                                  .last_usec = stream->last_usec,
                                  .held_usec = stream->last_usec,
                                  .ok = true};
    struct json_object *doc;

    if (fake_now_usec() < stream->next_usec)
        return;
    stream->next_usec = fake_now_usec() + stream->interval_usec;
    asked.bytes = write_trace(mode_argument(fake, "second"), stream->fd);
    doc = fake_snapshot(&asked, realtime_ns());
    json_object_object_add(doc, "domains", json_tokener_parse(domains));
    fake_reply_document(peer, REPLY_SNAPSHOT, doc, true);
}

static void tick_progress(struct fake_peer *peer, struct fake_stream *stream)
{
    struct fake_snapshot asked = {
        .name = "slow", .path = "/fake/slow.xentrace", .session = "flight-recorder", .ok = true};
    struct json_object *progress;

    if (fake_now_usec() < stream->next_usec)
        return;
    stream->next_usec = fake_now_usec() + 200 * USEC_PER_MSEC;
    if (stream->sent++ == 10) {
        fake_reply_document(peer, REPLY_SNAPSHOT, fake_snapshot(&asked, realtime_ns()), false);
        end_stream(stream);
        return;
    }
    progress = json_object_new_object();
    json_object_object_add(progress, "bytes", number(stream->sent * 100000000));
    json_object_object_add(progress, "total_bytes", number(1000000000));
    fake_reply_document(peer, REPLY_PROGRESS, progress, true);
}

static void tick(void *context, struct fake_peer *peer)
{
    struct fake *fake = context;
    struct fake_stream *stream = fake_peer_stream(peer);
    uint64_t next_usec = stream->next_usec;

    if (strcmp(stream->method, PROTOCOL_STATUS) == 0)
        tick_status(fake, peer, stream);
    else if (mode_argument(fake, "second"))
        tick_second(fake, peer, stream);
    else
        tick_progress(peer, stream);
    if (is_mode(fake, "break") && stream->next_usec != next_usec && ++stream->sent == 2)
        fake_close(peer);
}

static void write_snapshot(struct fake *fake, const struct fake_call *call,
                           struct snapshot_call *snapshot)
{
    struct fake_snapshot *asked = &snapshot->asked;
    struct json_object *doc;
    const char *text;

    write_windows(snapshot->fd, &fake->tsc);
    asked->bytes = NR_CPUS * (WINDOW_HEADER_BYTES + 2 * RECORD_SIZE);
    asked->records = NR_CPUS * 2;
    asked->lost = is_mode(fake, "lossy") ? 10 : 0;
    asked->ok = !is_mode(fake, "early");
    asked->held_usec = is_mode(fake, "lossy") ? asked->last_usec / 10 * 9 : asked->last_usec;
    if (snapshot->fd < 0)
        (void)strcpy(asked->path, "/fake/snapshot.xentrace");
    if (!*asked->path)
        (void)strcpy(asked->path, "-");
    if (is_mode(fake, "escape"))
        (void)strcpy(asked->path, "/fake/\\u001b[31m"); /* JSON's */
    doc = is_mode(fake, "bare")
              ? json_tokener_parse("{\"format\":\"xentraced-snapshot\",\"version\":1}")
              : fake_snapshot(asked, realtime_ns());
    text = json_object_to_json_string(doc);
    if (snapshot->sidecar_fd >= 0)
        (void)!write(snapshot->sidecar_fd, text, strlen(text));
    answer(fake, call, REPLY_SNAPSHOT, doc);
}

static void handle_snapshot(struct fake *fake, const struct fake_call *call)
{
    struct snapshot_call snapshot;

    if (is_mode(fake, "die")) {
        quit(fake);
    } else if (is_mode(fake, "mute")) {
        return;
    } else if (is_mode(fake, "ok") || is_mode(fake, "refuse")) {
        refuse(call, "NoRing", "Nothing records into memory; xentracectl start -M does.", NULL);
    } else if (mode_argument(fake, "second") || (is_mode(fake, "progress") && call->more)) {
        begin_stream(fake, call, PROTOCOL_SNAPSHOT);
    } else {
        read_snapshot(&snapshot, call);
        write_snapshot(fake, call, &snapshot);
        fd_close(&snapshot.fd);
        fd_close(&snapshot.sidecar_fd);
    }
}

static void handle_rotate(struct fake *fake, const struct fake_call *call)
{
    if (!fake->storage.segment_size_bytes || fake->has_ended)
        refuse(call, "NotSegmented", "No capture has segments; see --segment-size.", NULL);
    else
        answer(fake, call, REPLY_SEGMENT, fake_segment(fake->rounds, "rotate", realtime_ns()));
}

static void handle_trigger(struct fake *fake, const struct fake_call *call)
{
    const char *name = fake_text(call, FIELD_NAME);
    struct json_object *doc = fake_fired(name, realtime_ns());
    _cleanup_free_ char *sentence = NULL;

    if (doc)
        answer(fake, call, REPLY_TRIGGER, doc);
    else if (asprintf(&sentence, "There is no trigger \"%s\" with condition=manual.", name) > 0)
        refuse(call, "NoSuchTrigger", sentence, NULL);
}

static void handle_files(struct fake *fake, const struct fake_call *call)
{
    (void)fake;
    (void)fake_files_handle(call);
}

static void handle_reload(struct fake *fake, const struct fake_call *call)
{
    if (is_mode(fake, "refuse"))
        refuse(call, "Configuration",
               "The configuration was not reloaded, the running one stays in force. "
               "/etc/xentraced/xentraced.conf, line 3: there is no key 'pol' in [daemon]; did you "
               "mean 'pool'? See xentraced.conf(5).",
               NULL);
    else
        answer(fake, call, REPLY_CHANGES, fake_reload());
}

static void handle(void *context, const struct fake_call *call)
{
    static const struct {
        const char *method;
        bool is_new; /* an older daemon does not have it */
        void (*handle)(struct fake *fake, const struct fake_call *call);
    } methods[] = {
        {PROTOCOL_START, false, handle_start},
        {PROTOCOL_STOP, false, handle_stop},
        {PROTOCOL_STATUS, false, handle_status},
        {PROTOCOL_SNAPSHOT, true, handle_snapshot},
        {PROTOCOL_ROTATE, true, handle_rotate},
        {PROTOCOL_TRIGGER, true, handle_trigger},
        {PROTOCOL_STOP_RECORDER, true, handle_stop_recorder},
        {PROTOCOL_ABORT, true, handle_abort},
        {PROTOCOL_RELOAD, true, handle_reload},
        {PROTOCOL_FILES, true, handle_files},
        {PROTOCOL_VACUUM, true, handle_files},
        {PROTOCOL_REMOVE, true, handle_files},
    };
    struct fake *fake = context;
    const char *raw = mode_argument(fake, "raw"), *end = mode_argument(fake, "end");
    size_t i = 0;

    if (raw || end) {
        send_bytes(fake, call->peer, raw ? raw : end);
        if (end)
            fake_close(call->peer);
        return;
    }
    while (i < ARRAY_SIZE(methods) && strcmp(methods[i].method, call->method) != 0)
        i++;
    if (i == ARRAY_SIZE(methods) || (methods[i].is_new && is_mode(fake, "old")))
        fake_error(call->peer, SERVICE_ERROR_NO_METHOD, NULL, NULL);
    else if (methods[i].is_new && is_mode(fake, "no-right"))
        refuse(call, "NotPermitted", "Only root and the control group may do this.", NULL);
    else if (is_mode(fake, "no-files") && call->nr_fds > 0)
        refuse(call, "NotPermitted",
               "Only root and the control group may write to their own files.", "Leave -o out.");
    else
        methods[i].handle(fake, call);
}

static void gone(void *context, struct fake_peer *peer)
{
    struct fake *fake = context;

    if (fake->has_session && fake->attached == peer)
        end_session(fake, "client-gone");
    if (fake->attached == peer)
        fake->attached = NULL;
    if (fake->stop == peer)
        fake->stop = NULL;
}

int main(int argc, char **argv)
{
    static struct fake fake;
    int code;

    if (argc != 3)
        return 2;
    fake.mode = argv[2];
    fake.fd = fake.sidecar_fd = -1;
    fake.server = (struct fake_server){
        .version = is_mode(&fake, "escape") ? "9.9\033[31m" : "9.9",
        .accepts = !is_mode(&fake, "silent"),
        .closes = is_mode(&fake, "close"),
        .speaks_dbus = is_mode(&fake, "dbus"),
        .in_pieces = is_mode(&fake, "pieces"),
        .interface = is_mode(&fake, "stranger") ? "org.example.Other" : CONTROL_INTERFACE,
        .context = &fake,
        .handle = handle,
        .tick = tick,
        .gone = gone,
    };
    code = fake_server_run(&fake.server, argv[1]);
    fd_close(&fake.fd);
    fd_close(&fake.sidecar_fd);
    return code;
}
