#include "filters/envelope.h"

#include <string>

#include <gtest/gtest.h>

#include "base/codec.h"
#include "base/crc32c.h"

namespace helenus::filters {
namespace {

using base::Errc;

const Envelope kSample{
    .kind = Kind::cuckoo, .width = 12, .size = 1, .capacity = 2, .units = 3, .population = 4};

// The sample with one byte of its header changed and the header's checksum set right again.
base::Bytes with_header_byte(std::size_t offset, std::uint8_t value) {
  const base::Bytes sealed = seal(kSample, base::as_bytes("body"));
  base::Buffer out;
  out.append(sealed);
  out.data()[offset] = std::byte{value};
  base::store_le(out.data() + 60, base::crc32c(out.view().first(60)));
  return std::move(out).freeze();
}

TEST(Envelope, GivesBackWhatWasSealed) {
  const base::Bytes sealed = seal(kSample, base::as_bytes("body"));
  EXPECT_EQ(sealed.size(), kEnvelopeBytes + 4);
  const auto opened = unseal(sealed);
  ASSERT_TRUE(opened.has_value());
  EXPECT_EQ(opened->envelope, kSample);
  EXPECT_EQ(opened->body.text(), "body");
  EXPECT_EQ(opened->body.data(), sealed.data() + kEnvelopeBytes) << "the body was copied";
  EXPECT_EQ(*sealed_bytes(sealed), sealed.size());
}

TEST(Envelope, ALaterVersionOrAnUnknownKindIsUnsupported) {
  EXPECT_TRUE(unseal(with_header_byte(4, 2)).failed_with(Errc::unsupported));
  EXPECT_TRUE(unseal(with_header_byte(4, 0)).failed_with(Errc::unsupported));
  EXPECT_TRUE(unseal(with_header_byte(5, 0)).failed_with(Errc::unsupported));
  EXPECT_TRUE(unseal(with_header_byte(5, 99)).failed_with(Errc::unsupported));
}

TEST(Envelope, OtherFilesAndReservedBytesInUseAreCorrupt) {
  EXPECT_TRUE(unseal(with_header_byte(0, 'X')).failed_with(Errc::corrupt));
  EXPECT_TRUE(unseal(with_header_byte(7, 1)).failed_with(Errc::corrupt));
  EXPECT_TRUE(unseal(with_header_byte(48, 1)).failed_with(Errc::corrupt));
  EXPECT_TRUE(unseal(with_header_byte(55, 1)).failed_with(Errc::corrupt));
  EXPECT_TRUE(unseal(base::Bytes()).failed_with(Errc::corrupt));
}

TEST(Envelope, ABodyLengthThatIsNotTheLengthIsCorrupt) {
  EXPECT_TRUE(unseal(with_header_byte(40, 3)).failed_with(Errc::corrupt));
  EXPECT_TRUE(unseal(with_header_byte(47, 0xff)).failed_with(Errc::corrupt));
  EXPECT_TRUE(sealed_bytes(with_header_byte(40, 5)).failed_with(Errc::corrupt));
  EXPECT_TRUE(sealed_bytes(with_header_byte(47, 0xff)).failed_with(Errc::corrupt));
  EXPECT_TRUE(sealed_bytes(base::as_bytes("short")).failed_with(Errc::corrupt));
}

TEST(Envelope, AnotherKindThanTheWantedOneIsAnInvalidArgument) {
  const base::Bytes sealed = seal(kSample, base::as_bytes("body"));
  EXPECT_TRUE(unseal(sealed, Kind::cuckoo).has_value());
  EXPECT_TRUE(unseal(sealed, Kind::bloom).failed_with(Errc::invalid_argument));
}

}  // namespace
}  // namespace helenus::filters
