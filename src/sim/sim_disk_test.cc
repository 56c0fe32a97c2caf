#include "sim/sim_disk.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "runtime/files.h"
#include "sim/function_process.h"
#include "sim/world.h"

namespace helenus::sim {
namespace {

using base::Errc;
using runtime::OpenOptions;

constexpr std::uint64_t kSector = SimDisk::kSectorSize;
constexpr int kSeeds = 200;

SimDisk make_disk(std::uint64_t seed, DiskOptions options = {}) {
  return {1, base::Prng(seed), options};
}

InodeId create(SimDisk& disk, std::string_view path) {
  const auto file = disk.open(path, OpenOptions::create_new());
  EXPECT_TRUE(file.has_value()) << path;
  return *file;
}

void put(SimDisk& disk, InodeId file, std::uint64_t offset, std::string_view text) {
  EXPECT_TRUE(disk.write(file, offset, base::as_bytes(text)).has_value());
}

void sync(SimDisk& disk, InodeId file) {
  disk.sync(file, disk.sync_mark(file), 0);
}

void sync_names(SimDisk& disk, std::string_view path) {
  disk.commit_names(*disk.find_directory(path), disk.names_mark());
}

std::optional<std::string> text_of(const SimDisk& disk, std::string_view path) {
  const auto file = disk.find(path);
  if (!file) return std::nullopt;
  std::string text(disk.size(*file), '?');
  disk.read(*file, 0, std::as_writable_bytes(std::span(text)));
  return text;
}

// A durable file with that text.
InodeId durable_file(SimDisk& disk, std::string_view path, std::string_view text) {
  const InodeId file = create(disk, path);
  put(disk, file, 0, text);
  sync(disk, file);
  sync_names(disk, runtime::directory_of(std::string(path)));
  return file;
}

// ---- What a power loss leaves ----

TEST(SimDisk, WhatWasSyncedSurvivesEveryPowerLoss) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "kept");
    put(disk, file, kSector, "in doubt");
    disk.on_power_loss();
    ASSERT_TRUE(text_of(disk, "/file")->starts_with("kept"));
    disk.on_power_loss();
    ASSERT_TRUE(text_of(disk, "/file")->starts_with("kept"));
  }
}

TEST(SimDisk, UnsyncedBytesAreKeptOrLostOrTornBySectors) {
  const std::string text(8 * kSector, 'x');
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", std::string(8 * kSector, '.'));
    put(disk, file, 0, text);
    EXPECT_EQ(text_of(disk, "/file"), text);
    disk.on_power_loss();
    const std::string left = *text_of(disk, "/file");
    ASSERT_EQ(left.size(), text.size());
    std::string sectors;
    for (std::size_t at = 0; at < left.size(); at += kSector) {
      const std::string_view sector = std::string_view(left).substr(at, kSector);
      ASSERT_TRUE(sector.find_first_not_of(sector[0]) == std::string_view::npos)
          << "a sector is written whole or not at all";
      sectors += sector[0];
    }
    outcomes.insert(sectors);
  }
  EXPECT_TRUE(outcomes.contains("xxxxxxxx"));
  EXPECT_TRUE(outcomes.contains("........"));
  EXPECT_TRUE(outcomes.contains("xx......") || outcomes.contains("xxx.....")) << "a beginning";
  EXPECT_GT(outcomes.size(), 15) << "and any other subset";
}

TEST(SimDisk, AFileThatGrewMayEndInZerosThatNobodyWrote) {
  bool zeros_seen = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "");
    put(disk, file, 0, std::string(3 * kSector + 100, 'x'));
    disk.on_power_loss();
    const std::string left = *text_of(disk, "/file");
    EXPECT_LE(left.size(), 3 * kSector + 100);
    EXPECT_EQ(left.find_first_not_of(std::string("x\0", 2)), std::string::npos);
    zeros_seen |= left.contains('\0');
  }
  EXPECT_TRUE(zeros_seen);
}

// Whatever is written, synced and lost: a sector holds one of the contents that the cache gave it
// since the last sync.
RC_GTEST_PROP(SimDisk, ASectorAfterAPowerLossIsOneThatOnceExisted, (std::uint64_t seed)) {
  constexpr std::uint64_t kSectors = 6;
  SimDisk disk = make_disk(seed);
  const InodeId file = durable_file(disk, "/file", std::string(kSectors * kSector, '0'));
  std::vector<std::set<std::string>> possible(kSectors, {std::string(kSector, '0')});
  const auto content = [&](std::uint64_t sector) {
    return text_of(disk, "/file")->substr(sector * kSector, kSector);
  };
  const int steps = *rc::gen::inRange(1, 30);
  for (int step = 0; step < steps; ++step) {
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        sync(disk, file);
        for (std::uint64_t i = 0; i < kSectors; ++i) possible[i] = {content(i)};
        break;
      }
      case 1: {
        disk.on_power_loss();
        for (std::uint64_t i = 0; i < kSectors; ++i) {
          RC_ASSERT(possible[i].contains(content(i)));
          possible[i] = {content(i)};
        }
        break;
      }
      default: {
        const auto offset = *rc::gen::inRange<std::uint64_t>(0, kSectors * kSector);
        const auto size = *rc::gen::inRange<std::uint64_t>(1, kSectors * kSector - offset + 1);
        put(disk, *disk.find("/file"), offset, std::string(size, static_cast<char>('a' + step)));
        for (std::uint64_t i = 0; i < kSectors; ++i) possible[i].insert(content(i));
      }
    }
  }
}

TEST(SimDisk, ASyncCoversWhatWasWrittenBeforeItBegan) {
  bool lost = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "");
    put(disk, file, 0, "before");
    const std::uint64_t mark = disk.sync_mark(file);
    put(disk, file, kSector, "during");
    disk.sync(file, mark, 0);
    disk.on_power_loss();
    ASSERT_TRUE(text_of(disk, "/file")->starts_with("before"));
    lost |= text_of(disk, "/file")->size() < kSector + 6;
  }
  EXPECT_TRUE(lost) << "what was written during a sync may be lost";
}

TEST(SimDisk, AKillLosesNothing) {
  SimDisk disk = make_disk(1);
  put(disk, create(disk, "/file"), 0, "never synced");
  ASSERT_TRUE(disk.make_directories("/a/b").has_value());
  disk.on_kill();
  EXPECT_EQ(text_of(disk, "/file"), "never synced");
  EXPECT_TRUE(disk.find("/a/b").has_value());
}

TEST(SimDisk, ASizeThatWasNotSyncedIsInDoubt) {
  std::set<std::uint64_t> sizes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", std::string(1000, 'x'));
    disk.truncate(file, 10);
    disk.on_power_loss();
    sizes.insert(disk.size(*disk.find("/file")));
  }
  EXPECT_EQ(sizes, (std::set<std::uint64_t>{10, 1000}));
}

// ---- Names ----

TEST(SimDisk, ANameIsDurableOnceItsDirectoryWasSynced) {
  int lost = 0;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    durable_file(disk, "/kept", "x");
    sync(disk, create(disk, "/doubtful"));
    disk.on_power_loss();
    ASSERT_TRUE(disk.find("/kept").has_value());
    lost += disk.find("/doubtful").has_value() ? 0 : 1;
  }
  EXPECT_GT(lost, kSeeds / 4);
  EXPECT_LT(lost, kSeeds * 3 / 4);
}

TEST(SimDisk, TheLatestNamesGoFirst) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    for (const char* path : {"/a", "/b", "/c", "/d"}) create(disk, path);
    disk.on_power_loss();
    bool gone = false;
    for (const char* path : {"/a", "/b", "/c", "/d"}) {
      const bool there = disk.find(path).has_value();
      ASSERT_FALSE(gone && there) << path;
      gone |= !there;
    }
  }
}

TEST(SimDisk, ARenameHappenedOrDidNot) {
  std::set<std::string> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    durable_file(disk, "/current", "old");
    durable_file(disk, "/next", "new");
    ASSERT_TRUE(disk.rename("/next", "/current").has_value());
    disk.on_power_loss();
    const bool happened = text_of(disk, "/current") == "new";
    ASSERT_TRUE(happened || text_of(disk, "/current") == "old");
    ASSERT_EQ(disk.find("/next").has_value(), !happened);
    outcomes.insert(*text_of(disk, "/current"));
  }
  EXPECT_EQ(outcomes.size(), 2);
}

TEST(SimDisk, AMoveBetweenDirectoriesHappenedInBothOrInNeither) {
  std::set<bool> outcomes;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    ASSERT_TRUE(disk.make_directories("/from").has_value());
    ASSERT_TRUE(disk.make_directories("/to").has_value());
    sync_names(disk, "/");
    durable_file(disk, "/from/file", "x");
    create(disk, "/to/earlier");
    ASSERT_TRUE(disk.rename("/from/file", "/to/file").has_value());
    create(disk, "/from/later");
    // Whichever directory is synced, the move is durable in both.
    if (seed % 3 == 1) sync_names(disk, "/from");
    if (seed % 3 == 2) sync_names(disk, "/to");
    disk.on_power_loss();
    const bool at_source = disk.find("/from/file").has_value();
    const bool at_target = disk.find("/to/file").has_value();
    ASSERT_NE(at_source, at_target);
    if (seed % 3 != 0) ASSERT_TRUE(at_target);
    if (at_target) ASSERT_TRUE(disk.find("/to/earlier").has_value());
    outcomes.insert(at_target);
  }
  EXPECT_EQ(outcomes.size(), 2);
}

TEST(SimDisk, ADirectoryThatIsLostTakesWhatItHolds) {
  bool lost = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    ASSERT_TRUE(disk.make_directories("/new").has_value());
    durable_file(disk, "/new/file", "synced in vain");
    disk.on_power_loss();
    lost |= !disk.find("/new").has_value();
    if (disk.find("/new")) ASSERT_EQ(text_of(disk, "/new/file"), "synced in vain");
  }
  EXPECT_TRUE(lost);
}

TEST(SimDisk, ARemovedFileMayComeBack) {
  bool back = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    durable_file(disk, "/file", "x");
    ASSERT_TRUE(disk.remove("/file").has_value());
    disk.on_power_loss();
    back |= text_of(disk, "/file") == "x";
  }
  EXPECT_TRUE(back);
}

// ---- Failed syncs, decay, older images ----

TEST(SimDisk, AfterAFailedSyncALaterSuccessProvesNothing) {
  bool lost = false;
  bool shown = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "old");
    put(disk, file, 0, "new");
    disk.fail_sync(file, disk.sync_mark(file), false);
    shown |= text_of(disk, "/file") == "new";
    sync(disk, file);
    disk.on_power_loss();
    ASSERT_TRUE(text_of(disk, "/file") == "old" || text_of(disk, "/file") == "new");
    lost |= text_of(disk, "/file") == "old";
  }
  EXPECT_TRUE(shown) << "the cache goes on showing it";
  EXPECT_TRUE(lost) << "and yet it is lost";
}

TEST(SimDisk, AFailedSyncMayShowTheOldBytesAtOnce) {
  bool reverted = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "old");
    put(disk, file, 0, "new");
    disk.fail_sync(file, disk.sync_mark(file), true);
    reverted |= text_of(disk, "/file") == "old";
  }
  EXPECT_TRUE(reverted);
}

TEST(SimDisk, WhatIsSyncedAfterAFailureIsDurable) {
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const InodeId file = durable_file(disk, "/file", "");
    put(disk, file, 0, std::string(2000, 'a'));
    disk.fail_sync(file, disk.sync_mark(file), false);
    disk.truncate(file, 0);
    put(disk, file, 0, "written anew");
    sync(disk, file);
    disk.on_power_loss();
    ASSERT_EQ(text_of(disk, "/file"), "written anew");
  }
}

TEST(SimDisk, RotFlipsOneBitOfAFileAtRest) {
  SimDisk disk = make_disk(1);
  EXPECT_FALSE(disk.rot()) << "there is nothing to rot";
  const std::string text(10'000, 'x');
  durable_file(disk, "/file", text);
  EXPECT_TRUE(disk.rot());
  EXPECT_EQ(disk.counts().bits_flipped, 1);
  const std::string rotten = *text_of(disk, "/file");
  int bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    bits += std::popcount(static_cast<unsigned char>(text[i] ^ rotten[i]));
  }
  EXPECT_EQ(bits, 1);
  disk.on_power_loss();
  EXPECT_EQ(text_of(disk, "/file"), rotten);
}

TEST(SimDisk, AMisdirectedWriteIsMissingWhereItBelongsAndDamagesAnotherPlace) {
  bool other_file_hit = false;
  bool same_file_hit = false;
  for (int seed = 0; seed < kSeeds; ++seed) {
    SimDisk disk = make_disk(static_cast<std::uint64_t>(seed));
    const std::string before(4 * kSector, '.');
    const InodeId file = durable_file(disk, "/file", before);
    durable_file(disk, "/other", before);
    put(disk, file, 0, std::string(kSector, 'x'));
    disk.sync(file, disk.sync_mark(file), 1.0);
    EXPECT_EQ(disk.counts().writes_misdirected, 1);
    EXPECT_EQ(text_of(disk, "/file")->size(), before.size());
    other_file_hit |= text_of(disk, "/other") != before;
    const std::size_t found = text_of(disk, "/file")->find('x');
    same_file_hit |= found != std::string::npos && found > 0;
  }
  EXPECT_TRUE(other_file_hit);
  EXPECT_TRUE(same_file_hit);
}

TEST(SimDisk, AnOlderImageComesBackAsItWasDurableThen) {
  SimDisk disk = make_disk(1);
  const InodeId file = durable_file(disk, "/file", "first");
  put(disk, file, 0, "SECOND");
  const auto image = disk.snapshot();
  sync(disk, file);
  durable_file(disk, "/later", "x");
  const auto identity = disk.info("/file")->identity;
  disk.on_power_loss();
  disk.put_back(*image, false);
  EXPECT_EQ(text_of(disk, "/file"), "first");
  EXPECT_FALSE(disk.find("/later").has_value());
  EXPECT_EQ(disk.info("/file")->identity, identity);
  disk.put_back(*image, true);
  EXPECT_NE(disk.info("/file")->identity, identity) << "a copy has identities of its own";
}

// ---- Space ----

TEST(SimDisk, AFullDiskTakesWhatFitsAndSaysSo) {
  SimDisk disk = make_disk(1, {.capacity_bytes = 4 * FileImage::kPageSize});
  const InodeId file = durable_file(disk, "/file", std::string(3 * FileImage::kPageSize, 'x'));
  const auto written = disk.write(file, 3 * FileImage::kPageSize,
                                  base::as_bytes(std::string(2 * FileImage::kPageSize, 'y')));
  EXPECT_TRUE(written.failed_with(Errc::no_space));
  EXPECT_EQ(disk.size(file), 4 * FileImage::kPageSize) << "part of it is there";
  EXPECT_EQ(disk.space("/")->free_bytes, 0);
  put(disk, file, 0, "what has its place may be written again");
}

TEST(SimDisk, PreallocatedSpaceCannotRunOut) {
  SimDisk disk = make_disk(1, {.capacity_bytes = 4 * FileImage::kPageSize});
  const InodeId reserved = create(disk, "/reserved");
  ASSERT_TRUE(disk.preallocate(reserved, 3 * FileImage::kPageSize).has_value());
  EXPECT_TRUE(disk.preallocate(create(disk, "/more"), 2 * FileImage::kPageSize)
                  .failed_with(Errc::no_space));
  const InodeId greedy = create(disk, "/greedy");
  put(disk, greedy, 0, std::string(FileImage::kPageSize, 'x'));
  EXPECT_TRUE(
      disk.write(greedy, FileImage::kPageSize, base::as_bytes("y")).failed_with(Errc::no_space));
  put(disk, reserved, 0, std::string(3 * FileImage::kPageSize, 'z'));
}

TEST(SimDisk, SpaceComesBackWhenTheLastNameAndTheLastHolderAreGone) {
  SimDisk disk = make_disk(1);
  const InodeId file = durable_file(disk, "/file", std::string(10'000, 'x'));
  ASSERT_TRUE(disk.link("/file", "/linked").has_value());
  const std::uint64_t used = disk.used_bytes();
  EXPECT_EQ(used, 3 * FileImage::kPageSize);
  disk.hold(file);
  ASSERT_TRUE(disk.remove("/file").has_value());
  ASSERT_TRUE(disk.rename("/linked", "/renamed").has_value());
  ASSERT_TRUE(disk.remove("/renamed").has_value());
  EXPECT_EQ(disk.used_bytes(), used);
  disk.release(file, disk.epoch());
  EXPECT_EQ(disk.used_bytes(), 0);
}

TEST(SimDisk, ThousandsOfFilesComeAndGo) {
  SimDisk disk = make_disk(1);
  for (int round = 0; round < 5000; ++round) {
    put(disk, create(disk, "/next"), 0, "x");
    ASSERT_TRUE(disk.rename("/next", "/current").has_value());
    if (round % 10 == 0) sync_names(disk, "/");
  }
  EXPECT_EQ(disk.list("/")->size(), 1);
  EXPECT_EQ(disk.used_bytes(), FileImage::kPageSize);
}

TEST(FileImage, CopiesShareUntilOneIsWrittenTo) {
  FileImage one;
  one.write(0, base::as_bytes("shared"));
  FileImage other = one;
  EXPECT_TRUE(one.shares_page(other, 0));
  other.write(0, base::as_bytes("S"));
  EXPECT_FALSE(one.shares_page(other, 0));
  std::string text(6, '?');
  one.read(0, std::as_writable_bytes(std::span(text)));
  EXPECT_EQ(text, "shared");
}

RC_GTEST_PROP(FileImage, BehavesAsAString, ()) {
  FileImage image;
  std::string model;
  const int steps = *rc::gen::inRange(1, 40);
  for (int step = 0; step < steps; ++step) {
    const auto at = *rc::gen::inRange<std::size_t>(0, 20'000);
    if (*rc::gen::inRange(0, 3) == 0) {
      image.resize(at);
      model.resize(at, '\0');
    } else {
      const auto size = *rc::gen::inRange<std::size_t>(1, 9000);
      const std::string text(size, static_cast<char>('a' + step % 26));
      image.write(at, base::as_bytes(text));
      if (model.size() < at + size) model.resize(at + size, '\0');
      model.replace(at, size, text);
    }
  }
  RC_ASSERT(image.size() == model.size());
  std::string text(model.size(), '?');
  image.read(0, std::as_writable_bytes(std::span(text)));
  RC_ASSERT(text == model);
}

}  // namespace
}  // namespace helenus::sim
