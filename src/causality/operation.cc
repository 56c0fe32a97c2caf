#include "causality/operation.h"

#include <algorithm>

#include "base/codec.h"

namespace helenus::causality {

namespace {

// From 15 October 1582, where version 1 begins to count, to 1970, in its steps of 100 ns.
constexpr std::int64_t kStepsTo1970 = 0x01b2'1dd2'1381'4000;
constexpr std::int64_t kStepsPerMillisecond = 10'000;

unsigned version_of(const OperationId& id) {
  return std::to_integer<unsigned>(id[6]) >> 4;
}

}  // namespace

base::Result<OperationId> parse_operation_id(base::ByteView bytes) {
  OperationId id{};
  if (bytes.size() != id.size()) {
    return base::Error(base::Errc::invalid_argument,
                       "an operation id has 16 bytes, and this one has {}", bytes.size());
  }
  std::ranges::copy(bytes, id.begin());
  if (const unsigned version = version_of(id); version != 1 && version != 7) {
    return base::Error(base::Errc::invalid_argument,
                       "an operation id is a UUID of version 7 or 1, which carry a time; this one "
                       "is of version {}",
                       version);
  }
  return id;
}

OperationTime time_of(const OperationId& operation) {
  base::Decoder in(operation);
  if (version_of(operation) == 1) {
    const std::uint64_t low = in.u32_be();
    const std::uint64_t middle = in.u16_be();
    const std::uint64_t high = in.u16_be() & 0x0fffU;
    const auto steps = static_cast<std::int64_t>(high << 48 | middle << 32 | low);
    return OperationTime{(steps - kStepsTo1970) / kStepsPerMillisecond};
  }
  return OperationTime{static_cast<std::int64_t>(in.u64_be() >> 16)};
}

OperationId nth(const OperationId& request, std::uint32_t ordinal) {
  // Odd, so that ordinals that differ give numbers that differ. The two bits in front are the
  // UUID's variant.
  constexpr std::uint64_t kOdd = 0x9e37'79b9'7f4a'7c15;
  constexpr std::uint64_t kFree = ~std::uint64_t{0} >> 2;
  OperationId id = request;
  std::uint64_t tail = base::load_be<std::uint64_t>(id.data() + 8);
  tail ^= (ordinal * kOdd) & kFree;
  base::store_be(id.data() + 8, tail);
  return id;
}

}  // namespace helenus::causality
