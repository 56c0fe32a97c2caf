// Statements that are CQL, each with the canonical text of its tree; a statement that is canonical
// itself stands alone.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "cql/parser/keywords.h"
#include "cql/parser/parser.h"
#include "cql/parser/to_text.h"

namespace helenus::cql::parser {
namespace {

struct Accepted {
  std::string_view text;
  std::string_view canonical = text;
};

template <std::size_t Size>
void expect_accepted(const Accepted (&cases)[Size]) {
  for (const Accepted& expected : cases) {
    const auto statement = parse(expected.text);
    ASSERT_TRUE(statement.has_value()) << expected.text << "\n" << statement.error().to_string();
    EXPECT_EQ(to_text(*statement), expected.canonical);
    EXPECT_EQ(parse(expected.canonical), *statement) << expected.canonical;
  }
}

TEST(Accepted, Use) {
  expect_accepted({
      {"USE ks"},
      {"use KS;", "USE ks"},
      {"USE \"KS\" ; ;", "USE \"KS\""},
      {"-- which\nUSE /* that */ ks // one", "USE ks"},
      {"USE values"},
  });
}

TEST(Accepted, SelectorsOfASelect) {
  expect_accepted({
      {"SELECT * FROM t"},
      {"select a , B,\"C\" from ks.t;", "SELECT a, b, \"C\" FROM ks.t"},
      {"SELECT a AS x, count(*) AS \"N\" FROM t"},
      {"SELECT COUNT(*), count(1), count(a) FROM t", "SELECT count(*), count(1), count(a) FROM t"},
      {"SELECT writetime(a), TTL(b) FROM t", "SELECT writetime(a), ttl(b) FROM t"},
      {"SELECT cast(a AS text), CAST(a + 1 AS double) FROM t",
       "SELECT cast(a AS text), cast(a + 1 AS double) FROM t"},
      {"SELECT token(a, b), ks.f(a), now() FROM t"},
      {"SELECT m['k'], m['a'..'b'], m['a'..], m[..?], u.f, u.f.g[1] FROM t",
       "SELECT m['k'], m['a' .. 'b'], m['a' ..], m[.. ?], u.f, u.f.g[1] FROM t"},
      {"SELECT a + b * c - -d % 2 FROM t", "SELECT a + b * c - - d % 2 FROM t"},
      {"SELECT - - a, -1, (a + b) * c FROM t", "SELECT - - a, -1, (a + b) * c FROM t"},
      {"SELECT (int) 3, (ks.u) {a: 1}, (a) + 1, (a, b) FROM t"},
      {"SELECT (list<int>) [1, 2], [a, b], {a, b}, {a: b}, {}, [] FROM t"},
      {"SELECT ?, :x, null, 'x', 1.5, 0xff FROM t"},
      {"SELECT key, ttl, count, cast, writetime, int FROM t"},
      {"SELECT \"a\"\"b\", \"select\", \"1\", \"\tx\" FROM t"},
      {"SELECT (a).f, f(a).g FROM t"},
      {"SELECT (a) AS b FROM t"},
      {"SELECT (a) ks.f(1), (a) per FROM t"},
      {"SELECT (u) {a: 1} FROM t"},
      {"SELECT 1 .f FROM t"},
  });
}

TEST(Accepted, JsonAndDistinctAsModifiersAndAsColumns) {
  expect_accepted({
      {"SELECT JSON * FROM t"},
      {"SELECT JSON a FROM t"},
      {"SELECT JSON DISTINCT a FROM t"},
      {"SELECT DISTINCT a, b FROM t"},
      {"SELECT DISTINCT token(a) FROM t"},
      {"SELECT DISTINCT :a FROM t"},
      {"SELECT DISTINCT -a FROM t", "SELECT DISTINCT - a FROM t"},
      {"SELECT json FROM t", "SELECT \"json\" FROM t"},
      {"SELECT json, distinct FROM t", "SELECT \"json\", \"distinct\" FROM t"},
      {"SELECT json AS a FROM t", "SELECT \"json\" AS a FROM t"},
      {"SELECT JSON json FROM t", "SELECT JSON \"json\" FROM t"},
      {"SELECT distinct FROM t", "SELECT \"distinct\" FROM t"},
      {"SELECT as AS as FROM t", "SELECT \"as\" AS as FROM t"},
  });
}

TEST(Accepted, WhereOfASelect) {
  expect_accepted({
      {"SELECT * FROM t WHERE a=1 AND b!=2 AND c<3 AND d<=4 AND e>5 AND f>=6",
       "SELECT * FROM t WHERE a = 1 AND b != 2 AND c < 3 AND d <= 4 AND e > 5 AND f >= 6"},
      {"SELECT * FROM t WHERE a IN (1, 2) AND b IN () AND c IN ? AND d IN :list"},
      {"SELECT * FROM t WHERE a CONTAINS 1 AND m CONTAINS KEY 'k' AND key CONTAINS KEY 'k'"},
      {"SELECT * FROM t WHERE a LIKE '%x' AND b IS NOT NULL"},
      {"SELECT * FROM t WHERE (a, b) > (1, 2) AND (a, b) <= ? AND (a) = (1)"},
      {"SELECT * FROM t WHERE (a, b) IN ((1, 2), (3, 4)) AND (a, b) IN ? AND (c, d) IN (?, :x)"},
      {"SELECT * FROM t WHERE (a, b) IN ()"},
      {"SELECT * FROM t WHERE token(a, b) > token(1, 2) AND token(a) <= 5"},
      {"SELECT * FROM t WHERE m['k'] = 'v'"},
      {"SELECT * FROM t WHERE (a = 1) AND ((b > 2)) AND ((c, d) > (1, 2)) AND (token(a) > 1)",
       "SELECT * FROM t WHERE a = 1 AND b > 2 AND (c, d) > (1, 2) AND token(a) > 1"},
      {"SELECT * FROM t WHERE expr(idx, 'x') AND expr = 1"},
      {"SELECT * FROM t WHERE a = ('x') PER PARTITION LIMIT 1"},
      {"SELECT * FROM t WHERE a = 1 + 2 * 3 - (4 / 5) % 6"},
      {"SELECT * FROM t WHERE \"\" = 1"},
      {"SELECT * FROM system.peers_v2 WHERE peer = :address and peer_port = :port",
       "SELECT * FROM system.peers_v2 WHERE peer = :address AND peer_port = :port"},
  });
}

TEST(Accepted, TheRestOfASelect) {
  expect_accepted({
      {"SELECT * FROM t GROUP BY a, floor(b, 1h)"},
      {"SELECT * FROM t ORDER BY a, b DESC, c ASC",
       "SELECT * FROM t ORDER BY a ASC, b DESC, c ASC"},
      {"SELECT * FROM t PER PARTITION LIMIT 2 LIMIT ? ALLOW FILTERING"},
      {"SELECT * FROM t GROUP BY (a) PER PARTITION LIMIT :n"},
      {"SELECT * FROM t LIMIT -1"},
  });
}

TEST(Accepted, Terms) {
  expect_accepted({
      {"INSERT INTO t (a) VALUES (-5)"},
      {"INSERT INTO t (a) VALUES (- 5)"},
      {"INSERT INTO t (a) VALUES (nan)", "INSERT INTO t (a) VALUES (NaN)"},
      {"INSERT INTO t (a) VALUES (-NAN)", "INSERT INTO t (a) VALUES (NaN)"},
      {"INSERT INTO t (a) VALUES (-infinity)", "INSERT INTO t (a) VALUES (-Infinity)"},
      {"INSERT INTO t (a) VALUES (Infinity)"},
      {"INSERT INTO t (a) VALUES (TRUE)", "INSERT INTO t (a) VALUES (true)"},
      {"INSERT INTO t (a) VALUES (NULL)", "INSERT INTO t (a) VALUES (null)"},
      {"INSERT INTO t (a) VALUES ($$it's$$)", "INSERT INTO t (a) VALUES ('it''s')"},
      {"INSERT INTO t (a) VALUES ('two\nlines')"},
      {"INSERT INTO t (a) VALUES (1y2mo3w4d5h6m7s8ms9us10ns)"},
      {"INSERT INTO t (a) VALUES (P1Y2M3DT4H5M6S)"},
      {"INSERT INTO t (a) VALUES (01234567-89ab-cdef-0123-456789abcdef)"},
      {"INSERT INTO t (a) VALUES (0xCAFE)"},
      {"INSERT INTO t (a) VALUES ({})"},
      {"INSERT INTO t (a) VALUES ({1, 2})"},
      {"INSERT INTO t (a) VALUES ({'a': [1, 2], 'b': []})"},
      {"INSERT INTO t (a) VALUES ({street: 'x', \"Zip\": {a: 1}})"},
      {"INSERT INTO t (a) VALUES ({f(1): 2, ks.g(): 3})"},
      {"INSERT INTO t (a) VALUES ({?, :b})"},
      {"INSERT INTO t (a) VALUES ({:a: :b, :\"C\": ?})"},
      {"INSERT INTO t (a) VALUES ((1, 'x', (2)))"},
      {"INSERT INTO t (a) VALUES ((int) 3)"},
      {"INSERT INTO t (a) VALUES ((frozen<map<int, ks.u>>) {1: {a: 2}})"},
      {"INSERT INTO t (a) VALUES (('org.Type') ?)"},
      {"INSERT INTO t (a) VALUES (('x'))"},
      {"INSERT INTO t (a) VALUES ((int) f(1))"},
      {"INSERT INTO t (a) VALUES ((int) cast(1 AS int))"},
      {"INSERT INTO t (a) VALUES ((int) :b)"},
      {"INSERT INTO t (a) VALUES (cast(1.5 AS int))"},
      {"INSERT INTO t (a) VALUES (uuid())"},
      {"INSERT INTO t (a) VALUES (ks.f(1, g()))"},
      {"INSERT INTO t (a) VALUES (\"Max\"(1))"},
      {"INSERT INTO t (a) VALUES (\"ttl\"(1))"},
      {"INSERT INTO t (a) VALUES (token(1))"},
      {"INSERT INTO t (a) VALUES (timestamp(1))"},
  });
}

TEST(Accepted, Inserts) {
  expect_accepted({
      {"INSERT INTO ks.t (a, \"B\", \"\") VALUES (1, ?, :x)"},
      {"INSERT INTO t(a)VALUES(1)IF NOT EXISTS USING TTL 5 AND TIMESTAMP ?",
       "INSERT INTO t (a) VALUES (1) IF NOT EXISTS USING TIMESTAMP ? AND TTL 5"},
      {"INSERT INTO t (a) VALUES (1) USING OPERATION ?"},
      {"INSERT INTO t (a, operation) VALUES (1, 2) USING TTL :ttl AND operation 'id'",
       "INSERT INTO t (a, operation) VALUES (1, 2) USING TTL :ttl AND OPERATION 'id'"},
      {"INSERT INTO t (a) VALUES (1) USING OPERATION 01234567-89ab-cdef-0123-456789abcdef"},
      {"INSERT INTO t (a) VALUES (1) USING OPERATION 0xff"},
      {"INSERT INTO t (a) VALUES (1) USING TTL 1 AND TTL 2",
       "INSERT INTO t (a) VALUES (1) USING TTL 2"},
      {"INSERT INTO t (a, b) VALUES (1)"},
      {"INSERT INTO t JSON '{\"a\": 1}'"},
      {"INSERT INTO t JSON ? DEFAULT UNSET IF NOT EXISTS USING TTL 1"},
      {"INSERT INTO json JSON :x DEFAULT NULL", "INSERT INTO json JSON :x"},
  });
}

TEST(Accepted, Updates) {
  expect_accepted({
      {"UPDATE t SET a = 1 WHERE k = 2"},
      {"UPDATE ks.t USING TIMESTAMP 1 AND TTL 2 SET a = ?, b = 'x' WHERE k = 2 AND c IN (1, 2)"},
      {"UPDATE t SET c = c + 1, d = d - 1 WHERE k = 1"},
      {"UPDATE t SET c += 1, d -= ? WHERE k = 1", "UPDATE t SET c = c + 1, d = d - ? WHERE k = 1"},
      {"UPDATE t SET c = c -3 WHERE k = 1", "UPDATE t SET c = c + -3 WHERE k = 1"},
      {"UPDATE t SET l = [1] + l WHERE k = 1"},
      {"UPDATE t SET l = 1 + 2 + l WHERE k = 1"},
      {"UPDATE t SET l = 1 + f(l()) WHERE k = 1"},
      {"UPDATE t SET l = 1 + ks.f(2) + l WHERE k = 1"},
      {"UPDATE t SET l = cast(1 AS int) WHERE k = 1"},
      {"UPDATE t SET l = 1 + cast(1 AS int) + l WHERE k = 1"},
      {"UPDATE t SET cast = cast + 1 WHERE k = 1"},
      {"UPDATE t SET \"\" = \"\" + 1 WHERE k = 1"},
      {"UPDATE t SET m['k'] = 1, l[0] = ?, u.f = 2 WHERE k = 1"},
      {"UPDATE t SET m['k'] = 1, m['l'] = 2, u.f = 1, u.g = 2, s = s + {1}, s = s - {2} WHERE k = "
       "1"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF EXISTS"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF exists = 1 AND exists IN (1)"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF a = 1 AND b != 2 AND c IN (1, 2) AND d IN ?"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF l[0] >= 1 AND u.f < 2 AND m['k'] IN (1) AND u.g IN ?"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF s CONTAINS 1 AND m CONTAINS KEY 'x'"},
      {"UPDATE t USING OPERATION ? SET a = 1 WHERE k = 1"},
  });
}

TEST(Accepted, Deletes) {
  expect_accepted({
      {"DELETE FROM t WHERE k = 1"},
      {"DELETE a, m['k'], u.f, l[?], \"\" FROM ks.t USING TIMESTAMP 5 WHERE k = 1 AND c > 2"},
      {"DELETE FROM t USING TIMESTAMP ? AND OPERATION ? WHERE k = 1 IF EXISTS"},
      {"DELETE a FROM t WHERE k = 1 IF a = 1"},
      {"DELETE FROM t WHERE k = 1 IF exists = 1"},
      {"DELETE FROM t WHERE k = 1 IF exists CONTAINS 1"},
      {"DELETE FROM t WHERE k = 1 IF exists[1] > 1"},
      {"DELETE FROM t WHERE k = 1 IF exists.f IN (1)"},
      {"delete from t where (a, b) >= (1, 2)", "DELETE FROM t WHERE (a, b) >= (1, 2)"},
  });
}

TEST(Accepted, Batches) {
  expect_accepted({
      {"BEGIN BATCH APPLY BATCH"},
      {"BEGIN UNLOGGED BATCH INSERT INTO t (a) VALUES (1); APPLY BATCH"},
      {"BEGIN COUNTER BATCH UPDATE t SET c += 1 WHERE k = 1 APPLY BATCH;",
       "BEGIN COUNTER BATCH UPDATE t SET c = c + 1 WHERE k = 1; APPLY BATCH"},
      {"BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a) VALUES (?) DELETE FROM t WHERE k = ?; "
       "UPDATE t SET a = :x WHERE k = 1; INSERT INTO t JSON ? APPLY BATCH",
       "BEGIN BATCH USING TIMESTAMP ? INSERT INTO t (a) VALUES (?); DELETE FROM t WHERE k = ?; "
       "UPDATE t SET a = :x WHERE k = 1; INSERT INTO t JSON ?; APPLY BATCH"},
  });
}

TEST(Accepted, Keyspaces) {
  expect_accepted({
      {"CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 3} "
       "AND durable_writes = true"},
      {"CREATE SCHEMA IF NOT EXISTS \"Ks\" WITH REPLICATION = {}",
       "CREATE KEYSPACE IF NOT EXISTS \"Ks\" WITH replication = {}"},
      {"ALTER KEYSPACE IF EXISTS ks WITH durable_writes = FALSE",
       "ALTER KEYSPACE IF EXISTS ks WITH durable_writes = false"},
      {"DROP KEYSPACE ks"},
      {"DROP SCHEMA IF EXISTS ks", "DROP KEYSPACE IF EXISTS ks"},
  });
}

TEST(Accepted, Tables) {
  expect_accepted({
      {"CREATE TABLE t (a int PRIMARY KEY)", "CREATE TABLE t (a int, PRIMARY KEY (a))"},
      {"CREATE COLUMNFAMILY IF NOT EXISTS ks.t (a int, b text STATIC, PRIMARY KEY ((a), b))",
       "CREATE TABLE IF NOT EXISTS ks.t (a int, b text STATIC, PRIMARY KEY (a, b))"},
      {"CREATE TABLE t (a int, b varchar, c timeuuid, PRIMARY KEY ((a, b), c)) WITH CLUSTERING "
       "ORDER BY (c DESC) AND COMPACT STORAGE AND gc_grace_seconds = 0 AND comment = 'x' AND "
       "compaction = {'class': 'LCS', 'x': 1}"},
      {"CREATE TABLE t (a int,, PRIMARY KEY (a),)", "CREATE TABLE t (a int, PRIMARY KEY (a))"},
      {"CREATE TABLE t (a list<int>, b set<text>, c map<int, frozen<list<text>>>, d tuple<int, "
       "text>, e frozen<u>, f ks.u, g 'org.Custom', h frozen<tuple<int>>)"},
      {"CREATE TABLE t (a frozen<frozen<list<int>>>)", "CREATE TABLE t (a frozen<list<int>>)"},
      {"CREATE TABLE t (a list, b frozen)", "CREATE TABLE t (a \"list\", b \"frozen\")"},
      {"CREATE TABLE t (a int.b, c \"int\")", "CREATE TABLE t (a int.b, c \"int\")"},
      {"CREATE TABLE t (a int PRIMARY KEY, b int PRIMARY KEY)",
       "CREATE TABLE t (a int, b int, PRIMARY KEY (a), PRIMARY KEY (b))"},
      {"CREATE TABLE t (a int) WITH compact = 1 AND clustering = 2 AND caching = all",
       "CREATE TABLE t (a int) WITH compact = 1 AND clustering = 2 AND caching = 'all'"},
      {"CREATE TABLE t (PRIMARY KEY (a))"},
      {"ALTER TABLE t ADD a int", "ALTER TABLE t ADD (a int)"},
      {"ALTER TABLE IF EXISTS t ADD IF NOT EXISTS (a int STATIC, b text)"},
      {"ALTER TABLE t DROP a USING TIMESTAMP 5", "ALTER TABLE t DROP (a) USING TIMESTAMP 5"},
      {"ALTER TABLE t DROP IF EXISTS (a, b)"},
      {"ALTER TABLE t DROP compact", "ALTER TABLE t DROP (compact)"},
      {"ALTER TABLE t DROP COMPACT STORAGE"},
      {"ALTER TABLE t RENAME IF EXISTS a TO b AND c TO d"},
      {"ALTER TABLE t ALTER a TYPE text"},
      {"ALTER TABLE t WITH comment = 'x' AND default_time_to_live = 10"},
      {"DROP TABLE IF EXISTS ks.t"},
      {"DROP COLUMNFAMILY t", "DROP TABLE t"},
      {"TRUNCATE t"},
      {"TRUNCATE TABLE ks.t", "TRUNCATE ks.t"},
      {"TRUNCATE COLUMNFAMILY t", "TRUNCATE t"},
  });
}

TEST(Accepted, TypesAndIndexes) {
  expect_accepted({
      {"CREATE TYPE IF NOT EXISTS ks.u (a int, b frozen<v>)"},
      {"CREATE TYPE u (a int,, b int)", "CREATE TYPE u (a int, b int)"},
      {"CREATE TYPE key (a int,)", "CREATE TYPE \"key\" (a int)"},
      {"CREATE TYPE \"byte\" (a int)"},
      {"ALTER TYPE IF EXISTS u ADD IF NOT EXISTS a int"},
      {"ALTER TYPE u RENAME IF EXISTS a TO b AND c TO d"},
      {"ALTER TYPE u ALTER a TYPE text"},
      {"DROP TYPE IF EXISTS ks.u"},
      {"CREATE INDEX ON t (a)"},
      {"CREATE INDEX IF NOT EXISTS i ON ks.t (keys(m))"},
      {"CREATE INDEX i ON t (values(a), entries(b), full(c), keys, values, \"\")"},
      {"CREATE CUSTOM INDEX i ON t (a) USING 'org.Sasi' WITH options = {'mode': 'CONTAINS'}"},
      {"CREATE CUSTOM INDEX i ON t () USING 'x'"},
      {"DROP INDEX IF EXISTS ks.i"},
  });
}

TEST(Accepted, WhatWeRefuseLater) {
  expect_accepted({
      {"CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT * FROM t WHERE a IS NOT NULL PRIMARY "
       "KEY "
       "((a, b), c) WITH CLUSTERING ORDER BY (c ASC) AND comment = 'x'"},
      {"CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t PRIMARY KEY (a)"},
      {"ALTER MATERIALIZED VIEW IF EXISTS v WITH comment = 'x'"},
      {"DROP MATERIALIZED VIEW IF EXISTS v"},
      {"CREATE OR REPLACE FUNCTION ks.f (a int, b text) CALLED ON NULL INPUT RETURNS int LANGUAGE "
       "Java AS $$ return 1; $$",
       "CREATE OR REPLACE FUNCTION ks.f (a int, b text) CALLED ON NULL INPUT RETURNS int LANGUAGE "
       "java AS ' return 1; '"},
      {"CREATE FUNCTION IF NOT EXISTS f () RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS "
       "''"},
      {"DROP FUNCTION IF EXISTS f (int, list<text>)"},
      {"DROP FUNCTION ks.f"},
      {"CREATE OR REPLACE AGGREGATE ks.g (int) SFUNC f STYPE tuple<int, int> FINALFUNC h INITCOND "
       "(0, 0)"},
      {"CREATE AGGREGATE IF NOT EXISTS g () SFUNC f STYPE int"},
      {"DROP AGGREGATE IF EXISTS g ()"},
      {"DROP AGGREGATE g"},
      {"CREATE MATERIALIZED VIEW v AS SELECT * FROM t PRIMARY KEY (a) WITH clustering = 1 AND "
       "compact = 2"},
      {"CREATE TRIGGER IF NOT EXISTS x ON ks.t USING 'org.X'"},
      {"DROP TRIGGER IF EXISTS x ON t"},
  });
}

TEST(Accepted, Roles) {
  expect_accepted({
      {"CREATE ROLE r"},
      {"CREATE ROLE IF NOT EXISTS 'Bob' WITH PASSWORD = 'x' AND SUPERUSER = TRUE AND login = false "
       "AND OPTIONS = {'a': 1} AND ACCESS TO DATACENTERS {'dc1', 'dc2'}",
       "CREATE ROLE IF NOT EXISTS \"Bob\" WITH PASSWORD = 'x' AND SUPERUSER = true AND LOGIN = "
       "false AND OPTIONS = {'a': 1} AND ACCESS TO DATACENTERS {'dc1', 'dc2'}"},
      {"ALTER ROLE IF EXISTS \"R\" WITH HASHED PASSWORD = '$2a$' AND ACCESS TO ALL DATACENTERS"},
      {"ALTER ROLE '' WITH LOGIN = true"},
      {"DROP ROLE IF EXISTS r"},
      {"CREATE USER IF NOT EXISTS Bob WITH PASSWORD 'x' SUPERUSER",
       "CREATE ROLE IF NOT EXISTS \"Bob\" WITH PASSWORD = 'x' AND SUPERUSER = true AND LOGIN = "
       "true"},
      {"CREATE USER 'bob' NOSUPERUSER", "CREATE ROLE bob WITH SUPERUSER = false AND LOGIN = true"},
      {"CREATE USER bob WITH HASHED PASSWORD 'h'",
       "CREATE ROLE bob WITH HASHED PASSWORD = 'h' AND SUPERUSER = false AND LOGIN = true"},
      {"ALTER USER IF EXISTS bob WITH PASSWORD 'y'",
       "ALTER ROLE IF EXISTS bob WITH PASSWORD = 'y'"},
      {"ALTER USER bob NOSUPERUSER", "ALTER ROLE bob WITH SUPERUSER = false"},
      {"DROP USER IF EXISTS bob", "DROP ROLE IF EXISTS bob"},
      {"LIST USERS"},
      {"LIST ROLES OF bob NORECURSIVE"},
      {"LIST ROLES"},
      {"GRANT a TO b"},
      {"GRANT all TO all"},
      {"REVOKE a FROM 'B'", "REVOKE a FROM \"B\""},
      {"REVOKE all FROM b"},
  });
}

TEST(Accepted, Permissions) {
  expect_accepted({
      {"GRANT ALL ON ALL KEYSPACES TO r"},
      {"GRANT ALL PERMISSIONS ON KEYSPACE ks TO r", "GRANT ALL ON KEYSPACE ks TO r"},
      {"GRANT SELECT PERMISSION, MODIFY, SELECT ON ks.t TO r",
       "GRANT SELECT, MODIFY ON TABLE ks.t TO r"},
      {"GRANT CREATE ON ALL TABLES IN KEYSPACE ks TO r"},
      {"GRANT CREATE ON ALL COLUMNFAMILIES IN KEYSPACE ks TO r",
       "GRANT CREATE ON ALL TABLES IN KEYSPACE ks TO r"},
      {"GRANT ALTER ON TABLE t TO r"},
      {"GRANT ALTER ON function TO r", "GRANT ALTER ON TABLE function TO r"},
      {"GRANT DROP ON role TO r", "GRANT DROP ON TABLE role TO r"},
      {"GRANT DROP ON all TO r", "GRANT DROP ON TABLE all TO r"},
      {"GRANT AUTHORIZE ON ALL ROLES TO r"},
      {"GRANT DESCRIBE ON ROLE 'X' TO r", "GRANT DESCRIBE ON ROLE \"X\" TO r"},
      {"GRANT EXECUTE ON ALL FUNCTIONS TO r"},
      {"GRANT EXECUTE ON ALL FUNCTIONS IN KEYSPACE ks TO r"},
      {"REVOKE EXECUTE ON FUNCTION ks.f(int, text) FROM r"},
      {"REVOKE EXECUTE ON FUNCTION json.f() FROM r"},
      {"REVOKE SELECT ON ALL MBEANS FROM r"},
      {"REVOKE SELECT ON MBEAN 'a:b=c' FROM r"},
      {"REVOKE SELECT ON MBEANS 'a:*' FROM r"},
      {"REVOKE SELECT ON mbean FROM r", "REVOKE SELECT ON TABLE mbean FROM r"},
      {"LIST ALL"},
      {"LIST ALL PERMISSIONS OF r", "LIST ALL OF r"},
      {"LIST SELECT, DROP ON ks.t OF r NORECURSIVE",
       "LIST DROP, SELECT ON TABLE ks.t OF r NORECURSIVE"},
  });
}

TEST(Accepted, Describe) {
  expect_accepted({
      {"DESCRIBE CLUSTER"},
      {"DESC KEYSPACES", "DESCRIBE KEYSPACES"},
      {"DESCRIBE SCHEMA"},
      {"DESCRIBE FULL SCHEMA WITH INTERNALS"},
      {"DESCRIBE KEYSPACE"},
      {"DESCRIBE KEYSPACE ks WITH INTERNALS"},
      {"DESCRIBE ONLY KEYSPACE ks"},
      {"DESCRIBE only", "DESCRIBE \"only\""},
      {"DESCRIBE TABLES"},
      {"DESCRIBE COLUMNFAMILIES", "DESCRIBE TABLES"},
      {"DESCRIBE TABLE ks.t"},
      {"DESCRIBE COLUMNFAMILY t", "DESCRIBE TABLE t"},
      {"DESCRIBE INDEX ks.i"},
      {"DESCRIBE MATERIALIZED VIEW v"},
      {"DESCRIBE TYPES"},
      {"DESCRIBE TYPE ks.u"},
      {"DESCRIBE TYPE key", "DESCRIBE TYPE \"key\""},
      {"DESCRIBE type", "DESCRIBE \"type\""},
      {"DESCRIBE FUNCTIONS"},
      {"DESCRIBE FUNCTION ks.f"},
      {"DESCRIBE function WITH INTERNALS", "DESCRIBE \"function\" WITH INTERNALS"},
      {"DESCRIBE AGGREGATES"},
      {"DESCRIBE AGGREGATE g"},
      {"DESCRIBE FUNCTION token"},
      {"DESCRIBE aggregate", "DESCRIBE \"aggregate\""},
      {"DESC \"Ks\".t", "DESCRIBE \"Ks\".t"},
  });
}

TEST(Accepted, EveryUnreservedKeywordAsAColumn) {
  for (auto keyword = Keyword::k_add; keyword <= Keyword::k_writetime;
       keyword = static_cast<Keyword>(static_cast<int>(keyword) + 1)) {
    const std::string word(spelling_of(keyword));
    const bool reserved = class_of(keyword) == KeywordClass::reserved;
    const std::string bare = "UPDATE t SET a = 1 WHERE " + word + " = 1";
    EXPECT_EQ(parse(bare).has_value(), !reserved) << bare;
    EXPECT_TRUE(parse("UPDATE t SET a = 1 WHERE \"" + word + "\" = 1").has_value()) << word;
    EXPECT_EQ(to_identifier(word), reserved ? "\"" + word + "\"" : word);
  }
}

TEST(Accepted, NamesAreQuotedWhereTheyMustBe) {
  EXPECT_EQ(to_identifier("a_1"), "a_1");
  EXPECT_EQ(to_identifier(""), "\"\"");
  EXPECT_EQ(to_identifier("A"), "\"A\"");
  EXPECT_EQ(to_identifier("a\"b"), "\"a\"\"b\"");
  EXPECT_EQ(to_identifier("1a"), "\"1a\"");
  EXPECT_EQ(to_identifier("_a"), "\"_a\"");
  EXPECT_EQ(to_identifier("true"), "\"true\"");
  EXPECT_EQ(to_identifier("nan"), "\"nan\"");
  EXPECT_EQ(to_identifier("a "), "\"a \"");
  EXPECT_EQ(to_identifier("a--"), "\"a--\"");
}

}  // namespace
}  // namespace helenus::cql::parser
