// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The relay between two ends in one thread: the client writes bytes by hand, the server notes what
 * reaches it and answers on demand.
 */

#include "daemon/control/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <systemd/sd-event.h>

#include "common/util.h"
#include "daemon/base/vacate.h"
#include "daemon/control/passed.h"
#include "tests/unit/test.h"

#define HELLO "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"

struct bench {
    sd_event *event;
    struct relay *relay;
    int client;
    int server;
    int begin_result;
    unsigned int nr_received; /* messages */
    struct passed passed;     /* with the last one */
    bool may_pass;
    size_t received_bytes; /* of the last one */
    size_t answer_bytes;   /* to answer each message with */
    size_t left_bytes;     /* of that, not written yet */
    char closed[128];      /* "": it is not */
};

static int server_begin(void *userdata, int fd, int client_fd)
{
    struct bench *bench = userdata;

    (void)client_fd;
    bench->server = fd;
    return bench->begin_result;
}

static int server_write(struct bench *bench)
{
    static const char zeroes[4096];
    ssize_t n;

    while (bench->left_bytes > 0) {
        n = send(bench->server, zeroes, (size_t)min_u64(sizeof(zeroes), bench->left_bytes),
                 MSG_DONTWAIT);
        if (n < 0)
            return 1;
        bench->left_bytes -= (size_t)n;
    }
    return 0;
}

static struct stand_ins stand_ins;
static uid_t peer_uid = 1000;

/* How many were given to these, which replace the module. */
static unsigned int nr_closed, nr_connections_closed;

void vacate_close(struct vacate *vacate, uid_t uid, const int *fds, size_t n)
{
    CHECK(!vacate);
    CHECK_UINT(uid, peer_uid);
    for (size_t i = 0; i < n; i++)
        CHECK_INT(close(fds[i]), 0);
    nr_closed += (unsigned int)n;
}

void vacate_close_connection(struct vacate *vacate, uid_t uid, int fd)
{
    (void)vacate, (void)uid;
    CHECK_INT(close(fd), 0);
    nr_connections_closed++;
}

static bool is_full;

bool vacate_is_full(const struct vacate *vacate, uid_t uid)
{
    (void)vacate, (void)uid;
    return is_full;
}

static bool server_may_pass(void *userdata)
{
    struct bench *bench = userdata;

    return bench->may_pass;
}

static int server_receive(void *userdata, const struct passed *passed)
{
    char control[CMSG_SPACE(sizeof(int) * 16)], *data = malloc(100000);
    struct iovec vector = {.iov_base = data, .iov_len = 100000};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = sizeof(control)};
    struct bench *bench = userdata;
    ssize_t n = recvmsg(bench->server, &header, MSG_DONTWAIT);
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    unsigned int count = part ? (unsigned int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;

    bench->nr_received++;
    bench->passed = *passed;
    bench->received_bytes = n < 0 ? 0 : (size_t)n;
    CHECK_UINT(count, passed->count);
    for (unsigned int i = 0; i < count; i++) {
        int fd;

        memcpy(&fd, CMSG_DATA(part) + i * sizeof(fd), sizeof(fd));
        CHECK_INT(stand_ins_find(&stand_ins, passed, fd), passed->fds[i]);
        CHECK(close(fd) == 0);
    }
    free(data);
    bench->left_bytes += bench->answer_bytes;
    return server_write(bench) < 0;
}

static int server_flush(void *userdata)
{
    return server_write(userdata);
}

static void server_closed(void *userdata, const char *reason)
{
    struct bench *bench = userdata;

    (void)snprintf(bench->closed, sizeof(bench->closed), "%s", reason);
    bench->relay = relay_free(bench->relay);
}

static const struct relay_server server = {
    .begin = server_begin,
    .receive = server_receive,
    .may_pass = server_may_pass,
    .flush = server_flush,
    .closed = server_closed,
};

static void bench_start(struct bench *bench)
{
    struct relay_options options = {
        .uid = peer_uid,
        .person = peer_uid,
        .passes_descriptors = true,
        .stand_ins = &stand_ins,
        .server = &server,
        .userdata = bench,
    };
    int fds[2];

    *bench = (struct bench){.server = -1, .may_pass = true};
    if (sd_event_new(&bench->event) < 0 ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        exit(EXIT_FAILURE);
    bench->client = fds[0];
    options.event = bench->event;
    CHECK_INT(relay_new(&options, &fds[1], &bench->relay), 0);
    CHECK_INT(fds[1], -1);
}

static void bench_done(struct bench *bench)
{
    relay_free(bench->relay);
    fd_close(&bench->client);
    fd_close(&bench->server);
    sd_event_unref(bench->event);
}

/* Until nothing happens any more for USEC. */
static void run_for(struct bench *bench, uint64_t usec)
{
    while (sd_event_run(bench->event, usec) > 0)
        continue;
}

static void say(struct bench *bench, const void *data, size_t bytes)
{
    CHECK_INT(send(bench->client, data, bytes, MSG_DONTWAIT | MSG_NOSIGNAL), (ssize_t)bytes);
    run_for(bench, 0);
}

static size_t hear(struct bench *bench, char *data, size_t size)
{
    ssize_t n = recv(bench->client, data, size, MSG_DONTWAIT);

    return n < 0 ? 0 : (size_t)n;
}

static void authenticate(struct bench *bench)
{
    char text[256];

    say(bench, HELLO, sizeof(HELLO) - 1);
    CHECK(relay_has_begun(bench->relay));
    CHECK(hear(bench, text, sizeof(text)) > 0);
}

/* A message of BYTES in all (16 at least, a multiple of 8) that claims NR_DESCRIPTORS. */
static uint8_t *make_message(size_t bytes, unsigned int nr_descriptors)
{
    uint8_t *message = calloc(1, bytes);
    uint32_t fields = nr_descriptors ? 8 : 0, body = (uint32_t)bytes - 16 - fields;

    if (!message)
        exit(EXIT_FAILURE);
    memcpy(message, "l\1\0\1", 4);
    memcpy(message + 4, &body, 4);
    message[8] = 1;
    message[12] = (uint8_t)fields;
    if (nr_descriptors)
        memcpy(message + 16, (uint8_t[]){9, 1, 'u', 0, (uint8_t)nr_descriptors, 0, 0, 0}, 8);
    return message;
}

static void send_with(struct bench *bench, const void *data, size_t bytes, unsigned int count)
{
    char control[CMSG_SPACE(sizeof(int) * 16)] = {0};
    struct iovec vector = {.iov_base = (void *)(uintptr_t)data, .iov_len = bytes};
    struct msghdr header = {.msg_iov = &vector,
                            .msg_iovlen = 1,
                            .msg_control = control,
                            .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    struct cmsghdr *part = CMSG_FIRSTHDR(&header);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    part->cmsg_len = CMSG_LEN(sizeof(int) * count);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    for (unsigned int i = 0; i < count; i++)
        memcpy(CMSG_DATA(part) + i * sizeof(fd), &fd, sizeof(fd));
    CHECK_INT(sendmsg(bench->client, &header, MSG_DONTWAIT), (ssize_t)bytes);
    fd_close(&fd);
    run_for(bench, 0);
}

/* Descriptors of this process. */
static unsigned int count_descriptors(void)
{
    unsigned int count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_authentication(void)
{
    struct bench bench;
    char text[256];

    test_case("authentication, and a message in the same write");
    bench_start(&bench);
    {
        uint8_t *message = make_message(64, 0), data[sizeof(HELLO) - 1 + 64];

        memcpy(data, HELLO, sizeof(HELLO) - 1);
        memcpy(data + sizeof(HELLO) - 1, message, 64);
        say(&bench, data, sizeof(data));
        free(message);
    }
    CHECK(relay_has_begun(bench.relay));
    CHECK_UINT(bench.nr_received, 1);
    CHECK_UINT(bench.received_bytes, 64);
    text[hear(&bench, text, sizeof(text) - 1)] = '\0';
    CHECK(strstr(text, "AGREE_UNIX_FD\r\n"));
    bench_done(&bench);

    test_case("authentication, byte by byte");
    bench_start(&bench);
    for (size_t i = 0; i < sizeof(HELLO) - 1; i++)
        say(&bench, &HELLO[i], 1);
    CHECK(relay_has_begun(bench.relay));
    bench_done(&bench);
}

static const struct {
    const char *name;
    const char *data;
    size_t bytes;
} no_hellos[] = {
    {"no NUL", "AUTH EXTERNAL\r\n", 15},
    {"BEGIN at once", "\0BEGIN\r\n", 8},
    {"a line without CR", "\0AUTH\n", 6},
    {"HTTP", "GET / HTTP/1.0\r\n\r\n", 18},
};

static void test_no_authentication(void)
{
    struct bench bench;
    char as[1024];

    for (size_t i = 0; i < ARRAY_SIZE(no_hellos); i++) {
        test_case(no_hellos[i].name);
        bench_start(&bench);
        say(&bench, no_hellos[i].data, no_hellos[i].bytes);
        CHECK_STR(bench.closed, "did not authenticate");
        bench_done(&bench);
    }
    test_case("a line without end");
    bench_start(&bench);
    memset(as, 'A', sizeof(as));
    as[0] = '\0';
    say(&bench, as, sizeof(as));
    CHECK_STR(bench.closed, "did not authenticate");
    bench_done(&bench);

    test_case("silence");
    bench_start(&bench);
    run_for(&bench, RELAY_INPUT_USEC + RELAY_INPUT_USEC / 2);
    CHECK_STR(bench.closed, "did not authenticate in time");
    bench_done(&bench);

    test_case("the server cannot be set up");
    bench_start(&bench);
    bench.begin_result = -ENOMEM;
    say(&bench, HELLO, sizeof(HELLO) - 1);
    CHECK_STR(bench.closed, strerror(ENOMEM));
    bench_done(&bench);
}

static void test_messages(void)
{
    uint8_t *longest = make_message(65536, 0), *too_long = make_message(65544, 0);
    struct bench bench;

    test_case("the longest message, in one piece and in many");
    bench_start(&bench);
    authenticate(&bench);
    say(&bench, longest, 65536);
    CHECK_UINT(bench.received_bytes, 65536);
    for (size_t at = 0; at < 65536; at += 4096)
        say(&bench, longest + at, 4096);
    CHECK_UINT(bench.nr_received, 2);
    CHECK_STR(bench.closed, "");

    test_case("a longer one: its header is enough");
    say(&bench, too_long, 16);
    CHECK_STR(bench.closed, "sent a message of more than 64 KiB");
    bench_done(&bench);

    test_case("no D-Bus");
    bench_start(&bench);
    authenticate(&bench);
    say(&bench, "GET / HTTP/1.0\r\n\r\n", 18);
    CHECK_STR(bench.closed, "sent data that is not a D-Bus message");
    bench_done(&bench);

    test_case("an unfinished message");
    bench_start(&bench);
    authenticate(&bench);
    say(&bench, longest, 1);
    run_for(&bench, RELAY_INPUT_USEC + RELAY_INPUT_USEC / 2);
    CHECK_UINT(bench.nr_received, 0);
    CHECK_STR(bench.closed, "did not complete a message in time");
    bench_done(&bench);

    test_case("a client that leaves");
    bench_start(&bench);
    authenticate(&bench);
    say(&bench, longest, 64);
    fd_close(&bench.client);
    run_for(&bench, 0);
    CHECK_STR(bench.closed, "disconnected");
    bench_done(&bench);
    free(longest);
    free(too_long);
}

enum outcome { GOOD, REFUSED, CLOSED };

static const struct {
    const char *name;
    bool may_pass;
    unsigned int claimed, passed;
    enum outcome outcome;
} descriptors[] = {
    {"none", true, 0, 0, GOOD},
    {"none, of somebody who may not", false, 0, 0, GOOD},
    {"two", true, 2, 2, GOOD},
    {"more than the header says", true, 0, 1, CLOSED},
    {"fewer than the header says", true, 2, 1, CLOSED},
    {"none, but the header says so", true, 2, 0, CLOSED},
    {"more than may be, and than the header says", true, 2, 3, CLOSED},
    {"more than may be", true, 3, 3, REFUSED},
    {"more than there is room for", true, 12, 12, REFUSED},
    {"from somebody who may not", false, 1, 1, REFUSED},
};

static void test_descriptors(void)
{
    for (size_t i = 0; i < ARRAY_SIZE(descriptors); i++) {
        uint8_t *message = make_message(64, descriptors[i].claimed);
        enum outcome outcome = descriptors[i].outcome;
        unsigned int before;
        struct bench bench;

        test_case(descriptors[i].name);
        bench_start(&bench);
        bench.may_pass = descriptors[i].may_pass;
        authenticate(&bench);
        before = count_descriptors();
        nr_closed = 0;
        if (descriptors[i].passed)
            send_with(&bench, message, 64, descriptors[i].passed);
        else
            say(&bench, message, 64);
        CHECK_UINT(bench.nr_received, outcome != CLOSED);
        CHECK_UINT(bench.passed.count, outcome == GOOD ? descriptors[i].passed : 0);
        CHECK_INT(bench.passed.is_refused, outcome == REFUSED);
        CHECK_STR(bench.closed,
                  outcome == CLOSED ? "passed descriptors that its message does not announce" : "");
        /* None is closed here. A client that is disconnected takes the relay's two sockets with it.
         */
        CHECK_UINT(nr_closed, min_u64(descriptors[i].passed, 8));
        CHECK_UINT(count_descriptors(), before - (outcome == CLOSED ? 2 : 0));

        /* Those of one message are not the next one's. */
        if (outcome == REFUSED) {
            free(message);
            message = make_message(64, 0);
            say(&bench, message, 64);
            CHECK_UINT(bench.nr_received, 2);
            CHECK(!bench.passed.is_refused);
        }
        bench_done(&bench);
        free(message);
    }
}

static void test_descriptors_with_handshake(void)
{
    unsigned int before;
    struct bench bench;

    test_case("descriptors that come with the handshake");
    bench_start(&bench);
    before = count_descriptors();
    nr_closed = 0;
    send_with(&bench, HELLO, sizeof(HELLO) - 1, 2);
    CHECK_STR(bench.closed, "did not authenticate");
    CHECK_UINT(nr_closed, 2);
    CHECK_UINT(count_descriptors(), before - 1);
    bench_done(&bench);
}

static void test_full(void)
{
    uint8_t *message = make_message(64, 2);
    struct bench bench;

    test_case("so many wait to be closed that no more are taken");
    bench_start(&bench);
    authenticate(&bench);
    nr_closed = nr_connections_closed = 0;
    is_full = true;
    send_with(&bench, message, 64, 2);
    is_full = false;
    CHECK_STR(bench.closed, "passed more descriptors while earlier ones are not closed yet");
    CHECK_UINT(bench.nr_received, 0);
    CHECK_UINT(nr_closed, 0);
    CHECK_UINT(nr_connections_closed, 1);
    bench_done(&bench);
    free(message);
}

static void test_full_of_root(void)
{
    uint8_t *message = make_message(64, 2);
    unsigned int before;
    struct bench bench;

    test_case("... of root: its calls are answered, but take no descriptors");
    peer_uid = 0;
    bench_start(&bench);
    authenticate(&bench);
    before = count_descriptors();
    is_full = true;
    send_with(&bench, message, 64, 2);
    is_full = false;
    CHECK_UINT(bench.nr_received, 1);
    CHECK(bench.passed.is_refused);
    CHECK_UINT(bench.passed.count, 0);
    CHECK_STR(bench.closed, "");
    CHECK_UINT(count_descriptors(), before);
    bench_done(&bench);
    peer_uid = 1000;
    free(message);
}

static void test_descriptors_of_unfinished(void)
{
    uint8_t *message = make_message(64, 2);
    unsigned int before = count_descriptors();
    struct bench bench;

    test_case("descriptors of a message that never ends are closed");
    bench_start(&bench);
    authenticate(&bench);
    send_with(&bench, message, 32, 2);
    run_for(&bench, RELAY_INPUT_USEC + RELAY_INPUT_USEC / 2);
    CHECK_STR(bench.closed, "did not complete a message in time");
    bench_done(&bench);
    CHECK_UINT(count_descriptors(), before);

    test_case("descriptors of two messages stay with theirs");
    bench_start(&bench);
    authenticate(&bench);
    send_with(&bench, message, 64, 2);
    CHECK_UINT(bench.passed.count, 2);
    send_with(&bench, message, 64, 2);
    CHECK_UINT(bench.nr_received, 2);
    CHECK_STR(bench.closed, "");
    bench_done(&bench);
    free(message);
}

static void test_output(void)
{
    uint8_t *message = make_message(64, 0);
    size_t heard = 0, n;
    struct bench bench;
    char text[65536];

    test_case("no further call while an answer is not read");
    bench_start(&bench);
    authenticate(&bench);
    bench.answer_bytes = 4 << 20;
    say(&bench, message, 64);
    say(&bench, message, 64);
    CHECK_UINT(bench.nr_received, 1);
    CHECK(bench.left_bytes > 0);

    test_case("slow readers are waited for, and have all of it");
    for (unsigned int i = 0; heard < bench.answer_bytes && i < 100000; i++) {
        n = hear(&bench, text, sizeof(text));
        heard += n;
        run_for(&bench, 0);
    }
    for (unsigned int i = 0; i < 1000; i++) { /* what belongs to the second one */
        heard += hear(&bench, text, sizeof(text));
        run_for(&bench, 0);
    }
    CHECK_UINT(bench.nr_received, 2);
    CHECK_UINT(heard, 2 * bench.answer_bytes);
    CHECK_STR(bench.closed, "");

    test_case("what is answered when the loop has ended is sent");
    bench.answer_bytes = 0;
    CHECK_INT(send(bench.server, "last", 4, MSG_DONTWAIT), 4);
    relay_send_last(bench.relay);
    CHECK_UINT(hear(&bench, text, sizeof(text)), 4);
    bench.answer_bytes = 4 << 20;

    test_case("who does not read at all is disconnected");
    say(&bench, message, 64);
    run_for(&bench, RELAY_OUTPUT_USEC + RELAY_OUTPUT_USEC / 2);
    CHECK_STR(bench.closed, "does not read its answers");
    bench_done(&bench);
    free(message);
}

/* A good message with some bytes changed, with descriptors or without, cut anywhere. */
static void send_noise(struct bench *bench, uint64_t *seed)
{
    unsigned int nr_descriptors = (unsigned int)(test_random(seed) % 3);
    uint8_t *message = make_message(64, nr_descriptors);
    size_t bytes = 1 + test_random(seed) % 64;

    for (uint64_t n = test_random(seed) % 4; n > 0; n--)
        message[test_random(seed) % 64] = (uint8_t)test_random(seed);
    if (nr_descriptors && test_random(seed) % 4)
        send_with(bench, message, bytes, 1 + (unsigned int)(test_random(seed) % 3));
    else
        say(bench, message, bytes);
    free(message);
}

static void test_noise(void)
{
    unsigned int before = count_descriptors();
    uint64_t seed = test_seed();
    struct bench bench;

    test_case("noise");
    for (unsigned int i = 0; i < 3000; i++) {
        bench_start(&bench);
        authenticate(&bench);
        for (unsigned int j = 0; j < 8 && !bench.closed[0]; j++)
            send_noise(&bench, &seed);
        bench_done(&bench);
    }
    CHECK_UINT(count_descriptors(), before);
}

int main(void)
{
    if (stand_ins_init(&stand_ins) < 0)
        return EXIT_FAILURE;
    test_authentication();
    test_no_authentication();
    test_messages();
    test_descriptors();
    test_descriptors_with_handshake();
    test_full();
    test_full_of_root();
    test_descriptors_of_unfinished();
    test_output();
    test_noise();
    return test_end();
}
