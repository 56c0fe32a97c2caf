// Texts that are no CQL, each with what the client is told.
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "cql/parser/parser.h"

namespace helenus::cql::parser {
namespace {

struct Refused {
  std::string_view text;
  std::string_view error;
};

// "line 1:4 no viable alternative at input 'x' (USE [x])" without what is in parentheses.
std::string_view without_snippet(std::string_view error) {
  return error.starts_with("line ") ? error.substr(0, error.find(" (")) : error;
}

template <std::size_t Size>
void expect_refused(const Refused (&cases)[Size], bool with_snippet = false) {
  for (const Refused& expected : cases) {
    const auto statement = parse(expected.text);
    ASSERT_FALSE(statement.has_value()) << expected.text;
    EXPECT_EQ(statement.error().code(), base::Errc::invalid_argument);
    const std::string_view error = statement.error().context();
    EXPECT_EQ(with_snippet ? error : without_snippet(error), expected.error) << expected.text;
  }
}

TEST(Refused, NoStatement) {
  expect_refused(
      {
          {"", "line 0:-1 no viable alternative at input '<EOF>'"},
          {" \n-- nothing", "line 0:-1 no viable alternative at input '<EOF>'"},
          {";", "line 1:0 no viable alternative at input ';' ([;])"},
          {"foo bar", "line 1:0 no viable alternative at input 'foo' ([foo]...)"},
          {"\"select\" *", "line 1:0 no viable alternative at input 'select' ([\"select\"]...)"},
      },
      true);
}

TEST(Refused, SomethingBehindTheStatement) {
  expect_refused(
      {
          {"USE a b", "line 1:6 mismatched input 'b' expecting EOF (USE a [b])"},
          {"USE a; USE b", "line 1:7 mismatched input 'USE' expecting EOF (USE a; [USE]...)"},
          {"SELECT * FROM t WHERE a = 1 OR b = 2",
           "line 1:28 mismatched input 'OR' expecting EOF (...t WHERE a = 1 [OR]...)"},
      },
      true);
}

TEST(Refused, TheErrorPointsIntoTheText) {
  expect_refused(
      {
          {"SELECT FROM t", "line 1:7 no viable alternative at input 'FROM' (SELECT [FROM]...)"},
          {"SELECT a,\n  b\nFORM t",
           "line 3:0 mismatched input 'FORM' expecting K_FROM (SELECT a,  b[FORM]...)"},
          {"SELECT 'a\nb' 'c d' FROM t",
           "line 2:3 mismatched input 'c d' expecting K_FROM (SELECT 'ab' ['c d']...)"},
          {"SELECT * FROM one_two_three.four_five WHERE a ==",
           "line 1:47 no viable alternative at input '=' (... one_two_three.four_five WHERE a "
           "=[=])"},
          {"SELECT * FROM", "line 0:-1 no viable alternative at input '<EOF>'"},
          {"SELECT *", "line 0:-1 mismatched input '<EOF>' expecting K_FROM"},
      },
      true);
}

TEST(Refused, WhatIsNoToken) {
  expect_refused(
      {
          {"SELECT # FROM t", "line 1:7 no viable alternative at character '#'"},
          {"SELECT * FROM t WHERE a = 'x", "line 1:26 mismatched character '<EOF>' expecting '''"},
          {"SELECT \"a FROM t", "line 1:7 mismatched character '<EOF>' expecting '\"'"},
          {"SELECT $$a FROM t", "line 1:7 mismatched character '<EOF>' expecting '$'"},
          {"USE a /* b", "line 1:6 mismatched character '<EOF>' expecting '*'"},
          {"USE \xff", "line 1:4 no viable alternative at character '?'"},
          {"USE ä", "line 1:4 no viable alternative at character 'ä'"},
          {std::string_view("USE \0", 5), "line 1:4 no viable alternative at character '?'"},
      },
      true);
}

TEST(Refused, Names) {
  expect_refused({
      {"USE select", "line 1:4 no viable alternative at input 'select'"},
      {"USE 'ks'", "line 1:4 no viable alternative at input 'ks'"},
      {"USE \"\"", "line 1:4 no viable alternative at input '\"\"'"},
      {"USE ?", "Bind variables cannot be used for keyspace names"},
      {"SELECT * FROM ?", "Bind variables cannot be used for table names"},
      {"SELECT * FROM ks.?", "Bind variables cannot be used for table names"},
      {"DROP INDEX ?", "Bind variables cannot be used for index names"},
      {"DESCRIBE KEYSPACE ?", "Bind variables cannot be used for keyspace names"},
      {"GRANT ALL ON ROLE ? TO r", "Bind variables cannot be used for role names"},
      {"DROP ROLE ?", "Bind variables cannot be used for role names"},
      {"CREATE INDEX ? ON t (a)", "Bind variables cannot be used for index names"},
      {"SELECT * FROM t WHERE expr(?, 1)", "Bind variables cannot be used for index names"},
      {"SELECT * FROM a.b.c", "line 1:17 mismatched input '.' expecting EOF"},
      {"CREATE TYPE byte (a int)", "Invalid (reserved) user type name byte"},
      {"CREATE TYPE int (a int)", "line 1:12 no viable alternative at input 'int'"},
      {"CREATE TYPE ttl (a int)", "line 1:12 no viable alternative at input 'ttl'"},
      {"CREATE USER \"Bob\"",
       "Quoted strings are are not supported for user names and USER is deprecated, please use "
       "ROLE"},
      {"CREATE USER 1", "line 1:12 no viable alternative at input '1'"},
      {"CREATE USER user", "line 1:12 no viable alternative at input 'user'"},
      {"SELECT a AS 'b' FROM t", "line 1:12 no viable alternative at input 'b'"},
      {"SELECT ttl(a), json(a) FROM t", "line 1:19 mismatched input '(' expecting K_FROM"},
      {"CREATE AGGREGATE g () SFUNC ttl STYPE int",
       "line 1:28 no viable alternative at input 'ttl'"},
  });
}

TEST(Refused, Types) {
  expect_refused({
      {"CREATE TABLE t (a frozen<int>)",
       "frozen<> is only allowed on collections, tuples, and user-defined types (got int)"},
      {"CREATE TABLE t (a frozen<'x'>)",
       "frozen<> is only allowed on collections, tuples, and user-defined types (got 'x')"},
      {"CREATE TABLE t (a int<int>)", "line 1:21 mismatched input '<' expecting ')'"},
      {"CREATE TABLE t (a foo<int>)", "line 1:18 no viable alternative at input 'foo'"},
      {"CREATE TABLE t (a list<int, int>)", "line 1:26 mismatched input ',' expecting '>'"},
      {"CREATE TABLE t (a map<int>)", "line 1:25 mismatched input '>' expecting ','"},
      {"CREATE TABLE t (a tuple<>)", "line 1:24 no viable alternative at input '>'"},
      {"CREATE TABLE t (a set)", "line 1:18 no viable alternative at input 'set'"},
      {"CREATE TABLE t (a frozen<list<int>)", "line 1:34 mismatched input ')' expecting '>'"},
      {"SELECT cast(a AS list<int>) FROM t", "line 1:17 no viable alternative at input 'list'"},
  });
}

TEST(Refused, Terms) {
  expect_refused({
      {"INSERT INTO t (a) VALUES (b)", "line 1:26 no viable alternative at input 'b'"},
      {"INSERT INTO t (a) VALUES (token.f(1))", "line 1:26 no viable alternative at input 'token'"},
      {"INSERT INTO t (a) VALUES ((a<b) 1)", "line 1:27 no viable alternative at input 'a'"},
      {"SELECT (a<b) 1 FROM t", "line 1:9 mismatched input '<' expecting ')'"},
      {"SELECT (list<a) 1 FROM t", "line 1:12 mismatched input '<' expecting ')'"},
      {"SELECT (a>b) 1 FROM t", "line 1:9 mismatched input '>' expecting ')'"},
      {"SELECT () 1 FROM t", "line 1:8 no viable alternative at input ')'"},
      {"SELECT cast(a AS foo) FROM t", "line 1:17 no viable alternative at input 'foo'"},
      {"INSERT INTO t (a) VALUES (count(*))", "line 1:32 no viable alternative at input '*'"},
      {"INSERT INTO t (a) VALUES ([1, 2)", "line 1:31 mismatched input ')' expecting ']'"},
      {"INSERT INTO t (a) VALUES ([1,])", "line 1:29 no viable alternative at input ']'"},
      {"INSERT INTO t (a) VALUES ({1, 2: 3})", "line 1:31 mismatched input ':' expecting '}'"},
      {"INSERT INTO t (a) VALUES ({1: 2, 3})", "line 1:34 mismatched input '}' expecting ':'"},
      {"INSERT INTO t (a) VALUES ({a: 1, 'b': 2})", "line 1:33 no viable alternative at input 'b'"},
      {"INSERT INTO t (a) VALUES ({a: 1)", "line 1:31 mismatched input ')' expecting '}'"},
      {"INSERT INTO t (a) VALUES (())", "line 1:27 no viable alternative at input ')'"},
      {"INSERT INTO t (a) VALUES (f(1)", "line 0:-1 mismatched input '<EOF>' expecting ')'"},
      {"INSERT INTO t (a) VALUES (1 +)", "line 1:29 no viable alternative at input ')'"},
      {"INSERT INTO t (a) VALUES (1-2)", "line 1:27 mismatched input '-2' expecting ')'"},
      {"INSERT INTO t (a) VALUES (- - 1)", "line 1:28 no viable alternative at input '-'"},
      {"INSERT INTO t (a) VALUES (cast(1 + 2 AS int))",
       "line 1:33 mismatched input '+' expecting K_AS"},
      {"INSERT INTO t (a) VALUES (:)", "line 1:27 no viable alternative at input ')'"},
      {"INSERT INTO t (a) VALUES (:'x')", "line 1:27 no viable alternative at input 'x'"},
      {"SELECT m[] FROM t", "line 1:9 no viable alternative at input ']'"},
      {"SELECT m[..] FROM t", "line 1:11 no viable alternative at input ']'"},
      {"SELECT m[1 FROM t", "line 1:11 mismatched input 'FROM' expecting ']'"},
      {"SELECT a. FROM t", "line 1:10 no viable alternative at input 'FROM'"},
      {"SELECT writetime(1) FROM t", "line 1:17 no viable alternative at input '1'"},
      {"SELECT ttl(a, b) FROM t", "line 1:12 mismatched input ',' expecting ')'"},
      {"SELECT count(* FROM t", "line 1:15 mismatched input 'FROM' expecting ')'"},
      {"SELECT a + FROM t", "line 1:11 no viable alternative at input 'FROM'"},
      {"SELECT *, a FROM t", "line 1:8 mismatched input ',' expecting K_FROM"},
  });
}

TEST(Refused, Selects) {
  expect_refused({
      {"SELECT * FROM t WHERE", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"SELECT * FROM t WHERE a", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"SELECT * FROM t WHERE f(1) = 2", "line 1:23 no viable alternative at input '('"},
      {"SELECT * FROM t WHERE a IS NULL", "line 1:27 mismatched input 'NULL' expecting K_NOT"},
      {"SELECT * FROM t WHERE a IS NOT 1", "line 1:31 mismatched input '1' expecting K_NULL"},
      {"SELECT * FROM t WHERE a IN 1", "line 1:27 no viable alternative at input '1'"},
      {"SELECT * FROM t WHERE a NOT IN (1)", "line 1:24 no viable alternative at input 'NOT'"},
      {"SELECT * FROM t WHERE a[1] IN (1)", "line 1:27 no viable alternative at input 'IN'"},
      {"SELECT * FROM t WHERE a[1 = 2", "line 1:26 mismatched input '=' expecting ']'"},
      {"SELECT * FROM t WHERE token(a) IN (1)", "line 1:31 no viable alternative at input 'IN'"},
      {"SELECT * FROM t WHERE token a > 1", "line 1:28 mismatched input 'a' expecting '('"},
      {"SELECT * FROM t WHERE (a, b) = 1", "line 1:31 no viable alternative at input '1'"},
      {"SELECT * FROM t WHERE (a, b) IN ((1, 2), ?)",
       "line 1:41 mismatched input '?' expecting '('"},
      {"SELECT * FROM t WHERE (a, b) IN (?, (1, 2))",
       "line 1:36 no viable alternative at input '('"},
      {"SELECT * FROM t WHERE (a = 1", "line 0:-1 mismatched input '<EOF>' expecting ')'"},
      {"SELECT * FROM t WHERE expr(i 1)", "line 1:29 mismatched input '1' expecting ','"},
      {"SELECT * FROM t WHERE a = 1 AND", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"SELECT * FROM t ORDER a", "line 1:22 mismatched input 'a' expecting K_BY"},
      {"SELECT * FROM t GROUP a", "line 1:22 mismatched input 'a' expecting K_BY"},
      {"SELECT * FROM t LIMIT a", "line 1:22 no viable alternative at input 'a'"},
      {"SELECT * FROM t LIMIT 1.5", "line 1:22 no viable alternative at input '1.5'"},
      {"SELECT * FROM t PER PARTITION 1", "line 1:30 mismatched input '1' expecting K_LIMIT"},
      {"SELECT * FROM t LIMIT 1 PER PARTITION LIMIT 1",
       "line 1:24 mismatched input 'PER' expecting EOF"},
      {"SELECT * FROM t ALLOW", "line 0:-1 mismatched input '<EOF>' expecting K_FILTERING"},
  });
}

TEST(Refused, Modifications) {
  expect_refused({
      {"INSERT t (a) VALUES (1)", "line 1:7 mismatched input 't' expecting K_INTO"},
      {"INSERT INTO t VALUES (1)", "line 1:14 no viable alternative at input 'VALUES'"},
      {"INSERT INTO t () VALUES (1)", "line 1:15 no viable alternative at input ')'"},
      {"INSERT INTO t (a) (1)", "line 1:18 mismatched input '(' expecting K_VALUES"},
      {"INSERT INTO t (a) VALUES (1) IF EXISTS",
       "line 1:32 mismatched input 'EXISTS' expecting K_NOT"},
      {"INSERT INTO t (a) VALUES (1) USING TTL 1 IF NOT EXISTS",
       "line 1:41 mismatched input 'IF' expecting EOF"},
      {"INSERT INTO t (a) VALUES (1) USING TTL 'x'",
       "line 1:39 no viable alternative at input 'x'"},
      {"INSERT INTO t (a) VALUES (1) USING OPERATION 1",
       "line 1:45 no viable alternative at input '1'"},
      {"INSERT INTO t (a) VALUES (1) USING 1", "line 1:35 no viable alternative at input '1'"},
      {"INSERT INTO t (a) VALUES (1) USING FOO 1",
       "line 1:35 no viable alternative at input 'FOO'"},
      {"INSERT INTO t JSON 1", "line 1:19 no viable alternative at input '1'"},
      {"INSERT INTO t JSON '{}' DEFAULT 1", "line 1:32 mismatched input '1' expecting K_NULL"},
      {"UPDATE t a = 1 WHERE k = 1", "line 1:9 mismatched input 'a' expecting K_SET"},
      {"UPDATE t SET a = 1", "line 0:-1 mismatched input '<EOF>' expecting K_WHERE"},
      {"UPDATE t SET a WHERE k = 1", "line 1:15 no viable alternative at input 'WHERE'"},
      {"UPDATE t SET a = b WHERE k = 1", "line 1:19 no viable alternative at input 'WHERE'"},
      {"UPDATE t SET a = b + 1 WHERE k = 1",
       "Only expressions of the form X = X +<value> are supported."},
      {"UPDATE t SET a = b - 1 WHERE k = 1",
       "Only expressions of the form X = X -<value> are supported."},
      {"UPDATE t SET a = b -1 WHERE k = 1",
       "Only expressions of the form X = X - <value> are supported."},
      {"UPDATE t SET a = b 1 WHERE k = 1",
       "Only expressions of the form X = X + <value> are supported."},
      {"UPDATE t SET a = [1] + b WHERE k = 1",
       "Only expressions of the form X = <value> + X are supported."},
      {"UPDATE t SET a[1] += 1 WHERE k = 1", "line 1:18 mismatched input '+=' expecting '='"},
      {"UPDATE t SET a = 1, a = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET a[1] = 1, a = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET a = 1, a.f = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET a.f = 1, a.f = 2 WHERE k = 1", "Multiple incompatible setting of column a"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF a CONTAINS",
       "line 0:-1 no viable alternative at input '<EOF>'"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF a[1] CONTAINS 1",
       "line 1:39 no viable alternative at input 'CONTAINS'"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF NOT EXISTS",
       "line 1:34 no viable alternative at input 'NOT'"},
      {"DELETE FROM t", "line 0:-1 mismatched input '<EOF>' expecting K_WHERE"},
      {"DELETE * FROM t WHERE k = 1", "line 1:7 no viable alternative at input '*'"},
      {"DELETE FROM t USING TTL 1 WHERE k = 1", "line 1:20 no viable alternative at input 'TTL'"},
      {"BEGIN BATCH SELECT * FROM t APPLY BATCH",
       "line 1:12 mismatched input 'SELECT' expecting K_APPLY"},
      {"BEGIN BATCH DELETE FROM t WHERE k = 1;; APPLY BATCH",
       "line 1:38 mismatched input ';' expecting K_APPLY"},
      {"BEGIN LOGGED BATCH APPLY BATCH", "line 1:6 mismatched input 'LOGGED' expecting K_BATCH"},
      {"BEGIN BATCH APPLY", "line 0:-1 mismatched input '<EOF>' expecting K_BATCH"},
  });
}

TEST(Refused, Schema) {
  expect_refused({
      {"CREATE t", "line 1:7 no viable alternative at input 't'"},
      {"CREATE OR REPLACE TABLE t (a int)", "line 1:18 no viable alternative at input 'TABLE'"},
      {"CREATE OR FUNCTION f", "line 1:10 mismatched input 'FUNCTION' expecting K_REPLACE"},
      {"ALTER INDEX i", "line 1:6 no viable alternative at input 'INDEX'"},
      {"DROP t", "line 1:5 no viable alternative at input 't'"},
      {"CREATE KEYSPACE ks", "line 0:-1 mismatched input '<EOF>' expecting K_WITH"},
      {"CREATE KEYSPACE IF EXISTS ks WITH a = 1",
       "line 1:19 mismatched input 'EXISTS' expecting K_NOT"},
      {"DROP KEYSPACE IF NOT EXISTS ks", "line 1:17 mismatched input 'NOT' expecting K_EXISTS"},
      {"CREATE KEYSPACE ks WITH a", "line 0:-1 mismatched input '<EOF>' expecting '='"},
      {"CREATE KEYSPACE ks WITH a = b", "line 1:28 no viable alternative at input 'b'"},
      {"CREATE KEYSPACE ks WITH a = select", "line 1:28 no viable alternative at input 'select'"},
      {"CREATE KEYSPACE ks WITH a = ?", "line 1:28 no viable alternative at input '?'"},
      {"CREATE KEYSPACE ks WITH a = {'b' = 1}", "line 1:33 mismatched input '=' expecting ':'"},
      {"CREATE KEYSPACE ks WITH a = {'b': 1", "line 0:-1 mismatched input '<EOF>' expecting '}'"},
      {"CREATE KEYSPACE ks WITH a = {?: 1}",
       "Invalid property name: ? (bind variables are not supported in DDL queries)"},
      {"CREATE KEYSPACE ks WITH a = {'b': :c}",
       "Invalid property value: :c for property: 'b' (bind variables are not supported in DDL "
       "queries)"},
      {"CREATE KEYSPACE ks WITH a = {'b': null}", "Invalid property value: null for property: 'b'"},
      {"CREATE KEYSPACE ks WITH a = {[1]: 1}", "Invalid property name: [1]"},
      {"CREATE KEYSPACE ks WITH a = {'b': 1, 'b': 2}", "Multiple definition for property b"},
      {"CREATE KEYSPACE ks WITH a = 1 AND a = 2", "Multiple definition for property 'a'"},
      {"CREATE TABLE t (a int) WITH a = 1 AND a = 2", "Multiple definition for property 'a'"},
      {"CREATE TABLE t ()", "line 1:16 no viable alternative at input ')'"},
      {"CREATE TABLE t (a int PRIMARY)", "line 1:29 mismatched input ')' expecting K_KEY"},
      {"CREATE TABLE t (a int, PRIMARY KEY a)", "line 1:35 mismatched input 'a' expecting '('"},
      {"CREATE TABLE t (PRIMARY KEY ((a, b), c)",
       "line 0:-1 mismatched input '<EOF>' expecting ')'"},
      {"CREATE TABLE t (a int) WITH CLUSTERING ORDER BY (a)",
       "line 1:50 no viable alternative at input ')'"},
      {"CREATE TABLE t (a int) WITH COMPACT", "line 0:-1 mismatched input '<EOF>' expecting '='"},
      {"ALTER TABLE t", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"ALTER TABLE t ALTER a int", "line 1:22 mismatched input 'int' expecting K_TYPE"},
      {"ALTER TABLE t DROP a USING TIMESTAMP ?",
       "line 1:37 mismatched input '?' expecting INTEGER"},
      {"ALTER TABLE t RENAME a b", "line 1:23 mismatched input 'b' expecting K_TO"},
      {"CREATE TYPE u ()", "line 1:15 no viable alternative at input ')'"},
      {"ALTER TYPE u DROP a", "line 1:13 no viable alternative at input 'DROP'"},
      {"CREATE INDEX i (a)", "line 1:15 mismatched input '(' expecting K_ON"},
      {"CREATE CUSTOM INDEX i ON t (a) USING x",
       "line 1:37 mismatched input 'x' expecting STRING_LITERAL"},
      {"CREATE INDEX i ON t (keys(m)", "line 0:-1 mismatched input '<EOF>' expecting ')'"},
      {"CREATE MATERIALIZED VIEW v AS SELECT * FROM t",
       "line 0:-1 mismatched input '<EOF>' expecting K_PRIMARY"},
      {"CREATE MATERIALIZED VIEW v AS SELECT * FROM t PRIMARY KEY (a) WITH COMPACT STORAGE",
       "COMPACT STORAGE tables are not allowed starting with version 4.0"},
      {"CREATE FUNCTION f () RETURNS int LANGUAGE java AS ''",
       "line 1:29 mismatched input 'int' expecting K_NULL"},
      {"CREATE FUNCTION f () LANGUAGE java AS ''",
       "line 1:21 mismatched input 'LANGUAGE' expecting K_CALLED"},
      {"CREATE FUNCTION f () CALLED ON NULL INPUT RETURNS int LANGUAGE 'java' AS ''",
       "line 1:63 mismatched input 'java' expecting IDENT"},
      {"CREATE FUNCTION f () CALLED ON NULL INPUT RETURNS int LANGUAGE json AS ''",
       "line 1:63 mismatched input 'json' expecting IDENT"},
      {"CREATE TRIGGER x ON t", "line 0:-1 mismatched input '<EOF>' expecting K_USING"},
  });
}

TEST(Refused, Roles) {
  expect_refused({
      {"CREATE ROLE r WITH PASSWORD 'x'", "line 1:28 mismatched input 'x' expecting '='"},
      {"CREATE ROLE r WITH PASSWORD = 'x' AND HASHED PASSWORD = 'y'",
       "Options 'password' and 'hashed password' are mutually exclusive"},
      {"CREATE ROLE r WITH HASHED LOGIN = true",
       "line 1:26 mismatched input 'LOGIN' expecting K_PASSWORD"},
      {"CREATE ROLE r WITH LOGIN = 1", "line 1:27 mismatched input '1' expecting BOOLEAN"},
      {"CREATE ROLE r WITH comment = 1", "line 1:19 no viable alternative at input 'comment'"},
      {"CREATE ROLE r WITH OPTIONS = 1", "line 1:29 mismatched input '1' expecting '{'"},
      {"CREATE ROLE r WITH ACCESS FROM ALL CIDRS",
       "line 1:26 mismatched input 'FROM' expecting K_TO"},
      {"CREATE ROLE r WITH ACCESS TO ALL dc",
       "line 1:33 mismatched input 'dc' expecting K_DATACENTERS"},
      {"CREATE ROLE r WITH ACCESS TO DATACENTERS {}",
       "line 1:42 mismatched input '}' expecting STRING_LITERAL"},
      {"CREATE USER bob WITH SUPERUSER",
       "line 1:21 mismatched input 'SUPERUSER' expecting K_PASSWORD"},
      {"GRANT SELECT t TO r", "line 1:13 mismatched input 't' expecting K_ON"},
      {"GRANT SELECT, a ON t TO r", "line 1:14 no viable alternative at input 'a'"},
      {"GRANT ALL ON ALL TABLES TO r", "line 1:24 mismatched input 'TO' expecting K_IN"},
      {"GRANT ALL ON ALL things TO r", "line 1:17 no viable alternative at input 'things'"},
      {"GRANT EXECUTE ON FUNCTION f TO r", "line 1:28 mismatched input 'TO' expecting '('"},
      {"GRANT a ON b", "line 1:8 mismatched input 'ON' expecting K_TO"},
      {"REVOKE a TO b", "line 1:9 mismatched input 'TO' expecting K_FROM"},
      {"LIST THINGS", "line 1:5 no viable alternative at input 'THINGS'"},
  });
}

TEST(Refused, Describe) {
  expect_refused({
      {"DESCRIBE", "line 0:-1 no viable alternative at input '<EOF>'"},
      {"DESCRIBE FULL KEYSPACE", "line 1:14 mismatched input 'KEYSPACE' expecting K_SCHEMA"},
      {"DESCRIBE MATERIALIZED v", "line 1:22 mismatched input 'v' expecting K_VIEW"},
      {"DESCRIBE t WITH x", "line 1:16 mismatched input 'x' expecting K_INTERNALS"},
      {"DESCRIBE 'x'", "line 1:9 no viable alternative at input 'x'"},
  });
}

TEST(Refused, LongTextIsCutInErrors) {
  const std::string long_name(5000, 'x');
  const auto in_token = parse("USE a " + long_name);
  ASSERT_FALSE(in_token.has_value());
  EXPECT_LT(in_token.error().context().size(), 600u);
  EXPECT_TRUE(in_token.error().context().starts_with("line 1:6 mismatched input 'xxx"));
  const auto in_context = parse("USE " + long_name + " b");
  ASSERT_FALSE(in_context.has_value());
  EXPECT_LT(in_context.error().context().size(), 600u);
  const auto in_message = parse("CREATE KEYSPACE k WITH a = {f('" + long_name + "'): 1}");
  ASSERT_FALSE(in_message.has_value());
  EXPECT_LT(in_message.error().context().size(), 1100u);
  EXPECT_TRUE(in_message.error().context().ends_with("..."));
}

TEST(Refused, ErrorsAreReadableWhateverTheTextHolds) {
  const auto error = parse("SELECT 'a\xff\x1b' 'b\x01' FROM t");
  ASSERT_FALSE(error.has_value());
  EXPECT_EQ(error.error().context(),
            "line 1:13 mismatched input 'b?' expecting K_FROM (SELECT 'a?\?' ['b?']...)");
}

}  // namespace
}  // namespace helenus::cql::parser
