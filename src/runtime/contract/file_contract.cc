// What File promises, in any world.
#include <array>
#include <utility>
#include <vector>

#include "runtime/contract/file_stories.h"
#include "runtime/sleep.h"
#include "runtime/task_group.h"
#include "runtime/when_all.h"

namespace helenus::runtime::contract {

namespace {

using base::Buffer;
using base::ByteView;
using base::Errc;
using base::Result;

}  // namespace

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

TEST_P(FileSystemContract, AFileReadAtRandomHasTheSameBytes) {
  tell([](Runtime& rt, std::string dir) -> Task<void> {
    const std::string path = dir + "/file";
    const std::string text(std::size_t{100} << 10, 'x');
    CO_ASSERT_OK(co_await put(rt, path, text + "middle" + text));
    const auto file = co_await rt.files.open(path, {.random_access = true});
    CO_ASSERT_OK(file);
    EXPECT_THAT(co_await read_text(**file, text.size(), 6), Holds("middle"));
    EXPECT_THAT(co_await read_text(**file, 0, text.size()), Holds(text));
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

// Size

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
