#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random calls of every method with random parameters, flags, descriptors and bytes.

random-calls.py SOCKET SEED FILE UID GIDS   as UID, in groups GIDS or with -1 in none, until FILE is removed,
                                            which exists as soon as it is under way

Methods and parameters are those of the interface that the daemon describes. Root leaves alone what the test
looks at: the captures `numbered` and `flight-recorder`, and their files."""

import collections
import os
import random
import re
import socket
import sys
import time

from clients import drop_privileges
from varlink import FDS_MAX, Client, message

KEEP = ("numbered", "flight-recorder")
NAMES = ["", "a", "b", "c", "snapshot-a", "x" * 64, "x" * 65, "../a", "a/b", "a\nb", "\x1b[2J", "\u202e", "é", "crash"]
NUMBERS = [0, 1, -1, 2, 3, 1000, 100000, 1000000, 1 << 20, 4 << 20, 1 << 31, 1 << 32, (1 << 63) - 1, -1 << 63,
           1 << 63, 10 ** 30, 0.5]
OTHERS = [None, True, False, [], {}, "1", [1], {"a": 1}]


def methods_of(client):
    """Name -> [(parameter, type)]."""
    reply = client.call("org.varlink.service.GetInterfaceDescription", {"interface": "org.xentraced.Control"})
    text = re.sub("#[^\n]*", "", reply.parameters["description"])
    return {name: re.findall(r"(\w+)\s*:\s*([?\[\]\w]+)", parameters)
            for name, parameters in re.findall(r"method\s+(\w+)\s*\(([^)]*)\)", text)}


class Caller:
    def __init__(self, path, seed, is_root, folder):
        self.path, self.random, self.is_root, self.folder = path, random.Random(seed), is_root, folder
        self.counts = collections.Counter()
        self.client = None
        self.methods = methods_of(self.connection())

    def connection(self):
        while not self.client:
            try:
                self.client = Client(self.path, 5)
            except OSError:
                time.sleep(0.05)
        return self.client

    def leave(self):
        if self.client:
            self.client.socket.close()
        self.client = None

    def value(self, name, type_, count):
        pick = self.random
        if pick.random() < 0.05:
            return pick.choice(OTHERS)
        if name.endswith("_fd"):
            return pick.randrange(count) if count and pick.random() < 0.8 else pick.choice(NUMBERS)
        if "int" in type_:
            return pick.choice(NUMBERS) if pick.random() < 0.6 else pick.randrange(1 << 22)
        if "bool" in type_:
            return pick.random() < 0.5
        if "[]" in type_:
            return [pick.choice(NAMES) for _ in range(pick.randrange(4))]
        if name in ("events", "cpus"):
            return pick.choice(["sched", "gen", "all", "0-1", "0", "hvm", "", ",", "0x" + "f" * 99, "nonsense"])
        if name == "compress":
            return pick.choice(["zstd", "no", "x"])
        if name == "on_reserve":
            return pick.choice(["stop", "rotate", "pause", "x"])
        return pick.choice(NAMES)

    def descriptor(self):
        kind = self.random.randrange(6)
        if kind == 0:
            read_end, write_end = os.pipe()
            os.close(read_end)
            return write_end
        if kind == 1:
            return os.memfd_create("random")
        if kind == 2:
            return socket.socket(socket.AF_UNIX).detach()
        if kind == 3:
            return os.open("/dev/null", os.O_RDWR)
        name = "%s/%d-%d" % (self.folder, os.getpid(), self.random.randrange(1000))
        fd = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.unlink(name)
        return fd

    def may(self, method, parameters):
        """Root does not end what the test looks at."""
        if not self.is_root:
            return True
        if method in ("StopRecorder", "Vacuum") or (method == "Start" and parameters.get("keep_enabled")):
            return False
        return method not in ("Stop", "Abort") or parameters.get("name") not in (None, "") + KEEP

    def call(self):
        pick = self.random
        method = pick.choice(list(self.methods))
        fds = [self.descriptor() for _ in range(pick.choice([0, 0, 0, 1, 1, 2, 2, 3, 9]))]
        if pick.random() < 0.01:
            fds = [os.dup(fds[0] if fds else 0) for _ in range(FDS_MAX)]
        chosen = [item for item in self.methods[method] if pick.random() < pick.choice([0.1, 0.4])]
        parameters = {name: self.value(name, type_, len(fds)) for name, type_ in chosen}
        if method == "Start":  # it ends by itself
            parameters["time_usec"] = pick.randrange(200000)
            parameters["attached"] = True
            if self.is_root and pick.random() < 0.9:
                parameters["output_fd"] = 0
        if pick.random() < 0.02:
            parameters[pick.choice(["nonsense", ""])] = 1
        flags = {flag: True for flag, part in (("more", 0.1), ("oneway", 0.02), ("upgrade", 0.02))
                 if pick.random() < part}
        data = message(method, parameters, **flags)
        if pick.random() < 0.05:
            data = self.damage(data)
        if self.may(method, parameters):
            self.send(data, fds, flags)
        for fd in fds:
            os.close(fd)

    def damage(self, data):
        pick = self.random
        at = pick.randrange(len(data))
        return pick.choice([data[:at], data[:at] + bytes([pick.randrange(256)]) + data[at + 1:],
                            data[:at] + data[pick.randrange(len(data)):], data + data])

    def send(self, data, fds, flags):
        pick = self.random
        self.counts["calls"] += 1
        try:
            self.connection().send(data, fds)
            if flags.get("oneway") or pick.random() < 0.05:
                return self.leave() if pick.random() < 0.5 else None
            self.client.socket.settimeout(0.3 if b"\0" not in data or flags else 5)
            reply = self.client.receive()
            self.counts[reply.error or "done"] += 1
            if reply.continues or pick.random() < 0.1:
                self.leave()
        except socket.timeout:
            self.counts["no reply yet"] += 1
            self.leave()
        except (ConnectionError, ValueError):
            self.counts["closed"] += 1
            self.leave()


def main(path, seed, file, uid, gids):
    drop_privileges(uid, gids)
    caller = Caller(path, seed, int(uid) == 0, os.path.dirname(file))
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT))
    while os.path.exists(file):
        caller.call()
    print("UID", uid, dict(caller.counts.most_common()), flush=True)
    assert caller.counts["done"] > 0, "nothing was done"


if __name__ == "__main__":
    main(*sys.argv[1:])
