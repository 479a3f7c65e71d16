# SPDX-License-Identifier: GPL-2.0-or-later
"""Users with subordinate UIDs.

persons.py run UID GROUP COUNT COMMAND...
    As user UID with the supplementary group GROUP, in a user namespace of its own: runs COMMAND
    COUNT times at once, each as another of 65,536 subordinate UIDs, which keeps the group. Prints
    how many succeeded.
persons.py connect UID GROUP COUNT SOCKET
    Likewise: connects COUNT times, waits until the daemon has answered or closed what it does not
    want, prints how many connections stay open, and keeps them until standard input ends.
"""

import ctypes
import os
import select
import socket
import sys
import time

CLONE_NEWUSER = 0x10000000
FIRST_UID = 100000  # of the host, as in /etc/subuid


def enter(uid, group):
    """Becomes UID, in a user namespace with subordinate UIDs, as newuidmap(1) would make it."""
    ready, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if child:
        os.close(ready[1])
        os.close(mapped[0])
        os.read(ready[0], 1)
        for name, text in (
            ("uid_map", f"0 {uid} 1\n1 {FIRST_UID} 65536\n"),
            ("gid_map", "0 65534 1\n"),
        ):
            with open(f"/proc/{child}/{name}", "w") as file:
                file.write(text)
        os.close(mapped[1])
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    os.setgroups([group])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(uid, uid, uid)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) < 0:
        sys.exit(f"unshare: {os.strerror(ctypes.get_errno())}")
    os.close(mapped[1])
    os.write(ready[1], b"x")
    os.read(mapped[0], 1)


def become(number):
    os.setresuid(number + 1, number + 1, number + 1)


def run(count, command):
    children = []
    for i in range(count):
        child = os.fork()
        if child == 0:
            become(i)
            os.dup2(2, 1)
            os.execv(command[0], command)
        children.append(child)
    print(sum(os.waitpid(child, 0)[1] == 0 for child in children))


def connect(count, path):
    """Connects as another UID each time: a process for each, which keeps its connection."""
    answers, children = os.pipe(), []
    for i in range(count):
        child = os.fork()
        if child == 0:
            become(i)
            client = socket.socket(socket.AF_UNIX)
            client.connect(path)
            # One that is refused is closed at once.
            is_closed = bool(select.select([client], [], [], 1)[0])
            os.write(answers[1], b"c" if is_closed else b"o")
            while True:
                time.sleep(60)
        children.append(child)
    seen = b""
    while len(seen) < count:
        seen += os.read(answers[0], count)
    print(seen.count(b"o"), flush=True)
    sys.stdin.read()
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)


def main():
    what, uid, group, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    enter(uid, group)
    if what == "run":
        run(count, sys.argv[5:])
    else:
        connect(count, sys.argv[5])


main()
