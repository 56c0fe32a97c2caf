#include "model/data_type.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "model/identifier.h"

namespace helenus::model {

using base::Errc;
using base::Error;
using base::Result;

namespace {

struct NativeName {
  std::string_view name;
  TypeKind kind;
};
// The first name of a kind is the one it is printed by.
constexpr std::array kNativeNames = {
    NativeName{"ascii", TypeKind::ascii},       NativeName{"bigint", TypeKind::bigint},
    NativeName{"blob", TypeKind::blob},         NativeName{"boolean", TypeKind::boolean},
    NativeName{"counter", TypeKind::counter},   NativeName{"decimal", TypeKind::decimal},
    NativeName{"double", TypeKind::double_},    NativeName{"float", TypeKind::float_},
    NativeName{"int", TypeKind::int_},          NativeName{"timestamp", TypeKind::timestamp},
    NativeName{"uuid", TypeKind::uuid},         NativeName{"text", TypeKind::varchar},
    NativeName{"varchar", TypeKind::varchar},   NativeName{"varint", TypeKind::varint},
    NativeName{"timeuuid", TypeKind::timeuuid}, NativeName{"inet", TypeKind::inet},
    NativeName{"date", TypeKind::date},         NativeName{"time", TypeKind::time},
    NativeName{"smallint", TypeKind::smallint}, NativeName{"tinyint", TypeKind::tinyint},
    NativeName{"duration", TypeKind::duration},
};

}  // namespace

std::optional<TypeKind> type_kind_from(std::uint16_t number) {
  if (number > UINT8_MAX) return std::nullopt;
  const auto kind = static_cast<TypeKind>(number);
  switch (kind) {
    case TypeKind::list:
    case TypeKind::map:
    case TypeKind::set:
    case TypeKind::udt:
    case TypeKind::tuple:
    case TypeKind::vector:
      return kind;
    default:
      return is_native(kind) ? std::optional(kind) : std::nullopt;
  }
}

bool is_native(TypeKind kind) {
  return std::ranges::find(kNativeNames, kind, &NativeName::kind) != kNativeNames.end();
}

struct DataType::Node {
  std::vector<DataType> parts = {};
  std::string keyspace = {};
  std::string name = {};
  std::vector<std::string> field_names = {};
  std::size_t dimension = 0;  // of a vector
  std::size_t depth = 0;
  std::size_t part_count = 0;

  friend bool operator==(const Node&, const Node&) = default;
};

DataType::DataType(TypeKind kind) : kind_(kind) {
  ASSERT(model::is_native(kind), "type {}", static_cast<unsigned>(kind));
}

DataType::DataType(TypeKind kind, bool frozen, std::shared_ptr<const Node> node)
    : kind_(kind), frozen_(frozen), node_(std::move(node)) {}

std::optional<DataType> DataType::native_named(std::string_view name) {
  const auto* found = std::ranges::find(kNativeNames, name, &NativeName::name);
  if (found == kNativeNames.end()) return std::nullopt;
  return DataType(found->kind);
}

Result<DataType> DataType::composed(TypeKind kind, bool frozen, Node node) {
  // What is within a user-defined type may stay unfrozen until the type itself is frozen.
  const bool parts_frozen = kind != TypeKind::udt || frozen;
  for (DataType& part : node.parts) {
    if (parts_frozen) part = part.frozen();
    node.depth = std::max(node.depth, part.depth());
    node.part_count += part.part_count();
    if (node.part_count >= kTypePartsMax) {
      return Error(Errc::invalid_argument, "a type of more than {} parts", kTypePartsMax);
    }
  }
  node.depth += 1;
  node.part_count += 1;
  if (node.depth > kTypeDepthMax) {
    return Error(Errc::invalid_argument, "a type nested more than {} deep", kTypeDepthMax);
  }
  return DataType(kind, frozen, std::make_shared<const Node>(std::move(node)));
}

Result<DataType> DataType::list_of(const DataType& element, bool frozen) {
  return composed(TypeKind::list, frozen, Node{.parts = {element}});
}

Result<DataType> DataType::set_of(const DataType& element, bool frozen) {
  return composed(TypeKind::set, frozen, Node{.parts = {element}});
}

Result<DataType> DataType::map_of(const DataType& key, const DataType& value, bool frozen) {
  return composed(TypeKind::map, frozen, Node{.parts = {key, value}});
}

Result<DataType> DataType::tuple_of(std::vector<DataType> elements) {
  return composed(TypeKind::tuple, /*frozen=*/true, Node{.parts = std::move(elements)});
}

Result<DataType> DataType::vector_of(std::size_t dimension) {
  if (dimension == 0 || dimension > kVectorDimensionMax) {
    return Error(Errc::invalid_argument,
                 "vectors may only have positive dimensions, up to {}; given {}",
                 kVectorDimensionMax, dimension);
  }
  return composed(TypeKind::vector, /*frozen=*/true,
                  Node{.parts = {DataType(TypeKind::float_)}, .dimension = dimension});
}

Result<DataType> DataType::user_type(std::string keyspace, std::string name,
                                     std::vector<UserTypeField> fields, bool frozen) {
  Node node{.keyspace = std::move(keyspace), .name = std::move(name)};
  node.parts.reserve(fields.size());
  node.field_names.reserve(fields.size());
  for (UserTypeField& field : fields) {
    node.parts.push_back(std::move(field.type));
    node.field_names.push_back(std::move(field.name));
  }
  return composed(TypeKind::udt, frozen, std::move(node));
}

bool DataType::is_collection() const {
  return kind_ == TypeKind::list || kind_ == TypeKind::set || kind_ == TypeKind::map;
}

bool DataType::is_text() const {
  return kind_ == TypeKind::ascii || kind_ == TypeKind::varchar;
}

bool DataType::mentions(TypeKind kind) const {
  if (kind_ == kind) return true;
  return std::ranges::any_of(parts(), [&](const DataType& part) { return part.mentions(kind); });
}

std::span<const DataType> DataType::parts() const {
  return node_ == nullptr ? std::span<const DataType>() : node_->parts;
}

const DataType& DataType::element() const {
  ASSERT(kind_ == TypeKind::list || kind_ == TypeKind::set || kind_ == TypeKind::vector);
  return node_->parts[0];
}

std::size_t DataType::dimension() const {
  ASSERT(kind_ == TypeKind::vector);
  return node_->dimension;
}

const DataType& DataType::key() const {
  ASSERT(kind_ == TypeKind::map);
  return node_->parts[0];
}

const DataType& DataType::mapped() const {
  ASSERT(kind_ == TypeKind::map);
  return node_->parts[1];
}

const std::string& DataType::keyspace() const {
  ASSERT(kind_ == TypeKind::udt);
  return node_->keyspace;
}

const std::string& DataType::name() const {
  ASSERT(kind_ == TypeKind::udt);
  return node_->name;
}

std::span<const std::string> DataType::field_names() const {
  ASSERT(kind_ == TypeKind::udt);
  return node_->field_names;
}

std::optional<std::size_t> DataType::field_index(std::string_view field) const {
  const auto names = field_names();
  const auto found = std::ranges::find(names, field);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

std::size_t DataType::depth() const {
  return node_ == nullptr ? 1 : node_->depth;
}

std::size_t DataType::part_count() const {
  return node_ == nullptr ? 1 : node_->part_count;
}

DataType DataType::frozen() const {
  if (is_native() || frozen_) return *this;
  Node node = *node_;
  for (DataType& part : node.parts) part = part.frozen();
  return DataType(kind_, /*frozen=*/true, std::make_shared<const Node>(std::move(node)));
}

DataType DataType::unfrozen() const {
  ASSERT(is_collection() || kind_ == TypeKind::udt);
  return DataType(kind_, /*frozen=*/false, node_);
}

bool DataType::mentions_user_type(std::string_view keyspace, std::string_view name) const {
  if (kind_ == TypeKind::udt && node_->keyspace == keyspace && node_->name == name) return true;
  return std::ranges::any_of(
      parts(), [&](const DataType& part) { return part.mentions_user_type(keyspace, name); });
}

Result<DataType> DataType::with_user_type(const DataType& changed) const {
  if (!mentions_user_type(changed.keyspace(), changed.name())) return *this;
  if (kind_ == TypeKind::udt && node_->keyspace == changed.keyspace() &&
      node_->name == changed.name()) {
    return frozen_ ? changed.frozen() : changed.unfrozen();
  }
  Node node{.keyspace = node_->keyspace,
            .name = node_->name,
            .field_names = node_->field_names,
            .dimension = node_->dimension};
  for (const DataType& part : node_->parts) {
    TRY(DataType replaced, part.with_user_type(changed));
    node.parts.push_back(std::move(replaced));
  }
  return composed(kind_, frozen_, std::move(node));
}

std::string DataType::to_cql() const {
  if (is_native()) {
    return std::string(std::ranges::find(kNativeNames, kind_, &NativeName::kind)->name);
  }
  if (kind_ == TypeKind::vector) {
    return fmt::format("vector<{}, {}>", node_->parts[0].to_cql(), node_->dimension);
  }
  std::string text;
  if (kind_ == TypeKind::udt) {
    text = to_cql_identifier(node_->name);
  } else {
    text = kind_ == TypeKind::list  ? "list<"
           : kind_ == TypeKind::set ? "set<"
           : kind_ == TypeKind::map ? "map<"
                                    : "tuple<";
    for (std::size_t index = 0; index < node_->parts.size(); ++index) {
      if (index > 0) text += ", ";
      text += node_->parts[index].to_cql();
    }
    text += ">";
  }
  return frozen_ ? "frozen<" + text + ">" : text;
}

bool operator==(const DataType& a, const DataType& b) {
  if (a.kind_ != b.kind_ || a.frozen_ != b.frozen_) return false;
  return a.node_ == b.node_ || (a.node_ != nullptr && b.node_ != nullptr && *a.node_ == *b.node_);
}

}  // namespace helenus::model
