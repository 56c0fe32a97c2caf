// The order of values, by type, as Cassandra's comparators have it.
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <type_traits>

#include "base/codec.h"
#include "model/number.h"
#include "model/uuid_order.h"
#include "model/value.h"

namespace helenus::model {

using base::ByteView;

namespace {

template <std::unsigned_integral T>
std::strong_ordering compare_signed(ByteView a, ByteView b) {
  using Signed = std::make_signed_t<T>;
  if (a.size() != sizeof(T) || b.size() != sizeof(T)) return base::compare(a, b);
  return static_cast<Signed>(base::load_be<T>(a.data())) <=>
         static_cast<Signed>(base::load_be<T>(b.data()));
}

// Java's order: -0.0 before 0.0, every NaN behind everything else and equal to one another.
template <std::floating_point Float, std::unsigned_integral Word>
std::weak_ordering compare_floats(ByteView a, ByteView b) {
  if (a.size() != sizeof(Word) || b.size() != sizeof(Word)) return base::compare(a, b);
  const auto x = std::bit_cast<Float>(base::load_be<Word>(a.data()));
  const auto y = std::bit_cast<Float>(base::load_be<Word>(b.data()));
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) <=> std::isnan(y);
  if (x < y) return std::weak_ordering::less;
  if (x > y) return std::weak_ordering::greater;
  return std::signbit(y) <=> std::signbit(x);
}

std::weak_ordering compare_decimals(ByteView a, ByteView b) {
  const auto is_decimal = [](ByteView bytes) {
    return bytes.size() > 4 && bytes.size() <= 4 + kVarintBytesMax;
  };
  if (!is_decimal(a) || !is_decimal(b)) return base::compare(a, b);
  if (base::equal(a.first(4), b.first(4))) return compare_varints(a.subspan(4), b.subspan(4));
  return compare(read_decimal(a), read_decimal(b));
}

std::strong_ordering compare_uuids(ByteView a, ByteView b, bool time_based) {
  if (a.size() != base::Uuid::kSize || b.size() != base::Uuid::kSize) return base::compare(a, b);
  if (time_based) return order_of_timeuuid(a) <=> order_of_timeuuid(b);
  return order_of_uuid(a) <=> order_of_uuid(b);
}

std::weak_ordering compare_native(TypeKind kind, ByteView a, ByteView b) {
  if (a.empty() || b.empty()) return !a.empty() <=> !b.empty();
  switch (kind) {
    case TypeKind::boolean:
      return (a[0] != std::byte{0}) <=> (b[0] != std::byte{0});
    case TypeKind::tinyint:
      return compare_signed<std::uint8_t>(a, b);
    case TypeKind::smallint:
      return compare_signed<std::uint16_t>(a, b);
    case TypeKind::int_:
      return compare_signed<std::uint32_t>(a, b);
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::timestamp:
      return compare_signed<std::uint64_t>(a, b);
    case TypeKind::float_:
      return compare_floats<float, std::uint32_t>(a, b);
    case TypeKind::double_:
      return compare_floats<double, std::uint64_t>(a, b);
    case TypeKind::varint:
      return compare_varints(a, b);
    case TypeKind::decimal:
      return compare_decimals(a, b);
    case TypeKind::uuid:
      return compare_uuids(a, b, false);
    case TypeKind::timeuuid:
      return compare_uuids(a, b, true);
    default:
      // Texts, blobs, addresses; dates and times, which are unsigned.
      return base::compare(a, b);
  }
}

std::weak_ordering compare_collections(const DataType& type, ByteView a, ByteView b) {
  const auto x = split_collection(a);
  const auto y = split_collection(b);
  if (!x || !y) return base::compare(a, b);
  for (std::size_t index = 0; index < std::min(x->size(), y->size()); ++index) {
    const auto ordering = compare(type.element(), (*x)[index], (*y)[index]);
    if (ordering != 0) return ordering;
  }
  return x->size() <=> y->size();
}

std::weak_ordering compare_maps(const DataType& type, ByteView a, ByteView b) {
  const auto x = split_map(a);
  const auto y = split_map(b);
  if (!x || !y) return base::compare(a, b);
  for (std::size_t index = 0; index < std::min(x->size(), y->size()); ++index) {
    const auto keys = compare(type.key(), (*x)[index].first, (*y)[index].first);
    if (keys != 0) return keys;
    const auto values = compare(type.mapped(), (*x)[index].second, (*y)[index].second);
    if (values != 0) return values;
  }
  return x->size() <=> y->size();
}

// Null before everything, missing ones at the end being null.
std::weak_ordering compare_tuples(const DataType& type, ByteView a, ByteView b) {
  if (a.empty() || b.empty()) return !a.empty() <=> !b.empty();
  const auto parts = type.parts();
  const auto x = split_tuple(parts.size(), a);
  const auto y = split_tuple(parts.size(), b);
  if (!x || !y) return base::compare(a, b);
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const OptionalView& left = (*x)[index];
    const OptionalView& right = (*y)[index];
    if (!left || !right) {
      if (left.has_value() != right.has_value()) return left.has_value() <=> right.has_value();
      continue;
    }
    const auto ordering = compare(parts[index], *left, *right);
    if (ordering != 0) return ordering;
  }
  return std::weak_ordering::equivalent;
}

std::weak_ordering compare_vectors(ByteView a, ByteView b) {
  const auto x = split_vector(a);
  const auto y = split_vector(b);
  if (x.size() != y.size() || a.size() != b.size()) return base::compare(a, b);
  for (std::size_t index = 0; index < x.size(); ++index) {
    const auto ordering = compare_floats<float, std::uint32_t>(x[index], y[index]);
    if (ordering != 0) return ordering;
  }
  return std::weak_ordering::equivalent;
}

}  // namespace

std::weak_ordering compare(const DataType& type, ByteView a, ByteView b) {
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set:
      return compare_collections(type, a, b);
    case TypeKind::map:
      return compare_maps(type, a, b);
    case TypeKind::tuple:
    case TypeKind::udt:
      return compare_tuples(type, a, b);
    case TypeKind::vector:
      return compare_vectors(a, b);
    default:
      return compare_native(type.kind(), a, b);
  }
}

}  // namespace helenus::model
