#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that pass what they should not: outputs.py SOCKET COMMAND [ARGUMENT]..., see the end."""

import ctypes
import fcntl
import json
import os
import pty
import socket
import struct
import sys
import time

from varlink import Client, message

TRACERS = 64002  # the group of hostile.sh


def become_operator():
    os.setgroups([TRACERS])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


def call(path, method, output, sidecar=None, name=None, called="/elsewhere/f", extra=()):
    """What is answered: (is an error, text)."""
    fds = [output] + ([] if sidecar is None else [sidecar])
    parameters = {"output_fd": 0, "name": name, "output_path": called} | dict(extra)
    if sidecar is not None:
        parameters["sidecar_fd"] = 1
    reply = Client(path).call(method, parameters, fds)
    return bool(reply.error), reply.sentence + reply.parameters.get("hint", "") if reply.error else reply.text()


def empty_file(flags=os.O_RDWR):
    name = "/var/tmp/outputs-test-%d" % os.getpid()
    os.close(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600))
    fd = os.open(name, flags)
    os.unlink(name)
    return fd


def kinds():
    """Descriptors that are no outputs: name, descriptor, what the refusal says."""
    ours, theirs = socket.socketpair()
    dgram, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    read_end, _ = os.pipe()
    _, terminal = pty.openpty()
    kept = [ours, theirs, dgram]
    return kept, theirs, [
        ("a stream socket", ours.fileno(), "is a socket"),
        ("a datagram socket", dgram.fileno(), "is a socket"),
        ("a terminal", terminal, "is a terminal"),
        ("the zero device", os.open("/dev/zero", os.O_WRONLY), "is a character device"),
        ("the full device", os.open("/dev/full", os.O_WRONLY), "is a character device"),
        ("an event counter", os.eventfd(0), "is not a file"),
        ("the reading end of a pipe", read_end, "is not open for writing"),
        ("a file for reading", empty_file(os.O_RDONLY), "is not open for writing"),
        ("a path", empty_file(os.O_PATH), "is not open for writing"),
        ("a file for neither", empty_file(3), "is not open for writing"),
        ("a directory", os.open("/", os.O_RDONLY), "is not open for writing"),
        ("a file of proc", os.open("/proc/self/oom_score_adj", os.O_WRONLY), "of the kernel"),
    ]


def command_wrong_kinds(path):
    kept, peer, wrong = kinds()
    for method in ("Start", "Snapshot"):
        for name, fd, words in wrong:
            for called in ("/elsewhere/f", None):
                is_error, text = call(path, method, fd, called=called)
                assert is_error and words in text, (method, name, called, text)
                assert "The output must be" in text, text
            is_error, text = call(path, method, empty_file(), sidecar=fd)
            assert is_error and words in text and "sidecar" in text, (method, name, text)
        _, write_end = os.pipe()
        is_error, text = call(path, method, empty_file(), sidecar=write_end)
        assert is_error and "is a pipe. A sidecar must be a regular file" in text, text
    peer.setblocking(False)
    try:
        raise AssertionError(peer.recv(1))  # nothing was written to the socket
    except BlockingIOError:
        pass
    del kept


def command_append(path, directory):
    """Opened with O_APPEND: the sidecar is written twice, and is one document."""
    output = os.open(directory + "/append.xentrace", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    sidecar = os.open(directory + "/append.json", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    is_error, text = call(path, "Start", output, sidecar, "append", extra={"time_usec": 300000})
    assert not is_error, text
    for _ in range(100):
        time.sleep(0.1)
        with open(directory + "/append.json", encoding="utf-8") as file:
            content = file.read()
        if '"ended"' in content:
            break
    assert json.loads(content)["ended"]["ok"], content


def command_hoard(path, count):
    """COUNT snapshots into pipes that nobody reads; says so when all pins are taken."""
    clients = []
    for _ in range(int(count)):
        read_end, write_end = os.pipe()
        fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
        client = Client(path, 30)
        client.send(message("Snapshot", {"output_fd": 0}), [write_end])
        os.close(write_end)
        clients.append((client, read_end))
    print("asked", flush=True)
    for client, _ in clients:
        reply = client.receive()
        assert reply.error and "has read nothing for 5 s" in reply.sentence, reply
        print("given up", flush=True)


# --- A FUSE file system that stops to answer. Source: fuse(4), <linux/fuse.h>. ---

FUSE_LOOKUP, FUSE_GETATTR, FUSE_SETATTR, FUSE_OPEN, FUSE_INIT = 1, 3, 4, 14, 26
FUSE_OPENDIR, FUSE_ACCESS = 27, 34
NAMES = {b"output": 2, b"sidecar": 3, b"hidden": 4, b"page": 5}  # the page can be mapped


def fuse_attr(node):
    mode = 0o40777 if node == 1 else 0o100666
    size = 4096 if node == NAMES[b"page"] else 0
    return struct.pack("<QQQQQQIIIIIIIIII", node, size, 0, 0, 0, 0, 0, 0, 0, mode, 1, 65534, 65534, 0, 512, 0)


def fuse_answer(opcode, node, body):
    """(errno, data)"""
    if opcode == FUSE_INIT:
        return 0, struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 16, 12, 65536, 1, 0, 0, 0)
    if opcode == FUSE_LOOKUP:
        node = NAMES.get(body.split(b"\0")[0])
        if not node:
            return -2, b""
        return 0, struct.pack("<QQQQII", node, 0, 0, 0, 0, 0) + fuse_attr(node)
    if opcode in (FUSE_GETATTR, FUSE_SETATTR):
        return 0, struct.pack("<QII", 0, 0, 0) + fuse_attr(node)
    if opcode in (FUSE_OPEN, FUSE_OPENDIR):
        return 0, struct.pack("<QII", 1, 0, 0)
    return (0, b"") if opcode == FUSE_ACCESS else (-38, b"")


def command_fuse(mount_point, hang):
    """Serves until it is killed; answers nothing while the file HANG exists."""
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=65534,group_id=65534,allow_other" % fd
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"test", mount_point.encode(), b"fuse", 6, options.encode()) < 0:
        sys.exit("mount: " + os.strerror(ctypes.get_errno()))
    print("mounted", flush=True)
    while True:
        request = os.read(fd, 1 << 20)
        _, opcode, unique, node = struct.unpack_from("<IIQQ", request)
        if os.path.exists(hang):
            print("unanswered", opcode, flush=True)
            continue
        error, data = fuse_answer(opcode, node, request[40:])
        try:
            os.write(fd, struct.pack("<IiQ", 16 + len(data), error, unique) + data)
        except OSError:
            pass  # FORGET, INTERRUPT: nobody waits


def command_pass_fuse(path, mount_point, hang, who):
    """Passes files of the file system as output, and as sidecar; says what was answered."""
    if who == "operator":
        become_operator()
    output = os.open(mount_point + "/output", os.O_RDWR)
    sidecar = os.open(mount_point + "/sidecar", os.O_RDWR)
    file = empty_file()
    print("opened", flush=True)
    while not os.path.exists(hang):
        time.sleep(0.05)
    for method in ("Start", "Snapshot"):
        print(*call(path, method, output, called=None), flush=True)
        print(*call(path, method, output), flush=True)
        print(*call(path, method, file, sidecar), flush=True)
    os._exit(0)  # closing would wait


def main():
    commands = {"wrong-kinds": command_wrong_kinds, "append": command_append,
                "hoard": command_hoard, "pass-fuse": command_pass_fuse}
    if sys.argv[1] == "fuse":
        command_fuse(*sys.argv[2:])
    else:
        commands[sys.argv[2]](sys.argv[1], *sys.argv[3:])


if __name__ == "__main__":
    main()
