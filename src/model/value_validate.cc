// What is a value of a type, and its stored form. Messages are Cassandra's.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/codec.h"
#include "model/sort_elements.h"
#include "model/utf8.h"
#include "model/value.h"

namespace helenus::model {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::int64_t kNanosecondsPerDay = 86'400'000'000'000;

template <class... Args>
Error invalid(fmt::format_string<Args...> format, Args&&... args) {
  return Error(Errc::invalid_argument, fmt::format(format, std::forward<Args>(args)...));
}

Result<void> validate_size(ByteView bytes, std::size_t size, std::string_view what) {
  if (bytes.empty() || bytes.size() == size) return {};
  return invalid("Expected {} or 0 byte {} ({})", size, what, bytes.size());
}

Result<void> validate_exact_size(ByteView bytes, std::size_t size, std::string_view what) {
  if (bytes.size() == size) return {};
  return invalid("Expected {} {} ({})", size, what, bytes.size());
}

Result<void> validate_time(ByteView bytes) {
  TRY_VOID(validate_exact_size(bytes, 8, "byte long for time"));
  const std::uint64_t nanoseconds = base::load_be<std::uint64_t>(bytes.data());
  if (nanoseconds < kNanosecondsPerDay) return {};
  return invalid("Input long out of bounds: {}", static_cast<std::int64_t>(nanoseconds));
}

Result<void> validate_uuid(ByteView bytes, bool time_based) {
  if (bytes.empty()) return {};
  if (bytes.size() != base::Uuid::kSize) {
    return invalid("UUID should be 16 or 0 bytes ({})", bytes.size());
  }
  if (time_based && std::to_integer<unsigned>(bytes[6]) >> 4 != 1) {
    return invalid("Invalid version for TimeUUID type.");
  }
  return {};
}

Result<void> validate_digits(ByteView digits) {
  if (digits.size() <= kVarintBytesMax) return {};
  return invalid("A number of {} bytes is longer than {}", digits.size(), kVarintBytesMax);
}

Result<void> validate_native(TypeKind kind, ByteView bytes) {
  switch (kind) {
    case TypeKind::ascii:
      return is_ascii(bytes) ? Result<void>() : invalid("Invalid byte for ascii");
    case TypeKind::varchar:
      return is_utf8(bytes) ? Result<void>() : invalid("String didn't validate.");
    case TypeKind::blob:
      return {};
    case TypeKind::boolean:
      return validate_size(bytes, 1, "value");
    case TypeKind::tinyint:
      return validate_exact_size(bytes, 1, "byte for a tinyint");
    case TypeKind::smallint:
      return validate_exact_size(bytes, 2, "bytes for a smallint");
    case TypeKind::int_:
      return validate_size(bytes, 4, "int");
    case TypeKind::bigint:
    case TypeKind::counter:
      return validate_size(bytes, 8, "long");
    case TypeKind::timestamp:
      return validate_size(bytes, 8, "long for date");
    case TypeKind::date:
      return validate_exact_size(bytes, 4, "byte long for date");
    case TypeKind::time:
      return validate_time(bytes);
    case TypeKind::float_:
      return validate_size(bytes, 4, "value for a float");
    case TypeKind::double_:
      return validate_size(bytes, 8, "value for a double");
    case TypeKind::uuid:
      return validate_uuid(bytes, false);
    case TypeKind::timeuuid:
      return validate_uuid(bytes, true);
    case TypeKind::inet:
      if (bytes.empty() || bytes.size() == 4 || bytes.size() == 16) return {};
      return invalid("Expected 4 or 16 byte inetaddress; got {}", bytes.size());
    case TypeKind::varint:
      return validate_digits(bytes);
    case TypeKind::decimal:
      if (bytes.empty()) return {};
      if (bytes.size() <= 4) return invalid("Expected 0 or at least 5 bytes ({})", bytes.size());
      return validate_digits(bytes.subspan(4));
    case TypeKind::duration: {
      TRY([[maybe_unused]] const Duration duration, read_duration(bytes));
      return {};
    }
    case TypeKind::list:
    case TypeKind::map:
    case TypeKind::set:
    case TypeKind::udt:
    case TypeKind::tuple:
    case TypeKind::vector:
      break;
  }
  UNREACHABLE("type {}", static_cast<unsigned>(kind));
}

Result<void> validate_vector(const DataType& type, ByteView bytes) {
  const std::size_t wanted = type.dimension() * kVectorElementSize;
  if (bytes.empty()) return invalid("Invalid empty vector value");
  if (bytes.size() < wanted) return invalid("Not enough bytes to read a {}", type.to_cql());
  if (bytes.size() == wanted) return {};
  return invalid("Unexpected {} extraneous bytes after {} value", bytes.size() - wanted,
                 type.to_cql());
}

// Whether sets and maps within values of this type could be out of order.
bool can_be_unsorted(const DataType& type) {
  return type.mentions(TypeKind::set) || type.mentions(TypeKind::map);
}

Result<Bytes> normalise_part(const DataType& type, ByteView bytes, base::Pace* pace) {
  TRY_VOID(base::Pace::turn(pace));
  // A copy costs no more than the composition it becomes a part of.
  return normalise(type, Bytes::copy_of(bytes), pace);
}

Result<void> put_part(base::Encoder& out, ByteView part, base::Pace* pace) {
  out.u32_be(static_cast<std::uint32_t>(part.size()));
  out.raw(part);
  return base::Pace::turn(pace);
}

Result<Bytes> normalise_collection(const DataType& type, ByteView bytes, base::Pace* pace) {
  TRY(auto views, split_collection(bytes, pace));
  std::vector<Bytes> kept;
  if (can_be_unsorted(type.element())) {
    kept.reserve(views.size());
    for (ByteView& view : views) {
      TRY(Bytes element, normalise_part(type.element(), view, pace));
      view = kept.emplace_back(std::move(element)).view();
    }
  }
  if (type.kind() == TypeKind::set) {
    TRY_VOID(sort_and_unite(type.element(), views, [](ByteView view) { return view; }, pace));
  }
  base::Buffer buffer(bytes.size());
  base::Encoder out(buffer);
  out.u32_be(static_cast<std::uint32_t>(views.size()));
  for (const ByteView view : views) TRY_VOID(put_part(out, view, pace));
  return std::move(buffer).freeze();
}

Result<Bytes> normalise_map(const DataType& type, ByteView bytes, base::Pace* pace) {
  TRY(auto views, split_map(bytes, pace));
  std::vector<Bytes> kept;
  if (can_be_unsorted(type.key()) || can_be_unsorted(type.mapped())) {
    kept.reserve(2 * views.size());
    for (auto& [key_view, mapped_view] : views) {
      TRY(Bytes key, normalise_part(type.key(), key_view, pace));
      TRY(Bytes mapped, normalise_part(type.mapped(), mapped_view, pace));
      key_view = kept.emplace_back(std::move(key)).view();
      mapped_view = kept.emplace_back(std::move(mapped)).view();
    }
  }
  TRY_VOID(sort_and_unite(
      type.key(), views, [](const MapEntryView& entry) { return entry.first; }, pace));
  base::Buffer buffer(bytes.size());
  base::Encoder out(buffer);
  out.u32_be(static_cast<std::uint32_t>(views.size()));
  for (const auto& [key, mapped] : views) {
    TRY_VOID(put_part(out, key, pace));
    TRY_VOID(put_part(out, mapped, pace));
  }
  return std::move(buffer).freeze();
}

// Elements that are missing at the end stay so unless another moves: written out as nulls they are
// equal, but a tuple of no bytes at all is not.
Result<Bytes> normalise_tuple(const DataType& type, const Bytes& bytes, base::Pace* pace) {
  TRY(const auto views, split_tuple(type.parts().size(), bytes));
  std::vector<OptionalBytes> elements(views.size());
  bool changed = false;
  for (std::size_t index = 0; index < views.size(); ++index) {
    if (!views[index]) continue;
    TRY(elements[index], normalise_part(type.parts()[index], *views[index], pace));
    changed = changed || !base::equal(*elements[index], *views[index]);
  }
  return changed ? compose_tuple(elements) : bytes;
}

}  // namespace

Result<void> validate(const DataType& type, ByteView bytes, base::Pace* pace) {
  switch (type.kind()) {
    case TypeKind::list:
    case TypeKind::set: {
      TRY(const auto elements, split_collection(bytes, pace));
      for (const ByteView element : elements) {
        TRY_VOID(base::Pace::turn(pace));
        TRY_VOID(validate(type.element(), element, pace));
      }
      return {};
    }
    case TypeKind::map: {
      TRY(const auto entries, split_map(bytes, pace));
      for (const auto& [key, mapped] : entries) {
        TRY_VOID(base::Pace::turn(pace));
        TRY_VOID(validate(type.key(), key, pace));
        TRY_VOID(validate(type.mapped(), mapped, pace));
      }
      return {};
    }
    case TypeKind::tuple:
    case TypeKind::udt: {
      TRY(const auto elements, split_tuple(type.parts().size(), bytes));
      for (std::size_t index = 0; index < elements.size(); ++index) {
        if (elements[index]) TRY_VOID(validate(type.parts()[index], *elements[index], pace));
      }
      return {};
    }
    case TypeKind::vector:
      return validate_vector(type, bytes);
    default:
      return validate_native(type.kind(), bytes);
  }
}

Result<Bytes> normalise(const DataType& type, const Bytes& bytes, base::Pace* pace) {
  TRY_VOID(validate(type, bytes, pace));
  if (!can_be_unsorted(type)) return bytes;
  TRY(Bytes sorted, type.kind() == TypeKind::map ? normalise_map(type, bytes, pace)
                    : type.is_collection()       ? normalise_collection(type, bytes, pace)
                                                 : normalise_tuple(type, bytes, pace));
  return sorted == bytes ? bytes : sorted;
}

bool is_ordered(const DataType& type) {
  return !type.mentions(TypeKind::duration) && !type.mentions(TypeKind::vector);
}

}  // namespace helenus::model
