#!/usr/bin/python3
"""Three nodes in network namespaces of their own, which are cut off from each other while their
clients reach all of them: who has a majority goes on, who has none acknowledges nothing at QUORUM,
and when the network heals all have the same.

    partition_test.py HELENUS

Skipped (77) where the machine lets nobody make network namespaces."""

import os
import shutil
import subprocess
import sys
import time
import unittest

import cluster_test
from cluster_test import NUMBERS, await_that
from replication_test import CATCH_UP_SECONDS, ONE, QUORUM, ThreeNodes, Writer, clients_of

SKIPPED = 77
NETWORK = "10.77.0"
HOST = f"{NETWORK}.254"  # of the clients
PORTS = {"node": 7000, "cql": 9042, "admin": 7070}
# Nobody has it: what is sent there is lost, and nobody is told.
NOWHERE = "02:00:00:00:00:99"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


def address(number):
    return f"{NETWORK}.{number}"


def make_network():
    """A namespace a node, and a bridge between them that is in this one."""
    os.makedirs("/run/netns", exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run/netns"], check=True)
    ip("link", "set", "lo", "up")
    ip("link", "add", "bridge0", "type", "bridge")
    ip("addr", "add", f"{HOST}/24", "dev", "bridge0")
    ip("link", "set", "bridge0", "up")
    for number in NUMBERS:
        ip("netns", "add", f"n{number}")
        ip("link", "add", f"port{number}", "type", "veth", "peer", "name", "eth0",
           "netns", f"n{number}")
        ip("link", "set", f"port{number}", "master", "bridge0", "up")
        ip("-n", f"n{number}", "addr", "add", f"{address(number)}/24", "dev", "eth0")
        ip("-n", f"n{number}", "link", "set", "eth0", "up")
        ip("-n", f"n{number}", "link", "set", "lo", "up")


def cut(one, other):
    for here, there in ((one, other), (other, one)):
        ip("-n", f"n{here}", "neigh", "replace", address(there), "lladdr", NOWHERE,
           "dev", "eth0", "nud", "permanent")


def heal():
    for here in NUMBERS:
        for there in NUMBERS:
            if here != there:
                subprocess.run(["ip", "-n", f"n{here}", "neigh", "del", address(there),
                                "dev", "eth0"], stderr=subprocess.DEVNULL)


class Member(cluster_test.Member):
    NETWORK = NETWORK

    def __init__(self, folder, number, secret):
        self.PREFIX = ("ip", "netns", "exec", f"n{number}")
        super().__init__(folder, number, PORTS, cluster_secret_file=secret, admin_remote="true")


class PartitionTest(ThreeNodes):
    """Clients reach every node all the time."""

    @classmethod
    def make_members(cls):
        secret = os.path.join(cls.scratch.name, "secret")
        with open(secret, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            subprocess.run([cluster_test.HELENUS, "secret"], stdout=file, check=True)
        return [Member(cls.scratch.name, number, secret) for number in NUMBERS]

    def setUp(self):
        self.addCleanup(heal)
        super().setUp()

    def test_a_majority_goes_on_and_what_is_cut_off_acknowledges_nothing(self):
        lonely, others = self.members[2], self.members[:2]
        with clients_of(self.members) as clients:
            clients[0].put("cut-before", 1)
            clients[0].put("cut-deleted", 1)
            writers = [Writer(client, f"cut-{client.ip}-") for client in clients]
            for writer in writers:
                writer.start()
            await_that(lambda: all(len(writer.values) > 30 for writer in writers), "all write")
            for other in others:
                cut(lonely.number, other.number)
            began = time.monotonic()
            time.sleep(6)
            healed = time.monotonic()
            clients[1].delete("cut-deleted")
            # By itself it still serves who asks for no more.
            clients[2].put("cut-alone", 7, ONE)
            self.assertEqual(clients[2].get("cut-before", ONE), 1)
            heal()
            self.await_all_up()
            time.sleep(1)
            for writer in writers:
                writer.end()
            for writer in writers[:2]:
                with self.subTest(writer.prefix):
                    late = [(at - began, repr(error)) for at, _, error in writer.failures
                            if at > began + 1]
                    self.assertEqual(late, [], "of requests to the majority that began 1 s later")
            in_vain = [at for at in writers[2].acknowledged_at if began + 1 < at < healed]
            self.assertEqual(in_vain, [], "acknowledged at QUORUM by one node of three")
            self.assertTrue([at for at in writers[2].acknowledged_at if at > healed], "it is back")
            expected = {key: value for writer in writers for key, value in writer.values.items()
                        if key not in writer.unknown}
            expected |= {"cut-before": 1, "cut-deleted": None, "cut-alone": 7}
            for client in clients:
                self.await_rows(client, expected)
                self.assert_rows(client, expected)

    def test_what_all_sides_wrote_comes_together(self):
        for one, other in ((1, 2), (2, 3), (1, 3)):
            cut(one, other)
        expected = {}
        with clients_of(self.members) as clients:
            for client in clients:
                for number in range(20):
                    key = f"apart-{client.ip}-{number}"
                    client.put(key, number, ONE)
                    expected[key] = number
            with self.assertRaises(Exception):
                clients[0].put("apart-in-vain", 1, QUORUM)
            heal()
            self.await_all_up()
            for client in clients:
                self.await_rows(client, expected)
                self.assert_rows(client, expected)
        for member in self.members:
            await_that(lambda: cluster_test.run("missing", "--admin", member.admin).stdout.endswith(
                "\nnothing to repair\n"), f"{member.ip} lacks nothing", CATCH_UP_SECONDS)


def main():
    if os.environ.get("HELENUS_IN_NAMESPACE") != "1":
        able = shutil.which("ip") and shutil.which("unshare") and subprocess.run(
            ["unshare", "--net", "--mount", "sh", "-c", "ip link add bridge0 type bridge"],
            stderr=subprocess.DEVNULL, check=False).returncode == 0
        if not able:
            print("skipped: nobody may make network namespaces here")
            return SKIPPED
        return subprocess.run(
            ["unshare", "--net", "--mount", sys.executable, os.path.abspath(__file__),
             *sys.argv[1:]],
            env={**os.environ, "HELENUS_IN_NAMESPACE": "1"}, check=False).returncode
    make_network()
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
