#include "storage/verify/sstable_verify.h"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/prng.h"
#include "storage/entry/entry.h"
#include "storage/entry/range_delete_key.h"
#include "storage/manifest/knowledge.h"
#include "storage/sstable/sstable_test_support.h"

namespace helenus::storage {
namespace {

using base::Bytes;
using base::Errc;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using testing::HasSubstr;

const std::string kPath = "/table.sst";

Rows some_rows(int count) {
  Rows rows;
  for (int i = 0; i < count; ++i) {
    rows[fmt::format("part{}/key{:03}", i / 16, i)] = {.value = fmt::format("value {}", i * i),
                                                       .partition_size = 5};
  }
  return rows;
}

Task<void> write(Runtime& runtime, const Rows& rows, SstableWriter::Options options) {
  const auto written =
      co_await write_sstable(runtime, kPath, rows, std::move(options), Bytes::copy_of("metadata"));
  CO_ASSERT_OK(written);
}

Task<void> verify(Runtime& runtime, Result<VerifyProgress>& result) {
  SstableShared shared(1 << 20);
  result = co_await verify_sstable(runtime, shared, kPath, {}, runtime::Until::forever());
}

class SstableVerify : public testing::Test {
 protected:
  void make(const Rows& rows, SstableWriter::Options options) {
    machine_.run([&](Runtime& runtime) { return write(runtime, rows, options); });
    good_ = machine_.content(kPath);
  }
  Result<VerifyProgress> verified() {
    Result<VerifyProgress> result;
    machine_.run([&](Runtime& runtime) { return verify(runtime, result); });
    return result;
  }
  // What `verify` says of a file in which the n-th block of a kind has another payload, and a
  // checksum that fits it.
  Result<VerifyProgress> after_forging(BlockKind kind, std::size_t number,
                                       const std::function<void(base::MutableByteView)>& change) {
    base::Buffer file;
    file.append(good_);
    const BlockSeal seal(small_options().id.value());
    for (std::uint64_t offset = SstableHeader::kSize;;) {
      const auto head = BlockHead::decode(good_.view().subspan(offset));
      EXPECT_TRUE(head.has_value() && head->compression == Compression::none);
      if (head->kind == kind && number-- == 0) {
        change(file.mutable_view().subspan(offset + kBlockHeadSize, head->payload_size));
        const std::size_t sealed = kBlockHeadSize + head->payload_size;
        base::store_le(file.data() + offset + sealed,
                       seal.of(offset, file.view().subspan(offset, sealed)));
        break;
      }
      offset += head->stored_size + kBlockFrameSize;
    }
    machine_.replace(kPath, file.view());
    return verified();
  }

  SimMachine machine_;
  Bytes good_;
};

TEST_F(SstableVerify, CountsWhatASoundFileHolds) {
  make(some_rows(200), small_options());
  const auto result = verified();
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_EQ(result->keys, 200u);
  EXPECT_EQ(result->bytes_done, good_.size());
  EXPECT_EQ(result->bytes_total, good_.size());
}

TEST_F(SstableVerify, AnEmptyFileIsSound) {
  make({}, small_options());
  const auto result = verified();
  ASSERT_TRUE(result.has_value()) << result.error().to_string();
  EXPECT_EQ(result->keys, 0u);
}

TEST_F(SstableVerify, FindsEveryFlippedBit) {
  make(some_rows(30), small_options(Compression::lz4));
  for (std::size_t bit = 0; bit < good_.size() * 8; ++bit) {
    const std::byte flipped = good_[bit / 8] ^ std::byte(1u << (bit % 8));
    machine_.overwrite(kPath, bit / 8, {&flipped, 1});
    const auto result = verified();
    ASSERT_FALSE(result.has_value()) << bit;
    ASSERT_THAT(result.error().context(), HasSubstr(kPath));
    ASSERT_THAT(result.error().context(), HasSubstr("offset"));
    machine_.overwrite(kPath, bit / 8, good_.view().subspan(bit / 8, 1));
  }
}

TEST_F(SstableVerify, FindsAKeyOutOfOrderThatEveryChecksumVouchesFor) {
  make(some_rows(60), small_options());
  const auto first_byte_of_keys = [](base::MutableByteView payload) {
    const auto at = base::as_text(payload).find("part");
    ASSERT_NE(at, std::string_view::npos);
    payload[at] = std::byte{'z'};
  };
  const auto result = after_forging(BlockKind::data, 1, first_byte_of_keys);
  ASSERT_TRUE(result.failed_with(Errc::corrupt));
  EXPECT_THAT(result.error().context(), HasSubstr("data block at offset "));
}

TEST_F(SstableVerify, FindsStatisticsThatCountWrongly) {
  make(some_rows(60), small_options());
  // The first counter is the number of keys, in one byte.
  const auto one_more_key = [](base::MutableByteView payload) {
    ASSERT_EQ(payload[1], std::byte{60});
    payload[1] = std::byte{61};
  };
  const auto result = after_forging(BlockKind::statistics, 0, one_more_key);
  ASSERT_TRUE(result.failed_with(Errc::corrupt));
  EXPECT_THAT(result.error().context(), HasSubstr("state 61 keys, the file has 60"));
}

TEST_F(SstableVerify, FindsAnIndexThatPointsElsewhere) {
  make(some_rows(60), small_options());
  const auto swap_children = [](base::MutableByteView payload) {
    // Entries lie at the end, one behind the other.
    const base::MutableByteView last_two = payload.last(2 * IndexEntry::kSize);
    std::swap_ranges(last_two.begin(), last_two.begin() + IndexEntry::kSize,
                     last_two.begin() + IndexEntry::kSize);
  };
  const auto result = after_forging(BlockKind::index, 0, swap_children);
  ASSERT_TRUE(result.failed_with(Errc::corrupt));
  EXPECT_THAT(result.error().context(), HasSubstr("index block at offset "));
}

TEST_F(SstableVerify, FindsASeparatorOnTheWrongSideOfItsKeys) {
  make(some_rows(60), small_options());
  for (const char replacement : {'\0', '\xff'}) {
    const auto last_separator = [&](base::MutableByteView payload) {
      // The byte before the first value ends the last separator.
      const std::size_t values = payload.size() - IndexEntry::kSize * 16;
      payload[values - 1] = std::byte(replacement);
    };
    const auto result = after_forging(BlockKind::index, 0, last_separator);
    ASSERT_TRUE(result.failed_with(Errc::corrupt));
    EXPECT_THAT(result.error().context(), HasSubstr("index block at offset "));
  }
}

TEST_F(SstableVerify, FindsAFilterThatDeniesAKey) {
  make(some_rows(60), small_options());
  // A filter of as many keys, none of which is in the file.
  const auto other_filter = [&](base::MutableByteView payload) {
    FilterBuilder other(small_options().filter);
    const auto mine = SstableFilter::decode(payload);
    ASSERT_TRUE(mine.has_value());
    for (std::uint64_t i = 0; i < mine->hash_count(); ++i) other.add(base::mix64(i));
    const Bytes encoded = other.finish();
    ASSERT_EQ(encoded.size(), payload.size());
    std::ranges::copy(encoded.view(), payload.begin());
  };
  const auto result = after_forging(BlockKind::filter, 0, other_filter);
  ASSERT_TRUE(result.failed_with(Errc::corrupt));
  EXPECT_THAT(result.error().context(), HasSubstr("denied by the filter"));
}

TEST_F(SstableVerify, FindsAHeaderOfAnotherFile) {
  make(some_rows(10), small_options());
  base::Buffer header;
  SstableHeader{.id = {}}.encode(header);
  machine_.overwrite(kPath, 0, header.view());
  const auto result = verified();
  ASSERT_TRUE(result.failed_with(Errc::corrupt));
  EXPECT_THAT(result.error().context(), HasSubstr("header at offset 0"));
}

// ---- Entries of an engine

struct Range {
  std::string from;
  std::string to;
};

std::string encoded_entry(const std::vector<Range>& ranges, std::vector<RangeDepth> depths = {}) {
  Entry entry;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    causality::Version version;
    version.kind = causality::VersionKind::deletion;
    version.dot = {causality::actor_of(1, 1), i + 1};
    entry.absorb(
        causality::RangeDelete{{Bytes::copy_of(ranges[i].from), Bytes::copy_of(ranges[i].to)},
                               causality::CellStore({version}, {})});
  }
  for (const RangeDepth depth : depths) entry.add_depth(depth);
  base::Buffer bytes;
  base::Encoder out(bytes);
  encode(out, entry);
  return std::string(base::as_text(bytes.view()));
}

std::string key_of_ranges(const std::string& begin, RangeDepth depth) {
  const std::string path = range_path(base::as_bytes(begin), depth);
  return encode_key({base::as_bytes("part"), EntryKind::deleted_ranges, base::as_bytes(path)});
}

Task<void> write_entries(Runtime& runtime, const std::map<std::string, std::string>& entries,
                         SstableMetadata metadata) {
  Rows rows;
  for (const auto& [key, value] : entries) rows[key] = {.value = value, .partition_size = 4};
  CO_ASSERT_OK(co_await write_sstable(runtime, kPath, rows, small_options(), encode(metadata)));
}

class EntriesOfAFile : public testing::Test {
 protected:
  static Task<void> verify(Runtime& runtime, Result<VerifyProgress>& result) {
    SstableShared shared(1 << 20);
    result = co_await verify_sstable(runtime, shared, kPath, {}, runtime::Until::forever());
  }
  // What verifying says of a file with these entries of ranges.
  std::string said(const std::map<std::string, std::string>& entries,
                   std::uint64_t deleted_ranges) {
    SimMachine machine;
    SstableMetadata metadata;
    metadata.deleted_ranges = deleted_ranges;
    metadata.cells = deleted_ranges;  // each entry has one
    machine.run([&](Runtime& runtime) { return write_entries(runtime, entries, metadata); });
    Result<VerifyProgress> result = base::Error(Errc::corrupt, "not asked");
    machine.run([&](Runtime& runtime) { return verify(runtime, result); });
    if (result) return result->entries_checked ? "sound" : "not looked into";
    EXPECT_THAT(result.error().context(), HasSubstr("/table.sst: "));
    EXPECT_THAT(result.error().context(), HasSubstr("at offset "));
    return result.error().to_string();
  }

  const std::string own_ = key_of_ranges("", 0);
};

TEST_F(EntriesOfAFile, AreSoundWithRangesWhereReadersLook) {
  EXPECT_EQ(said({{own_, encoded_entry({{"a", "z"}}, {3, 4, 9})},
                  {key_of_ranges("abc", 3), encoded_entry({{"aba", "abz"}})},
                  {key_of_ranges("abc", 4), encoded_entry({{"abc", "abcd"}})}},
                 3),
            "sound");
}

TEST_F(EntriesOfAFile, ARangeUnderADepthThatNobodyNamesIsFound) {
  const std::string there = key_of_ranges("abc", 4);
  EXPECT_THAT(said({{own_, encoded_entry({}, {3})}, {there, encoded_entry({{"aba", "abz"}})}}, 2),
              HasSubstr("its depth 4 is not named"));
  EXPECT_THAT(said({{there, encoded_entry({{"aba", "abz"}})}}, 1),
              HasSubstr("its depth 4 is not named"));
}

TEST_F(EntriesOfAFile, ARangeUnderAPathThatItsRowsDoNotBeginWithIsFound) {
  const std::string there = key_of_ranges("abc", 4);
  for (const Range& range : {Range{"aba", "acz"}, Range{"aaa", "abz"}, Range{"a", "abz"}}) {
    EXPECT_THAT(said({{own_, encoded_entry({}, {4})}, {there, encoded_entry({range})}}, 2),
                HasSubstr("does not begin and end as its path"));
  }
}

TEST_F(EntriesOfAFile, WhatCannotBeAKeyOrDoesNotFitItIsFound) {
  const std::string ranges = encoded_entry({{"a", "z"}});
  EXPECT_THAT(said({{std::string("part\2row", 8), ranges}}, 1), HasSubstr("is of no kind"));
  EXPECT_THAT(said({{std::string("part\1row", 8), ranges}}, 1), HasSubstr("of the other kind"));
  EXPECT_THAT(said({{own_, "nonsense"}}, 1), HasSubstr("entry 7061727400"));
  EXPECT_THAT(said({{own_ + "a", ranges}}, 1), HasSubstr("ends in no mark"));
  EXPECT_THAT(said({{own_, encoded_entry({}, {4})},
                    {key_of_ranges("abc", 4), encoded_entry({{"aba", "abz"}}, {5})}},
                   2),
              HasSubstr("depths are named under a path"));
  EXPECT_THAT(said({{own_, ranges}}, 2), HasSubstr("states 2 entries of ranges, the file has 1"));
}

TEST_F(SstableVerify, TellsHowFarItIs) {
  struct Run {
    static Task<void> body(Runtime& runtime, std::vector<VerifyProgress>& told) {
      SstableShared shared(1 << 20);
      const auto result = co_await verify_sstable(
          runtime, shared, kPath, [&](const VerifyProgress& p) { told.push_back(p); },
          runtime::Until::forever());
      CO_ASSERT_OK(result);
    }
  };
  Rows rows;
  for (int i = 0; i < 3000; ++i) {
    rows[fmt::format("{:05}", i)] = {.value = std::string(1000, 'v'), .partition_size = 5};
  }
  SstableWriter::Options options;
  options.compression = Compression::none;
  make(rows, options);
  std::vector<VerifyProgress> told;
  machine_.run([&](Runtime& runtime) { return Run::body(runtime, told); });
  ASSERT_GE(told.size(), 3u);
  EXPECT_LT(told.front().bytes_done, told.front().bytes_total);
  EXPECT_EQ(told.back().bytes_done, good_.size());
}

}  // namespace
}  // namespace helenus::storage
