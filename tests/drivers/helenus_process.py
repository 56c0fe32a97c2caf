"""A helenus node as a process of its own, or three of them, for tests that drive it from outside.

With HELENUS_NODES=3 in the environment a Node is three that replicate: tests make their keyspaces
with NODES replicas and ask at LEVEL, and are otherwise the same."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

START_SECONDS_MAX = 60
HOST = "127.0.0.1"
NODES = int(os.environ.get("HELENUS_NODES", "1"))
LEVEL = "ONE" if NODES == 1 else "QUORUM"


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


class OneNode:
    """A node in a folder of its own, on ports of its own, that can be stopped and started again."""

    def __init__(self, program, *arguments, prefix=()):
        self.program = program
        self.prefix = prefix  # a command that runs it
        self.arguments = arguments
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = os.path.join(self.scratch.name, "data")
        self.port = self.choose_port()
        self.process = None
        self.log = open(os.path.join(self.scratch.name, "log"), "w+")

    def choose_port(self):
        return free_port()

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


class ThreeNodes(OneNode):
    """Three nodes on 127.0.0.1 to 127.0.0.3 with the ports of one, that start and stop together.
    What is asked of a node is asked of the first one."""

    HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")

    def choose_port(self):
        self.node_port = free_port(self.HOSTS)
        self.admin_ports = {host: free_port((host,)) for host in self.HOSTS}
        self.processes = {}
        return free_port(self.HOSTS)

    def command(self, host):
        seeds = ",".join(f"{each}:{self.node_port}" for each in self.HOSTS)
        path = os.path.join(self.scratch.name, f"{host}.yaml")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"seeds: [{seeds}]\nrack: rack-{host}\n")
            file.write("gossip_interval_ms: 100\nmemtable_mib: 16\nblock_cache_mib: 8\n")
        return [*self.prefix, self.program, "node", "--config", path,
                "--data", os.path.join(self.folder, host),
                "--admin", f"{host}:{self.admin_ports[host]}",
                "--listen", f"{host}:{self.node_port}", "--cql", f"{host}:{self.port}",
                *self.arguments]

    def start(self):
        os.makedirs(self.folder, exist_ok=True)
        for host in self.HOSTS:
            self.processes[host] = subprocess.Popen(
                self.command(host), stdout=subprocess.PIPE, stderr=self.log, text=True
            )
        for process in self.processes.values():
            line = process.stdout.readline()
            if " is up: " not in line:
                raise AssertionError(f"did not start: {line}{self.log_text()}")
        self.process = self.processes[HOST]
        self.health_url = f"http://{HOST}:{self.admin_ports[HOST]}/healthz"
        self.await_all_up()
        return self

    def await_all_up(self):
        deadline = time.monotonic() + START_SECONDS_MAX
        for host in self.HOSTS:
            url = f"http://{host}:{self.admin_ports[host]}/cluster"
            while True:
                with urllib.request.urlopen(url, timeout=START_SECONDS_MAX) as answer:
                    status = json.loads(answer.read().decode())
                if [node["is_up"] for node in status["nodes"]] == [True] * len(self.HOSTS):
                    break
                if time.monotonic() > deadline:
                    raise AssertionError(f"{host} does not see all nodes: {status}")
                time.sleep(0.05)

    def end(self, number):
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(number)
        for process in self.processes.values():
            process.wait(timeout=START_SECONDS_MAX)
            process.stdout.close()
        codes = [process.returncode for process in self.processes.values()]
        return max(codes, key=abs)

    def stop(self):
        return self.end(signal.SIGTERM)

    def kill(self):
        self.end(signal.SIGKILL)


Node = OneNode if NODES == 1 else ThreeNodes
