// The catalog's format; how it survives crashes is shown by the tests of LogDirectory.
#include "storage/log/log_catalog.h"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::storage {
namespace {

using base::as_bytes;
using base::Errc;

LogCatalog golden() {
  return {.incarnation = 6,
          .in_doubt = true,
          .boot_id = "0f5a-boot",
          .identity = {.device = 2049, .inode = 131, .born_ns = 1'763'577'797'000'000'007},
          .current = {0x1122334455667788, 0x99aabbccddeeff00},
          .recovered = {{.incarnation = 4,
                         .core = 0,
                         .log_id = 0xabcd,
                         .segments = {3, 9},
                         .end_sequence = 9,
                         .end_offset = 8192},
                        {.incarnation = 5,
                         .core = 2,
                         .log_id = 0xef01,
                         .segments = {1},
                         .end_sequence = 4,
                         .end_offset = 4160}}};
}

TEST(LogCatalog, GoldenFileOfVersion1DecodesForEver) {
  std::ifstream stream(HELENUS_TESTDATA "/commit-log-catalog-v1", std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(stream), {}};
  const auto catalog = decode_log_catalog(as_bytes(file));
  ASSERT_TRUE(catalog.has_value()) << catalog.error().to_string();
  EXPECT_EQ(*catalog, golden());
  EXPECT_EQ(encode(golden()).text(), file);
}

TEST(LogCatalog, EveryTruncationAndEveryFlippedBitIsRefused) {
  const std::string whole(encode(golden()).text());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_TRUE(decode_log_catalog(as_bytes(whole).first(size)).failed_with(Errc::corrupt));
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_TRUE(decode_log_catalog(as_bytes(damaged)).failed_with(Errc::corrupt)) << bit;
  }
  EXPECT_TRUE(decode_log_catalog(as_bytes(whole + "x")).failed_with(Errc::corrupt));
}

// The bytes with a right checksum: what a checksum cannot catch.
std::string resealed(std::string bytes) {
  bytes.resize(bytes.size() - 4);
  const std::uint32_t checksum = base::crc32c(as_bytes(bytes));
  bytes.resize(bytes.size() + 4);
  base::store_le(reinterpret_cast<std::byte*>(bytes.data() + bytes.size() - 4), checksum);
  return bytes;
}

TEST(LogCatalog, ANewerVersionIsNamedAsSuch) {
  std::string newer(encode(golden()).text());
  newer[8] = 2;
  EXPECT_TRUE(decode_log_catalog(as_bytes(resealed(newer))).failed_with(Errc::unsupported));
}

TEST(LogCatalog, ListsThatMakeNoSenseAreRefused) {
  const auto refused = [](auto&& change) {
    LogCatalog catalog = golden();
    change(catalog);
    return decode_log_catalog(encode(catalog)).failed_with(Errc::corrupt);
  };
  EXPECT_FALSE(refused([](LogCatalog&) {}));
  EXPECT_TRUE(refused([](LogCatalog& it) { std::swap(it.recovered[0], it.recovered[1]); }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[1] = it.recovered[0]; }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[1].incarnation = 6; }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[0].segments.clear(); }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[0].segments = {9, 9}; }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[0].end_sequence = 8; }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.recovered[0].core = kCoresMax; }));
  EXPECT_TRUE(refused([](LogCatalog& it) { it.current.resize(kCoresMax + 1); }));
  EXPECT_TRUE(refused(
      [](LogCatalog& it) { it.recovered.resize(LogCatalog::kRecoveredMax + 1, it.recovered[0]); }));
}

}  // namespace
}  // namespace helenus::storage
