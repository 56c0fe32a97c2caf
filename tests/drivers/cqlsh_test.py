#!/usr/bin/python3
"""cqlsh, as people use it: every statement that it sends on its own or for somebody.

    cqlsh_test.py HELENUS FOLDER

Takes the cqlsh that CQLSH names, or PyPI's: FOLDER is where pip puts it. Skipped (77) where pip
cannot install it."""

import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from helenus_process import HOST, NODES, Node

HELENUS = None  # the program under test; set in main
CQLSH = None  # likewise
SKIPPED = 77
SECONDS_MAX = 120
INSTALL_SECONDS_MAX = 240
CLEARS_THE_LINE = "\x15"

SCHEMA = """
    CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    USE ks;
    CREATE TYPE address (street text, zip int);
    CREATE TABLE t (k int, c text, v double, s set<int>, a frozen<address>, st text static,
                    PRIMARY KEY (k, c)) WITH CLUSTERING ORDER BY (c DESC) AND comment = 'hello';
    INSERT INTO t (k, c, v, s, a, st)
        VALUES (1, 'x', 1.5, {3, 1}, {street: 'Main', zip: 7}, 'S');
    INSERT INTO t (k, c) VALUES (1, 'y''z');
""".replace("'replication_factor': 1", f"'replication_factor': {NODES}")


class CqlshTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.node = Node(HELENUS)
        cls.node.start()
        cls.scratch = tempfile.TemporaryDirectory()
        code, output = cls.cqlsh(SCHEMA)
        assert code == 0, output

    @classmethod
    def tearDownClass(cls):
        cls.scratch.cleanup()
        cls.node.__exit__()

    @classmethod
    def cqlsh(cls, script, *arguments):
        """Exit code and all that it prints."""
        path = os.path.join(cls.scratch.name, "script.cql")
        with open(path, "w") as file:
            file.write(script)
        done = subprocess.run(
            [CQLSH, "--no-color", *arguments, "-f", path, HOST, str(cls.node.port)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=cls.scratch.name, env={**os.environ, "HOME": cls.scratch.name}, text=True,
            timeout=SECONDS_MAX)
        return done.returncode, done.stdout

    def told(self, script, *words):
        """It succeeds, and prints these in this order."""
        code, output = self.cqlsh(script, "-k", "ks")
        self.assertEqual(code, 0, output)
        self.assert_in_order(output, words)

    def refused(self, script, *words):
        code, output = self.cqlsh(script, "-k", "ks")
        self.assertNotEqual(code, 0, output)
        self.assert_in_order(output, words)

    def assert_in_order(self, output, words):
        at = 0
        for word in words:
            found = output.find(word, at)
            self.assertGreaterEqual(found, 0, f"{word!r} is missing in {output}")
            at = found + len(word)

    def test_it_connects_and_describes(self):
        self.told("SHOW VERSION\nSHOW HOST\nDESCRIBE CLUSTER;",
                  "Cassandra 4.1", "Native protocol v5", f"at {HOST}", "Murmur3Partitioner")
        self.told("DESCRIBE KEYSPACES;", "ks", "system_schema")
        self.told("DESCRIBE TABLES;\nDESCRIBE TYPES;", "t", "address")
        self.told("DESCRIBE TABLE t;", "CREATE TABLE ks.t (", "st text static",
                  "PRIMARY KEY (k, c)", "CLUSTERING ORDER BY (c DESC)", "comment = 'hello'")
        self.told("DESCRIBE KEYSPACE ks;\nDESC SCHEMA;\nDESC FULL SCHEMA;\nDESC system.local;",
                  "CREATE KEYSPACE ks", "CREATE TYPE ks.address", "CREATE TABLE system.local")
        self.refused("DESCRIBE TABLE nothing;", "'nothing' not found")

    def test_it_shows_rows(self):
        rows = ["y'z", "{street: 'Main', zip: 7}", "{1, 3}", "1.5", "(2 rows)"]
        self.told("SELECT * FROM t;", *rows)
        self.told("PAGING 1\nSELECT * FROM t;\nPAGING OFF\nSELECT * FROM t;",
                  "Page size: 1", *rows, *rows)
        self.told("EXPAND ON\nSELECT k, c FROM t;", "@ Row 1", "k | 1", "@ Row 2", "(2 rows)")
        self.told("SELECT count(*) FROM t;", "2", "Aggregation query used without partition key")

    def test_it_sets_the_consistency(self):
        self.told("CONSISTENCY\nCONSISTENCY QUORUM\nSERIAL CONSISTENCY LOCAL_SERIAL\n"
                  "SELECT k FROM t WHERE k = 1;\nCONSISTENCY ALL\n"
                  "INSERT INTO t (k, c) VALUES (7, 'x');\nDELETE FROM t WHERE k = 7;",
                  "level is ONE", "set to QUORUM", "set to LOCAL_SERIAL", "(2 rows)", "set to ALL")

    def test_it_shows_traces(self):
        self.told("TRACING ON\nSELECT k FROM t WHERE k = 1;",
                  "(2 rows)", "Tracing session: ", "Execute CQL3 query", "Request complete")

    def test_it_copies_tables_out_and_in(self):
        self.told("CREATE TABLE copied (k int, c text, v double, PRIMARY KEY (k, c));\n"
                  "COPY t (k, c, v) TO 'out.csv' WITH HEADER = true;\n"
                  "COPY copied (k, c, v) FROM 'out.csv' WITH HEADER = true;\n"
                  "SELECT * FROM copied;\nTRUNCATE copied;\nSELECT * FROM copied;",
                  "2 rows exported", "2 rows imported", "(2 rows)", "(0 rows)")

    def test_it_copies_many_rows_and_counters(self):
        with open(os.path.join(self.scratch.name, "many.csv"), "w") as file:
            file.writelines(f"{i % 100},{i},v{i}\n" for i in range(10000))
        self.told("CREATE TABLE many (k int, c int, v text, PRIMARY KEY (k, c));\n"
                  "COPY many (k, c, v) FROM 'many.csv';\nSELECT count(*) FROM many;\n"
                  "COPY many TO 'many_again.csv' WITH PAGESIZE = 100;\n"
                  "CREATE TABLE counted (k int PRIMARY KEY, n counter);\n"
                  "UPDATE counted SET n = n + 5 WHERE k = 1;\nCOPY counted TO 'counted.csv';\n"
                  "COPY counted FROM 'counted.csv';\nSELECT * FROM counted;",
                  "10000 rows imported", "10000", "10000 rows exported", "1 rows imported", "10")

    def test_it_says_what_is_refused(self):
        self.refused("SELEC;", "line 1:0 no viable alternative at input 'SELEC'")
        self.refused("SELECT * FROM nothing;", "code=2200", "table nothing does not exist")
        self.refused("LIST ROLES;", "code=2100")
        self.refused("SELECT * FROM t WHERE v = 1;", "code=2200", "ALLOW FILTERING")

    def test_it_completes_names(self):
        child, terminal = pty.fork()
        if child == 0:
            os.environ.update({"HOME": self.scratch.name, "TERM": "dumb"})
            os.execv(CQLSH, [CQLSH, "--no-color", HOST, str(self.node.port)])
        try:
            self.read_until(terminal, "cqlsh> ")
            for typed, shown in [("USE system_vir\t", "system_virtual_schema"),
                                 ("SELECT * FROM system.pee\t", "system.peers"),
                                 ("SELECT * FROM ks.t WHERE \t\t", "TOKEN("),
                                 ("DESCRIBE TYPE ks.ad\t", "ks.address")]:
                os.write(terminal, f"{CLEARS_THE_LINE}{typed}".encode())
                self.read_until(terminal, shown)
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(terminal)

    def read_until(self, terminal, text):
        seen = ""
        deadline = time.monotonic() + SECONDS_MAX
        while text not in seen:
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([terminal], [], [], left)[0]
            self.assertTrue(ready, f"{text!r} does not come after {seen}")
            seen += os.read(terminal, 65536).decode().replace("\a", "")

    def test_it_sends_batches(self):
        self.told("BEGIN BATCH INSERT INTO t (k, c) VALUES (8, 'a'); "
                  "INSERT INTO t (k, c) VALUES (9, 'a'); APPLY BATCH;\n"
                  "SELECT k FROM t WHERE k IN (8, 9);\nDELETE FROM t WHERE k IN (8, 9);",
                  "8", "9", "(2 rows)")


def install(folder):
    """The path of a cqlsh, or nothing."""
    cqlsh = os.path.join(folder, "bin", "cqlsh")
    if os.path.exists(cqlsh):
        return cqlsh
    pip = [os.path.join(folder, "bin", "pip"), "install", "--quiet", "--retries", "1", "cqlsh"]
    for command in [[sys.executable, "-m", "venv", folder], pip]:
        try:
            if subprocess.run(command, timeout=INSTALL_SECONDS_MAX).returncode != 0:
                return None
        except (OSError, subprocess.TimeoutExpired):
            return None
    return cqlsh


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    FOLDER = sys.argv.pop(1)
    CQLSH = os.environ.get("CQLSH") or install(FOLDER)
    if not CQLSH:
        print("skipped: pip cannot install cqlsh")
        sys.exit(SKIPPED)
    unittest.main(verbosity=2)
