#include "storage/mutation_record.h"

#include "base/codec.h"
#include "causality/codec.h"
#include "storage/row_key.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint8_t kMutationVersion = 1;

}  // namespace

std::size_t encode_mutation(TabletId tablet, base::ByteView partition,
                            const causality::Delta& delta, base::Buffer& out) {
  base::Encoder encoder(out);
  encoder.u8(kMutationVersion);
  encoder.varint(tablet.value());
  encoder.prefixed(partition);
  const std::size_t delta_offset = out.size();
  causality::encode(encoder, delta);
  return delta_offset;
}

Result<MutationRecord> decode_mutation(const base::Bytes& record) {
  base::Decoder in(record);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kMutationVersion) {
    return Error(Errc::unsupported, "mutation record of version {}", version);
  }
  const TabletId tablet{in.varint()};
  const base::ByteView partition = in.prefixed();
  TRY_VOID(in.status());
  if (partition.empty() || partition.size() > kRowKeySizeMax) {
    return Error(Errc::corrupt, "a partition key of {} bytes", partition.size());
  }
  return MutationRecord{
      .tablet = tablet, .partition = partition, .delta = record.slice(in.offset())};
}

}  // namespace helenus::storage
