// CREATE statements from a schema, in the layout of Cassandra 4.1's DESCRIBE.
//
// Running what these print makes the same schema, but for ids. Options of ours are printed behind
// Cassandra's, and only where they differ from the default, so that a table which does not use them
// prints as it does there.
#pragma once

#include <string>

#include "model/data_type.h"
#include "model/schema.h"

namespace helenus::model {

// CREATE KEYSPACE alone.
std::string describe_keyspace(const Keyspace& keyspace);
// CREATE TABLE.
std::string describe_table(const Table& table);
std::string describe_index(const Table& table, const Index& index);
// The same of a virtual one, which no statement makes: in a comment that says so.
std::string describe_virtual_keyspace(const Keyspace& keyspace);
std::string describe_virtual_table(const Table& table);
// CREATE TYPE. Requires: a user-defined type.
std::string describe_type(const DataType& type);

// Options of a table as Cassandra's map literals print: {'class': 'x', 'n': '1'}.
std::string to_cql_map(const OptionMap& map);

}  // namespace helenus::model
