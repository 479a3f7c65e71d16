#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of xentraced over the standard library alone, which can also do what none should: Varlink.

As a module: Client. As a program:

varlink.py SOCKET call METHOD [KEY=VALUE]...  prints the reply's document; or, on standard error, the error
varlink.py SOCKET more METHOD [KEY=VALUE]...  the same with "more": each reply, until the last one
varlink.py SOCKET start-stop NAME             both calls in one packet
varlink.py SOCKET attach NAME                 a capture of 0.1 s; stays connected afterwards
varlink.py SOCKET failing-snapshot FILE       a snapshot that fails: FILE has what was written

A METHOD without a dot is one of org.xentraced.Control; a VALUE is JSON, or else a string.
Source: https://varlink.org, "Method Call"."""

import array
import json
import socket
import sys
import time

INTERFACE = "org.xentraced.Control"
SERVICE = "org.varlink.service"
MESSAGE_MAX = 64 * 1024  # of a client, with its NUL
FDS_MAX = 253  # of one sendmsg(2): SCM_MAX_FD


def message(method, parameters=None, **flags):
    """The bytes of a call, which end with NUL."""
    call = {"method": method if "." in method else INTERFACE + "." + method}
    if parameters is not None:
        call["parameters"] = parameters
    return json.dumps(call | flags).encode() + b"\0"


class Reply:
    def __init__(self, data):
        reply = json.loads(data)
        self.parameters = reply.get("parameters") or {}
        self.continues = reply.get("continues", False)
        self.full_error = reply.get("error")
        self.error = self.full_error and self.full_error.rsplit(".", 1)[1]  # None: it succeeded
        self.sentence = self.parameters.get("sentence", "")
        if not self.error:  # each has one document, or none
            self.document = next(iter(self.parameters.values()), None)

    def text(self):
        if self.error:
            return "%s: %s" % (self.error, json.dumps(self.parameters, ensure_ascii=False))
        return json.dumps(self.document)

    def __str__(self):
        return self.text()[:500]


class Client:
    def __init__(self, path, timeout=10):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(timeout)
        self.socket.connect(path)
        self.input = b""

    def send(self, data, fds=()):
        ancillary = []
        if fds:
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
        sent = self.socket.sendmsg([data], ancillary)
        if sent < len(data):
            self.socket.sendall(data[sent:])

    def receive(self):
        while b"\0" not in self.input:
            data = self.socket.recv(1 << 20)
            if not data:
                raise ConnectionError("closed")
            self.input += data
        data, self.input = self.input.split(b"\0", 1)
        return Reply(data)

    def call(self, method, parameters=None, fds=(), **flags):
        self.send(message(method, parameters, **flags), fds)
        return self.receive()

    def stream(self, method, parameters=None, fds=()):
        """Each reply, until the last."""
        self.send(message(method, parameters, more=True), fds)
        while True:
            reply = self.receive()
            yield reply
            if not reply.continues:
                return

    def start(self, name, parameters=(), fds=()):
        return self.call("Start", {"name": name} | dict(parameters), fds)

    def status(self, name=None):
        return self.call("Status", {"name": name} if name else {})

    def is_closed(self, seconds):
        """Whether the daemon closes the connection within that time, whatever it says first."""
        end = time.monotonic() + seconds
        try:
            while True:
                self.socket.settimeout(max(0.001, end - time.monotonic()))
                if not self.socket.recv(1 << 20):
                    return True
        except ConnectionError:
            return True
        except socket.timeout:
            return False


def value_of(text):
    try:
        return json.loads(text)
    except ValueError:
        return text


def command_call(path, method, *parameters, more=False):
    client = Client(path, 60)
    pairs = (parameter.split("=", 1) for parameter in parameters)
    client.send(message(method, {key: value_of(value) for key, value in pairs}, **({"more": True} if more else {})))
    while True:
        reply = client.receive()
        print(reply.text(), flush=True, file=sys.stderr if reply.error else sys.stdout)
        if reply.error:
            sys.exit(1)
        if not reply.continues:
            return


def command_more(path, method, *parameters):
    command_call(path, method, *parameters, more=True)


def command_start_stop(path, name):
    client = Client(path)
    client.send(message("Start", {"name": name}) + message("Stop", {"name": name}))
    for _ in range(2):
        reply = client.receive()
        print(reply)
        assert not reply.error, reply


def command_attach(path, name):
    client = Client(path)
    reply = client.start(name, {"attached": True, "time_usec": 100000})
    assert not reply.error, reply
    time.sleep(60)


def command_failing_snapshot(path, name):
    """A snapshot that fails, into a file of ours: what was written of it is reported."""
    with open(name, "xb+") as file:
        reply = Client(path).call("Snapshot", {"output_fd": 0, "output_path": name}, [file.fileno()])
    assert not reply.error, reply
    assert '"ok": false' in reply.text() and "Cannot write" in reply.text(), reply
    print(reply)


if __name__ == "__main__":
    {"call": command_call, "more": command_more, "start-stop": command_start_stop,
     "attach": command_attach, "failing-snapshot": command_failing_snapshot}[sys.argv[2]](
         sys.argv[1], *sys.argv[3:])
