#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Many clients that misbehave at once, and one that measures meanwhile.

clients.py SOCKET attack NAME FILE UID GIDS   as UID, in groups GIDS alone, or in none with -1, until
                                              FILE is removed; it exists as soon as it is under way
clients.py SOCKET measure TIMES    prints how long Status takes, in the median and at most, and what other
                                   calls take at most, in microseconds
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
import sys
import time

from varlink import MESSAGE_MAX, Client, message

MIB = 1 << 20
STATUS = message("Status", {})


def connect(path, data=b""):
    client = Client(path)
    client.socket.setblocking(False)
    if data:
        client.socket.send(data)
    return client.socket


def push(sockets, data):
    """As much of DATA as each takes."""
    for sock in sockets:
        try:
            while sock.send(data):
                pass
        except OSError:  # it is full, or closed
            pass


def again(path, sockets, count, first=b""):
    """Connections that were closed are opened again, up to COUNT: how many were."""
    poll = select.poll()
    for sock in sockets:
        poll.register(sock, 0)  # POLLHUP is reported anyway
    gone = {fd for fd, _ in poll.poll(0)}
    sockets[:] = [sock for sock in sockets if sock.fileno() not in gone]
    opened = 0
    while len(sockets) < count:
        try:
            sockets.append(connect(path, first))
            opened += 1
        except OSError:
            break  # refused, or the backlog is full: later
    return opened


def crowd(path, sockets):
    """1,000 connections that never say anything."""
    return again(path, sockets, 1000)


def half_open(path, sockets):
    """200 in the middle of their first message, a byte now and then."""
    opened = again(path, sockets, 200, STATUS[:10])
    for sock in sockets:
        try:
            sock.send(b" ")
        except OSError:
            pass
    return opened


def idle(path, sockets):
    """As many as may be, and silent after one call."""
    return again(path, sockets, 100, STATUS)


def garbage(path, sockets):
    noise = os.urandom(65536)
    opened = again(path, sockets, 50)
    for i, sock in enumerate(sockets):
        try:
            sock.send(noise[i:])
        except OSError:
            pass
    return opened


def unfinished(path, sockets):
    """Eight messages without an end, of which everything comes that is taken."""
    opened = again(path, sockets, 8, STATUS[:-2])
    push(sockets, b" " * MIB)
    return opened


def almost(path, sockets):
    """Messages of 64 KiB, without their last byte."""
    return again(path, sockets, 50, STATUS[:-2] + b" " * (MESSAGE_MAX - len(STATUS)) + b"}")


def bombs(path, sockets):
    """Messages of 64 KiB that a parser makes a hundred times as much of, one after the other."""
    bomb = STATUS[:-4] + b"[%s0]}\0" % (b"{}," * ((MESSAGE_MAX - 100) // 3))
    opened = again(path, sockets, 50)
    push(sockets, bomb)
    return opened


def nested(path, sockets):
    deep = STATUS[:-4] + b"[" * 30000 + b"]" * 30000 + b"}\0"
    opened = again(path, sockets, 50)
    push(sockets, deep)
    return opened


def deaf(path, sockets):
    """Calls without end, and no answer is read."""
    opened = again(path, sockets, 50)
    push(sockets, STATUS * 100)
    return opened


def deaf_streams(path, sockets):
    """Streams of which nothing is read."""
    return again(path, sockets, 50, message("Status", {"interval_usec": 100000}, more=True))


def streams(path, sockets):
    """Streams that are read, and left."""
    opened = again(path, sockets, 8, message("Status", {"interval_usec": 100000}, more=True))
    for sock in sockets:
        try:
            sock.recv(MIB)
        except OSError:
            pass
    if sockets and opened == 0:
        sockets.pop(0).close()
    return opened


def oneway(path, sockets):
    """Calls that nobody is to answer, of each kind."""
    calls = b"".join(message(method, {"name": "theirs"} if method != "Files" else {}, oneway=True)
                     for method in ("Start", "Stop", "Status", "Snapshot", "Trigger", "Files", "Nonsense"))
    opened = again(path, sockets, 50)
    push(sockets, calls)
    return opened


def upgrade(path, sockets):
    opened = again(path, sockets, 50)
    push(sockets, message("Status", {}, upgrade=True))
    return opened


def wrong_types(path, sockets):
    """Calls with parameters of every wrong type; the connections stay, as errors are answers."""
    calls = b"".join(message(method, parameters)
                     for method in ("Start", "Stop", "Status", "Snapshot", "Trigger", "Nonsense")
                     for parameters in ({"name": 1}, {"name": []}, {"a": "b"}, {"name": 10 ** 300}))
    opened = again(path, sockets, 50)
    for sock in sockets:
        try:
            sock.send(calls)
            while sock.recv(MIB):
                pass
        except OSError:
            pass
    return opened


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
    counts = {"answered": 0, "refused": 0, "closed": 0}
    for turn in range(4):
        for fd in FDS.values():
            own = os.open(HERE + "/good", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
            pair = ([fd, own], [own, fd], [fd], [fd, fd])[turn]
            parameters = {"output_fd": 0} | ({"sidecar_fd": 1} if len(pair) > 1 else {})
            method = "Start" if turn % 2 else "Snapshot"
            if method == "Start":
                parameters |= {"time_usec": 100000, "attached": True}
            reply = ask(path, method, parameters, pair)
            counts["closed" if not reply else "refused" if reply.error else "answered"] += 1
            os.close(own)
    # Later on it may be disconnected: it passes faster than a busy machine closes.
    assert counts["refused"] > 0 or not is_first, counts
    return sum(counts.values())


def ask(path, method, parameters, fds=()):
    """The reply; None if the daemon did not serve it."""
    try:
        client = Client(path)
        reply = client.call(method, parameters, fds)
        client.socket.close()
        return reply
    except OSError:
        return None


def snapshots(path, _):
    """As fast as it goes, with the crash's own label."""
    return sum(ask(path, "Snapshot", {"label": "crash"}) is not None for _ in range(5))


def names(path, _):
    """Those of root's segments, of now and to come."""
    return sum(ask(path, "Snapshot", {"max_size_bytes": MIB, "name": name}) is not None
               for name in ["numbered"] + ["numbered.%05d" % i for i in range(1, 40)])


def unread(path, sockets, methods=("Snapshot", "Start"), parameters={}, more=False):
    """Snapshots and captures into pipes that nobody reads: those that were given up are asked anew."""
    poll = select.poll()
    for client, _ in sockets:
        poll.register(client.socket, select.POLLIN)
    answered = {fd for fd, _ in poll.poll(0)}
    for item in [item for item in sockets if item[0].socket.fileno() in answered]:
        os.close(item[1])
        sockets.remove(item)
    opened = 0
    while len(sockets) < 7:
        try:
            client = Client(path)
        except OSError:
            break
        method = methods[len(sockets) % len(methods)]
        read_end, write_end = os.pipe()
        call = {"output_fd": 0} | (parameters if method == "Snapshot" else {})
        try:
            client.send(message(method, call, **({"more": True} if more else {})), [write_end])
        except OSError:  # refused: later
            os.close(read_end)
            break
        finally:
            os.close(write_end)
        sockets.append((client, read_end))
        opened += 1
    return opened


def unread_views(path, sockets):
    return unread(path, sockets, ("Snapshot",), {"last_usec": 1000000})


def unread_live_views(path, sockets):
    """The same as streams."""
    return unread(path, sockets, ("Snapshot",), {"last_usec": 1000000, "interval_usec": 1000000}, True)


def rings(path, sockets):
    """All of dom0's memory, and captures that nobody ends."""
    for _ in range(4):
        ask(path, "Start", {"output_fd": 0, "memory_bytes": 16 << 30}, [os.memfd_create("ring")])
    while len(sockets) < 6:
        sockets.append(Client(path))
        for _ in range(2):
            sockets[-1].call("Start", {"output_fd": 0, "attached": True}, [os.memfd_create("attached")])
    return 1


def fuse(path, _):
    """Output and sidecar on a file system that stops to answer; descriptors for calls that need none."""
    if not FDS:
        FDS.update({name: os.open(HERE + "/fuse/" + name, os.O_RDWR) for name in ("output", "sidecar")})
        os.close(os.open(HERE + "/hang", os.O_WRONLY | os.O_CREAT))
    replies = [ask(path, method, parameters, fds)
               for method in ("Start", "Snapshot", "Status")
               for parameters, fds in (
                   ({"output_fd": 0}, [FDS["output"]]),
                   ({"output_fd": 0, "sidecar_fd": 1}, [os.memfd_create("x"), FDS["sidecar"]]))]
    assert all(reply is None or reply.error for reply in replies), [str(reply) for reply in replies]
    return len(replies)


def never_closed(path, file, hang, uid, gid):
    """With calls that need no descriptor; FILE's file system stops to answer."""
    drop_privileges(uid, gid)
    fd = os.open(file, os.O_RDWR)
    print("opened", flush=True)
    while not os.path.exists(hang):
        time.sleep(0.05)
    for i in range(200):
        reply = ask(path, "Snapshot", {"output_fd": 0}, [fd])
        if reply is None or "not closed yet" in reply.sentence:
            break
    print("after", i, reply and reply.sentence, flush=True)
    os._exit(0)  # closing would wait


def stay(path, file, uid, gids):
    drop_privileges(uid, gids)
    client = Client(path)
    assert not client.status().error
    print("connected", flush=True)
    while not os.path.exists(file):
        time.sleep(0.05)
    try:
        reply = client.status()
        print("status", "refused" if reply.error else "answered")
        print(client.call("Start", {"output_fd": 0, "attached": True}, [os.pipe()[1]]))
    except ConnectionError:
        print("disconnected")


def attached(path, *files):
    client = Client(path)
    for i, name in enumerate(files):
        fd = os.open(name, os.O_RDWR | os.O_CREAT)
        reply = client.start("attached-%d" % i, {"output_fd": 0, "attached": True}, [fd])
        assert not reply.error, reply
    client.socket.close()


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


def timed(function):
    began = time.monotonic()
    reply = function()
    return time.monotonic() - began, reply


def measure(path, times):
    """Connects for each call, as xentracectl does."""
    status, others = [], []
    for _ in range(int(times)):
        seconds, reply = timed(lambda: Client(path).status())
        assert not reply.error, reply
        status.append(seconds)
        time.sleep(0.02)
    read_end, write_end = os.pipe()
    client = Client(path)
    for method, parameters, fds in (("Files", {}, ()), ("Trigger", {"name": "none"}, ()),
                                    ("Start", {"output_fd": 0, "attached": True, "events": "gen"}, [write_end])):
        seconds, reply = timed(lambda: client.call(method, parameters, fds))
        others.append(seconds)
        if reply.error == "Busy" and os.environ.get("BUSY"):  # root itself has passed too many
            break
        assert not reply.error or method == "Trigger", reply
    else:
        others.append(timed(lambda: client.call("Abort", {"name": reply.document["name"]}))[0])
    print(round(statistics.median(status) * 1e6), round(max(status) * 1e6), round(max(others) * 1e6))


if __name__ == "__main__":
    {"attack": attack, "measure": measure, "attached": attached, "never-closed": never_closed,
     "stay": stay}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
