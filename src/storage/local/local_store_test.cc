// Values that a node keeps for itself: through crashes, faults and damage.
#include "storage/local/local_store.h"

#include <functional>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "storage/log/commit_log_test_support.h"

namespace helenus::storage {
namespace {

using base::Bytes;
using base::Errc;
using runtime::Runtime;
using runtime::Task;
using storage::testing::LogWorld;
using ::testing::HasSubstr;

const std::string kFolder = storage::testing::kLogFolder;

Task<void> with_store(Runtime& runtime, std::function<Task<void>(LocalStore&)> body) {
  const auto store = co_await LocalStore::open(runtime, kFolder);
  CO_ASSERT_OK(store);
  co_await body(**store);
}

void tell_of_store(LogWorld& world, const std::function<Task<void>(LocalStore&)>& body) {
  world.run([&](Runtime& runtime) { return with_store(runtime, body); });
}

// What is there, or "nothing", or the error.
Task<std::string> value_of(LocalStore& store, std::string name) {
  const auto value = co_await store.read(std::move(name));
  if (!value) co_return value.error().to_string();
  co_return *value ? std::string((*value)->text()) : "nothing";
}

TEST(LocalStore, AValueIsThereAfterAPowerLossAndAnotherNameHasNone) {
  LogWorld world;
  tell_of_store(world, [](LocalStore& store) -> Task<void> {
    EXPECT_EQ(co_await value_of(store, "one"), "nothing");
    CO_ASSERT_OK(co_await store.write("one", Bytes::copy_of("first")));
    CO_ASSERT_OK(co_await store.write("one", Bytes::copy_of("second")));
    CO_ASSERT_OK(co_await store.write("empty", Bytes()));
  });
  world.machine().power_loss();
  tell_of_store(world, [](LocalStore& store) -> Task<void> {
    EXPECT_EQ(co_await value_of(store, "one"), "second");
    EXPECT_EQ(co_await value_of(store, "empty"), "");
    EXPECT_EQ(co_await value_of(store, "two"), "nothing");
  });
}

// At every step of a write a power loss leaves the value before it or the new one.
TEST(LocalStore, ACrashAtAnyStepLeavesOneOfTheTwo) {
  bool written = false;
  for (std::uint64_t events = 1; !written; ++events) {
    LogWorld world(events);
    tell_of_store(world, [](LocalStore& store) -> Task<void> {
      CO_ASSERT_OK(co_await store.write("v", Bytes::copy_of("old")));
    });
    const auto write = [&](LocalStore& store) -> Task<void> {
      CO_ASSERT_OK(co_await store.write("v", Bytes::copy_of("new")));
      written = true;
    };
    world.start([&](Runtime& runtime) { return with_store(runtime, write); });
    for (std::uint64_t left = events; left > 0 && !written; --left) world.world().step();
    world.machine().power_loss();
    tell_of_store(world, [&](LocalStore& store) -> Task<void> {
      const std::string value = co_await value_of(store, "v");
      EXPECT_TRUE(value == "new" || (!written && value == "old")) << value;
    });
    ASSERT_FALSE(HasFailure()) << "after " << events << " events";
  }
}

TEST(LocalStore, WithoutSpaceTheOldValueStays) {
  LogWorld world;
  tell_of_store(world, [&](LocalStore& store) -> Task<void> {
    CO_ASSERT_OK(co_await store.write("v", Bytes::copy_of("old")));
    world.disk().set_capacity(world.disk().used_bytes());
    const auto full = co_await store.write("v", Bytes::copy_of(std::string(100'000, 'x')));
    EXPECT_TRUE(full.failed_with(Errc::no_space));
    if (!full) EXPECT_THAT(full.error().to_string(), HasSubstr(kFolder + "/v"));
    EXPECT_EQ(co_await value_of(store, "v"), "old");
  });
}

TEST(LocalStore, AValueThatIsTooLargeIsRefused) {
  LogWorld world;
  tell_of_store(world, [](LocalStore& store) -> Task<void> {
    const std::string large(LocalStore::kValueSizeMax + 1, 'x');
    const auto refused = co_await store.write("v", Bytes::copy_of(large));
    EXPECT_TRUE(refused.failed_with(Errc::invalid_argument));
    EXPECT_EQ(co_await value_of(store, "v"), "nothing");
  });
}

TEST(LocalStore, DamageIsAnErrorThatNamesTheFileAndNeverAnEmptyAnswer) {
  LogWorld world;
  tell_of_store(world, [](LocalStore& store) -> Task<void> {
    CO_ASSERT_OK(co_await store.write("v", Bytes::copy_of("value")));
    CO_ASSERT_OK(co_await store.write("w", Bytes::copy_of("other")));
  });
  world.flip_bit(kFolder + "/v", 8 * 12);
  tell_of_store(world, [](LocalStore& store) -> Task<void> {
    const auto damaged = co_await store.read("v");
    EXPECT_TRUE(damaged.failed_with(Errc::corrupt));
    if (!damaged) EXPECT_THAT(damaged.error().to_string(), HasSubstr(kFolder + "/v"));
    EXPECT_EQ(co_await value_of(store, "w"), "other");
  });
}

TEST(LocalValue, EveryFlippedBitAndEveryCutIsSeen) {
  const Bytes whole = encode_local_value("name", base::as_bytes(std::string_view("value")));
  const auto decoded = decode_local_value("name", whole);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_EQ(decoded->text(), "value");
  EXPECT_TRUE(decode_local_value("other", whole).failed_with(Errc::corrupt));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_local_value("name", whole.view().first(size)).failed_with(Errc::corrupt))
        << size;
  }
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped(whole.text());
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_local_value("name", base::as_bytes(flipped)).has_value()) << bit;
  }
  std::string newer(whole.text());
  newer[8] = 2;
  EXPECT_TRUE(decode_local_value("name", base::as_bytes(newer)).failed_with(Errc::unsupported));
}

}  // namespace
}  // namespace helenus::storage
