// Fuzzes values, clustering keys and literals. The first byte chooses a type, the second what the
// others are:
//
//   0 a value: if valid, its stored form is a fixed point, and its clustering key decodes to an
//     equal value, ascending and descending
//   1 a clustering key: what decodes is valid and encodes to a key that decodes to equal values;
//   and
//     an element's
//   2 the text of a literal: what it gives is valid, prints, and compares equal to itself
//   3 two values: their keys compare as they do
//   128 and more: a text of JSON: what it gives is valid; a value: its JSON is a text of JSON
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.h"
#include "model/clustering_key.h"
#include "model/element_key.h"
#include "model/json.h"
#include "model/literal.h"
#include "model/value.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::ByteView;

DataType type_of(std::uint8_t choice) {
  const DataType text = DataType::text();
  const DataType number(TypeKind::varint);
  const DataType set = *DataType::set_of(text, true);
  switch (choice % 32) {
    case 0:
      return *DataType::list_of(number, true);
    case 22:
      return set;
    case 23:
      return *DataType::map_of(number, text, true);
    case 24:
      return *DataType::tuple_of({text, DataType(TypeKind::decimal), set});
    case 25:
      return *DataType::map_of(set, *DataType::list_of(*DataType::tuple_of({number})), true);
    case 26:
      return *DataType::user_type(
          "k", "t", {{.name = "a", .type = number}, {.name = "b", .type = text}}, true);
    default: {
      const auto kind = type_kind_from(choice % 32);
      return kind && is_native(*kind) ? DataType(*kind) : text;
    }
  }
}

Bytes key_of(const ClusteringColumn& column, ByteView value) {
  const auto key = encode_clustering({&column, 1}, {&value, 1});
  ASSERT(key.has_value());
  return *key;
}

void check_value(const DataType& type, ByteView input) {
  const Bytes bytes = Bytes::copy_of(input);
  const auto stored = normalise(type, bytes);
  ASSERT(stored.has_value() == validate(type, input).has_value());
  static_cast<void>(to_text(type, input));
  ASSERT(compare(type, input, input) == 0);
  if (!stored) return;
  ASSERT(*normalise(type, *stored) == *stored);
  if (!is_ordered(type)) return;
  for (const bool descending : {false, true}) {
    const ClusteringColumn column{.type = type, .descending = descending};
    const Bytes key = key_of(column, *stored);
    const auto back = decode_clustering({&column, 1}, key);
    ASSERT(back.has_value() && back->size() == 1);
    ASSERT(compare(type, (*back)[0], *stored) == 0);
    ASSERT(key_of(column, (*back)[0]) == key);
  }
}

void check_key(const DataType& type, ByteView input) {
  if (!is_ordered(type)) return;
  const std::vector<ClusteringColumn> columns = {{.type = type, .descending = false},
                                                 {.type = type, .descending = true}};
  // The same bytes as the key of an element.
  if (const auto size = row_size_of(columns, input)) {
    ASSERT(*size <= input.size());
    static_cast<void>(read_element_suffix(input.subspan(*size)));
  }
  static_cast<void>(named_element(type, input));
  static_cast<void>(named_field(input));
  const auto values = decode_clustering(columns, input);
  if (!values) return;
  const std::vector<ByteView> views(values->begin(), values->end());
  const auto key = encode_clustering(columns, views);
  ASSERT(key.has_value());
  const auto again = decode_clustering(columns, *key);
  ASSERT(again.has_value() && again->size() == values->size());
  const std::vector<ByteView> views_again(again->begin(), again->end());
  ASSERT(*encode_clustering(columns, views_again) == *key);
}

void check_literal(const DataType& type, ByteView input) {
  for (unsigned number = 0; number <= static_cast<unsigned>(LiteralKind::duration); ++number) {
    const auto kind = static_cast<LiteralKind>(number);
    if (!accepts(type, kind)) continue;
    const auto value = parse_literal(type, kind, base::as_text(input));
    if (!value) continue;
    ASSERT(validate(type, *value));
    ASSERT(compare(type, *value, *value) == 0);
    static_cast<void>(to_text(type, *value));
  }
}

void check_order(const DataType& type, ByteView input) {
  if (input.empty() || !is_ordered(type)) return;
  const std::size_t cut = std::to_integer<std::size_t>(input[0]) % input.size();
  const auto a = normalise(type, Bytes::copy_of(input.subspan(1, cut)));
  const auto b = normalise(type, Bytes::copy_of(input.subspan(1 + cut)));
  if (!a || !b) return;
  const std::weak_ordering wanted = compare(type, *a, *b);
  ASSERT((0 <=> wanted) == compare(type, *b, *a));
  const ClusteringColumn column{.type = type, .descending = false};
  ASSERT(wanted == base::compare(key_of(column, *a), key_of(column, *b)));
}

void check_json(const DataType& type, ByteView input) {
  if (validate(type, input)) ASSERT(parse_json(to_json(type, input)).has_value());
  const auto json = parse_json(base::as_text(input));
  if (!json) return;
  const auto value = from_json(type, *json);
  if (!value || !*value) return;
  ASSERT(validate(type, **value).has_value());
  ASSERT(parse_json(to_json(type, **value)).has_value());
}

}  // namespace
}  // namespace helenus::model

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::model;
  if (size < 2) return 0;
  const DataType type = type_of(data[0]);
  const auto input = std::as_bytes(std::span(data, size)).subspan(2);
  if (data[1] >= 128) {
    check_json(type, input);
    return 0;
  }
  switch (data[1] % 4) {
    case 0:
      check_value(type, input);
      break;
    case 1:
      check_key(type, input);
      break;
    case 2:
      check_literal(type, input);
      break;
    default:
      check_order(type, input);
      break;
  }
  return 0;
}
