#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of xentraced that does what libsystemd would not: D-Bus bytes by hand.

As a module: Peer. As a program: bus.py SOCKET COMMAND [ARGUMENT], see the end.
Source: the D-Bus specification, "Message Format" and "Authentication Protocol"."""

import array
import socket
import struct
import sys
import time

PATH, INTERFACE = "/org/xentraced", "org.xentraced.Control1"
HELLO = b"\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"


def pad(data, n):
    return data + b"\0" * (-len(data) % n)


def string(text):
    text = text.encode() if isinstance(text, str) else text
    return struct.pack("<I", len(text)) + text + b"\0"


def signature(text):
    return struct.pack("B", len(text)) + text.encode() + b"\0"


def variant(at, type_, value):
    """A variant that begins at offset AT."""
    data = signature(type_)
    size = {"s": 4, "u": 4, "t": 8, "b": 4, "h": 4, "o": 4, "g": 1}[type_]
    data += b"\0" * (-(at + len(data)) % size)
    if type_ in "so":
        return data + string(value)
    if type_ == "g":
        return data + signature(value)
    return data + struct.pack({"t": "<Q"}.get(type_, "<I"), value)


def options(at, entries):
    """a{sv} that begins at offset AT; entries are (key, type, value)."""
    data = b""
    start = at + 4 + (-(at + 4) % 8)
    for key, type_, value in entries:
        data = pad(data, 8) + string(key)
        data += variant(start + len(data), type_, value)
    return struct.pack("<I", len(data)) + b"\0" * (start - at - 4) + data


def start_body(name, entries=()):
    body = pad(string(name), 4)
    return body + options(len(body), entries)


class Peer:
    def __init__(self, path, authenticate=True):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(10)
        self.socket.connect(path)
        self.serial = 0
        self.input = b""
        if authenticate:
            self.authenticate()

    def authenticate(self):
        self.socket.sendall(HELLO)
        while self.input.count(b"\r\n") < 3:
            data = self.socket.recv(4096)
            if not data:
                raise ConnectionError("closed in the handshake")
            self.input += data
        self.input = self.input.split(b"\r\n", 3)[3]

    def message(self, member, sig, body, nr_fds=0, interface=INTERFACE, path=PATH):
        self.serial += 1
        fields = b""
        entries = [(1, "o", path), (2, "s", interface), (3, "s", member), (8, "g", sig)]
        if nr_fds:
            entries.append((9, "u", nr_fds))
        for code, type_, value in entries:
            fields = pad(fields, 8) + struct.pack("B", code)
            fields += variant(len(fields), type_, value)
        head = struct.pack("<cBBBIII", b"l", 1, 0, 1, len(body), self.serial, len(fields))
        return pad(head + fields, 8) + body

    def send(self, data, fds=()):
        ancillary = []
        if fds:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        self.socket.sendmsg([data], ancillary)

    def receive(self):
        """The next message: (type, error name or None, first string of the body)."""
        while True:
            if len(self.input) >= 16:
                _, type_, _, _, body, _, fields = struct.unpack("<cBBBIII", self.input[:16])
                total = 16 + fields + (-fields % 8) + body
                if len(self.input) >= total:
                    break
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("closed")
            self.input += data
        message, self.input = self.input[:total], self.input[total:]
        text = ""
        if body >= 4:
            start = total - body
            length = struct.unpack_from("<I", message, start)[0]
            text = message[start + 4:start + 4 + length].decode()
        return type_, b"org." in message[16:16 + fields] and type_ == 3, text

    def call(self, member, sig, body, fds=()):
        self.send(self.message(member, sig, body, len(fds)), fds)
        return self.receive()

    def start(self, name, entries=(), fds=()):
        return self.call("Start", "sa{sv}", start_body(name, entries), fds)

    def status(self, name=""):
        return self.call("Status", "s", string(name))

    def is_closed(self, seconds):
        """Whether the daemon closes the connection within that time."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(65536):
                pass
            return True
        except ConnectionError:
            return True
        except socket.timeout:
            return False


def command_start_stop(path, name):
    peer = Peer(path)
    peer.send(peer.message("Start", "sa{sv}", start_body(name)) +
              peer.message("Stop", "s", string(name)))
    for _ in range(2):
        type_, _, text = peer.receive()
        print(type_, text)
        assert type_ == 2, text


def command_attach(path, name):
    """A capture of 0.1 s; stays connected afterwards."""
    type_, _, text = Peer(path).start(name, [("attached", "b", 1), ("time-usec", "t", 100000)])
    assert type_ == 2, text


def command_failing_snapshot(path, name):
    """A snapshot that fails, into a file of ours: what got into it is told of."""
    with open(name, "xb+") as file:
        body = start_body("", [("output", "h", 0), ("output-path", "s", name)])
        _, is_error, text = Peer(path).call("Snapshot", "sa{sv}", body, [file.fileno()])
    assert not is_error, text
    assert '"ok":false' in text and "Cannot write" in text, text
    print(text)


def main():
    commands = {"start-stop": command_start_stop, "attach": command_attach,
                "failing-snapshot": command_failing_snapshot}
    keep = commands[sys.argv[2]](*[sys.argv[1]] + sys.argv[3:])
    if sys.argv[2] == "attach":
        time.sleep(60)
    return keep


if __name__ == "__main__":
    main()
