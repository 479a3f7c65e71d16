// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Single producer, single consumer. The release store of one index pairs with the acquire load of
 * the same index on the other side: a message is whole before it is seen, and read before its slot
 * is written again.
 */

#include "collector/mailbox.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "collector/memory.h"
#include "common/util.h"

#define MAILBOX_SLOTS                                                                              \
    256u /* a power of two; a sink has a handful of messages under way at most                     \
          */

struct mailbox {
    int eventfd;
    uint32_t written; /* atomic; counts up for ever; modulo MAILBOX_SLOTS */
    uint32_t read;    /* atomic */
    struct message slots[MAILBOX_SLOTS];
};

int mailbox_new(struct mailbox **ret_mailbox)
{
    struct mailbox *mailbox = memory_alloc(1, sizeof(*mailbox));

    if (!mailbox)
        return -ENOMEM;
    mailbox->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (mailbox->eventfd < 0) {
        int r = -errno;

        free(mailbox);
        return r;
    }
    *ret_mailbox = mailbox;
    return 0;
}

struct mailbox *mailbox_free(struct mailbox *mailbox)
{
    if (!mailbox)
        return NULL;
    fd_close(&mailbox->eventfd);
    free(mailbox);
    return NULL;
}

int mailbox_fd(const struct mailbox *mailbox)
{
    return mailbox->eventfd;
}

int mailbox_put(struct mailbox *mailbox, const struct message *message)
{
    uint32_t written = __atomic_load_n(&mailbox->written, __ATOMIC_RELAXED);

    if (written - __atomic_load_n(&mailbox->read, __ATOMIC_ACQUIRE) == MAILBOX_SLOTS)
        return -EAGAIN;
    mailbox->slots[written % MAILBOX_SLOTS] = *message;
    __atomic_store_n(&mailbox->written, written + 1, __ATOMIC_RELEASE);
    return 0;
}

void mailbox_wake(struct mailbox *mailbox)
{
    (void)eventfd_write(mailbox->eventfd, 1); /* can only fail when it is readable anyway */
}

bool mailbox_receive(struct mailbox *mailbox, struct message *ret_message)
{
    uint32_t read = __atomic_load_n(&mailbox->read, __ATOMIC_RELAXED);

    if (read == __atomic_load_n(&mailbox->written, __ATOMIC_ACQUIRE))
        return false;
    *ret_message = mailbox->slots[read % MAILBOX_SLOTS];
    __atomic_store_n(&mailbox->read, read + 1, __ATOMIC_RELEASE);
    return true;
}

void mailbox_quieten(struct mailbox *mailbox)
{
    eventfd_t count;

    (void)eventfd_read(mailbox->eventfd, &count); /* EAGAIN: it was quiet */
}
