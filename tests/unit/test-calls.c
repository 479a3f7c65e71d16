// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Every call is answered: if the reply itself cannot be made, with an error. A stream is answered
 * again and again, as its client reads. Replaces the connection.
 */

#include "daemon/control/calls.h"

#include <errno.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/protocol.h"
#include "common/units.h"
#include "common/varlink.h"
#include "daemon/control/connection.h"
#include "daemon/control/reload.h"
#include "daemon/manager.h"
#include "daemon/session/snapshot.h"
#include "tests/unit/test.h"

/* What the client received last. */
static unsigned int nr_replies;
static bool continues;
static char error_name[128];
static char text[256];
static size_t unsent_bytes; /* it has not read */

static char client; /* only its address is used */
#define CLIENT ((struct connection *)(void *)&client)

void connection_reply(struct connection *connection, struct json_object *message, bool is_one_of)
{
    struct varlink_reply reply;
    size_t bytes;

    CHECK(connection == CLIENT);
    CHECK(varlink_text(message, &bytes));
    CHECK_INT(varlink_read_reply(message, &reply), 0);
    CHECK_INT(reply.continues, is_one_of);
    nr_replies++;
    continues = is_one_of;
    (void)snprintf(error_name, sizeof(error_name), "%s", reply.error ? reply.error : "");
    (void)snprintf(text, sizeof(text), "%s",
                   json_object_to_json_string_ext(reply.parameters, JSON_C_TO_STRING_PLAIN));
    json_object_put(message);
}

size_t connection_unsent_bytes(const struct connection *connection)
{
    CHECK(connection == CLIENT);
    return unsent_bytes;
}

struct bench {
    struct manager manager;
    struct calls calls;
    struct session session; /* for which kept calls wait */
};

static const struct call plain = {.connection = CLIENT, .reply = REPLY_SESSION};

static struct json_object *make_document(const char *name)
{
    struct json_object *document = json_object_new_object();

    json_object_object_add(document, "name", json_object_new_string(name));
    return document;
}

static void test_answers(void)
{
    const struct failure bad = {.name = ERROR_XEN, .text = "Domain \xff has it."};
    const struct failure parameter = {
        .name = SERVICE_ERROR_PARAMETER, .text = "It is unknown.", .parameter = "nam"};

    test_case("a document");
    call_answer_document(&plain, make_document("web"));
    CHECK_STR(text, "{\"session\":{\"name\":\"web\"}}");
    CHECK_STR(error_name, "");
    CHECK(!continues);

    test_case("a document that is not UTF-8");
    call_answer_document(&plain, make_document("web\xff"));
    CHECK_STR(error_name, ERROR_NO_MEMORY);

    test_case("a failure");
    call_answer_failure(&plain, &(struct failure){.name = ERROR_XEN, .text = "No."});
    CHECK_STR(error_name, ERROR_XEN);
    CHECK_STR(text, "{\"sentence\":\"No.\"}");

    test_case("a failure that is not UTF-8");
    call_answer_failure(&plain, &bad);
    CHECK_STR(error_name, ERROR_NO_MEMORY);

    test_case("a parameter that is wrong");
    call_answer_failure(&plain, &parameter);
    CHECK_STR(error_name, SERVICE_ERROR_PARAMETER);
    CHECK_STR(text, "{\"parameter\":\"nam\"}");
}

static void test_kept(struct bench *bench)
{
    struct call kept = plain;

    test_case("a kept call");
    kept.session = &bench->session;
    kept.until = SESSION_RUNNING;
    nr_replies = 0;
    (void)calls_keep(&bench->calls, &kept);
    CHECK_UINT(nr_replies, 0);
    CHECK_UINT(bench->calls.count, 1);
    bench->session.state = SESSION_ENDED;
    (void)failure_set(&bench->session.start_failure, -EINVAL, ERROR_XEN, "No.");
    calls_handle_session(&bench->calls, &bench->session);
    CHECK_UINT(nr_replies, 1);
    CHECK_STR(error_name, ERROR_XEN);
    CHECK_UINT(bench->calls.count, 0);
}

/* Until the next reply, or for so long. */
static void run(struct bench *bench, uint64_t usec)
{
    unsigned int before = nr_replies;
    uint64_t now, end;

    (void)sd_event_now(bench->manager.event, CLOCK_MONOTONIC, &now);
    for (end = now + usec; now < end && nr_replies == before;) {
        CHECK(sd_event_run(bench->manager.event, end - now) >= 0);
        (void)sd_event_now(bench->manager.event, CLOCK_MONOTONIC, &now);
    }
}

static int no_part(void *userdata, struct call *call, struct failure *failure)
{
    (void)userdata, (void)call;
    return failure_set(failure, -EDQUOT, ERROR_LIMIT, "Enough.");
}

static void test_streams(struct bench *bench)
{
    static struct snapshot snapshot;
    struct call stream = {.connection = CLIENT,
                          .reply = REPLY_SNAPSHOT,
                          .snapshot = &snapshot,
                          .stream = STREAM_PROGRESS,
                          .interval_usec = 20 * USEC_PER_MSEC};

    test_case("the progress of a snapshot, twice");
    snapshot.write.progress_bytes = 4096;
    snapshot.write.total_bytes = 8192;
    (void)calls_keep(&bench->calls, &stream);
    nr_replies = 0;
    run(bench, 10 * USEC_PER_SEC);
    run(bench, 10 * USEC_PER_SEC);
    CHECK_UINT(nr_replies, 2);
    CHECK(continues);
    CHECK_STR(text, "{\"progress\":{\"bytes\":4096,\"total_bytes\":8192}}");

    test_case("a client that does not read has no more replies");
    unsent_bytes = 1;
    run(bench, 200 * USEC_PER_MSEC);
    CHECK_UINT(nr_replies, 2);
    unsent_bytes = 0;
    run(bench, 10 * USEC_PER_SEC);
    CHECK_UINT(nr_replies, 3);

    test_case("a stream ends with its client");
    calls_forget_connection(&bench->calls, CLIENT);
    CHECK_UINT(bench->calls.count, 0);
    run(bench, 100 * USEC_PER_MSEC);
    CHECK_UINT(nr_replies, 3);

    test_case("a live view that may have no more parts");
    stream.stream = STREAM_LIVE;
    stream.snapshot = NULL;
    (void)calls_keep(&bench->calls, &stream);
    run(bench, 10 * USEC_PER_SEC);
    CHECK_STR(error_name, ERROR_LIMIT);
    CHECK(!continues);
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

static void test_reload(struct bench *bench)
{
    const struct failure failure = {.name = ERROR_CONFIG, .text = "Line 3 is wrong."};
    const struct call kept = {.connection = CLIENT, .reply = REPLY_CHANGES, .reload = 7};
    struct reload_result result = {.number = 6};

    test_case("a reload is answered by a reading that began after it");
    nr_replies = 0;
    (void)calls_keep(&bench->calls, &kept);
    result.document = json_object_new_object();
    calls_handle_reload(&bench->calls, &result);
    CHECK_UINT(nr_replies, 0);
    result.number = 7;
    calls_handle_reload(&bench->calls, &result);
    CHECK_STR(text, "{\"changes\":{}}");
    CHECK_UINT(bench->calls.count, 0);
    json_object_put(result.document);

    test_case("a reload that is refused");
    (void)calls_keep(&bench->calls, &kept);
    result = (struct reload_result){.number = 7, .failure = &failure};
    calls_handle_reload(&bench->calls, &result);
    CHECK_STR(error_name, ERROR_CONFIG);
}

/* A call without a connection: nothing is sent, whatever becomes of it. */
static void test_signal(struct bench *bench)
{
    const struct call of_signal = {.reload = 7};
    const struct failure failure = {.name = ERROR_CONFIG, .text = "Line 3 is wrong."};
    struct json_object *document = json_object_new_object();

    test_case("a signal's call is not that of a client who leaves");
    nr_replies = 0;
    (void)calls_keep(&bench->calls, &of_signal);
    calls_forget_connection(&bench->calls, CLIENT);
    CHECK_UINT(bench->calls.count, 1);
    test_case("it is carried out");
    calls_handle_reload(&bench->calls, &(struct reload_result){.number = 7, .document = document});
    CHECK_UINT(bench->calls.count, 0);
    test_case("it is refused");
    (void)calls_keep(&bench->calls, &of_signal);
    calls_handle_reload(&bench->calls, &(struct reload_result){.number = 7, .failure = &failure});
    CHECK_UINT(bench->calls.count, 0);
    CHECK_UINT(nr_replies, 0);
    json_object_put(document);
}

int main(void)
{
    static struct bench bench;

    if (sd_event_new(&bench.manager.event) < 0 ||
        calls_init(&bench.calls, &bench.manager, no_part, NULL) < 0)
        return EXIT_FAILURE;
    test_answers();
    test_kept(&bench);
    test_streams(&bench);
    test_places(&bench);
    test_reload(&bench);
    test_signal(&bench);
    calls_done(&bench.calls);
    sd_event_unref(bench.manager.event);
    return test_end();
}
