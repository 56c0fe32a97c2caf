#!/usr/bin/python3
"""What operators do against loss: snapshots of keyspaces, which are restored into a node alone and
into one of three; files that are read through; a round of repair.

    snapshot_test.py HELENUS [AloneTest|ClusterTest]
"""

import glob
import json
import os
import signal
import sys
import tempfile
import unittest

import cluster_test
from cluster_test import Member, await_that, connect, run
from helenus_process import free_port  # found by way of cluster_test
from replication_test import ALL, ThreeNodes, clients_of


class AloneTest(unittest.TestCase):
    """No other node has what this one has."""

    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        ports = {kind: free_port(["127.0.0.1"]) for kind in ("node", "cql", "admin")}
        self.member = Member(self.scratch.name, 1, ports, seeds="[]")
        self.member.start()
        self.addCleanup(lambda: self.member.is_running() and self.member.end(signal.SIGKILL))
        self.do("CREATE KEYSPACE music WITH replication = "
                "{'class': 'SimpleStrategy', 'replication_factor': 1}",
                "CREATE TABLE music.plays (k int PRIMARY KEY, v text)",
                "CREATE TABLE music.songs (k int, c int, v text, PRIMARY KEY (k, c))",
                "CREATE INDEX by_v ON music.plays (v)")

    def do(self, *statements):
        with connect(self.member) as driver:
            for statement in statements:
                driver.execute(statement)

    def rows(self, query):
        with connect(self.member) as driver:
            return sorted(tuple(row) for row in driver.execute(query))

    def shown(self):
        return (self.rows("SELECT k, v FROM music.plays"),
                self.rows("SELECT k, c, v FROM music.songs"))

    def ask(self, *arguments):
        done = run(*arguments, "--admin", self.member.admin)
        self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
        return done.stdout

    def assert_refused(self, words, *arguments):
        done = run(*arguments, "--admin", self.member.admin)
        self.assertNotEqual(done.returncode, 0, done.stdout)
        self.assertIn(words, done.stderr)

    def fill(self):
        self.do(*(f"INSERT INTO music.plays (k, v) VALUES ({k}, 'v{k % 7}')" for k in range(60)),
                *(f"INSERT INTO music.songs (k, c, v) VALUES ({k}, {c}, 'a')"
                  for k in range(5) for c in range(5)))

    def change(self):
        self.do("DELETE FROM music.plays WHERE k = 3", "DELETE FROM music.songs WHERE k = 2",
                "UPDATE music.plays SET v = 'later' WHERE k = 4",
                *(f"INSERT INTO music.plays (k, v) VALUES ({k}, 'new')" for k in range(100, 120)))

    def test_a_snapshot_brings_back_what_was_there(self):
        self.fill()
        self.ask("flush")
        self.do("DELETE FROM music.plays WHERE k = 1")  # in memory alone
        then = self.shown()
        self.assertIn("Snapshot monday was made", self.ask("snapshot", "create", "monday", "music"))
        self.assertIn("monday", self.ask("snapshot", "list"))
        self.change()
        self.ask("compact", "music")
        self.assertNotEqual(self.shown(), then)
        self.assertIn("as they were then", self.ask("snapshot", "restore", "monday"))
        self.assertEqual(self.shown(), then)
        self.assertEqual(self.rows("SELECT k FROM music.plays WHERE v = 'new'"), [])
        self.assertEqual(self.rows("SELECT k FROM music.plays WHERE v = 'v2'"),
                         [(k,) for k in range(60) if k % 7 == 2])
        # It is a table as any other, after a kill, too.
        self.change()
        changed = self.shown()
        self.member.end(signal.SIGKILL)
        self.member.start()
        self.assertEqual(self.shown(), changed)
        self.ask("snapshot", "restore", "monday")
        self.ask("compact", "music")
        self.assertEqual(self.shown(), then)
        self.ask("verify")

    def test_a_table_that_was_emptied_is_filled_again(self):
        self.fill()
        then = self.shown()
        self.ask("snapshot", "create", "before")
        self.do("TRUNCATE music.plays")
        self.assertEqual(self.rows("SELECT k FROM music.plays"), [])
        self.ask("snapshot", "restore", "before")
        self.assertEqual(self.shown(), then)

    def test_what_is_no_name_or_does_not_fit_is_refused(self):
        self.fill()
        self.ask("snapshot", "create", "first", "music")
        for name in ("a/b", "..", ".hidden", "a b", ""):
            self.assert_refused("a snapshot is named by", "snapshot", "create", name)
        self.assert_refused("there is a snapshot first", "snapshot", "create", "first")
        self.assert_refused("there is no keyspace films", "snapshot", "create", "other", "films")
        self.assert_refused("there is no snapshot second", "snapshot", "restore", "second")
        self.assert_refused("there is no snapshot second", "snapshot", "remove", "second")
        self.do("CREATE TABLE music.young (k int PRIMARY KEY)")
        self.assert_refused("music.young is younger", "snapshot", "restore", "first")
        self.do("DROP TABLE music.young", "DROP TABLE music.songs",
                "CREATE TABLE music.songs (k int PRIMARY KEY)")
        self.assert_refused("and the one that is there has id", "snapshot", "restore", "first")
        self.assertEqual(len(self.rows("SELECT k FROM music.plays")), 60, "nothing has changed")
        told = json.loads(self.ask("snapshot", "list", "--json"))["snapshots"]
        self.assertEqual([each["name"] for each in told], ["first"])
        self.ask("snapshot", "remove", "first")
        self.assertEqual(self.ask("snapshot", "list"), "there are no snapshots\n")
        tables = os.path.join(self.member.folder, "data", "tables")
        self.assertEqual(os.listdir(os.path.join(tables, "snapshots")), [])

    def test_a_restore_that_was_cut_short_is_finished_before_anything_is_served(self):
        self.fill()
        then = self.shown()
        self.ask("snapshot", "create", "monday")
        self.change()
        self.member.end(signal.SIGKILL)
        # As it is when the node dies in the middle: the order is there, and is not done.
        with open(os.path.join(self.member.folder, "data", "tables", "restore"), "w") as file:
            file.write("monday")
        self.member.start()
        self.assertEqual(self.shown(), then)

    def test_what_is_damaged_is_told_and_is_an_error_to_read(self):
        self.fill()
        self.ask("flush")
        self.assertEqual(self.ask("verify", "music"), "verify: 2 tables\n")
        files = glob.glob(os.path.join(self.member.folder, "data", "tables", "**", "*.sst"),
                          recursive=True)
        for path in files:
            with open(path, "r+b") as file:
                file.seek(os.path.getsize(path) // 4)
                file.write(bytes(32))
        self.assert_refused(".sst", "verify")
        await_that(lambda: "no other node has are damaged" in self.ask("status"), "it says so")
        with self.assertRaises(Exception):
            self.rows("SELECT k, v FROM music.plays")
        self.assert_refused("damaged", "snapshot", "create", "late")


class ClusterTest(ThreeNodes):
    """What other nodes hold, too, ends as the cluster has it."""

    def test_a_restored_node_is_as_the_others_are(self):
        first, *others = self.members
        with clients_of(self.members) as clients:
            rows = {f"row-{number}": number for number in range(40)}
            for key, value in rows.items():
                clients[0].put(key, value, ALL)
        done = run("snapshot", "create", "monday", "--admin", first.admin)
        self.assertEqual(done.returncode, 0, done.stderr)
        with clients_of(self.members) as clients:
            later = {f"row-{number}": number + 1000 for number in range(20)}
            for key, value in later.items():
                clients[1].put(key, value, ALL)
        done = run("snapshot", "restore", "monday", "--admin", first.admin)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("as the cluster has them; 0 of them lacked", done.stdout)
        with clients_of(self.members) as clients:
            for client in clients:
                self.assert_rows(client, rows | later)
        for member in self.members:
            done = run("repair", "--admin", member.admin)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("nothing to repair", done.stdout)
        self.assertIn("no keyspace nosuch", run("repair", "nosuch", "--admin", first.admin).stderr)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
