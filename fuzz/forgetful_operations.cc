// Fuzzes sequences of operations on the sliced forgetful filter, in lockstep with the truth. The
// input is
//
//   window, rate, capacity, slices, sizing and memory: one byte each;  operations: two bytes each,
//   what and how much
//
// A CheckedWindow says what must hold. Windows and capacities are small, so that tables are often
// full, often replaced, and keys often near the end of their window.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/codec.h"
#include "filters/checked_window.h"

namespace helenus::filters {
namespace {

SlicedForgetful::Options options_from(base::Decoder& in) {
  constexpr std::array kRates = {0.3, 0.05, 1e-3, 1e-8};
  SlicedForgetful::Options options{.window = Ticks{1} + in.u8()};
  options.rate_max = kRates[in.u8() % kRates.size()];
  options.capacity = std::uint64_t{1} + in.u8() % 64;
  options.slices = in.u8() % 12;
  if (options.slices == 1) options.slices = kLanesMax;
  options.sizing = SlicedForgetful::Sizing{static_cast<std::uint8_t>(in.u8() % 2)};
  options.memory_bytes_max = (std::uint64_t{1} + in.u8()) * 1024;
  return options;
}

void drive(CheckedWindow& checked, base::Decoder& in) {
  std::uint64_t fresh = 1000;
  constexpr std::uint64_t kFreshMax = 20'000;
  while (in.remaining() >= 2) {
    const std::uint8_t operation = in.u8() % 8;
    const std::uint8_t number = in.u8();
    const Ticks now = checked.filter().now();
    if (operation < 2) {
      checked.insert(KeyHash::of_integer(number));
    } else if (operation < 4) {
      checked.insert_if_absent(KeyHash::of_integer(number));
    } else if (operation < 5) {
      for (unsigned i = 0; i < number && fresh < kFreshMax; ++i) {
        checked.insert(KeyHash::of_integer(fresh++));
      }
    } else if (operation < 7) {
      checked.advance_to(operation == 5 ? now + number / 8 : now + 4 * number);
      checked.contains_all();
    } else {
      checked.reload();
    }
    ASSERT(checked.problem().empty(), "{}", checked.problem());
  }
  checked.contains_all();
  ASSERT(checked.problem().empty(), "{}", checked.problem());
}

}  // namespace
}  // namespace helenus::filters

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::filters;
  helenus::base::Decoder in(std::as_bytes(std::span(data, size)));
  // Too little memory for the capacity is an error, and the end of it.
  auto filter = SlicedForgetful::with_options(options_from(in));
  if (!filter) return 0;
  CheckedWindow checked(*std::move(filter));
  drive(checked, in);
  return 0;
}
