#!/usr/bin/python3
"""What is said on the ports 7000, 9042 and 7070 is recorded, changed here and there, and said
again: three nodes in the clear on loopback addresses, of which the third one is stopped, and its
words are sent in its name. Nobody crashes, the metadata stay as they are, and a good client is
served.

    mutation_test.py HELENUS

HELENUS_MUTATIONS=1000000 asks for more than the usual ten thousand, HELENUS_MUTATION_SEED for
others.
"""

import contextlib
import http.client
import json
import os
import random
import select
import socket
import struct
import sys
import tempfile
import threading
import time
import unittest

from cassandra import ConsistencyLevel, DriverException, OperationTimedOut
from cassandra.cluster import NoHostAvailable
from cassandra.query import SimpleStatement

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_test  # noqa: E402
from cluster_test import Member, SECONDS_MAX, ask, await_that, connect  # noqa: E402
from helenus_process import free_port  # noqa: E402

MUTATIONS = int(os.environ.get("HELENUS_MUTATIONS", 10_000))
SEED = int(os.environ.get("HELENUS_MUTATION_SEED", 1))
NUMBERS = (1, 2, 3)
ALIVE = (1, 2)
HELLO, WELCOME, REQUEST, ONE_WAY = 0, 1, 3, 6
BELIEVED = {5, 9, 10}  # verbs: apply, announce, pull
HEAD = 12

CRC_TABLE = []
for index in range(256):
    value = index
    for _ in range(8):
        value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
    CRC_TABLE.append(value)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def node_frame(body):
    head = struct.pack("<II", len(body), crc32c(body))
    return head + struct.pack("<I", crc32c(head)) + body


def read_varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


class Wire:
    """Stands at the address that a node tells the others, hands on what comes, and writes down the
    frames of those who dial."""

    def __init__(self, public, private):
        self.private = private
        self.calls = []  # of each connection, what its caller sent
        self.listener = socket.create_server(public)
        self.sockets = [self.listener]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                caller, _ = self.listener.accept()
                try:
                    callee = socket.create_connection(self.private, timeout=SECONDS_MAX)
                except OSError:
                    caller.close()
                    continue
                callee.settimeout(None)
                self.sockets += [caller, callee]
                said = bytearray()
                self.calls.append(said)
                for pair, record in (((caller, callee), said), ((callee, caller), None)):
                    threading.Thread(target=self.hand_on, args=(*pair, record), daemon=True).start()

    @staticmethod
    def hand_on(source, target, record):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if record is not None and len(record) < 8 << 20:
                    record += data
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self):
        for each in self.sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


def frames_of(said):
    """Bodies of the frames that are there whole."""
    at = 0
    bodies = []
    while at + HEAD <= len(said):
        size = struct.unpack_from("<I", said, at)[0]
        if at + HEAD + size > len(said):
            break
        bodies.append(bytes(said[at + HEAD:at + HEAD + size]))
        at += HEAD + size
    return bodies


def payload_begin(body):
    """Behind the fields of the frame, which say what the payload is."""
    at = 1
    if body[0] == REQUEST:
        for _ in range(4):
            _, at = read_varint(body, at)
    elif body[0] == ONE_WAY:
        _, at = read_varint(body, at)
    return at


def without_hurry(body):
    """The same request, but that nothing says by when it must have been begun: what was recorded
    would be late."""
    if body[0] != REQUEST:
        return body
    at = 1
    for _ in range(3):
        _, at = read_varint(body, at)
    _, end = read_varint(body, at)
    return body[:at] + b"\0" + body[end:]


NASTY = (b"\0", b"\xff", b"\x80", b"\x7f", b"\xff" * 8, b"\0" * 8, b"\x80" * 9 + b"\x01",
         b"\xff" * 9 + b"\x01", b"\xff\xff\xff\x7f", b"\x7f\xff\xff\xff")


def mutate(prng, data, others, begin=0):
    """One to four changes behind `begin`."""
    data = bytearray(data)
    for _ in range(prng.choice((1, 1, 1, 2, 4))):
        room = len(data) - begin
        if room <= 0:
            data += prng.choice(NASTY)
            continue
        at = begin + prng.randrange(room)
        kind = prng.randrange(8)
        if kind == 0:
            data[at] ^= 1 << prng.randrange(8)
        elif kind == 1:
            data[at] = prng.randrange(256)
        elif kind == 2:
            data[at] = (data[at] + prng.choice((1, -1))) & 0xFF
        elif kind == 3:
            nasty = prng.choice(NASTY)
            data[at:at + len(nasty)] = nasty
        elif kind == 4:
            data[at:at] = prng.choice(NASTY)
        elif kind == 5:
            del data[at:at + prng.choice((1, 1, 2, 8, room))]
        elif kind == 6:
            other = prng.choice(others)
            begin_other = prng.randrange(len(other)) if other else 0
            data[at:at + prng.randrange(1, 33)] = other[begin_other:begin_other + 32]
        else:
            data[at:at] = data[at:at + prng.randrange(1, 65)]
    return bytes(data)


class Pipe:
    """A connection that is made anew whenever the node has enough of it. What the node answers is
    read, lest it waits."""

    def __init__(self, address, greeting):
        self.address = address
        self.greeting = greeting
        self.socket = None

    def send(self, data):
        try:
            if self.socket is None:
                self.socket = socket.create_connection(self.address, timeout=SECONDS_MAX)
                self.socket.sendall(self.greeting)
            self.drop_answers()
            self.socket.sendall(data)
        except OSError:
            self.close()

    def drop_answers(self):
        while select.select([self.socket], [], [], 0)[0]:
            if not self.socket.recv(1 << 16):
                raise ConnectionResetError

    def __del__(self):
        self.close()

    def finish(self):
        """What was sent is understood, or refused, when the node has nothing more to say."""
        if self.socket is None:
            return
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
            self.socket.settimeout(2)
            while self.socket.recv(1 << 16):
                pass
        self.close()

    def close(self):
        if self.socket is not None:
            self.socket.close()
            self.socket = None


class GoodClient:
    """Writes and reads at QUORUM all the time. Who has a member's name may say in gossip that
    another member began a new life, which that one denies a moment later: a request may be told
    that replicas are missing, and is made again."""

    PATIENCE = 10  # seconds

    def __init__(self, member):
        self.session = connect(member, only=True)
        self.stopped = threading.Event()
        self.errors = []
        self.served = 0
        self.longest = 0
        self.again = 0
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self):
        with self.session as session:
            while not self.stopped.wait(0.01):
                number = self.served
                began = time.monotonic()
                while error := self.attempt(session, number):
                    if time.monotonic() - began > self.PATIENCE:
                        self.errors.append(repr(error))
                        break
                    self.again += 1
                    time.sleep(0.1)
                self.longest = max(self.longest, time.monotonic() - began)
                self.served += 1

    @staticmethod
    def attempt(session, number):
        def quorum(text):
            return SimpleStatement(text, consistency_level=ConsistencyLevel.QUORUM)

        try:
            session.execute(quorum(f"INSERT INTO good.t (k, v) VALUES ({number}, 'v{number}')"))
            rows = session.execute(quorum(f"SELECT v FROM good.t WHERE k = {number}"))
        except (NoHostAvailable, OperationTimedOut, DriverException) as error:
            return error
        assert [row.v for row in rows] == [f"v{number}"], rows
        return None

    def stop(self):
        self.stopped.set()
        self.thread.join()


def text(value):
    return struct.pack(">H", len(value)) + value.encode()


def cql_frame(opcode, body=b"", stream=1, flags=0):
    return struct.pack(">BBhBI", 4, flags, stream, opcode, len(body)) + body


def long_text(value):
    return struct.pack(">I", len(value)) + value.encode()


CQL_STARTUP = cql_frame(0x01, struct.pack(">H", 1) + text("CQL_VERSION") + text("3.0.0"))


def cql_recording():
    plain = struct.pack(">HB", 1, 0)
    two = struct.pack(">HBH", 1, 1, 2) + struct.pack(">ii", 4, 7) + struct.pack(">i", 3) + b"abc"
    texts = (
        "SELECT * FROM rows.t WHERE k = 1", "SELECT count(*), max(v) FROM rows.t",
        "SELECT k, v, writetime(v), ttl(v) FROM rows.t WHERE k IN (1, 2, 3)",
        "SELECT * FROM rows.c WHERE k = 1 AND c > 2 ORDER BY c DESC LIMIT 3",
        "SELECT token(k), toJson(v) FROM rows.t WHERE token(k) > -10 ALLOW FILTERING",
        "INSERT INTO rows.t (k, v) VALUES (1, 'x') USING TTL 100 AND TIMESTAMP 5",
        "UPDATE rows.s SET tags = {'a', 'b'}, m = {1: 'x'}, l = [1, 2] WHERE k = 1",
        "DELETE FROM rows.c WHERE k = 1 AND c >= 2 AND c < 9", "SELECT * FROM system.local",
        "BEGIN BATCH INSERT INTO rows.t (k, v) VALUES (1, 'a'); DELETE FROM rows.t WHERE k = 2; "
        "APPLY BATCH", "UPDATE rows.n SET n = n + 1 WHERE k = 1",
        "SELECT * FROM system_schema.tables",
    )
    frames = [cql_frame(0x07, long_text(each) + plain) for each in texts]
    frames += [cql_frame(0x09, long_text(each)) for each in texts]
    frames.append(cql_frame(0x07, long_text("INSERT INTO rows.t (k, v) VALUES (?, ?)") + two))
    frames.append(cql_frame(0x0A, struct.pack(">H", 16) + bytes(16) + two))
    statement = b"\0" + long_text("INSERT INTO rows.t (k, v) VALUES (?, ?)") + two[3:]
    frames.append(cql_frame(0x0D, struct.pack(">BH", 1, 2) + statement * 2 + plain))
    frames.append(cql_frame(0x05))
    frames.append(cql_frame(0x0B, struct.pack(">H", 1) + text("STATUS_CHANGE")))
    return frames


HTTP_RECORDING = [
    f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n{body}".encode()
    for method, path, headers, body in (
        ("GET", "/metrics", "", ""), ("GET", "/healthz", "Accept: */*\r\n", ""),
        ("GET", "/readyz", "", ""), ("GET", "/v1/cluster/status", "", ""),
        ("HEAD", "/metrics", "Connection: keep-alive\r\n", ""),
        ("GET", "/metrics?name=a&value=%41%zz", "Range: bytes=0-10\r\n", ""),
        ("PUT", "/nothing", "Content-Length: 5\r\n", "hello"),
        ("OPTIONS", "*", "Transfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"),
    )
]


class MutationTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="helenus-mutation-")
        self.addCleanup(folder.cleanup)
        addresses = tuple(f"127.0.{net}.{n}" for net in (0, 1) for n in NUMBERS)
        ports = {name: free_port(addresses) for name in ("node", "cql", "admin")}
        seeds = "[" + ", ".join(f"127.0.1.{n}:{ports['node']}" for n in (1, 2)) + "]"
        self.members = {}
        self.wires = []
        for n in NUMBERS:
            public, private = ((f"127.0.{net}.{n}", ports["node"]) for net in (1, 0))
            self.wires.append(Wire(public, private))
            self.addCleanup(self.wires[-1].close)
            member = Member(folder.name, n, ports, seeds=seeds, broadcast_address=f"127.0.1.{n}")
            self.members[n] = member
            self.addCleanup(lambda m=member: m.is_running() and m.end(9))
        for member in self.members.values():
            member.begin()
        for member in self.members.values():
            member.wait_up()
        self.prng = random.Random(SEED)

    def work(self):
        """A bit of everything that nodes say to each other."""
        with connect(self.members[3]) as session:
            for keyspace in ("good", "rows"):
                session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                                "{'class': 'NetworkTopologyStrategy', 'dc1': 3}")
            session.execute("CREATE TABLE good.t (k int PRIMARY KEY, v text)")
            session.execute("CREATE TABLE rows.t (k int PRIMARY KEY, v text)")
            session.execute("CREATE TABLE rows.c (k int, c int, v text, PRIMARY KEY (k, c))")
            session.execute("CREATE TABLE rows.s (k int PRIMARY KEY, tags set<text>, "
                            "m map<int, text>, l list<int>)")
            session.execute("CREATE TABLE rows.n (k int PRIMARY KEY, n counter)")
            for k in range(100):
                session.execute(f"INSERT INTO rows.t (k, v) VALUES ({k}, 'value {k}')")
                session.execute(f"INSERT INTO rows.c (k, c, v) VALUES ({k % 5}, {k}, 'x')")
            for k in range(10):
                session.execute(f"INSERT INTO rows.t (k, v) VALUES ({k}, 'b') USING TIMESTAMP 9")
                session.execute(f"DELETE FROM rows.c WHERE k = {k % 5} AND c > {k}")
                session.execute(f"UPDATE rows.n SET n = n + 1 WHERE k = {k}")
                session.execute(f"SELECT * FROM rows.t WHERE k = {k}")
            session.execute("SELECT * FROM rows.t")
            session.execute("SELECT * FROM rows.c")

    def record(self):
        """Frames that the third node sent: its hello, and all that it asked and told."""
        self.work()
        # It misses something, and fetches it.
        self.assertEqual(self.members[3].end(9), -9)
        with connect(self.members[1], only=True) as session:
            for k in range(20):
                session.execute(f"INSERT INTO rows.t (k, v) VALUES ({k}, 'missed')")
        self.members[3].start()
        with connect(self.members[3], only=True) as session:
            session.execute("ALTER TABLE rows.t ADD more int")
            session.execute("SELECT * FROM rows.t")
            time.sleep(1)
        self.assertEqual(self.members[3].end(15), 0)
        hello, bodies = None, {}
        for n in ALIVE:
            for said in self.wires[n - 1].calls:
                frames = frames_of(said)
                if not frames or frames[0][0] != HELLO or not self.is_of_third(frames[0]):
                    continue
                hello = frames[0] if hello is None else hello
                for body in frames[1:]:
                    if body[0] in (REQUEST, ONE_WAY):
                        # Of each verb and length some.
                        at = 1
                        for _ in range(2 if body[0] == REQUEST else 1):
                            verb, at = read_varint(body, at)
                        bodies.setdefault((verb, len(body) // 64), [])
                        if len(bodies[verb, len(body) // 64]) < 40:
                            bodies[verb, len(body) // 64].append(without_hurry(body))
        verbs = {verb for verb, _ in bodies}
        self.assertGreaterEqual(len(verbs), 6, f"only verbs {verbs} were recorded")
        # A member's clock, or a mutation that it brings, with dots of another one that this one has
        # not minted says that it has lost writes, and it stops serving: who has the secret can do
        # that (docs/adr/0046).
        return hello, [group for (verb, _), group in bodies.items() if verb not in BELIEVED]

    def is_of_third(self, hello):
        """Its address stands in it."""
        return socket.inet_aton("127.0.1.3") in hello

    def facts(self):
        """What all nodes agree on. Who is up each finds out by itself."""
        found = []
        for n in ALIVE:
            with connect(self.members[n], only=True) as session:
                ring = json.dumps(ask(self.members[n], "ring"))
                found.append((
                    ring.replace('"is_up": true', '"is_up": false'),
                    sorted(map(str, session.execute("SELECT * FROM system_schema.tables"))),
                    sorted(map(str, session.execute("SELECT * FROM system_schema.keyspaces"))),
                    session.schema_version(),
                ))
        return found

    def between_nodes(self, hello, groups, count):
        pipes = [Pipe((f"127.0.0.{n}", self.members[n].ports["node"]), b"") for n in ALIVE]
        every = [body for group in groups for body in group]
        before = self.received()
        for _ in range(count):
            pipe = self.prng.choice(pipes)
            pipe.greeting = node_frame(self.hello_to_anybody(hello))
            body = self.prng.choice(self.prng.choice(groups))
            if self.prng.random() < 0.01:
                pipe.close()
                pipe.greeting = node_frame(mutate(self.prng, pipe.greeting[HEAD:], every, 1))
            begin = payload_begin(body) if self.prng.random() < 0.97 else 0
            body = mutate(self.prng, body, every, begin)
            frame = node_frame(body)
            if self.prng.random() < 0.01:
                frame = mutate(self.prng, frame, every)
            pipe.send(frame)
        for pipe in pipes:
            pipe.finish()
        # Much of it was understood as messages, so that more than frames was tried.
        self.assertGreater(self.received() - before, count // 2)

    def received(self):
        names = ("helenus_rpc_requests_received_total", "helenus_rpc_one_way_received_total")
        sum_of = 0
        for n in ALIVE:
            with contextlib.closing(self.admin(n)) as connection:
                connection.request("GET", "/metrics")
                for line in connection.getresponse().read().decode().splitlines():
                    sum_of += int(line.split()[-1]) if line.startswith(names) else 0
        return sum_of

    def admin(self, n):
        return http.client.HTTPConnection(self.members[n].admin, timeout=SECONDS_MAX)

    def hello_to_anybody(self, hello):
        """The same life of the same node, whoever is greeted."""
        at = 7
        at += 1 + hello[at]
        at += 16 + 8
        wanted = at
        at += 1 + (16 if hello[at] else 0)
        return hello[:wanted] + b"\0" + bytes([self.prng.randrange(2)]) + hello[at + 1:]

    def to_clients(self, count):
        recording = cql_recording()
        pipes = [Pipe((self.members[n].ip, self.members[n].ports["cql"]), CQL_STARTUP)
                 for n in ALIVE]
        for _ in range(count):
            frame = self.prng.choice(recording)
            if self.prng.random() < 0.7:  # the length fits, so that what is in it is looked at
                body = mutate(self.prng, frame[9:], recording)
                # Not of the good client's.
                body = body.replace(b"DROP", b"drip").replace(b"good", b"evil")
                frame = frame[:5] + struct.pack(">I", len(body)) + body
            else:
                frame = mutate(self.prng, frame, recording)
            self.prng.choice(pipes).send(frame)
        for pipe in pipes:
            pipe.finish()

    def to_operators(self, count):
        pipes = [Pipe((self.members[n].ip, self.members[n].ports["admin"]), b"") for n in ALIVE]
        for number in range(count):
            pipe = self.prng.choice(pipes)
            pipe.send(mutate(self.prng, self.prng.choice(HTTP_RECORDING), HTTP_RECORDING))
            if number % 4 == 0:
                pipe.close()
        for pipe in pipes:
            pipe.finish()

    def test_recordings_that_were_changed(self):
        hello, groups = self.record()
        before = self.facts()
        good = GoodClient(self.members[1])
        began = time.monotonic()
        try:
            for part in (self.between_nodes, self.to_clients, self.to_operators):
                share = MUTATIONS * (2 if part == self.between_nodes else 1) // 4
                with self.subTest(part.__name__):
                    arguments = (hello, groups) if part == self.between_nodes else ()
                    part(*arguments, share)
                    for n in ALIVE:
                        self.assertTrue(self.members[n].is_running(), self.members[n].log()[-3000:])
        finally:
            good.stop()
        print(f"{MUTATIONS} messages in {time.monotonic() - began:.0f} s beside {good.served} of a "
              f"good client, the longest {good.longest:.2f} s, {good.again} attempts in vain",
              file=sys.stderr)
        self.assertEqual(good.errors, [])
        self.assertGreater(good.served, 20)
        self.assertEqual(self.facts(), before)
        with connect(self.members[2], only=True) as session:
            session.execute("CREATE TABLE good.after (k int PRIMARY KEY)")
        for n in ALIVE:
            with contextlib.closing(self.admin(n)) as connection:
                connection.request("GET", "/healthz")
                self.assertEqual(connection.getresponse().status, 200)
        self.members[3].start()
        await_that(lambda: all(node["is_up"] for node in ask(self.members[1], "status")["nodes"]),
                   "all nodes are up")
        for member in self.members.values():
            self.assertEqual(member.end(15), 0)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
