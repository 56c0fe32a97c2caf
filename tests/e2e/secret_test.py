#!/usr/bin/python3
"""Nodes that share a secret: three of them form a cluster, a fourth with a wrong one is refused and
harms nobody, and a node without one does not listen beyond its machine.

    secret_test.py HELENUS
"""

import os
import stat
import subprocess
import sys
import tempfile
import unittest
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cluster_test  # noqa: E402
from cluster_test import Member, SECONDS_MAX, ask, await_that, connect, run  # noqa: E402
from helenus_process import free_port  # noqa: E402


def write_secret(path):
    done = run("secret")
    assert done.returncode == 0, done.stderr
    with open(path, "w") as file:
        file.write(done.stdout)
    return path


def metric(member, name):
    with urllib.request.urlopen(f"http://{member.admin}/metrics", timeout=SECONDS_MAX) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
    raise AssertionError(f"no {name}")


def nodes_up(member):
    status = ask(member, "status")
    return status and sum(node["is_up"] for node in status["nodes"])


class SecretTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="helenus-secret-")
        self.addCleanup(self.folder.cleanup)
        self.ports = {name: free_port() for name in ("node", "cql", "admin")}

    def member(self, number, **settings):
        member = Member(self.folder.name, number, self.ports, **settings)
        self.addCleanup(lambda: member.is_running() and member.end(9))
        return member

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def test_a_node_with_a_wrong_secret_is_refused_and_harms_nobody(self):
        good = write_secret(self.path("good"))
        wrong = write_secret(self.path("wrong"))
        members = [self.member(n, cluster_secret_file=good) for n in (1, 2, 3)]
        for member in members:
            member.begin()
        for member in members:
            member.wait_up()
        for member in members:
            await_that(lambda m=member: nodes_up(m) == 3, "three nodes are up")

        fourth = self.member(4, cluster_secret_file=wrong)
        fourth.begin()
        refused = "the proof is not of this cluster's secret"
        await_that(lambda: refused in fourth.log(), "it is told why")
        await_that(lambda: metric(members[0], "helenus_rpc_proofs_refused_total") > 0,
                   "it is counted")
        fifth = self.member(5)
        fifth.begin()
        await_that(lambda: "the one that dials has none" in fifth.log(), "it is told why, too")

        with connect(members[1], only=True) as session:
            session.execute("CREATE KEYSPACE iliad WITH replication = "
                            "{'class': 'SimpleStrategy', 'replication_factor': 2}")
        for member in members:
            self.assertEqual(nodes_up(member), 3)
            self.assertLess(member.log().count("refused a node"), 6)
            with open(good) as file:
                self.assertNotIn(file.read().split(":")[2], member.log())
        self.assertTrue(fourth.is_running(), fourth.log())
        for stranger in (fourth, fifth):
            self.assertEqual(stranger.end(15), 0)
        for member in members:
            self.assertEqual(member.end(15), 0)

    def begin_outside(self, number, seeds, **settings):
        """A node that listens on all addresses of the machine, and says it is at 192.0.2.number."""
        port = self.ports["node"]
        return self.member(
            number, listen_address=f"0.0.0.0:{port}", broadcast_address=f"192.0.2.{number}",
            seeds="[" + ", ".join(f"192.0.2.{n}:{port}" for n in seeds) + "]", **settings)

    def test_without_a_secret_a_node_listens_to_its_machine_only(self):
        node = self.begin_outside(2, seeds=(1, 2))
        done = subprocess.run([cluster_test.HELENUS, "node", "--config", node.config],
                              capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual(done.returncode, 2)
        self.assertIn("is no loopback address", done.stderr)
        self.assertIn("cluster_secret_file", done.stderr)

    def test_the_founder_makes_a_secret_that_nobody_else_can_read(self):
        node = self.begin_outside(1, seeds=(1,))
        node.start()
        path = os.path.join(node.folder, "data", "cluster_secret")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        with open(path) as file:
            secret = file.read()
        self.assertTrue(secret.startswith("helenus-secret:1:"))
        self.assertEqual(node.end(15), 0)
        node.start()
        with open(path) as file:
            self.assertEqual(file.read(), secret)
        self.assertNotIn(secret.split(":")[2], node.log())
        self.assertEqual(node.end(15), 0)


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
