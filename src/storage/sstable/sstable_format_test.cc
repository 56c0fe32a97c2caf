#include "storage/sstable/sstable_format.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/crc32c.h"
#include "base/prng.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Bytes;
using base::Errc;

SstableFooter some_footer() {
  SstableFooter footer;
  footer.id.bytes.fill(std::byte{9});
  footer.file_size = 10'000;
  footer.root = {.offset = 5000, .size = 100};
  footer.filter_index = {.offset = 6000, .size = 100};
  footer.metadata = {.offset = 7000, .size = 100};
  footer.statistics = {.offset = 8000, .size = 1000};
  return footer;
}

Bytes encoded(const auto& part) {
  base::Buffer out;
  part.encode(out);
  return std::move(out).freeze();
}

// The same bytes with one changed and the checksum made to fit again.
Bytes resealed(const Bytes& good, std::size_t offset, std::byte byte) {
  base::Buffer bytes;
  bytes.append(good);
  bytes.mutable_view()[offset] = byte;
  const std::size_t sealed = bytes.size() - 4;
  base::store_le(bytes.data() + sealed, base::crc32c(bytes.view().first(sealed)));
  return std::move(bytes).freeze();
}

TEST(SstableFormat, HeaderAndFooterComeBack) {
  SstableHeader header;
  header.id.bytes.fill(std::byte{3});
  EXPECT_EQ(SstableHeader::decode(encoded(header))->id, header.id);
  const auto footer = SstableFooter::decode(encoded(some_footer()));
  ASSERT_TRUE(footer.has_value()) << footer.error().to_string();
  EXPECT_EQ(footer->id, some_footer().id);
  EXPECT_EQ(footer->file_size, 10'000u);
  EXPECT_EQ(footer->root, some_footer().root);
  EXPECT_EQ(footer->filter_index, some_footer().filter_index);
  EXPECT_EQ(footer->metadata, some_footer().metadata);
  EXPECT_EQ(footer->statistics, some_footer().statistics);
}

TEST(SstableFormat, EveryFlippedBitOfHeaderAndFooterIsAnError) {
  const Bytes header = encoded(SstableHeader{});
  const Bytes footer = encoded(some_footer());
  for (const Bytes& good : {header, footer}) {
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      base::Buffer damaged;
      damaged.append(good);
      damaged.mutable_view()[bit / 8] ^= std::byte(1u << (bit % 8));
      const bool opens = good.size() == SstableHeader::kSize
                             ? SstableHeader::decode(damaged.view()).has_value()
                             : SstableFooter::decode(damaged.view()).has_value();
      EXPECT_FALSE(opens) << bit;
    }
  }
}

TEST(SstableFormat, ALaterVersionIsUnsupportedNotCorrupt) {
  const Bytes header = encoded(SstableHeader{});
  EXPECT_TRUE(
      SstableHeader::decode(resealed(header, 8, std::byte{2})).failed_with(Errc::unsupported));
  const Bytes footer = encoded(some_footer());
  EXPECT_TRUE(
      SstableFooter::decode(resealed(footer, 80, std::byte{2})).failed_with(Errc::unsupported));
}

TEST(SstableFormat, AFooterThatPointsOutsideItsFileIsCorrupt) {
  const auto decode = [](auto&& change) {
    SstableFooter footer = some_footer();
    change(footer);
    return SstableFooter::decode(encoded(footer));
  };
  EXPECT_TRUE(decode([](auto& f) { f.root.offset = 9'900; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.root.offset = 31; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.root.offset = UINT64_MAX; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.metadata.size = UINT32_MAX; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.filter_index.size = 3; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.statistics.size = 0; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.file_size = 100; }).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode([](auto& f) { f.root = {}; }).has_value()) << "an empty file has no root";
  EXPECT_TRUE(SstableFooter::decode(resealed(encoded(some_footer()), 72, std::byte{1}))
                  .failed_with(Errc::corrupt))
      << "reserved bytes";
}

SstableStatistics some_statistics() {
  SstableStatistics statistics;
  statistics.key_count = 1'000'000'000'000;
  statistics.partition_count = 7;
  statistics.index_depth = 3;
  statistics.compression = Compression::zstd;
  statistics.first_key = Bytes::copy_of("a");
  statistics.last_key = Bytes::copy_of("zz");
  statistics.wide_partitions.push_back(
      {.key = Bytes::copy_of("p"), .first_ordinal = 3, .row_count = 4, .bytes = 1 << 20});
  base::Histogram histogram;
  histogram.record(100, 7);
  base::Buffer bytes;
  base::Encoder encoder(bytes);
  histogram.encode(encoder);
  statistics.partition_bytes_histogram = Bytes::copy_of(bytes.view());
  statistics.partition_rows_histogram = Bytes::copy_of(bytes.view());
  return statistics;
}

TEST(SstableFormat, StatisticsComeBack) {
  const auto decoded = SstableStatistics::decode(encoded(some_statistics()));
  ASSERT_TRUE(decoded.has_value()) << decoded.error().to_string();
  EXPECT_EQ(*decoded, some_statistics());
}

TEST(SstableFormat, StatisticsThatAreCutOrGrownAreCorrupt) {
  const Bytes good = encoded(some_statistics());
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_TRUE(SstableStatistics::decode(good.view().first(size)).failed_with(Errc::corrupt));
  }
  base::Buffer longer;
  longer.append(good);
  longer.push_back(std::byte{0});
  EXPECT_TRUE(SstableStatistics::decode(longer.view()).failed_with(Errc::corrupt));
}

TEST(SstableFormat, StatisticsBeyondTheirLimitsAreRefused) {
  SstableStatistics deep = some_statistics();
  deep.index_depth = kIndexDepthMax + 1;
  EXPECT_TRUE(SstableStatistics::decode(encoded(deep)).failed_with(Errc::corrupt));
  SstableStatistics wide = some_statistics();
  wide.wide_partitions.resize(SstableStatistics::kWidePartitionsMax + 1);
  EXPECT_TRUE(SstableStatistics::decode(encoded(wide)).failed_with(Errc::corrupt));
  SstableStatistics odd = some_statistics();
  odd.partition_rows_histogram = Bytes::copy_of("?");
  EXPECT_FALSE(SstableStatistics::decode(encoded(odd)).has_value());
  base::Buffer newer;
  newer.append(encoded(some_statistics()));
  newer.mutable_view()[0] = std::byte{2};
  EXPECT_TRUE(SstableStatistics::decode(newer.view()).failed_with(Errc::unsupported));
}

TEST(SstableFormat, IndexEntriesComeBack) {
  const IndexEntry entry{.handle = {.offset = 1ull << 40, .size = 77}, .first_ordinal = 123'456};
  const auto bytes = entry.encode();
  EXPECT_EQ(IndexEntry::decode(bytes.data()).handle, entry.handle);
  EXPECT_EQ(IndexEntry::decode(bytes.data()).first_ordinal, entry.first_ordinal);
}

}  // namespace
}  // namespace helenus::storage
