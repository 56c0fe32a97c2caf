#!/usr/bin/python3
"""Three nodes as processes of their own on 127.0.0.1, 127.0.0.2 and 127.0.0.3, as operators and
drivers meet them: they form a cluster, come back in any order, and are not troubled by strangers.

    cluster_test.py HELENUS [NPM_FOLDER]
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid

from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import HostStateListener, RoundRobinPolicy, WhiteListRoundRobinPolicy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "drivers"))
from helenus_process import free_port  # noqa: E402

HELENUS = None  # the program under test; set in main
NPM_FOLDER = None  # where npm's driver is, if it is
SECONDS_MAX = 60
GOSSIP_MS = 100
NUMBERS = (1, 2, 3)
SEEDS = (1, 2)  # the third one comes later


def await_that(condition, what, seconds=SECONDS_MAX):
    """Asks again and again: a cluster tells of itself by and by."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Member:
    """A node with a file of settings, which can be stopped, killed and started again."""

    NETWORK = "127.0.0"
    PREFIX = ()  # a command that runs the node

    def __init__(self, folder, number, ports, **settings):
        self.number = number
        self.ip = f"{self.NETWORK}.{number}"
        self.ports = ports
        self.folder = os.path.join(folder, f"node{number}")
        os.makedirs(self.folder, exist_ok=True)
        self.log_path = os.path.join(self.folder, "log")
        self.process = None
        fields = {
            "cluster_name": "Troy",
            "data_center": "dc1",
            "rack": f"rack{number}",
            "data_directory": os.path.join(self.folder, "data"),
            "listen_address": f"{self.ip}:{ports['node']}",
            "cql_address": f"{self.ip}:{ports['cql']}",
            "admin_address": f"{self.ip}:{ports['admin']}",
            "seeds": "[" + ", ".join(f"{self.NETWORK}.{n}:{ports['node']}" for n in SEEDS) + "]",
            "gossip_interval_ms": GOSSIP_MS,
            "cores": 2 if number == 1 else 1,
            "memtable_mib": 16,
            "block_cache_mib": 8,
            "commitlog_segment_mib": 32,
            **settings,
        }
        self.config = os.path.join(self.folder, "helenus.yaml")
        with open(self.config, "w") as file:
            file.writelines(f"{name}: {value}\n" for name, value in fields.items())

    @property
    def admin(self):
        return f"{self.ip}:{self.ports['admin']}"

    def begin(self):
        with open(self.log_path, "a") as log:
            self.process = subprocess.Popen(
                [*self.PREFIX, HELENUS, "node", "--config", self.config],
                stdout=subprocess.PIPE, stderr=log, text=True)

    def wait_up(self):
        line = self.process.stdout.readline()
        if " is up: " not in line:
            raise AssertionError(f"did not start: {line}{self.log()}")

    def start(self):
        self.begin()
        self.wait_up()

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def end(self, number):
        self.process.send_signal(number)
        self.process.wait(timeout=SECONDS_MAX)
        self.process.stdout.close()
        return self.process.returncode

    def log(self):
        with open(self.log_path) as file:
            return file.read()


def run(*arguments):
    return subprocess.run([HELENUS, *arguments], capture_output=True, text=True,
                          timeout=SECONDS_MAX)


def ask(member, command, *arguments):
    done = run(command, "--json", "--admin", member.admin, *arguments)
    return json.loads(done.stdout) if done.returncode == 0 else None


def connect(member, only=False):
    """A session of the driver; with `only`, one that talks to this node alone."""
    policy = WhiteListRoundRobinPolicy([member.ip]) if only else RoundRobinPolicy()
    profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=SECONDS_MAX)
    cluster = Cluster([member.ip], port=member.ports["cql"], protocol_version=4,
                      execution_profiles={EXEC_PROFILE_DEFAULT: profile})
    return contextlib.closing(DriverSession(cluster))


class DriverSession:
    def __init__(self, cluster):
        self.cluster = cluster
        self.session = cluster.connect()

    def execute(self, text, *values):
        return list(self.session.execute(text, values or None))

    def schema_version(self):
        return self.execute("SELECT schema_version FROM system.local")[0].schema_version

    def tables(self, keyspace):
        rows = self.execute(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", keyspace)
        return {row.table_name for row in rows}

    def close(self):
        self.cluster.shutdown()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def node_frame(body, size=None):
    """A frame of docs/formats/rpc.md; with another size than the body has, it lies."""
    head = struct.pack("<II", len(body) if size is None else size, crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


def hello(cluster=b"Troy", oldest=1, newest=1):
    address = b"\x00"
    return (b"\x00HLNS" + bytes([oldest, newest, len(cluster)]) + cluster + uuid.uuid4().bytes
            + os.urandom(8) + b"\x00" + b"\x00" + address + b"\x80\x80\x40" + b"\x00")


class Listener:
    """A client of the CQL protocol that registers for events and waits for them."""

    KINDS = ("TOPOLOGY_CHANGE", "STATUS_CHANGE")

    def __init__(self, member):
        self.socket = socket.create_connection((member.ip, member.ports["cql"]),
                                               timeout=SECONDS_MAX)
        self.input = self.socket.makefile("rb")
        text = lambda value: struct.pack(">H", len(value)) + value.encode()
        self.ask(0x01, struct.pack(">H", 1) + text("CQL_VERSION") + text("3.0.0"))
        self.ask(0x0B, struct.pack(">H", len(self.KINDS)) + b"".join(map(text, self.KINDS)))

    def ask(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBI", 4, 0, 0, opcode, len(body)) + body)
        assert self.receive()[0] == 0x02  # READY

    def receive(self):
        header = self.input.read(9)
        assert len(header) == 9, "the connection ended"
        return header[4], self.input.read(struct.unpack(">I", header[5:])[0])

    def next_event(self):
        """("UP", "127.0.0.3:9042")"""
        opcode, body = self.receive()
        assert opcode == 0x0C
        texts = []
        for _ in range(2):
            size = struct.unpack(">H", body[:2])[0]
            texts.append(body[2:2 + size].decode())
            body = body[2 + size:]
        ip = socket.inet_ntoa(body[1:5])
        return texts[1], f"{ip}:{struct.unpack('>I', body[5:9])[0]}"

    def close(self):
        self.input.close()
        self.socket.close()


class HostsAdded(HostStateListener):
    """What the driver itself makes of events."""

    def __init__(self):
        self.ips = set()

    def on_add(self, host):
        self.ips.add(host.address)

    def on_up(self, host):
        pass

    def on_down(self, host):
        pass

    def on_remove(self, host):
        pass


class ClusterTest(unittest.TestCase):
    """Every story begins and ends with three nodes that are up."""

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.ports = {kind: free_port([f"127.0.0.{number}" for number in (*NUMBERS, 4)])
                     for kind in ("node", "cql", "admin")}
        cls.members = [Member(cls.scratch.name, number, cls.ports) for number in NUMBERS]
        # The one that founds the cluster first: it must wait for the others, and say so.
        cls.members[0].begin()
        cls.waiting = await_that(lambda: cls.while_it_waits(cls.members[0]), "it says why it waits")
        cls.members[1].begin()
        for member in cls.members[:2]:
            member.wait_up()
        cls.news, cls.hosts_added = cls.while_it_joins(cls.members[2])
        with connect(cls.members[0]) as driver:
            driver.execute("CREATE KEYSPACE simple WITH replication = "
                           "{'class': 'SimpleStrategy', 'replication_factor': 2}")
            driver.execute("CREATE KEYSPACE spread WITH replication = "
                           "{'class': 'NetworkTopologyStrategy', 'dc1': 2}")

    @classmethod
    def while_it_waits(cls, member):
        done = run("status", "--admin", member.admin)
        return done if f"127.0.0.2:{cls.ports['node']}" in done.stderr else None

    @classmethod
    def while_it_joins(cls, newcomer):
        """What is heard of it by a client of the first node, and what the driver makes of it."""
        address = f"{newcomer.ip}:{cls.ports['cql']}"
        listener = Listener(cls.members[0])
        hosts = HostsAdded()
        with connect(cls.members[0]) as driver:
            driver.cluster.register_listener(hosts)
            newcomer.start()
            news = []
            while len(news) < 2:
                event, about = listener.next_event()
                if about == address:
                    news.append(event)
            await_that(lambda: newcomer.ip in hosts.ips, "the driver has a new host")
        listener.close()
        return news, hosts.ips

    @classmethod
    def tearDownClass(cls):
        for member in cls.members:
            if member.is_running():
                member.end(signal.SIGTERM)
        if cls.members[0].process.returncode != 0:
            sys.stderr.write(cls.members[0].log()[-5000:])
        cls.scratch.cleanup()

    def setUp(self):
        self.assert_all_up()

    def states(self, member):
        """By address, as in UN."""
        status = ask(member, "status")
        if status is None:
            return None
        return {node["node_address"].split(":")[0]:
                ("U" if node["is_up"] else "D") + node["state"][0].upper()
                for node in status["nodes"]}

    def assert_all_up(self):
        expected = {member.ip: "UN" for member in self.members}
        for member in self.members:
            await_that(lambda: self.states(member) == expected, f"{member.ip} sees all up")

    # ---- Forming ----

    def test_the_first_says_what_it_waits_for(self):
        self.assertEqual(self.waiting.returncode, 1)
        self.assertEqual(self.waiting.stdout, "")
        self.assertIn("is starting: waits for ", self.waiting.stderr)
        self.assertRegex(self.members[0].log(),
                         rf"waits for .*127\.0\.0\.2:{self.ports['node']}")

    def test_clients_are_told_of_a_node_that_joins(self):
        self.assertEqual(self.news, ["NEW_NODE", "UP"])
        self.assertEqual(self.hosts_added, {self.members[2].ip})

    def test_the_tables_for_people_tell_of_all(self):
        status = run("status", "--admin", self.members[1].admin)
        self.assertEqual(status.returncode, 0, status.stderr)
        for member in self.members:
            self.assertRegex(status.stdout, rf"UN +{member.ip}:{self.ports['node']} ")
        ring = run("ring", "--admin", self.members[1].admin, "--keyspace", "simple")
        self.assertIn("Replicas of simple", ring.stdout)
        refused = run("ring", "--admin", self.members[1].admin, "--keyspace", "nothing")
        self.assertEqual(refused.returncode, 1)
        self.assertIn("no keyspace nothing", refused.stderr)

    def test_the_driver_sees_three_hosts_and_computes_our_replicas(self):
        for member in self.members:
            with connect(member) as driver:
                metadata = driver.cluster.metadata
                hosts = {host.address: host for host in metadata.all_hosts()}
                self.assertEqual(set(hosts), {each.ip for each in self.members})
                for number, each in zip(NUMBERS, self.members):
                    self.assertEqual(hosts[each.ip].datacenter, "dc1")
                    self.assertEqual(hosts[each.ip].rack, f"rack{number}")
                for keyspace in ("simple", "spread"):
                    self.compare_rings(metadata, keyspace)

    def compare_rings(self, metadata, keyspace):
        ours = ask(self.members[2], "ring", "--keyspace", keyspace)
        ips = [node["client_address"].split(":")[0] for node in ours["nodes"]]
        host_ids = {host.address: str(host.host_id) for host in metadata.all_hosts()}
        token_map = metadata.token_map
        self.assertEqual([token.value for token in token_map.ring],
                         [int(tablet["token"]) for tablet in ours["tablets"]])
        self.assertGreaterEqual(len(ours["tablets"]), 256)
        for node, ip in zip(ours["nodes"], ips):
            self.assertEqual(host_ids[ip], node["host_id"])
        for tablet in ours["tablets"]:
            token = token_map.token_class.from_string(tablet["token"])
            self.assertEqual(token_map.token_to_host_owner[token].address, ips[tablet["owner"]])
            replicas = [host.address for host in token_map.get_replicas(keyspace, token)]
            self.assertEqual(replicas, [ips[place] for place in tablet["replicas"]])

    def test_the_driver_of_npm_sees_three_hosts(self):
        modules = os.path.join(NPM_FOLDER or "", "node_modules")
        if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "cassandra-driver")):
            self.skipTest("npm's driver is not installed; drivers.node installs it")
        script = """
            const { Client } = require('cassandra-driver');
            const [ip, port] = process.argv.slice(2);
            const client = new Client({ contactPoints: [ip], localDataCenter: 'dc1',
                                        protocolOptions: { port: Number(port) } });
            client.connect().then(() => {
              const hosts = client.hosts.values().map(host => ({
                address: host.address, rack: host.rack, tokens: [...host.tokens].length,
                id: host.hostId.toString() }));
              console.log(JSON.stringify(hosts));
              return client.shutdown();
            }).catch(error => { console.error(error); process.exit(1); });
        """
        done = subprocess.run(
            ["node", "-", self.members[1].ip, str(self.ports["cql"])], input=script, text=True,
            capture_output=True, timeout=SECONDS_MAX, env={**os.environ, "NODE_PATH": modules})
        self.assertEqual(done.returncode, 0, done.stderr)
        ours = {node["host_id"]: (node["client_address"], node["rack"], node["tokens"])
                for node in ask(self.members[0], "status")["nodes"]}
        theirs = {host["id"]: (host["address"], host["rack"], host["tokens"])
                  for host in json.loads(done.stdout)}
        self.assertEqual(theirs, ours)

    # ---- The schema ----

    def test_a_change_of_the_schema_is_everywhere_when_it_is_acknowledged(self):
        with contextlib.ExitStack() as stack:
            drivers = [stack.enter_context(connect(member, only=True)) for member in self.members]
            for number, driver in enumerate(drivers):
                # What the driver waits for behind our back is not to hide anything.
                driver.cluster.max_schema_agreement_wait = 0
                driver.execute(f"CREATE TABLE simple.by_{number} (k int PRIMARY KEY)")
                for other in drivers:
                    self.assertIn(f"by_{number}", other.tables("simple"))
                self.assertEqual(len({other.schema_version() for other in drivers}), 1)
                peers = driver.execute("SELECT schema_version FROM system.peers_v2")
                self.assertEqual({peer.schema_version for peer in peers},
                                 {driver.schema_version()})

    def test_a_peer_that_is_behind_is_shown_with_the_schema_it_holds(self):
        behind = self.members[2]
        with connect(self.members[0], only=True) as driver:
            driver.cluster.max_schema_agreement_wait = 0

            def versions():
                rows = driver.execute("SELECT peer, schema_version FROM system.peers_v2")
                return {row.peer: row.schema_version for row in rows}

            before = driver.schema_version()
            behind.process.send_signal(signal.SIGSTOP)
            try:
                statement = "CREATE TABLE simple.behind (k int PRIMARY KEY)"
                change = driver.session.execute_async(statement)
                await_that(lambda: driver.schema_version() != before, "two of three decide")
                self.assertEqual(versions()[behind.ip], before)
            finally:
                behind.process.send_signal(signal.SIGCONT)
            change.result()
            await_that(lambda: set(versions().values()) == {driver.schema_version()}, "all agree")

    def test_changes_from_two_nodes_at_once_have_one_order(self):
        count = 5
        failures = []

        def create(driver, name):
            try:
                for number in range(count):
                    driver.execute(f"CREATE TABLE simple.{name}_{number} (k int PRIMARY KEY)")
            except Exception as error:  # noqa: BLE001, told below
                failures.append(error)

        with contextlib.ExitStack() as stack:
            drivers = [stack.enter_context(connect(member, only=True)) for member in self.members]
            threads = [threading.Thread(target=create, args=(driver, name))
                       for driver, name in zip(drivers, ("left", "right"))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            wanted = {f"{name}_{number}" for name in ("left", "right") for number in range(count)}
            for driver in drivers:
                self.assertLessEqual(wanted, driver.tables("simple"))
            self.assertEqual(len({driver.schema_version() for driver in drivers}), 1)

    # ---- Coming and going ----

    def test_nodes_come_back_in_any_order_after_being_killed(self):
        before = {node["host_id"] for node in ask(self.members[0], "status")["nodes"]}
        for round_number, order in enumerate(itertools.permutations(self.members)):
            for member in self.members:
                member.end(signal.SIGKILL)
            for member in order:
                member.start()
            self.assert_all_up()
            with connect(order[-1], only=True) as driver:
                driver.execute(f"CREATE TABLE simple.round_{round_number} (k int PRIMARY KEY)")
        after = ask(self.members[0], "status")
        self.assertEqual({node["host_id"] for node in after["nodes"]}, before)
        for member in self.members:
            with connect(member, only=True) as driver:
                self.assertLessEqual({f"round_{number}" for number in range(6)},
                                     driver.tables("simple"))

    def test_who_is_stopped_is_down_and_who_returns_is_up(self):
        gone = self.members[2]
        address = f"{gone.ip}:{self.ports['cql']}"
        listeners = [Listener(member) for member in self.members[:2]]
        with connect(self.members[0]) as driver:
            self.assertEqual(gone.end(signal.SIGTERM), 0, gone.log()[-3000:])
            for member in self.members[:2]:
                await_that(lambda: self.states(member)[gone.ip] == "DN", f"{gone.ip} is down")
                shown = run("status", "--admin", member.admin).stdout
                address_of_gone = f"{gone.ip}:{self.ports['node']}"
                self.assertRegex(shown, rf"DN +{address_of_gone} ")
                self.assertRegex(shown, rf"{address_of_gone} is down: it was last heard")
            for listener in listeners:
                self.assertEqual(listener.next_event(), ("DOWN", address))
            host = next(host for host in driver.cluster.metadata.all_hosts()
                        if host.address == gone.ip)
            await_that(lambda: host.is_up is False, "the driver takes it for down")
            # Two of three decide.
            driver.execute("CREATE TABLE IF NOT EXISTS simple.meanwhile (k int PRIMARY KEY)")
            gone.start()
            for listener in listeners:
                self.assertEqual(listener.next_event(), ("UP", address))
                listener.close()
            await_that(lambda: host.is_up, "the driver takes it for up")
        with connect(gone, only=True) as driver:
            self.assertIn("meanwhile", driver.tables("simple"), "it learned what it missed")

    def test_who_is_killed_says_nothing_and_drivers_are_told_that_it_is_down(self):
        gone = self.members[2]
        address = f"{gone.ip}:{self.ports['cql']}"
        listeners = [Listener(member) for member in self.members[:2]]
        with connect(self.members[0]) as driver:
            gone.end(signal.SIGKILL)
            for listener in listeners:
                self.assertEqual(listener.next_event(), ("DOWN", address))
            host = next(host for host in driver.cluster.metadata.all_hosts()
                        if host.address == gone.ip)
            await_that(lambda: host.is_up is False, "the driver takes it for down")
            gone.start()
            for listener in listeners:
                self.assertEqual(listener.next_event(), ("UP", address))
                listener.close()
            await_that(lambda: host.is_up, "the driver takes it for up")

    # ---- Strangers ----

    def test_a_node_of_another_cluster_is_refused_and_told_why(self):
        stranger = Member(self.scratch.name, 4, self.ports, cluster_name="Argos")
        stranger.begin()
        try:
            await_that(lambda: "Argos" in stranger.log() and "Troy" in stranger.log()
                       or not stranger.is_running(), "it says why")
            self.assertIn("Troy", stranger.log())
            await_that(lambda: any("Argos" in member.log() for member in self.members),
                       "the cluster says whom it refused")
        finally:
            if stranger.is_running():
                stranger.end(signal.SIGKILL)
            else:
                self.assertNotEqual(stranger.process.returncode, 0)
                stranger.process.stdout.close()
        self.assertEqual(set(self.states(self.members[0])), {each.ip for each in self.members})

    def test_a_connection_that_misbehaves_is_closed_with_a_reason_and_nothing_else_is(self):
        victim = self.members[1]
        attacks = {
            "garbage": (b"GET / HTTP/1.1\r\nHost: helenus\r\n\r\n", "not a frame"),
            "damaged": (node_frame(hello())[:-1] + b"\x7f", "the checksum of a frame"),
            "oversized": (node_frame(b"\x00" * 16, size=0x7FFFFFFF), "a frame of 2147483647 bytes"),
            "truncated": (node_frame(hello())[:-3], "hung up within a frame"),
            "of versions to come": (node_frame(hello(oldest=90, newest=99)), "not 90 to 99"),
            "of another cluster": (node_frame(hello(cluster=b"Sparta")), "not of 'Sparta'"),
            "out of turn": (node_frame(b"\x08\x01"), "before a handshake"),
        }
        before = {node["host_id"]: node for node in ask(victim, "status")["nodes"]}
        for name, (data, reason) in attacks.items():
            with self.subTest(name):
                logged = self.complaints(victim, reason)
                with socket.create_connection((victim.ip, self.ports["node"]),
                                              timeout=SECONDS_MAX) as attacker:
                    attacker.sendall(data)
                    attacker.shutdown(socket.SHUT_WR)
                    with contextlib.suppress(ConnectionResetError):
                        while attacker.recv(4096):
                            pass
                await_that(lambda: self.complaints(victim, reason) > logged, f"{reason}")
        after = {node["host_id"]: node for node in ask(victim, "status")["nodes"]}
        self.assertEqual(set(after), set(before))
        self.assert_all_up()
        with connect(self.members[0], only=True) as driver:
            driver.execute("CREATE TABLE IF NOT EXISTS simple.unharmed (k int PRIMARY KEY)")

    @staticmethod
    def complaints(member, reason):
        return sum("reason=" in line and reason in line for line in member.log().splitlines())


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    if len(sys.argv) > 1 and os.sep in sys.argv[1]:
        NPM_FOLDER = sys.argv.pop(1)
    unittest.main(verbosity=2)
