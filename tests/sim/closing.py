#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Descriptors whose last close waits, given to the daemon in each way in which it may have to drop them.

closing.py SOCKET KIND WAY FILE UID GIDS   as UID, in groups GIDS, again and again until FILE is removed;
                                           FILE exists as soon as it is under way

A KIND is a list of descriptors. FILE's folder may be written to. It has "fuse", a file system of outputs.py
that stops to answer when "hang" exists, and "frozen", one that root freezes when "opened" exists: then
"hang" does. A WAY is what is done with them."""

import mmap
import os
import socket
import struct
import sys
import threading
import time

from clients import drop_privileges
from varlink import FDS_MAX, MESSAGE_MAX, Client, message

STATUS = message("Status", {})
NULL = os.open("/dev/null", os.O_RDWR)
HERE = ""


def in_background(function, *arguments):
    def run():
        try:
            function(*arguments)
        except OSError:  # what it waited for has failed
            pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


# --- Kinds: lists of descriptors. An open file is one that nobody else has, once it is closed here. ---


class Linger:
    """TCP sockets with SO_LINGER, whose peer reads nothing. Source: tcp_close() waits, in sock_close()."""
    closes = True  # here, after it was sent: that is not the last close

    def __init__(self):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(64)
        self.peers = []

    def open(self):
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
        sock.connect(self.listener.getsockname())
        self.peers.append(self.listener.accept()[0])
        sock.setblocking(False)
        try:
            while True:
                sock.send(b"x" * 65536)
        except BlockingIOError:
            return sock.detach()


class Nested(Linger):
    """Unix sockets with lingering ones in messages that nobody has read."""

    def open(self):
        left, right = socket.socketpair()
        inner = super().open()
        socket.send_fds(left, [b"x"], [inner])
        os.close(inner)
        left.close()
        return right.detach()


class Fuse:
    """Files whose server does not answer: flush, at each close."""
    closes = False  # that would wait, too

    def __init__(self):
        self.stock = [os.open(HERE + "/fuse/output", os.O_RDWR) for _ in range(8)]
        touch("hang")

    def open(self):
        return self.stock[0]


class Frozen:
    """Files without a name on a file system that is frozen: its inode is to be freed."""
    closes = True

    def __init__(self):
        self.stock = []
        for i in range(4 * FDS_MAX):
            name = HERE + "/frozen/%d" % i
            self.stock.append(os.open(name, os.O_RDWR | os.O_CREAT))
            os.unlink(name)
        touch("opened")
        while not os.path.exists(HERE + "/hang"):
            time.sleep(0.02)

    def open(self):
        return self.stock.pop() if self.stock else os.dup(NULL)


class Pipe:
    """Pipes whose lock is held, by a write(2) from memory that is not there: it is a page of FUSE."""
    closes = True

    def __init__(self):
        fd = os.open(HERE + "/fuse/page", os.O_RDONLY)
        self.page = memoryview(mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ))
        touch("hang")
        self.readers = []

    def open(self):
        reader, writer = os.pipe()
        self.readers.append(reader)
        holder = os.open("/proc/self/fd/%d" % writer, os.O_WRONLY)  # another open file of the pipe
        in_background(os.write, holder, self.page)
        time.sleep(0.01)
        return writer


KINDS = {"linger": Linger, "nested": Nested, "fuse": Fuse, "frozen": Frozen, "pipe": Pipe}


class Supply:
    """So many at a time as the ways ask for; few of those of which each takes a thread."""

    def __init__(self, kind):
        self.name = kind
        self.kind = KINDS[kind]()
        self.most = 24 if kind == "pipe" else 100000
        self.sent = 0

    def take(self, count):
        if self.sent >= self.most:
            return [os.dup(NULL) for _ in range(count)]
        self.sent += count
        return [self.kind.open() for _ in range(min(count, self.most))]

    def give(self, client, data, count, before=0):
        """Sends DATA with COUNT of them, after BEFORE others."""
        fds = self.take(count)
        try:
            client.send(data, [NULL] * before + fds)
            return 1
        except OSError:
            return 0
        finally:
            if self.kind.closes:
                for fd in fds:  # where the daemon was faster, it waits here
                    in_background(os.close, fd)


# --- Ways. Each returns how many messages went, and keeps what is to stay in KEPT. ---

KEPT = []


def connected(path):
    try:
        return Client(path, 5)
    except OSError:
        return None


def reply_of(client):
    try:
        return client.receive()
    except OSError:
        return None


def with_call(path, supply, data, count, before=0):
    client = connected(path)
    if not client:
        return 0
    sent = supply.give(client, data, count, before)
    reply_of(client)
    client.socket.close()
    return sent


def itself(_, supply):
    """Nobody else has it: the kind is what it is said to be."""
    fd, = supply.take(1)
    thread = in_background(os.close, fd)
    thread.join(0.5)
    assert thread.is_alive(), "its last close does not wait"
    return 1


def takes_none(path, supply):
    return with_call(path, supply, STATUS, 1) + with_call(path, supply, message("Nonsense"), 1)


def takes_fewer(path, supply):
    return (with_call(path, supply, message("Snapshot", {"output_fd": 0}), 2) +
            with_call(path, supply, message("Snapshot", {"last_usec": 1000000, "output_fd": 0, "sidecar_fd": 1}), 1))


def ninth(path, supply):
    return with_call(path, supply, STATUS, 1, before=8)


def all_253(path, supply):
    return (with_call(path, supply, STATUS, 3, before=FDS_MAX - 3) +
            with_call(path, supply, STATUS, 8 if supply.name == "pipe" else FDS_MAX))


def wrong_call(path, supply):
    """Read, and refused: no JSON, oneway, upgrade, indexes that were not sent, no right."""
    return sum(with_call(path, supply, data, 1) for data in (
        b"nonsense\0", message("Snapshot", {"output_fd": 0}, upgrade=True),
        message("Snapshot", {"output_fd": 7}), message("Start", {"output_fd": 0, "nonsense": 1})))


def no_reply(path, supply):
    client = connected(path)
    if not client:
        return 0
    sent = supply.give(client, message("Snapshot", {"output_fd": 0}, oneway=True), 1)
    client.socket.close()
    return sent


def never_finished(path, supply):
    """With the first byte, in the middle, byte for byte; it stays, or goes."""
    sent = 0
    for stays in (True, False):
        client = connected(path)
        if not client:
            break
        sent += supply.give(client, STATUS[:1], 1)
        sent += supply.give(client, STATUS[1:20], 2)
        for byte in STATUS[20:24]:
            sent += supply.give(client, bytes([byte]), 1)
        if stays:
            KEPT.append(client)
            del KEPT[:-8]
        else:
            client.socket.close()
    return sent


def at_the_door(path, supply):
    """Unread, of a connection that is refused: this user has its own already."""
    while len(KEPT) < 8 and (client := connected(path)):
        KEPT.append(client)
    sent = 0
    for _ in range(8):
        client = connected(path)
        if client:
            sent += supply.give(client, STATUS, 1) + supply.give(client, STATUS, 3)
            time.sleep(0.05)
            client.socket.close()
    return sent


def not_accepted(path, supply):
    """Unread, of connections that the daemon has not seen."""
    if KEPT:
        return 0
    for _ in range(8):
        KEPT.append(Client(path, 5))
        supply.give(KEPT[-1], STATUS, 2)
    return 8


def disconnected(path, supply):
    """Unread, after what the daemon disconnects for; and of one that has gone."""
    sent = 0
    for first in (b"nonsense\0", b"x" * (MESSAGE_MAX + 1), message("Status", {"interval_usec": 50000}, more=True)):
        client = connected(path)
        if not client:
            break
        try:
            client.send(first)
        except OSError:
            continue
        sent += supply.give(client, STATUS, 1) + supply.give(client, STATUS, 5)
        if first.endswith(b"\0"):
            time.sleep(0.1)
        client.socket.close()
    return sent


def deaf(path, supply):
    """Unread, of one that is disconnected because it does not read."""
    client = connected(path)
    if not client:
        return 0
    client.socket.settimeout(0.2)
    sent = 0
    try:
        while True:
            client.send(STATUS * 8)
    except OSError:
        pass
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    for _ in range(4):
        sent += supply.give(client, STATUS, 1)
    KEPT.append(client)
    del KEPT[:-4]
    return sent


def full_queues(path, supply):
    """More than may wait, then more; and unread ones."""
    sent = 0
    for _ in range(20):
        sent += with_call(path, supply, STATUS, 5)
        client = connected(path)
        if client:
            sent += supply.give(client, b"nonsense\0", 1) + supply.give(client, STATUS, 1)
            client.socket.close()
    return sent


def output(path, supply):
    """Of a capture and of snapshots, which an operator may take."""
    sent = 0
    for method, parameters in (("Start", {"time_usec": 200000}), ("Start", {"attached": True}), ("Snapshot", {}),
                               ("Snapshot", {"last_usec": 1000000})):
        for files in ({"output_fd": 0}, {"output_fd": 0, "sidecar_fd": 1}):
            client = connected(path)
            if not client:
                return sent
            client.socket.settimeout(1)
            sent += supply.give(client, message(method, parameters | files), len(files))
            reply_of(client)
            client.socket.close()
    return sent


def touch(name):
    os.close(os.open(HERE + "/" + name, os.O_WRONLY | os.O_CREAT, 0o666))


def main(path, kind, way, file, uid, gids):
    global HERE
    HERE = os.path.dirname(file)
    drop_privileges(uid, gids)
    supply = Supply(kind)
    sent = globals()[way](path, supply)
    touch(os.path.basename(file))
    while os.path.exists(file):
        sent += globals()[way](path, supply) if way != "itself" else 0
        time.sleep(0.02)
    print(kind, way, sent, "messages", flush=True)
    os._exit(0)  # as closing waits


if __name__ == "__main__":
    main(*sys.argv[1:])
