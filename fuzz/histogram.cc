// Fuzzes base::Histogram: the input is one encoded histogram, or two in a row. What decodes must
// encode to the very bytes it came from, and every question about it must have an answer.
#include "base/histogram.h"

#include <cstddef>
#include <cstdint>

namespace helenus::base {
namespace {

Bytes encoded(const Histogram& histogram) {
  Buffer buffer;
  Encoder out(buffer);
  histogram.encode(out);
  return std::move(buffer).freeze();
}

void check_answers(const Histogram& histogram) {
  for (const double q : {0.0, 0.001, 0.5, 0.99, 1.0}) {
    const std::uint64_t value = histogram.quantile(q);
    ASSERT(histogram.min() <= value && value <= histogram.max());
  }
  ASSERT(!histogram.summary("ns").empty());
}

void check_pair(const Histogram& first, const Histogram& second) {
  Histogram both = first;
  both.merge(second);
  ASSERT(both.count() == first.count() + second.count());
  check_answers(both);
  if (const auto difference = first.since(second)) {
    ASSERT(difference->count() == first.count() - second.count());
    check_answers(*difference);
    const Bytes bytes = encoded(*difference);
    Decoder in(bytes);
    ASSERT(Histogram::decode(in) == *difference);
  }
}

}  // namespace
}  // namespace helenus::base

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::base;
  const ByteView input = std::as_bytes(std::span(data, size));
  Decoder in(input);
  const auto first = Histogram::decode(in);
  if (!first) return 0;
  ASSERT(equal(encoded(*first), input.first(in.offset())));
  check_answers(*first);
  const auto second = Histogram::decode(in);
  check_pair(*first, second ? *second : Histogram());
  if (second) check_pair(*second, *first);
  return 0;
}
