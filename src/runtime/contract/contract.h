// The contract suites, by name, for a world to instantiate:
//   using namespace helenus::runtime::contract;
//   INSTANTIATE_TEST_SUITE_P(Native, TimersContract, testing::Values(kNative), world_name);
#pragma once

#include <string>

#include <gmock/gmock.h>

#include "runtime/contract/world.h"

namespace helenus::runtime::contract {

// A Result that is a success, with that value.
MATCHER_P(Holds, expected, "") {
  if (arg.has_value()) return *arg == expected;
  *result_listener << arg.error().to_string();
  return false;
}

class TimersContract : public WorldTest {};
class PrimitivesContract : public WorldTest {};
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
