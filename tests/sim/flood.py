#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that call Status without end, and one that measures how long it waits meanwhile.

flood.py SOCKET flood SECONDS CONNECTIONS FILE GID   as nobody, in group GID, calls as fast as it can;
                                                     FILE exists once it does
flood.py SOCKET leftover CALLS   calls that arrive in one read with the handshake
flood.py SOCKET measure TIMES    prints the worst of so many calls, in milliseconds
"""

import os
import select
import sys
import time

from bus import Peer, string

ANSWER = b'xentraced-status"'
HANDSHAKE = b"\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"
BATCH = 48  # calls under way on each connection: their answers fit into a socket's buffer


def flood(path, seconds, count, file, gid):
    """Each connection always has calls under way. Prints how many answers there were."""
    os.setgroups([int(gid)])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    peers = {}
    tails = {}  # an answer's first words may come in two pieces
    answers = 0
    end = time.monotonic() + float(seconds)
    poll = select.poll()
    for _ in range(int(count)):
        peer = Peer(path, authenticate=False)
        peer.socket.setblocking(False)
        poll.register(peer.socket, select.POLLIN)
        peers[peer.socket.fileno()] = peer
        call = peer.message("Status", "s", string(""))  # its serial may come again
        try:
            peer.socket.send(HANDSHAKE + call * BATCH)
        except ConnectionError:  # one user may have so many connections, and no more
            poll.unregister(peer.socket)
            del peers[peer.socket.fileno()]
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT))
    while time.monotonic() < end and peers:
        for fd, _ in poll.poll(1000):
            peer = peers[fd]
            try:
                data = peer.socket.recv(1 << 20)
                if not data:
                    raise ConnectionError
                data = tails.get(fd, b"") + data
                tails[fd] = data[-len(ANSWER) + 1:]
                found = data.count(ANSWER)
                answers += found
                peer.socket.send(call * found)
            except BlockingIOError:
                pass
            except ConnectionError:
                poll.unregister(fd)
                del peers[fd]
    print(answers, "answers on", len(tails), "connections")
    assert answers > 0


def leftover(path, calls):
    """All of them are answered, though nothing is sent after the handshake."""
    peer = Peer(path, authenticate=False)
    peer.send(HANDSHAKE + b"".join(peer.message("Status", "s", string("")) for _ in range(int(calls))))
    while peer.input.count(b"\r\n") < 3:
        peer.input += peer.socket.recv(4096)
    peer.input = peer.input.split(b"\r\n", 3)[3]
    for i in range(int(calls)):
        assert peer.receive()[0] == 2, i


def measure(path, times):
    """Connects for each call, as xentracectl does."""
    worst = 0
    for _ in range(int(times)):
        began = time.monotonic()
        peer = Peer(path)
        assert peer.status()[0] == 2
        worst = max(worst, time.monotonic() - began)
        peer.socket.close()
        time.sleep(0.05)
    print(round(worst * 1000))


if __name__ == "__main__":
    {"flood": flood, "leftover": leftover, "measure": measure}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
