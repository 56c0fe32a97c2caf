#include "storage/mutations/mutation_record.h"

#include "base/codec.h"
#include "causality/codec.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint8_t kVersion = 1;

}  // namespace

std::size_t encode_mutation(TabletId tablet, Replication replication, base::ByteView partition,
                            const causality::Delta& delta, base::Buffer& out) {
  base::Encoder encoder(out);
  encoder.u8(kVersion);
  encoder.u8(static_cast<std::uint8_t>(replication));
  encoder.varint(tablet.value());
  encoder.prefixed(partition);
  const std::size_t delta_offset = out.size();
  causality::encode(encoder, delta);
  return delta_offset;
}

Result<MutationRecord> decode_mutation(const base::Bytes& record) {
  base::Decoder in(record);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kVersion) {
    return Error(Errc::unsupported, "mutation record of version {}", version);
  }
  const std::uint8_t replication = in.u8();
  if (replication > static_cast<std::uint8_t>(Replication::none))
    in.fail("a replication of no known kind");
  const TabletId tablet{in.varint()};
  const base::ByteView partition = in.prefixed();
  TRY_VOID(in.status());
  if (partition.empty() || partition.size() > kRowKeySizeMax) {
    return Error(Errc::corrupt, "a partition key of {} bytes", partition.size());
  }
  return MutationRecord{.tablet = tablet,
                        .replication = static_cast<Replication>(replication),
                        .partition = partition,
                        .delta = record.slice(in.offset())};
}

}  // namespace helenus::storage
