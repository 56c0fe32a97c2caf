"""Placements of the ring module against those that the Python driver computes for itself.

    /usr/bin/python3 tests/ring/token_map_test.py build/release/bin/helenus-test-placements

HELENUS_RING_CASES sets how many random rings are compared, HELENUS_RING_SEED which.

The driver has a fault of its own: where the walk meets a node of a full rack at several tokens
before every rack has a replica, NetworkTopologyStrategy names that node several times and each time
counts it as a replica. Cassandra and the other drivers do not. Such a range is asked again of a
ring on which each node has only the token at which the walk meets it first: that is the same walk,
and there the fault cannot show.
"""

import json
import os
import subprocess
import sys
import unittest

from cassandra.metadata import KeyspaceMetadata, Metadata
from cassandra.policies import SimpleConvictionPolicy
from cassandra.pool import Host

PROGRAM = ""
SEED = int(os.environ.get("HELENUS_RING_SEED", "1"))
CASES = int(os.environ.get("HELENUS_RING_CASES", "600"))
KEYSPACE = "k"


def host_of(index, node):
    host = Host(f"127.0.{index >> 8}.{index & 255}", SimpleConvictionPolicy)
    host.set_location_info(node["datacentre"], node["rack"])
    return host


class DriverRing:
    """The driver's view of a cluster: what it would have read from system.local and peers."""

    def __init__(self, partitioner, hosts, tokens_by_host, replication):
        options = dict(replication)
        self.number_of = {host: number for number, host in enumerate(hosts)}
        self.metadata = Metadata()
        self.metadata.keyspaces[KEYSPACE] = KeyspaceMetadata(
            KEYSPACE, True, options.pop("class"), options)
        self.metadata.rebuild_token_map(partitioner, dict(zip(hosts, tokens_by_host)))

    @property
    def token_map(self):
        return self.metadata.token_map

    def replicas_at(self, token_text):
        token = self.token_map.token_class.from_string(token_text)
        return [self.number_of[h] for h in self.token_map.get_replicas(KEYSPACE, token)]


class Case:
    def __init__(self, text):
        self.case = json.loads(text)
        self.nodes = self.case["nodes"]
        self.hosts = [host_of(number, node) for number, node in enumerate(self.nodes)]
        self.ring = self.driver_ring([node["tokens"] for node in self.nodes])
        self.repeats = 0

    def driver_ring(self, tokens_by_host):
        return DriverRing(self.case["partitioner"], self.hosts, tokens_by_host,
                          self.case["replication"])

    def first_tokens_met(self, tablet):
        tablets = self.case["tablets"]
        owner_of = {token: number for number, node in enumerate(self.nodes)
                    for token in node["tokens"]}
        tokens_by_host = [[] for _ in self.nodes]
        for entry in tablets[tablet:] + tablets[:tablet]:
            tokens = tokens_by_host[owner_of[entry["token"]]]
            if not tokens:
                tokens.append(entry["token"])
        return tokens_by_host

    def driver_replicas(self, tablet):
        token = self.case["tablets"][tablet]["token"]
        replicas = self.ring.replicas_at(token)
        if len(set(replicas)) < len(replicas):
            self.repeats += 1
            replicas = self.driver_ring(self.first_tokens_met(tablet)).replicas_at(token)
        return replicas


class TokenMapTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        run = subprocess.run([PROGRAM, str(SEED), str(CASES)], check=True, capture_output=True,
                             text=True)
        cls.cases = [Case(line) for line in run.stdout.splitlines()]

    @staticmethod
    def comparable(case, replicas):
        """In their order; with NetworkTopologyStrategy, whose nodes of a rack met before the driver
        puts last and Cassandra 4 where the walk meets them, as a set."""
        is_simple = case.case["replication"]["class"] == "SimpleStrategy"
        return replicas if is_simple else sorted(replicas)

    def where(self, number, token):
        return (f"HELENUS_RING_SEED={SEED}, case {number}, token {token}: "
                f"{json.dumps(self.cases[number].case)}")

    def test_there_are_cases_of_every_kind(self):
        self.assertEqual(len(self.cases), CASES)
        kinds = {(case.case["partitioner"], case.case["replication"]["class"])
                 for case in self.cases}
        self.assertEqual(len(kinds), 4, kinds)

    def test_every_range_has_the_driver_s_replicas(self):
        ranges = repeats = 0
        for number, case in enumerate(self.cases):
            self.assertEqual([case.ring.token_map.token_class.from_string(entry["token"])
                              for entry in case.case["tablets"]], case.ring.token_map.ring)
            for tablet, entry in enumerate(case.case["tablets"]):
                expected = case.driver_replicas(tablet)
                self.assertEqual(len(set(expected)), len(expected))
                self.assertEqual(self.comparable(case, entry["replicas"]),
                                 self.comparable(case, expected),
                                 self.where(number, entry["token"]))
                ranges += 1
            repeats += case.repeats
        print(f"{ranges} ranges of {len(self.cases)} rings are alike; "
              f"in {repeats} the driver repeats a node", file=sys.stderr)
        self.assertGreater(ranges, 10 * CASES)

    def test_every_key_is_found_where_the_driver_looks_for_it(self):
        for number, case in enumerate(self.cases):
            token_class = case.ring.token_map.token_class
            for entry in case.case["keys"]:
                key = bytes.fromhex(entry["key"])
                self.assertEqual(token_class.from_key(key),
                                 token_class.from_string(entry["token"]))
                found = [case.ring.number_of[host]
                         for host in case.ring.metadata.get_replicas(KEYSPACE, key)]
                if len(set(found)) == len(found):
                    self.assertEqual(self.comparable(case, entry["replicas"]),
                                     self.comparable(case, found),
                                     self.where(number, entry["token"]))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main(verbosity=2)
