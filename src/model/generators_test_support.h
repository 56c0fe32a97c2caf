// Types and values for property tests: with few bytes to choose from, so that values meet in
// prefixes and in equal ones, and with the boundaries of every type among them.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/bytes.h"
#include "base/codec.h"
#include "model/clustering_key.h"
#include "model/data_type.h"
#include "model/value.h"

namespace helenus::model::testing {

inline const std::vector<TypeKind>& ordered_natives() {
  static const std::vector<TypeKind> kKinds = {
      TypeKind::ascii,     TypeKind::bigint,  TypeKind::blob,    TypeKind::boolean,
      TypeKind::decimal,   TypeKind::double_, TypeKind::float_,  TypeKind::int_,
      TypeKind::timestamp, TypeKind::uuid,    TypeKind::varchar, TypeKind::varint,
      TypeKind::timeuuid,  TypeKind::inet,    TypeKind::date,    TypeKind::time,
      TypeKind::smallint,  TypeKind::tinyint};
  return kKinds;
}

inline DataType list_type(const DataType& element) {
  return *DataType::list_of(element, true);
}
inline DataType set_type(const DataType& element) {
  return *DataType::set_of(element, true);
}
inline DataType map_type(const DataType& key, const DataType& value) {
  return *DataType::map_of(key, value, true);
}
inline DataType tuple_type(std::vector<DataType> elements) {
  return *DataType::tuple_of(std::move(elements));
}
inline DataType address_type(bool frozen = true) {
  return *DataType::user_type("ks", "address",
                              {{.name = "street", .type = DataType::text()},
                               {.name = "number", .type = DataType(TypeKind::int_)}},
                              frozen);
}

// A type without durations or counters, frozen, at most `depth` deep.
inline DataType draw_type(int depth) {
  const int choice = depth <= 1 ? 0 : *rc::gen::inRange(0, 9);
  switch (choice) {
    case 4:
      return list_type(draw_type(depth - 1));
    case 5:
      return set_type(draw_type(depth - 1));
    case 6:
      return map_type(draw_type(depth - 1), draw_type(depth - 1));
    case 7:
      return tuple_type({draw_type(depth - 1), draw_type(depth - 1)});
    case 8:
      return address_type();
    default:
      return DataType(*rc::gen::elementOf(ordered_natives()));
  }
}

inline base::Bytes draw_bytes(std::size_t size, const std::vector<int>& alphabet) {
  base::Buffer out;
  for (std::size_t index = 0; index < size; ++index) {
    out.push_back(std::byte(*rc::gen::elementOf(alphabet)));
  }
  return std::move(out).freeze();
}

inline const std::vector<int>& any_bytes() {
  static const std::vector<int> kBytes = {0x00, 0x01, 0x02, 0x61, 0x7f, 0x80, 0xfe, 0xff};
  return kBytes;
}
inline const std::vector<int>& ascii_bytes() {
  static const std::vector<int> kBytes = {0x00, 0x01, 0x27, 0x61, 0x62, 0x7f};
  return kBytes;
}

inline base::Bytes draw_text() {
  static const std::vector<std::string> kParts = {
      std::string(1, '\0'), "\x01", "'", "a", "b", "\x7f", "\xc2\x80", "\xef\xbf\xbf",
      "\xf4\x8f\xbf\xbf"};
  std::string text;
  const auto count = *rc::gen::inRange(0, 4);
  for (int index = 0; index < count; ++index) text += *rc::gen::elementOf(kParts);
  return text_value(text);
}

template <class T>
T draw_integer() {
  if (*rc::gen::inRange(0, 2) == 0) return *rc::gen::arbitrary<T>();
  return *rc::gen::element<T>(std::numeric_limits<T>::min(), T{-1}, T{0}, T{1},
                              std::numeric_limits<T>::max());
}

inline base::Bytes draw_decimal() {
  base::Buffer out;
  const auto scale = *rc::gen::weightedOneOf<std::int32_t>(
      {{6, rc::gen::inRange<std::int32_t>(-3, 4)},
       {1, rc::gen::element(std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max())}});
  base::Encoder(out).u32_be(static_cast<std::uint32_t>(scale));
  if (*rc::gen::inRange(0, 2) == 0) {
    out.append(varint_value(*rc::gen::element(0, 1, -1, 10, -10, 100, 1000, 12, -12)).view());
  } else {
    out.append(draw_bytes(*rc::gen::inRange<std::size_t>(1, 12), any_bytes()).view());
  }
  return std::move(out).freeze();
}

inline base::Bytes draw_uuid(bool time_based) {
  base::Bytes bytes = draw_bytes(16, any_bytes());
  base::Buffer out;
  out.append(bytes.view());
  const int version = time_based ? 1 : *rc::gen::element(1, 4, 0);
  std::byte& byte = out.mutable_view()[6];
  byte = (byte & std::byte{0x0f}) | std::byte(version << 4);
  return std::move(out).freeze();
}

inline base::Bytes draw_native(TypeKind kind) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto draw_double = [&] {
    return *rc::gen::oneOf(rc::gen::arbitrary<double>(),
                           rc::gen::element(0.0, -0.0, 1.5, -1.5, kInfinity, -kInfinity, kNan,
                                            -kNan, std::numeric_limits<double>::denorm_min()));
  };
  switch (kind) {
    case TypeKind::ascii:
      return draw_bytes(*rc::gen::inRange<std::size_t>(0, 4), ascii_bytes());
    case TypeKind::varchar:
      return draw_text();
    case TypeKind::blob:
      return draw_bytes(*rc::gen::inRange<std::size_t>(0, 4), any_bytes());
    case TypeKind::boolean:
      return boolean_value(*rc::gen::arbitrary<bool>());
    case TypeKind::tinyint:
      return tinyint_value(draw_integer<std::int8_t>());
    case TypeKind::smallint:
      return smallint_value(draw_integer<std::int16_t>());
    case TypeKind::int_:
    case TypeKind::date:
      return int_value(draw_integer<std::int32_t>());
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::timestamp:
      return bigint_value(draw_integer<std::int64_t>());
    case TypeKind::time:
      return bigint_value(
          *rc::gen::element<std::int64_t>(0, 1, 3'661'000'000'001, 86'399'999'999'999));
    case TypeKind::float_:
      return float_value(static_cast<float>(draw_double()));
    case TypeKind::double_:
      return double_value(draw_double());
    case TypeKind::uuid:
      return draw_uuid(false);
    case TypeKind::timeuuid:
      return draw_uuid(true);
    case TypeKind::inet:
      return draw_bytes(*rc::gen::element<std::size_t>(4, 16), any_bytes());
    case TypeKind::varint:
      return draw_bytes(*rc::gen::element<std::size_t>(1, 1, 2, 3, 0x7e, 0x7f, 200), any_bytes());
    case TypeKind::decimal:
      return draw_decimal();
    case TypeKind::duration: {
      const int sign = *rc::gen::element(-1, 1);
      const auto part = [&](std::int64_t limit) {
        return sign * *rc::gen::elementOf(std::vector<std::int64_t>{0, 1, 61, limit});
      };
      return duration_value(
          {.months = static_cast<std::int32_t>(part(std::numeric_limits<std::int32_t>::max())),
           .days = static_cast<std::int32_t>(part(std::numeric_limits<std::int32_t>::max())),
           .nanoseconds = part(std::numeric_limits<std::int64_t>::max())});
    }
    default:
      UNREACHABLE("type {}", static_cast<unsigned>(kind));
  }
}

// Whether zero bytes are a value of the kind.
inline bool has_empty(TypeKind kind) {
  return kind != TypeKind::tinyint && kind != TypeKind::smallint && kind != TypeKind::date &&
         kind != TypeKind::time && kind != TypeKind::duration;
}

inline base::Bytes draw_value(const DataType& type) {
  const auto count = [] { return *rc::gen::inRange(0, 4); };
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set: {
      std::vector<base::Bytes> elements;
      for (int left = count(); left > 0; --left) elements.push_back(draw_value(type.element()));
      return type.kind() == TypeKind::list ? compose_list(elements)
                                           : compose_set(type.element(), std::move(elements));
    }
    case TypeKind::map: {
      std::vector<MapEntry> entries;
      for (int left = count(); left > 0; --left) {
        base::Bytes key = draw_value(type.key());
        entries.emplace_back(std::move(key), draw_value(type.mapped()));
      }
      return compose_map(type.key(), std::move(entries));
    }
    case TypeKind::tuple:
    case TypeKind::udt: {
      const auto parts = type.parts();
      std::vector<OptionalBytes> elements(*rc::gen::inRange<std::size_t>(0, parts.size() + 1));
      for (std::size_t index = 0; index < elements.size(); ++index) {
        if (*rc::gen::inRange(0, 4) > 0) elements[index] = draw_value(parts[index]);
      }
      return compose_tuple(elements);
    }
    default:
      if (has_empty(type.kind()) && *rc::gen::inRange(0, 12) == 0) return {};
      return draw_native(type.kind());
  }
}

// A value that has a good chance of being like `other`.
inline base::Bytes draw_value_like(const DataType& type, const base::Bytes& other) {
  return *rc::gen::inRange(0, 4) == 0 ? other : draw_value(type);
}

inline std::vector<ClusteringColumn> draw_columns(std::size_t count, int depth) {
  std::vector<ClusteringColumn> columns;
  for (std::size_t index = 0; index < count; ++index) {
    columns.push_back({.type = draw_type(depth), .descending = *rc::gen::arbitrary<bool>()});
  }
  return columns;
}

inline std::vector<base::ByteView> views(const std::vector<base::Bytes>& values) {
  return {values.begin(), values.end()};
}

}  // namespace helenus::model::testing
