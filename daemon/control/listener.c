// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: unix(7), acl(5); <linux/posix_acl_xattr.h> has the layout of an ACL. */

#include "daemon/control/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>

#include "common/protocol.h"
#include "daemon/control/peer.h"

/*
 * Whether the process that listens has ended, but for a thread that is stuck in close(2) (SIGKILL
 * does not end that, either) and keeps all its descriptors: its first thread is a zombie.
 */
static bool is_dead(int fd)
{
    struct ucred cred;
    socklen_t bytes = sizeof(cred);
    char path[sizeof("/proc//stat") + 3 * sizeof(cred.pid)], text[512];
    _cleanup_fd_ int stat_fd = -1;
    const char *end;
    ssize_t length;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0 || cred.pid <= 0)
        return false;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)cred.pid);
    stat_fd = open(path, O_RDONLY | O_CLOEXEC);
    length = stat_fd < 0 ? -1 : read(stat_fd, text, sizeof(text) - 1);
    if (length <= 0)
        return false;
    text[length] = '\0';
    end = strrchr(text, ')'); /* of its name */
    return end && (strncmp(end, ") Z", 3) == 0 || strncmp(end, ") X", 3) == 0);
}

static bool somebody_answers(const struct sockaddr_un *address)
{
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 &&
           !is_dead(fd);
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

#define NOBODY ((uint32_t)ACL_UNDEFINED_ID) /* of entries that name no group */

/* An ACL of the owner, users, two groups at most, and nobody else. */
struct acl {
    struct posix_acl_xattr_header header;
    struct posix_acl_xattr_entry entries[];
};
#define OTHER_ENTRIES 6u

static size_t acl_add(struct acl *acl, size_t count, uint16_t tag, uint16_t rights, uint32_t id)
{
    acl->entries[count] = (struct posix_acl_xattr_entry){
        .e_tag = htole16(tag), .e_perm = htole16(rights), .e_id = htole32(id)};
    return count + 1;
}

/* Entries have to be in the order of their tags, and those of each in the order of their IDs. */
static int set_acl(const char *path, const struct peer_groups *groups,
                   const struct listener_user *users, size_t nr_users)
{
    static const struct peer_groups no_groups;
    const uint16_t connects = ACL_READ | ACL_WRITE;
    _cleanup_free_ char *memory = NULL;
    gid_t first, second;
    bool has_both;
    struct acl *acl;
    size_t count = 0;

    memory = malloc(sizeof(*acl) + (nr_users + OTHER_ENTRIES) * sizeof(acl->entries[0]));
    if (!memory)
        return -ENOMEM;
    acl = (struct acl *)(void *)memory; /* malloc(3) aligns it */
    acl->header.a_version = htole32(POSIX_ACL_XATTR_VERSION);
    if (!groups)
        groups = &no_groups;
    first = groups->view_gid;
    second = groups->operate_gid;
    has_both = groups->has_view_group && groups->has_operate_group && first != second;
    if (!groups->has_view_group || (has_both && second < first)) {
        first = groups->operate_gid;
        second = groups->view_gid;
    }
    count = acl_add(acl, count, ACL_USER_OBJ, connects, NOBODY);
    for (size_t i = 0; i < nr_users; i++)
        count = acl_add(acl, count, ACL_USER, users[i].may_connect ? connects : 0, users[i].uid);
    count = acl_add(acl, count, ACL_GROUP_OBJ, 0, NOBODY);
    if (groups->has_view_group || groups->has_operate_group)
        count = acl_add(acl, count, ACL_GROUP, connects, first);
    if (has_both)
        count = acl_add(acl, count, ACL_GROUP, connects, second);
    count = acl_add(acl, count, ACL_MASK, connects, NOBODY);
    count = acl_add(acl, count, ACL_OTHER, 0, NOBODY);
    if (setxattr(path, "system.posix_acl_access", acl,
                 sizeof(acl->header) + count * sizeof(acl->entries[0]), 0) < 0)
        return -errno;
    return 0;
}

/*
 * Without ACLs everybody may connect, and peer.c decides alone; while anybody is locked out, root
 * alone.
 */
static int set_rights(const char *path, const struct peer_groups *groups,
                      const struct listener_user *users, size_t nr_users)
{
    mode_t mode = groups && nr_users == 0 ? 0666 : 0600;

    if (set_acl(path, groups, users, nr_users) < 0 && chmod(path, mode) < 0)
        return -errno;
    return 0;
}

int listener_restrict(const char *path, const struct peer_groups *groups,
                      const struct listener_user *users, size_t nr_users, struct failure *failure)
{
    int r = set_rights(path, groups, users, nr_users);

    if (r >= 0)
        return 0;
    return failure_set(failure, r, ERROR_OUTPUT, "Cannot set who may connect to %s: %s.", path,
                       strerror(-r));
}

static int make_socket(const struct sockaddr_un *address, const struct peer_groups *groups,
                       int *ret_fd)
{
    _cleanup_fd_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int r;

    if (fd < 0 || bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0)
        return -errno;
    r = set_rights(address->sun_path, groups, NULL, 0);
    if (r < 0)
        return r;
    if (listen(fd, SOMAXCONN) < 0)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

int listener_open(const char *path, const struct peer_groups *groups, int *ret_fd,
                  struct failure *failure)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int r;

    if (strlen(path) >= sizeof(address.sun_path))
        return failure_set(failure, -ENAMETOOLONG, ERROR_INVALID,
                           "The socket path %s is too long: the limit is %zu bytes.", path,
                           sizeof(address.sun_path) - 1);
    (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    if (somebody_answers(&address))
        return failure_set(failure, -EADDRINUSE, ERROR_OUTPUT,
                           "Another xentraced is already listening at %s. Nothing was changed; use "
                           "another --socket, or stop the other one.",
                           path);
    make_parent_directory(path);
    remove_stale_socket(path);
    r = make_socket(&address, groups, ret_fd);
    if (r < 0)
        return failure_set(failure, r, ERROR_OUTPUT,
                           "Cannot listen at %s: %s. Choose another path with --socket.", path,
                           strerror(-r));
    return 0;
}
