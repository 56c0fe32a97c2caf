#!/usr/bin/python3
"""The ring of a cluster changes while clients write and read at QUORUM: a node leaves, a dead one
is removed. Nothing that was acknowledged is lost, and no client sees an error but of the node
that was killed under it.

    ring_test.py HELENUS [JoinTest|LeaveTest|RemoveTest]
"""

import os
import signal
import sys
import tempfile
import threading
import unittest
import urllib.request

import cluster_test
from cluster_test import Member, SECONDS_MAX, ask, await_that, run
from helenus_process import free_port  # found by way of cluster_test
from replication_test import ThreeNodes, Writer, clients_of

NUMBERS = (1, 2, 3, 4)


class Reader(threading.Thread):
    """Reads through one node what a writer has been told, at QUORUM."""

    def __init__(self, client, writer):
        super().__init__()
        self.client = client
        self.writer = writer
        self.reads = 0
        self.failures = []
        self.wrong = []
        self.ending = threading.Event()

    def run(self):
        number = 0
        while not self.ending.is_set():
            # The writer is elsewhere by now, so what it was told last of a key stays.
            known = len(self.writer.acknowledged_at)
            if known < 40:
                self.ending.wait(0.05)
                continue
            key = f"{self.writer.prefix}{number % (known // 2)}"
            number += 7
            if key not in self.writer.values or key in self.writer.unknown:
                continue
            expected = self.writer.values[key]
            try:
                found = self.client.get(key)
            except Exception as error:  # noqa: BLE001, whatever the driver says is judged
                self.failures.append(error)
                continue
            self.reads += 1
            if found != expected:
                self.wrong.append((key, found, expected))

    def end(self):
        self.ending.set()
        self.join()


class RingTest(unittest.TestCase):
    """Every story has nodes of its own."""

    started = (1, 2, 3)
    factor = 3

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        ports = {kind: free_port([f"127.0.0.{number}" for number in NUMBERS])
                 for kind in ("node", "cql", "admin")}
        self.members = [Member(self.scratch.name, number, ports, tokens=32) for number in NUMBERS]
        self.addCleanup(self.end_all)
        up = [self.members[number - 1] for number in self.started]
        for member in up:
            member.begin()
        for member in up:
            member.wait_up()
        self.await_states(up, {member.ip: "UN" for member in up})
        with clients_of(up[:1]) as (client,):
            client.execute("CREATE KEYSPACE rows WITH replication = "
                           f"{{'class': 'NetworkTopologyStrategy', 'dc1': {self.factor}}}")
            client.execute("CREATE TABLE rows.kv (k text PRIMARY KEY, v int)")

    def end_all(self):
        for member in self.members:
            if member.is_running():
                member.end(signal.SIGKILL)

    def await_states(self, seers, states):
        for member in seers:
            await_that(lambda: ThreeNodes.states(member) == states,
                       f"{member.ip} sees {states}, not {ThreeNodes.states(member)}")

    def under_load(self, members, story):
        """The rows that were acknowledged while it went on, and before and after it."""
        expected = {}
        with clients_of(members) as writing, clients_of(members) as reading:
            writers = [Writer(client, f"w-{client.ip}-") for client in writing]
            readers = [Reader(reading[i - 1], writers[i]) for i in range(len(members))]
            for thread in writers + readers:
                thread.start()
            await_that(lambda: all(len(writer.values) > 50 for writer in writers), "all write")
            try:
                story()
                at = [len(writer.acknowledged_at) for writer in writers]
                await_that(lambda: all(len(writer.acknowledged_at) > before + 30
                                       for writer, before in zip(writers, at)), "they go on")
            finally:
                for thread in writers + readers:
                    thread.end()
            for writer in writers:
                self.assertEqual(writer.failures, [], f"through {writer.client.ip}")
                expected |= {key: value for key, value in writer.values.items()
                             if key not in writer.unknown}
            for reader in readers:
                self.assertEqual(reader.failures, [], f"through {reader.client.ip}")
                self.assertEqual(reader.wrong, [], f"through {reader.client.ip}")
                self.assertGreater(reader.reads, 0)
        return expected

    def order(self, member, *words):
        done = run(*words, "--admin", member.admin)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def assert_refused(self, why, member, *words):
        refused = run(*words, "--admin", member.admin)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn(why, refused.stderr)
        self.assertEqual(len(refused.stderr.strip().splitlines()), 1, refused.stderr)

    def assert_rows(self, members, expected):
        with clients_of(members) as clients:
            for client in clients:
                ThreeNodes.assert_rows(self, client, expected)


class JoinTest(RingTest):
    def load(self, member, count):
        """Rows that are in no mutation log any more: only a copy brings them."""
        expected = {f"old-{number}": number for number in range(count)}
        with clients_of([member]) as (client,):
            for key, value in expected.items():
                client.put(key, value)
        for each in self.members[:3]:
            await_that(lambda: run("missing", "--admin", each.admin).stdout.endswith(
                "nothing to repair\n"), f"{each.ip} lacks nothing")
            self.order(each, "flush")
        return expected

    def test_a_node_joins_and_another_one_leaves_while_rows_are_written(self):
        first, second, third, fourth = self.members
        old = self.load(first, 300)
        expected = self.under_load([first, second], fourth.start)
        self.await_states([first, fourth], {member.ip: "UN" for member in self.members})
        self.assert_rows([first, fourth], old | expected)
        # One of three copies of everything is with the newcomer: without another one, it is needed.
        more = self.under_load([first, fourth], lambda: self.order(third, "decommission"))
        third.end(signal.SIGTERM)
        self.await_states([first, fourth], {member.ip: "UN" for member in (first, second, fourth)})
        self.assert_rows([first, fourth], old | expected | more)
        second.end(signal.SIGKILL)
        self.await_states([first, fourth], {first.ip: "UN", second.ip: "DN", fourth.ip: "UN"})
        self.assert_rows([fourth], old | expected | more)

    def test_a_new_node_takes_the_place_of_a_dead_one(self):
        first, second, third, fourth = self.members
        old = self.load(first, 300)
        address = f"{third.ip}:{third.ports['node']}"
        with open(fourth.config, "a") as config:
            config.write(f"replace_node: {address}\n")
        fourth.begin()
        self.assertNotEqual(fourth.process.wait(timeout=SECONDS_MAX), 0)
        self.assertIn("is up, and only a dead one is replaced", fourth.log())
        fourth.process.stdout.close()
        third.end(signal.SIGKILL)
        self.await_states([first, second], {first.ip: "UN", second.ip: "UN", third.ip: "DN"})
        expected = self.under_load([first, second], fourth.start)
        self.await_states([first, fourth], {member.ip: "UN" for member in (first, second, fourth)})
        second.end(signal.SIGKILL)
        self.await_states([fourth], {first.ip: "UN", second.ip: "DN", fourth.ip: "UN"})
        self.assert_rows([fourth], old | expected)

    def test_counters_are_copied_while_they_count(self):
        first, second, third, fourth = self.members
        keys = [f"c-{number}" for number in range(20)]
        with clients_of([first]) as (client,):
            client.execute("CREATE TABLE rows.c (k text PRIMARY KEY, n counter)")
            for turn in range(3):
                for key in keys:
                    client.execute("UPDATE rows.c SET n = n + 1 WHERE k = %s", key)
                for each in self.members[:3]:
                    self.order(each, "flush")
            for each in self.members[:3]:  # what is stable is folded
                await_that(lambda: run("missing", "--admin", each.admin).stdout.endswith(
                    "nothing to repair\n"), f"{each.ip} lacks nothing")
                self.order(each, "compact")
        counting = threading.Event()
        counted, failures = {key: 3 for key in keys}, []

        def count(client):
            while not counting.is_set():
                for key in keys:
                    try:
                        client.execute("UPDATE rows.c SET n = n + 1 WHERE k = %s", key)
                        counted[key] += 1
                    except Exception as error:  # noqa: BLE001, whatever the driver says is judged
                        failures.append(error)

        with clients_of([second]) as (client,):
            thread = threading.Thread(target=count, args=(client,))
            thread.start()
            try:
                fourth.start()
                self.await_states([first, fourth], {member.ip: "UN" for member in self.members})
                self.order(third, "decommission")
            finally:
                counting.set()
                thread.join()
        third.end(signal.SIGTERM)
        self.assertEqual(failures, [])
        # Each of these two pairs would show a number that only one has, or that one has twice.
        for gone in (None, second):
            if gone is not None:
                gone.end(signal.SIGKILL)
            with clients_of([first, fourth]) as clients:
                for client in clients:
                    rows = client.execute("SELECT k, n FROM rows.c")
                    self.assertEqual({row.k: row.n for row in rows}, counted, client.ip)

    def test_a_join_that_hangs_is_given_up(self):
        first, second, third, fourth = self.members
        old = self.load(first, 50)
        third.end(signal.SIGKILL)
        self.await_states([first, second], {first.ip: "UN", second.ip: "UN", third.ip: "DN"})
        fourth.begin()
        # Whoever is down has to give what it has before the newcomer counts.
        waits = f"waits for {third.ip}:{third.ports['node']}, which is down"
        await_that(lambda: "have pulled" in self.order(first, "netstats"), "it has become joint")
        await_that(lambda: waits in self.order(first, "netstats"), "it waits for who is down")
        self.assert_refused("wait for it, or give that up", second, "decommission")
        self.assertIn("given up", self.order(second, "abandon"))
        # It would learn of it by and by.
        fourth.end(signal.SIGKILL)
        self.await_states([first], {first.ip: "UN", second.ip: "UN", third.ip: "DN"})
        self.assert_rows([first, second], old)


class LeaveTest(RingTest):
    def test_a_node_leaves_while_rows_are_written(self):
        first, second, third, _ = self.members
        expected = self.under_load([first, second], lambda: self.order(third, "decommission"))
        self.await_states([first, second], {first.ip: "UN", second.ip: "UN"})
        self.assertEqual(self.order(first, "netstats"), "nothing is under way\n")
        self.assert_rows([first, second], expected)
        # It is not taken back under its name.
        third.end(signal.SIGTERM)
        third.begin()
        self.assertNotEqual(third.process.wait(timeout=SECONDS_MAX), 0)
        self.assertIn("was removed", third.log())
        third.process.stdout.close()
        self.assert_rows([first, second], expected)


class RemoveTest(RingTest):
    def test_a_dead_node_is_removed_while_rows_are_written(self):
        first, second, third, _ = self.members
        third_address = f"{third.ip}:{third.ports['node']}"
        self.assert_refused("is up", first, "remove", third_address)
        self.assert_refused("has no node", first, "remove", "127.0.0.9:1")
        self.assert_refused("this node", first, "remove", f"{first.ip}:{first.ports['node']}")
        self.assert_refused("nobody joins or leaves", first, "abandon")
        third.end(signal.SIGKILL)
        self.await_states([first, second], {first.ip: "UN", second.ip: "UN", third.ip: "DN"})
        expected = self.under_load([first, second],
                                   lambda: self.order(first, "remove", third_address))
        self.await_states([first, second], {first.ip: "UN", second.ip: "UN"})
        self.assert_rows([first, second], expected)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main()
