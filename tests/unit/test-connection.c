// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * daemon/control/connection.c with a real socket and a real thread that closes: calls that come in
 * pieces, several at once or never whole; descriptors; a client that does not read. The main thread
 * closes nothing that the client made.
 */

#include "daemon/control/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <json-c/json.h>
#include <systemd/sd-event.h>

#include "common/util.h"
#include "common/varlink.h"
#include "daemon/base/vacate.h"
#include "daemon/base/worker.h"
#include "tests/unit/test.h"

#define STATUS "{\"method\":\"a.Status\"}"

static sd_event *event;
static struct workers *workers;
static struct vacate *vacate;
static struct vacate_person *person;
static struct connection *connection;
static int fd; /* the client's end */
static pthread_t main_thread;
static atomic_uint nr_here; /* closed on the main thread */

/* What the server has seen. */
static unsigned int nr_calls;
static char method[64];
static struct passed passed;
static bool has_ended;
static char reason[128];
static bool may_read;
static unsigned int nr_drained;

int close_range(unsigned int first, unsigned int last, int flags)
{
    if (pthread_equal(pthread_self(), main_thread))
        atomic_fetch_add(&nr_here, 1);
    return (int)syscall(SYS_close_range, first, last, flags);
}

static bool server_may_read(void *userdata)
{
    (void)userdata;
    return may_read;
}

static int server_call(void *userdata, struct json_object *message, const struct varlink_call *call,
                       const struct passed *with)
{
    (void)userdata, (void)message;
    nr_calls++;
    passed = *with;
    (void)snprintf(method, sizeof(method), "%s", call->method);
    return 0;
}

static void server_drained(void *userdata)
{
    (void)userdata;
    nr_drained++;
}

static void server_closed(void *userdata, const char *why)
{
    (void)userdata;
    has_ended = true;
    (void)snprintf(reason, sizeof(reason), "%s", why);
    connection = connection_free(connection);
}

static const struct connection_server server = {
    .may_read = server_may_read,
    .call = server_call,
    .drained = server_drained,
    .closed = server_closed,
};

static void begin(const char *name)
{
    struct connection_options options = {.event = event, .server = &server};
    struct vacate_batch *socket = vacate_prepare(vacate);
    int fds[2];

    test_case(name);
    nr_calls = 0;
    has_ended = false;
    may_read = true;
    reason[0] = '\0';
    if (!socket || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    fd = fds[0];
    options.person = person = vacate_join(vacate, 1000, socket, fds[1]);
    CHECK_INT(connection_new(&options, socket, &connection), 0);
}

static void end(void)
{
    (void)close(fd);
    connection = connection_free(connection);
    vacate_leave(person);
    workers_run_all(workers);
}

/* Until nothing happens any more. */
static void run(void)
{
    while (sd_event_run(event, 0) > 0)
        continue;
}

/* Until the connection has ended. */
static void run_to_end(void)
{
    while (!has_ended && sd_event_run(event, 30 * USEC_PER_SEC) > 0)
        continue;
}

static void send_with(const void *data, size_t bytes, int passed_fd, unsigned int count)
{
    struct iovec iov = {(void *)data, bytes};
    union {
        char buffer[CMSG_SPACE(VACATE_RECEIVE_MAX * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (count > 0) {
        struct cmsghdr *cmsg;

        message.msg_control = control.buffer;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        cmsg = CMSG_FIRSTHDR(&message);
        *cmsg = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS,
                                 .cmsg_len = CMSG_LEN(count * sizeof(int))};
        for (unsigned int i = 0; i < count; i++)
            memcpy(CMSG_DATA(cmsg) + i * sizeof(int), &passed_fd, sizeof(int));
    }
    CHECK_INT(sendmsg(fd, &message, MSG_NOSIGNAL), (ssize_t)bytes);
}

static void send_text(const char *text, size_t bytes)
{
    send_with(text, bytes, -1, 0);
}

static void reply(const char *error)
{
    connection_reply(connection, varlink_make_error(error, NULL), false);
}

static void test_calls(void)
{
    char text[256];

    begin("a call");
    send_text(STATUS, sizeof(STATUS));
    run();
    CHECK_UINT(nr_calls, 1);
    CHECK_STR(method, "a.Status");
    reply("a.E");
    run();
    CHECK(recv(fd, text, sizeof(text), 0) > 0);
    CHECK_STR(text, "{\"error\":\"a.E\",\"parameters\":{}}");

    test_case("byte by byte");
    for (size_t i = 0; i < sizeof(STATUS); i++) {
        CHECK_UINT(nr_calls, 1);
        send_text(&STATUS[i], 1);
        run();
    }
    CHECK_UINT(nr_calls, 2);

    test_case("the next call stays in the socket until this one is answered and read");
    send_text(STATUS "\0{\"method\":\"a.Next\"}", 2 * sizeof(STATUS) - 2);
    run();
    CHECK_UINT(nr_calls, 2);
    reply("a.E");
    run();
    CHECK_UINT(nr_calls, 3);
    reply("a.E");
    run();
    CHECK_UINT(nr_calls, 4);
    CHECK_STR(method, "a.Next");
    reply("a.E");
    run();

    test_case("a person that has not read enough waits");
    may_read = false;
    connection_resume(connection);
    send_text(STATUS, sizeof(STATUS));
    run();
    CHECK_UINT(nr_calls, 4);
    may_read = true;
    connection_resume(connection);
    run();
    CHECK_UINT(nr_calls, 5);

    test_case("a client that leaves during a call");
    (void)shutdown(fd, SHUT_RDWR);
    (void)close(fd);
    run_to_end();
    CHECK_STR(reason, "disconnected");
    end();
}

static const struct {
    const char *name, *text;
    size_t bytes;
    const char *reason;
} bad[] = {
    {"no JSON", "x", 2, "sent data that is not a Varlink call"},
    {"two objects", "{}{}", 5, "sent data that is not a Varlink call"},
    {"no method", "{}", 3, "sent data that is not a Varlink call"},
    {"a NUL in it", "{\"method\":\"a.B\0\"}", 18, "sent data that is not a Varlink call"},
    {"the end", NULL, 0, "disconnected"},
    {"half of it", "{", 1, "did not complete a message in time"},
};

static void test_bad(void)
{
    static char many[VARLINK_CALL_BYTES_MAX + 1];

    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        begin(bad[i].name);
        if (bad[i].bytes > 0)
            send_text(bad[i].text, bad[i].bytes);
        else
            (void)shutdown(fd, SHUT_WR);
        run_to_end();
        CHECK_STR(reason, bad[i].reason);
        CHECK_UINT(nr_calls, 0);
        end();
    }
    begin("more than 64 KiB");
    memset(many, ' ', sizeof(many));
    send_text(many, sizeof(many));
    run_to_end();
    CHECK_STR(reason, "sent a message of more than 64 KiB");
    end();

    begin("64 KiB of empty objects");
    for (size_t i = 0; i + 3 < VARLINK_CALL_BYTES_MAX; i += 3)
        memcpy(many + i, "{},", 3);
    memcpy(many, "[", 1);
    many[VARLINK_CALL_BYTES_MAX - 1] = '\0';
    send_text(many, VARLINK_CALL_BYTES_MAX);
    run_to_end();
    CHECK_STR(reason, "sent a call that would take too much memory");
    end();
}

static unsigned int count_open(void)
{
    unsigned int count = 0;

    for (int i = 0; i < 1024; i++)
        count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static void test_descriptors(void)
{
    unsigned int before;
    int pipe_fds[2];

    begin("two descriptors");
    before = count_open();
    send_with(STATUS, sizeof(STATUS), STDOUT_FILENO, 2);
    run();
    CHECK_UINT(nr_calls, 1);
    CHECK_UINT(passed.count, 2);
    CHECK(!passed.is_refused);
    workers_run_all(workers);
    CHECK_UINT(count_open(), before);

    test_case("the next call has none");
    reply("a.E");
    send_text(STATUS, sizeof(STATUS));
    run();
    CHECK_UINT(nr_calls, 2);
    CHECK_UINT(passed.count, 0);
    reply("a.E");
    run();

    test_case("253 descriptors, and once more with the rest of the message");
    send_with(STATUS, 3, STDOUT_FILENO, VACATE_RECEIVE_MAX);
    send_with(&STATUS[3], sizeof(STATUS) - 3, STDOUT_FILENO, 20);
    run();
    CHECK_UINT(nr_calls, 3);
    CHECK(passed.is_refused);
    CHECK_UINT(passed.count, 0);
    workers_run_all(workers);
    CHECK_UINT(count_open(), before);
    end();

    begin("descriptors with a message that is never whole");
    send_with(STATUS, 3, STDOUT_FILENO, 2);
    run();
    (void)shutdown(fd, SHUT_RDWR);
    run_to_end();
    end();

    begin("descriptors that are not read when the connection ends");
    if (pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0)
        exit(EXIT_FAILURE);
    send_text(STATUS, sizeof(STATUS));
    run();
    send_with(STATUS, sizeof(STATUS), pipe_fds[1], 1);
    (void)close(pipe_fds[1]);
    end();
    CHECK_INT(read(pipe_fds[0], &(char){0}, 1), 0); /* the end: it is closed */
    (void)close(pipe_fds[0]);
}

static void test_output(void)
{
    const size_t bytes = 4u << 20;
    char *text = malloc(bytes + 1), buffer[65536];
    size_t received = 0;
    ssize_t n;

    memset(text, 'x', bytes);
    text[bytes] = '\0';
    begin("a reply of 4 MiB");
    send_text(STATUS, sizeof(STATUS));
    run();
    nr_drained = 0;
    connection_reply(connection, varlink_make_error(text, NULL), false);
    run();
    CHECK(connection_unsent_bytes(connection) > bytes / 2);
    CHECK_UINT(nr_drained, 0);
    while (received == 0 || nr_drained == 0 || connection_unsent_bytes(connection) > 0) {
        n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        CHECK(n > 0 || errno == EAGAIN);
        received += n > 0 ? (size_t)n : 0;
        run();
    }
    while ((n = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT)) > 0)
        received += (size_t)n;
    CHECK_UINT(received, bytes + strlen("{\"error\":\"\",\"parameters\":{}}") + 1);
    CHECK_UINT(nr_drained, 1);
    end();

    begin("a client that does not read");
    send_text(STATUS, sizeof(STATUS));
    run();
    connection_reply(connection, varlink_make_error(text, NULL), false);
    run_to_end();
    CHECK_STR(reason, "does not read its replies");
    end();
    free(text);
}

static void test_old_client(void)
{
    static const char hello[] = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";
    static const char call[16] = {'l', 1, 4, 1, 0, 0, 0, 0, 3};
    char text[512] = "";

    begin("an old client");
    send_text(hello, sizeof(hello) - 1);
    run();
    CHECK(recv(fd, text, sizeof(text), 0) > 0);
    CHECK(strstr(text, "OK ") && strstr(text, "AGREE_UNIX_FD"));
    send_text(call, sizeof(call));
    run_to_end();
    CHECK(recv(fd, text, sizeof(text), 0) > 0);
    CHECK(memmem(text, sizeof(text), "older than xentraced", 20));
    CHECK_STR(reason, "is older than this xentraced");
    end();
}

int main(void)
{
    main_thread = pthread_self();
    if (sd_event_new(&event) < 0 || workers_new(event, &workers) < 0 ||
        vacate_new(workers, server_drained, NULL, &vacate) < 0)
        return EXIT_FAILURE;
    test_calls();
    test_bad();
    test_descriptors();
    test_output();
    test_old_client();
    test_case("the main thread closed nothing");
    CHECK_UINT(atomic_load(&nr_here), 0);
    vacate_free(vacate);
    workers_free(workers);
    sd_event_unref(event);
    return test_end();
}
