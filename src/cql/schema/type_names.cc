#include "cql/schema/type_names.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cql/parser/to_text.h"

namespace helenus::cql {

using model::DataType;
using parser::TypeKind;
using parser::TypeName;

namespace {

bool is_native_named(const TypeName& type, std::string_view name) {
  return type.kind == TypeKind::native && type.name == name;
}

// Something that would have a cell per element if nothing froze it.
bool could_be_multi_cell(const TypeName& type) {
  return type.kind == TypeKind::list || type.kind == TypeKind::set || type.kind == TypeKind::map ||
         type.kind == TypeKind::user;
}

// `frozen` is what is around the type.
QueryResult<DataType> resolve(const TypeName& type, const model::Keyspace& keyspace, bool frozen);

QueryResult<void> check_within_collection(const TypeName& collection, const TypeName& part,
                                          bool frozen) {
  if (is_native_named(part, "counter")) {
    return invalid("Counters are not allowed inside collections: {}", to_text(collection));
  }
  if (frozen || part.frozen || !could_be_multi_cell(part)) return {};
  return invalid("Non-frozen {} are not allowed inside collections: {}",
                 part.kind == TypeKind::user ? "UDTs" : "collections", to_text(collection));
}

QueryResult<DataType> resolve_collection(const TypeName& type, const model::Keyspace& keyspace,
                                         bool frozen) {
  for (const TypeName& part : type.arguments) {
    TRY_VOID(check_within_collection(type, part, frozen));
  }
  const TypeName& first = type.arguments.front();
  if (type.kind == TypeKind::set && is_native_named(first, "duration")) {
    return invalid("Durations are not allowed inside sets: {}", to_text(type));
  }
  if (type.kind == TypeKind::map && is_native_named(first, "duration")) {
    return invalid("Durations are not allowed as map keys: {}", to_text(type));
  }
  TRY(const DataType element, resolve(first, keyspace, frozen));
  if (type.kind != TypeKind::list && element.mentions(model::TypeKind::vector)) {
    return invalid("Vectors are not supported as {}: {}",
                   type.kind == TypeKind::set ? "elements of sets" : "keys of maps", to_text(type));
  }
  if (type.kind == TypeKind::list) {
    TRY(DataType list, DataType::list_of(element, frozen));
    return list;
  }
  if (type.kind == TypeKind::set) {
    TRY(DataType set, DataType::set_of(element, frozen));
    return set;
  }
  TRY(const DataType mapped, resolve(type.arguments[1], keyspace, frozen));
  TRY(DataType map, DataType::map_of(element, mapped, frozen));
  return map;
}

QueryResult<DataType> resolve_tuple(const TypeName& type, const model::Keyspace& keyspace) {
  std::vector<DataType> elements;
  for (const TypeName& argument : type.arguments) {
    if (is_native_named(argument, "counter")) {
      return invalid("Counters are not allowed inside tuples");
    }
    TRY(DataType element, resolve(argument, keyspace, /*frozen=*/true));
    elements.push_back(std::move(element));
  }
  TRY(DataType tuple, DataType::tuple_of(std::move(elements)));
  return tuple;
}

QueryResult<DataType> resolve_vector(const TypeName& type) {
  const TypeName& element = type.arguments.front();
  if (!is_native_named(element, "float")) {
    return invalid("Vectors of {} are not supported, only those of float", to_text(element));
  }
  TRY(DataType vector, DataType::vector_of(type.dimension));
  return vector;
}

QueryResult<DataType> resolve_user_type(const TypeName& type, const model::Keyspace& keyspace,
                                        bool frozen) {
  if (type.keyspace && type.keyspace->text != keyspace.name) {
    return invalid(
        "Statement on keyspace {} cannot refer to a user type in keyspace {}; user types can only "
        "be used in the keyspace they are defined in",
        keyspace.name, type.keyspace->text);
  }
  const std::optional<DataType> found = keyspace.find_type(type.name);
  if (!found) return invalid("Unknown type {}.{}", keyspace.name, type.name);
  return frozen ? found->frozen() : *found;
}

QueryResult<DataType> resolve(const TypeName& type, const model::Keyspace& keyspace, bool around) {
  const bool frozen = around || type.frozen;
  switch (type.kind) {
    case TypeKind::native: {
      const std::optional<DataType> native = DataType::native_named(type.name);
      if (!native) return invalid("Unknown type {}", type.name);
      return *native;
    }
    case TypeKind::list:
    case TypeKind::set:
    case TypeKind::map:
      return resolve_collection(type, keyspace, frozen);
    case TypeKind::tuple:
      return resolve_tuple(type, keyspace);
    case TypeKind::vector:
      return resolve_vector(type);
    case TypeKind::user:
      return resolve_user_type(type, keyspace, frozen);
    case TypeKind::custom:
      break;
  }
  return invalid("Custom types are not supported: '{}'", type.name);
}

}  // namespace

QueryResult<DataType> resolve_type(const TypeName& type, const model::Keyspace& keyspace) {
  return resolve(type, keyspace, /*around=*/false);
}

QueryResult<void> check_name_size(std::string_view name) {
  if (name.size() <= protocol::kShortSizeMax) return {};
  constexpr std::size_t kShown = 32;
  return invalid("A name of {} bytes is longer than the maximum of {}: {}...", name.size(),
                 protocol::kShortSizeMax, name.substr(0, kShown));
}

}  // namespace helenus::cql
