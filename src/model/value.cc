// Making and reading native values, and taking composed ones apart and together. Validation is in
// value_validate.cc, order in value_compare.cc, printing in value_text.cc.
#include "model/value.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/assert.h"
#include "base/codec.h"
#include "model/number.h"
#include "model/sort_elements.h"
#include "model/vint.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::size_t kValueSizeMax = std::numeric_limits<std::int32_t>::max();

template <class T>
Bytes big_endian(T value) {
  Buffer out(sizeof value);
  base::store_be(out.extend(sizeof value).data(), value);
  return std::move(out).freeze();
}

Error wrong_size(std::size_t expected, std::size_t size) {
  return Error(Errc::invalid_argument, "Expected {} bytes but got {}", expected, size);
}

template <class T>
Result<T> read_as(ByteView bytes) {
  if (bytes.size() != sizeof(T)) return wrong_size(sizeof(T), bytes.size());
  return base::load_be<T>(bytes.data());
}

void put_element(Encoder& out, ByteView element) {
  ASSERT(element.size() <= kValueSizeMax && out.size() <= kValueSizeMax - element.size());
  out.u32_be(static_cast<std::uint32_t>(element.size()));
  out.raw(element);
}

// The i32 in front of a collection, checked against what the bytes can hold.
Result<std::size_t> element_count(base::Decoder& in, std::size_t parts_each) {
  const auto count = static_cast<std::int32_t>(in.u32_be());
  if (!in.ok() || count < 0 ||
      static_cast<std::size_t>(count) > in.remaining() / (4 * parts_each)) {
    return Error(Errc::invalid_argument, "Not enough bytes to read a collection");
  }
  return static_cast<std::size_t>(count);
}

Result<ByteView> next_element(base::Decoder& in) {
  const auto size = static_cast<std::int32_t>(in.u32_be());
  if (in.ok() && size < 0) {
    return Error(Errc::invalid_argument, "null is not supported inside collections");
  }
  const ByteView element = in.raw(static_cast<std::size_t>(size));
  if (!in.ok()) return Error(Errc::invalid_argument, "Not enough bytes to read a collection");
  return element;
}

Result<void> nothing_left(const base::Decoder& in) {
  if (in.remaining() == 0) return {};
  return Error(Errc::invalid_argument, "Unexpected extraneous bytes after collection value");
}

Bytes compose(std::size_t count, std::span<const Bytes> elements) {
  Buffer out;
  Encoder encoder(out);
  encoder.u32_be(static_cast<std::uint32_t>(count));
  for (const Bytes& element : elements) put_element(encoder, element);
  return std::move(out).freeze();
}

}  // namespace

Bytes boolean_value(bool value) {
  return Bytes::of_static(value ? std::string_view("\1", 1) : std::string_view("\0", 1));
}
Bytes tinyint_value(std::int8_t value) {
  return big_endian(static_cast<std::uint8_t>(value));
}
Bytes smallint_value(std::int16_t value) {
  return big_endian(static_cast<std::uint16_t>(value));
}
Bytes int_value(std::int32_t value) {
  return big_endian(static_cast<std::uint32_t>(value));
}
Bytes bigint_value(std::int64_t value) {
  return big_endian(static_cast<std::uint64_t>(value));
}
Bytes varint_value(std::int64_t value) {
  const Bytes whole = bigint_value(value);
  return Bytes::copy_of(shortest_varint(whole));
}
Bytes float_value(float value) {
  return big_endian(std::bit_cast<std::uint32_t>(value));
}
Bytes double_value(double value) {
  return big_endian(std::bit_cast<std::uint64_t>(value));
}
Bytes text_value(std::string_view value) {
  return Bytes::copy_of(value);
}
Bytes uuid_value(const base::Uuid& value) {
  return Bytes::copy_of(value.bytes());
}
Bytes date_value(std::int64_t days_since_epoch) {
  const std::int64_t shifted = days_since_epoch + (std::int64_t{1} << 31);
  ASSERT(shifted >= 0 && shifted <= std::numeric_limits<std::uint32_t>::max());
  return big_endian(static_cast<std::uint32_t>(shifted));
}

Bytes duration_value(const Duration& value) {
  const bool none_negative = value.months >= 0 && value.days >= 0 && value.nanoseconds >= 0;
  const bool none_positive = value.months <= 0 && value.days <= 0 && value.nanoseconds <= 0;
  ASSERT(none_negative || none_positive);
  Buffer out;
  put_vint(out, value.months);
  put_vint(out, value.days);
  put_vint(out, value.nanoseconds);
  return std::move(out).freeze();
}

Result<bool> read_boolean(ByteView bytes) {
  TRY(const auto byte, read_as<std::uint8_t>(bytes));
  return byte != 0;
}
Result<std::int8_t> read_tinyint(ByteView bytes) {
  TRY(const auto value, read_as<std::uint8_t>(bytes));
  return static_cast<std::int8_t>(value);
}
Result<std::int16_t> read_smallint(ByteView bytes) {
  TRY(const auto value, read_as<std::uint16_t>(bytes));
  return static_cast<std::int16_t>(value);
}
Result<std::int32_t> read_int(ByteView bytes) {
  TRY(const auto value, read_as<std::uint32_t>(bytes));
  return static_cast<std::int32_t>(value);
}
Result<std::int64_t> read_bigint(ByteView bytes) {
  TRY(const auto value, read_as<std::uint64_t>(bytes));
  return static_cast<std::int64_t>(value);
}
Result<float> read_float(ByteView bytes) {
  TRY(const auto value, read_as<std::uint32_t>(bytes));
  return std::bit_cast<float>(value);
}
Result<double> read_double(ByteView bytes) {
  TRY(const auto value, read_as<std::uint64_t>(bytes));
  return std::bit_cast<double>(value);
}
Result<base::Uuid> read_uuid(ByteView bytes) {
  if (bytes.size() != base::Uuid::kSize) return wrong_size(base::Uuid::kSize, bytes.size());
  base::Uuid::Octets octets{};
  std::ranges::copy(bytes, octets.begin());
  return base::Uuid(octets);
}

Result<Duration> read_duration(ByteView bytes) {
  constexpr std::size_t kSizeMin = 3;
  if (bytes.size() < kSizeMin) {
    return Error(Errc::invalid_argument, "Expected at least {} bytes for a duration ({})", kSizeMin,
                 bytes.size());
  }
  base::Decoder in(bytes);
  const std::int64_t months = get_vint(in);
  const std::int64_t days = get_vint(in);
  const std::int64_t nanoseconds = get_vint(in);
  TRY_VOID(in.finish());
  constexpr std::int64_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  if (months < kMin || months > kMax) {
    return Error(Errc::invalid_argument,
                 "The duration months must be a 32 bits integer but was: {}", months);
  }
  if (days < kMin || days > kMax) {
    return Error(Errc::invalid_argument, "The duration days must be a 32 bits integer but was: {}",
                 days);
  }
  const bool none_negative = months >= 0 && days >= 0 && nanoseconds >= 0;
  const bool none_positive = months <= 0 && days <= 0 && nanoseconds <= 0;
  if (!none_negative && !none_positive) {
    return Error(Errc::invalid_argument,
                 "The duration months, days and nanoseconds must be all of the same sign "
                 "({}, {}, {})",
                 months, days, nanoseconds);
  }
  return Duration{.months = static_cast<std::int32_t>(months),
                  .days = static_cast<std::int32_t>(days),
                  .nanoseconds = nanoseconds};
}

Bytes compose_list(std::span<const Bytes> elements) {
  return compose(elements.size(), elements);
}

Bytes compose_set(const DataType& element, std::vector<Bytes> elements) {
  const auto view_of = [](const Bytes& bytes) { return bytes.view(); };
  ASSERT(sort_and_unite(element, elements, view_of, nullptr).has_value());
  return compose_list(elements);
}

Bytes compose_map(const DataType& key, std::vector<MapEntry> entries) {
  const auto view_of = [](const MapEntry& entry) { return entry.first.view(); };
  ASSERT(sort_and_unite(key, entries, view_of, nullptr).has_value());
  std::vector<Bytes> flat;
  flat.reserve(entries.size() * 2);
  for (MapEntry& entry : entries) {
    flat.push_back(std::move(entry.first));
    flat.push_back(std::move(entry.second));
  }
  return compose(entries.size(), flat);
}

Bytes compose_tuple(std::span<const OptionalBytes> elements) {
  Buffer out;
  Encoder encoder(out);
  for (const OptionalBytes& element : elements) {
    if (element) {
      put_element(encoder, *element);
    } else {
      encoder.u32_be(std::numeric_limits<std::uint32_t>::max());
    }
  }
  return std::move(out).freeze();
}

Result<std::vector<ByteView>> split_collection(ByteView bytes, base::Pace* pace) {
  base::Decoder in(bytes);
  TRY(const std::size_t count, element_count(in, 1));
  std::vector<ByteView> elements;
  elements.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    TRY_VOID(base::Pace::turn(pace));
    TRY(const ByteView element, next_element(in));
    elements.push_back(element);
  }
  TRY_VOID(nothing_left(in));
  return elements;
}

Result<std::vector<MapEntryView>> split_map(ByteView bytes, base::Pace* pace) {
  base::Decoder in(bytes);
  TRY(const std::size_t count, element_count(in, 2));
  std::vector<MapEntryView> entries;
  entries.reserve(count);
  for (std::size_t index = 0; index < count; ++index) {
    TRY_VOID(base::Pace::turn(pace));
    TRY(const ByteView key, next_element(in));
    TRY(const ByteView mapped, next_element(in));
    entries.emplace_back(key, mapped);
  }
  TRY_VOID(nothing_left(in));
  return entries;
}

std::size_t count_of_collection(ByteView bytes) {
  const auto count = read_int(bytes.first(std::min(bytes.size(), sizeof(std::int32_t))));
  return count ? static_cast<std::size_t>(std::max(*count, 0)) : 0;
}

Result<std::vector<OptionalView>> split_tuple(std::size_t element_count, ByteView bytes) {
  base::Decoder in(bytes);
  std::vector<OptionalView> elements(element_count);
  for (std::size_t index = 0; index < element_count && in.remaining() > 0; ++index) {
    const auto size = static_cast<std::int32_t>(in.u32_be());
    if (!in.ok()) {
      return Error(Errc::invalid_argument, "Not enough bytes to read size of {}th component",
                   index);
    }
    if (size < 0) continue;
    elements[index] = in.raw(static_cast<std::size_t>(size));
    if (!in.ok()) {
      return Error(Errc::invalid_argument, "Not enough bytes to read {}th component", index);
    }
  }
  if (in.remaining() > 0) {
    return Error(Errc::invalid_argument, "Expected {} {} but got more", element_count,
                 element_count == 1 ? "value" : "values");
  }
  return elements;
}

Bytes compose_vector(std::span<const Bytes> elements) {
  base::Buffer out(elements.size() * kVectorElementSize);
  for (const Bytes& element : elements) {
    ASSERT(element.size() == kVectorElementSize);
    out.append(element.view());
  }
  return std::move(out).freeze();
}

std::vector<ByteView> split_vector(ByteView bytes) {
  std::vector<ByteView> elements;
  if (bytes.size() % kVectorElementSize != 0) return elements;
  elements.reserve(bytes.size() / kVectorElementSize);
  for (std::size_t at = 0; at < bytes.size(); at += kVectorElementSize) {
    elements.push_back(bytes.subspan(at, kVectorElementSize));
  }
  return elements;
}

}  // namespace helenus::model
