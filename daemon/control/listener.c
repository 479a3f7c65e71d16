// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: unix(7). */

#include "daemon/control/listener.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/protocol.h"

static bool somebody_answers(const struct sockaddr_un *address)
{
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0;
}

static void make_parent_directory(const char *path)
{
    char parent[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    char *slash;

    (void)snprintf(parent, sizeof(parent), "%s", path);
    slash = strrchr(parent, '/');
    if (slash && slash != parent) {
        *slash = '\0';
        (void)mkdir(parent, 0755); /* if that fails, so does bind(), with the reason */
    }
}

/* A killed daemon left it. Anything else stays, and bind() reports it. */
static void remove_stale_socket(const char *path)
{
    struct stat st;

    if (lstat(path, &st) == 0 && S_ISSOCK(st.st_mode))
        (void)unlink(path);
}

static int make_socket(const struct sockaddr_un *address, int *ret_fd)
{
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 ||
        chmod(address->sun_path, 0666) < 0 || listen(fd, SOMAXCONN) < 0)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

int listener_open(const char *path, int *ret_fd, struct failure *failure)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int r;

    if (strlen(path) >= sizeof(address.sun_path))
        return failure_set(
            failure, -ENAMETOOLONG, ERROR_INVALID,
            "The socket's path %s is longer than the %zu bytes a Unix socket may have.", path,
            sizeof(address.sun_path) - 1);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (somebody_answers(&address))
        return failure_set(
            failure, -EADDRINUSE, ERROR_OUTPUT,
            "Another xentraced answers at %s already. Nothing was changed; give this one "
            "another --socket, or end that one.",
            path);
    make_parent_directory(path);
    remove_stale_socket(path);
    r = make_socket(&address, ret_fd);
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT,
                           "Cannot listen at %s: %s. Name another place with --socket.", path,
                           strerror(-r));
    return 0;
}
