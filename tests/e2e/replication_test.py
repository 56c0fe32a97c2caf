#!/usr/bin/python3
"""Rows on three nodes, as clients meet them while nodes are killed, stopped and stalled: what was
acknowledged at QUORUM is read at QUORUM, what was deleted stays deleted, and who comes back catches
up by itself.

    replication_test.py HELENUS [NPM_FOLDER] [RowsTest|KilledTest|StoppedTest]
"""

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from cassandra import ConsistencyLevel, InvalidRequest, OperationTimedOut, Unavailable, WriteTimeout
from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import BatchStatement, SimpleStatement

import cluster_test
from cluster_test import Member, NUMBERS, SECONDS_MAX, ask, await_that, run
from helenus_process import free_port  # found by way of cluster_test

ONE, QUORUM, ALL = (ConsistencyLevel.ONE, ConsistencyLevel.QUORUM, ConsistencyLevel.ALL)
NPM_FOLDER = None  # where npm's driver is, if it is
# How long a node that came back may take until it has what it missed.
CATCH_UP_SECONDS = 30
# A request that meets a node that is not known to be down yet may take so long, and no longer.
REQUEST_SECONDS_MAX = 5
# Some requests, one after the other, once those who ask have noticed: the machine is busy.
SUSPECTED_SECONDS_MAX = 2


class Client:
    """A driver that talks to one node alone and tries nothing twice."""

    def __init__(self, member):
        profile = ExecutionProfile(load_balancing_policy=WhiteListRoundRobinPolicy([member.ip]),
                                   retry_policy=FallthroughRetryPolicy(),
                                   consistency_level=QUORUM, request_timeout=SECONDS_MAX)
        self.ip = member.ip
        self.cluster = Cluster([member.ip], port=member.ports["cql"], protocol_version=4,
                               execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self.session = self.cluster.connect()

    def execute(self, text, *values, level=QUORUM, fetch_size=5000):
        statement = SimpleStatement(text, consistency_level=level, fetch_size=fetch_size)
        return list(self.session.execute(statement, values or None))

    def put(self, key, value, level=QUORUM):
        self.execute("INSERT INTO rows.kv (k, v) VALUES (%s, %s)", key, value, level=level)

    def delete(self, key, level=QUORUM):
        self.execute("DELETE FROM rows.kv WHERE k = %s", key, level=level)

    def get(self, key, level=QUORUM):
        """None if there is no such row."""
        rows = self.execute("SELECT v FROM rows.kv WHERE k = %s", key, level=level)
        return rows[0].v if rows else None

    def close(self):
        self.cluster.shutdown()


@contextlib.contextmanager
def clients_of(members):
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(contextlib.closing(Client(member))) for member in members]


class Writer(threading.Thread):
    """Writes one key after the other through one node, deletes every fourth again, and remembers
    what was acknowledged and when something failed."""

    def __init__(self, client, prefix):
        super().__init__()
        self.client = client
        self.prefix = prefix
        self.values = {}  # by key, as acknowledged: None is deleted
        self.unknown = set()  # keys of requests that failed
        self.failures = []  # (began, ended, error)
        self.acknowledged_at = []
        self.ending = threading.Event()

    def attempt(self, key, value, request):
        began = time.monotonic()
        try:
            request()
        except Exception as error:  # noqa: BLE001, whatever the driver says is judged by the test
            self.unknown.add(key)
            self.failures.append((began, time.monotonic(), error))
            return
        self.values[key] = value
        self.acknowledged_at.append(time.monotonic())

    def run(self):
        for number in itertools.count():
            if self.ending.is_set():
                return
            key = f"{self.prefix}{number}"
            self.attempt(key, number, lambda: self.client.put(key, number))
            if number % 4 == 3:
                self.attempt(key, None, lambda: self.client.delete(key))

    def end(self):
        self.ending.set()
        self.join()


# As an application does it: the driver chooses the node of each request. Writes until it is told to
# end, and then reads what was acknowledged.
NPM_SCRIPT = """
const { Client, types } = require('cassandra-driver');
const [port, ...contactPoints] = process.argv.slice(1);
const client = new Client({ contactPoints, localDataCenter: 'dc1', keyspace: 'rows',
                            protocolOptions: { port: Number(port) },
                            queryOptions: { prepare: true, consistency: types.consistencies.quorum }
                          });
let ending = false;
process.stdin.on('data', () => { ending = true; });
async function main() {
  await client.connect();
  const acknowledged = [], failures = [];
  for (let n = 0; !ending; ++n) {
    if (n === 50) console.log('writes');
    try {
      await client.execute('INSERT INTO kv (k, v) VALUES (?, ?)', [`npm-${n}`, n]);
      acknowledged.push(n);
    } catch (error) {
      failures.push(String(error));
    }
  }
  const missing = [];
  for (const n of acknowledged) {
    const found = await client.execute('SELECT v FROM kv WHERE k = ?', [`npm-${n}`]);
    if (found.rowLength !== 1 || found.first().v !== n) missing.push(n);
  }
  console.log(JSON.stringify({ acknowledged: acknowledged.length, failures, missing }));
  await client.shutdown();
  process.exit(0);
}
main().catch(error => { console.error(error); process.exit(1); });
"""


class ThreeNodes(unittest.TestCase):
    """Every story begins and ends with three nodes that are up."""

    settings = {}  # of all of them

    @classmethod
    def make_members(cls):
        ports = {kind: free_port([f"127.0.0.{number}" for number in NUMBERS])
                 for kind in ("node", "cql", "admin")}
        return [Member(cls.scratch.name, number, ports, **cls.settings) for number in NUMBERS]

    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        cls.members = cls.make_members()
        for member in cls.members:
            member.begin()
        for member in cls.members:
            member.wait_up()
        cls.await_all_up()
        with clients_of(cls.members[:1]) as (client,):
            client.execute("CREATE KEYSPACE rows WITH replication = "
                           "{'class': 'NetworkTopologyStrategy', 'dc1': 3}")
            client.execute("CREATE TABLE rows.kv (k text PRIMARY KEY, v int)")
            client.execute("CREATE TABLE rows.wide (p int, c int, v text, PRIMARY KEY (p, c))")

    @classmethod
    def tearDownClass(cls):
        for member in cls.members:
            if member.is_running():
                member.end(signal.SIGTERM)
        cls.scratch.cleanup()

    def setUp(self):
        for member in self.members:
            if not member.is_running():
                member.start()
        self.await_all_up()

    @classmethod
    def await_all_up(cls):
        for member in cls.members:
            await_that(lambda: set(cls.states(member).values()) == {"UN"}
                       and len(cls.states(member)) == 3, f"{member.ip} sees all up")

    @staticmethod
    def states(member):
        """By address, as in UN."""
        status = ask(member, "status") or {"nodes": []}
        return {node["node_address"].split(":")[0]:
                ("U" if node["is_up"] else "D") + node["state"][0].upper()
                for node in status["nodes"]}

    def await_down(self, gone, seers):
        for member in seers:
            await_that(lambda: self.states(member).get(gone.ip) == "DN",
                       f"{member.ip} sees {gone.ip} down")

    # ---- Checkers ----

    def assert_rows(self, client, expected, level=QUORUM):
        """By key; None: there is no such row."""
        wrong = {}
        for key, value in expected.items():
            found = client.get(key, level)
            if found != value:
                wrong[key] = (found, value)
        self.assertEqual(wrong, {}, f"found, expected; through {client.ip} at level {level}")

    def await_rows(self, client, expected):
        """A node answers at ONE from what it has itself."""
        left = dict(expected)

        def caught_up():
            for key in list(left):
                if client.get(key, ONE) != left[key]:
                    return False
                del left[key]
            return True

        await_that(caught_up, f"{client.ip} has what it missed: {len(left)} rows and less",
                   CATCH_UP_SECONDS)


class RowsTest(ThreeNodes):
    """All three are up, or one is away for a while."""

    def test_what_is_written_through_any_node_is_read_through_all(self):
        with clients_of(self.members) as clients:
            expected = {}
            for client in clients:
                for number in range(30):
                    key = f"any-{client.ip}-{number}"
                    client.put(key, number)
                    expected[key] = number
            for number, client in enumerate(clients):
                key = f"any-{clients[number - 1].ip}-0"
                client.delete(key)
                expected[key] = None
            for client in clients:
                self.assert_rows(client, expected)
                self.await_rows(client, expected)
        for member in self.members:
            await_that(lambda: run("missing", "--admin", member.admin).stdout.endswith(
                "\nnothing to repair\n"), f"{member.ip} and others lack nothing", CATCH_UP_SECONDS)
            self.assertEqual([(peer["missing_here"], peer["missing_there"])
                              for peer in ask(member, "missing")["peers"]], [(0, 0), (0, 0)])

    def test_a_trace_tells_what_each_replica_did_and_is_read_through_any_node(self):
        with clients_of(self.members) as clients:
            def told(text):
                statement = SimpleStatement(text, consistency_level=QUORUM)
                result = clients[0].session.execute(statement, trace=True)
                session = result.get_query_trace().trace_id
                for client in clients:  # whoever is asked
                    rows = client.execute(
                        "SELECT activity FROM system_traces.events WHERE session_id = %s", session)
                    self.assertGreater(len(rows), 2, f"through {client.ip}")
                return "\n".join(row.activity for row in rows)

            written = told("INSERT INTO rows.kv (k, v) VALUES ('traced', 1)")
            self.assertRegex(written, r"127\.0\.0\.1:\d+ minted .* and made it durable")
            self.assertRegex(written, r"127\.0\.0\.[23]:\d+ has it")
            self.assertRegex(written, r"[23] of 2 replicas have the write")
            read = told("SELECT v FROM rows.kv WHERE k = 'traced'")
            self.assertRegex(read, r"Asking 127\.0\.0\.[23]:\d+")
            self.assertRegex(read, r"Answer of 127\.0\.0\.[23]:\d+")

    def test_requests_that_hang_are_shown_with_what_they_wait_for(self):
        stalled = self.members[2]
        with clients_of(self.members[:1]) as (client,):
            client.put("hangs", 1)
            stalled.process.send_signal(signal.SIGSTOP)
            try:
                statement = SimpleStatement("INSERT INTO rows.kv (k, v) VALUES ('hangs', 2)",
                                            consistency_level=ALL)
                hanging = client.session.execute_async(statement)
                rows = await_that(lambda: [
                    row for row in client.execute("SELECT * FROM helenus.requests", level=ONE)
                    if row.phase == "waits for replicas"], "it is shown", 2)
                self.assertEqual([(row.kind, row.keyspace_name, row.consistency, row.required,
                                   row.received) for row in rows],
                                 [("write", "rows", "ALL", 3, 2)])
                with self.assertRaises((WriteTimeout, Unavailable)) as late:
                    hanging.result()
                if isinstance(late.exception, WriteTimeout):
                    self.assertEqual((late.exception.required_responses,
                                      late.exception.received_responses), (3, 2))
                self.assertEqual(client.execute("SELECT * FROM helenus.requests", level=ONE), [])
                metrics = client.execute(
                    "SELECT labels, value FROM helenus.metrics WHERE name = %s",
                    "helenus_replication_levels_missed_total", level=ONE)
                missed = {row.labels: row.value for row in metrics}
                self.assertGreaterEqual(missed['why="timeout",level="ALL"'], 1)
            finally:
                stalled.process.send_signal(signal.SIGCONT)
            self.await_all_up()

    def test_what_one_node_gave_is_good_on_every_other(self):
        """A context; pages and prepared statements are in the next story."""
        with clients_of(self.members) as clients:
            clients[0].execute("CREATE TABLE rows.carts (k int PRIMARY KEY, v text) "
                               "WITH conflicts = 'siblings'")
            clients[0].execute("INSERT INTO rows.carts (k, v) VALUES (1, 'a')")
            select = SimpleStatement("SELECT v FROM rows.carts WHERE k = 1",
                                     consistency_level=QUORUM)
            read = clients[1].session.execute_async(select, custom_payload={"helenus-context": b""})
            read.result()
            context = read.custom_payload["helenus-context"]
            insert = SimpleStatement("INSERT INTO rows.carts (k, v) VALUES (1, 'b')",
                                     consistency_level=QUORUM)
            clients[2].session.execute(insert, custom_payload={"helenus-context": context})
            for client in clients:
                rows = client.execute("SELECT v FROM rows.carts WHERE k = 1")
                self.assertEqual([row.v for row in rows], ["b"])
            forged = context[:-1] + bytes([context[-1] ^ 1])
            with self.assertRaises(InvalidRequest):
                clients[1].session.execute(insert, custom_payload={"helenus-context": forged})
            clients[0].execute("DROP TABLE rows.carts")

    def test_conditions_are_refused_in_words(self):
        with clients_of(self.members[:1]) as (client,):
            for statement in ("INSERT INTO rows.kv (k, v) VALUES ('if', 1) IF NOT EXISTS",
                              "UPDATE rows.kv SET v = 2 WHERE k = 'if' IF v = 1"):
                with self.assertRaisesRegex(InvalidRequest, "[Ll]ightweight transactions"):
                    client.execute(statement)
            self.assertIsNone(client.get("if"))

    def test_prepared_statements_and_pages_go_on_with_a_node_down(self):
        with clients_of(self.members) as clients:
            sessions = [client.session for client in clients]
            insert = sessions[0].prepare("INSERT INTO rows.wide (p, c, v) VALUES (?, ?, ?)")
            select = sessions[1].prepare("SELECT c FROM rows.wide WHERE p = ?")
            everything = sessions[2].prepare("SELECT p, c FROM rows.wide")
            for statement in (insert, select, everything):
                statement.consistency_level = QUORUM
            for row in range(100):
                sessions[row % 3].execute(insert, (2, row, "y"))
            batch = BatchStatement(consistency_level=QUORUM)
            for row in range(100, 110):
                batch.add(insert, (2, row, "z"))
            sessions[2].execute(batch)
            self.members[1].end(signal.SIGKILL)
            for session in (sessions[0], sessions[2]):
                select.fetch_size = everything.fetch_size = 7
                rows = [row.c for row in session.execute(select, (2,))]
                self.assertEqual(rows, list(range(110)))
                rows = [row.c for row in session.execute(everything) if row.p == 2]
                self.assertEqual(rows, list(range(110)))
            # A page that one node gave is gone on with at another.
            first = sessions[0].execute(select, (2,))
            seen = [row.c for row in first.current_rows]
            rest = sessions[2].execute(select, (2,), paging_state=first.paging_state)
            self.assertEqual(seen + [row.c for row in rest], list(range(110)))

    def test_tables_that_are_truncated_or_dropped_stay_empty(self):
        def fill(client):
            for number in range(30):
                client.execute("INSERT INTO rows.gone (k, v) VALUES (%s, 1)", number, level=ALL)

        def assert_count(clients, count):
            for client in clients:
                for level in (ALL, QUORUM, ONE):
                    rows = client.execute("SELECT k FROM rows.gone", level=level)
                    self.assertEqual(len(rows), count, f"{client.ip} at {level}")

        create = "CREATE TABLE rows.gone (k int PRIMARY KEY, v int)"
        with clients_of(self.members) as clients:
            clients[0].execute(create)
            fill(clients[0])
            assert_count(clients, 30)
            clients[1].execute("TRUNCATE rows.gone")
            assert_count(clients, 0)
            fill(clients[2])
            assert_count(clients, 30)
        # Dropped and made again while one that has the rows is away.
        self.members[0].end(signal.SIGKILL)
        with clients_of(self.members[1:]) as clients:
            clients[0].execute("DROP TABLE rows.gone")
            clients[1].execute(create)
        self.members[0].start()
        self.await_all_up()
        with clients_of(self.members) as clients:
            assert_count(clients, 0)
            fill(clients[0])
            assert_count(clients, 30)
            clients[2].execute("DROP TABLE rows.gone")

    def test_a_level_that_cannot_be_met_is_unavailable_at_once(self):
        gone, others = self.members[2], self.members[:2]
        gone.end(signal.SIGTERM)
        self.await_down(gone, others)
        with clients_of(others) as clients:
            for client in clients:
                for request in (lambda: client.put("unavailable", 1, ALL),
                                lambda: client.get("unavailable", ALL)):
                    began = time.monotonic()
                    with self.assertRaises(Unavailable) as refused:
                        request()
                    self.assertLess(time.monotonic() - began, 2)
                    self.assertEqual((refused.exception.required_replicas,
                                      refused.exception.alive_replicas), (3, 2))
                self.assertIsNone(client.get("unavailable"), "nothing was written")
            others[1].end(signal.SIGTERM)
            self.await_down(others[1], others[:1])
            for request in (lambda: clients[0].put("unavailable", 2),
                            lambda: clients[0].get("unavailable")):
                with self.assertRaises(Unavailable):
                    request()
            clients[0].put("available", 3, ONE)
            self.assertEqual(clients[0].get("available", ONE), 3)
        gone.start()
        others[1].start()
        self.await_all_up()
        with clients_of(self.members) as clients:
            for client in clients:
                self.await_rows(client, {"available": 3, "unavailable": None})


class KilledTest(ThreeNodes):
    """One is killed while clients go on."""

    def test_a_node_that_is_killed_fails_no_request_to_the_others(self):
        gone, others = self.members[2], self.members[:2]
        with clients_of(others) as clients:
            writers = [Writer(client, f"kill-{client.ip}-") for client in clients]
            for writer in writers:
                writer.start()
            await_that(lambda: all(len(writer.values) > 50 for writer in writers), "all write")
            killed_at = time.monotonic()
            gone.end(signal.SIGKILL)
            time.sleep(2)
            self.await_down(gone, others)
            time.sleep(1)
            gone.start()
            time.sleep(1)
            for writer in writers:
                writer.end()
            for writer in writers:
                with self.subTest(writer.prefix):
                    late = [(began - killed_at, repr(error))
                            for began, _, error in writer.failures if began > killed_at]
                    self.assertEqual(late, [], "of requests that began when it was dead")
                    self.assertLess(len(writer.failures), 3, "of those in flight")
                    self.assert_goes_on(writer, killed_at)
            expected = {key: value for writer in writers for key, value in writer.values.items()
                        if key not in writer.unknown}
            for client in clients:
                self.assert_rows(client, expected)
            with clients_of([gone]) as (client,):
                self.await_rows(client, expected)
                self.assert_rows(client, expected)

    def assert_goes_on(self, writer, since):
        times = [at for at in writer.acknowledged_at if at > since]
        pauses = [later - earlier for earlier, later in zip([since, *times], times)]
        self.assertGreater(len(times), 50)
        self.assertLess(max(pauses), REQUEST_SECONDS_MAX)

    def test_the_driver_of_npm_goes_on_when_a_node_is_killed(self):
        modules = os.path.join(NPM_FOLDER or "", "node_modules")
        if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "cassandra-driver")):
            self.skipTest("npm's driver is not installed; drivers.node installs it")
        others = self.members[:2]
        script = subprocess.Popen(
            ["node", "-e", NPM_SCRIPT, "--", str(others[0].ports["cql"])]
            + [member.ip for member in others],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "NODE_PATH": modules})
        try:
            self.assertEqual(script.stdout.readline(), "writes\n")
            self.members[2].end(signal.SIGKILL)
            time.sleep(3)
            told, errors = script.communicate("end\n", timeout=SECONDS_MAX)
        finally:
            script.kill()
            script.wait()
        self.assertEqual(script.returncode, 0, errors)
        told = json.loads(told)
        self.assertEqual(told["missing"], [])
        self.assertLess(len(told["failures"]), 3, told["failures"])
        self.assertGreater(told["acknowledged"], 100)

    def test_no_zombie_of_what_was_deleted_while_a_node_was_down(self):
        gone, others = self.members[1], (self.members[0], self.members[2])
        keys = [f"zombie-{number}" for number in range(40)]
        with clients_of(self.members) as clients:
            for number, key in enumerate(keys):
                clients[0].put(key, number, ALL)
            for row in range(20):
                clients[0].execute("INSERT INTO rows.wide (p, c, v) VALUES (1, %s, 'x')", row,
                                   level=ALL)
        gone.end(signal.SIGKILL)
        with clients_of(others) as clients:
            for number, key in enumerate(keys):
                clients[number % 2].delete(key)
            clients[0].execute("DELETE FROM rows.wide WHERE p = 1 AND c < 10")
            clients[1].execute("DELETE v FROM rows.wide WHERE p = 1 AND c = 15")
        gone.start()
        self.await_all_up()
        expected = dict.fromkeys(keys)
        with clients_of([gone]) as (client,):
            self.await_rows(client, expected)
            await_that(lambda: self.wide_rows(client, ONE) == self.wide_left(), "ranges, too",
                       CATCH_UP_SECONDS)
            # Nobody brings it back: not whoever reads all, and not those who exchange what they
            # have.
            for level in (ALL, QUORUM, ONE):
                self.assert_rows(client, expected, level)
            time.sleep(2)
        with clients_of(self.members) as clients:
            for client in clients:
                for level in (ALL, ONE):
                    self.assert_rows(client, expected, level)
                    self.assertEqual(self.wide_rows(client, level), self.wide_left())

    @staticmethod
    def wide_rows(client, level):
        rows = client.execute("SELECT c, v FROM rows.wide WHERE p = 1", level=level)
        return {row.c: row.v for row in rows}

    @staticmethod
    def wide_left():
        return {row: None if row == 15 else "x" for row in range(10, 20)}


class StoppedTest(ThreeNodes):
    """Nodes stall, and all are started anew."""

    def test_a_node_that_stalls_holds_nobody_up_for_long(self):
        stalled, others = self.members[0], self.members[1:]
        expected = {}
        with clients_of(others) as clients:
            for number in range(20):
                clients[0].put(f"stall-before-{number}", number, ALL)
                expected[f"stall-before-{number}"] = number
            stalled.process.send_signal(signal.SIGSTOP)
            try:
                # Nobody has heard that it stalls; whoever is asked notices.
                end = time.monotonic() + 7
                noticed = time.monotonic() + 1
                slowest = 0
                for number in itertools.count():
                    client = clients[number % 2]
                    began = time.monotonic()
                    if began > end:
                        break
                    key = f"stall-{number}"
                    client.put(key, number)
                    expected[key] = number
                    self.assertEqual(client.get(key), number)
                    self.assertEqual(client.get(f"stall-before-{number % 20}"), number % 20)
                    if number % 10 == 9:
                        client.delete(key)
                        expected[key] = None
                        self.assertIsNone(client.get(key))
                    if began > noticed:
                        slowest = max(slowest, time.monotonic() - began)
                self.assertLess(slowest, SUSPECTED_SECONDS_MAX)
            finally:
                stalled.process.send_signal(signal.SIGCONT)
            self.await_all_up()
            for client in clients:
                self.assert_rows(client, expected)
        with clients_of([stalled]) as (client,):
            self.await_rows(client, expected)

    def test_a_client_that_waits_in_vain_is_told_of_a_timeout_not_of_success(self):
        """With two nodes stalled and not known to be down, nothing is acknowledged at QUORUM."""
        with clients_of(self.members[:1]) as (client,):
            client.put("vain", 1)
            for member in self.members[1:]:
                member.process.send_signal(signal.SIGSTOP)
            try:
                statement = SimpleStatement("INSERT INTO rows.kv (k, v) VALUES ('vain', 2)",
                                            consistency_level=QUORUM)
                with self.assertRaises((OperationTimedOut, Unavailable, NoHostAvailable,
                                        ConnectionException, WriteTimeout)):
                    client.session.execute(statement, timeout=3)
            finally:
                for member in self.members[1:]:
                    member.process.send_signal(signal.SIGCONT)
            self.await_all_up()
            self.assertIn(client.get("vain"), (1, 2))

    def test_rows_survive_restarts_of_all_nodes_in_any_order(self):
        expected = {}
        for turn, order in enumerate([(0, 1, 2), (2, 0, 1), (1, 2, 0)]):
            with clients_of(self.members) as clients:
                for number in range(20):
                    expected[f"restart-{turn}-{number}"] = number
                    clients[number % 3].put(f"restart-{turn}-{number}", number)
                deleted = f"restart-{turn}-7"
                clients[turn].delete(deleted)
                expected[deleted] = None
            for member in self.members:
                member.end(signal.SIGKILL if turn % 2 == 0 else signal.SIGTERM)
            for place in order:
                self.members[place].start()
            self.await_all_up()
            with clients_of(self.members) as clients:
                for client in clients:
                    self.assert_rows(client, expected)
                for client in clients:
                    self.await_rows(client, expected)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    if len(sys.argv) > 1 and os.sep in sys.argv[1]:
        NPM_FOLDER = sys.argv.pop(1)
    unittest.main(verbosity=2)
