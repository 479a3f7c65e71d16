#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that call Status without end, and one that measures how long it waits meanwhile.

flood.py SOCKET flood SECONDS CONNECTIONS FILE GID   as nobody, in group GID, calls as fast as it can;
                                                     FILE exists once it does
flood.py SOCKET leftover CALLS   calls that arrive in one read, of which nothing more comes
flood.py SOCKET measure TIMES    prints the worst of so many calls, in milliseconds
"""

import os
import select
import sys
import time

from varlink import Client, message

END = b"\0"  # of a reply
BATCH = 48  # calls under way on each connection: their answers fit into a socket's buffer
CALL = message("Status", {})


def flood(path, seconds, count, file, gid):
    """Each connection always has calls under way. Prints how many answers there were."""
    os.setgroups([int(gid)])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    clients = {}
    answers = 0
    end = time.monotonic() + float(seconds)
    poll = select.poll()
    for _ in range(int(count)):
        client = Client(path)
        client.socket.setblocking(False)
        try:
            client.socket.send(CALL * BATCH)
        except ConnectionError:  # one user may have so many connections, and no more
            continue
        poll.register(client.socket, select.POLLIN)
        clients[client.socket.fileno()] = client
    connections = len(clients)
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT))
    while time.monotonic() < end and clients:
        for fd, _ in poll.poll(1000):
            try:
                data = clients[fd].socket.recv(1 << 20)
                if not data:
                    raise ConnectionError
                found = data.count(END)
                answers += found
                clients[fd].socket.send(CALL * found)
            except BlockingIOError:
                pass
            except ConnectionError:
                poll.unregister(fd)
                del clients[fd]
    print(answers, "answers on", connections, "connections")
    assert answers > 0


def leftover(path, calls):
    """All of them are answered, though nothing is sent after them."""
    client = Client(path)
    client.send(CALL * int(calls))
    for i in range(int(calls)):
        assert not client.receive().error, i


def measure(path, times):
    """Connects for each call, as xentracectl does."""
    worst = 0
    for _ in range(int(times)):
        began = time.monotonic()
        client = Client(path)
        assert not client.status().error
        worst = max(worst, time.monotonic() - began)
        client.socket.close()
        time.sleep(0.05)
    print(round(worst * 1000))


if __name__ == "__main__":
    {"flood": flood, "leftover": leftover, "measure": measure}[sys.argv[2]](sys.argv[1], *sys.argv[3:])
