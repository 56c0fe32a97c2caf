// The layout of a column, here ascending; a descending one has all its bits turned over.
//
//   text, ascii, blob, inet   the bytes, 0x00 as 0x00 0xff; then 0x00 0x01; if descending, kValue
//                             before them
//   every other type          kEmpty, or kValue and then:
//     boolean                 0 or 1
//     signed integers         big-endian, sign bit flipped; date and time as they are
//     float, double           big-endian; the sign bit flipped if positive, all bits if negative
//     uuid, timeuuid          as uuid_order.h has them
//     varint                  0x80 + size, or 0x7f - size if negative (sizes above 0x7e: 0xff or
//                             0x00, and the size, turned over if negative, as u32); then the
//                             shortest two's complement
//     decimal                 sign (0, 1 for zero, 2); unless zero: exponent as i64 with its sign
//                             bit flipped, then each digit plus 1, and 0; all this behind the sign
//                             turned over if negative
//     list, set               the elements, then kEnd
//     map                     keys and values alternating, then kEnd
//     tuple, user type        the elements up to the last that is not null, then kEnd
//   an element within         kNull; or kValue and the bytes of a text as above; or the column's
//                             layout of any other type
//
// No column is all 0xff, so the successor of a prefix is within its last column. None begins with
// two zero bytes, which is where keys of elements are told by (element_key.h).
#include "model/clustering_key.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/codec.h"
#include "model/element_key.h"
#include "model/number.h"
#include "model/uuid_order.h"
#include "model/value.h"

namespace helenus::model {

using base::Buffer;
using base::Bytes;
using base::ByteView;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::byte kEnd{0};
constexpr std::byte kNull{1};
constexpr std::byte kEmpty{2};
constexpr std::byte kValue{3};

constexpr std::byte kEscape{0};
constexpr std::byte kEscapedZero{0xff};
constexpr std::byte kTextEnd{1};

constexpr std::size_t kShortVarintMax = 0x7e;

bool is_byte_string(TypeKind kind) {
  return kind == TypeKind::ascii || kind == TypeKind::varchar || kind == TypeKind::blob ||
         kind == TypeKind::inet;
}

template <class T>
constexpr T sign_bit() {
  return static_cast<T>(T{1} << (std::numeric_limits<T>::digits - 1));
}

// ---- encoding

void put_byte_string(Buffer& out, ByteView bytes) {
  while (!bytes.empty()) {
    const auto zero = std::ranges::find(bytes, kEscape);
    const auto plain = static_cast<std::size_t>(zero - bytes.begin());
    out.append(bytes.first(plain));
    bytes = bytes.subspan(plain);
    if (bytes.empty()) break;
    out.push_back(kEscape);
    out.push_back(kEscapedZero);
    bytes = bytes.subspan(1);
  }
  out.push_back(kEscape);
  out.push_back(kTextEnd);
}

template <std::unsigned_integral T>
void put_signed(Buffer& out, ByteView bytes) {
  const T word = base::load_be<T>(bytes.data()) ^ sign_bit<T>();
  base::store_be(out.extend(sizeof(T)).data(), word);
}

template <std::floating_point Float, std::unsigned_integral T>
void put_float(Buffer& out, ByteView bytes) {
  T word = base::load_be<T>(bytes.data());
  const auto value = std::bit_cast<Float>(word);
  if (std::isnan(value)) word = std::bit_cast<T>(std::numeric_limits<Float>::quiet_NaN());
  word = (word & sign_bit<T>()) != 0 ? static_cast<T>(~word) : word | sign_bit<T>();
  base::store_be(out.extend(sizeof(T)).data(), word);
}

void put_varint(Buffer& out, ByteView bytes) {
  const ByteView varint = shortest_varint(bytes);
  const bool negative = (varint[0] & std::byte{0x80}) != std::byte{0};
  const auto size = static_cast<std::uint32_t>(varint.size());
  if (size <= kShortVarintMax) {
    out.push_back(std::byte(negative ? 0x7f - size : 0x80 + size));
  } else {
    out.push_back(std::byte(negative ? 0x00 : 0xff));
    Encoder(out).u32_be(negative ? ~size : size);
  }
  out.append(varint);
}

void put_decimal(Buffer& out, ByteView bytes) {
  const DecimalValue value = read_decimal(bytes);
  if (value.digits.empty()) return out.push_back(std::byte{1});
  out.push_back(std::byte(value.negative ? 0 : 2));
  const std::size_t from = out.size();
  Encoder(out).u64_be(static_cast<std::uint64_t>(value.exponent) ^ sign_bit<std::uint64_t>());
  for (const char digit : value.digits) out.push_back(std::byte(digit - '0' + 1));
  out.push_back(kEnd);
  if (!value.negative) return;
  for (std::byte& byte : out.mutable_view().subspan(from)) byte = ~byte;
}

void put_value(Buffer& out, const DataType& type, ByteView bytes);

void put_element(Buffer& out, const DataType& type, const OptionalView& element) {
  if (!element) return out.push_back(kNull);
  if (is_byte_string(type.kind())) out.push_back(kValue);
  put_value(out, type, *element);
}

void put_tuple(Buffer& out, const DataType& type, ByteView bytes) {
  const auto parts = type.parts();
  const auto split = split_tuple(parts.size(), bytes);
  std::size_t count = split->size();
  while (count > 0 && !(*split)[count - 1]) --count;
  for (std::size_t index = 0; index < count; ++index) {
    put_element(out, parts[index], (*split)[index]);
  }
  out.push_back(kEnd);
}

// Requires: validated; not empty.
void put_present(Buffer& out, const DataType& type, ByteView bytes) {
  switch (type.kind()) {
    case TypeKind::boolean:
      return out.push_back(std::byte(bytes[0] != std::byte{0} ? 1 : 0));
    case TypeKind::tinyint:
      return put_signed<std::uint8_t>(out, bytes);
    case TypeKind::smallint:
      return put_signed<std::uint16_t>(out, bytes);
    case TypeKind::int_:
      return put_signed<std::uint32_t>(out, bytes);
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::timestamp:
      return put_signed<std::uint64_t>(out, bytes);
    case TypeKind::date:
    case TypeKind::time:
      return out.append(bytes);
    case TypeKind::float_:
      return put_float<float, std::uint32_t>(out, bytes);
    case TypeKind::double_:
      return put_float<double, std::uint64_t>(out, bytes);
    case TypeKind::uuid:
      return out.append(ByteView(order_of_uuid(bytes)));
    case TypeKind::timeuuid:
      return out.append(ByteView(order_of_timeuuid(bytes)));
    case TypeKind::varint:
      return put_varint(out, bytes);
    case TypeKind::decimal:
      return put_decimal(out, bytes);
    case TypeKind::list:
    case TypeKind::set:
      for (const ByteView element : *split_collection(bytes)) {
        put_element(out, type.element(), element);
      }
      return out.push_back(kEnd);
    case TypeKind::map:
      for (const auto& [key, mapped] : *split_map(bytes)) {
        put_element(out, type.key(), key);
        put_element(out, type.mapped(), mapped);
      }
      return out.push_back(kEnd);
    case TypeKind::tuple:
    case TypeKind::udt:
      return put_tuple(out, type, bytes);
    case TypeKind::ascii:
    case TypeKind::varchar:
    case TypeKind::blob:
    case TypeKind::inet:
    case TypeKind::duration:
    case TypeKind::vector:
      break;
  }
  UNREACHABLE("{} in a clustering key", type.to_cql());
}

void put_value(Buffer& out, const DataType& type, ByteView bytes) {
  if (is_byte_string(type.kind())) return put_byte_string(out, bytes);
  if (bytes.empty()) return out.push_back(kEmpty);
  out.push_back(kValue);
  put_present(out, type, bytes);
}

Result<void> put_column(Buffer& out, const ClusteringColumn& column, ByteView value) {
  ASSERT(is_ordered(column.type) && !column.type.is_multi_cell(), "clustering by {}",
         column.type.to_cql());
  const std::size_t from = out.size();
  if (column.descending && is_byte_string(column.type.kind())) out.push_back(kValue);
  if (column.type.is_native()) {
    TRY_VOID(validate(column.type, value));
    put_value(out, column.type, value);
  } else {
    TRY(const Bytes sorted, normalise(column.type, Bytes::copy_of(value)));
    put_value(out, column.type, sorted);
  }
  if (!column.descending) return {};
  for (std::byte& byte : out.mutable_view().subspan(from)) byte = ~byte;
  return {};
}

// ---- decoding

// A cursor with a sticky failure, which turns the bits of descending columns over as it goes.
class KeyReader {
 public:
  explicit KeyReader(ByteView key) : rest_(key) {}

  void set_descending(bool descending) { mask_ = descending ? std::byte{0xff} : std::byte{0}; }
  // Turns over what is turned over already: the negative decimals have it of their own.
  void turn_over() { mask_ = ~mask_; }

  bool ok() const { return ok_; }
  bool done() const { return rest_.empty(); }
  std::size_t left() const { return rest_.size(); }
  void fail() {
    ok_ = false;
    rest_ = {};
  }

  std::byte next() {
    if (rest_.empty()) {
      fail();
      return kEnd;
    }
    const std::byte byte = rest_[0] ^ mask_;
    rest_ = rest_.subspan(1);
    return byte;
  }
  // The next byte without taking it; kEnd if there is none.
  std::byte peek() const { return rest_.empty() ? kEnd : rest_[0] ^ mask_; }

  // Appends `count` bytes to `out`.
  void take(std::size_t count, Buffer& out) {
    if (rest_.size() < count) return fail();
    std::ranges::transform(rest_.first(count), out.extend(count).begin(),
                           [&](std::byte byte) { return byte ^ mask_; });
    rest_ = rest_.subspan(count);
  }

  template <std::unsigned_integral T>
  T word() {
    if (rest_.size() < sizeof(T)) {
      fail();
      return 0;
    }
    const T word = base::load_be<T>(rest_.data());
    rest_ = rest_.subspan(sizeof(T));
    return mask_ == std::byte{0} ? word : static_cast<T>(~word);
  }

 private:
  ByteView rest_;
  std::byte mask_{0};
  bool ok_ = true;
};

Bytes taken(KeyReader& in, std::size_t count) {
  Buffer out(count);
  in.take(count, out);
  return std::move(out).freeze();
}

Bytes get_byte_string(KeyReader& in) {
  Buffer out;
  while (in.ok()) {
    const std::byte byte = in.next();
    if (byte != kEscape) {
      out.push_back(byte);
      continue;
    }
    const std::byte escaped = in.next();
    if (escaped == kTextEnd) return std::move(out).freeze();
    if (escaped != kEscapedZero) in.fail();
    out.push_back(kEscape);
  }
  return {};
}

template <std::unsigned_integral T>
Bytes get_signed(KeyReader& in) {
  const T word = in.word<T>() ^ sign_bit<T>();
  Buffer out(sizeof(T));
  base::store_be(out.extend(sizeof(T)).data(), word);
  return std::move(out).freeze();
}

template <std::unsigned_integral T>
Bytes get_float(KeyReader& in) {
  T word = in.word<T>();
  word = (word & sign_bit<T>()) != 0 ? word ^ sign_bit<T>() : static_cast<T>(~word);
  Buffer out(sizeof(T));
  base::store_be(out.extend(sizeof(T)).data(), word);
  return std::move(out).freeze();
}

Bytes get_varint(KeyReader& in) {
  const auto head = std::to_integer<std::uint32_t>(in.next());
  std::uint32_t size = 0;
  if (head == 0x00 || head == 0xff) {
    const auto written = in.word<std::uint32_t>();
    size = head == 0 ? ~written : written;
    if (size <= kShortVarintMax) in.fail();
  } else {
    size = head >= 0x80 ? head - 0x80 : 0x7f - head;
  }
  if (size == 0 || size > kVarintBytesMax) in.fail();
  return in.ok() ? taken(in, size) : Bytes();
}

Bytes get_decimal(KeyReader& in) {
  const auto sign = std::to_integer<unsigned>(in.next());
  if (sign == 1) return *make_decimal({});
  if (sign > 2) in.fail();
  DecimalValue value{.negative = sign == 0, .digits = {}, .exponent = 0};
  if (value.negative) in.turn_over();
  const std::uint64_t exponent = in.word<std::uint64_t>() ^ sign_bit<std::uint64_t>();
  value.exponent = static_cast<std::int64_t>(exponent);
  while (in.ok()) {
    const auto digit = std::to_integer<unsigned>(in.next());
    if (digit == 0) break;
    if (digit > 10 || value.digits.size() >= kDigitsMax) in.fail();
    value.digits.push_back(static_cast<char>('0' + digit - 1));
  }
  if (value.negative) in.turn_over();
  const bool plain =
      !value.digits.empty() && value.digits.front() != '0' && value.digits.back() != '0';
  if (!in.ok() || !plain) {
    in.fail();
    return {};
  }
  auto decimal = make_decimal(value);
  if (!decimal) in.fail();
  return decimal ? *std::move(decimal) : Bytes();
}

Bytes get_value(KeyReader& in, const DataType& type);

OptionalBytes get_element(KeyReader& in, const DataType& type) {
  if (in.peek() == kNull) {
    in.next();
    return std::nullopt;
  }
  if (is_byte_string(type.kind()) && in.next() != kValue) in.fail();
  return get_value(in, type);
}

// Elements of a collection are never null.
Bytes get_present_element(KeyReader& in, const DataType& type) {
  OptionalBytes element = get_element(in, type);
  if (!element) in.fail();
  return element ? *std::move(element) : Bytes();
}

Bytes get_collection(KeyReader& in, const DataType& type) {
  std::vector<Bytes> elements;
  while (in.ok() && in.peek() != kEnd) {
    elements.push_back(get_present_element(in, type.element()));
  }
  in.next();
  return compose_list(elements);
}

Bytes get_map(KeyReader& in, const DataType& type) {
  std::vector<MapEntry> entries;
  while (in.ok() && in.peek() != kEnd) {
    Bytes key = get_present_element(in, type.key());
    entries.emplace_back(std::move(key), get_present_element(in, type.mapped()));
  }
  in.next();
  return in.ok() ? compose_map(type.key(), std::move(entries)) : Bytes();
}

Bytes get_tuple(KeyReader& in, const DataType& type) {
  std::vector<OptionalBytes> elements;
  while (in.ok() && in.peek() != kEnd) {
    if (elements.size() == type.parts().size()) {
      in.fail();
      break;
    }
    elements.push_back(get_element(in, type.parts()[elements.size()]));
  }
  in.next();
  // Of nothing but nulls one is written out: no bytes at all would be the empty value.
  if (elements.empty()) elements.emplace_back(std::nullopt);
  return compose_tuple(elements);
}

Bytes get_present(KeyReader& in, const DataType& type) {
  switch (type.kind()) {
    case TypeKind::boolean:
    case TypeKind::date:
    case TypeKind::time:
      return taken(in, type.kind() == TypeKind::boolean ? 1
                       : type.kind() == TypeKind::date  ? 4
                                                        : 8);
    case TypeKind::tinyint:
      return get_signed<std::uint8_t>(in);
    case TypeKind::smallint:
      return get_signed<std::uint16_t>(in);
    case TypeKind::int_:
      return get_signed<std::uint32_t>(in);
    case TypeKind::bigint:
    case TypeKind::counter:
    case TypeKind::timestamp:
      return get_signed<std::uint64_t>(in);
    case TypeKind::float_:
      return get_float<std::uint32_t>(in);
    case TypeKind::double_:
      return get_float<std::uint64_t>(in);
    case TypeKind::uuid: {
      const Bytes order = taken(in, sizeof(UuidOrder));
      return in.ok() ? uuid_value(uuid_of(order)) : Bytes();
    }
    case TypeKind::timeuuid: {
      const Bytes order = taken(in, sizeof(TimeuuidOrder));
      return in.ok() ? uuid_value(timeuuid_of(order)) : Bytes();
    }
    case TypeKind::varint:
      return get_varint(in);
    case TypeKind::decimal:
      return get_decimal(in);
    case TypeKind::list:
    case TypeKind::set:
      return get_collection(in, type);
    case TypeKind::map:
      return get_map(in, type);
    case TypeKind::tuple:
    case TypeKind::udt:
      return get_tuple(in, type);
    case TypeKind::ascii:
    case TypeKind::varchar:
    case TypeKind::blob:
    case TypeKind::inet:
    case TypeKind::duration:
    case TypeKind::vector:
      break;
  }
  UNREACHABLE("{} in a clustering key", type.to_cql());
}

Bytes get_value(KeyReader& in, const DataType& type) {
  if (is_byte_string(type.kind())) return get_byte_string(in);
  const std::byte mark = in.next();
  if (mark == kEmpty) return {};
  if (mark != kValue) {
    in.fail();
    return {};
  }
  return get_present(in, type);
}

}  // namespace

namespace {

Bytes get_column(KeyReader& in, const ClusteringColumn& column) {
  in.set_descending(column.descending);
  if (column.descending && is_byte_string(column.type.kind()) && in.next() != kValue) in.fail();
  return in.ok() ? get_value(in, column.type) : Bytes();
}

}  // namespace

Result<Bytes> encode_clustering(std::span<const ClusteringColumn> columns,
                                std::span<const ByteView> values) {
  ASSERT(values.size() <= columns.size(), "{} values of {} columns", values.size(), columns.size());
  Buffer out;
  for (std::size_t index = 0; index < values.size(); ++index) {
    TRY_VOID(put_column(out, columns[index], values[index]));
  }
  return std::move(out).freeze();
}

Result<std::vector<Bytes>> decode_clustering(std::span<const ClusteringColumn> columns,
                                             ByteView key) {
  KeyReader in(key);
  std::vector<Bytes> values;
  for (const ClusteringColumn& column : columns) {
    if (in.done()) break;
    Bytes value = get_column(in, column);
    if (!in.ok() || !validate(column.type, value)) {
      return Error(Errc::corrupt, "column {} of a clustering key is no {}", values.size(),
                   column.type.to_cql());
    }
    values.push_back(std::move(value));
  }
  if (!in.done()) return Error(Errc::corrupt, "a clustering key goes on behind its columns");
  return values;
}

Result<std::size_t> row_size_of(std::span<const ClusteringColumn> columns, ByteView key) {
  // A static row's element.
  if (is_element_suffix(key)) return std::size_t{0};
  KeyReader in(key);
  for (const ClusteringColumn& column : columns) {
    if (in.done()) break;
    get_column(in, column);
    if (!in.ok()) {
      return Error(Errc::corrupt, "a clustering key with a column that is no {}",
                   column.type.to_cql());
    }
  }
  return key.size() - in.left();
}

}  // namespace helenus::model
