// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every call is answered: if the answer itself cannot be made, with an error. Two ends of a socket
 * pair in one thread, each processed in turn.
 */

#include "daemon/control/calls.h"

#include <errno.h>
#include <sys/socket.h>

#include <json-c/json.h>
#include <systemd/sd-bus.h>

#include "common/protocol.h"
#include "daemon/control/reload.h"
#include "tests/unit/test.h"

#define TURNS_MAX 1000

struct bench {
    sd_bus *server;
    sd_bus *client;
    struct calls calls;
    struct session session; /* for which kept calls wait */
};

/* What the server does with the next call. */
static int (*answer)(struct bench *bench, sd_bus_message *call);

/* What the client received. */
static bool is_answered;
static char error_name[128];
static char text[256];

static int serve(sd_bus_message *call, void *userdata, sd_bus_error *error)
{
    (void)error;
    return sd_bus_message_is_method_call(call, PROTOCOL_INTERFACE, NULL) ? answer(userdata, call)
                                                                         : 0;
}

static int note_answer(sd_bus_message *reply, void *userdata, sd_bus_error *error)
{
    const sd_bus_error *received = sd_bus_message_get_error(reply);
    const char *string = "";

    (void)userdata, (void)error;
    is_answered = true;
    if (!received)
        CHECK(sd_bus_message_read(reply, "s", &string) > 0);
    (void)snprintf(error_name, sizeof(error_name), "%s", received ? received->name : "");
    (void)snprintf(text, sizeof(text), "%s", received ? received->message : string);
    return 0;
}

static sd_bus *open_end(int fd, bool is_server)
{
    sd_bus *bus = NULL;
    sd_id128_t id;

    if (sd_bus_new(&bus) < 0 || sd_bus_set_fd(bus, fd, fd) < 0 || sd_id128_randomize(&id) < 0 ||
        (is_server && sd_bus_set_server(bus, 1, id) < 0) || sd_bus_start(bus) < 0)
        exit(EXIT_FAILURE);
    return bus;
}

static void bench_start(struct bench *bench)
{
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    bench->server = open_end(fds[0], true);
    bench->client = open_end(fds[1], false);
    CHECK(sd_bus_add_filter(bench->server, NULL, serve, bench) >= 0);
}

static void bench_done(struct bench *bench)
{
    calls_forget_bus(&bench->calls, bench->server);
    CHECK_UINT(bench->calls.count, 0);
    sd_bus_close_unref(bench->client);
    sd_bus_close_unref(bench->server);
}

/* Until the client has its answer, or nothing happens any more. */
static void process(struct bench *bench)
{
    for (int i = 0; i < TURNS_MAX && !is_answered; i++) {
        CHECK(sd_bus_process(bench->client, NULL) >= 0);
        CHECK(sd_bus_process(bench->server, NULL) >= 0);
    }
}

static void call(struct bench *bench, int (*with)(struct bench *, sd_bus_message *))
{
    answer = with;
    is_answered = false;
    error_name[0] = text[0] = '\0';
    CHECK(sd_bus_call_method_async(bench->client, NULL, NULL, PROTOCOL_PATH, PROTOCOL_INTERFACE,
                                   PROTOCOL_STATUS, note_answer, NULL, "s", "") >= 0);
    process(bench);
}

static int answer_document(sd_bus_message *message, const char *name)
{
    struct json_object *document = json_object_new_object();

    json_object_object_add(document, "name", json_object_new_string(name));
    return call_answer_document(message, document);
}

static int answer_good_document(struct bench *bench, sd_bus_message *message)
{
    (void)bench;
    return answer_document(message, "web");
}

static int answer_bad_document(struct bench *bench, sd_bus_message *message)
{
    int r;

    (void)bench;
    r = answer_document(message, "web\xff");
    CHECK(r >= 0); /* else sd-bus answers, which it does only from here */
    return r;
}

static int answer_bad_failure(struct bench *bench, sd_bus_message *message)
{
    const struct failure failure = {.name = ERROR_XEN, .text = "Domain \xff has it."};

    (void)bench;
    return call_answer_failure(message, &failure);
}

static int keep(struct bench *bench, sd_bus_message *message)
{
    const struct call kept = {
        .message = message, .session = &bench->session, .until = SESSION_RUNNING};

    return calls_keep(&bench->calls, &kept);
}

static void test_answers(struct bench *bench)
{
    test_case("a document");
    call(bench, answer_good_document);
    CHECK_STR(text, "{\"name\":\"web\"}");

    test_case("a document that is not UTF-8");
    call(bench, answer_bad_document);
    CHECK(is_answered);
    CHECK_STR(error_name, SD_BUS_ERROR_FAILED);

    test_case("a failure that is not UTF-8");
    call(bench, answer_bad_failure);
    CHECK(is_answered);
    CHECK_STR(error_name, SD_BUS_ERROR_FAILED);
}

static void test_kept(struct bench *bench)
{
    test_case("a kept call whose answer is not UTF-8");
    call(bench, keep);
    CHECK(!is_answered);
    CHECK_UINT(bench->calls.count, 1);
    bench->session.state = SESSION_ENDED;
    (void)failure_set(&bench->session.start_failure, -EINVAL, ERROR_XEN, "Domain \xff has it.");
    calls_handle_session(&bench->calls, &bench->session);
    process(bench);
    CHECK(is_answered);
    CHECK_STR(error_name, SD_BUS_ERROR_FAILED);
    CHECK_UINT(bench->calls.count, 0);
}

static void fill(struct calls *calls, uid_t first_uid, size_t count)
{
    calls->count = 0;
    for (size_t i = 0; i < count; i++)
        calls->kept[calls->count++].audit.who.person = first_uid + (uid_t)(i / CALLS_OF_USER_MAX);
}

static void test_places(struct bench *bench)
{
    struct calls *calls = &bench->calls;
    struct failure failure = {0};

    test_case("one user may have so many calls that wait, and not one more");
    fill(calls, 1000, CALLS_OF_USER_MAX - 1);
    CHECK_INT(calls_check(calls, 1000, &failure), 0);
    fill(calls, 1000, CALLS_OF_USER_MAX);
    CHECK_INT(calls_check(calls, 1000, &failure), -EBUSY);
    CHECK_STR(failure.name, ERROR_BUSY);
    test_case("others, and root, have places of their own");
    CHECK_INT(calls_check(calls, 1001, &failure), 0);
    CHECK_INT(calls_check(calls, 0, &failure), 0);
    fill(calls, 1000, CALLS_OF_USERS_MAX);
    CHECK_INT(calls_check(calls, 2000, &failure), -EBUSY);
    CHECK_INT(calls_check(calls, 0, &failure), 0);
    test_case("root may have all of them");
    memset(calls->kept, 0, sizeof(calls->kept));
    calls->count = CALLS_MAX - 1;
    CHECK_INT(calls_check(calls, 0, &failure), 0);
    calls->count = CALLS_MAX;
    CHECK_INT(calls_check(calls, 0, &failure), -EBUSY);
    memset(calls->kept, 0, sizeof(calls->kept));
    calls->count = 0;
}

static int keep_reload(struct bench *bench, sd_bus_message *message)
{
    const struct call kept = {.message = message, .reload = 7};

    return calls_keep(&bench->calls, &kept);
}

static void test_reload(struct bench *bench)
{
    const struct failure failure = {.name = ERROR_CONFIG, .text = "Line 3 is wrong."};
    struct reload_result result = {.number = 6};

    test_case("a reload is answered by a reading that began after it");
    call(bench, keep_reload);
    result.document = json_object_new_object();
    calls_handle_reload(&bench->calls, &result);
    process(bench);
    CHECK(!is_answered);
    result.number = 7;
    calls_handle_reload(&bench->calls, &result);
    process(bench);
    CHECK_STR(text, "{}");
    CHECK_UINT(bench->calls.count, 0);
    json_object_put(result.document);

    test_case("a reload that is refused");
    call(bench, keep_reload);
    result = (struct reload_result){.number = 7, .failure = &failure};
    calls_handle_reload(&bench->calls, &result);
    process(bench);
    CHECK_STR(error_name, ERROR_CONFIG);
}

/* A call without a message: nothing is sent, whatever becomes of it. */
static void test_signal(struct bench *bench)
{
    const struct call of_signal = {.reload = 7};
    const struct failure failure = {.name = ERROR_CONFIG, .text = "Line 3 is wrong."};
    struct json_object *document = json_object_new_object();

    test_case("a signal's call is not that of a client who leaves");
    CHECK_INT(calls_keep(&bench->calls, &of_signal), 1);
    calls_forget_bus(&bench->calls, bench->server);
    CHECK_UINT(bench->calls.count, 1);
    test_case("it is carried out");
    calls_handle_reload(&bench->calls, &(struct reload_result){.number = 7, .document = document});
    CHECK_UINT(bench->calls.count, 0);
    test_case("it is refused");
    CHECK_INT(calls_keep(&bench->calls, &of_signal), 1);
    calls_handle_reload(&bench->calls, &(struct reload_result){.number = 7, .failure = &failure});
    CHECK_UINT(bench->calls.count, 0);
    json_object_put(document);
}

int main(void)
{
    static struct bench bench;

    bench_start(&bench);
    test_answers(&bench);
    test_kept(&bench);
    test_places(&bench);
    test_reload(&bench);
    test_signal(&bench);
    bench_done(&bench);
    return test_end();
}
