#!/usr/bin/python3
"""What operators ask of a node: how its tables are, to flush, to compact, to be drained.

    operator_test.py HELENUS
"""

import json
import os
import signal
import sys
import tempfile
import unittest
import urllib.error
import urllib.request

import cluster_test
from cluster_test import Member, SECONDS_MAX, await_that, connect, run
from helenus_process import free_port  # found by way of cluster_test


class OperatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory()
        ports = {kind: free_port(["127.0.0.1"]) for kind in ("node", "cql", "admin")}
        cls.member = Member(cls.scratch.name, 1, ports, seeds="[]")
        cls.member.start()
        with connect(cls.member) as driver:
            for keyspace in ("music", "films"):
                driver.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                               "{'class': 'SimpleStrategy', 'replication_factor': 1}")
            for table in ("music.plays", "music.songs", "films.seen"):
                driver.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v text)")

    @classmethod
    def tearDownClass(cls):
        if cls.member.is_running():
            cls.member.end(signal.SIGTERM)
        cls.scratch.cleanup()

    def setUp(self):
        if not self.member.is_running():
            self.member.start()

    def fill(self, table, count):
        with connect(self.member) as driver:
            for key in range(count):
                driver.execute(f"INSERT INTO {table} (k, v) VALUES (%s, 'x')", key)

    def ask(self, *arguments):
        done = run(*arguments, "--admin", self.member.admin)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def tables(self, *names):
        told = json.loads(self.ask("tablestats", *names, "--json"))["tables"]
        return {f"{table['keyspace']}.{table['table']}": table for table in told}

    def test_files_are_merged_by_the_rule_of_their_table(self):
        leveled = "{'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 1}"
        windows = ("{'class': 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'HOURS', "
                   "'compaction_window_size': 6}")
        with connect(self.member) as driver:
            driver.execute("CREATE TABLE films.rules (k int PRIMARY KEY, v text) "
                           f"WITH compaction = {leveled}")
            for rule in (leveled, windows):
                driver.execute(f"ALTER TABLE films.rules WITH compaction = {rule}")
                for turn in range(6):
                    for key in range(20):
                        driver.execute("INSERT INTO films.rules (k, v) VALUES (%s, %s)", key,
                                       f"{turn}")
                    self.ask("flush", "films", "rules")
                await_that(lambda: self.ask("compactionstats") == "nothing to merge\n", "at rest")
                rows = driver.execute("SELECT k, v FROM films.rules")
                self.assertEqual(sorted(tuple(row) for row in rows), [(k, "5") for k in range(20)])
            for wrong in ("{'class': 'NoSuchStrategy'}",
                          "{'class': 'LeveledCompactionStrategy', 'window': 3}"):
                with self.assertRaisesRegex(Exception, "compaction|understood"):
                    driver.execute(f"ALTER TABLE films.rules WITH compaction = {wrong}")
            driver.execute("DROP TABLE films.rules")

    def test_what_is_written_is_in_memory_then_in_files_then_in_fewer(self):
        self.fill("music.plays", 50)
        before = self.tables()
        self.assertEqual(set(before), {"music.plays", "music.songs", "films.seen"})
        self.assertGreaterEqual(before["music.plays"]["memtable_keys"], 50)
        self.assertEqual(self.ask("flush", "music", "plays"), "flush: 1 table\n")
        flushed = self.tables("music", "plays")
        self.assertEqual(set(flushed), {"music.plays"})
        plays = flushed["music.plays"]
        self.assertEqual((plays["memtable_keys"], plays["sstable_keys"] >= 50), (0, True))
        self.assertGreater(plays["sstable_bytes"], 0)
        self.fill("music.plays", 50)
        self.ask("flush", "music")
        twice = self.tables("music")["music.plays"]
        self.assertGreaterEqual(twice["sstable_keys"], 100)
        self.assertEqual(self.ask("compact", "music"), "compact: 2 tables\n")
        merged = self.tables("music")["music.plays"]
        self.assertLess(merged["sstables"], twice["sstables"])
        self.assertEqual(merged["sstable_keys"], twice["sstable_keys"] // 2)
        self.assertRegex(self.ask("tablestats"), rf"music\.plays +{merged['sstables']} ")
        with connect(self.member) as driver:
            self.assertEqual(len(driver.execute("SELECT * FROM music.plays")), 50)

    def test_a_node_alone_holds_every_tablet(self):
        told = json.loads(self.ask("tablets", "music", "--json"))
        ring = json.loads(self.ask("ring", "--keyspace", "music", "--json"))
        self.assertEqual([tablet["to"] for tablet in told["tablets"]],
                         [tablet["token"] for tablet in ring["tablets"]])
        shown = self.ask("tablets")
        self.assertIn(f"holds {2 * len(ring['tablets'])} tablets", shown)
        self.assertIn(told["tablets"][0]["from"], shown)

    def test_a_drained_node_has_flushed_all_and_serves_nobody_until_it_starts_again(self):
        self.fill("films.seen", 20)
        self.assertIn("It can be stopped", self.ask("drain"))
        for table in self.tables().values():
            self.assertEqual(table["memtable_keys"], 0)
        with self.assertRaises(Exception):
            connect(self.member)
        self.assertIn("is alive and does not serve clients", self.ask("status"))
        self.assertEqual(self.member.end(signal.SIGTERM), 0)
        self.member.start()
        with connect(self.member) as driver:
            self.assertEqual(len(driver.execute("SELECT * FROM films.seen")), 20)

    def test_what_there_is_not_is_said_in_one_line(self):
        for arguments, words in (
            (("flush", "opera"), "there is no keyspace opera"),
            (("compact", "music", "opera"), "there is no table music.opera"),
            (("tablestats", "opera"), "there is no keyspace opera"),
            (("tablets", "opera"), "there is no keyspace opera"),
        ):
            done = run(*arguments, "--admin", self.member.admin)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(words, done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1)
        done = run("flush", "a/b")
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_page_in_a_browser_gives_no_orders(self):
        request = urllib.request.Request(f"http://{self.member.admin}/drain", method="POST",
                                         headers={"Origin": "http://example.org"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=SECONDS_MAX)
        self.assertEqual(refused.exception.code, 403)
        refused.exception.close()
        self.ask("status")
        with connect(self.member) as driver:
            driver.execute("SELECT * FROM music.songs")


if __name__ == "__main__":
    cluster_test.HELENUS = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)
