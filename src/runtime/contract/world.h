// What a world must offer so that the contract suites can run in it: the same tests for the native
// runtime and for the simulator, so that what holds in one holds in the other.
//
// A suite is a set of TEST_P over WorldFactory; each world instantiates all of them:
//   INSTANTIATE_TEST_SUITE_P(Native, FileSystemContract, testing::Values(kNative), world_name);
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::runtime::contract {

class World {
 public:
  virtual ~World() = default;

  // Runs the body on core 0 until it returns; in the simulator, in virtual time.
  virtual void run(std::function<Task<void>(Runtime&)> body) = 0;
  // An empty directory of this world's file system.
  virtual std::string directory() = 0;
  // An address of this world's machine, with port 0: listen on it to get a free one.
  virtual Address loopback() = 0;
  virtual std::uint32_t core_count() const = 0;
};

struct WorldFactory {
  std::string name;  // within the names of tests: letters, digits and underscores
  std::function<std::unique_ptr<World>(std::uint32_t cores)> make;

  friend void PrintTo(const WorldFactory& factory, std::ostream* out) { *out << factory.name; }
};

inline std::string world_name(const testing::TestParamInfo<WorldFactory>& info) {
  return info.param.name;
}

class WorldTest : public testing::TestWithParam<WorldFactory> {
 protected:
  // Bodies are lambdas that capture nothing, or named functions: a coroutine outlives the lambda
  // it was called on.
  void run(std::function<Task<void>(Runtime&)> body) { world().run(std::move(body)); }
  World& world(std::uint32_t cores = 1) {
    if (world_ == nullptr) world_ = GetParam().make(cores);
    return *world_;
  }

 private:
  std::unique_ptr<World> world_;
};

}  // namespace helenus::runtime::contract

// gtest's ASSERT_* return from the function, which a coroutine cannot: these leave it properly.
#define CO_ASSERT_TRUE(...)                            \
  do {                                                 \
    const bool held_ = static_cast<bool>(__VA_ARGS__); \
    EXPECT_TRUE(held_) << #__VA_ARGS__;                \
    if (!held_) co_return;                             \
  } while (false)
// For a Result, evaluated once: shows its error.
#define CO_ASSERT_OK(...)                                              \
  do {                                                                 \
    auto&& outcome_ = (__VA_ARGS__);                                   \
    EXPECT_TRUE(outcome_.has_value()) << outcome_.error().to_string(); \
    if (!outcome_.has_value()) co_return;                              \
  } while (false)
