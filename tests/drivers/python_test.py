#!/usr/bin/python3
"""Debian's Python driver for Cassandra against a real node."""

import collections
import datetime
import decimal
import ipaddress
import os
import random
import sys
import threading
import time
import unittest
import uuid

from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest, Unavailable, connection
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.concurrent import execute_concurrent_with_args
from cassandra.cqlengine import columns, functions, management
from cassandra.cqlengine import connection as engine
from cassandra.cqlengine.models import Model
from cassandra.cqlengine.query import BatchQuery
from cassandra.cqlengine.usertype import UserType
from cassandra.policies import (
    ConstantReconnectionPolicy,
    FallthroughRetryPolicy,
    RoundRobinPolicy,
)
from cassandra.protocol import SyntaxException
from cassandra.query import UNSET_VALUE, BatchStatement, BatchType, SimpleStatement
from cassandra.util import Date, Duration, Time, max_uuid_from_time, min_uuid_from_time

from helenus_process import HOST, LEVEL, NODES, Node

HELENUS = None  # the program under test; set in main
KEYSPACE = (
    "CREATE KEYSPACE %s WITH replication = "
    "{'class': 'SimpleStrategy', 'replication_factor': NODES}".replace("NODES", str(NODES))
)
RECONNECT_SECONDS_MAX = 60


def connect(node, **options):
    profile = ExecutionProfile(
        load_balancing_policy=RoundRobinPolicy(),
        request_timeout=60,
        consistency_level=ConsistencyLevel.name_to_value[LEVEL],
    )
    return Cluster(
        [HOST],
        port=node.port,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.2),
        connect_timeout=30,
        **options,
    )


class DriverTest(unittest.TestCase):
    """Tests that share a node; each has a keyspace of its own."""

    @classmethod
    def setUpClass(cls):
        cls.node = Node(HELENUS)
        cls.node.start()
        cls.cluster = connect(cls.node)
        cls.session = cls.cluster.connect()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.shutdown()
        cls.node.__exit__()

    def setUp(self):
        self.keyspace = "k" + uuid.uuid4().hex
        self.session.execute(KEYSPACE % self.keyspace)
        self.session.set_keyspace(self.keyspace)

    def rows(self, *arguments, **options):
        return list(self.session.execute(*arguments, **options))

    # ---- Connecting, and what the driver believes ----

    def test_the_driver_knows_the_cluster(self):
        self.assertEqual(self.cluster.protocol_version, 5)
        self.assertEqual(self.cluster.metadata.cluster_name, "Helenus")
        hosts = self.cluster.metadata.all_hosts()
        self.assertEqual(len(hosts), NODES)
        self.assertEqual(hosts[0].datacenter, "datacenter1")
        self.assertEqual(hosts[0].release_version, "4.1.7")
        self.assertIn(self.node.health()["node"], [str(host.host_id) for host in hosts])
        self.assertGreaterEqual(len(self.cluster.metadata.token_map.ring), 256)

    def test_traces_can_be_read(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        trace = self.session.execute(insert, (1, 2), trace=True).get_query_trace()
        self.assertEqual(trace.request_type, "Execute CQL3 prepared query")
        self.assertEqual(trace.parameters["query"], insert.query_string)
        result = self.session.execute("SELECT v FROM t WHERE k = 1", trace=True)
        self.assertEqual(result.one().v, 2)
        trace = result.get_query_trace()
        self.assertEqual(trace.parameters["query"], "SELECT v FROM t WHERE k = 1")
        self.assertTrue(str(trace.coordinator).startswith("127.0.0."))
        self.assertGreater(trace.duration, datetime.timedelta())
        self.assertGreaterEqual(len(trace.events), 2)
        self.assertIn("SELECT v FROM t", trace.events[0].description)
        self.assertLess(
            abs(trace.started_at - datetime.datetime.utcnow()), datetime.timedelta(minutes=5)
        )

    def test_a_trace_names_the_index_that_was_used(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        self.session.execute("INSERT INTO t (k, v) VALUES (1, 2)")
        self.session.execute("CREATE INDEX ON t (v)")
        result = self.session.execute("SELECT k FROM t WHERE v = 2", trace=True)
        self.assertEqual(result.one().k, 1)
        told = [event.description for event in result.get_query_trace().events]
        self.assertTrue(any(text.endswith("using index t_v_idx") for text in told), told)

    def test_a_changed_table_is_never_read_by_old_columns(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
        self.session.execute("INSERT INTO t (k, v) VALUES (1, 2)")
        with connect(self.node) as other_cluster:
            other = other_cluster.connect(self.keyspace)
            first = self.session.prepare("SELECT * FROM t")
            second = other.prepare("SELECT * FROM t")
            self.assertEqual(other.execute(second).one()._asdict(), {"k": 1, "v": 2})
            self.session.execute("ALTER TABLE t ADD a int")
            row = {"k": 1, "a": None, "v": 2}
            self.assertEqual(self.session.execute(first).one()._asdict(), row)
            self.assertEqual(other.execute(second).one()._asdict(), row)

    def test_schema_metadata_follows_changes(self):
        self.session.execute("CREATE TYPE address (street text, zip int)")
        self.session.execute(
            "CREATE TABLE people (id uuid, at timeuuid, name text static, home frozen<address>,"
            " tags set<text>, PRIMARY KEY ((id), at)) WITH CLUSTERING ORDER BY (at DESC)"
            " AND comment = 'who' AND gc_grace_seconds = 77"
        )
        keyspace = self.cluster.metadata.keyspaces[self.keyspace]
        self.assertEqual(keyspace.user_types["address"].field_names, ["street", "zip"])
        table = keyspace.tables["people"]
        self.assertEqual([column.name for column in table.partition_key], ["id"])
        self.assertEqual([column.name for column in table.clustering_key], ["at"])
        self.assertTrue(table.columns["at"].is_reversed)
        self.assertTrue(table.columns["name"].is_static)
        self.assertEqual(table.columns["home"].cql_type, "frozen<address>")
        self.assertEqual(table.options["comment"], "who")
        self.assertEqual(table.options["gc_grace_seconds"], 77)
        self.assertFalse(table.is_compact_storage)
        self.assertIn("CLUSTERING ORDER BY (at DESC)", table.export_as_string())

        self.session.execute("ALTER TABLE people ADD age int")
        keyspace = self.cluster.metadata.keyspaces[self.keyspace]
        self.assertIn("age", keyspace.tables["people"].columns)
        self.session.execute("DROP TABLE people")
        keyspace = self.cluster.metadata.keyspaces[self.keyspace]
        self.assertNotIn("people", keyspace.tables)
        self.assertIn("helenus", self.cluster.metadata.keyspaces)

    def test_another_client_hears_of_changes(self):
        other = connect(self.node)
        try:
            other.connect()
            self.session.execute("CREATE TABLE heard (k int PRIMARY KEY)")
            deadline = time.monotonic() + RECONNECT_SECONDS_MAX
            while "heard" not in other.metadata.keyspaces[self.keyspace].tables:
                self.assertLess(time.monotonic(), deadline, "the event did not come")
                time.sleep(0.05)
        finally:
            other.shutdown()

    def test_tables_of_the_system_can_be_asked(self):
        local = self.rows("SELECT * FROM system.local WHERE key = 'local'")[0]
        self.assertEqual(local.cql_version, "3.4.6")
        self.assertEqual(local.rpc_port, self.node.port)
        self.assertEqual(len(self.rows("SELECT * FROM system.peers")), NODES - 1)
        names = self.rows(
            "SELECT table_name FROM system_schema.tables WHERE keyspace_name = %s", ["system"]
        )
        self.assertIn("local", [row.table_name for row in names])
        prepared = self.session.prepare(
            "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?"
        )
        self.assertTrue(self.rows(prepared, [self.keyspace])[0].durable_writes)
        self.assertGreaterEqual(len(self.rows("SELECT * FROM helenus.clients")), 1)
        settings = {row.name: row.value for row in self.rows("SELECT * FROM helenus.settings")}
        self.assertRegex(settings["cql_address"], rf"127\.0\.0\.\d:{self.node.port}")
        tablets = self.rows(
            "SELECT * FROM helenus.tablets WHERE keyspace_name = %s", [self.keyspace]
        )
        self.assertGreaterEqual(len(tablets), 256)
        self.assertIn("helenus_storage_writes_total", self.node.get("/metrics"))

    # ---- Statements ----

    def test_errors_are_cassandras(self):
        with self.assertRaises(SyntaxException):
            self.session.execute("SELEKT 1")
        with self.assertRaises(InvalidRequest):
            self.session.execute("SELECT * FROM nosuch")
        with self.assertRaises(AlreadyExists) as raised:
            self.session.execute(KEYSPACE % self.keyspace)
        self.assertEqual(raised.exception.keyspace, self.keyspace)
        with self.assertRaises(InvalidRequest):
            self.session.execute("SELECT * FROM system.schema_keyspaces")

    def test_replicas_that_are_not_there_make_levels_unavailable(self):
        factor = 3 if NODES == 1 else 6
        keyspace = KEYSPACE.replace(f"{NODES}}}", f"{factor}}}") % (self.keyspace + "x")
        made = self.session.execute_async(keyspace)
        made.result()
        self.assertEqual(len(made.warnings), 1)
        self.assertIn(f"replication factor {factor}", made.warnings[0])
        self.session.execute(f"CREATE TABLE {self.keyspace}x.t (k int PRIMARY KEY)")
        for text in (
            f"INSERT INTO {self.keyspace}x.t (k) VALUES (1)",
            f"SELECT * FROM {self.keyspace}x.t",
        ):
            statement = SimpleStatement(text, retry_policy=FallthroughRetryPolicy())
            statement.consistency_level = ConsistencyLevel.QUORUM
            with self.assertRaises(Unavailable) as raised:
                self.session.execute(statement)
            self.assertEqual(raised.exception.consistency, ConsistencyLevel.QUORUM)
            self.assertEqual(raised.exception.required_replicas, factor // 2 + 1)
            self.assertEqual(raised.exception.alive_replicas, NODES)
        at_one = SimpleStatement(f"SELECT * FROM {self.keyspace}x.t",
                                 consistency_level=ConsistencyLevel.ONE)
        self.assertEqual(self.rows(at_one), [])

    def test_prepared_statements_know_their_partition_key(self):
        self.session.execute("CREATE TABLE t (a int, b text, c int, PRIMARY KEY ((a, b), c))")
        insert = self.session.prepare("INSERT INTO t (c, b, a) VALUES (?, ?, ?)")
        self.assertEqual(insert.routing_key_indexes, [2, 1])
        self.session.execute(insert, [3, "two", 1])
        select = self.session.prepare("SELECT c FROM t WHERE a = :a AND b = :b")
        self.assertEqual(self.rows(select, {"a": 1, "b": "two"})[0].c, 3)

    def test_null_and_unset_differ(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
        insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        self.session.execute(insert, [1, "kept"])
        self.session.execute(insert, [1, UNSET_VALUE])
        self.assertEqual(self.rows("SELECT v FROM t")[0].v, "kept")
        self.session.execute(insert, [1, None])
        self.assertIsNone(self.rows("SELECT v FROM t")[0].v)

    def test_batches(self):
        self.session.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        insert = self.session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
        for kind in (BatchType.LOGGED, BatchType.UNLOGGED):
            batch = BatchStatement(kind)
            batch.add(insert, [int(kind.value), 1, "prepared"])
            batch.add("INSERT INTO t (k, c, v) VALUES (%s, 2, 'text')", [int(kind.value)])
            batch.add(SimpleStatement("DELETE FROM t WHERE k = 99"))
            self.session.execute(batch)
        self.assertEqual(len(self.rows("SELECT * FROM t")), 4)
        self.session.execute(
            "BEGIN BATCH INSERT INTO t (k, c, v) VALUES (7, 1, 'a');"
            " INSERT INTO t (k, c, v) VALUES (7, 2, 'b'); APPLY BATCH"
        )
        self.assertEqual(self.rows("SELECT count(*) FROM t WHERE k = 7")[0].count, 2)
        self.session.execute("BEGIN BATCH APPLY BATCH")

    def test_timestamps_and_time_to_live(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
        self.session.execute("INSERT INTO t (k, v) VALUES (1, 'new') USING TIMESTAMP 2000")
        self.session.execute("INSERT INTO t (k, v) VALUES (1, 'old') USING TIMESTAMP 1000")
        self.assertEqual(self.rows("SELECT v, writetime(v) AS w FROM t")[0], ("new", 2000))
        self.session.execute("INSERT INTO t (k, v) VALUES (2, 'brief') USING TTL 1000")
        left = self.rows("SELECT ttl(v) AS left FROM t WHERE k = 2")[0].left
        self.assertTrue(900 < left <= 1000, left)

    def test_truncate_empties_a_table(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY)")
        self.session.execute("INSERT INTO t (k) VALUES (1)")
        self.session.execute("TRUNCATE t")
        self.assertEqual(self.rows("SELECT * FROM t"), [])
        self.session.execute("INSERT INTO t (k) VALUES (2)")
        self.assertEqual(self.rows("SELECT * FROM t"), [(2,)])

    def test_a_context_travels_in_the_custom_payload(self):
        self.session.execute(
            "CREATE TABLE t (k int PRIMARY KEY, v text) WITH conflicts = 'siblings'"
        )
        self.session.execute("INSERT INTO t (k, v) VALUES (1, 'a')")
        read = self.session.execute_async(
            "SELECT v FROM t WHERE k = 1", custom_payload={"helenus-context": b""}
        )
        read.result()
        context = read.custom_payload["helenus-context"]
        self.assertTrue(context)
        self.session.execute(
            "INSERT INTO t (k, v) VALUES (1, 'b')", custom_payload={"helenus-context": context}
        )
        self.assertEqual(self.rows("SELECT v FROM t WHERE k = 1")[0].v, "b")

    def under(self, context, text, *values):
        """Executes a statement under a context; gives the context that it answers with."""
        future = self.session.execute_async(
            text, values or None, custom_payload={"helenus-context": context}
        )
        future.result()
        return (future.custom_payload or {}).get("helenus-context")

    def test_concurrent_values_stay_until_they_are_replaced(self):
        self.session.execute(
            "CREATE TABLE t (k int PRIMARY KEY, v text, w int) WITH conflicts = 'siblings'"
        )
        put = self.session.prepare("UPDATE t SET v = ? WHERE k = 1")
        read = "SELECT v FROM t WHERE k = 1"
        self.session.execute(put, ["old"])
        seen = self.under(b"", read)
        self.under(seen, put, "milk")
        self.under(seen, put, "eggs")
        both = self.under(b"", read)
        # One of them is seen, and a delete that has seen neither leaves it.
        self.assertIn(self.rows(read)[0].v, ("milk", "eggs"))
        self.under(seen, "DELETE FROM t WHERE k = 1")
        self.assertIn(self.rows(read)[0].v, ("milk", "eggs"))
        batch = "BEGIN BATCH UPDATE t SET v = %s WHERE k = 1; UPDATE t SET w = 1 WHERE k = 1; "
        after = self.under(both, batch + "APPLY BATCH", "milk and eggs")
        self.assertEqual(self.rows("SELECT v, w FROM t"), [("milk and eggs", 1)])
        self.under(after, "DELETE v, w FROM t WHERE k = 1")
        self.assertEqual(self.rows("SELECT * FROM t"), [])

    # ---- Types ----

    BOUNDARIES = {
        "ascii": ["", "a", "~" * 1000],
        "bigint": [0, -1, 2**63 - 1, -(2**63)],
        "blob": [b"", b"\x00\xff", bytes(range(256)) * 300],
        "boolean": [True, False],
        "date": [Date(0), Date(-(2**31)), Date(2**31 - 1), Date("2026-02-28")],
        "decimal": [
            decimal.Decimal(text) for text in ("0", "-1.50", "1E+20", "1e-30", "123456789" * 5)
        ],
        "double": [0.0, -0.0, 1.7976931348623157e308, 5e-324, float("inf"), float("-inf"),
                   float("nan")],
        "duration": [Duration(0, 0, 0), Duration(1, 2, 3), Duration(-(2**31) + 1, -1, -(2**62))],
        "float": [0.0, 1.5, -3.4028234663852886e38, float("inf"), float("nan")],
        "inet": ["0.0.0.0", "255.255.255.255", "::1", "2001:db8::ff"],
        "int": [0, -1, 2**31 - 1, -(2**31)],
        "smallint": [0, 2**15 - 1, -(2**15)],
        "text": ["", "it's", "\u20ac \U0001f600 \x00", "x" * 70000],
        "time": [Time(0), Time(86399999999999)],
        "timestamp": [
            datetime.datetime(1970, 1, 1),
            datetime.datetime(1, 1, 1),
            datetime.datetime(2026, 11, 15, 17, 30, 0, 123000),
            # In whole seconds: the driver computes with floating-point numbers.
            datetime.datetime(9999, 12, 31, 23, 59, 59),
        ],
        "timeuuid": [uuid.uuid1(), min_uuid_from_time(0), max_uuid_from_time(4000000000)],
        "tinyint": [0, 127, -128],
        "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.uuid4()],
        "varint": [0, -1, 127, 128, -129, 2**200, -(2**200)],
        "list<int>": [[1, 2, 1], [2**31 - 1]],
        "set<text>": [{"b", "a"}, {""}],
        "map<text, bigint>": [{"a": 1, "b": -(2**63)}],
        "frozen<list<frozen<map<int, text>>>>": [[{1: "a"}, {}]],
        "tuple<int, text, boolean>": [(1, "a", None), (None, None, None)],
    }

    def test_every_type_comes_back_as_it_was_sent(self):
        for number, (cql_type, values) in enumerate(self.BOUNDARIES.items()):
            with self.subTest(type=cql_type):
                table = f"t{number}"
                self.session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, v {cql_type})")
                insert = self.session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
                for key, value in enumerate(values):
                    self.session.execute(insert, [key, value])
                select = self.session.prepare(f"SELECT v FROM {table} WHERE k = ?")
                for key, value in enumerate(values):
                    back = self.rows(select, [key])[0].v
                    self.assertEqual(repr_of(back), repr_of(value))
                self.assertEqual(len(self.rows(f"SELECT * FROM {table}")), len(values))

    def test_types_in_keys_keep_their_order(self):
        for number, (cql_type, values) in enumerate(self.BOUNDARIES.items()):
            if cql_type in ("duration", "double", "float") or "<" in cql_type:
                continue
            with self.subTest(type=cql_type):
                table = f"o{number}"
                self.session.execute(
                    f"CREATE TABLE {table} (k int, c {cql_type}, PRIMARY KEY (k, c))"
                )
                insert = self.session.prepare(f"INSERT INTO {table} (k, c) VALUES (1, ?)")
                small = [value for value in values if len(str(value)) < 9000]
                for value in small:
                    self.session.execute(insert, [value])
                up = self.rows(f"SELECT c FROM {table} WHERE k = 1 ORDER BY c ASC")
                down = self.rows(f"SELECT c FROM {table} WHERE k = 1 ORDER BY c DESC")
                self.assertEqual(len(up), len(small))
                self.assertEqual(list(reversed(up)), down)
                if cql_type not in ("inet", "timeuuid", "uuid"):
                    self.assertEqual([row.c for row in up], sorted(row.c for row in up))

    def test_partition_keys_of_every_type_are_found_where_the_driver_looks(self):
        token_of = self.cluster.metadata.token_map.token_class.from_key
        for number, (cql_type, values) in enumerate(self.BOUNDARIES.items()):
            # The driver sends the elements of sets and maps in any order; the server sorts them.
            if cql_type.startswith(("duration", "set", "map")):
                continue
            with self.subTest(type=cql_type):
                table = f"p{number}"
                frozen = cql_type if cql_type.startswith("frozen") else f"frozen<{cql_type}>"
                key_type = frozen if "<" in cql_type else cql_type
                self.session.execute(f"CREATE TABLE {table} (k {key_type} PRIMARY KEY, v int)")
                insert = self.session.prepare(f"INSERT INTO {table} (k, v) VALUES (?, ?)")
                select = self.session.prepare(f"SELECT v, token(k) AS t FROM {table} WHERE k = ?")
                for v, value in enumerate(values):
                    bound = insert.bind([value, v])
                    # Neither an empty key nor one of more than 64 KiB is one.
                    if not 0 < len(bound.routing_key) < 2**16:
                        with self.assertRaises(InvalidRequest):
                            self.session.execute(bound)
                        continue
                    self.session.execute(bound)
                    row = self.session.execute(select, [value]).one()
                    self.assertEqual((row.v, row.t), (v, token_of(bound.routing_key).value))

    def test_counters(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, n counter)")
        add = self.session.prepare("UPDATE t SET n = n + ? WHERE k = ?")
        for by in (2**63 - 1, -(2**63 - 1), 5):
            self.session.execute(add, [by, 1])
        batch = BatchStatement(BatchType.COUNTER)
        batch.add(add, [2, 1])
        batch.add(add, [-(2**63), 2])
        self.session.execute(batch)
        self.assertEqual(sorted(self.rows("SELECT k, n FROM t")), [(1, 7), (2, -(2**63))])

    def test_user_defined_types(self):
        self.session.execute("CREATE TYPE address (street text, zip int)")
        self.session.execute(
            "CREATE TABLE t (k int PRIMARY KEY, v frozen<address>,"
            " l list<frozen<address>>, m map<text, frozen<address>>)"
        )
        self.session.execute("INSERT INTO t (k, v) VALUES (1, {street: 'High', zip: 7})")
        value = self.rows("SELECT v FROM t")[0].v
        self.assertEqual((value.street, value.zip), ("High", 7))
        address = collections.namedtuple("address", "street zip")
        self.cluster.register_user_type(self.keyspace, "address", address)
        insert = self.session.prepare("INSERT INTO t (k, v, l, m) VALUES (?, ?, ?, ?)")
        select = self.session.prepare("SELECT v, l, m FROM t WHERE k = ?")
        for zip_code in (2**31 - 1, -(2**31), None):
            one = address("", zip_code)
            self.session.execute(insert, [2, one, [one, address(None, 0)], {"home": one}])
            row = self.session.execute(select, [2]).one()
            self.assertEqual((row.v, row.l, dict(row.m)),
                             (one, [one, address(None, 0)], {"home": one}))

    # ---- Pages ----

    def test_a_hundred_thousand_rows_come_in_pages(self):
        partitions, rows_each = 100, 1000
        self.session.execute("CREATE TABLE t (k int, c int, v text, PRIMARY KEY (k, c))")
        insert = self.session.prepare("INSERT INTO t (k, c, v) VALUES (?, ?, ?)")
        for k in range(partitions):
            batch = BatchStatement(BatchType.UNLOGGED)
            for c in range(rows_each):
                batch.add(insert, [k, c, f"{k}-{c}"])
            self.session.execute(batch)
        result = self.session.execute(SimpleStatement("SELECT k, c, v FROM t", fetch_size=5000))
        self.assertTrue(result.has_more_pages)
        seen = {}
        for row in result:
            self.assertEqual(row.v, f"{row.k}-{row.c}")
            seen.setdefault(row.k, []).append(row.c)
        self.assertEqual(len(seen), partitions)
        for cs in seen.values():
            self.assertEqual(cs, list(range(rows_each)))
        backwards = SimpleStatement("SELECT c FROM t WHERE k = 7 ORDER BY c DESC", fetch_size=77)
        self.assertEqual([row.c for row in self.rows(backwards)], list(reversed(range(rows_each))))
        count = self.session.execute("SELECT count(*) FROM t", timeout=60).one().count
        self.assertEqual(count, partitions * rows_each)

    def test_a_page_is_taken_up_by_its_state(self):
        self.session.execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))")
        for c in range(10):
            self.session.execute(f"INSERT INTO t (k, c) VALUES (1, {c})")
        statement = SimpleStatement("SELECT c FROM t WHERE k = 1", fetch_size=4)
        first = self.session.execute(statement)
        self.assertEqual([row.c for row in first.current_rows], [0, 1, 2, 3])
        second = self.session.execute(statement, paging_state=first.paging_state)
        self.assertEqual([row.c for row in second.current_rows], [4, 5, 6, 7])
        # Another statement's is refused, and the connection goes on.
        with self.assertRaises(InvalidRequest):
            self.session.execute("SELECT c FROM t", paging_state=first.paging_state)
        self.assertEqual(self.rows("SELECT count(*) FROM t"), [(10,)])

    def test_token_ranges_cover_everything_once(self):
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY)")
        execute_concurrent_with_args(
            self.session, "INSERT INTO t (k) VALUES (%s)", [(k,) for k in range(500)]
        )
        select = self.session.prepare("SELECT k FROM t WHERE token(k) > ? AND token(k) <= ?")
        ring = [token.value for token in self.cluster.metadata.token_map.ring]
        seen = []
        for low, high in zip([-(2**63)] + ring, ring):
            seen += [row.k for row in self.rows(select, [low, high])]
        self.assertEqual(sorted(seen), list(range(500)))


def repr_of(value):
    """For comparing what the driver gives back: its own types compare loosely."""
    if isinstance(value, decimal.Decimal):
        return value.as_tuple()
    if isinstance(value, (str, bytes, int, float, uuid.UUID)):
        return repr(value)
    if isinstance(value, ipaddress._BaseAddress):
        return str(value)
    if isinstance(value, (list, tuple)):
        return [repr_of(element) for element in value]
    if hasattr(value, "items"):
        return sorted((repr_of(key), repr_of(mapped)) for key, mapped in value.items())
    if hasattr(value, "__iter__"):
        return sorted(repr_of(element) for element in value)
    return str(value)


class CompressionTest(unittest.TestCase):
    """With python3-lz4 the driver compresses by itself if the server offers it."""

    def setUp(self):
        self.node = Node(HELENUS).start()
        self.addCleanup(self.node.__exit__)

    def counting(self, function, sizes):
        def counted(data):
            result = function(data)
            sizes.append((len(data), len(result)))
            return result

        return counted

    def connected(self, **options):
        cluster = connect(self.node, **options)
        self.addCleanup(cluster.shutdown)
        return cluster.connect()

    def round_trip(self, session):
        session.execute(KEYSPACE % "ks")
        session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v blob)")
        insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
        select = session.prepare("SELECT v FROM ks.t WHERE k = ?")
        values = [b"", b"x", b"same " * 200_000, random.Random(1).randbytes(300_000)]
        for key, value in enumerate(values):
            session.execute(insert, (key, value))
        for key, value in enumerate(values):
            self.assertEqual(session.execute(select, (key,)).one().v, value)

    def test_segments_are_compressed_both_ways(self):
        session = self.connected()
        self.assertEqual(session.cluster.protocol_version, 5)
        self.round_trip(session)
        pooled = [pool._connection for pool in session._pools.values()]
        self.assertTrue(all(one.compressor for one in pooled), "LZ4 was not negotiated")

    def test_frames_are_compressed_both_ways(self):
        plain = connection.locally_supported_compressions["lz4"]
        sent, received = [], []
        connection.locally_supported_compressions["lz4"] = (
            self.counting(plain[0], sent),
            self.counting(plain[1], received),
        )
        try:
            session = self.connected(protocol_version=4)
            self.round_trip(session)
        finally:
            connection.locally_supported_compressions["lz4"] = plain
        pooled = [pool._connection for pool in session._pools.values()]
        self.assertTrue(pooled)
        self.assertTrue(all(one.compressor for one in pooled), "LZ4 was not negotiated")
        self.assertTrue(any(size > 900_000 > 100 * packed for size, packed in sent), sent)
        self.assertTrue(any(size > 900_000 > 100 * packed for packed, size in received), received)

    def test_a_client_that_does_not_want_it_gets_none(self):
        session = self.connected(compression=False)
        self.round_trip(session)


class Address(UserType):
    street = columns.Text()
    zip = columns.Integer()


class Person(Model):
    __keyspace__ = "objects"
    id = columns.UUID(primary_key=True, default=uuid.uuid4)
    name = columns.Text()
    age = columns.Integer()
    tags = columns.Set(columns.Text)
    scores = columns.Map(columns.Text, columns.Integer)
    jobs = columns.List(columns.Text)
    home = columns.UserDefinedType(Address)


class Visit(Model):
    __keyspace__ = "objects"
    __options__ = {"compaction": {"class": "LeveledCompactionStrategy"}, "gc_grace_seconds": 100}
    person = columns.UUID(partition_key=True)
    day = columns.Date(partition_key=True)
    at = columns.TimeUUID(primary_key=True, clustering_order="DESC")
    page = columns.Text()


class Hits(Model):
    __keyspace__ = "objects"
    page = columns.Text(primary_key=True)
    n = columns.Counter()


class Note(Model):
    __keyspace__ = "objects"
    id = columns.Integer(primary_key=True)
    author = columns.Text(index=True)
    tags = columns.Set(columns.Text, index=True)


class MapperTest(unittest.TestCase):
    """The driver's mapper of objects (cqlengine), as an application starts and uses it."""

    @classmethod
    def setUpClass(cls):
        cls.node = Node(HELENUS)
        cls.node.start()
        cls.cluster = connect(cls.node)
        os.environ["CQLENG_ALLOW_SCHEMA_MANAGEMENT"] = "1"
        engine.set_session(cls.cluster.connect())
        management.create_keyspace_simple("objects", NODES)
        management.sync_type("objects", Address)
        for model in (Person, Visit, Hits, Note):
            management.sync_table(model)
            management.sync_table(model)  # finds nothing to change

    @classmethod
    def tearDownClass(cls):
        engine.unregister_connection("default")
        cls.cluster.shutdown()
        cls.node.__exit__()

    def test_objects_are_written_found_changed_and_deleted(self):
        home = Address(street="High", zip=7)
        ada = Person.create(name="Ada", age=36, tags={"a", "b"}, home=home)
        Person.ttl(1000).create(name="Brief")
        found = Person.objects(id=ada.id).get()
        self.assertEqual((found.name, found.tags, found.home.zip), ("Ada", {"a", "b"}, 7))
        found.age = None
        found.name = "Lady"
        found.save()
        Person.objects(id=ada.id).update(tags={"c"})
        found = Person.get(id=ada.id)
        self.assertEqual((found.name, found.age, found.tags), ("Lady", None, {"c"}))
        self.assertEqual(Person.objects.count(), 2)
        self.assertEqual(len(Person.objects(id__in=[ada.id, uuid.uuid4()])), 1)
        self.assertEqual(len(Person.objects.filter(name="Lady").allow_filtering()), 1)
        found.delete()
        with self.assertRaises(Person.DoesNotExist):
            Person.get(id=ada.id)

    def test_what_changed_of_a_container_is_saved(self):
        ada = Person.create(name="Ada", tags={"a", "b"}, scores={"go": 1, "chess": 2},
                            jobs=["one", "two"])
        other = Person.get(id=ada.id)
        found = Person.get(id=ada.id)
        found.tags.add("c")
        found.tags.remove("a")
        found.scores["go"] = 5
        found.scores["new"] = 6
        del found.scores["chess"]
        found.jobs.append("three")
        found.jobs.insert(0, "zero")
        found.save()
        other.tags.add("d")
        other.scores["other"] = 7
        other.save()
        found = Person.get(id=ada.id)
        self.assertEqual(found.tags, {"b", "c", "d"})
        self.assertEqual(found.scores, {"go": 5, "new": 6, "other": 7})
        self.assertEqual(found.jobs, ["zero", "one", "two", "three"])
        Person.objects(id=ada.id).update(tags__add={"x"}, tags__remove={"b"}, jobs__append=["end"],
                                         jobs__prepend=["begin"], scores__update={"go": 9})
        Person.objects(id=ada.id).update(scores__remove={"new"})
        found = Person.get(id=ada.id)
        self.assertEqual(found.tags, {"c", "d", "x"})
        self.assertEqual(found.scores, {"go": 9, "other": 7})
        self.assertEqual(found.jobs, ["begin", "zero", "one", "two", "three", "end"])
        found.tags.clear()
        found.jobs = []
        found.save()
        found = Person.get(id=ada.id)
        self.assertEqual((found.tags, found.jobs), (set(), []))
        found.delete()

    def test_batches_slices_and_orders(self):
        key = {"person": uuid.uuid4(), "day": datetime.date(2026, 11, 16)}
        with BatchQuery() as batch:
            for page in "abc":
                Visit.batch(batch).create(at=uuid.uuid1(), page=page, **key)
        self.assertEqual([visit.page for visit in Visit.objects(**key)], ["c", "b", "a"])
        self.assertEqual([visit.page for visit in Visit.objects(**key).order_by("at")],
                         ["a", "b", "c"])
        since = functions.MinTimeUUID(datetime.datetime(2020, 1, 1))
        self.assertEqual(len(Visit.objects(at__gte=since, **key).limit(2)), 2)
        Visit.objects(**key).delete()
        self.assertEqual(Visit.objects(**key).count(), 0)

    def test_counters(self):
        Hits.objects(page="/").update(n=5)
        Hits.objects(page="/").update(n=2)
        self.assertEqual(Hits.get(page="/").n, 7)

    def test_objects_are_found_by_what_is_indexed(self):
        Note.create(id=1, author="ada", tags={"x"})
        Note.create(id=2, author="bob", tags={"x", "y"})
        self.assertEqual([note.id for note in Note.objects(author="ada")], [1])
        self.assertEqual([note.id for note in Note.objects.filter(tags__contains="y")], [2])
        Note.objects(id=1).update(author="bob")
        self.assertEqual(sorted(note.id for note in Note.objects(author="bob")), [1, 2])
        indexes = self.cluster.metadata.keyspaces["objects"].tables["note"].indexes
        self.assertEqual(sorted(indexes), ["note_author_idx", "note_tags_idx"])

    def test_a_column_that_the_model_gains_is_added(self):
        wider = type("Wider", (Hits,), {"__table_name__": "hits", "more": columns.Counter()})
        management.sync_table(wider)
        self.assertIn("more", self.cluster.metadata.keyspaces["objects"].tables["hits"].columns)


class RestartTest(unittest.TestCase):
    """Tests that stop their node."""

    def setUp(self):
        self.node = Node(HELENUS)
        self.node.start()
        self.cluster = connect(self.node)
        self.session = self.cluster.connect()
        self.session.execute(KEYSPACE % "ks")
        self.session.set_keyspace("ks")
        self.session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")

    def tearDown(self):
        self.cluster.shutdown()
        self.node.__exit__()

    def execute_when_up(self, *arguments):
        deadline = time.monotonic() + RECONNECT_SECONDS_MAX
        while True:
            try:
                return list(self.session.execute(*arguments))
            except Exception:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)

    def test_a_client_comes_back_after_a_restart(self):
        insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        self.session.execute(insert, [1, "before"])
        self.assertEqual(self.node.stop(), 0)
        self.node.start()
        self.execute_when_up(insert, [2, "after"])
        rows = self.execute_when_up("SELECT k, v FROM t")
        self.assertEqual(sorted(rows), [(1, "before"), (2, "after")])

    def test_every_acknowledged_write_survives_a_kill_under_load(self):
        insert = self.session.prepare("INSERT INTO t (k, v) VALUES (?, ?)")
        acknowledged = []
        lock = threading.Lock()
        enough = threading.Event()
        dead = threading.Event()

        def write(first):
            key = first
            while not dead.is_set():
                try:
                    self.session.execute(insert, [key, "x" * (key % 500)], timeout=5)
                except Exception:
                    return
                with lock:
                    acknowledged.append(key)
                    if len(acknowledged) >= 3000:
                        enough.set()
                key += 16

        writers = [threading.Thread(target=write, args=[i]) for i in range(16)]
        for writer in writers:
            writer.start()
        self.assertTrue(enough.wait(120), "the load is too slow")
        self.node.kill()
        dead.set()
        for writer in writers:
            writer.join()
        # On another number of cores than before, where the machine has several.
        self.node.arguments = ("--cores", "1")
        self.node.start()
        statement = SimpleStatement("SELECT k, v FROM t", fetch_size=1000)
        rows = dict(self.execute_when_up(statement))
        missing = [key for key in acknowledged if rows.get(key) != "x" * (key % 500)]
        self.assertEqual(missing, [], f"of {len(acknowledged)} acknowledged writes")


if __name__ == "__main__":
    HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
