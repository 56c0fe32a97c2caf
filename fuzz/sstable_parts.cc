// Fuzzes what an sstable is opened by. The first byte says what follows: 0 a header, 1 a footer
// (both without their checksum, which is added), 2 statistics, 3 a filter. What decodes must encode
// to the bytes it came from; a filter must answer.
#include <cstddef>
#include <cstdint>

#include "base/codec.h"
#include "base/crc32c.h"
#include "storage/sstable/sstable_filter.h"
#include "storage/sstable/sstable_format.h"

namespace helenus::storage {
namespace {

base::Bytes sealed(base::ByteView bytes) {
  base::Buffer out;
  out.append(bytes);
  base::Encoder(out).u32_le(base::crc32c(bytes));
  return std::move(out).freeze();
}

template <class Part>
void check(const base::Bytes& bytes) {
  const auto part = Part::decode(bytes);
  if (!part) return;
  base::Buffer again;
  part->encode(again);
  ASSERT(base::equal(again.view(), bytes));
}

}  // namespace
}  // namespace helenus::storage

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  using namespace helenus::storage;
  if (size == 0) return 0;
  const base::ByteView input = std::as_bytes(std::span(data + 1, size - 1));
  switch (data[0] % 4) {
    case 0:
      check<SstableHeader>(sealed(input));
      break;
    case 1:
      check<SstableFooter>(sealed(input));
      break;
    case 2:
      check<SstableStatistics>(base::Bytes::copy_of(input));
      break;
    default:
      if (const auto filter = SstableFilter::decode(input)) {
        (void)filter->may_contain(size);
        ASSERT(filter->memory_bytes() <= input.size());
      }
  }
  return 0;
}
