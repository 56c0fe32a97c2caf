// Fuzzes the files of the local store behind a sound checksum: what decodes encodes to the very
// bytes it came from.
#include "storage/local/local_store.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/crc32c.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus;
  constexpr std::string_view kName = "tables";
  const auto bytes = std::as_bytes(std::span(data, size));
  std::ignore = storage::decode_local_value(kName, bytes);
  base::Buffer sound;
  base::Encoder out(sound);
  out.raw(bytes);
  out.u32_le(base::crc32c(bytes));
  const base::Bytes file = std::move(sound).freeze();
  const auto value = storage::decode_local_value(kName, file.view());
  if (!value) return 0;
  ASSERT(base::equal(storage::encode_local_value(kName, value->view()), file));
  return 0;
}
