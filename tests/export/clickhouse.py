# SPDX-License-Identifier: GPL-2.0-or-later
"""A real ClickHouse server as a process of a test, with a directory and a port of its own. CLICKHOUSE names another
binary."""

import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

import traces

CONFIG = """<yandex>
    <logger><level>warning</level><log>log</log><errorlog>errors</errorlog></logger>
    <http_port>%d</http_port><listen_host>127.0.0.1</listen_host>
    <path>./data/</path><tmp_path>./tmp/</tmp_path><mark_cache_size>67108864</mark_cache_size>
    <users_config>users.xml</users_config>
    <default_profile>default</default_profile><default_database>default</default_database>
</yandex>
"""
USERS = """<yandex>
    <profiles><default>
        <allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type>
    </default></profiles>
    <users><default><password></password><networks><ip>127.0.0.1</ip></networks>
        <profile>default</profile><quota>default</quota></default></users>
    <quotas><default></default></quotas>
</yandex>
"""


class Server:
    def __init__(self, binary, directory):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        for name, text in (("config.xml", CONFIG % port), ("users.xml", USERS)):
            with open(os.path.join(directory, name), "w", encoding="ascii") as file:
                file.write(text)
        self.url = "http://127.0.0.1:%d/" % port
        with open(os.path.join(directory, "output"), "wb") as output:
            self.process = subprocess.Popen([binary, "--config-file=config.xml"], cwd=directory, stdout=output,
                                            stderr=output)

    def wait(self):
        for _ in range(600):
            try:
                self.ask("SELECT 1")
                return True
            except OSError:
                if self.process.poll() is not None:
                    return False
                time.sleep(0.1)
        return False

    def ask(self, statement, data=None):
        """The rows of its answer, each a tuple of texts."""
        url = self.url + "?" + urllib.parse.urlencode({"query": statement})
        try:
            with urllib.request.urlopen(urllib.request.Request(url, data or b"")) as answer:
                return [tuple(line.split("\t")) for line in answer.read().decode().splitlines()]
        except urllib.error.HTTPError as error:
            raise AssertionError("%s: %s" % (statement, error.read().decode(errors="replace"))) from error

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def find_binary():
    """None: there is none."""
    binary = os.environ.get("CLICKHOUSE") or shutil.which("clickhouse-server") or "/usr/sbin/clickhouse-server"
    return binary if os.access(binary, os.X_OK) else None


def create(server):
    for statement in traces.ctl("export", "--to", "clickhouse", "--schema").decode().split(";\n"):
        if statement.strip():
            server.ask(statement)
