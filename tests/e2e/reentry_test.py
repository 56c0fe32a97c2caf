#!/usr/bin/python3
"""Nodes that may have lost what others count on: killed with commitlog_sync: periodic, one by one
and all at once, and started from an older copy of their folder. They serve nobody until they have
caught up, say so, and what was acknowledged is there.

    reentry_test.py HELENUS [KilledTest|RestoredTest]
"""

import glob
import json
import os
import shutil
import signal
import sys
import unittest
import urllib.error
import urllib.request

import cluster_test
import replication_test
from cluster_test import ask, await_that, run
from replication_test import ThreeNodes, Writer, clients_of

ROUNDS = 4


def health(member):
    try:
        with urllib.request.urlopen(f"http://{member.admin}/healthz", timeout=5) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        return json.load(error)
    except OSError:
        return {}


def phase(member):
    return health(member).get("phase", "")


class KilledTest(ThreeNodes):
    """Nothing tells a process that was killed from one whose machine lost its power."""

    settings = {"commitlog_sync": "periodic", "commitlog_sync_period_ms": 500}

    def assert_reentered(self, member):
        self.assertIn("this node has re-entered", member.log())
        node = {node["node_address"].split(":")[0]: node
                for node in ask(member, "status")["nodes"]}[member.ip]
        self.assertEqual(node["state"], "normal")
        self.assertGreater(node["reentered"], 0)
        return node["reentered"]

    def test_nodes_that_are_killed_one_after_the_other_reenter_by_themselves(self):
        expected = {}
        epochs = []
        for turn in range(ROUNDS):
            gone = self.members[turn % 3]
            others = [member for member in self.members if member is not gone]
            with clients_of(others) as clients:
                writers = [Writer(client, f"turn{turn}-{client.ip}-") for client in clients]
                for writer in writers:
                    writer.start()
                await_that(lambda: all(len(writer.values) > 20 for writer in writers), "all write")
                gone.end(signal.SIGKILL)
                await_that(lambda: all(len(writer.values) > 60 for writer in writers), "they go on")
                gone.start()
                for writer in writers:
                    writer.end()
                    expected |= {key: value for key, value in writer.values.items()
                                 if key not in writer.unknown}
            epochs.append(self.assert_reentered(gone))
            with clients_of([gone]) as (client,):
                self.assert_rows(client, expected)
                self.await_rows(client, expected)
                client.put(f"after-{turn}", turn)
                expected[f"after-{turn}"] = turn
        self.assertEqual(epochs, sorted(set(epochs)), "each time under another name")

    def test_nodes_that_are_all_killed_wait_for_each_other(self):
        with clients_of(self.members) as clients:
            expected = {f"all-{number}": number for number in range(60)}
            for number, (key, value) in enumerate(expected.items()):
                clients[number % 3].put(key, value)
        for member in self.members:
            member.end(signal.SIGKILL)
        first, second, last = self.members
        first.begin()
        second.begin()
        for member in (first, second):
            await_that(lambda: f"pulls from {last.ip}" in phase(member)
                       and "which is down" in phase(member), f"{member.ip} waits")
            self.assertEqual(health(member)["status"], "starting")
            told = run("status", "--admin", member.admin)
            self.assertEqual(told.returncode, 1)
            self.assertIn("re-enters", told.stderr)
        last.start()
        first.wait_up()
        second.wait_up()
        self.await_all_up()
        with clients_of(self.members) as clients:
            for client in clients:
                self.assert_rows(client, expected)

    def test_an_operator_may_go_on_without_a_node_that_stays_away(self):
        with clients_of(self.members) as clients:
            expected = {f"accept-{number}": number for number in range(30)}
            for key, value in expected.items():
                clients[0].put(key, value, replication_test.ALL)
        refused = run("reenter", "--accept-data-loss", "--admin", self.members[0].admin)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("does not re-enter", refused.stderr)
        for member in self.members:
            member.end(signal.SIGKILL)
        first, second, last = self.members
        first.begin()
        second.begin()
        for member in (first, second):
            await_that(lambda: phase(member).count("which is down") == 1, f"{member.ip} waits")
        self.assertNotEqual(run("reenter", "--admin", first.admin).returncode, 0)
        for member in (first, second):
            done = run("reenter", "--accept-data-loss", "--admin", member.admin)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("What only one node had that is down is given up", done.stdout)
        first.wait_up()
        second.wait_up()
        with clients_of([first, second]) as clients:
            for client in clients:
                self.assert_rows(client, expected)
                client.put("goes-on", 1)


class RestoredTest(ThreeNodes):
    """A folder that is put back has the names that it had, and not what was minted under them."""

    def put_back(self, member, copy):
        data = os.path.join(member.folder, "data")
        shutil.rmtree(data)
        shutil.copytree(copy, data)

    def test_a_node_whose_folder_is_an_older_copy_answers_nothing_that_it_has_lost(self):
        gone, others = self.members[2], self.members[:2]
        with clients_of(self.members) as clients:
            before = {f"old-{number}": number for number in range(20)}
            for key, value in before.items():
                clients[2].put(key, value, replication_test.ALL)
        gone.end(signal.SIGTERM)
        data = os.path.join(gone.folder, "data")
        copy = os.path.join(gone.folder, "copy")
        shutil.copytree(data, copy)
        # What is written without it is kept for it: the copy lacks no more than that.
        with clients_of(others) as clients:
            meanwhile = {f"meanwhile-{number}": number for number in range(20)}
            for key, value in meanwhile.items():
                clients[0].put(key, value)
        self.put_back(gone, copy)
        gone.start()
        self.await_all_up()
        self.assertIn("this node has re-entered", gone.log())
        with clients_of([gone]) as (client,):
            self.assert_rows(client, before | meanwhile)
            self.await_rows(client, before | meanwhile)
            late = {f"late-{number}": number for number in range(20)}
            for key, value in late.items():
                client.put(key, value, replication_test.ALL)
        await_that(lambda: all("nothing to repair" in run("missing", "--admin", member.admin).stdout
                               for member in self.members), "all know that all have it")
        # Now the copy is older than what the others keep for it: it takes what they have, whole.
        gone.end(signal.SIGTERM)
        self.put_back(gone, copy)
        self.assert_is_copied_to(gone, others, before | meanwhile | late)

    def assert_is_copied_to(self, gone, others, rows):
        gone.start()
        self.await_all_up()
        self.assertIn("a copy of a tablet was taken", gone.log())
        with clients_of([gone]) as (client,):
            self.assert_rows(client, rows)
            self.await_rows(client, rows)
            client.put("after", 1, replication_test.ALL)
        with clients_of(others) as clients:
            for client in clients:
                self.assert_rows(client, rows | {"after": 1})

    def test_a_node_that_has_lost_its_tables_is_copied_to(self):
        gone, others = self.members[2], self.members[:2]
        with clients_of(self.members) as clients:
            rows = {f"row-{number}": number for number in range(20)}
            for key, value in rows.items():
                clients[2].put(key, value, replication_test.ALL)
        await_that(lambda: all("nothing to repair" in run("missing", "--admin", member.admin).stdout
                               for member in self.members), "all know that all have it")
        gone.end(signal.SIGTERM)
        data = os.path.join(gone.folder, "data")
        for folder in ("tables", "commitlog"):
            shutil.rmtree(os.path.join(data, folder))
        self.assert_is_copied_to(gone, others, rows)


class DamagedTest(ThreeNodes):
    """A block in the middle of a file that cannot be read any more."""

    def test_replicas_with_a_damaged_file_are_made_anew_from_others(self):
        hit, others = self.members[2], self.members[:2]
        rows = {f"row-{number}": number for number in range(200)}
        with clients_of(self.members) as clients:
            for key, value in rows.items():
                clients[2].put(key, value, replication_test.ALL)
        self.assertEqual(run("flush", "--admin", hit.admin).returncode, 0)
        files = glob.glob(os.path.join(hit.folder, "data", "tables", "**", "*.sst"), recursive=True)
        for path in sorted(files, key=os.path.getsize)[-3:]:
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 3)
                file.write(bytes(64))
        # Whoever reads all of it notices: it is an error, and never an empty answer.
        self.assertNotEqual(run("verify", "--admin", hit.admin).returncode, 0)
        await_that(lambda: "this node has re-entered" in hit.log(), "it has re-entered")
        self.await_all_up()
        self.assertIn("made anew from other", hit.log())
        with clients_of([hit]) as (client,):
            self.await_rows(client, rows)
            self.assert_rows(client, rows)
            client.put("after", 1, replication_test.ALL)
        self.assertEqual(run("verify", "--admin", hit.admin).returncode, 0)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
