// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The socket passes credentials (SO_PASSCRED), so that the sender is known without its help. A
 * message that was cut, or that has none, is not used; its descriptors are closed all the same.
 */

#include "notify.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/util.h"

int notify_open(const char *path, int *ret_fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _cleanup_fd_ int fd = -1;
    int yes = 1;

    if (strlen(path) >= sizeof(address.sun_path))
        return -ENAMETOOLONG;
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
        return -errno;
    if (chmod(path, 0777) < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &yes, sizeof(yes)) < 0)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

static void take_control(struct notify_message *m, struct msghdr *header)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET)
            continue;
        if (c->cmsg_type == SCM_RIGHTS) {
            size_t bytes = c->cmsg_len - CMSG_LEN(0);

            memcpy(m->fds, CMSG_DATA(c), bytes); /* the kernel sends at most SCM_MAX_FD */
            m->nr_fds = (uint32_t)(bytes / sizeof(int));
        } else if (c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred credentials;

            memcpy(&credentials, CMSG_DATA(c), sizeof(credentials));
            m->sender = credentials.pid;
        }
    }
}

int notify_receive(int fd, struct notify_message *ret_message)
{
    struct notify_message *m = ret_message;
    struct iovec part = {.iov_base = m->text, .iov_len = sizeof(m->text) - 1};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(int) * NOTIFY_MOST_FDS) + CMSG_SPACE(sizeof(struct ucred))];
    } control;
    struct msghdr header = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = &control,
        .msg_controllen = sizeof(control),
    };
    ssize_t n;

    memset(m, 0, sizeof(*m));
    n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    take_control(m, &header);
    if (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || !m->sender) {
        notify_done(m);
        return -EBADMSG;
    }
    for (char *p = strchr(m->text, '\n'); p; p = strchr(p + 1, '\n'))
        *p = '\0';
    return 0;
}

void notify_done(struct notify_message *message)
{
    for (uint32_t i = 0; i < message->nr_fds; i++)
        fd_close(&message->fds[i]);
}

/* Empty lines end it too: sd_notify() sends none. */
static const char *next_line(const struct notify_message *message, const char *line)
{
    if (!line)
        return message->text[0] ? message->text : NULL;
    line += strlen(line) + 1;
    return line < message->text + sizeof(message->text) && *line ? line : NULL;
}

bool notify_has(const struct notify_message *message, const char *line)
{
    for (const char *p = next_line(message, NULL); p; p = next_line(message, p))
        if (strcmp(p, line) == 0)
            return true;
    return false;
}

const char *notify_field(const struct notify_message *message, const char *field)
{
    for (const char *p = next_line(message, NULL); p; p = next_line(message, p))
        if (strncmp(p, field, strlen(field)) == 0)
            return p + strlen(field);
    return NULL;
}
