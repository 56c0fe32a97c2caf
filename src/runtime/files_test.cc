// Whole small files on a simulated disk, through crashes.
#include "runtime/files.h"

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/file_system.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::runtime {
namespace {

using base::Bytes;
using base::Errc;

TEST(Files, TheDirectoryOfAPath) {
  EXPECT_EQ(directory_of("a"), ".");
  EXPECT_EQ(directory_of("a/b"), "a");
  EXPECT_EQ(directory_of("a/b/c"), "a/b");
  EXPECT_EQ(directory_of("/a"), "/");
  EXPECT_EQ(directory_of("/"), "/");
  EXPECT_EQ(directory_of("/a/b"), "/a");
  EXPECT_EQ(directory_of("."), ".");
}

// One machine with a disk, and the story it runs.
class FilesTest : public testing::Test {
 protected:
  using Story = std::function<Task<void>(Runtime&)>;

  explicit FilesTest(std::uint64_t seed = 1)
      : world_(seed), machine_(world_.add_machine({.name = "m"}, {})) {}

  void begin(Story story) {
    machine_.set_process(sim::FunctionProcess::factory(
        [story = std::move(story)](Runtime& rt, StopToken) { return story(rt); }));
    machine_.start();
  }
  void tell(Story story) {
    begin(std::move(story));
    EXPECT_TRUE(world_.run_until([&] { return !machine_.is_up(); }, 1h)) << "waits for ever";
  }

  sim::World world_;
  sim::Machine& machine_;
};

TEST_F(FilesTest, AFileIsReadWholeOrNotAtAll) {
  tell([](Runtime& rt) -> Task<void> {
    const auto missing = co_await read_file(rt, "/file", 10);
    EXPECT_TRUE(missing.failed_with(Errc::not_found));
    CO_ASSERT_OK(co_await replace_file(rt, "/file", Bytes::copy_of("0123456789")));
    const auto whole = co_await read_file(rt, "/file", 10);
    CO_ASSERT_OK(whole);
    EXPECT_EQ(whole->text(), "0123456789");
    const auto too_long = co_await read_file(rt, "/file", 9);
    EXPECT_TRUE(too_long.failed_with(Errc::corrupt));
    EXPECT_TRUE(too_long.error().to_string().contains("/file"));
  });
}

TEST_F(FilesTest, AFileMayBeEmpty) {
  tell([](Runtime& rt) -> Task<void> {
    CO_ASSERT_OK(co_await replace_file(rt, "/file", {}));
    const auto empty = co_await read_file(rt, "/file", 0);
    CO_ASSERT_OK(empty);
    EXPECT_TRUE(empty->empty());
    CO_ASSERT_OK(co_await replace_file(rt, "/file", Bytes::copy_of("longer")));
    CO_ASSERT_OK(co_await replace_file(rt, "/file", Bytes::copy_of("short")));
    const auto replaced = co_await read_file(rt, "/file", 10);
    CO_ASSERT_OK(replaced);
    EXPECT_EQ(replaced->text(), "short");
  });
}

TEST_F(FilesTest, ReplacingTakesOverWhatACrashLeft) {
  tell([](Runtime& rt) -> Task<void> {
    CO_ASSERT_OK(co_await replace_file(rt, "/file.new", Bytes::copy_of("a long left-over")));
    CO_ASSERT_OK(co_await replace_file(rt, "/file", Bytes::copy_of("new")));
    const auto content = co_await read_file(rt, "/file", 100);
    CO_ASSERT_OK(content);
    EXPECT_EQ(content->text(), "new");
    EXPECT_TRUE((co_await rt.files.info("/file.new")).failed_with(Errc::not_found));
  });
}

TEST_F(FilesTest, ReplacingWhereThereIsNoDirectoryFails) {
  tell([](Runtime& rt) -> Task<void> {
    const auto replaced = co_await replace_file(rt, "/none/file", Bytes::copy_of("x"));
    EXPECT_TRUE(replaced.failed_with(Errc::not_found));
  });
}

TEST_F(FilesTest, AFullDiskLeavesTheOldContent) {
  tell([](Runtime& rt) -> Task<void> {
    CO_ASSERT_OK(co_await replace_file(rt, "/file", Bytes::copy_of("old")));
  });
  machine_.disk().set_capacity(machine_.disk().used_bytes());
  tell([](Runtime& rt) -> Task<void> {
    const auto replaced =
        co_await replace_file(rt, "/file", Bytes::copy_of(std::string(1 << 20, 'x')));
    EXPECT_TRUE(replaced.failed_with(Errc::no_space));
    const auto content = co_await read_file(rt, "/file", 100);
    CO_ASSERT_OK(content);
    EXPECT_EQ(content->text(), "old");
  });
}

// Replaces "old" by "new", killed or without power after so many events, and looks what is there.
class CrashedReplace final : public FilesTest {
 public:
  explicit CrashedReplace(std::uint64_t seed) : FilesTest(seed) {}
  void TestBody() override {}

  // False once the replacing came to its end before the crash.
  bool go(std::uint64_t events, bool by_power, std::set<std::string>& seen) {
    tell([](Runtime& rt) -> Task<void> {
      CO_ASSERT_OK(co_await make_directories_durably(rt, "/a/b"));
      CO_ASSERT_OK(co_await replace_file(rt, "/a/b/file", Bytes::copy_of(kOld)));
    });
    machine_.power_loss();
    begin([this](Runtime& rt) -> Task<void> {
      CO_ASSERT_OK(co_await replace_file(rt, "/a/b/file", Bytes::copy_of(kNew)));
      replaced_ = true;
    });
    for (; events > 0 && !replaced_; --events) world_.step();
    if (by_power) {
      machine_.power_loss();
    } else {
      machine_.kill();
    }
    tell([this, &seen](Runtime& rt) -> Task<void> {
      const auto content = co_await read_file(rt, "/a/b/file", 1 << 20);
      CO_ASSERT_OK(content);
      EXPECT_TRUE(content->text() == kNew || (!replaced_ && content->text() == kOld))
          << content->text().substr(0, 10) << ", " << content->size() << " bytes";
      seen.insert(std::string(content->text().substr(0, 3)));
    });
    return !replaced_;
  }

 private:
  static inline const std::string kOld = "old" + std::string(5000, 'o');
  static inline const std::string kNew = "new" + std::string(9000, 'n');
  bool replaced_ = false;
};

TEST(FilesCrash, AfterACrashAtAnyMomentTheOldContentIsThereOrTheNew) {
  for (const bool by_power : {false, true}) {
    std::set<std::string> seen;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      for (std::uint64_t events = 0; CrashedReplace(seed).go(events, by_power, seen); ++events) {
        ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", " << events << " events";
      }
    }
    EXPECT_EQ(seen, (std::set<std::string>{"new", "old"}));
  }
}

}  // namespace
}  // namespace helenus::runtime
