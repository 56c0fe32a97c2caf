// Hostile bytes against every decoder of src/causality: what decodes keeps the invariants of its
// type and encodes to the bytes it came from; the rest is an error. The first byte chooses.
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "causality/codec.h"

namespace {

using namespace helenus;  // NOLINT: a main is nobody's header

template <class T>
void comes_back(const base::Result<T>& decoded, const base::Bytes& bytes) {
  if (decoded) ASSERT(causality::encoded(*decoded) == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const base::Bytes bytes = base::Bytes::copy_of(std::as_bytes(std::span(data, size))).slice(1);
  switch (data[0] % 6) {
    case 0:
      comes_back(causality::decode_clock(bytes), bytes);
      break;
    case 1:
      comes_back(causality::decode_context(bytes), bytes);
      break;
    case 2:
      comes_back(causality::decode_cell(bytes), bytes);
      break;
    case 3:
      comes_back(causality::decode_row(bytes), bytes);
      break;
    case 4:
      comes_back(causality::decode_range_delete(bytes), bytes);
      break;
    default:
      comes_back(causality::decode_delta(bytes), bytes);
      break;
  }
  return 0;
}
