#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that misbehave: hostile.py SOCKET ATTACK, one function each. Fails if the daemon lets them."""

import os
import random
import re
import socket
import struct
import sys
import time

from bus import HELLO, Peer, start_body, string

BYE = 6  # seconds; the daemon gives a handshake 2


def raw(path, data=b""):
    peer = Peer(path, authenticate=False)
    if data:
        peer.send(data)
    return peer


def is_served(path):
    """Once there is room again: when that is depends on the machine."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if Peer(path).status()[0] == 2:
                return True
        except (ConnectionError, socket.timeout):
            pass
        time.sleep(0.1)
    return False


def garbage(path):
    noise = random.Random(1).randbytes(65536)
    for data in (noise, b"\0" + noise, b"\0" * 70000, b"GET / HTTP/1.0\r\n\r\n",
                 b"\0AUTH ANONYMOUS\r\nBEGIN\r\n", b"\0BEGIN\r\n", b"\0" + b"A" * 70000):
        try:
            peer = raw(path, data)
        except ConnectionError:
            continue
        assert peer.is_closed(BYE), data[:20]
    peer = Peer(path)
    peer.send(noise)
    assert peer.is_closed(BYE)


def silence(path):
    began = time.monotonic()
    peer = raw(path)
    assert peer.is_closed(BYE)
    assert time.monotonic() - began > 1, "it was given no time"


def half_a_handshake(path):
    peers = [raw(path, data) for data in (b"\0", b"\0AUTH EXTERNAL\r\n", b"\0AUTH EXTERNAL\r\nDATA\r\n")]
    for peer in peers:
        assert peer.is_closed(BYE)
    peer = raw(path, b"\0AUTH EXTERNAL ")
    end = time.monotonic() + BYE
    try:
        while time.monotonic() < end:  # a byte now and then does not earn more time
            peer.send(b"3")
            time.sleep(0.2)
    except ConnectionError:
        return
    raise AssertionError("it waits for ever")


def crowd(path):
    """100 connections; as soon as they are dropped everybody is served again."""
    peers = [raw(path) for _ in range(100)]
    assert is_served(path)
    del peers


def crowd_of_the_authenticated(path):
    """They may stay, but only so many; when they go there is room."""
    peers = []
    try:
        while len(peers) < 200:
            peers.append(Peer(path))
    except (ConnectionError, socket.timeout):
        pass
    assert 8 <= len(peers) < 200, len(peers)
    assert peers[0].status()[0] == 2
    for peer in peers:
        peer.socket.close()
    assert is_served(path)


def come_and_go(path):
    for _ in range(300):
        raw(path).socket.close()
        Peer(path).socket.close()


def huge_lengths(path):
    for body, fields in ((0xffffffff, 16), (0x7fffffff, 16), (120 << 20, 16), (16, 0xffffffff),
                         (16, 0x7fffffff), (0, 120 << 20), (1 << 27, 1 << 27)):
        peer = Peer(path)
        peer.send(struct.pack("<cBBBIII", b"l", 1, 0, 1, body, 1, fields) + b"\0" * 64)
        assert peer.is_closed(1), "it waits for so much"
        assert Peer(path).status()[0] == 2


def unfinished(path):
    peers = []
    for cut in (1, 15, 16, 17, 60, -1):
        peer = Peer(path)
        peer.send(peer.message("Status", "s", string(""))[:cut])
        peers.append(peer)
        assert Peer(path).status()[0] == 2
    peers[-1].send(b"\0")  # the last byte comes at last
    assert peers[-1].receive()[0] == 2
    for peer in peers[:-1]:
        assert peer.is_closed(BYE), "it waits for ever"


def deaf(path):
    """Asks and asks, and never reads an answer."""
    peer = Peer(path)
    peer.socket.settimeout(3)
    try:
        for _ in range(5000):
            peer.send(peer.message("Status", "s", string("")))
    except (ConnectionError, socket.timeout):
        pass
    assert Peer(path).status()[0] == 2
    end = time.monotonic() + BYE
    try:
        while time.monotonic() < end:
            peer.socket.settimeout(0.5)
            try:
                peer.send(b"l")
            except socket.timeout:
                pass
            time.sleep(0.1)
    except ConnectionError:
        return
    raise AssertionError("it keeps all answers for ever")


def descriptors_where_none_belong(path):
    null = os.open("/dev/null", os.O_RDWR)
    peer = Peer(path)
    assert peer.call("Status", "s", string(""), [null] * 2)[0] == 2
    for count in (3, 8, 50):  # more than any call has
        answer = peer.call("Status", "s", string(""), [null] * count)
        refused(answer)
        assert "2 descriptors at most" in answer[2], answer
    assert peer.status()[0] == 2
    peer = Peer(path)
    peer.send(b"garbage" * 9, [null] * 50)
    assert peer.is_closed(BYE)
    peers = []
    for _ in range(20):  # with messages that never end
        peer = Peer(path)
        peer.send(peer.message("Status", "s", string(""), 50)[:20], [null] * 50)
        peers.append(peer)
    assert Peer(path).status()[0] == 2
    peer = raw(path)  # with the handshake
    peer.send(HELLO, [null])
    assert peer.is_closed(BYE)


def miscounted_descriptors(path):
    """libsystemd 252 drops such a message, but keeps its descriptors open for good."""
    null = os.open("/dev/null", os.O_RDWR)
    peer = Peer(path)
    peer.send(peer.message("Status", "s", string("")), [null] * 3)  # more than it says
    assert peer.is_closed(1)
    peer = Peer(path)
    peer.send(peer.message("Status", "s", string(""), 3), [null])  # fewer
    assert peer.is_closed(1)


def refused(answer):
    assert answer[0] == 3, answer
    assert answer[2], answer


def wrong_types(path):
    peer = Peer(path)
    for entries in ([("events", "u", 1)], [("time-usec", "s", "soon")], [("time-usec", "u", 1)],
                    [("discard", "u", 1)], [("output", "s", "/etc/passwd")], [("output", "u", 0)],
                    [("output", "h", 7)], [("sidecar", "h", 0)], [("nonsense", "s", "x")],
                    [("", "s", "")], [("output-path", "g", "s")], [("events", "s", "")],
                    [("events", "s", "x" * 65000)], [("cpus", "s", "0-" * 32000)],
                    [("cpus", "s", "0x" + "f" * 65000)],
                    [("buffer-pages", "u", 0xffffffff)], [("poll-usec", "t", 2 ** 64 - 1)]):
        refused(peer.start("hostile", entries))
    refused(peer.start("hostile", [("output", "h", 1)], [os.open("/dev/null", os.O_RDWR)]))
    for name in ("", "x" * 65000, "a\nb", "a/b", "../x", "\x1b[2J"):
        refused(peer.start(name, [("nonsense", "s", "x")]))
        if name:
            refused(peer.status(name))
            refused(peer.call("Stop", "s", string(name)))
    for sig, body in (("", b""), ("s", string("a")), ("u", b"\0\0\0\1"), ("sa{ss}", start_body("a")),
                      ("ss", string("a") + b"\0\0" + string("b"))):
        refused(peer.call("Start", sig, body))
        if sig != "s":
            refused(peer.call("Status", sig, body))
    refused(peer.call("Nothing", "", b""))
    peer.send(peer.message("Status", "s", b"\xff\xff\xff\xff"))  # a string that reaches beyond
    peer.is_closed(0.5)
    peer = Peer(path)
    peer.send(peer.message("Start", "sa{sv}", start_body("a", [("events", "s", "x")])[:-3] + b"abc"))
    peer.is_closed(0.5)
    assert Peer(path).status()[0] == 2


def ends(peer):
    """The capture, if there is one: when its time is over, or at once if that cannot be written to."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        type_, _, text = peer.status("hostile")
        if type_ == 3 or re.search('"state": *"ended"', text):
            return True
        time.sleep(0.1)
    return False


def wrong_outputs(path):
    """While nothing is recorded: each is refused, or ends by itself, and nothing is left running."""
    reader, writer = os.pipe()
    socket_fd = socket.socket(socket.AF_UNIX)
    outputs = {
        "a directory": os.open("/", os.O_RDONLY),
        "read-only": os.open("/etc/passwd", os.O_RDONLY),
        "a path only": os.open("/etc/passwd", os.O_PATH),
        "the reading end": reader,
    }
    for what, fd in outputs.items():
        answer = Peer(path).start("hostile", [("output", "h", 0)], [fd])
        print(what, answer)
        refused(answer)
    for what, fd in {"an unconnected socket": socket_fd.fileno(),
                     "/dev/full": os.open("/dev/full", os.O_WRONLY),
                     "an eventfd": os.eventfd(0),
                     "a memfd of 0 bytes": os.memfd_create("x"),
                     "a sealed memfd": sealed()}.items():
        peer = Peer(path)
        answer = peer.start("hostile", [("output", "h", 0), ("time-usec", "t", 300000)], [fd])
        print(what, answer[0], answer[2][:300])
        assert ends(peer), what
    both = os.memfd_create("both")
    peer = Peer(path)
    peer.start("hostile", [("output", "h", 0), ("sidecar", "h", 0), ("time-usec", "t", 200000)], [both])
    assert ends(peer)
    refused(peer.start("hostile", [("output", "h", 0), ("sidecar", "h", 1)],
                       [os.memfd_create("x"), writer]))
    answer = peer.start("hostile", [("output", "h", 0), ("output-path", "s", "/etc/passwd\n\x1b[2J"),
                                    ("time-usec", "t", 100000)],
                        [os.open(path + ".own", os.O_RDWR | os.O_CREAT)])
    assert answer[0] == 2, answer
    assert ends(peer)
    assert peer.start("gone", [("attached", "b", 1)])[0] == 2


def sealed():
    import fcntl
    fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(fd, 1033, 0x2 | 0x4)  # F_ADD_SEALS: shrink, grow
    return fd


def start_and_leave(path):
    """Leaves before the answer: the session that ends with it ends."""
    for i in range(20):
        peer = Peer(path)
        peer.send(peer.message("Start", "sa{sv}", start_body("leaver-%d" % i, [("attached", "b", 1)])))
        peer.socket.close()
        time.sleep(0.1)


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
