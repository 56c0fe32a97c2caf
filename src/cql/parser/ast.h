// Syntax trees of CQL: what a statement says, nothing of what it means. Expressions, and the rules
// that hold for all of these trees, are in expression.h.
//
// Below, IF EXISTS and IF NOT EXISTS are flags named after them; a list that the grammar wants
// non-empty is non-empty unless its comment says what none stands for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cql/parser/expression.h"

namespace helenus::cql::parser {

// ------------------------------------------------------------------------------- data statements

struct Selector {
  Expression expression;
  std::optional<Name> alias;

  friend bool operator==(const Selector&, const Selector&) = default;
};

struct Ordering {
  Name column;
  bool descending = false;

  friend bool operator==(const Ordering&, const Ordering&) = default;
};

struct Select {
  bool json = false;
  bool distinct = false;
  std::vector<Selector> selectors;  // none: `*`
  QualifiedName table;
  std::vector<Relation> where;
  std::vector<Expression> group_by;
  std::vector<Ordering> order_by;
  std::optional<Expression> per_partition_limit;  // an integer literal or a marker, as is `limit`
  std::optional<Expression> limit;
  bool allow_filtering = false;

  friend bool operator==(const Select&, const Select&) = default;
};

// Behind USING. Each is a literal or a marker; of one given twice the last counts, as in Cassandra.
struct Attributes {
  std::optional<Expression> timestamp;     // integer literal
  std::optional<Expression> time_to_live;  // integer literal; never of a DELETE
  // Ours: USING OPERATION names the operation, so that a repetition of it is known as such.
  std::optional<Expression> operation;  // string, uuid or blob literal

  friend bool operator==(const Attributes&, const Attributes&) = default;
};

// `columns` and `values` may differ in number: Cassandra tells of that when it plans.
struct Insert {
  QualifiedName table;
  std::vector<Name> columns;
  std::vector<Expression> values;
  bool if_not_exists = false;
  Attributes attributes;

  friend bool operator==(const Insert&, const Insert&) = default;
};

struct InsertJson {
  QualifiedName table;
  Expression json;             // a string literal or a marker
  bool default_unset = false;  // DEFAULT UNSET: columns left out keep what they hold
  bool if_not_exists = false;
  Attributes attributes;

  friend bool operator==(const InsertJson&, const InsertJson&) = default;
};

enum class AssignmentKind : std::uint8_t {
  set,       // c = v, c[k] = v, c.f = v; all others are of whole columns only
  add,       // c = c + v and c += v; c = c -3 is an addition of -3
  subtract,  // c = c - v and c -= v
  prepend,   // c = v + c
};

struct Assignment {
  ColumnTarget target;
  AssignmentKind kind = AssignmentKind::set;
  Expression value;

  friend bool operator==(const Assignment&, const Assignment&) = default;
};

struct Update {
  QualifiedName table;
  Attributes attributes;
  std::vector<Assignment> assignments;
  std::vector<Relation> where;
  bool if_exists = false;             // then there are no conditions
  std::vector<Condition> conditions;  // none: unconditional, unless if_exists

  friend bool operator==(const Update&, const Update&) = default;
};

struct Delete {
  std::vector<ColumnTarget> targets;  // none: whole rows
  QualifiedName table;
  Attributes attributes;
  std::vector<Relation> where;
  bool if_exists = false;
  std::vector<Condition> conditions;

  friend bool operator==(const Delete&, const Delete&) = default;
};

enum class BatchKind : std::uint8_t { logged, unlogged, counter };

struct Batch {
  using Modification = std::variant<Insert, InsertJson, Update, Delete>;
  BatchKind kind = BatchKind::logged;
  Attributes attributes;
  std::vector<Modification> statements;

  friend bool operator==(const Batch&, const Batch&) = default;
};

struct Truncate {
  QualifiedName table;

  friend bool operator==(const Truncate&, const Truncate&) = default;
};

struct Use {
  Name keyspace;

  friend bool operator==(const Use&, const Use&) = default;
};

// ----------------------------------------------------------------------------- schema statements

// `'class': 'SimpleStrategy'`. Keys and values are literals of any kind but null; Cassandra takes
// their text. No key stands twice.
struct PropertyEntry {
  Literal key;
  Literal value;

  friend bool operator==(const PropertyEntry&, const PropertyEntry&) = default;
};

using PropertyMap = std::vector<PropertyEntry>;

// `name = value` behind WITH, in the order of the text; no name stands twice. A bare word as a
// value is a string literal.
struct Property {
  Name name;
  std::variant<Literal, PropertyMap> value;

  friend bool operator==(const Property&, const Property&) = default;
};

using Properties = std::vector<Property>;

struct CreateKeyspace {
  bool if_not_exists = false;
  Name keyspace;
  Properties properties;

  friend bool operator==(const CreateKeyspace&, const CreateKeyspace&) = default;
};

struct AlterKeyspace {
  bool if_exists = false;
  Name keyspace;
  Properties properties;

  friend bool operator==(const AlterKeyspace&, const AlterKeyspace&) = default;
};

struct DropKeyspace {
  bool if_exists = false;
  Name keyspace;

  friend bool operator==(const DropKeyspace&, const DropKeyspace&) = default;
};

struct ColumnDefinition {
  Name name;
  TypeName type;
  bool is_static = false;

  friend bool operator==(const ColumnDefinition&, const ColumnDefinition&) = default;
};

struct PrimaryKey {
  std::vector<Name> partition;
  std::vector<Name> clustering;

  friend bool operator==(const PrimaryKey&, const PrimaryKey&) = default;
};

struct CreateTable {
  bool if_not_exists = false;
  QualifiedName table;
  std::vector<ColumnDefinition> columns;
  // Each PRIMARY KEY of the text, `c int PRIMARY KEY` too. The planner wants exactly one.
  std::vector<PrimaryKey> primary_keys;
  std::vector<Ordering> clustering_order;
  bool compact_storage = false;
  Properties properties;

  friend bool operator==(const CreateTable&, const CreateTable&) = default;
};

struct AddColumns {
  bool if_not_exists = false;
  std::vector<ColumnDefinition> columns;

  friend bool operator==(const AddColumns&, const AddColumns&) = default;
};

struct DropColumns {
  bool if_exists = false;
  std::vector<Name> columns;
  std::optional<Literal> timestamp;  // an integer

  friend bool operator==(const DropColumns&, const DropColumns&) = default;
};

struct Renaming {
  Name from;
  Name to;

  friend bool operator==(const Renaming&, const Renaming&) = default;
};

struct RenameColumns {
  bool if_exists = false;
  std::vector<Renaming> columns;

  friend bool operator==(const RenameColumns&, const RenameColumns&) = default;
};

// Cassandra 4 parses this and then refuses it.
struct AlterColumnType {
  Name column;
  TypeName type;

  friend bool operator==(const AlterColumnType&, const AlterColumnType&) = default;
};

struct DropCompactStorage {
  friend bool operator==(const DropCompactStorage&, const DropCompactStorage&) = default;
};

struct AlterTable {
  using Change = std::variant<AddColumns, DropColumns, RenameColumns, AlterColumnType,
                              DropCompactStorage, Properties>;
  bool if_exists = false;
  QualifiedName table;
  Change change;

  friend bool operator==(const AlterTable&, const AlterTable&) = default;
};

struct DropTable {
  bool if_exists = false;
  QualifiedName table;

  friend bool operator==(const DropTable&, const DropTable&) = default;
};

struct FieldDefinition {
  Name name;
  TypeName type;

  friend bool operator==(const FieldDefinition&, const FieldDefinition&) = default;
};

struct CreateType {
  bool if_not_exists = false;
  QualifiedName type;
  std::vector<FieldDefinition> fields;

  friend bool operator==(const CreateType&, const CreateType&) = default;
};

struct AddField {
  bool if_not_exists = false;
  FieldDefinition field;

  friend bool operator==(const AddField&, const AddField&) = default;
};

struct RenameFields {
  bool if_exists = false;
  std::vector<Renaming> fields;

  friend bool operator==(const RenameFields&, const RenameFields&) = default;
};

// Cassandra 4 parses this and then refuses it.
struct AlterFieldType {
  FieldDefinition field;

  friend bool operator==(const AlterFieldType&, const AlterFieldType&) = default;
};

struct AlterType {
  bool if_exists = false;
  QualifiedName type;
  std::variant<AddField, RenameFields, AlterFieldType> change;

  friend bool operator==(const AlterType&, const AlterType&) = default;
};

struct DropType {
  bool if_exists = false;
  QualifiedName type;

  friend bool operator==(const DropType&, const DropType&) = default;
};

enum class IndexTargetKind : std::uint8_t { column, values, keys, entries, full };

struct IndexTarget {
  IndexTargetKind kind = IndexTargetKind::column;
  Name column;

  friend bool operator==(const IndexTarget&, const IndexTarget&) = default;
};

struct CreateIndex {
  bool custom = false;
  bool if_not_exists = false;
  std::optional<Name> index;
  QualifiedName table;
  std::vector<IndexTarget> targets;         // may be none, for custom indexes
  std::optional<std::string> custom_class;  // USING 'class'
  Properties properties;

  friend bool operator==(const CreateIndex&, const CreateIndex&) = default;
};

struct DropIndex {
  bool if_exists = false;
  QualifiedName index;

  friend bool operator==(const DropIndex&, const DropIndex&) = default;
};

struct CreateMaterializedView {
  bool if_not_exists = false;
  QualifiedName view;
  std::vector<Selector> selectors;  // none: `*`
  QualifiedName table;
  std::vector<Relation> where;
  PrimaryKey primary_key;
  std::vector<Ordering> clustering_order;
  Properties properties;

  friend bool operator==(const CreateMaterializedView&, const CreateMaterializedView&) = default;
};

struct AlterMaterializedView {
  bool if_exists = false;
  QualifiedName view;
  Properties properties;

  friend bool operator==(const AlterMaterializedView&, const AlterMaterializedView&) = default;
};

struct DropMaterializedView {
  bool if_exists = false;
  QualifiedName view;

  friend bool operator==(const DropMaterializedView&, const DropMaterializedView&) = default;
};

struct CreateFunction {
  bool or_replace = false;
  bool if_not_exists = false;
  QualifiedName function;
  std::vector<FieldDefinition> arguments;
  bool called_on_null_input = false;
  TypeName returns;
  std::string language;  // in lower case
  std::string body;

  friend bool operator==(const CreateFunction&, const CreateFunction&) = default;
};

// With `arguments` absent, the function of that name, if there is just one.
struct DropFunction {
  bool if_exists = false;
  QualifiedName function;
  std::optional<std::vector<TypeName>> arguments;

  friend bool operator==(const DropFunction&, const DropFunction&) = default;
};

struct CreateAggregate {
  bool or_replace = false;
  bool if_not_exists = false;
  QualifiedName aggregate;
  std::vector<TypeName> arguments;
  Name state_function;
  TypeName state_type;
  std::optional<Name> final_function;
  std::optional<Expression> initial_condition;

  friend bool operator==(const CreateAggregate&, const CreateAggregate&) = default;
};

struct DropAggregate {
  bool if_exists = false;
  QualifiedName aggregate;
  std::optional<std::vector<TypeName>> arguments;

  friend bool operator==(const DropAggregate&, const DropAggregate&) = default;
};

struct CreateTrigger {
  bool if_not_exists = false;
  Name trigger;
  QualifiedName table;
  std::string trigger_class;

  friend bool operator==(const CreateTrigger&, const CreateTrigger&) = default;
};

struct DropTrigger {
  bool if_exists = false;
  Name trigger;
  QualifiedName table;

  friend bool operator==(const DropTrigger&, const DropTrigger&) = default;
};

// ------------------------------------------------------------------------------ roles and rights

// ACCESS TO ALL DATACENTERS (no list) or ACCESS TO DATACENTERS {'dc1', ...}.
struct DatacenterAccess {
  std::optional<std::vector<std::string>> datacenters;

  friend bool operator==(const DatacenterAccess&, const DatacenterAccess&) = default;
};

// Absent: not said. Never both a password and a hashed one. Passwords are secrets: a statement with
// roles in it does not belong into a log, nor does its text.
struct RoleOptions {
  std::optional<std::string> password;
  std::optional<std::string> hashed_password;
  std::optional<bool> superuser;
  std::optional<bool> login;
  std::optional<PropertyMap> options;
  std::optional<DatacenterAccess> access;

  friend bool operator==(const RoleOptions&, const RoleOptions&) = default;
};

// CREATE USER is one of these that may log in and is a superuser or not, both said.
struct CreateRole {
  bool if_not_exists = false;
  Name role;
  RoleOptions options;

  friend bool operator==(const CreateRole&, const CreateRole&) = default;
};

struct AlterRole {
  bool if_exists = false;
  Name role;
  RoleOptions options;

  friend bool operator==(const AlterRole&, const AlterRole&) = default;
};

struct DropRole {
  bool if_exists = false;
  Name role;

  friend bool operator==(const DropRole&, const DropRole&) = default;
};

enum class Permission : std::uint8_t {
  create,
  alter,
  drop,
  select,
  modify,
  authorize,
  describe,
  execute,
};

// In the order of the enumeration, none twice. ALL is all of them: the planner keeps those that the
// resource knows, as Cassandra does.
using Permissions = std::vector<Permission>;

enum class ResourceKind : std::uint8_t {
  all_keyspaces,
  keyspace,                // name.name
  all_tables_in_keyspace,  // name.name is the keyspace
  table,                   // name
  all_roles,
  role,  // name.name
  all_functions,
  all_functions_in_keyspace,  // name.name is the keyspace
  function,                   // name, arguments
  all_mbeans,
  mbean,   // pattern
  mbeans,  // pattern
};

struct Resource {
  ResourceKind kind = ResourceKind::all_keyspaces;
  QualifiedName name;
  std::vector<TypeName> arguments;
  std::string pattern;

  friend bool operator==(const Resource&, const Resource&) = default;
};

struct GrantPermissions {
  Permissions permissions;
  Resource resource;
  Name role;

  friend bool operator==(const GrantPermissions&, const GrantPermissions&) = default;
};

struct RevokePermissions {
  Permissions permissions;
  Resource resource;
  Name role;

  friend bool operator==(const RevokePermissions&, const RevokePermissions&) = default;
};

struct ListPermissions {
  Permissions permissions;
  std::optional<Resource> resource;
  std::optional<Name> role;
  bool recursive = true;

  friend bool operator==(const ListPermissions&, const ListPermissions&) = default;
};

struct GrantRole {
  Name granted;
  Name role;

  friend bool operator==(const GrantRole&, const GrantRole&) = default;
};

struct RevokeRole {
  Name revoked;
  Name role;

  friend bool operator==(const RevokeRole&, const RevokeRole&) = default;
};

struct ListRoles {
  std::optional<Name> role;
  bool recursive = true;

  friend bool operator==(const ListRoles&, const ListRoles&) = default;
};

struct ListUsers {
  friend bool operator==(const ListUsers&, const ListUsers&) = default;
};

// -------------------------------------------------------------------------------------- describe

enum class DescribeKind : std::uint8_t {
  cluster,
  schema,       // all keyspaces of users
  full_schema,  // those of the system too
  keyspaces,
  keyspace,       // `name` absent: the one in use
  only_keyspace,  // without what is in it
  tables,
  table,
  index,
  materialized_view,
  types,
  type,
  functions,
  function,
  aggregates,
  aggregate,
  anything,  // DESCRIBE name: a keyspace, table, view or index, whichever is found first
};

// DESCRIBE and DESC.
struct Describe {
  DescribeKind kind = DescribeKind::cluster;
  std::optional<QualifiedName> name;  // only of the kinds in the singular
  bool with_internals = false;

  friend bool operator==(const Describe&, const Describe&) = default;
};

// -------------------------------------------------------------------------------------- statement

struct Statement {
  using Node =
      std::variant<Select, Insert, InsertJson, Update, Delete, Batch, Truncate, Use, CreateKeyspace,
                   AlterKeyspace, DropKeyspace, CreateTable, AlterTable, DropTable, CreateType,
                   AlterType, DropType, CreateIndex, DropIndex, CreateMaterializedView,
                   AlterMaterializedView, DropMaterializedView, CreateFunction, DropFunction,
                   CreateAggregate, DropAggregate, CreateTrigger, DropTrigger, CreateRole,
                   AlterRole, DropRole, GrantPermissions, RevokePermissions, ListPermissions,
                   GrantRole, RevokeRole, ListRoles, ListUsers, Describe>;
  Node node;
  // The names of the markers, by their index; absent for `?`. Two markers of one name are two.
  std::vector<std::optional<std::string>> markers;

  friend bool operator==(const Statement&, const Statement&) = default;
};

}  // namespace helenus::cql::parser
