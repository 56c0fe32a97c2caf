// DataType: what a value of CQL is: a native kind, a collection, a tuple, a user-defined type or a
// vector, which is so many floats.
//
// An immutable value. A native type is a few words; a composed one shares a constant tree, so a
// copy costs one atomic increment and may go to another core. Types come from strangers (CREATE
// TABLE, frames, files): making one that nests deeper than kTypeDepthMax or has more parts than
// kTypePartsMax, user-defined types written out in full, is an error. So whoever walks a type may
// recurse, and printing or sending one cannot explode.
//
// Frozen: a value of a frozen type is written and compared as a whole. A collection or user-defined
// type that is not frozen ("multi-cell") keeps a cell per element or field and is allowed only as
// the type of a column. Tuples, vectors and everything within something frozen are frozen. Equality
// is equality of the whole structure, frozen included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace helenus::model {

// The numbers are the native protocol's, and are stored in schemas: they never change. `varchar` is
// what CQL calls text. A vector has none there: it is sent as a custom type.
enum class TypeKind : std::uint8_t {
  ascii = 0x01,
  bigint = 0x02,
  blob = 0x03,
  boolean = 0x04,
  counter = 0x05,
  decimal = 0x06,
  double_ = 0x07,
  float_ = 0x08,
  int_ = 0x09,
  timestamp = 0x0b,
  uuid = 0x0c,
  varchar = 0x0d,
  varint = 0x0e,
  timeuuid = 0x0f,
  inet = 0x10,
  date = 0x11,
  time = 0x12,
  smallint = 0x13,
  tinyint = 0x14,
  duration = 0x15,
  list = 0x20,
  map = 0x21,
  set = 0x22,
  udt = 0x30,
  tuple = 0x31,
  vector = 0x40,
};

// The kind with this number, if there is one: numbers come from frames and files.
std::optional<TypeKind> type_kind_from(std::uint16_t number);
bool is_native(TypeKind kind);

inline constexpr std::size_t kTypeDepthMax = 32;
inline constexpr std::size_t kTypePartsMax = 4096;
inline constexpr std::size_t kVectorDimensionMax = 16'384;

struct UserTypeField;

class DataType {
 public:
  // Requires: is_native(kind).
  explicit DataType(TypeKind kind);
  static DataType text() { return DataType(TypeKind::varchar); }

  // "int", "text", "varchar", ... in lower case; nothing for a name that is no native type's.
  static std::optional<DataType> native_named(std::string_view name);

  // Elements, keys and values are frozen by this, as CQL demands of what is within a collection.
  // Errors of all six: invalid_argument when the limits above are passed.
  static base::Result<DataType> list_of(const DataType& element, bool frozen = false);
  static base::Result<DataType> set_of(const DataType& element, bool frozen = false);
  static base::Result<DataType> map_of(const DataType& key, const DataType& value,
                                       bool frozen = false);
  static base::Result<DataType> tuple_of(std::vector<DataType> elements);
  // Of so many floats. Errors also: a dimension of zero.
  static base::Result<DataType> vector_of(std::size_t dimension);
  static base::Result<DataType> user_type(std::string keyspace, std::string name,
                                          std::vector<UserTypeField> fields, bool frozen = false);

  TypeKind kind() const { return kind_; }
  bool is_native() const { return node_ == nullptr; }
  bool is_collection() const;  // list, set or map
  bool is_text() const;        // ascii or text
  bool is_counter() const { return kind_ == TypeKind::counter; }
  // Native types are not frozen: there is nothing to freeze.
  bool is_frozen() const { return frozen_; }
  // A cell per element or field: a collection or user-defined type that is not frozen.
  bool is_multi_cell() const { return !is_native() && !frozen_; }
  // Whether `kind` is this type's or that of any part of it.
  bool mentions(TypeKind kind) const;

  // The types within: of a list, set or vector one, of a map key and value, of a tuple its
  // elements, of a user-defined type its fields'. Nothing of a native one.
  std::span<const DataType> parts() const;
  // Requires: a list, a set or a vector.
  const DataType& element() const;
  // Requires: a vector.
  std::size_t dimension() const;
  // Require: a map.
  const DataType& key() const;
  const DataType& mapped() const;

  // Require: a user-defined type. field_names()[i] names parts()[i].
  const std::string& keyspace() const;
  const std::string& name() const;
  std::span<const std::string> field_names() const;
  std::optional<std::size_t> field_index(std::string_view field) const;

  std::size_t depth() const;       // 1 for a native type
  std::size_t part_count() const;  // all nodes of the tree written out, itself included

  // The same type, frozen; itself when it is native or frozen already.
  DataType frozen() const;
  // The same type, not frozen (its parts stay frozen). Requires: a collection or user-defined type.
  DataType unfrozen() const;

  // Whether the user-defined type of this keyspace and name is this one or within it.
  bool mentions_user_type(std::string_view keyspace, std::string_view name) const;
  // This type with every mention of the user-defined type of `changed`'s keyspace and name
  // replaced by `changed`, keeping whether each was frozen. Errors: the limits of a type.
  // Requires: changed.kind() == udt.
  base::Result<DataType> with_user_type(const DataType& changed) const;

  // As Cassandra prints it in system_schema: text, frozen<list<int>>, map<text, frozen<address>>,
  // frozen<tuple<int, text>>. A user-defined type is its name, without the keyspace.
  std::string to_cql() const;

  friend bool operator==(const DataType& a, const DataType& b);

 private:
  struct Node;
  DataType(TypeKind kind, bool frozen, std::shared_ptr<const Node> node);
  static base::Result<DataType> composed(TypeKind kind, bool frozen, Node node);

  TypeKind kind_;
  bool frozen_ = false;
  std::shared_ptr<const Node> node_;  // null for a native type
};

struct UserTypeField {
  std::string name;
  DataType type;
};

}  // namespace helenus::model
