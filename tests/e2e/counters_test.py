#!/usr/bin/python3
"""Counters on three nodes behind proxies that lose answers, while coordinators are killed: with
operation ids the sum is that of the increments, to the last; without them it is not.

    counters_test.py HELENUS NPM_FOLDER [PythonTest|NodeTest]

HELENUS_COUNTER_INCREMENTS says how many increments a run makes (10000).
"""

import contextlib
import json
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import uuid
from concurrent.futures import ThreadPoolExecutor

from cassandra import ConsistencyLevel, InvalidRequest
from cassandra.cluster import Cluster, EXEC_PROFILE_DEFAULT, ExecutionProfile
from cassandra.policies import ConstantReconnectionPolicy, RetryPolicy, RoundRobinPolicy

import cluster_test
from cluster_test import Member, NUMBERS, SECONDS_MAX, ask, await_that
from helenus_process import free_port  # found by way of cluster_test

REPOSITORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(REPOSITORY, "clients", "python"))
import helenus  # noqa: E402

INCREMENTS = int(os.environ.get("HELENUS_COUNTER_INCREMENTS", "10000"))
KEYS = 8
WORKERS = 16
ANSWERS_LOST = 0.01  # of answers of a proxy, by the chunk
# What an attempt may take before it is tried elsewhere.
ATTEMPT_SECONDS = 2
KILLS = 2
NPM_FOLDER = None


def behind(member):
    """Where the node listens for the proxy that stands at its address."""
    return member.ip.replace("127.0.0.", "127.0.1.")


class Proxy(threading.Thread):
    """Listens where drivers think that a node is, and loses some of its answers: the connection
    breaks instead."""

    def __init__(self, member):
        super().__init__(daemon=True)
        self.target = (behind(member), member.ports["cql"])
        self.listener = socket.create_server((member.ip, member.ports["cql"]))
        self.lost = 0
        self.dice = random.Random(member.ip)
        self.loses = False
        self.ending = False

    def run(self):
        while not self.ending:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(client,), daemon=True).start()

    def carry(self, client):
        try:
            server = socket.create_connection(self.target, timeout=5)
        except OSError:
            client.close()
            return
        requests = 0
        try:
            while not self.ending:
                for source in select.select([client, server], [], [], 1)[0]:
                    data = source.recv(65536)
                    if not data:
                        return
                    requests += source is client
                    # The first ones are the driver's own, of which it has few connections.
                    may_lose = self.loses and source is server and requests > 20
                    if may_lose and self.dice.random() < ANSWERS_LOST:
                        self.lost += 1
                        return
                    (client if source is server else server).sendall(data)
        except OSError:
            pass
        finally:
            client.close()
            server.close()

    def end(self):
        self.ending = True
        self.listener.close()


class CountersTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="helenus-counters-")
        ips = [f"127.0.{net}.{number}" for number in NUMBERS for net in (0, 1)]
        cls.ports = {kind: free_port(ips) for kind in ("node", "cql", "admin")}
        cls.members = [
            Member(cls.scratch.name, number, cls.ports, request_timeout_ms=3000,
                   cql_address=f"127.0.1.{number}:{cls.ports['cql']}",
                   cql_broadcast_address=f"127.0.0.{number}")
            for number in NUMBERS]
        for member in cls.members:
            member.begin()
        for member in cls.members:
            member.wait_up()
        cls.await_members()
        cls.proxies = [Proxy(member) for member in cls.members]
        for proxy in cls.proxies:
            proxy.start()

    @classmethod
    def tearDownClass(cls):
        for proxy in cls.proxies:
            proxy.end()
        for member in cls.members:
            if member.is_running():
                member.end(signal.SIGKILL)
        cls.scratch.cleanup()

    @classmethod
    def await_members(cls):
        def all_see_all():
            return all(len([node for node in (ask(member, "status") or {}).get("nodes", [])
                            if node.get("is_up")]) == len(NUMBERS) for member in cls.members)
        await_that(all_see_all, "all nodes see each other")

    def trouble(self, done):
        """Kills one coordinator after the other with -9 and starts it again, until all is done."""
        for member in self.members[:KILLS]:
            if done.wait(timeout=2 + random.random()):
                return
            member.end(signal.SIGKILL)
            time.sleep(0.5)
            member.start()
            self.await_members()

    def sums(self, session, table):
        statement = f"SELECT k, n FROM counted.{table}"
        rows = session.execute(statement)
        return {row.k: row.n for row in rows}


    def fold(self, table):
        """Has all nodes write files and merge them until no increment is left that is not in a
        total."""
        def unfolded(member):
            tables = (ask(member, "tablestats", "counted") or {}).get("tables", [])
            return [each for each in tables if each["table"] == table and
                    (each["sstable_increments"] or each["memtable_keys"])]

        def all_folded():
            for member in self.members:
                if unfolded(member):
                    ask(member, "flush", "counted", table)
                    ask(member, "compact", "counted", table)
            return not any(unfolded(member) for member in self.members)
        await_that(all_folded, "all increments are folded")


def connected(members, retry_policy, seconds):
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), retry_policy=retry_policy,
                               consistency_level=ConsistencyLevel.QUORUM, request_timeout=seconds)
    return Cluster([member.ip for member in members], port=members[0].ports["cql"],
                   protocol_version=4,
                   reconnection_policy=ConstantReconnectionPolicy(0.3, max_attempts=None),
                   execution_profiles={EXEC_PROFILE_DEFAULT: profile})


@contextlib.contextmanager
def calm_session(members):
    with contextlib.closing(Shutdown(connected(members, RetryPolicy(), SECONDS_MAX))) as cluster:
        yield cluster.connect()


class Shutdown:
    def __init__(self, cluster):
        self.connect = cluster.connect
        self.close = cluster.shutdown


class PythonTest(CountersTest):
    def count(self, table, with_ids):
        """Makes all increments, each until it is acknowledged. How many attempts it took."""
        with calm_session(self.members) as session:
            session.execute("CREATE KEYSPACE IF NOT EXISTS counted WITH replication = "
                            "{'class': 'SimpleStrategy', 'replication_factor': 3}")
            session.execute(f"CREATE TABLE counted.{table} (k int PRIMARY KEY, n counter)")
        # The driver tries again by itself, and so does the program.
        cluster = connected(self.members, helenus.Retries(attempts=4), ATTEMPT_SECONDS)
        session = cluster.connect()
        add = session.prepare(f"UPDATE counted.{table} SET n = n + 1 WHERE k = ?")
        failures = []

        def increment(number):
            operation = helenus.operation_id()
            while True:
                try:
                    if with_ids:
                        helenus.execute(session, add, [number % KEYS], operation=operation)
                    else:
                        bound = add.bind([number % KEYS])
                        bound.is_idempotent = True  # which it is not
                        session.execute(bound)
                    return
                except InvalidRequest:
                    raise
                except Exception as error:  # noqa: BLE001, timeouts, connections, too few nodes
                    failures.append(repr(error))
                    time.sleep(0.05)

        done = threading.Event()
        for proxy in self.proxies:
            proxy.loses = True
        trouble = threading.Thread(target=self.trouble, args=(done,))
        trouble.start()
        began = time.monotonic()
        with ThreadPoolExecutor(WORKERS) as pool:
            for result in [pool.submit(increment, number) for number in range(INCREMENTS)]:
                result.result()
        took = time.monotonic() - began
        done.set()
        trouble.join()
        for proxy in self.proxies:
            proxy.loses = False
        cluster.shutdown()
        self.await_members()
        with calm_session(self.members) as session:
            sums = self.sums(session, table)
        lost = sum(proxy.lost for proxy in self.proxies)
        print(f"{table}: {INCREMENTS} increments in {took:.1f} s, {len(failures)} failed and tried "
              f"again by the program, {lost} answers lost so far: sum {sum(sums.values())}")
        return sums

    def test_with_ids_every_increment_counts_once_and_without_them_some_twice(self):
        expected = {key: len(range(key, INCREMENTS, KEYS)) for key in range(KEYS)}
        self.assertEqual(self.count("with_ids", True), expected)
        self.fold("with_ids")
        with calm_session(self.members) as session:
            self.assertEqual(self.sums(session, "with_ids"), expected)
            session.execute("DELETE FROM counted.with_ids WHERE k = 0")
            session.execute("UPDATE counted.with_ids SET n = n + 5 WHERE k = 0")
            self.assertEqual(self.sums(session, "with_ids"), {**expected, 0: 5})
        without = self.count("without_ids", False)
        self.assertGreater(sum(without.values()), INCREMENTS)

    def test_ids_that_are_none_are_refused(self):
        with calm_session(self.members) as session:
            session.execute("CREATE KEYSPACE IF NOT EXISTS counted WITH replication = "
                            "{'class': 'SimpleStrategy', 'replication_factor': 3}")
            session.execute("CREATE TABLE counted.refusals (k int PRIMARY KEY, n counter)")
            add = session.prepare("UPDATE counted.refusals SET n = n + ? WHERE k = ?")

            def refusal(operation, amount=1, key=1):
                with self.assertRaises(InvalidRequest) as refused:
                    helenus.execute(session, add, [amount, key], operation=operation)
                return str(refused.exception)

            def at(seconds):
                stamp = int((time.time() + seconds) * 1000).to_bytes(6, "big")
                return stamp + helenus.operation_id()[6:]

            self.assertIn("16 bytes", refusal(b"short"))
            self.assertIn("version", refusal(os.urandom(6) + b"\x40" + os.urandom(9)))
            self.assertIn("in the future", refusal(at(3600)))
            self.assertIn("took effect is not known", refusal(at(-3600)))
            operation = helenus.operation_id()
            helenus.execute(session, add, [1, 1], operation=operation)
            helenus.execute(session, add, [1, 1], operation=operation)
            self.assertIn("another operation", refusal(operation, amount=2))
            # And by the statement itself.
            named_operation = helenus.operation_id()
            named = session.prepare(
                "UPDATE counted.refusals USING OPERATION ? SET n = n + 1 WHERE k = 2")
            for _ in range(3):
                session.execute(named, [uuid.UUID(bytes=named_operation)])
            self.assertEqual(self.sums(session, "refusals"), {1: 1, 2: 1})


NPM_SCRIPT = """
const { Client, types, policies } = require('cassandra-driver');
const helenus = require(process.argv[1]);
const [port, count, keys, ...contactPoints] = process.argv.slice(2);
const client = new Client({ contactPoints, localDataCenter: 'dc1', keyspace: 'counted',
  protocolOptions: { port: Number(port) },
  policies: { reconnection: new policies.reconnection.ConstantReconnectionPolicy(300) },
  socketOptions: { readTimeout: 2000 },
  queryOptions: { prepare: true, consistency: types.consistencies.quorum } });
let failures = 0;
async function increment(number) {
  const operation = helenus.operationId();
  for (;;) {
    try {
      await helenus.execute(client, 'UPDATE from_node SET n = n + 1 WHERE k = ?',
        [number % Number(keys)], { operation });
      return;
    } catch (error) {
      if (error.code === 0x2200) throw error;
      ++failures;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
}
async function main() {
  await client.connect();
  let next = 0;
  const worker = async () => { while (next < Number(count)) await increment(next++); };
  await Promise.all(Array.from({ length: 16 }, worker));
  process.stdout.write(JSON.stringify({ failures }), () => process.exit(0));
}
main().catch((error) => { console.error(error); process.exit(1); });
"""


class NodeTest(CountersTest):
    def test_every_increment_counts_once(self):
        modules = os.path.join(NPM_FOLDER, "node_modules")
        if not shutil.which("node") or not os.path.isdir(os.path.join(modules, "cassandra-driver")):
            self.skipTest("npm's driver is not installed; drivers.node installs it")
        with calm_session(self.members) as session:
            session.execute("CREATE KEYSPACE counted WITH replication = "
                            "{'class': 'SimpleStrategy', 'replication_factor': 3}")
            session.execute("CREATE TABLE counted.from_node (k int PRIMARY KEY, n counter)")
        for proxy in self.proxies:
            proxy.loses = True
        done = threading.Event()
        trouble = threading.Thread(target=self.trouble, args=(done,))
        trouble.start()
        script = subprocess.run(
            ["node", "-e", NPM_SCRIPT, "--", os.path.join(REPOSITORY, "clients", "node"),
             str(self.ports["cql"]), str(INCREMENTS), str(KEYS),
             *(member.ip for member in self.members)],
            capture_output=True, text=True, timeout=240, env={**os.environ, "NODE_PATH": modules})
        done.set()
        trouble.join()
        self.assertEqual(script.returncode, 0, script.stderr)
        self.await_members()
        with calm_session(self.members) as session:
            sums = self.sums(session, "from_node")
        lost = sum(proxy.lost for proxy in self.proxies)
        print(f"from_node: {INCREMENTS} increments, {json.loads(script.stdout)['failures']} failed "
              f"and tried again, {lost} answers lost: sum {sum(sums.values())}")
        self.assertEqual(sums, {key: len(range(key, INCREMENTS, KEYS)) for key in range(KEYS)})


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    NPM_FOLDER = sys.argv.pop(1)
    unittest.main()
