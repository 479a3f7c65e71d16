// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fake-daemon SOCKET MODE: speaks the control protocol as xentraced does, or as it never should.
 *
 * It keeps one session and writes small, sound windows to the descriptor it was given. Time passes
 * only when it is asked: each Status adds a round to the file.
 *
 *   ok       as documented                    die        exits at the first Status of a session
 *   refuse   refuses every Start              die-start  exits at Start
 *   early    sessions end early, reserve      mute       never answers Start
 *   lossy    Xen lost 10 records on CPU 1     slow-stop  never answers Stop
 *   close    closes every connection          silent     never even authenticates
 *   text     answers "none of your business"  number     answers a number in place of a text
 *   types    every value has a wrong type     bare       documents without any key but the format
 *   escape   texts with terminal sequences    array      answers "[]"
 *   no-files takes no descriptors             old        knows Start, Stop and Status only
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
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-bus.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "common/protocol.h"
#include "common/record.h"
#include "common/sidecar-path.h"
#include "common/units.h"
#include "common/util.h"
#include "tests/ctl/fake-files.h"
#include "tests/ctl/fake-options.h"
#include "tests/ctl/fake-recorder.h"

#define BUSES_MAX   64
#define NR_CPUS     2u
#define RECORD_SIZE 12u

struct fake {
    const char *mode;
    sd_event *event;
    sd_bus *buses[BUSES_MAX];
    int nr_buses;
    sd_bus *attached; /* whose session it is; NULL: nobody's */
    bool has_session, has_ended, recorder_ended;
    struct fake_storage storage;
    char name[64], path[4096], reason[32];
    int fd, sidecar_fd;
    uint64_t time_usec, started_ns, ended_ns, rounds, tsc;
    sd_bus_message *stop; /* waits for the stuck disk */
};

static bool is_mode(const struct fake *fake, const char *mode)
{
    return strcmp(fake->mode, mode) == 0;
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
        if (is_mode(fake, "recorder")) {
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
    if (strncmp(fake->mode, "file:", 5) == 0)
        return file_text(fake->mode + 5);
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

static void pass_time(struct fake *fake)
{
    uint64_t now = realtime_ns();

    if (!fake->has_session || fake->has_ended)
        return;
    write_round(fake);
    if (is_mode(fake, "early"))
        end_session(fake, "reserve");
    else if (fake->time_usec && now - fake->started_ns >= fake->time_usec * NSEC_PER_USEC)
        end_session(fake, "time");
}

/* Frees DOCUMENT. */
static int answer(struct fake *fake, sd_bus_message *message, char *document)
{
    int r;

    if (is_mode(fake, "text"))
        r = sd_bus_reply_method_return(message, "s", "none of your business");
    else if (is_mode(fake, "array"))
        r = sd_bus_reply_method_return(message, "s", "[]");
    else if (is_mode(fake, "number"))
        r = sd_bus_reply_method_return(message, "u", 42);
    else
        r = sd_bus_reply_method_return(message, "s", document);
    free(document);
    return r;
}

/* Takes DOC. */
static int answer_document(struct fake *fake, sd_bus_message *message, struct json_object *doc)
{
    char *document = strdup(json_object_to_json_string(doc));

    json_object_put(doc);
    return answer(fake, message, document);
}

static int quit(struct fake *fake)
{
    (void)sd_event_exit(fake->event, 0);
    return 1; /* handled: no answer */
}

static int take_option(void *context, sd_bus_message *message, const char *key)
{
    struct fake *fake = context;
    int flag, r;

    r = fake_take_storage(&fake->storage, message, key);
    if (r != -ENOENT)
        return r;

    if (strcmp(key, OPTION_ATTACHED) == 0) {
        r = sd_bus_message_read(message, "v", "b", &flag);
        if (r >= 0)
            fake->attached = sd_bus_message_get_bus(message);
        return r;
    }
    if (strcmp(key, OPTION_TIME) == 0)
        return sd_bus_message_read(message, "v", "t", &fake->time_usec);
    if (strcmp(key, OPTION_OUTPUT_PATH) == 0)
        return fake_take_text(message, fake->path, sizeof(fake->path));
    if (strcmp(key, OPTION_OUTPUT) == 0)
        return fake_take_file(message, &fake->fd);
    if (strcmp(key, OPTION_SIDECAR) == 0)
        return fake_take_file(message, &fake->sidecar_fd);
    return sd_bus_message_skip(message, "v");
}

static int read_start(struct fake *fake, sd_bus_message *message)
{
    const char *name;
    int r;

    r = sd_bus_message_read(message, "s", &name);
    if (r < 0)
        return r;
    (void)snprintf(fake->name, sizeof(fake->name), "%s", *name ? name : "capture-1");
    return fake_read_options(message, take_option, fake);
}

static int handle_start_recorder(struct fake *fake, sd_bus_message *message)
{
    struct json_object *session = fake_recorder(realtime_ns(), false), *started;

    if (fake->recorder_ended && json_object_object_get_ex(session, "started", &started))
        json_object_object_add(started, "realtime_ns", number(realtime_ns()));
    fake->recorder_ended = false;
    return answer_document(fake, message, session);
}

static bool starts_recorder(const struct fake *fake, sd_bus_message *message)
{
    const char *name = "";
    bool is_meant = is_mode(fake, "recorder") && sd_bus_message_read(message, "s", &name) >= 0 &&
                    strcmp(name, PROTOCOL_RECORDER) == 0;

    (void)sd_bus_message_rewind(message, true);
    return is_meant;
}

static int handle_start(struct fake *fake, sd_bus_message *message)
{
    int r;

    if (starts_recorder(fake, message))
        return handle_start_recorder(fake, message);

    if (is_mode(fake, "die-start"))
        return quit(fake);
    if (is_mode(fake, "mute"))
        return 1;
    if (is_mode(fake, "stuck-start"))
        return sd_bus_reply_method_errorf(message, ERROR_WAITING,
                                          "The disk of /srv did not answer within 2 s.");
    if (is_mode(fake, "refuse") || (fake->has_session && !fake->has_ended))
        return sd_bus_reply_method_errorf(message, ERROR_BUSY,
                                          "The capture \"first\" is running; stop it first.");
    fake->has_session = true;
    fake->has_ended = false;
    fake->fd = fake->sidecar_fd = -1;
    fake->rounds = fake->tsc = fake->time_usec = 0;
    fake->path[0] = 0;
    fake->storage = (struct fake_storage){};
    fake->attached = NULL;
    fake->started_ns = realtime_ns();
    r = read_start(fake, message);
    if (r < 0)
        return sd_bus_reply_method_errno(message, r, NULL);
    if (fake->fd < 0)
        (void)snprintf(fake->path, sizeof(fake->path), "/fake/%s.xentrace", fake->name);
    write_round(fake);
    return answer(fake, message, session_text(fake));
}

static int handle_stop(struct fake *fake, sd_bus_message *message)
{
    const char *name;

    if (is_mode(fake, "slow-stop"))
        return 1;
    if (sd_bus_message_read(message, "s", &name) < 0)
        return -EINVAL;
    if (is_mode(fake, "recorder") && strcmp(name, PROTOCOL_RECORDER) == 0)
        return sd_bus_reply_method_errorf(message, ERROR_RECORDER,
                                          "Stopping it discards its history of 12min 3s.");
    if (is_mode(fake, "several") && !*name)
        return sd_bus_reply_method_errorf(message, ERROR_BUSY,
                                          "Several captures run: a, b. Name one of them.");
    if (!fake->has_session || fake->has_ended || (*name && strcmp(name, fake->name) != 0))
        return sd_bus_reply_method_errorf(message, ERROR_NO_SESSION, "No such capture runs.");
    if (is_mode(fake, "stuck")) {
        fake->stop = sd_bus_message_ref(message);
        return 1; /* answered by handle_abort() */
    }
    end_session(fake, "stop");
    return answer(fake, message, session_text(fake));
}

static int handle_stop_recorder(struct fake *fake, sd_bus_message *message)
{
    fake->recorder_ended = true;
    return answer_document(fake, message, fake_recorder_object(realtime_ns(), true));
}

static int handle_abort(struct fake *fake, sd_bus_message *message)
{
    const char *name;

    if (sd_bus_message_read(message, "s", &name) < 0)
        return -EINVAL;
    if (!fake->has_session || fake->has_ended || strcmp(name, fake->name) != 0)
        return sd_bus_reply_method_errorf(message, ERROR_NO_SESSION, "No such capture runs.");
    end_session(fake, is_mode(fake, "early") ? "reserve" : "abort");
    if (fake->stop)
        (void)answer(fake, fake->stop, session_text(fake));
    fake->stop = sd_bus_message_unref(fake->stop);
    return answer(fake, message, session_text(fake));
}

static int handle_status(struct fake *fake, sd_bus_message *message)
{
    const char *name = "";

    (void)sd_bus_message_read(message, "s", &name);
    pass_time(fake);
    if (!*name || strncmp(fake->mode, "file:", 5) == 0)
        return answer(fake, message, status_text(fake));
    if (is_mode(fake, "restart"))
        end_session(fake, "daemon-exit");
    if (is_mode(fake, "die") || is_mode(fake, "restart"))
        return quit(fake);
    if (!fake->has_session)
        return sd_bus_reply_method_errorf(message, ERROR_NO_SESSION, "There is no capture \"%s\".",
                                          name);
    return answer(fake, message, session_text(fake));
}

struct snapshot_call {
    struct fake_snapshot asked;
    int fd, sidecar_fd;
};

static int take_snapshot_option(void *context, sd_bus_message *message, const char *key)
{
    struct snapshot_call *call = context;
    struct fake_snapshot *asked = &call->asked;

    if (strcmp(key, OPTION_SESSION) == 0)
        return fake_take_text(message, asked->session, sizeof(asked->session));
    if (strcmp(key, OPTION_LABEL) == 0)
        return fake_take_text(message, asked->label, sizeof(asked->label));
    if (strcmp(key, OPTION_OUTPUT_PATH) == 0)
        return fake_take_text(message, asked->path, sizeof(asked->path));
    if (strcmp(key, OPTION_LAST) == 0)
        return sd_bus_message_read(message, "v", "t", &asked->last_usec);
    if (strcmp(key, OPTION_SINCE) == 0)
        return sd_bus_message_read(message, "v", "t", &asked->since_ns);
    if (strcmp(key, OPTION_UNTIL) == 0)
        return sd_bus_message_read(message, "v", "t", &asked->until_ns);
    if (strcmp(key, OPTION_UNTIL_AGO) == 0)
        return sd_bus_message_read(message, "v", "t", &asked->until_ago_usec);
    if (strcmp(key, OPTION_MAX_SIZE) == 0)
        return sd_bus_message_read(message, "v", "t", &asked->max_size_bytes);
    if (strcmp(key, OPTION_OUTPUT) == 0)
        return fake_take_file(message, &call->fd);
    if (strcmp(key, OPTION_SIDECAR) == 0)
        return fake_take_file(message, &call->sidecar_fd);
    return -EINVAL;
}

/* The bytes of the file at PATH, as the newest second; as many as the client wants to have. */
static void write_trace(const char *path, int fd)
{
    char buffer[65536];
    FILE *in = fopen(path, "re");
    size_t bytes;

    while (in && (bytes = fread(buffer, 1, sizeof(buffer), in)) > 0)
        if (write(fd, buffer, bytes) < 0)
            break;
    if (in)
        (void)fclose(in);
}

static int write_second(struct fake *fake, sd_bus_message *message, struct snapshot_call *call)
{
    const char *domains = "[{\"domid\":0,\"name\":\"Domain-0\",\"last_seen_ns\":1,"
                          "\"uuid\":\"00000000-0000-0000-0000-000000000000\"},"
                          "{\"domid\":1,\"name\":\"old\",\"last_seen_ns\":1},"
                          "{\"domid\":1,\"name\":\"web\\u001b\",\"last_seen_ns\":2}]";
    struct json_object *doc;

    call->asked.held_usec = call->asked.last_usec;
    doc = fake_snapshot(&call->asked, realtime_ns());
    write_trace(fake->mode + strlen("second:"), call->fd);
    json_object_object_add(doc, "domains", json_tokener_parse(domains));
    return answer_document(fake, message, doc);
}

static int write_snapshot(struct fake *fake, sd_bus_message *message, struct snapshot_call *call)
{
    struct json_object *doc;
    const char *text;

    write_windows(call->fd, &fake->tsc);
    call->asked.bytes = NR_CPUS * (WINDOW_HEADER_BYTES + 2 * RECORD_SIZE);
    call->asked.records = NR_CPUS * 2;
    call->asked.lost = is_mode(fake, "lossy") ? 10 : 0;
    call->asked.ok = !is_mode(fake, "early");
    call->asked.held_usec =
        is_mode(fake, "lossy") ? call->asked.last_usec / 10 * 9 : call->asked.last_usec;
    if (call->fd < 0)
        (void)strcpy(call->asked.path, "/fake/snapshot.xentrace");
    if (!*call->asked.path)
        (void)strcpy(call->asked.path, "-");
    if (is_mode(fake, "escape"))
        (void)strcpy(call->asked.path, "/fake/\\u001b[31m"); /* JSON's */
    doc = is_mode(fake, "bare")
              ? json_tokener_parse("{\"format\":\"xentraced-snapshot\",\"version\":1}")
              : fake_snapshot(&call->asked, realtime_ns());
    text = json_object_to_json_string(doc);
    if (call->sidecar_fd >= 0)
        (void)!write(call->sidecar_fd, text, strlen(text));
    return answer_document(fake, message, doc);
}

static int handle_snapshot(struct fake *fake, sd_bus_message *message)
{
    struct snapshot_call call = {.asked.session = "flight-recorder", .fd = -1, .sidecar_fd = -1};
    const char *name;
    int r;

    r = sd_bus_message_read(message, "s", &name);
    if (r >= 0) {
        (void)snprintf(call.asked.name, sizeof(call.asked.name), "%s", *name ? name : "snapshot-1");
        r = fake_read_options(message, take_snapshot_option, &call);
    }
    if (r < 0)
        r = sd_bus_reply_method_errno(message, r, NULL);
    else if (is_mode(fake, "die"))
        r = quit(fake);
    else if (is_mode(fake, "mute"))
        r = 1;
    else if (is_mode(fake, "ok") || is_mode(fake, "refuse"))
        r = sd_bus_reply_method_errorf(message, ERROR_NO_RING,
                                       "Nothing records into memory; xentracectl start -M does.");
    else if (strncmp(fake->mode, "second:", strlen("second:")) == 0)
        r = write_second(fake, message, &call);
    else
        r = write_snapshot(fake, message, &call);
    fd_close(&call.fd);
    fd_close(&call.sidecar_fd);
    return r;
}

static int handle_rotate(struct fake *fake, sd_bus_message *message)
{
    if (!fake->storage.segment_size_bytes || fake->has_ended)
        return sd_bus_reply_method_errorf(message, ERROR_NOT_SEGMENTED,
                                          "No capture has segments; see --segment-size.");
    return answer_document(fake, message, fake_segment(fake->rounds, "rotate", realtime_ns()));
}

static int handle_trigger(struct fake *fake, sd_bus_message *message)
{
    const char *name;
    struct json_object *doc;

    if (sd_bus_message_read(message, "s", &name) < 0)
        return -EINVAL;
    doc = fake_fired(name, realtime_ns());
    if (!doc)
        return sd_bus_reply_method_errorf(
            message, ERROR_NO_TRIGGER, "There is no trigger \"%s\" with condition=manual.", name);
    return answer_document(fake, message, doc);
}

static int handle_files(struct fake *fake, sd_bus_message *message)
{
    (void)fake;
    return fake_files_handle(message);
}

static int handle_reload(struct fake *fake, sd_bus_message *message)
{
    if (is_mode(fake, "refuse"))
        return sd_bus_reply_method_errorf(
            message, ERROR_CONFIG,
            "The configuration was not reloaded, the running one stays in force. "
            "/etc/xentraced/xentraced.conf, line 3: there is no key 'pol' in [daemon]; did you "
            "mean 'pool'? See xentraced.conf(5).");
    return answer_document(fake, message, fake_reload());
}

/* Methods that an older daemon does not have. 0: another method. */
static int handle_new(struct fake *fake, sd_bus_message *message)
{
    int (*handler)(struct fake * fake, sd_bus_message * message) = NULL;

    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_SNAPSHOT))
        handler = handle_snapshot;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_ROTATE))
        handler = handle_rotate;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_TRIGGER))
        handler = handle_trigger;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_STOP_RECORDER))
        handler = handle_stop_recorder;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_ABORT))
        handler = handle_abort;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_RELOAD))
        handler = handle_reload;
    else if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, NULL))
        handler = handle_files;
    if (!handler)
        return 0;
    if (is_mode(fake, "old")) /* as sd-bus says it */
        return sd_bus_reply_method_errorf(message, SD_BUS_ERROR_UNKNOWN_METHOD,
                                          "Unknown method or interface.");
    if (is_mode(fake, "no-right"))
        return sd_bus_reply_method_errorf(message, ERROR_NOT_PERMITTED,
                                          "Only root and the control group may do this.");
    return handler(fake, message);
}

static int handle(sd_bus_message *message, void *context, sd_bus_error *error)
{
    struct fake *fake = context;

    (void)error;
    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_START))
        return handle_start(fake, message);
    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_STOP))
        return handle_stop(fake, message);
    if (sd_bus_message_is_method_call(message, PROTOCOL_INTERFACE, PROTOCOL_STATUS))
        return handle_status(fake, message);
    if (sd_bus_message_is_method_call(message, "org.freedesktop.DBus.Properties", "Get"))
        return is_mode(fake, "number") ? sd_bus_reply_method_return(message, "u", 42)
                                       : sd_bus_reply_method_return(message, "v", "s", "9.9");
    return handle_new(fake, message);
}

static int handle_gone(sd_bus_message *message, void *context, sd_bus_error *error)
{
    struct fake *fake = context;

    (void)error;
    if (fake->has_session && fake->attached == sd_bus_message_get_bus(message))
        end_session(fake, "client-gone");
    return 0;
}

static int accept_client(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct fake *fake = context;
    int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    sd_bus *bus = NULL;
    sd_id128_t id;

    (void)source, (void)events;
    if (client < 0 || is_mode(fake, "silent"))
        return 0;
    if (is_mode(fake, "close") || fake->nr_buses == BUSES_MAX)
        return close(client);
    if (sd_id128_randomize(&id) < 0 || sd_bus_new(&bus) < 0 ||
        sd_bus_set_fd(bus, client, client) < 0 || sd_bus_set_server(bus, 1, id) < 0 ||
        sd_bus_negotiate_fds(bus, !is_mode(fake, "no-files")) < 0 ||
        sd_bus_negotiate_creds(bus, 0, 0) < 0 || sd_bus_start(bus) < 0 ||
        sd_bus_attach_event(bus, fake->event, 0) < 0 ||
        sd_bus_add_object(bus, NULL, PROTOCOL_PATH, handle, fake) < 0 ||
        sd_bus_match_signal(bus, NULL, NULL, "/org/freedesktop/DBus/Local",
                            "org.freedesktop.DBus.Local", "Disconnected", handle_gone, fake) < 0)
        return -EIO;
    fake->buses[fake->nr_buses++] = bus;
    return 0;
}

int main(int argc, char **argv)
{
    static struct fake fake;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path))
        return 2;
    (void)signal(SIGPIPE, SIG_IGN); /* a client may stop reading */
    fake.mode = argv[2];
    fake.fd = fake.sidecar_fd = -1;
    /* Under its name only when it can be connected to: that is what tests wait for. */
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", argv[1]);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        listen(fd, 16) < 0 || rename(address.sun_path, argv[1]) < 0) {
        perror("fake-daemon");
        return 1;
    }
    if (sd_event_new(&fake.event) < 0 ||
        sd_event_add_io(fake.event, NULL, fd, EPOLLIN, accept_client, &fake) < 0)
        return 1;
    r = sd_event_loop(fake.event);
    (void)unlink(argv[1]);
    for (int i = 0; i < fake.nr_buses; i++) {
        (void)sd_bus_detach_event(fake.buses[i]);
        sd_bus_close_unref(fake.buses[i]);
    }
    sd_event_unref(fake.event);
    fd_close(&fake.fd);
    fd_close(&fake.sidecar_fd);
    return r < 0 ? 1 : 0;
}
