// A flipped bit in a byte of any file of an engine: what is read is right, or an error names the
// file and the offset (S6). Every byte of small files; of sstables and logs, of which the same is
// shown byte by byte where they are read (sstable_damage_test.cc, log_directory_test.cc), every
// few, or all with HELENUS_DAMAGE_EVERY_BYTE=1.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/contract/world.h"
#include "runtime/sleep.h"
#include "storage/engine/engine_test_support.h"

namespace helenus::storage::testing {
namespace {

using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using ::testing::AnyOf;
using ::testing::HasSubstr;

// A sanitizer makes every start several times as dear.
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::size_t kDearness = 13;
#else
constexpr std::size_t kDearness = 1;
#endif

// What a reader was shown before the damage.
struct Truth {
  Shown rows;
  std::vector<causality::Dot> mutations;
};

enum class Ending : unsigned char { stop, power_loss };

// What a peer without anything is given.
Task<base::Result<std::vector<causality::Dot>>> mutations_of(EngineStory& story) {
  std::vector<causality::Dot> dots;
  CO_TRY(const auto missing,
         co_await story.engine().missing_mutations(kTablet, {}, 1 << 20, Until::forever()));
  EXPECT_TRUE(missing.complete);
  for (const LoggedMutation& mutation : missing.mutations) dots.push_back(mutation.dot);
  co_return dots;
}

std::string in_queue(int place) {
  return fmt::format("entry-of-the-queue-{:03}", place);
}

// Deletes of a row, of a range, and of so many that they lie in parts; of what they hold something
// is left, which is shown only to whoever finds them.
Task<void> remove_some(EngineStory& story) {
  const auto range = [](const std::string& from, const std::string& to) {
    return causality::RowRange{base::Bytes::copy_of(from), base::Bytes::copy_of(to)};
  };
  causality::Mutation few;
  few.timestamp = causality::Timestamp{5000};
  few.deleted_ranges.push_back(causality::range_of_row(base::Bytes::copy_of("b")));
  few.deleted_ranges.push_back(range("c", "f"));
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("p"),
                                             std::move(few), causality::Epoch{1},
                                             Until::forever()));
  causality::Mutation many;
  many.timestamp = causality::Timestamp{5000};
  for (int i = 0; i < 16; ++i)
    many.deleted_ranges.push_back(range(in_queue(2 * i), in_queue(2 * i + 1)));
  CO_ASSERT_OK(co_await story.engine().write(kTable, kTablet, base::Bytes::copy_of("r"),
                                             std::move(many), causality::Epoch{1},
                                             Until::forever()));
}

Task<void> expect_ranges_in_parts(EngineStory& story) {
  auto cursor = story.engine().cursor(kTable, kTablet, {});
  CO_ASSERT_OK(cursor);
  CO_ASSERT_OK(
      co_await (*cursor)->seek(base::Bytes::copy_of("r"), base::Bytes::copy_of(in_queue(4))));
  CO_ASSERT_TRUE((*cursor)->valid());
  EXPECT_EQ((*cursor)->read()->range_deletes().size(), 1U);
  EXPECT_GT((*cursor)->trace().range_paths_read, 0U);
}

// Two files that were flushed, one of them merged before, and something in the log alone.
Task<void> make_history(Runtime& runtime, Ending ending, Truth& truth, bool& ready) {
  EngineStory story(runtime);
  CO_ASSERT_OK(co_await story.open());
  Engine& engine = story.engine();
  for (const char* row : {"a", "b", "c", "f"}) CO_ASSERT_OK(co_await story.put("p", row, "one"));
  for (const int place : {4, 5}) CO_ASSERT_OK(co_await story.put("r", in_queue(place), "one"));
  CO_ASSERT_OK(co_await engine.compact(kTable, Until::forever()));
  co_await remove_some(story);
  CO_ASSERT_OK(co_await story.put("q", "d", "two"));
  CO_ASSERT_OK(co_await engine.flush(kTable, Until::forever()));
  co_await expect_ranges_in_parts(story);
  CO_ASSERT_OK(co_await story.put("q", "e", "three"));
  const auto rows = co_await story.scan();
  CO_ASSERT_OK(rows);
  truth.rows = *rows;
  EXPECT_EQ(truth.rows.size(), 5U) << "a and f, d and e, and one of the queue";
  const auto mutations = co_await mutations_of(story);
  CO_ASSERT_OK(mutations);
  truth.mutations = *mutations;
  if (ending == Ending::stop) {
    CO_ASSERT_OK(co_await story.stop());
  } else {
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::seconds(5), {}));
    ready = true;
    CO_ASSERT_OK(co_await runtime::sleep_for(runtime, std::chrono::hours(10), {}));
  }
}

// Whether the damage was noticed.
Task<void> read_damaged(Runtime& runtime, const Truth& truth, const std::string& path,
                        bool& noticed) {
  EngineStory story(runtime);
  const auto judge = [&](const base::Error& error) {
    noticed = true;
    const std::string text = error.to_string();
    EXPECT_THAT(text, HasSubstr(path.substr(path.rfind('/') + 1)));
    // A version is all that is known of a file of another one.
    EXPECT_THAT(text, AnyOf(HasSubstr("offset"), HasSubstr("of its format")));
  };
  const auto opened = co_await story.open();
  if (!opened) {
    judge(opened.error());
    co_return;
  }
  const auto rows = co_await story.scan();
  if (rows) {
    EXPECT_EQ(*rows, truth.rows);
  } else {
    judge(rows.error());
  }
  const auto mutations = co_await mutations_of(story);
  if (mutations) {
    EXPECT_EQ(*mutations, truth.mutations);
  } else {
    judge(mutations.error());
  }
  (void)co_await story.stop();
}

// The files below a folder that have bytes.
void collect(LogWorld& world, const std::string& folder, std::vector<std::string>& paths) {
  const auto entries = world.disk().list(folder);
  for (const auto& entry : *entries) {
    const std::string path = folder + "/" + entry.name;
    if (world.disk().find_directory(path).has_value()) {
      collect(world, path, paths);
    } else if (!world.read(path).empty()) {
      paths.push_back(path);
    }
  }
}

struct Case {
  const char* name;
  std::string_view part_of_path;
  Ending ending;
  std::size_t noticed_min;  // of bytes, of all files of the kind
  std::size_t stride = 1;
};

class DamagedFile : public ::testing::TestWithParam<Case> {};

TEST_P(DamagedFile, IsReadRightOrNamedWithItsOffsetWhicheverByteLosesABit) {
  LogWorld world;
  Truth truth;
  bool ready = false;
  world.start(
      [&](Runtime& runtime) { return make_history(runtime, GetParam().ending, truth, ready); });
  ASSERT_TRUE(world.world().run_until([&] { return ready || !world.machine().is_up(); },
                                      std::chrono::hours(1)));
  world.machine().power_loss();
  const auto image = world.disk().snapshot();
  std::vector<std::string> paths;
  collect(world, "/data", paths);
  const bool every_byte = std::getenv("HELENUS_DAMAGE_EVERY_BYTE") != nullptr;
  const std::size_t stride = every_byte ? 1 : GetParam().stride * kDearness;
  std::size_t noticed = 0;
  std::size_t files = 0;
  for (const std::string& path : paths) {
    if (!path.contains(GetParam().part_of_path)) continue;
    ++files;
    const std::string bytes = world.read(path);
    // What was never written to is a tail of zeros: a few bytes of it stand for all.
    const std::size_t used = bytes.find_last_not_of('\0') + 1;
    for (std::size_t at = 0; at < bytes.size(); at += at < used + 64 ? stride : 4099) {
      world.flip_bit(path, at * 8 + (at * 5 + at / 8) % 8);
      bool told = false;
      world.run([&](Runtime& runtime) { return read_damaged(runtime, truth, path, told); });
      noticed += told ? 1 : 0;
      ASSERT_FALSE(HasFailure()) << path << " byte " << at;
      world.machine().power_loss();
      world.disk().put_back(*image, false);
    }
  }
  EXPECT_GT(files, 0);
  RecordProperty("noticed", static_cast<int>(noticed));
  EXPECT_GE(noticed, GetParam().noticed_min / stride);
}

INSTANTIATE_TEST_SUITE_P(
    OfAnEngine, DamagedFile,
    ::testing::Values(Case{"folder", "/engine/a/engine", Ending::stop, 17},
                      Case{"manifest", "manifest", Ending::stop, 150},
                      Case{"sstable", ".sst", Ending::stop, 1000},
                      Case{"catalog", "catalog", Ending::stop, 30},
                      Case{"places", "place", Ending::stop, 130},
                      Case{"generations", "generations-", Ending::stop, 30},
                      Case{"log", "commit-", Ending::stop, 100, 17},
                      Case{"unfinished_log", "commit-", Ending::power_loss, 100, 17},
                      Case{"unfinished_catalog", "catalog", Ending::power_loss, 30}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace helenus::storage::testing
