#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that misbehave: hostile.py SOCKET ATTACK, one function each. Fails if the daemon lets them."""

import os
import random
import re
import socket
import sys
import time

from varlink import FDS_MAX, MESSAGE_MAX, Client, message

BYE = 6  # seconds; the daemon gives an unfinished message 2, and replies that are not read 5
STATUS = message("Status", {})


def raw(path, data=b"", fds=()):
    client = Client(path)
    if data:
        client.send(data, fds)
    return client


def is_served(path):
    """Once there is room again: when that is depends on the machine."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            if not Client(path).status().error:
                return True
        except (ConnectionError, socket.timeout):
            pass
        time.sleep(0.1)
    return False


def serves(path):
    """Somebody else, at once."""
    reply = Client(path).status()
    assert not reply.error, reply


def answer(client):
    """A reply, or None if the connection was closed instead."""
    try:
        return client.receive()
    except ConnectionError:
        return None


def refused(reply, words=""):
    """An error with a sentence, or a standard one with the field."""
    assert reply is not None and reply.error, str(reply)
    assert reply.sentence or reply.parameters or reply.error in ("MethodNotImplemented", "ExpectedMore"), reply
    assert words in reply.text(), reply


def refused_or_closed(path, data, fds=()):
    """DATA has one error for an answer, or none; nothing more is answered if the connection is closed."""
    try:
        client = raw(path, data, fds)
    except ConnectionError:
        return
    reply = answer(client)
    assert reply is None or reply.error, (data[:60], str(reply))


# --- Text that is no call. ---


def garbage(path):
    noise = random.Random(1).randbytes(65536)
    for data in (noise, b"\0" + noise, b"\0" * 70000, b"GET / HTTP/1.0\r\n\r\n\0",
                 b"\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n\0",  # an old client
                 b"\0", b"{}\0", b"null\0", b"[]\0", b"17\0", b'"Status"\0', b"\0" + b"A" * 70000):
        refused_or_closed(path, data)
    for data in (b"}", b"{}", b"[]", b",", b"x", b"//", b"/* */", b"NaN"):
        refused_or_closed(path, STATUS[:-1] + data + b"\0")
        refused_or_closed(path, data + STATUS)
    client = Client(path)
    assert not client.status().error
    client.send(noise)
    assert client.is_closed(BYE)


def nested(path):
    """10,000 deep, and as deep as a message can be; in and beside what is read."""
    for depth in (10000, 32000):
        for left, right in (("[", "]"), ('{"a":', "}")):
            deep = left * min(depth, 60000 // len(left + right)) + "1" + right * min(depth, 60000 // len(left + right))
            call = '{"method":"org.xentraced.Control.Status","parameters":%s}'
            refused_or_closed(path, (call % deep).encode() + b"\0")
            refused_or_closed(path, (call % ('{"name":%s}' % deep)).encode() + b"\0")
            refused_or_closed(path, deep.encode() + b"\0")
            refused_or_closed(path, (deep[:len(deep) // 2] + "\0").encode())  # never closed
    serves(path)


def bombs(path):
    """64 KiB that a parser makes a hundred times as much of."""
    for element in ("{},", "[],", "0,", '"",', '{"a":0},'):
        many = element * ((MESSAGE_MAX - 200) // len(element))
        for text in ("[%s0]" % many, '{"name":[%s0]}' % many):
            data = ('{"method":"org.xentraced.Control.Status","parameters":%s}' % text).encode() + b"\0"
            assert len(data) <= MESSAGE_MAX
            refused_or_closed(path, data)
    keys = ",".join('"%d":0' % i for i in range(6000))
    refused_or_closed(path, ('{"method":"org.xentraced.Control.Status","parameters":{%s}}' % keys).encode() + b"\0")
    serves(path)


def nul_inside(path):
    refused_or_closed(path, STATUS[:20] + b"\0" + STATUS[20:])
    for name in ("a\0b", "\0"):  # as \u0000: a name that would be another in C
        refused_or_closed(path, message("Status", {"name": name}))
        refused_or_closed(path, message("Status\0x", {}))
    serves(path)


def invalid_utf8(path):
    for bad in (b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\\ud800"):
        refused_or_closed(path, message("Status", {"name": "@"}).replace(b"@", bad))
        refused_or_closed(path, message("Status", {"@": 1}).replace(b"@", bad))
    serves(path)


def duplicate_keys(path):
    """Whichever counts, one reply comes, and the same one counts for rights and for the deed."""
    for data in (b'{"method":"org.xentraced.Control.Nonsense","method":"org.xentraced.Control.Status"}\0',
                 b'{"method":"org.xentraced.Control.Status","method":"org.xentraced.Control.Nonsense"}\0',
                 b'{"method":"org.xentraced.Control.Status","parameters":{"name":"no"},"parameters":{}}\0',
                 b'{"method":"org.xentraced.Control.Status","parameters":{"name":"no","name":"such"}}\0'):
        client = raw(path, data)
        if answer(client) is not None:
            assert not client.status().error  # the next reply is the next call's
    serves(path)


def two_in_one_segment(path):
    client = raw(path, STATUS + message("Status", {"name": "none"}) + message("Files") + STATUS)
    errors = [client.receive().error for _ in range(4)]
    assert errors == [None, "NoSuchSession", None, None], errors
    refused_or_closed(path, STATUS[:-1] + STATUS)  # two objects, and one end
    client = raw(path, STATUS + b"nonsense\0")
    assert not client.receive().error
    reply = answer(client)
    assert reply is None or reply.error, reply


# --- Messages that take their time, or their room. ---


def silence(path):
    """It may stay, as a client between two calls may."""
    client = raw(path)
    assert not client.is_closed(3)
    client.socket.settimeout(10)
    assert not client.status().error


def slow(path):
    """A byte now and then does not earn more time."""
    for data in (b"", b"{", STATUS[:-10]):
        client = raw(path, data)
        began = time.monotonic()
        try:
            while time.monotonic() < began + BYE:
                client.send(b" ")
                time.sleep(0.2)
        except ConnectionError:
            assert time.monotonic() - began > 1, "it was given no time"
            continue
        raise AssertionError("it waits for ever")


def crowd(path):
    """100 connections that begin a message; as soon as they are dropped everybody is served again."""
    clients = []
    for _ in range(100):
        try:
            clients.append(raw(path, b"{"))
        except ConnectionError:
            pass
    assert is_served(path)
    del clients


def crowd_of_the_idle(path):
    """They may stay, but only so many; when they go there is room."""
    clients = []
    try:
        while len(clients) < 200:
            client = Client(path)
            if client.status().error:
                break
            clients.append(client)
    except (ConnectionError, socket.timeout):
        pass
    assert 8 <= len(clients) < 200, len(clients)
    assert not clients[0].status().error
    for client in clients:
        client.socket.close()
    assert is_served(path)


def come_and_go(path):
    for _ in range(300):
        raw(path).socket.close()
        raw(path, STATUS).socket.close()  # its reply finds nobody


def too_long(path):
    """64 KiB with the end are a message, and one byte more is none, however little of it came."""
    head = b'{"method":"org.xentraced.Control.Status","parameters":{}'
    for length, is_message in ((MESSAGE_MAX, True), (MESSAGE_MAX + 1, False), (MESSAGE_MAX * 2, False)):
        client = Client(path)
        try:
            client.send(head + b" " * (length - len(head) - 2) + b"}\0")
            reply = answer(client)
        except ConnectionError:
            reply = None
        if is_message:
            assert reply and not reply.error, (length, str(reply))
        else:
            assert reply is None or reply.error, (length, str(reply))
    client = Client(path)
    try:
        for _ in range(1920):  # 120 MiB, without an end
            client.send(b" " * MESSAGE_MAX)
        raise AssertionError("it takes so much")
    except ConnectionError:
        pass
    serves(path)


def unfinished(path):
    clients = []
    for cut in (1, 15, 16, 17, 30, -1):
        client = raw(path, STATUS[:cut])
        clients.append(client)
        serves(path)
    clients[-1].send(b"\0")  # the last byte comes at last
    assert not clients[-1].receive().error
    for client in clients[:-1]:
        assert client.is_closed(BYE), "it waits for ever"


def deaf(path):
    """Asks and asks, and never reads an answer."""
    client = Client(path)
    client.socket.settimeout(3)
    try:
        for _ in range(5000):
            client.send(STATUS)
    except (ConnectionError, socket.timeout):
        pass
    serves(path)
    is_disconnected_unread(client)


def is_disconnected_unread(client):
    """Within BYE, though nothing is read: what is sent then finds nobody."""
    end = time.monotonic() + BYE
    client.socket.settimeout(0.5)
    while time.monotonic() < end:
        try:
            client.send(STATUS)
        except socket.timeout:
            pass
        except ConnectionError:
            return
        time.sleep(0.1)
    raise AssertionError("it keeps all answers for ever")


# --- Streams. ---


def more_without_a_stream(path):
    for method, parameters in (("Files", {}), ("org.varlink.service.GetInfo", {}), ("Stop", {"name": "none"})):
        client = raw(path, message(method, parameters, more=True))
        reply = answer(client)
        assert reply is None or not reply.continues, (method, str(reply))
        assert reply is None or not client.status().error, method  # and no second reply
    refused_or_closed(path, message("Snapshot", {"last_usec": 1000000, "interval_usec": 1000000}))  # ExpectedMore
    refused_or_closed(path, message("Status", {"interval_usec": -1}, more=True))


def deaf_in_a_stream(path):
    """Reads two replies of a stream, then none."""
    client = Client(path)
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send(message("Status", {"interval_usec": 100000}, more=True))
    for _ in range(2):
        assert client.receive().continues
    end = time.monotonic() + 60
    while time.monotonic() < end:  # until the socket is full, and 5 s
        serves(path)
        if has_hung_up(client):
            return
        time.sleep(0.2)
    raise AssertionError("it keeps the stream for ever")


def has_hung_up(client):
    import select
    poll = select.poll()
    poll.register(client.socket, 0)
    return bool(poll.poll(0))


def leaves_a_stream(path):
    for replies in (0, 1, 3):
        for _ in range(20):
            client = Client(path)
            client.send(message("Status", {"interval_usec": 100000}, more=True))
            for _ in range(replies):
                assert client.receive().continues
            client.socket.close()
    assert is_served(path)


def call_in_a_stream(path):
    """One call at a time: the next waits in the socket."""
    client = Client(path)
    client.send(message("Status", {"interval_usec": 200000}, more=True) + message("Files"))
    for _ in range(5):
        assert client.receive().continues
    client.socket.close()
    serves(path)


def oneway(path):
    """Nothing answers it; and nothing is done for one that would change something."""
    client = raw(path, message("Status", {}, oneway=True) + message("Status", {"name": "none"}))
    assert client.receive().error == "NoSuchSession"
    for method, parameters in (("Start", {"name": "oneway"}), ("Snapshot", {"name": "oneway"}), ("Reload", {}),
                               ("Vacuum", {"max_use_bytes": 1}), ("StopRecorder", {}), ("Stop", {}),
                               ("Abort", {"name": "numbered"}), ("Remove", {"names": ["numbered"]})):
        client = raw(path, message(method, parameters, oneway=True))
        client.is_closed(0.3)
    reply = Client(path).status()
    assert '"oneway"' not in reply.text(), reply
    assert re.search('"state": *"running"', reply.text()), reply  # what Stop and Abort would have ended


def upgrade(path):
    for method in ("Status", "Files", "org.varlink.service.GetInfo"):
        refused_or_closed(path, message(method, {}, upgrade=True))
    serves(path)


# --- Descriptors. ---


def descriptors_where_none_belong(path):
    null = os.open("/dev/null", os.O_RDWR)
    for count in (1, 2, 3, 8, 9, 50, FDS_MAX):
        refused_or_closed(path, STATUS, [null] * count)
        refused_or_closed(path, message("org.varlink.service.GetInfo"), [null] * count)
        refused_or_closed(path, message("Nonsense"), [null] * count)
        refused_or_closed(path, b"garbage\0", [null] * count)
        raw(path, b"garbage", [null] * count)
    for count in (3, 8, 9, 50, FDS_MAX):  # more than the call has
        refused_or_closed(path, message("Snapshot", {"output_fd": 0, "sidecar_fd": 1}), [null] * count)
    refused_or_closed(path, message("Start", {"name": "unnamed"}), [null])  # which nothing names
    refused_or_closed(path, STATUS * 2, [null])  # between two calls
    clients = [raw(path, STATUS[:20], [null] * 50) for _ in range(20)]  # of messages that never end
    serves(path)
    for client in clients:
        assert client.is_closed(BYE)
    clients = []
    for i in range(20):  # byte for byte, and each with descriptors
        client = Client(path)
        clients.append(client)
        try:
            for byte in STATUS:
                client.send(bytes([byte]), [null] * (i + 1))
        except ConnectionError:
            continue
        reply = answer(client)
        assert reply is None or reply.error, reply
    serves(path)


def miscounted_descriptors(path):
    """Indexes that are out of range, of one that was not sent, the same twice, and no indexes."""
    null = os.open("/dev/null", os.O_RDWR)
    for method in ("Start", "Snapshot"):
        for index in (-1, 1, 2, 252, 253, 2 ** 31, 2 ** 32, 2 ** 63 - 1, -2 ** 63, 2 ** 64, 10 ** 400, 0.5, 1e300,
                      "0", True, [0], {}):
            refused(Client(path).call(method, {"output_fd": index}, [null]))
            refused(Client(path).call(method, {"output_fd": 0, "sidecar_fd": index}, [null]))
        refused(Client(path).call(method, {"output_fd": 0}))  # none was sent
        refused(Client(path).call(method, {"output_fd": 0, "sidecar_fd": 0}, [null]))
        refused(Client(path).call(method, {"output_fd": 1, "sidecar_fd": 1}, [null, null]))
        refused_or_closed(path, message(method, {"output_fd": 1}), [null, null])  # the first is nobody's
        client = Client(path)
        client.send(message(method, {"output_fd": 0}))  # of the call before
        client.send(STATUS, [null])
        refused(client.receive())
    serves(path)


# --- Calls that are wrong. ---


def wrong_types(path):
    client = Client(path)
    for entry in ({"events": 1}, {"events": []}, {"events": {}}, {"events": True}, {"time_usec": "soon"},
                  {"time_usec": 1.5}, {"time_usec": -1}, {"time_usec": 2 ** 63}, {"time_usec": 2 ** 64},
                  {"time_usec": 10 ** 400}, {"time_usec": -10 ** 400}, {"time_usec": 1e300}, {"time_usec": []},
                  {"memory_bytes": -1}, {"memory_bytes": 2 ** 63 - 1}, {"max_size_bytes": -2 ** 63},
                  {"discard": 1}, {"discard": "true"}, {"output_fd": "/etc/passwd"}, {"output_fd": 0},
                  {"output_fd": 7}, {"sidecar_fd": 0}, {"nonsense": "x"}, {"": ""}, {"output_path": 1},
                  {"events": ""}, {"events": "x" * 65000}, {"cpus": "0-" * 32000}, {"cpus": "0x" + "f" * 65000},
                  {"buffer_pages": 0xffffffff}, {"buffer_pages": 2 ** 32 + 1}, {"buffer_pages": -1},
                  {"poll_usec": 2 ** 64 - 1}, {"keep_files": 2 ** 32 + 3, "segment_size_bytes": 1 << 20},
                  {"compress": "\x1b[2J"}, {"on_reserve": 1}, {"parameters": {}}, {"Name": "x"}):
        refused(client.start("hostile", entry))
    refused(client.start("hostile", {"output_fd": 1}, [os.open("/dev/null", os.O_RDWR)]))
    for name in ("", "x" * 65000, "a\nb", "a/b", "../x", "\x1b[2J", 1, [], {}, True):
        refused(client.start(name, {"nonsense": "x"}))
        if name:
            refused(client.status(name))
            refused(client.call("Stop", {"name": name}))
    for names in (1, "a", {}, [1], [None], [[]], [{}], ["a/b"], ["../x"], ["x" * 60000]):
        refused(client.call("Remove", {"names": names}))
    refused_or_closed(path, message("Remove", {"names": ["a"] * 10000}))
    for parameters in ([], 1, "a", True, {"what": 1}, {"name": {}}):
        for method in ("Start", "Status"):
            refused_or_closed(path, message(method, parameters))
    for flags in ({"more": 1}, {"more": "true"}, {"oneway": []}, {"upgrade": {}}):
        refused_or_closed(path, message("Start", {"name": "a", "nonsense": 1}, **flags))
    for method in ("Nothing", "", "Status.", "status", "org.xentraced.Status", "org.xentraced.Control.",
                   "org.xentraced.Control.Status.", ".Status", ".", "x" * 60000, "org.varlink.service.Status",
                   "org.varlink.service", "a.b.c.d", "org.xentraced.Control\nStatus", "org.example.Nothing"):
        refused_or_closed(path, message(method, {}))
    refused(client.call("Nothing", {}), "Nothing")
    refused(client.call("org.example.Nothing", {}), "org.example")
    assert client.call("Nothing", {}).error == "MethodNotFound"
    assert client.call("org.example.Nothing", {}).error == "InterfaceNotFound"
    reply = client.status(name=1)
    assert reply.full_error == "org.varlink.service.InvalidParameter", reply
    assert reply.parameters["parameter"] == "name", reply
    reply = client.call("Status", {"nonsense": 1})
    assert reply.full_error == "org.varlink.service.InvalidParameter", reply
    assert reply.parameters["parameter"] == "nonsense", reply
    assert not client.call("Status", {"name": None}).error  # as if it were left out
    assert not client.call("Status").error  # without parameters
    for data in (b'{"method":1}\0', b'{"method":null}\0', b'{"parameters":{}}\0', b'{"method":["a"]}\0'):
        refused_or_closed(path, data)
    refused(client.call("org.varlink.service.GetInterfaceDescription", {"interface": "org.example"}))
    refused(client.call("org.varlink.service.GetInterfaceDescription", {"interface": 1}))
    refused(client.call("org.varlink.service.GetInterfaceDescription", {}))
    serves(path)


def ends(client):
    """The capture, if there is one: when its time is over, or at once if that cannot be written to."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        reply = client.status("hostile")
        if reply.error or reply.document["state"] == "ended":
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
        reply = Client(path).start("hostile", {"output_fd": 0}, [fd])
        print(what, reply)
        refused(reply)
    for what, fd in {"an unconnected socket": socket_fd.fileno(),
                     "/dev/full": os.open("/dev/full", os.O_WRONLY),
                     "an eventfd": os.eventfd(0),
                     "a memfd of 0 bytes": os.memfd_create("x"),
                     "a sealed memfd": sealed()}.items():
        client = Client(path)
        reply = client.start("hostile", {"output_fd": 0, "time_usec": 300000}, [fd])
        print(what, str(reply)[:300])
        assert ends(client), what
    both = os.memfd_create("both")
    client = Client(path)
    client.start("hostile", {"output_fd": 0, "sidecar_fd": 1, "time_usec": 200000}, [both, both])
    assert ends(client)
    refused(client.start("hostile", {"output_fd": 0, "sidecar_fd": 1}, [os.memfd_create("x"), writer]))
    reply = client.start("hostile", {"output_fd": 0, "output_path": "/etc/passwd\n\x1b[2J", "time_usec": 100000},
                         [os.open(path + ".own", os.O_RDWR | os.O_CREAT)])
    assert not reply.error, reply
    assert ends(client)
    assert not client.start("gone", {"attached": True}).error


def sealed():
    import fcntl
    fd = os.memfd_create("sealed", os.MFD_ALLOW_SEALING)
    fcntl.fcntl(fd, 1033, 0x2 | 0x4)  # F_ADD_SEALS: shrink, grow
    return fd


def start_and_leave(path):
    """Leaves before the answer: the session that ends with it ends."""
    for i in range(20):
        client = Client(path)
        client.send(message("Start", {"name": "leaver-%d" % i, "attached": True}))
        client.socket.close()
        time.sleep(0.1)


if __name__ == "__main__":
    globals()[sys.argv[2]](sys.argv[1])
