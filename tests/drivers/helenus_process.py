"""A helenus node as a process of its own, for tests that drive it from outside."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import urllib.request

START_SECONDS_MAX = 60
HOST = "127.0.0.1"


def free_port(addresses=(HOST,)):
    """A port that nobody listens on now at any of the addresses; a node may be restarted on it. So
    it is none that the system gives to connections that go out."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        end = int(file.read().split()[0])
    for port in random.sample(range(min(10000, end // 2), end), 100):
        with contextlib.ExitStack() as listeners, contextlib.suppress(OSError):
            for address in addresses:
                listeners.enter_context(socket.create_server((address, port)))
            return port
    raise OSError("a hundred ports are in use")


class Node:
    """A node in a folder of its own, on ports of its own, that can be stopped and started again."""

    def __init__(self, program, *arguments, prefix=()):
        self.program = program
        self.prefix = prefix  # a command that runs it
        self.arguments = arguments
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.scratch.name, "data")
        self.port = free_port()
        self.process = None
        self.log = open(os.path.join(self.scratch.name, "log"), "w+")

    def start(self):
        command = [*self.prefix, self.program, "node", "--data", self.folder]
        command += ["--admin", f"{HOST}:0", "--listen", f"{HOST}:0"]
        command += ["--cql", f"{HOST}:{self.port}", *self.arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        line = self.process.stdout.readline()
        if " is up: " not in line:
            raise AssertionError(f"did not start: {line}{self.log_text()}")
        self.health_url = line.rsplit(" ", 1)[1].strip()
        return self

    def log_text(self):
        self.log.flush()
        with open(self.log.name) as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=START_SECONDS_MAX)
        self.process.stdout.close()
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def get(self, path):
        url = self.health_url.replace("/healthz", path)
        with urllib.request.urlopen(url, timeout=START_SECONDS_MAX) as answer:
            return answer.read().decode()

    def health(self):
        return json.loads(self.get("/healthz"))

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()
        self.log.close()
        self.scratch.cleanup()
