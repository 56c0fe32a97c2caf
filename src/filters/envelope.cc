#include "filters/envelope.h"

#include <utility>

#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::filters {

namespace {

using base::Errc;
using base::Error;

constexpr std::uint32_t kMagic = 0x544c4648;  // the letters HFLT
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kBodyBytesOffset = 40;
constexpr std::size_t kChecksummedBytes = 60;

bool is_known(std::uint8_t kind) {
  switch (Kind{kind}) {
    case Kind::bloom:
    case Kind::blocked_bloom:
    case Kind::cuckoo:
    case Kind::adaptive_cuckoo:
    case Kind::resident_keys:
    case Kind::forgetful_bloom:
    case Kind::sliced_forgetful:
    case Kind::adaptive_forgetful:
    case Kind::dynamic_cuckoo:
    case Kind::consistent_cuckoo:
      return true;
  }
  return false;
}

}  // namespace

base::Bytes seal(const Envelope& envelope, base::ByteView body) {
  base::Buffer out(kEnvelopeBytes + body.size(), kEnvelopeBytes);
  base::Encoder encoder(out);
  encoder.u32_le(kMagic);
  encoder.u8(kVersion);
  encoder.u8(std::to_underlying(envelope.kind));
  encoder.u8(envelope.width);
  encoder.u8(0);
  encoder.u64_le(envelope.size);
  encoder.u64_le(envelope.capacity);
  encoder.u64_le(envelope.units);
  encoder.u64_le(envelope.population);
  encoder.u64_le(body.size());
  encoder.u64_le(0);
  encoder.u32_le(base::crc32c(body));
  encoder.u32_le(base::crc32c(out.view()));
  ASSERT(out.size() == kEnvelopeBytes);
  encoder.raw(body);
  return std::move(out).freeze();
}

base::Result<std::size_t> sealed_bytes(base::ByteView encoded) {
  if (encoded.size() < kEnvelopeBytes) {
    return Error(Errc::corrupt, "a filter of {} bytes", encoded.size());
  }
  const auto body_bytes = base::load_le<std::uint64_t>(encoded.data() + kBodyBytesOffset);
  if (body_bytes > encoded.size() - kEnvelopeBytes) {
    return Error(Errc::corrupt, "a filter's body of {} bytes should have {}",
                 encoded.size() - kEnvelopeBytes, body_bytes);
  }
  return kEnvelopeBytes + static_cast<std::size_t>(body_bytes);
}

base::Result<Opened> unseal(const base::Bytes& encoded) {
  if (encoded.size() < kEnvelopeBytes) {
    return Error(Errc::corrupt, "a filter of {} bytes", encoded.size());
  }
  base::Decoder in(encoded.view().first(kEnvelopeBytes));
  if (in.u32_le() != kMagic) return Error(Errc::corrupt, std::string("not a filter"));
  const std::uint32_t header_crc = base::crc32c(encoded.view().first(kChecksummedBytes));
  if (header_crc != base::load_le<std::uint32_t>(encoded.data() + kChecksummedBytes)) {
    return Error(Errc::corrupt, std::string("a filter's header fails its checksum"));
  }
  if (const std::uint8_t version = in.u8(); version != kVersion) {
    return Error(Errc::unsupported, "version {} of a filter", version);
  }
  const std::uint8_t kind = in.u8();
  if (!is_known(kind)) return Error(Errc::unsupported, "a filter of kind {}", kind);
  Envelope envelope{.kind = Kind{kind}, .width = in.u8()};
  std::uint64_t zeros = in.u8();
  envelope.size = in.u64_le();
  envelope.capacity = in.u64_le();
  envelope.units = in.u64_le();
  envelope.population = in.u64_le();
  const std::uint64_t body_bytes = in.u64_le();
  zeros |= in.u64_le();
  if (zeros != 0) return Error(Errc::corrupt, std::string("a filter's reserved bytes are used"));
  if (body_bytes != encoded.size() - kEnvelopeBytes) {
    return Error(Errc::corrupt, "a filter's body of {} bytes should have {}",
                 encoded.size() - kEnvelopeBytes, body_bytes);
  }
  base::Bytes body = encoded.slice(kEnvelopeBytes);
  if (base::crc32c(body) != in.u32_le()) {
    return Error(Errc::corrupt, std::string("a filter's body fails its checksum"));
  }
  return Opened{.envelope = envelope, .body = std::move(body)};
}

base::Result<Opened> unseal(const base::Bytes& encoded, Kind kind) {
  TRY(Opened opened, unseal(encoded));
  if (opened.envelope.kind != kind) {
    return Error(Errc::invalid_argument, "a filter of kind {} where kind {} is wanted",
                 std::to_underlying(opened.envelope.kind), std::to_underlying(kind));
  }
  return opened;
}

}  // namespace helenus::filters
