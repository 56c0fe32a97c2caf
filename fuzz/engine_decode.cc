// Fuzzes what the engine reads of its own. The first byte chooses what the others are:
//
//   0 a mutation record, 1 the metadata of an sstable, 2 a manifest, which gets a right checksum
//     first, 3 the metadata of a mutation file, 4 an entry of an sstable
// What decodes must encode to the very bytes it came from.
#include <cstddef>
#include <cstdint>

#include "base/codec.h"
#include "base/crc32c.h"
#include "causality/codec.h"
#include "storage/entry/entry.h"
#include "storage/manifest/knowledge.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_file.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {
namespace {

using base::Bytes;
using base::ByteView;

void check_mutation(ByteView input) {
  const Bytes bytes = Bytes::copy_of(input);
  const auto record = decode_mutation(bytes);
  if (!record) return;
  const auto delta = causality::decode_delta(record->delta);
  if (!delta) return;
  base::Buffer again;
  encode_mutation(record->tablet, record->replication, record->partition, *delta, again);
  ASSERT(base::equal(again.view(), input));
}

void check_metadata(ByteView input) {
  const auto metadata = decode_sstable_metadata(Bytes::copy_of(input));
  if (metadata) ASSERT(base::equal(encode(*metadata), input));
}

void check_mutation_file_metadata(ByteView input) {
  const auto metadata = decode_mutation_file_metadata(Bytes::copy_of(input));
  if (metadata) ASSERT(base::equal(encode(*metadata), input));
  const auto indexed = decode_operation_key(input);
  if (indexed) ASSERT(base::equal(operation_key(*indexed), input));
}

void check_entry(ByteView input) {
  const auto entry = decode_entry(Bytes::copy_of(input));
  if (!entry) return;
  base::Buffer again;
  base::Encoder out(again);
  encode(out, *entry);
  ASSERT(base::equal(again.view(), input));
}

void check_manifest(ByteView input) {
  base::Buffer bytes;
  bytes.append(input);
  base::Encoder(bytes).u32_le(base::crc32c(input));
  const auto manifest = decode_manifest(Bytes::copy_of(bytes.view()));
  if (!manifest) return;
  // One of an earlier version is written in the present one.
  constexpr std::size_t kVersionAt = 8;
  const Bytes again = encode(*manifest);
  if (again.view()[kVersionAt] != input[kVersionAt]) return;
  ASSERT(base::equal(again, bytes.view()));
}

}  // namespace
}  // namespace helenus::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::storage;
  if (size < 1) return 0;
  const helenus::base::ByteView input = std::as_bytes(std::span(data, size)).subspan(1);
  switch (data[0] % 5) {
    case 0:
      check_mutation(input);
      break;
    case 1:
      check_metadata(input);
      break;
    case 3:
      check_mutation_file_metadata(input);
      break;
    case 4:
      check_entry(input);
      break;
    default:
      check_manifest(input);
  }
  return 0;
}
