#!/usr/bin/python3
"""A node on a small file system that is filled again and again.

    full_disk_test.py HELENUS ROUNDS

Each round inserts until the disk is full, deletes, truncates or drops, some of it with every byte
taken by another program, kills the node and starts it where it is. Whatever was acknowledged is
there, and what was freed can be written again. Needs the right to mount a file system of its own;
without it the test says so and is skipped.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error

from cassandra import ConsistencyLevel
from cassandra.cluster import Cluster, ExecutionProfile, EXEC_PROFILE_DEFAULT
from cassandra.policies import FallthroughRetryPolicy, RoundRobinPolicy

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../drivers"))
from helenus_process import HOST, Node  # noqa: E402

HELENUS = None  # set in main
ROUNDS = 3
SKIPPED = 77

DISK_MIB = 256
BLOB_BYTES = 48 << 10
STATEMENT_SECONDS_MAX = 10
ROOM_SECONDS_MAX = 60
CONFIG = """
commitlog_segment_mib: 32
commitlog_total_mib: 128
memtable_mib: 8
block_cache_mib: 8
disk_reserve_mib: 8
cores: 1
"""


class SmallDisk:
    """A file system in memory; `error` says why there is none."""

    def __init__(self):
        self.folder = tempfile.mkdtemp()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "helenus-test", self.folder],
            capture_output=True, text=True)
        self.error = mounted.stderr.strip() if mounted.returncode else None
        self.filler = os.path.join(self.folder, "filler")

    def free_bytes(self):
        room = os.statvfs(self.folder)
        return room.f_bavail * room.f_frsize

    def fill(self):
        """Another program takes all there is."""
        with open(self.filler, "ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(1 << 20))
            except OSError:
                pass
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass

    def empty(self):
        if os.path.exists(self.filler):
            os.remove(self.filler)

    def close(self):
        if not self.error:
            subprocess.run(["umount", "-l", self.folder], check=True)
        os.rmdir(self.folder)


def blob(key):
    """What a row is given: it compresses to nothing less, and need not be remembered."""
    return random.Random(key).randbytes(BLOB_BYTES)


def digest(content):
    return hashlib.sha1(content).digest()


class FullDiskTest(unittest.TestCase):
    def setUp(self):
        self.disk = SmallDisk()
        self.addCleanup(self.disk.close)
        config = os.path.join(self.disk.folder, "helenus.yaml")
        with open(config, "w") as file:
            file.write(CONFIG)
        self.node = Node(HELENUS, "--config", config)
        self.node.folder = os.path.join(self.disk.folder, "data")
        self.rows = {"kept": {}, "dropped": {}}  # by table, by key: the digest of its blob
        self.next_key = 0
        self.driver = None

    def tearDown(self):
        self.disconnect()
        self.node.__exit__()

    # ---- The node ----

    def start(self):
        self.node.start()
        profile = ExecutionProfile(
            load_balancing_policy=RoundRobinPolicy(), retry_policy=FallthroughRetryPolicy(),
            consistency_level=ConsistencyLevel.ONE, request_timeout=STATEMENT_SECONDS_MAX)
        self.cluster = Cluster([HOST], port=self.node.port,
                               execution_profiles={EXEC_PROFILE_DEFAULT: profile})
        self.driver = self.cluster.connect()
        self.driver.default_fetch_size = 100

    def disconnect(self):
        if self.driver:
            self.cluster.shutdown()
            self.driver = None

    def kill_and_start(self):
        self.disconnect()
        self.node.kill()
        self.start()

    def execute(self, text, values=None):
        return self.driver.execute(text, values, timeout=STATEMENT_SECONDS_MAX)

    def health(self):
        try:
            return self.node.health()
        except urllib.error.HTTPError as refusal:
            return json.loads(refusal.read())

    def metric(self, name):
        for line in self.node.get("/metrics").splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError(f"no metric {name}")

    # ---- Rows ----

    def make_table(self, name):
        self.execute(f"CREATE TABLE IF NOT EXISTS small.{name} (k int PRIMARY KEY, v blob)")

    def insert(self, table):
        content = blob(self.next_key)
        self.execute(f"INSERT INTO small.{table} (k, v) VALUES (%s, %s)", (self.next_key, content))
        self.rows[table][self.next_key] = digest(content)
        self.next_key += 1

    def insert_until_full(self, least):
        """Returns the words of the refusal."""
        inserted = 0
        while True:
            try:
                self.insert("kept" if inserted % 3 else "dropped")
            except Exception as error:
                self.assertGreaterEqual(inserted, least, f"after {inserted}: {error}")
                return error
            inserted += 1
            self.assertLess(inserted * BLOB_BYTES, DISK_MIB << 20, "it holds more than fits")

    def delete_some(self, share):
        for key in random.sample(sorted(self.rows["kept"]), int(len(self.rows["kept"]) * share)):
            self.execute("DELETE FROM small.kept WHERE k = %s", (key,))
            del self.rows["kept"][key]

    def truncate(self):
        self.execute("TRUNCATE small.dropped")
        self.rows["dropped"] = {}

    def drop(self):
        self.execute("DROP TABLE small.dropped")
        self.rows["dropped"] = {}
        self.make_table("dropped")

    def check_rows(self):
        for table, rows in self.rows.items():
            there = self.execute(f"SELECT k, v FROM small.{table}")
            self.assertEqual({row.k: digest(row.v) for row in there}, rows, table)

    # ---- The story ----

    def check_refusal(self, error):
        self.assertIn("disk is full: ", str(error))
        self.assertIn(" bytes reserved for deletes", str(error))
        self.assertIn("1001", f"{getattr(error, 'code', 0):04x}" + str(error))
        health = self.health()
        self.assertEqual(health["status"], "disk_full", health)
        self.assertEqual(self.metric("helenus_storage_disk_full"), 1)
        self.assertGreater(self.metric("helenus_storage_writes_refused_total"), 0)

    def wait_for_room(self):
        began = time.monotonic()
        while self.health()["status"] != "ok":
            self.assertLess(time.monotonic() - began, ROOM_SECONDS_MAX, self.health())
            time.sleep(0.05)
        self.assertEqual(self.metric("helenus_storage_disk_full"), 0)

    def play_round(self, number):
        dice = random.Random(number)
        self.check_refusal(self.insert_until_full(least=1 if number else 200))
        everything_taken = dice.random() < 0.5
        if everything_taken:
            self.disk.fill()
        steps = [lambda: self.delete_some(0.5), self.truncate, self.drop, self.kill_and_start]
        if everything_taken:
            # What memory held may have no room left now: then no start.
            steps.remove(self.kill_and_start)
        dice.shuffle(steps)
        for step in steps:
            began = time.monotonic()
            step()
            self.check_rows()
            self.assertLess(time.monotonic() - began, ROOM_SECONDS_MAX)
        self.disk.empty()
        self.wait_for_room()
        self.kill_and_start()
        self.check_rows()
        for _ in range(20):
            self.insert("kept")

    def test_filled_and_emptied_again_and_again(self):
        self.start()
        self.execute("CREATE KEYSPACE small WITH replication = "
                     "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        for table in self.rows:
            self.make_table(table)
        began = time.monotonic()
        for number in range(ROUNDS):
            try:
                self.play_round(number)
            except BaseException:
                print(f"round {number}: {self.disk.free_bytes()} bytes free, the node's log:")
                print(self.node.log_text()[-6000:])
                raise
        print(f"{ROUNDS} rounds, {self.next_key} rows written, "
              f"{time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    ROUNDS = int(sys.argv.pop(1))
    probe = SmallDisk()
    probe.close()
    if probe.error:
        print(f"skipped: no file system of its own: {probe.error}")
        sys.exit(SKIPPED)
    unittest.main()
