#!/usr/bin/python3
"""Concurrent values on three nodes, as clients of CQL and of HTTP meet them: what was written under
one context through different nodes stays until somebody who has seen it replaces it, through any
node, and through kill -9.

    siblings_test.py HELENUS [SiblingsTest|KeyValueTest]
"""

import contextlib
import http.client
import itertools
import json
import signal
import sys
import threading
import unittest
import urllib.parse

import cluster_test
from cassandra import InvalidRequest
from cassandra.query import SimpleStatement
from cluster_test import SECONDS_MAX, await_that
from replication_test import ALL, CATCH_UP_SECONDS, ONE, QUORUM, ThreeNodes, clients_of

BODY_MAX = 1 << 20
LEVEL_NAMES = {ONE: "ONE", QUORUM: "QUORUM", ALL: "ALL"}


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read().decode()
        self.context = self.headers.get("helenus-context")
        self.etag = self.headers.get("etag")

    def json(self):
        return json.loads(self.body)

    def error(self):
        return self.json()["error"]


def http_request(member, method, path, body=None, headers=None):
    connection = http.client.HTTPConnection(member.ip, member.ports["admin"], timeout=SECONDS_MAX)
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        return Answer(connection.getresponse())


def url(*parts, level=None):
    path = "/v1/kv/" + "/".join(urllib.parse.quote(part, safe=":") for part in parts)
    return path + (f"?consistency={LEVEL_NAMES[level]}" if level is not None else "")


def get(member, *parts, level=QUORUM, **headers):
    return http_request(member, "GET", url(*parts, level=level), headers=headers)


def put(member, body, *parts, context=None, level=None, headers=None):
    headers = dict(headers or {})
    if context is not None:
        headers["Helenus-Context"] = context
    return http_request(member, "PUT", url(*parts, level=level), body, headers)


def delete(member, *parts, context=None, level=None, headers=None):
    headers = dict(headers or {})
    if context is not None:
        headers["Helenus-Context"] = context
    return http_request(member, "DELETE", url(*parts, level=level), headers=headers)


class ThreeNodesOfSiblings(ThreeNodes):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        with clients_of(cls.members[:1]) as (client,):
            client.execute("CREATE TABLE rows.s (k text PRIMARY KEY, v text, w int, b blob) "
                           "WITH conflicts = 'siblings'")
            client.execute("CREATE TABLE rows.super (k text, s text, c text, v text, "
                           "PRIMARY KEY (k, s, c)) WITH conflicts = 'siblings'")
            client.execute("CREATE TABLE rows.last (k text PRIMARY KEY, v text)")

    def siblings(self, member, key, level=QUORUM, column="v"):
        """A sorted list; none: there is nothing."""
        answer = get(member, "rows", "s", key, column, level=level)
        self.assertIn(answer.status, (200, 404), answer.body)
        return sorted(answer.json()["siblings"]) if answer.status == 200 else None

    def assert_everywhere(self, key, expected):
        """At QUORUM at once, and at each node by and by."""
        for member in self.members:
            self.assertEqual(self.siblings(member, key), expected, member.ip)
        self.await_everywhere(key, expected)

    def await_everywhere(self, key, expected):
        for member in self.members:
            await_that(lambda: self.siblings(member, key, ONE) == expected,
                       f"{member.ip} has {expected} of {key}", CATCH_UP_SECONDS)
        for member in self.members:
            self.assertEqual(self.siblings(member, key, ALL), expected, member.ip)

    def context_of(self, member, key, level=QUORUM):
        return get(member, "rows", "s", key, level=level).context


class SiblingsTest(ThreeNodesOfSiblings):
    """Over CQL: contexts in the custom payload."""

    @staticmethod
    def execute(client, text, *values, context=None, level=QUORUM):
        """The rows, and the context that came with them."""
        payload = None if context is None else {"helenus-context": context}
        statement = SimpleStatement(text, consistency_level=level)
        future = client.session.execute_async(statement, values or None, custom_payload=payload)
        rows = list(future.result())
        return rows, (future.custom_payload or {}).get("helenus-context")

    def write(self, client, key, value, context, level=QUORUM):
        return self.execute(client, "UPDATE rows.s SET v = %s WHERE k = %s", value, key,
                            context=context, level=level)[1]

    def read(self, client, key, level=QUORUM):
        rows, context = self.execute(client, "SELECT v FROM rows.s WHERE k = %s", key, level=level)
        self.assertTrue(context)
        return [row.v for row in rows], context

    def test_writes_under_one_context_stay_until_somebody_replaces_both(self):
        with clients_of(self.members) as clients:
            for turn, (a, b, c) in enumerate(itertools.permutations(range(3))):
                key = f"both-{turn}"
                self.write(clients[a], key, "first", None)
                _, seen = self.read(clients[b], key)
                self.write(clients[a], key, "milk", seen)
                self.write(clients[b], key, "eggs", seen)
                self.assert_everywhere(key, ["eggs", "milk"])
                shown, both = self.read(clients[c], key)
                self.assertIn(shown, (["milk"], ["eggs"]))
                self.write(clients[c], key, "milk, eggs", both)
                self.assert_everywhere(key, ["milk, eggs"])
        self.restart_all()
        for turn in range(6):
            self.assert_everywhere(f"both-{turn}", ["milk, eggs"])

    def restart_all(self):
        for member in self.members:
            member.end(signal.SIGKILL)
        for member in self.members:
            member.begin()
        for member in self.members:
            member.wait_up()
        self.await_all_up()

    def test_siblings_survive_kills_and_are_resolved_afterwards(self):
        with clients_of(self.members) as clients:
            self.write(clients[0], "killed", "first", None)
            _, seen = self.read(clients[0], "killed")
            for number, client in enumerate(clients):
                self.write(client, "killed", f"of {number}", seen)
        self.restart_all()
        self.assert_everywhere("killed", ["of 0", "of 1", "of 2"])
        with clients_of(self.members) as clients:
            _, all_three = self.read(clients[1], "killed")
            self.write(clients[2], "killed", "one", all_three)
            # A context of before says nothing of what came after.
            self.write(clients[0], "killed", "late", seen)
        self.restart_all()
        self.assert_everywhere("killed", ["late", "one"])

    def test_a_context_is_good_through_a_node_that_has_not_what_it_names(self):
        away, others = self.members[2], self.members[:2]
        with clients_of(others) as clients:
            away.end(signal.SIGKILL)
            self.write(clients[0], "away", "a", None)
            _, seen = self.read(clients[1], "away")
            self.write(clients[0], "away", "b", seen)
            self.write(clients[1], "away", "c", seen)
            _, both = self.read(clients[0], "away")
        away.start()
        with clients_of([away]) as (client,):
            # It mints at once what replaces two writes that it may not have yet.
            self.write(client, "away", "d", both, ONE)
        self.await_all_up()
        self.await_everywhere("away", ["d"])

    def test_a_delete_takes_what_its_context_names_and_nothing_else(self):
        statements = ("DELETE v FROM rows.s WHERE k = %s", "DELETE FROM rows.s WHERE k = %s",
                      "UPDATE rows.s SET v = null WHERE k = %s")
        with clients_of(self.members) as clients:
            for turn, (text, level) in enumerate(itertools.product(statements, LEVEL_NAMES)):
                key = f"delete-{turn}"
                a, b, c = (clients[(turn + i) % 3] for i in range(3))
                self.write(a, key, "old", None, ALL)
                _, seen = self.read(a, key)
                self.write(b, key, "concurrent", seen, ALL)
                self.execute(c, text, key, context=seen, level=level)
                self.assertEqual(self.siblings(self.members[turn % 3], key, ALL), ["concurrent"],
                                 (text, level))
                _, seen = self.read(b, key, ALL)
                self.execute(a, text, key, context=seen, level=level)
                self.assertIsNone(self.siblings(self.members[turn % 3], key, ALL), (text, level))
                self.assert_everywhere(key, None)

    def test_a_delete_without_a_context_takes_what_a_majority_has(self):
        with clients_of(self.members) as clients:
            for turn in range(12):
                key = f"blind-{turn}"
                _, empty = self.read(clients[0], key)
                for number, client in enumerate(clients):
                    self.write(client, key, str(number), empty)
                self.execute(clients[turn % 3], "DELETE FROM rows.s WHERE k = %s", key)
                self.assertIsNone(self.siblings(self.members[(turn + 1) % 3], key))
                self.assert_everywhere(key, None)

    def test_contexts_of_elsewhere_are_refused_by_every_node(self):
        with clients_of(self.members) as clients:
            self.write(clients[0], "mine", "a", None, ALL)
            _, seen = self.read(clients[0], "mine")
            for client in clients:
                with self.assertRaisesRegex(InvalidRequest, "another partition"):
                    self.write(client, "other", "b", seen)
                with self.assertRaisesRegex(InvalidRequest, "no context of this cluster"):
                    self.write(client, "mine", "b", seen[:-1] + bytes([seen[-1] ^ 1]))
            self.assert_everywhere("mine", ["a"])
            self.assert_everywhere("other", None)

    def test_many_writers_lose_nothing(self):
        """Each adds its number to what it reads, and merges siblings: a set that only grows."""
        numbers_each = 20

        def add(client, mine):
            for number in mine:
                answer = get(client, "rows", "s", "grown", "v")
                known = set()
                if answer.status == 200:
                    known = {one for text in answer.json()["siblings"] for one in text.split()}
                text = " ".join(sorted(known | {str(number)}, key=int))
                done = put(client, text, "rows", "s", "grown", "v", context=answer.context)
                self.assertEqual(done.status, 204, done.body)

        threads = []
        for place, member in enumerate(self.members * 2):
            mine = range(place * numbers_each, (place + 1) * numbers_each)
            threads.append(threading.Thread(target=add, args=(member, mine)))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for member in self.members:
            found = {one for text in self.siblings(member, "grown") for one in text.split()}
            self.assertEqual(found, {str(number) for number in range(6 * numbers_each)})


class KeyValueTest(ThreeNodesOfSiblings):
    """Over HTTP."""

    def test_a_conflict_and_its_resolution(self):
        one, two, three = self.members
        place = ("rows", "s", "ada", "v")
        self.assertEqual(get(one, *place).status, 404)
        for member, value in ((one, "milk"), (two, "eggs")):
            answer = put(member, value, *place, context="none")
            self.assertEqual((answer.status, answer.body), (204, ""))
        both = get(three, *place)
        self.assertEqual(both.status, 200)
        self.assertEqual(sorted(both.json()["siblings"]), ["eggs", "milk"])
        self.assertEqual(put(three, "milk, eggs", *place, context=both.context).status, 204)
        self.assert_everywhere("ada", ["milk, eggs"])
        gone = delete(two, *place, context=get(one, *place).context)
        self.assertEqual(gone.status, 204)
        self.assert_everywhere("ada", None)
        self.assertEqual(delete(two, *place, context=gone.context).status, 404)

    def test_an_answer_to_a_write_is_a_context_for_the_next_one(self):
        place = ("rows", "s", "chain", "v")
        context = "none"
        for number in range(9):
            answer = put(self.members[number % 3], str(number), *place, context=context)
            self.assertEqual(answer.status, 204)
            context = answer.context
        self.assert_everywhere("chain", ["8"])

    def test_conditions(self):
        one, two, three = self.members
        place = ("rows", "s", "if", "v")
        absent = {"If-None-Match": "*"}
        self.assertEqual(put(one, "a", *place, headers=absent).status, 204)
        refused = put(two, "b", *place, headers=absent)
        self.assertEqual((refused.status, refused.json()["siblings"]), (412, ["a"]))
        seen = get(three, *place)
        self.assertEqual(put(one, "b", *place, headers={"If-Match": seen.etag}).status, 204)
        refused = put(two, "c", *place, headers={"If-Match": seen.etag})
        self.assertEqual((refused.status, refused.json()["siblings"]), (412, ["b"]))
        # Under its context alone it would have become a sibling.
        self.assertEqual(put(two, "c", *place, context=seen.context).status, 204)
        now = get(one, *place)
        self.assertEqual(sorted(now.json()["siblings"]), ["b", "c"])
        self.assertEqual(put(two, "d", *place, headers={"If-Match": refused.etag}).status, 412)
        done = put(two, "d", *place, headers={"If-Match": now.etag})
        self.assertEqual(done.status, 204)
        # What a write answers is the ETag of what it left.
        self.assertEqual(get(three, *place, **{"If-None-Match": done.etag}).status, 304)
        self.assertEqual(get(three, *place, **{"If-None-Match": now.etag}).status, 200)
        self.assertEqual(delete(three, *place, headers={"If-Match": now.etag}).status, 412)
        self.assertEqual(delete(three, *place, headers={"If-Match": done.etag}).status, 204)
        self.assertEqual(put(one, "e", *place, headers={"If-Match": done.etag}).status, 412)
        self.assert_everywhere("if", None)

    def test_rows_and_types(self):
        one, two, three = self.members
        row = {"v": "caf\u00e9", "w": -7, "b": "0xcafe"}
        done = put(one, json.dumps(row), "rows", "s", "r/o:w", context="none")
        self.assertEqual(done.status, 204)
        seen = get(two, "rows", "s", "r/o:w")
        self.assertEqual(seen.json(), {"columns": {name: [row[name]] for name in sorted(row)}})
        # A row that is put is that row: what it does not say is gone.
        self.assertEqual(put(three, '{"w": 8}', "rows", "s", "r/o:w", context=seen.context).status,
                         204)
        seen = get(one, "rows", "s", "r/o:w")
        self.assertEqual(seen.json(), {"columns": {"w": [8]}})
        self.assertEqual(put(one, b"\x00\xff", "rows", "s", "r/o:w", "b",
                             context=seen.context).status, 204)
        self.assertEqual(get(two, "rows", "s", "r/o:w", "b").json(), {"siblings": ["0x00ff"]})
        plain = get(two, "rows", "s", "r/o:w", "w", Accept="text/plain")
        self.assertEqual((plain.body, plain.headers["content-type"]),
                         ("8", "text/plain; charset=utf-8"))
        as_json = {"Content-Type": "application/json"}
        self.assertEqual(put(one, '"x"', "rows", "s", "r/o:w", "v", context=seen.context,
                             headers=as_json).status, 204)
        self.assertEqual(put(two, '"y"', "rows", "s", "r/o:w", "v", context=seen.context,
                             headers=as_json).status, 204)
        several = get(three, "rows", "s", "r/o:w", "v", Accept="text/plain")
        self.assertEqual((several.status, sorted(several.json()["siblings"])), (300, ["x", "y"]))
        # What came since stays where a row is deleted by one who has not seen it.
        self.assertEqual(delete(two, "rows", "s", "r/o:w", context=seen.context).status, 204)
        left = get(one, "rows", "s", "r/o:w").json()["columns"]
        self.assertEqual({name: sorted(values) for name, values in left.items()},
                         {"b": ["0x00ff"], "v": ["x", "y"]})

    def test_families_and_super_columns(self):
        one, two, three = self.members
        for member, value, *place in ((one, "3", "super:engine:m1", "ada"),
                                      (two, "4", "super", "ada", "engine:m2")):
            self.assertEqual(put(member, value, "rows", *place, context="none").status, 204)
        self.assertEqual(get(three, "rows", "super:engine:m2", "ada").json(), {"siblings": ["4"]})
        self.assertEqual(get(three, "rows", "super", "ada", "engine:m1:v").json(),
                         {"siblings": ["3"]})
        self.assertEqual(get(three, "rows", "super", "ada", "engine:m3").status, 404)
        self.assertEqual(get(three, "rows", "super", "ada", "engine").status, 400)

    def test_tables_where_the_last_writer_wins(self):
        one, two, three = self.members
        place = ("rows", "last", "k", "v")
        self.assertEqual(put(one, "a", *place).status, 204)
        self.assertEqual(put(two, "b", *place).status, 204)
        seen = get(three, *place)
        self.assertEqual(seen.json(), {"siblings": ["b"]})
        self.assertEqual(put(three, "c", *place, context=seen.context).status, 204)
        self.assertEqual(put(three, "d", *place, headers={"If-Match": seen.etag}).status, 400)
        self.assertEqual(get(one, *place).json(), {"siblings": ["c"]})
        self.assertEqual(delete(one, *place).status, 204)
        self.assertEqual(get(two, *place).status, 404)
        self.assertEqual(delete(one, *place).status, 404)

    def test_what_is_refused_has_written_nothing(self):
        one = self.members[0]
        place = ("rows", "s", "refused", "v")
        put(one, "a", *place, context="none")
        seen = get(one, *place)
        other = get(one, "rows", "s", "other", "v").context
        of_last = get(one, "rows", "last", "refused").context
        good = seen.context
        flipped = good[:-4] + ("A" if good[-4] != "A" else "B") + good[-3:]
        wrong = {
            409: [lambda: put(one, "b", *place), lambda: delete(one, *place),
                  lambda: delete(one, *place, context="none")],
            400: [lambda: put(one, "b", *place, context=""),
                  lambda: put(one, "b", *place, context="not base64url!"),
                  lambda: put(one, "b", *place, context=good[:-1]),
                  lambda: put(one, "b", *place, context=flipped),
                  lambda: delete(one, *place, context=flipped),
                  lambda: put(one, "b", *place, context=other),
                  lambda: put(one, "b", *place, context=of_last),
                  lambda: put(one, "b", *place, headers={"If-Match": "*"}),
                  lambda: put(one, "b", *place, headers={"If-Match": good}),
                  lambda: put(one, "b", *place, context=good, headers={"If-Match": seen.etag}),
                  lambda: put(one, b"\xff\xfe", *place, context=good),
                  lambda: put(one, "x", "rows", "s", "refused", "w", context=good),
                  lambda: put(one, "[1", "rows", "s", "refused", context=good),
                  lambda: put(one, "[" * 100000, "rows", "s", "refused", context=good),
                  lambda: put(one, '{"k": "x"}', "rows", "s", "refused", context=good),
                  lambda: put(one, '{"v": ["x"]}', "rows", "s", "refused", context=good),
                  lambda: http_request(one, "PUT", url(*place) + "?consistency=MOST", "b",
                                       {"Helenus-Context": good}),
                  lambda: http_request(one, "PUT", url(*place) + "?ttl=-1", "b",
                                       {"Helenus-Context": good}),
                  lambda: http_request(one, "PUT", "/v1/kv/rows/s/%zz", "b"),
                  lambda: http_request(one, "GET", "/v1/kv/rows/s"),
                  lambda: http_request(one, "GET", "/v1/kv/rows/s/a/b/c")],
            404: [lambda: get(one, "rows", "s", "unknown"), lambda: get(one, "rows", "none", "k"),
                  lambda: get(one, "none", "s", "k"), lambda: get(one, "rows", "s", "k", "none"),
                  lambda: put(one, "b", "rows", "none", "k", context="none"),
                  lambda: delete(one, "rows", "s", "unknown",
                                 context=get(one, "rows", "s", "unknown").context)],
            405: [lambda: http_request(one, "POST", url(*place)),
                  lambda: http_request(one, "PATCH", url(*place))],
            403: [lambda: put(one, "b", *place, context=good, headers={"Origin": "http://a.b"}),
                  lambda: http_request(one, "GET", url(*place), headers={"Host": "evil.test"})],
        }
        for status, requests in wrong.items():
            for number, request in enumerate(requests):
                answer = request()
                self.assertEqual(answer.status, status, (number, answer.body))
                if answer.headers["content-type"] == "application/json":
                    self.assertRegex(answer.error(), r"\w \w")
        self.assertEqual(get(one, *place).status, 200)
        self.assert_everywhere("refused", ["a"])
        self.assert_everywhere("unknown", None)
        self.assertIsNone(self.siblings(one, "refused", column="w"))

    def test_bodies_up_to_the_limit_and_beyond(self):
        one, two, _ = self.members
        place = ("rows", "s", "large", "v")
        self.assertEqual(put(one, "x" * (BODY_MAX + 1), *place, context="none").status, 413)
        self.assertEqual(get(one, *place).status, 404)
        done = put(one, "y" * BODY_MAX, *place, context="none", headers={"Expect": "100-continue"})
        self.assertEqual(done.status, 204)
        self.assertEqual(get(two, *place).json(), {"siblings": ["y" * BODY_MAX]})

    def test_levels_that_are_not_met_are_told(self):
        one, two, three = self.members
        three.end(signal.SIGKILL)
        self.await_down(three, [one, two])
        place = ("rows", "s", "level", "v")
        self.assertEqual(put(one, "a", *place, context="none", level=QUORUM).status, 204)
        self.assertEqual(put(one, "b", *place, context="none", level=ALL).status, 503)
        self.assertEqual(get(two, *place, level=ALL).status, 503)
        self.assertEqual(get(two, *place).json(), {"siblings": ["a"]})
        three.start()
        self.await_all_up()
        self.assert_everywhere("level", ["a"])

    def test_what_was_asked_is_counted(self):
        one = self.members[0]
        get(one, "rows", "s", "counted")
        metrics = http_request(one, "GET", "/metrics").body
        self.assertRegex(metrics,
                         r'helenus_key_value_requests_total\{method="GET",status="404"\} [1-9]')


if __name__ == "__main__":
    cluster_test.HELENUS = sys.argv.pop(1)
    unittest.main(verbosity=2)
