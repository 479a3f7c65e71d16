/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * The peer of a connection, as reported by the kernel (SO_PEERCRED, SO_PEERGROUPS), its role, and
 * whom limits count it as. Main thread.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/base/failure.h"
#include "daemon/base/person.h"
#include "daemon/base/requester.h"
#include "daemon/control/peer-groups.h"
#include "daemon/control/rights.h"

struct persons;

struct peer {
    uid_t uid;
    uid_t person; /* as persons.h knows it; it may become another one */
    pid_t pid;    /* when it connected; 0: of another PID namespace */
    enum role role;
};

/*
 * Returns 0 or a negative errno; *RET_PEER is then nobody. PERSONS looks up who has a role; NULL:
 * all but root are PERSON_OTHERS.
 */
int peer_read(int fd, const struct peer_groups *groups, struct persons *persons,
              struct peer *ret_peer);

#define PEER_COMM_MAX REQUESTER_COMM_MAX

/*
 * The name of the process that has PEER's PID now, as valid UTF-8 of PEER_COMM_MAX bytes at most;
 * "" if it cannot be read. For display only, because a process may choose any name. Returns COMM.
 */
const char *peer_read_comm(const struct peer *peer, char comm[static PEER_COMM_MAX]);

/* PEER as it asks for something now, with its comm. */
struct requester peer_requester(const struct peer *peer);
