// SPDX-License-Identifier: GPL-2.0-or-later

#include "collector/mailbox.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>

#include "common/util.h"
#include "tests/unit/test.h"

#define CAPACITY 256u
#define LOAD     100000

static bool is_readable(const struct mailbox *mailbox)
{
    struct pollfd fd = {.fd = mailbox_fd(mailbox), .events = POLLIN};

    return poll(&fd, 1, 0) == 1;
}

static struct mailbox *new_mailbox(void)
{
    struct mailbox *mailbox = NULL;

    if (mailbox_new(&mailbox) < 0)
        exit(EXIT_FAILURE);
    return mailbox;
}

static int send_number(struct mailbox *mailbox, int64_t number)
{
    struct message message = {
        .type = number % 2 ? MESSAGE_GRANT : MESSAGE_DRAIN,
        .flag = number % 3 == 0,
        .sink = (struct sink *)(uintptr_t)(0x1000 + number),
        .value = number,
    };

    int r = mailbox_put(mailbox, &message);

    if (r == 0)
        mailbox_wake(mailbox);
    return r;
}

static bool is_number(const struct message *message, int64_t number)
{
    return message->value == number && message->flag == (number % 3 == 0) &&
           message->type == (number % 2 ? MESSAGE_GRANT : MESSAGE_DRAIN) &&
           message->sink == (struct sink *)(uintptr_t)(0x1000 + number);
}

static void test_empty(void)
{
    struct mailbox *mailbox = new_mailbox();
    struct message message = {.value = 77};

    test_case("empty");
    CHECK(!is_readable(mailbox));
    CHECK(!mailbox_receive(mailbox, &message));
    CHECK_INT(message.value, 77);
    CHECK(!mailbox_free(mailbox));
    CHECK(!mailbox_free(NULL));
}

static void test_order(void)
{
    struct mailbox *mailbox = new_mailbox();
    struct message message;

    test_case("order");
    for (int64_t i = 0; i < 1000; i += 3) {
        for (int64_t j = 0; j < 3; j++)
            CHECK_INT(send_number(mailbox, i + j), 0);
        CHECK(is_readable(mailbox));
        mailbox_quieten(mailbox);
        CHECK(!is_readable(mailbox));
        for (int64_t j = 0; j < 3; j++)
            CHECK(mailbox_receive(mailbox, &message) && is_number(&message, i + j));
        CHECK(!mailbox_receive(mailbox, &message));
    }
    mailbox_free(mailbox);
}

static void test_full(void)
{
    struct mailbox *mailbox = new_mailbox();
    struct message message;
    int64_t sent = 0;

    test_case("full");
    while (sent < 2 * CAPACITY && send_number(mailbox, sent) == 0)
        sent++;
    CHECK_INT(sent, CAPACITY);
    CHECK_INT(send_number(mailbox, sent), -EAGAIN);

    /* One out, one in; nothing is lost and none comes twice. */
    CHECK(mailbox_receive(mailbox, &message) && is_number(&message, 0));
    CHECK_INT(send_number(mailbox, sent), 0);
    CHECK_INT(send_number(mailbox, sent + 1), -EAGAIN);
    for (int64_t i = 1; i <= sent; i++)
        CHECK(mailbox_receive(mailbox, &message) && is_number(&message, i));
    CHECK(!mailbox_receive(mailbox, &message));
    mailbox_free(mailbox);
}

static void *send_load(void *context)
{
    struct mailbox *mailbox = context;

    for (int64_t i = 0; i < LOAD;) {
        if (send_number(mailbox, i) == 0)
            i++;
        else
            (void)sched_yield();
        if (i % 1000 == 0)
            (void)usleep(1); /* lets the reader fall asleep now and then */
    }
    return NULL;
}

/* The reader sleeps whenever there is nothing: a wake-up that is lost shows as a timeout. */
static void test_load(void)
{
    struct mailbox *mailbox = new_mailbox();
    struct pollfd fd = {.fd = mailbox_fd(mailbox), .events = POLLIN};
    int64_t received = 0, wrong = 0;
    struct message message;
    pthread_t thread;

    test_case("load");
    if (!CHECK_INT(pthread_create(&thread, NULL, send_load, mailbox), 0))
        exit(EXIT_FAILURE);
    while (received < LOAD) {
        if (!CHECK_INT(poll(&fd, 1, 10000), 1))
            exit(EXIT_FAILURE);
        mailbox_quieten(mailbox);
        while (mailbox_receive(mailbox, &message))
            wrong += !is_number(&message, received++);
    }
    CHECK_INT(wrong, 0);
    (void)pthread_join(thread, NULL);
    CHECK(!mailbox_receive(mailbox, &message));
    mailbox_free(mailbox);
}

int main(void)
{
    test_empty();
    test_order();
    test_full();
    test_load();
    return test_end();
}
