// The contract suites, by name, for a world to instantiate:
//   using namespace helenus::runtime::contract;
//   INSTANTIATE_TEST_SUITE_P(Native, TimersContract, testing::Values(kNative), world_name);
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "runtime/contract/world.h"

namespace helenus::runtime::contract {

// A Result that is a success, with that value.
MATCHER_P(Holds, expected, "") {
  if (arg.has_value()) return *arg == expected;
  *result_listener << arg.error().to_string();
  return false;
}

// The first page is drawn, and every further one is that page with its own number in it, so that no
// two places of the whole look alike: stories fill megabytes, and a sanitizer makes every draw
// dear.
inline void fill_with_noise(base::MutableByteView into, std::uint64_t seed) {
  constexpr std::size_t kPageSize = 4096;
  base::Prng prng(seed);
  const auto copy = [&](std::size_t offset, const void* from, std::size_t size) {
    std::memcpy(into.data() + offset, from, std::min(size, into.size() - offset));
  };
  const std::size_t drawn = std::min(into.size(), kPageSize);
  for (std::size_t offset = 0; offset < drawn; offset += sizeof(std::uint64_t)) {
    const std::uint64_t word = prng.next();
    copy(offset, &word, sizeof(word));
  }
  for (std::size_t offset = kPageSize; offset < into.size(); offset += kPageSize) {
    copy(offset, into.data(), kPageSize);
    const std::uint64_t number = offset / kPageSize;
    copy(offset, &number, sizeof(number));
  }
}

class TimersContract : public WorldTest {};
class PrimitivesContract : public WorldTest {};
class PrioritiesContract : public WorldTest {};
class CoresContract : public WorldTest {};

// A story of files gets an empty directory. Nothing in it depends on how long anything takes:
// where a wait is cut while under way, both outcomes are right.
class FileSystemContract : public WorldTest {
 protected:
  using Story = Task<void> (*)(Runtime& runtime, std::string directory);

  void tell(Story story) {
    run([story, directory = world().directory()](Runtime& runtime) {
      return story(runtime, directory);
    });
  }
};

// A story of streams gets an address of this machine with port 0. Time appears in it only as a
// deadline that must pass.
class TransportContract : public WorldTest {
 protected:
  using Story = Task<void> (*)(Runtime& runtime, Address loopback);

  void tell(Story story) {
    run([story, loopback = world().loopback()](Runtime& runtime) {
      return story(runtime, loopback);
    });
  }
};

}  // namespace helenus::runtime::contract
