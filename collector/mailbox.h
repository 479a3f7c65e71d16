/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Messages from one thread to one other: a ring of fixed size and an eventfd that wakes the reader.
 * Neither side ever waits for the other. The control plane and the collector have one each way.
 *
 * Putting and receiving need no system calls: the collector wakes the other side with a write of
 * io_uring, and never reads its own eventfd, whose every increment triggers a multishot poll.
 */

#include <stdbool.h>
#include <stdint.h>

struct mailbox;
struct sink;

enum message_type {
    /* To the collector. */
    MESSAGE_ATTACH,  /* sink: it takes records from now on */
    MESSAGE_PIN,     /* sink, value: pin its ring after a round; answered with MESSAGE_PINNED */
    MESSAGE_SUCCEED, /* sink, other, flag: see collector_send_successor() */
    MESSAGE_DRAIN,   /* sink: take the records that are in Xen's buffers, then stop; answered with
                      * MESSAGE_DRAINED. flag: tracing no longer adds records */
    MESSAGE_SETTLE,  /* sink: wait a little for unreported losses; MESSAGE_DRAINED again */
    MESSAGE_CLOSE,   /* sink: no more records; answered with MESSAGE_CLOSED once all is written.
                        flag: tracing is disabled; what is left in Xen's buffers goes with it */
    MESSAGE_GRANT,   /* sink, value: may be written up to there; flag: and never further */
    MESSAGE_ABORT,   /* sink, flag: give up all that is not written; answered with
                        MESSAGE_ABANDONED. flag: on request. See collector.h */
    MESSAGE_HOLD,    /* flag set: no more rounds, so records stay in Xen's buffers, and sinks
                      * attached in the meantime begin together. flag clear: rounds continue. value,
                      * if not 0: continue at the latest when a buffer is half full */
    MESSAGE_QUIT,

    /* From the collector. */
    MESSAGE_ATTACHED,     /* sink is fed: tracing may be enabled */
    MESSAGE_PINNED,       /* sink, value: the pin */
    MESSAGE_WATCHED,      /* sink: a watch of its set has come true */
    MESSAGE_SUCCEEDED,    /* sink: its successor is fed instead */
    MESSAGE_DRAINED,      /* value: CPUs with unreported losses */
    MESSAGE_GRANT_WANTED, /* sink comes near the end of its grant */
    MESSAGE_LIMIT,        /* sink has reached its limit, and there were more records */
    MESSAGE_FAILED,       /* sink, value: negative errno of a write; -ECANCELED: of an ABORT */
    MESSAGE_ABANDONED,    /* sink: its figures are final; CLOSED follows */
    MESSAGE_CLOSED,       /* sink is the main thread's again, and holds no chunk */
    MESSAGE_LOST,         /* records of a sink were lost or dropped; sent at most twice a second, so
                           * later losses may not be reported yet */
    MESSAGE_POOL_REFUSED, /* the pool could not grow: pool_refusals(); once a minute at most */
    MESSAGE_DIED,         /* value: negative errno; the collector cannot continue */
};

struct message {
    enum message_type type;
    bool flag;
    struct sink *sink;
    struct sink *other;
    int64_t value;
};

int mailbox_new(struct mailbox **ret_mailbox);
struct mailbox *mailbox_free(struct mailbox *mailbox);

/* The eventfd: readable from a waking on until it is made quiet. Belongs to the mailbox. */
int mailbox_fd(const struct mailbox *mailbox);

/* Writer's thread. -EAGAIN: full, which the protocol between the two threads rules out. */
int mailbox_put(struct mailbox *mailbox, const struct message *message);
/* Writer's thread, after putting one or more messages. */
void mailbox_wake(struct mailbox *mailbox);

/* Reader's thread. Takes one message; false if there is none. */
bool mailbox_receive(struct mailbox *mailbox, struct message *ret_message);
/* Reader's thread, before receiving: messages put later wake the reader again. */
void mailbox_quieten(struct mailbox *mailbox);
