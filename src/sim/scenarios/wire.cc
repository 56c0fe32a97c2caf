#include "sim/scenarios/wire.h"

#include <array>
#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

constexpr std::size_t kHeaderSize = 8;

Task<Result<void>> read_fully(runtime::Stream& stream, base::MutableByteView into, Until until) {
  while (!into.empty()) {
    CO_TRY(const std::size_t count, co_await stream.read(into, until));
    if (count == 0) co_return Error(Errc::closed);
    into = into.subspan(count);
  }
  co_return {};
}

}  // namespace

Task<Result<void>> write_frame(runtime::Stream& stream, base::Bytes payload, Until until) {
  ASSERT(payload.size() <= kFrameSizeMax);
  std::array<std::byte, kHeaderSize> header;
  base::store_le(header.data(), static_cast<std::uint32_t>(payload.size()));
  base::store_le(header.data() + 4, base::crc32c(payload));
  const std::array<base::ByteView, 2> pieces{header, payload};
  co_return co_await stream.write(pieces, std::move(until));
}

Task<Result<base::Bytes>> read_frame(runtime::Stream& stream, Until until) {
  std::array<std::byte, kHeaderSize> header;
  CO_TRY_VOID(co_await read_fully(stream, header, until));
  const auto size = base::load_le<std::uint32_t>(header.data());
  if (size > kFrameSizeMax) co_return Error(Errc::corrupt, "a frame of {} bytes", size);
  base::Buffer payload(size);
  const auto into = payload.extend(size);
  CO_TRY_VOID(co_await read_fully(stream, into, until));
  if (base::crc32c(payload.view()) != base::load_le<std::uint32_t>(header.data() + 4)) {
    co_return Error(Errc::corrupt, "a frame fails its checksum");
  }
  co_return std::move(payload).freeze();
}

}  // namespace helenus::sim
