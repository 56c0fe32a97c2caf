#!/usr/bin/env python3
"""Clients that mean no good, over real sockets: what they can make a node hold, and that others
are served meanwhile. Their slower half (who is cut after a minute) is told in virtual time:
src/cql/server/connection_test.cc."""

import contextlib
import os
import resource
import socket
import struct
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "drivers"))
from helenus_process import HOST, Node  # noqa: E402

HELENUS = None  # the program under test; set in main
SECONDS_MAX = 60
MIB = 1 << 20

ERROR, STARTUP, READY, OPTIONS, SUPPORTED, QUERY, RESULT = 0x00, 0x01, 0x02, 0x05, 0x06, 0x07, 0x08
OVERLOADED, PROTOCOL_ERROR, INVALID = 0x1001, 0x000A, 0x2200
FLAG_COMPRESSED = 0x01


def string_map(**entries):
    body = struct.pack(">H", len(entries))
    for key, value in entries.items():
        for text in (key, value):
            body += struct.pack(">H", len(text)) + text.encode()
    return body


def frame(opcode, body=b"", stream=0, flags=0, size=None):
    """With another size than the body has, the frame lies."""
    declared = len(body) if size is None else size
    return struct.pack(">BBhBI", 4, flags, stream, opcode, declared) + body


def query(text, stream=0):
    parameters = struct.pack(">HB", 1, 0)  # consistency ONE, nothing else
    return frame(QUERY, struct.pack(">I", len(text)) + text.encode() + parameters, stream)


class Client:
    """As little of the protocol as it takes to be a nuisance."""

    def __init__(self, node, host=HOST, **options):
        """From that address."""
        self.socket = socket.create_connection(
            (HOST, node.port), timeout=SECONDS_MAX, source_address=(host, 0)
        )
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.input = self.socket.makefile("rb")
        self.send(frame(STARTUP, string_map(CQL_VERSION="3.0.0", **options)))
        assert self.receive()[0] == READY

    def send(self, data):
        self.socket.sendall(data)

    def receive(self):
        """Opcode, stream and body."""
        header = self.input.read(9)
        if len(header) < 9:
            raise EOFError
        _, _, stream, opcode, size = struct.unpack(">BBhBI", header)
        return opcode, stream, self.input.read(size)

    def error(self):
        opcode, _, body = self.receive()
        assert opcode == ERROR, opcode
        return struct.unpack(">I", body[:4])[0]

    def ask(self, text):
        self.send(query(text))
        opcode, _, body = self.receive()
        assert opcode == RESULT, body
        return body

    def close(self):
        self.input.close()
        self.socket.close()


class HostileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node(HELENUS)
        cls.node.start()
        good = Client(cls.node)
        good.ask("CREATE KEYSPACE ks WITH replication = "
                 "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        good.ask("CREATE TABLE ks.t (k int PRIMARY KEY, v text)")
        good.ask(f"INSERT INTO ks.t (k, v) VALUES (1, '{'x' * 100_000}')")
        good.close()

    @classmethod
    def tearDownClass(cls):
        code = cls.node.stop()
        cls.node.__exit__()
        assert code == 0, code

    def setUp(self):
        self.good = Client(self.node)
        self.addCleanup(self.good.close)

    def client(self, **options):
        client = Client(self.node, **options)
        self.addCleanup(client.close)
        return client

    def memory(self):
        """Bytes that the node has in memory."""
        with open(f"/proc/{self.node.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @contextlib.contextmanager
    def others_are_served(self, bytes_max):
        """What goes on within costs the node no more than so much, and others nothing."""
        before = self.memory()
        yield
        began = time.monotonic()
        self.good.ask("INSERT INTO ks.t (k, v) VALUES (2, 'good')")
        self.assertIn(b"good", self.good.ask("SELECT v FROM ks.t WHERE k = 2"))
        self.assertLess(time.monotonic() - began, 5)
        self.assertLess(self.memory() - before, bytes_max)

    def await_connections(self, count):
        deadline = time.monotonic() + SECONDS_MAX
        while f"\nhelenus_cql_connections {count}\n" not in self.node.get("/metrics"):
            self.assertLess(time.monotonic(), deadline)

    def test_a_frame_that_declares_more_than_there_may_be(self):
        with self.others_are_served(32 * MIB):
            for _ in range(20):
                client = self.client()
                client.send(frame(QUERY, b"", size=256 * MIB))
                self.assertEqual(client.error(), INVALID)
            impossible = self.client()
            impossible.send(frame(QUERY, b"", size=0x7FFFFFFF))
            self.assertEqual(impossible.error(), PROTOCOL_ERROR)
            with self.assertRaises(EOFError):
                impossible.receive()

    def test_a_large_body_that_never_comes_takes_no_memory(self):
        with self.others_are_served(64 * MIB):
            for _ in range(50):
                self.client().send(frame(QUERY, b"x" * 1000, size=16 * MIB))

    def test_large_bodies_of_which_the_last_byte_never_comes(self):
        # One address has three eighths of the 256 MiB for requests, and two have no more than three
        # quarters: whoever sends a request whole is served, and so is a large one of another.
        body = b"x" * (16 * MIB - 1)
        with self.others_are_served(256 * MIB):
            for host in ("127.0.0.2", "127.0.0.3"):
                for _ in range(16):
                    client = self.client(host=host)
                    # What is refused in the middle is read to its end, and told so.
                    client.send(frame(QUERY, body, size=16 * MIB))
                for _ in range(20):
                    self.good.ask("SELECT v FROM ks.t WHERE k = 2")
                if host == "127.0.0.2":
                    text = f"INSERT INTO ks.t (k, v) VALUES (3, '{'y' * 900_000}')"
                    self.client(host="127.0.0.4").ask(text)
            metric = "helenus_cql_request_bytes "
            lines = self.node.get("/metrics").splitlines()
            held = [float(line.split()[1]) for line in lines if line.startswith(metric)]
            self.assertLessEqual(held[0], 192 * MIB)

    def test_a_compressed_body_that_declares_two_gigabytes(self):
        client = self.client(COMPRESSION="lz4")
        with self.others_are_served(32 * MIB):
            for declared in (0x7FFFFFFF, 0xFFFFFFFF, 16 * MIB + 1):
                body = struct.pack(">I", declared) + b"\x1f\x00\x01\x00" + b"\xff" * 1000
                client.send(frame(QUERY, body, flags=FLAG_COMPRESSED))
                self.assertIn(client.error(), (INVALID, PROTOCOL_ERROR))
            client.send(frame(OPTIONS))
            self.assertEqual(client.receive()[0], SUPPORTED)

    def test_requests_on_all_streams_at_once(self):
        client = self.client()
        streams = range(32768)
        with self.others_are_served(128 * MIB):
            asked = b"".join(query("SELECT k FROM ks.t WHERE k = 1", stream) for stream in streams)
            sender = os.fork()
            if sender == 0:
                client.send(asked)
                os._exit(0)
            answered = set()
            for _ in streams:
                opcode, stream, _ = client.receive()
                self.assertEqual(opcode, RESULT)
                answered.add(stream)
            self.assertEqual(len(answered), len(streams))
            os.waitpid(sender, 0)

    def test_a_client_that_asks_for_much_and_reads_nothing(self):
        with self.others_are_served(512 * MIB):
            for _ in range(20):
                client = self.client()
                client.socket.settimeout(0.2)
                asked = b"".join(query("SELECT v FROM ks.t WHERE k = 1", i) for i in range(1000))
                with contextlib.suppress(TimeoutError):
                    while True:
                        client.send(asked)

    def test_many_clients_in_the_middle_of_a_frame(self):
        with self.others_are_served(64 * MIB):
            half = query("SELECT v FROM ks.t WHERE k = 1")
            slow = [self.client() for _ in range(200)]
            for at in range(len(half) - 1):
                for client in slow:
                    client.send(half[at:at + 1])
            for client in slow:
                client.send(half[-1:])
                self.assertEqual(client.receive()[0], RESULT)

    def test_ten_thousand_connections(self):
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        count = min(10_000, most - 500)
        with self.others_are_served(256 * MIB), contextlib.ExitStack() as open_sockets:
            # One address has its share, two have all there are.
            for host, served in (("127.0.0.2", 2048 + 1), ("127.0.0.3", 4096)):
                for _ in range(count // 2):
                    one = socket.create_connection(
                        (HOST, self.node.port), timeout=SECONDS_MAX, source_address=(host, 0)
                    )
                    open_sockets.enter_context(one)
                self.await_connections(served)
            self.assertEqual(self.node.health()["status"], "ok")
            self.good.ask("TRUNCATE ks.t")
        # When they are gone there is room again.
        self.await_connections(1)
        self.client().ask(f"INSERT INTO ks.t (k, v) VALUES (1, '{'x' * 100_000}')")


class SharesTest(unittest.TestCase):
    """What the cores of a node share, on as many as the machine has."""

    def node(self, settings):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "helenus.yaml")
        with open(path, "w") as file:
            file.write(settings)
        node = Node(HELENUS, "--config", path).start()
        self.addCleanup(node.__exit__)
        return node

    def refused(self, node, host=HOST):
        """The code with which a client from that address is told to go."""
        with socket.create_connection(
            (HOST, node.port), timeout=SECONDS_MAX, source_address=(host, 0)
        ) as one:
            one.sendall(frame(STARTUP, string_map(CQL_VERSION="3.0.0")))
            _, _, _, opcode, size = struct.unpack(">BBhBI", one.recv(9, socket.MSG_WAITALL))
            self.assertEqual(opcode, ERROR)
            return struct.unpack(">I", one.recv(size, socket.MSG_WAITALL)[:4])[0]

    def test_an_address_has_so_many_connections(self):
        node = self.node("cql_connections_per_address_max: 5")
        with contextlib.ExitStack() as clients:
            for _ in range(5):
                clients.enter_context(contextlib.closing(Client(node)))
            for _ in range(10):
                self.assertEqual(self.refused(node), OVERLOADED)
            for _ in range(5):
                clients.enter_context(contextlib.closing(Client(node, host="127.0.0.2")))
            self.assertEqual(self.refused(node, host="127.0.0.2"), OVERLOADED)
            other = clients.enter_context(contextlib.closing(Client(node, host="127.0.0.3")))
            rows = other.ask("SELECT value FROM helenus.settings "
                             "WHERE name = 'cql_connections_per_address_max'")
            self.assertTrue(rows.endswith(b"5"))

    def test_requests_of_all_cores_share_their_bytes(self):
        # What comes of a body is charged as it comes. All cores together hold 256 MiB, of which
        # 192 are for bodies that have not come whole, and one address has one of the largest size.
        node = self.node("cql_request_bytes_max: 134215680")
        with contextlib.ExitStack() as clients:
            greedy = [Client(node, host=f"127.0.0.{number}") for number in range(2, 6)]
            for client in greedy:
                clients.callback(client.close)
            for client in greedy:
                client.send(frame(QUERY, b"x" * (80 * MIB), size=134_000_000))
            refused = 0
            for client in greedy:
                client.socket.settimeout(1)
                with contextlib.suppress(TimeoutError):
                    self.assertEqual(client.error(), OVERLOADED)
                    refused += 1
            # Two fit, one has its turn beyond them, and one waited in vain.
            self.assertEqual(refused, 1)
            good = clients.enter_context(contextlib.closing(Client(node)))
            self.assertIn(b"local", good.ask("SELECT key FROM system.local"))


class FewDescriptorsTest(unittest.TestCase):
    def test_clients_leave_descriptors_for_files(self):
        with Node(HELENUS, prefix=("prlimit", "--nofile=400:400")) as node:
            with contextlib.ExitStack() as open_sockets:
                good = open_sockets.enter_context(contextlib.closing(Client(node)))
                for _ in range(500):
                    one = socket.create_connection((HOST, node.port), timeout=SECONDS_MAX)
                    open_sockets.enter_context(one)
                good.ask("CREATE KEYSPACE ks WITH replication = "
                         "{'class': 'SimpleStrategy', 'replication_factor': 1}")
                for number in range(5):
                    good.ask(f"CREATE TABLE ks.t{number} (k int PRIMARY KEY)")
                    good.ask(f"INSERT INTO ks.t{number} (k) VALUES (1)")
                self.assertEqual(node.health()["status"], "ok")
            self.assertEqual(node.stop(), 0)
            self.assertIn("the limit of open files is too low", node.log_text())


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
