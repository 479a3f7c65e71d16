#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Many clients that misbehave at once, and one that measures meanwhile.

clients.py SOCKET attack NAME FILE UID GIDS   as UID, in groups GIDS alone, or in none with -1, until
                                              FILE is removed; it exists as soon as it is under way
clients.py SOCKET measure TIMES    prints the median of so many calls, in microseconds
clients.py SOCKET leak MESSAGES UID GID
                                   each has two descriptors that libsystemd 252 would keep
clients.py SOCKET never-closed FILE HANG UID GID
                                   passes FILE until that is refused, once HANG exists; says how often
clients.py SOCKET stay FILE UID GID
                                   connects, waits for FILE, then starts a capture: what is answered
clients.py SOCKET attached FILE... a capture into each FILE, of one connection, which is then closed
"""

import fcntl
import os
import select
import socket
import statistics
import struct
import sys
import time

from bus import HELLO, Peer, start_body, string

MIB = 1 << 20


def connect(path, data=b""):
    peer = Peer(path, authenticate=False)
    peer.socket.setblocking(False)
    if data:
        peer.socket.send(data)
    return peer.socket


def push(sockets, data):
    """As much of DATA as each takes."""
    for sock in sockets:
        try:
            while sock.send(data):
                pass
        except OSError:  # it is full, or closed
            pass


def again(path, sockets, count, hello=b""):
    """Connections that were closed are opened again, up to COUNT: how many were."""
    poll = select.poll()
    for sock in sockets:
        poll.register(sock, 0)  # POLLHUP is reported anyway
    gone = {fd for fd, _ in poll.poll(0)}
    sockets[:] = [sock for sock in sockets if sock.fileno() not in gone]
    opened = 0
    while len(sockets) < count:
        try:
            sockets.append(connect(path, hello))
            opened += 1
        except OSError:
            break  # refused, or the backlog is full: later
    return opened


def crowd(path, sockets):
    """1,000 connections that never say anything."""
    return again(path, sockets, 1000)


def half_open(path, sockets):
    """200 in the middle of the handshake, a byte now and then."""
    opened = again(path, sockets, 200, b"\0AUTH EXTERNAL ")
    for sock in sockets:
        try:
            sock.send(b"3")
        except OSError:
            pass
    return opened


def idle(path, sockets):
    """As many as may be, authenticated, and silent."""
    return again(path, sockets, 100, HELLO)


def garbage(path, sockets):
    noise = os.urandom(65536)
    opened = again(path, sockets, 50, HELLO)
    for i, sock in enumerate(sockets):
        try:
            sock.send(noise[i:])
        except OSError:
            pass
    return opened


def unfinished(path, sockets):
    """Eight messages of 120 MiB, of which everything comes that is taken."""
    head = struct.pack("<cBBBIII", b"l", 1, 0, 1, 120 * MIB, 1, 16)
    opened = again(path, sockets, 8, HELLO + head)
    push(sockets, b"\0" * MIB)
    return opened


def almost(path, sockets):
    """Messages of 64 KiB, without their last byte."""
    head = struct.pack("<cBBBIII", b"l", 1, 0, 1, 65536 - 16, 1, 0)
    return again(path, sockets, 50, HELLO + head + b"\0" * (65536 - 17))


def deaf(path, sockets):
    """Calls without end, and no answer is read."""
    call = Peer.message(FakePeer(), "Status", "s", string(""))
    opened = again(path, sockets, 50, HELLO)
    push(sockets, call * 100)
    return opened


def wrong_types(path, sockets):
    """Calls of every wrong signature; the connections stay, as errors are answers."""
    fake = FakePeer()
    calls = b"".join(Peer.message(fake, member, sig, body)
                     for member in ("Start", "Stop", "Status", "Snapshot", "Trigger", "Nonsense")
                     for sig, body in (("", b""), ("u", b"\0\0\0\1"), ("as", b"\0\0\0\0"),
                                       ("ss", string("a") + b"\0\0" + string("b"))))
    opened = again(path, sockets, 50, HELLO)
    for sock in sockets:
        try:
            sock.send(calls)
            while sock.recv(MIB):
                pass
        except OSError:
            pass
    return opened


class FakePeer:  # what Peer.message() needs
    serial = 0


def every_wrong_descriptor(directory):
    reader, writer = os.pipe()
    sealed = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(sealed, 1033, 0x2 | 0x4)  # F_ADD_SEALS: shrink, grow
    os.mkfifo(directory + "/fifo")
    deleted = os.open(directory + "/deleted", os.O_RDWR | os.O_CREAT)
    os.unlink(directory + "/deleted")
    appending = os.open(directory + "/appending", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    unread, unread_writer = os.pipe()
    left, right = socket.socketpair()
    epoll = select.epoll()
    return {
        "a directory": os.open("/", os.O_RDONLY),
        "read-only": os.open("/etc/passwd", os.O_RDONLY),
        "a path only": os.open("/etc/passwd", os.O_PATH),
        "a reading end": reader,
        "a writing end without a reader": writer,
        "a writing end that nobody reads": unread_writer,
        "its reading end": unread,
        "a named pipe, both ways": os.open(directory + "/fifo", os.O_RDWR),
        "a stream socket": left.detach(),
        "its other end": right.detach(),
        "a datagram socket": socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach(),
        "an unconnected socket": socket.socket(socket.AF_UNIX).detach(),
        "/dev/null": os.open("/dev/null", os.O_RDWR),
        "/dev/full": os.open("/dev/full", os.O_WRONLY),
        "/dev/zero": os.open("/dev/zero", os.O_RDWR),
        "an eventfd": os.eventfd(0),
        "an epoll": os.dup(epoll.fileno()),
        "a pidfd": os.pidfd_open(os.getpid()),
        "a memfd": os.memfd_create("memfd"),
        "a sealed memfd": sealed,
        "a deleted file": deleted,
        "an appending file": appending,
        "a file of /proc": os.open("/proc/version", os.O_RDONLY),
    }


FDS = {}  # of every_wrong_descriptor()
HERE = ""  # a directory that the attacker may write to


def descriptors(path, _):
    """Each as output and as sidecar, of Start and of Snapshot, by somebody who may do that."""
    is_first = not FDS
    if is_first:
        FDS.update(every_wrong_descriptor(HERE))
    counts = {2: 0, 3: 0, "closed": 0}
    for turn in range(4):
        for fd in FDS.values():
            own = os.open(HERE + "/good", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            pair = ([fd, own], [own, fd], [fd], [fd, fd])[turn]
            entries = [("output", "h", 0)] + [("sidecar", "h", 1)] * (len(pair) > 1)
            member = "Start" if turn % 2 else "Snapshot"
            if member == "Start":
                entries += [("time-usec", "t", 100000), ("attached", "b", 1)]
            answer = ask(path, member, entries, pair)
            counts[answer[0] if answer else "closed"] += 1
            os.close(own)
    # Later on it may be disconnected: it passes faster than a busy machine closes.
    assert counts[3] > 0 or not is_first, counts
    return sum(counts.values())


def ask(path, member, entries, fds=(), name=""):
    """The answer; None if the daemon did not serve it."""
    try:
        peer = Peer(path)
        answer = peer.call(member, "sa{sv}", start_body(name, entries), fds)
        peer.socket.close()
        return answer
    except OSError:
        return None


def snapshots(path, _):
    """As fast as it goes, with the crash's own label."""
    return sum(ask(path, "Snapshot", [("label", "s", "crash")]) is not None for _ in range(5))


def names(path, _):
    """Those of root's segments, of now and to come."""
    return sum(ask(path, "Snapshot", [("max-size-bytes", "t", MIB)], name=name) is not None
               for name in ["numbered"] + ["numbered.%05d" % i for i in range(1, 40)])


def unread(path, sockets, kinds=("Snapshot", "Start"), last=()):
    """Snapshots and captures into pipes that nobody reads: those that were given up are asked anew."""
    poll = select.poll()
    for peer, _ in sockets:
        poll.register(peer.socket, select.POLLIN)
    answered = {fd for fd, _ in poll.poll(0)}
    for item in [item for item in sockets if item[0].socket.fileno() in answered]:
        os.close(item[1])
        sockets.remove(item)
    opened = 0
    while len(sockets) < 7:
        try:
            peer = Peer(path)
        except OSError:
            break
        member = kinds[len(sockets) % len(kinds)]
        entries = [("output", "h", 0)] + list(last if member == "Snapshot" else ())
        read_end, write_end = os.pipe()
        peer.send(peer.message(member, "sa{sv}", start_body("", entries), 1), [write_end])
        os.close(write_end)
        sockets.append((peer, read_end))
        opened += 1
    return opened


def unread_views(path, sockets):
    return unread(path, sockets, ("Snapshot",), [("last-usec", "t", 1000000)])


def rings(path, sockets):
    """All of dom0's memory, and captures that nobody ends."""
    output = [("output", "h", 0)]
    for _ in range(4):
        ask(path, "Start", output + [("memory-bytes", "t", 16 << 30)], [os.memfd_create("ring")])
    while len(sockets) < 6:
        sockets.append(Peer(path))
        for _ in range(2):
            sockets[-1].start("", output + [("attached", "b", 1)], [os.memfd_create("attached")])
    return 1


def fuse(path, _):
    """Output and sidecar on a file system that stops to answer; descriptors for calls that need none."""
    if not FDS:
        FDS.update({name: os.open(HERE + "/fuse/" + name, os.O_RDWR) for name in ("output", "sidecar")})
        os.close(os.open(HERE + "/hang", os.O_WRONLY | os.O_CREAT))
    answers = [ask(path, member, entries, fds)
               for member in ("Start", "Snapshot", "Status")
               for entries, fds in (
                   ([("output", "h", 0)], [FDS["output"]]),
                   ([("output", "h", 0), ("sidecar", "h", 1)], [os.memfd_create("x"), FDS["sidecar"]]))]
    assert not any(answer and answer[0] == 2 for answer in answers), answers
    return len(answers)


def leak(path, messages, uid, gid):
    """Well formed as far as the count goes; but there is no such object path."""
    drop_privileges(uid, gid)
    null = os.open("/dev/null", os.O_RDWR)
    for i in range(int(messages)):
        peer = Peer(path)
        peer.send(peer.message("Status", "s", string(""), 2, path="nonsense"), [null, null])
        assert peer.is_closed(5), i


def never_closed(path, file, hang, uid, gid):
    """With calls that need no descriptor; FILE's file system stops to answer."""
    drop_privileges(uid, gid)
    fd = os.open(file, os.O_RDWR)
    print("opened", flush=True)
    while not os.path.exists(hang):
        time.sleep(0.05)
    peer = Peer(path)
    for i in range(200):
        type_, _, text = peer.call("Status", "s", string(""), [fd])
        if type_ == 3:
            break
    print("after", i, text, flush=True)
    os._exit(0)  # closing would wait


def stay(path, file, uid, gids):
    drop_privileges(uid, gids)
    peer = Peer(path)
    assert peer.status()[0] == 2
    print("connected", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    try:
        print("status", peer.status()[0])
        print(peer.start("", [("output", "h", 0), ("attached", "b", 1)], [os.memfd_create("x")]))
    except ConnectionError:
        print("disconnected")


def attached(path, *files):
    peer = Peer(path)
    for i, name in enumerate(files):
        fd = os.open(name, os.O_RDWR | os.O_CREAT)
        type_, _, text = peer.call("Start", "sa{sv}",
                                   start_body("attached-%d" % i, [("output", "h", 0), ("attached", "b", 1)]),
                                   [fd])
        assert type_ == 2, text
    peer.socket.close()


def drop_privileges(uid, gids):
    """GIDS as in "64001,64002"; -1 is none."""
    uid = int(uid)
    os.setgroups([int(gid) for gid in gids.split(",") if int(gid) >= 0])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def attack(path, name, file, uid, gids):
    """Until FILE, which exists as soon as it is under way, is removed."""
    global HERE
    HERE = os.path.dirname(file)
    drop_privileges(uid, gids)
    sockets = []
    opened = globals()[name](path, sockets)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT))
    while os.path.exists(file):
        opened += globals()[name](path, sockets)
        time.sleep(0.01)
    print(name, opened, "times, or connections;", len(sockets), "at the end", flush=True)
    if name == "fuse":
        os._exit(0)  # as closing waits


def measure(path, times):
    """Connects for each call, as xentracectl does."""
    taken = []
    for _ in range(int(times)):
        began = time.monotonic()
        peer = Peer(path)
        assert peer.status()[0] == 2
        taken.append(time.monotonic() - began)
        peer.socket.close()
        time.sleep(0.02)
    print(round(statistics.median(taken) * 1e6))


if __name__ == "__main__":
    {"attack": attack, "measure": measure, "leak": leak,
     "attached": attached, "never-closed": never_closed, "stay": stay}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
