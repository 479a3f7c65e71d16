// SPDX-License-Identifier: GPL-2.0-or-later
/* One connection, whose other end is this program, too: messages in pieces, and what is none. */

#include "ctl/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "common/util.h"
#include "common/varlink.h"
#include "ctl/doc.h"
#include "tests/unit/test.h"

static struct connection *connection;
static int peer;

static void begin(const char *name)
{
    int fds[2];

    test_case(name);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0 ||
        connection_new(fds[0], &connection) < 0)
        abort();
    peer = fds[1];
}

static void end(void)
{
    connection = connection_free(connection);
    fd_close(&peer);
}

static void begin_call(const char *name)
{
    begin(name);
    CHECK(connection_call(connection, "a.B", NULL, NULL, 0, true) == 0);
}

/* Sends BYTES of TEXT as the service. */
static void answer(const char *text, size_t bytes)
{
    CHECK(send(peer, text, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
}

/* What connection_advance() returns; of a reply the text "x" of its parameters, in STATIC memory.
 */
static int advance(const char **ret_text)
{
    static char text[32];
    struct json_object *reply = NULL;
    int r = connection_advance(connection, &reply);

    if (r > 0)
        (void)snprintf(text, sizeof(text), "%s", doc_text(reply, "parameters.x", "-"));
    (void)doc_free(reply);
    *ret_text = text;
    return r;
}

static void test_pieces(void)
{
    static const char reply[] = "{\"parameters\":{\"x\":\"one\"}}";
    const char *text;

    begin_call("a reply byte by byte");
    for (size_t i = 0; i + 1 < sizeof(reply); i++) {
        answer(reply + i, 1);
        CHECK(advance(&text) == 0);
    }
    answer("", 1);
    CHECK(advance(&text) == 1 && strcmp(text, "one") == 0);
    CHECK(advance(&text) == 0);
    end();
}

static void test_segment(void)
{
    static const char replies[] = "{\"parameters\":{\"x\":\"one\"},\"continues\":true}\0"
                                  "{\"parameters\":{\"x\":\"two\"},\"continues\":true}\0"
                                  "{\"parameters\":{\"x\":\"three\"}}\0{\"parameters\":{}}";
    const char *text;

    begin_call("several replies in one segment");
    answer(replies, sizeof(replies));
    CHECK(advance(&text) == 1 && strcmp(text, "one") == 0);
    CHECK(connection_call(connection, "a.C", NULL, NULL, 0, false) == -EBUSY);
    CHECK(advance(&text) == 1 && strcmp(text, "two") == 0);
    CHECK(advance(&text) == 1 && strcmp(text, "three") == 0);
    CHECK(advance(&text) == 0); /* the call has ended: the rest is nobody's */
    end();
}

static void test_ends(void)
{
    static const struct {
        const char *name, *bytes;
        size_t count;
        int result;
    } cases[] = {
        {"closed before a reply", "", 0, -ECONNRESET},
        {"closed within a reply", "{\"parameters\":", 14, -EBADMSG},
        {"closed before the NUL", "{\"parameters\":{}}", 17, -EBADMSG},
        {"no JSON", "none of your business", 22, -EBADMSG},
        {"an empty message", "", 1, -EBADMSG},
        {"an array", "[]", 3, -EBADMSG},
        {"two objects", "{}{}", 5, -EBADMSG},
        {"parameters of another type", "{\"parameters\":[]}", 18, -EBADMSG},
        {"an error of another type", "{\"error\":7}", 12, -EBADMSG},
        {"a flag of another type", "{\"continues\":1}", 16, -EBADMSG},
        {"invalid UTF-8", "{\"parameters\":{\"x\":\"\xff\"}}", 25, -EBADMSG},
        {"a NUL in a text", "{\"parameters\":{\"x\":\"\\u0000\"}}", 30, -EBADMSG},
    };
    const char *text;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        begin_call(cases[i].name);
        answer(cases[i].bytes, cases[i].count);
        (void)shutdown(peer, SHUT_WR);
        CHECK(advance(&text) == cases[i].result);
        end();
    }
}

/* Answers with COUNT times PART while the client reads: what it says in the end. */
static int answer_many(const char *head, const char *part, size_t count, const char *tail)
{
    const char *text;
    int r = 0;

    answer(head, strlen(head));
    for (size_t i = 0; i < count && r == 0; i++) {
        answer(part, strlen(part));
        if (i % 64 == 0)
            r = advance(&text);
    }
    if (r == 0) {
        answer(tail, strlen(tail) + 1);
        r = advance(&text);
    }
    return r;
}

static void test_large(void)
{
    static char part[1025];

    memset(part, 'x', sizeof(part) - 1);
    begin_call("a reply of 2 MB");
    CHECK(answer_many("{\"parameters\":{\"x\":\"", part, 2048, "\"}}") == 1);
    end();
    begin_call("a reply without an end");
    CHECK(answer_many("{\"parameters\":{\"x\":\"", part, SIZE_MAX, "") == -EFBIG);
    end();
    begin_call("a reply that takes too much memory");
    CHECK(answer_many("{\"parameters\":{\"x\":[", "{},{},{},{},", 1 << 20, "{}]}}") == -EFBIG);
    end();
    begin_call("nested 10,000 deep");
    CHECK(answer_many("{\"parameters\":", "[", 10000, "") == -EBADMSG);
    end();
}

/* Receives a call with its descriptors; the number of these. */
static int receive(char *text, size_t bytes)
{
    union {
        struct cmsghdr header;
        char buffer[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct iovec part = {text, bytes};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fds[4], nr = 0;

    if (recvmsg(peer, &message, MSG_CMSG_CLOEXEC) < 0)
        return -errno;
    if (CMSG_FIRSTHDR(&message)) {
        nr = (int)((control.header.cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(&control.header), (size_t)nr * sizeof(int));
    }
    for (int i = 0; i < nr; i++)
        (void)close(fds[i]);
    return nr;
}

static void test_calls(void)
{
    const int fds[] = {STDIN_FILENO, STDOUT_FILENO};
    _cleanup_doc_ struct json_object *parameters = json_object_new_object();
    _cleanup_free_ char *big = malloc(VARLINK_CALL_BYTES_MAX + 1);
    char text[256] = "";

    begin("a call with descriptors");
    doc_add_number(parameters, "fd", 1);
    CHECK(connection_call(connection, "a.B", parameters, fds, 2, true) == 0);
    CHECK(connection_events(connection) == POLLIN);
    CHECK(receive(text, sizeof(text)) == 2);
    CHECK(strcmp(text, "{\"method\":\"a.B\",\"parameters\":{\"fd\":1},\"more\":true}") == 0);
    end();

    begin("a call that is too long, and the next one");
    if (!CHECK(big))
        return;
    memset(big, 'x', VARLINK_CALL_BYTES_MAX);
    big[VARLINK_CALL_BYTES_MAX] = '\0';
    doc_add_text(parameters, "x", big);
    CHECK(connection_call(connection, "a.B", parameters, NULL, 0, false) == -EMSGSIZE);
    doc_set_text(parameters, "x", "\xff");
    CHECK(connection_call(connection, "a.B", parameters, NULL, 0, false) == -EILSEQ);
    CHECK(connection_call(connection, "a.B", NULL, NULL, 0, false) == 0);
    end();

    begin("a service that has gone");
    fd_close(&peer);
    CHECK(connection_call(connection, "a.B", NULL, NULL, 0, false) == 0);
    CHECK(connection_advance(connection, &parameters) == -ECONNRESET);
    end();
}

int main(void)
{
    test_pieces();
    test_segment();
    test_ends();
    test_large();
    test_calls();
    return test_end();
}
