// What FileSystem and File promise, in any world.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "runtime/contract/contract.h"
#include "runtime/file_system.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(FileSystemContract);

namespace {

using base::Buffer;
using base::ByteView;
using base::Errc;
using base::Result;
using testing::AnyOf;
using testing::HasSubstr;

const Until kForever = Until::forever();

Until expired() {
  return {.deadline = MonotonicTime()};
}

Buffer zeroed(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  Buffer buffer(size, alignment);
  std::ranges::fill(buffer.extend(size), std::byte{0});
  return buffer;
}

Buffer noise(std::size_t size, std::uint64_t seed) {
  Buffer buffer(size, kDirectAlignment);
  base::Prng prng(seed);
  for (auto& byte : buffer.extend(size)) byte = std::byte(prng.next() & 0xff);
  return buffer;
}

Task<Result<std::string>> read_text(File& file, std::uint64_t offset, std::size_t size) {
  std::string text(size, '?');
  CO_TRY(const std::size_t count,
         co_await file.read_at(offset, std::as_writable_bytes(std::span(text)), kForever));
  text.resize(count);
  co_return text;
}

Task<Result<std::string>> content_of(Runtime& runtime, std::string path) {
  CO_TRY(const auto file, co_await runtime.files.open(path, OpenOptions::read_only()));
  CO_TRY(const std::uint64_t size, co_await file->size());
  co_return co_await read_text(*file, 0, size);
}

Task<Result<void>> put(Runtime& runtime, std::string path, std::string text) {
  OpenOptions options = OpenOptions::read_write();
  options.truncate = true;
  CO_TRY(const auto file, co_await runtime.files.open(path, options));
  co_return co_await file->write_at(0, base::as_bytes(text), kForever);
}

// The error has the code, and says which path it is about.
template <class T>
void expect_error(const Result<T>& result, Errc code, std::string_view path) {
  ASSERT_FALSE(result.has_value()) << path;
  EXPECT_EQ(result.error().code(), code) << result.error().to_string();
  EXPECT_THAT(std::string(result.error().context()), HasSubstr(std::string(path)));
}

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

// Reading and writing

TEST_P(FileSystemContract, WhatWasWrittenIsReadBackWhereItWasPut) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->write_at(0, base::as_bytes("hello world"), kForever));
    CO_ASSERT_OK(co_await (*file)->write_at(6, base::as_bytes("there"), kForever));
    EXPECT_THAT(co_await read_text(**file, 0, 11), Holds("hello there"));
    EXPECT_THAT(co_await read_text(**file, 4, 3), Holds("o t"));
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds("hello there"));
  });
}

TEST_P(FileSystemContract, AReadIsShortOnlyAtTheEndOfTheFile) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    EXPECT_THAT(co_await read_text(**file, 0, 8), Holds(""));
    CO_ASSERT_OK(co_await (*file)->write_at(0, base::as_bytes("0123456789"), kForever));
    EXPECT_THAT(co_await read_text(**file, 0, 10), Holds("0123456789"));
    EXPECT_THAT(co_await read_text(**file, 8, 4), Holds("89"));
    EXPECT_THAT(co_await read_text(**file, 10, 4), Holds(""));
    EXPECT_THAT(co_await read_text(**file, 1'000'000, 4), Holds(""));
  });
}

TEST_P(FileSystemContract, MemoryBeyondAShortReadIsLeftAlone) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "abc"));
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::read_only());
    CO_ASSERT_OK(file);
    std::string memory(8, '-');
    const auto count =
        co_await (*file)->read_at(1, std::as_writable_bytes(std::span(memory)), kForever);
    EXPECT_THAT(count, Holds(2U));
    EXPECT_EQ(memory, "bc------");
  });
}

TEST_P(FileSystemContract, AGapBetweenWritesReadsAsZeros) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->write_at(100'000, base::as_bytes("end"), kForever));
    EXPECT_THAT(co_await (*file)->size(), Holds(100'003U));
    const auto text = co_await read_text(**file, 0, 100'003);
    CO_ASSERT_OK(text);
    EXPECT_EQ(*text, std::string(100'000, '\0') + "end");
  });
}

TEST_P(FileSystemContract, LargeTransfersArriveWhole) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const Buffer written = noise((8U << 20) + 17, 1);
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->write_at(3, written.view(), kForever));
    Buffer back = zeroed(written.size());
    const auto count = co_await (*file)->read_at(3, back.mutable_view(), kForever);
    EXPECT_THAT(count, Holds(written.size()));
    EXPECT_TRUE(base::equal(written.view(), back.view()));
  });
}

TEST_P(FileSystemContract, EmptyTransfersSucceedAndDoNothing) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->write_at(50, {}, kForever));
    CO_ASSERT_OK(co_await (*file)->append({}, kForever));
    CO_ASSERT_OK(co_await (*file)->append_and_sync({}, kForever));
    EXPECT_THAT(co_await (*file)->read_at(0, {}, kForever), Holds(0U));
    EXPECT_THAT(co_await (*file)->size(), Holds(0U));
    EXPECT_EQ((*file)->append_position(), 0);
  });
}

TEST_P(FileSystemContract, WritingToAFileOpenedForReadingIsRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    CO_ASSERT_OK(co_await put(rt, path, "kept"));
    const auto file = co_await rt.files.open(path, OpenOptions::read_only());
    CO_ASSERT_OK(file);
    File& f = **file;
    const ByteView bytes = base::as_bytes("lost");
    expect_error(co_await f.write_at(0, bytes, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.append(bytes, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.append_and_sync(bytes, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.truncate(0), Errc::invalid_argument, path);
    expect_error(co_await f.preallocate(100), Errc::invalid_argument, path);
    EXPECT_THAT(co_await content_of(rt, path), Holds("kept"));
  });
}

TEST_P(FileSystemContract, TransfersBeyondTheLimitAreRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    const auto file = co_await rt.files.open(path, OpenOptions::create_new());
    CO_ASSERT_OK(file);
    // A view that is never looked at: the refusal comes first.
    std::byte byte{};
    const base::MutableByteView huge(&byte, kTransferMax + 1);
    expect_error(co_await (*file)->write_at(0, huge, kForever), Errc::invalid_argument, path);
    expect_error(co_await (*file)->read_at(0, huge, kForever), Errc::invalid_argument, path);
    EXPECT_THAT(co_await (*file)->size(), Holds(0U));
  });
}

TEST_P(FileSystemContract, OffsetsBeyondTheLargestFileAreRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    const auto file = co_await rt.files.open(path, OpenOptions::create_new());
    CO_ASSERT_OK(file);
    const auto written = co_await (*file)->write_at(UINT64_MAX - 1, base::as_bytes("x"), kForever);
    expect_error(written, Errc::invalid_argument, path);
    std::array<std::byte, 1> memory{};
    const auto read = co_await (*file)->read_at(UINT64_MAX, memory, kForever);
    expect_error(read, Errc::invalid_argument, path);
    expect_error(co_await (*file)->truncate(UINT64_MAX), Errc::invalid_argument, path);
    expect_error(co_await (*file)->preallocate(UINT64_MAX), Errc::invalid_argument, path);
  });
}

namespace {

Task<Result<void>> write_block(File& file, std::size_t index, std::size_t block_size) {
  const Buffer block = noise(block_size, index);
  co_return co_await file.write_at(index * block_size, block.view(), kForever);
}

Task<Result<bool>> block_is_right(File& file, std::size_t index, std::size_t block_size) {
  Buffer block = zeroed(block_size);
  CO_TRY(const auto count,
         co_await file.read_at(index * block_size, block.mutable_view(), kForever));
  co_return count == block_size&& base::equal(block.view(), noise(block_size, index).view());
}

}  // namespace

TEST_P(FileSystemContract, ManyOperationsMayBeUnderWayOnOneFile) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    constexpr std::size_t kBlocks = 1000;
    constexpr std::size_t kBlockSize = 700;
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    std::vector<Task<Result<void>>> writes;
    for (std::size_t i = 0; i < kBlocks; ++i) writes.push_back(write_block(**file, i, kBlockSize));
    for (const auto& written : co_await when_all(std::move(writes))) CO_ASSERT_OK(written);
    std::vector<Task<Result<bool>>> reads;
    for (std::size_t i = 0; i < kBlocks; ++i) {
      reads.push_back(block_is_right(**file, i, kBlockSize));
    }
    for (const auto& right : co_await when_all(std::move(reads))) EXPECT_THAT(right, Holds(true));
  });
}

TEST_P(FileSystemContract, SyncSucceedsOnFilesOldAndNewFullAndEmpty) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->sync(kForever));
    CO_ASSERT_OK(co_await (*file)->write_at(0, base::as_bytes("durable"), kForever));
    CO_ASSERT_OK(co_await (*file)->sync(kForever));
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds("durable"));
  });
}

// Appending

TEST_P(FileSystemContract, AppendsFollowOneAnother) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/log", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("one,"), kForever));
    CO_ASSERT_OK(co_await (*file)->append_and_sync(base::as_bytes("two,"), kForever));
    CO_ASSERT_OK(co_await (*file)->write_at(0, base::as_bytes("ONE"), kForever));
    EXPECT_EQ((*file)->append_position(), 8);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("three"), kForever));
    EXPECT_THAT(co_await content_of(rt, dir + "/log"), Holds("ONE,two,three"));
  });
}

TEST_P(FileSystemContract, AppendingBeginsAtTheSizeFoundWhenOpened) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/log", "before,"));
    const auto file = co_await rt.files.open(dir + "/log", OpenOptions::read_write());
    CO_ASSERT_OK(file);
    EXPECT_EQ((*file)->append_position(), 7);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("after"), kForever));
    EXPECT_THAT(co_await content_of(rt, dir + "/log"), Holds("before,after"));
  });
}

TEST_P(FileSystemContract, PreallocatingDoesNotMoveTheAppendPosition) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/log", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("a"), kForever));
    CO_ASSERT_OK(co_await (*file)->preallocate(10'000));
    EXPECT_EQ((*file)->append_position(), 1);
    CO_ASSERT_OK(co_await (*file)->append_and_sync(base::as_bytes("b"), kForever));
    EXPECT_THAT(co_await content_of(rt, dir + "/log"), Holds("ab" + std::string(9'998, '\0')));
    (*file)->set_append_position(5);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("c"), kForever));
    EXPECT_THAT(co_await read_text(**file, 0, 7), Holds(std::string("ab\0\0\0c\0", 7)));
  });
}

namespace {

Task<Result<void>> append_text(File& file, std::string text, bool with_sync) {
  if (with_sync) co_return co_await file.append_and_sync(base::as_bytes(text), kForever);
  co_return co_await file.append(base::as_bytes(text), kForever);
}

}  // namespace

TEST_P(FileSystemContract, AppendsUnderWayTogetherKeepTheOrderTheyWereStartedIn) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/log", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    std::vector<Task<Result<void>>> appends;
    std::string expected;
    for (int i = 0; i < 40; ++i) {
      const std::string text(static_cast<std::size_t>(1 + i), static_cast<char>('a' + i % 26));
      appends.push_back(append_text(**file, text, i % 3 == 0));
      expected += text;
    }
    for (const auto& appended : co_await when_all(std::move(appends))) CO_ASSERT_OK(appended);
    EXPECT_THAT(co_await content_of(rt, dir + "/log"), Holds(expected));
    EXPECT_EQ((*file)->append_position(), expected.size());
  });
}

TEST_P(FileSystemContract, AFailedAppendStillMovesThePosition) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/log", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    const auto cut = co_await (*file)->append(base::as_bytes("gone"), expired());
    EXPECT_TRUE(cut.failed_with(Errc::timeout));
    EXPECT_EQ((*file)->append_position(), 4);
  });
}

// Size and space

TEST_P(FileSystemContract, TruncatingShortensAndLengthens) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("0123456789"), kForever));
    CO_ASSERT_OK(co_await (*file)->truncate(4));
    EXPECT_THAT(co_await (*file)->size(), Holds(4U));
    CO_ASSERT_OK(co_await (*file)->truncate(6));
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds(std::string("0123\0\0", 6)));
    EXPECT_EQ((*file)->append_position(), 10);
  });
}

TEST_P(FileSystemContract, PreallocatingLengthensAndNeverShortens) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("0123456789"), kForever));
    CO_ASSERT_OK(co_await (*file)->preallocate(0));
    CO_ASSERT_OK(co_await (*file)->preallocate(4));
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds("0123456789"));
    CO_ASSERT_OK(co_await (*file)->preallocate(20'000));
    EXPECT_THAT(co_await content_of(rt, dir + "/file"),
                Holds("0123456789" + std::string(19'990, '\0')));
  });
}

TEST_P(FileSystemContract, ClosingKeepsWhatWasWritten) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->append(base::as_bytes("kept"), kForever));
    CO_ASSERT_OK(co_await (*file)->close());
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds("kept"));
  });
}

TEST_P(FileSystemContract, AClosedFileServesNothingMore) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    const auto file = co_await rt.files.open(path, OpenOptions::create_new());
    CO_ASSERT_OK(file);
    CO_ASSERT_OK(co_await (*file)->close());
    std::array<std::byte, 1> memory{};
    expect_error(co_await (*file)->read_at(0, memory, kForever), Errc::closed, path);
    expect_error(co_await (*file)->write_at(0, memory, kForever), Errc::closed, path);
    expect_error(co_await (*file)->sync(kForever), Errc::closed, path);
    expect_error(co_await (*file)->size(), Errc::closed, path);
    expect_error(co_await (*file)->truncate(0), Errc::closed, path);
    expect_error(co_await (*file)->preallocate(1), Errc::closed, path);
    expect_error(co_await (*file)->close(), Errc::closed, path);
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

// Direct transfers

TEST_P(FileSystemContract, DirectTransfersGoPastTheCacheAndComeBack) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    OpenOptions options = OpenOptions::create_new();
    options.direct = true;
    const auto file = co_await rt.files.open(dir + "/file", options);
    CO_ASSERT_OK(file);
    const Buffer blocks = noise(4 * kDirectAlignment, 7);
    CO_ASSERT_OK(co_await (*file)->preallocate(16 * kDirectAlignment));
    CO_ASSERT_OK(co_await (*file)->append(blocks.view(), kForever));
    CO_ASSERT_OK(co_await (*file)->append_and_sync(blocks.view(), kForever));
    Buffer back = zeroed(8 * kDirectAlignment, kDirectAlignment);
    EXPECT_THAT(co_await (*file)->read_at(0, back.mutable_view(), kForever), Holds(back.size()));
    EXPECT_TRUE(base::equal(back.view().first(blocks.size()), blocks.view()));
    EXPECT_TRUE(base::equal(back.view().subspan(blocks.size()), blocks.view()));
  });
}

TEST_P(FileSystemContract, ADirectReadIsShortAtTheEndToo) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", std::string(kDirectAlignment + 100, 'x')));
    const auto file = co_await rt.files.open(dir + "/file", {.direct = true});
    CO_ASSERT_OK(file);
    Buffer memory = zeroed(4 * kDirectAlignment, kDirectAlignment);
    EXPECT_THAT(co_await (*file)->read_at(0, memory.mutable_view(), kForever),
                Holds(kDirectAlignment + 100));
    EXPECT_THAT(co_await (*file)->read_at(kDirectAlignment, memory.mutable_view(), kForever),
                Holds(100U));
    EXPECT_THAT(co_await (*file)->read_at(2 * kDirectAlignment, memory.mutable_view(), kForever),
                Holds(0U));
  });
}

TEST_P(FileSystemContract, DirectTransfersOutOfLineAreRefused) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    OpenOptions options = OpenOptions::create_new();
    options.direct = true;
    const auto file = co_await rt.files.open(path, options);
    CO_ASSERT_OK(file);
    File& f = **file;
    Buffer memory = zeroed(4 * kDirectAlignment, kDirectAlignment);
    const base::MutableByteView all = memory.mutable_view();
    const auto odd_size = all.first(100);
    const auto odd_memory = all.subspan(512, kDirectAlignment);
    const auto in_line = all.first(kDirectAlignment);
    expect_error(co_await f.write_at(0, odd_size, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.write_at(0, odd_memory, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.write_at(512, in_line, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.append_and_sync(odd_size, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.read_at(0, odd_size, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.read_at(0, odd_memory, kForever), Errc::invalid_argument, path);
    expect_error(co_await f.read_at(512, in_line, kForever), Errc::invalid_argument, path);
    EXPECT_THAT(co_await f.size(), Holds(0U));
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

// Cut waits

TEST_P(FileSystemContract, AWaitThatIsOverBeforeItBeginsTouchesNothing) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    CO_ASSERT_OK(co_await put(rt, dir + "/file", "kept"));
    const auto file = co_await rt.files.open(dir + "/file", OpenOptions::read_write());
    CO_ASSERT_OK(file);
    StopSource stop;
    stop.request_stop();
    const Until stopped{.stop = stop.token()};
    std::string memory = "----";
    const auto into = std::as_writable_bytes(std::span(memory));
    const ByteView from = base::as_bytes("lost");
    File& f = **file;
    EXPECT_TRUE((co_await f.read_at(0, into, expired())).failed_with(Errc::timeout));
    EXPECT_TRUE((co_await f.read_at(0, into, stopped)).failed_with(Errc::cancelled));
    EXPECT_TRUE((co_await f.write_at(0, from, expired())).failed_with(Errc::timeout));
    EXPECT_TRUE((co_await f.write_at(0, from, stopped)).failed_with(Errc::cancelled));
    EXPECT_TRUE((co_await f.sync(expired())).failed_with(Errc::timeout));
    EXPECT_TRUE((co_await f.sync(stopped)).failed_with(Errc::cancelled));
    EXPECT_TRUE((co_await f.append_and_sync(from, expired())).failed_with(Errc::timeout));
    EXPECT_TRUE((co_await f.append_and_sync(from, stopped)).failed_with(Errc::cancelled));
    EXPECT_EQ(memory, "----");
    EXPECT_THAT(co_await content_of(rt, dir + "/file"), Holds("kept"));
  });
}

namespace {

enum class Kind { read, write, sync, write_and_sync };

// Uses memory of its own, gone as soon as the operation has ended.
Task<void> expect_done_or(Errc cut, Kind kind, File& file, std::size_t index, Until until) {
  Buffer memory = noise(16 * kDirectAlignment, index);
  const std::uint64_t offset = index * memory.size();
  Result<void> outcome;
  if (kind == Kind::read) {
    const auto count = co_await file.read_at(offset, memory.mutable_view(), until);
    if (!count) outcome = count.error();
  } else if (kind == Kind::write) {
    outcome = co_await file.write_at(offset, memory.view(), until);
  } else if (kind == Kind::sync) {
    outcome = co_await file.sync(until);
  } else {
    outcome = co_await file.append_and_sync(memory.view(), until);
  }
  if (!outcome) EXPECT_EQ(outcome.error().code(), cut) << outcome.error().to_string();
}

std::vector<Task<void>> one_of_each(Errc cut, File& file, const Until& until) {
  std::vector<Task<void>> tasks;
  for (std::size_t index = 0; index < 60; ++index) {
    for (const Kind kind : {Kind::read, Kind::write, Kind::sync, Kind::write_and_sync}) {
      tasks.push_back(expect_done_or(cut, kind, file, index, until));
    }
  }
  return tasks;
}

Task<void> cut_while_under_way(Runtime& rt, std::string path, OpenOptions options) {
  const auto file = co_await rt.files.open(path, options);
  CO_ASSERT_OK(file);
  for (const Duration wait : {1ns, 20'000ns, 200'000ns}) {
    co_await when_all(one_of_each(Errc::timeout, **file, Until::after(rt, wait)));
  }
  for (int turns = 0; turns < 3; ++turns) {
    StopSource stop;
    TaskGroup group(rt);
    for (auto& task : one_of_each(Errc::cancelled, **file, {.stop = stop.token()})) {
      group.spawn(std::move(task));
    }
    for (int turn = 0; turn < turns; ++turn) CO_ASSERT_OK(co_await yield_now(rt));
    stop.request_stop();
    co_await group.join();
  }
  // The file is as good as before for whoever does not mind what was cut.
  const Buffer block = noise(kDirectAlignment, 99);
  CO_ASSERT_OK(co_await (*file)->write_at(0, block.view(), kForever));
  CO_ASSERT_OK(co_await (*file)->sync(kForever));
  Buffer back = zeroed(kDirectAlignment, kDirectAlignment);
  EXPECT_THAT(co_await (*file)->read_at(0, back.mutable_view(), kForever), Holds(kDirectAlignment));
  EXPECT_TRUE(base::equal(back.view(), block.view()));
}

}  // namespace

TEST_P(FileSystemContract, OperationsCutUnderWayEndAndLetGoOfTheirMemory) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    co_await cut_while_under_way(rt, dir + "/cached", OpenOptions::create_new());
  });
}

TEST_P(FileSystemContract, DirectOperationsCutUnderWayEndAndLetGoOfTheirMemory) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    OpenOptions options = OpenOptions::create_new();
    options.direct = true;
    co_await cut_while_under_way(rt, dir + "/direct", options);
  });
}

}  // namespace helenus::runtime::contract
