// What FileSystem promises, in any world.
#include <string>
#include <vector>

#include "runtime/contract/file_stories.h"
#include "runtime/sleep.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FileSystemContract);

namespace {

using base::Errc;
using testing::AnyOf;

}  // namespace

// Opening

TEST_P(FileSystemContract, OpeningAMissingFileSaysWhichOneIsMissing) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto opened = co_await rt.files.open(dir + "/absent", OpenOptions::read_only());
    expect_error(opened, Errc::not_found, dir + "/absent");
    const auto in_nowhere = co_await rt.files.open(dir + "/no/file", OpenOptions::read_write());
    expect_error(in_nowhere, Errc::not_found, dir + "/no/file");
  });
}

TEST_P(FileSystemContract, OpeningForWritingCreatesOnlyWhenAsked) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto refused = co_await rt.files.open(dir + "/file", {.write = true});
    expect_error(refused, Errc::not_found, dir + "/file");
    const auto created = co_await rt.files.open(dir + "/file", OpenOptions::read_write());
    CO_ASSERT_OK(created);
    EXPECT_EQ((*created)->path(), dir + "/file");
    const auto info = co_await rt.files.info(dir + "/file");
    CO_ASSERT_OK(info);
    EXPECT_EQ(info->size, 0);
  });
}

TEST_P(FileSystemContract, OpeningAnExistingFileKeepsItsContent) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "kept"));
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::read_write());
    CO_ASSERT_OK(file);
    EXPECT_THAT(co_await read_text(**file, 0, 100), Holds("kept"));
  });
}

TEST_P(FileSystemContract, CreatingANewFileRefusesAnExistingOne) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.open(dir + "/file", OpenOptions::create_new()));
    const auto again = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    expect_error(again, Errc::already_exists, dir + "/file");
  });
}

TEST_P(FileSystemContract, TruncatingOnOpenEmptiesTheFile) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "old and long"));
    const auto file =
        co_await rt.files.open(dir + "/file", {.write = true, .create = true, .truncate = true});
    CO_ASSERT_OK(file);
    EXPECT_THAT(co_await (*file)->size(), Holds(0U));
    EXPECT_EQ((*file)->append_position(), 0);
  });
}

TEST_P(FileSystemContract, OpeningADirectoryIsRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto reading = co_await rt.files.open(dir, OpenOptions::read_only());
    expect_error(reading, Errc::invalid_argument, dir);
    const auto writing = co_await rt.files.open(dir, OpenOptions::read_write());
    expect_error(writing, Errc::invalid_argument, dir);
  });
}

TEST_P(FileSystemContract, OptionsThatContradictEachOtherAreRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    const auto exclusive = co_await rt.files.open(path, {.write = true, .exclusive = true});
    expect_error(exclusive, Errc::invalid_argument, path);
    const auto truncate = co_await rt.files.open(path, {.create = true, .truncate = true});
    expect_error(truncate, Errc::invalid_argument, path);
    expect_error(co_await rt.files.info(path), Errc::not_found, path);
  });
}

TEST_P(FileSystemContract, TextThatIsNoPathIsRefusedEverywhere) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string good = dir + "/file";
    CO_ASSERT_OK(co_await put(rt, good, "x"));
    std::vector<std::string> bad{"", dir + std::string("/a\0b", 4)};
    bad.push_back(dir);
    while (bad.back().size() <= kPathMax) bad.back() += "/sub";
    FileSystem& files = rt.files;
    for (const std::string& path : bad) {
      expect_error(co_await files.open(path, OpenOptions::read_write()), Errc::invalid_argument,
                   "");
      expect_error(co_await files.make_directories(path), Errc::invalid_argument, "");
      expect_error(co_await files.list(path), Errc::invalid_argument, "");
      expect_error(co_await files.info(path), Errc::invalid_argument, "");
      expect_error(co_await files.rename(path, good), Errc::invalid_argument, "");
      expect_error(co_await files.rename(good, path), Errc::invalid_argument, "");
      expect_error(co_await files.remove(path), Errc::invalid_argument, "");
      expect_error(co_await files.link(path, good), Errc::invalid_argument, "");
      expect_error(co_await files.link(good, path), Errc::invalid_argument, "");
      expect_error(co_await files.sync_directory(path), Errc::invalid_argument, "");
      expect_error(co_await files.lock(path), Errc::invalid_argument, "");
      expect_error(co_await files.space(path), Errc::invalid_argument, "");
    }
    EXPECT_THAT(co_await content_of(rt, good), Holds("x"));
  });
}

TEST_P(FileSystemContract, APathThroughAFileIsRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "x"));
    const std::string path = dir + "/file/below";
    expect_error(co_await rt.files.open(path, OpenOptions::read_write()), Errc::invalid_argument,
                 path);
    expect_error(co_await rt.files.info(path), Errc::invalid_argument, path);
    expect_error(co_await rt.files.make_directories(path), Errc::invalid_argument, path);
  });
}

// Names

TEST_P(FileSystemContract, AListIsSortedAndTellsDirectoriesFromFiles) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    EXPECT_THAT(co_await rt.files.list(dir), Holds(std::vector<DirectoryEntry>()));
    for (const char* name : {"b", "a10", "a9", "Z", "c"}) {
      CO_ASSERT_OK(co_await put(rt, dir + "/" + name, ""));
    }
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/ab/inner"));
    const std::vector<DirectoryEntry> expected{{"Z"}, {"a10"}, {"a9"}, {"ab", true}, {"b"}, {"c"}};
    EXPECT_THAT(co_await rt.files.list(dir), Holds(expected));
    expect_error(co_await rt.files.list(dir + "/no"), Errc::not_found, dir + "/no");
    expect_error(co_await rt.files.list(dir + "/b"), Errc::invalid_argument, dir + "/b");
  });
}

TEST_P(FileSystemContract, ALongListIsComplete) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    std::vector<DirectoryEntry> expected;
    for (int i = 0; i < 500; ++i) {
      expected.push_back({fmt::format("segment-{:04}", i)});
      CO_ASSERT_OK(co_await put(rt, dir + "/" + expected.back().name, ""));
    }
    EXPECT_THAT(co_await rt.files.list(dir), Holds(expected));
  });
}

TEST_P(FileSystemContract, MakingDirectoriesMakesTheirParentsToo) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/a/b/c"));
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/a/b/c"));
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/a/b//d/"));
    const std::vector<DirectoryEntry> expected{{"c", true}, {"d", true}};
    EXPECT_THAT(co_await rt.files.list(dir + "/a/b"), Holds(expected));
    CO_ASSERT_OK(co_await put(rt, dir + "/file", ""));
    expect_error(co_await rt.files.make_directories(dir + "/file"), Errc::already_exists,
                 dir + "/file");
  });
}

TEST_P(FileSystemContract, InfoTellsSizeAndKind) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "12345"));
    const auto file = co_await rt.files.info(dir + "/file");
    CO_ASSERT_OK(file);
    EXPECT_EQ(file->size, 5);
    EXPECT_FALSE(file->is_directory);
    const auto directory = co_await rt.files.info(dir);
    CO_ASSERT_OK(directory);
    EXPECT_TRUE(directory->is_directory);
    expect_error(co_await rt.files.info(dir + "/absent"), Errc::not_found, dir + "/absent");
  });
}

TEST_P(FileSystemContract, IdentityBelongsToTheFileAndNotToItsName) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/a", "same"));
    CO_ASSERT_OK(co_await put(rt, dir + "/copy", "same"));
    const auto original = co_await rt.files.info(dir + "/a");
    const auto copy = co_await rt.files.info(dir + "/copy");
    CO_ASSERT_OK(original);
    CO_ASSERT_OK(copy);
    EXPECT_NE(original->identity, copy->identity);
    CO_ASSERT_OK(co_await rt.files.link(dir + "/a", dir + "/linked"));
    CO_ASSERT_OK(co_await rt.files.rename(dir + "/a", dir + "/renamed"));
    const auto linked = co_await rt.files.info(dir + "/linked");
    const auto renamed = co_await rt.files.info(dir + "/renamed");
    CO_ASSERT_OK(linked);
    CO_ASSERT_OK(renamed);
    EXPECT_EQ(linked->identity, original->identity);
    EXPECT_EQ(renamed->identity, original->identity);
  });
}

TEST_P(FileSystemContract, AFileThatTakesThePlaceOfARemovedOneHasAnotherIdentity) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/a", "same"));
    const auto before = co_await rt.files.info(dir + "/a");
    CO_ASSERT_OK(before);
    CO_ASSERT_OK(co_await rt.files.remove(dir + "/a"));
    // Longer than the ticks in which file systems tell the time.
    EXPECT_TRUE(co_await sleep_for(rt, std::chrono::milliseconds(50), {}));
    CO_ASSERT_OK(co_await put(rt, dir + "/a", "same"));
    const auto after = co_await rt.files.info(dir + "/a");
    CO_ASSERT_OK(after);
    EXPECT_NE(after->identity, before->identity);
  });
}

TEST_P(FileSystemContract, RenamingReplacesWhatWasThere) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/current", "old"));
    CO_ASSERT_OK(co_await put(rt, dir + "/next", "new"));
    const auto reader = co_await rt.files.open(dir + "/current", OpenOptions::read_only());
    CO_ASSERT_OK(reader);
    CO_ASSERT_OK(co_await rt.files.rename(dir + "/next", dir + "/current"));
    EXPECT_THAT(co_await content_of(rt, dir + "/current"), Holds("new"));
    EXPECT_THAT(co_await read_text(**reader, 0, 10), Holds("old"));
    const std::vector<DirectoryEntry> expected{{"current"}};
    EXPECT_THAT(co_await rt.files.list(dir), Holds(expected));
  });
}

namespace {

Task<void> replace_over_and_over(Runtime& rt, std::string dir, bool& done) {
  for (int version = 1; version <= 30; ++version) {
    CO_ASSERT_OK(co_await put(rt, dir + "/next", std::string(1000, 'b')));
    CO_ASSERT_OK(co_await rt.files.rename(dir + "/next", dir + "/current"));
  }
  done = true;
}

Task<void> expect_always_whole(Runtime& rt, std::string dir, const bool& done) {
  while (!done && !testing::Test::HasFailure()) {
    const auto text = co_await content_of(rt, dir + "/current");
    CO_ASSERT_OK(text);
    EXPECT_THAT(*text, AnyOf(std::string(1000, 'a'), std::string(1000, 'b')));
    CO_ASSERT_OK(co_await yield_now(rt));
  }
}

}  // namespace

TEST_P(FileSystemContract, AReaderSeesTheOldFileOrTheNewAndNothingBetween) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/current", std::string(1000, 'a')));
    bool done = false;
    co_await when_all(replace_over_and_over(rt, dir, done), expect_always_whole(rt, dir, done));
    EXPECT_THAT(co_await content_of(rt, dir + "/current"), Holds(std::string(1000, 'b')));
  });
}

TEST_P(FileSystemContract, RenamingMovesDirectoriesWithWhatTheyHold) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/from/inner"));
    CO_ASSERT_OK(co_await put(rt, dir + "/from/inner/file", "carried"));
    CO_ASSERT_OK(co_await rt.files.rename(dir + "/from", dir + "/to"));
    EXPECT_THAT(co_await content_of(rt, dir + "/to/inner/file"), Holds("carried"));
    expect_error(co_await rt.files.info(dir + "/from"), Errc::not_found, dir + "/from");
  });
}

TEST_P(FileSystemContract, RenamingWhatCannotBeRenamedFails) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "x"));
    const std::string absent = dir + "/absent";
    expect_error(co_await rt.files.rename(absent, dir + "/to"), Errc::not_found, absent);
    expect_error(co_await rt.files.rename(dir + "/file", dir + "/no/to"), Errc::not_found,
                 dir + "/no/to");
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/full/inner"));
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/other"));
    expect_error(co_await rt.files.rename(dir + "/other", dir + "/full"), Errc::invalid_argument,
                 dir + "/full");
    expect_error(co_await rt.files.rename(dir + "/file", dir + "/full"), Errc::invalid_argument,
                 dir + "/full");
  });
}

TEST_P(FileSystemContract, RemovingTakesFilesAndEmptyDirectories) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.make_directories(dir + "/sub"));
    CO_ASSERT_OK(co_await put(rt, dir + "/sub/file", "x"));
    expect_error(co_await rt.files.remove(dir + "/sub"), Errc::invalid_argument, dir + "/sub");
    CO_ASSERT_OK(co_await rt.files.remove(dir + "/sub/file"));
    CO_ASSERT_OK(co_await rt.files.remove(dir + "/sub"));
    expect_error(co_await rt.files.remove(dir + "/sub"), Errc::not_found, dir + "/sub");
    EXPECT_THAT(co_await rt.files.list(dir), Holds(std::vector<DirectoryEntry>()));
  });
}

TEST_P(FileSystemContract, ARemovedFileServesThoseWhoHoldItOpen) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "still here"));
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::read_write());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await rt.files.remove(dir + "/file"));
    EXPECT_THAT(co_await read_text(**file, 0, 100), Holds("still here"));
    CO_ASSERT_OK(co_await (*file)->append_and_sync(base::as_bytes("!"), kForever));
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "another"));
    EXPECT_THAT(co_await read_text(**file, 0, 100), Holds("still here!"));
  });
}

TEST_P(FileSystemContract, ALinkIsASecondNameOfTheSameFile) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/a", "one"));
    CO_ASSERT_OK(co_await put(rt, dir + "/b", "two"));
    CO_ASSERT_OK(co_await rt.files.link(dir + "/a", dir + "/snapshot"));
    expect_error(co_await rt.files.link(dir + "/a", dir + "/b"), Errc::already_exists, dir + "/b");
    expect_error(co_await rt.files.link(dir + "/no", dir + "/c"), Errc::not_found, dir + "/no");
    CO_ASSERT_OK(co_await rt.files.remove(dir + "/a"));
    EXPECT_THAT(co_await content_of(rt, dir + "/snapshot"), Holds("one"));
    EXPECT_THAT(co_await content_of(rt, dir + "/b"), Holds("two"));
  });
}

TEST_P(FileSystemContract, SyncingADirectoryNeedsADirectory) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", ""));
    CO_ASSERT_OK(co_await rt.files.sync_directory(dir));
    expect_error(co_await rt.files.sync_directory(dir + "/no"), Errc::not_found, dir + "/no");
    expect_error(co_await rt.files.sync_directory(dir + "/file"), Errc::invalid_argument,
                 dir + "/file");
  });
}

TEST_P(FileSystemContract, SpaceIsToldForAnExistingPath) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto space = co_await rt.files.space(dir);
    CO_ASSERT_OK(space);
    EXPECT_GT(space->total_bytes, 0);
    EXPECT_LE(space->free_bytes, space->total_bytes);
    expect_error(co_await rt.files.space(dir + "/absent"), Errc::not_found, dir + "/absent");
  });
}

// Locks

TEST_P(FileSystemContract, ALockIsHeldByOneAtATime) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/LOCK";
    auto held = co_await rt.files.lock(path);
    CO_ASSERT_OK(held);
    expect_error(co_await rt.files.lock(path), Errc::locked, path);
    CO_ASSERT_OK(co_await rt.files.lock(dir + "/OTHER"));
    expect_error(co_await rt.files.lock(path), Errc::locked, path);
    held->reset();
    CO_ASSERT_OK(co_await rt.files.lock(path));
  });
}

TEST_P(FileSystemContract, ALockFileIsMadeWhereItsDirectoryIs) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await rt.files.lock(dir + "/LOCK"));
    CO_ASSERT_OK(co_await rt.files.info(dir + "/LOCK"));
    expect_error(co_await rt.files.lock(dir + "/no/LOCK"), Errc::not_found, dir + "/no/LOCK");
    expect_error(co_await rt.files.lock(dir), Errc::invalid_argument, dir);
  });
}

}  // namespace helenus::runtime::contract
