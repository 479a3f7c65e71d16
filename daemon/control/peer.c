// SPDX-License-Identifier: GPL-2.0-or-later
/* Source: unix(7). The kernel took these when the client called connect(2). */

#include "daemon/control/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/utf8.h"
#include "common/util.h"
#include "daemon/control/persons.h"

#ifndef SO_PEERGROUPS
#define SO_PEERGROUPS 59 /* <asm-generic/socket.h> */
#endif

static void peer_raise_role(struct peer *peer, enum role role)
{
    if (role > peer->role)
        peer->role = role;
}

static void apply_group(gid_t gid, const struct peer_groups *groups, struct peer *peer)
{
    if (groups->has_view_group && gid == groups->view_gid)
        peer_raise_role(peer, ROLE_VIEW);
    if (groups->has_operate_group && gid == groups->operate_gid)
        peer_raise_role(peer, ROLE_OPERATE);
}

static int apply_supplementary(int fd, const struct peer_groups *groups, struct peer *peer)
{
    _cleanup_free_ char *buffer = NULL;
    socklen_t bytes = 0;
    const gid_t *gids;

    /* The first call fails with ERANGE and returns the size. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &bytes) < 0 && errno != ERANGE)
        return -errno;
    if (bytes == 0)
        return 0;
    buffer = malloc(bytes);
    if (!buffer)
        return -ENOMEM;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, buffer, &bytes) < 0)
        return -errno;
    gids = (const gid_t *)(const void *)buffer; /* malloc(3) aligns it */
    for (size_t i = 0; i < bytes / sizeof(*gids); i++)
        apply_group(gids[i], groups, peer);
    return 0;
}

int peer_read(int fd, const struct peer_groups *groups, struct persons *persons,
              struct peer *ret_peer)
{
    struct ucred cred;
    socklen_t bytes = sizeof(cred);
    struct peer peer = {0};
    int r;

    *ret_peer = (struct peer){.uid = (uid_t)-1, .person = PERSON_OTHERS};
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &bytes) < 0)
        return -errno;
    peer.uid = cred.uid;
    peer.pid = cred.pid;
    if (cred.uid == 0)
        peer_raise_role(&peer, ROLE_ROOT);
    apply_group(cred.gid, groups, &peer);
    r = apply_supplementary(fd, groups, &peer);
    if (r < 0)
        return r;
    peer.person = peer.uid == 0 ? PERSON_ROOT : PERSON_OTHERS;
    if (persons && peer.role != ROLE_NONE)
        peer.person = persons_find(persons, peer.uid);
    *ret_peer = peer;
    return 0;
}

/* The kernel takes no lock of the process for it: this does not wait, as reading cmdline may. */
const char *peer_read_comm(const struct peer *peer, char comm[static PEER_COMM_MAX])
{
    char path[sizeof("/proc//comm") + 3 * sizeof(peer->pid)], text[PEER_COMM_MAX];
    _cleanup_fd_ int fd = -1;
    ssize_t length;

    comm[0] = '\0';
    if (peer->pid <= 0)
        return comm;
    (void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)peer->pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    length = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (length <= 0)
        return comm;
    text[length] = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)utf8_copy(comm, PEER_COMM_MAX, text);
    return comm;
}

struct requester peer_requester(const struct peer *peer)
{
    struct requester requester = {
        .is_set = true, .uid = peer->uid, .person = peer->person, .pid = peer->pid};

    (void)peer_read_comm(peer, requester.comm);
    return requester;
}
