#include "keyvalue/url_text.h"

#include <string>

#include <gtest/gtest.h>

#include "keyvalue/key_path.h"

namespace helenus::keyvalue {
namespace {

using base::Errc;

TEST(UrlText, DecodesPercentSigns) {
  EXPECT_EQ(*percent_decoded("a%2Fb%c3%A9"), "a/b\xc3\xa9");
  EXPECT_EQ(*percent_decoded("%00"), std::string(1, '\0'));
  EXPECT_EQ(*percent_decoded("a+b"), "a+b");
  for (const char* text : {"%", "%4", "a%4", "%zz", "%-1", "%+1", "% 1", "%4g"}) {
    EXPECT_TRUE(percent_decoded(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(UrlText, FindsParameters) {
  EXPECT_EQ(parameter("ttl=1&consistency=ONE", "consistency")->value(), "ONE");
  EXPECT_EQ(parameter("a&b=%41", "b")->value(), "A");
  EXPECT_EQ(parameter("a&b", "a")->value(), "");
  EXPECT_FALSE(parameter("ab=1&&", "a")->has_value());
  EXPECT_FALSE(parameter("", "a")->has_value());
  EXPECT_TRUE(parameter("a=1&a=1", "a").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(parameter("a=%", "a").failed_with(Errc::invalid_argument));
}

TEST(UrlText, BytesComeBackFromTheirLettersAndFromNoOthers) {
  std::string bytes;
  for (int size = 0; size < 300; ++size) {
    const std::string letters = to_base64url(base::as_bytes(bytes));
    const auto back = from_base64url(letters);
    ASSERT_TRUE(back.has_value()) << size;
    EXPECT_EQ(back->text(), bytes);
    bytes += static_cast<char>(size * 37);
  }
  EXPECT_EQ(to_base64url(base::as_bytes(std::string_view("\xfb\xff"))), "-_8");
  for (const char* text : {"A", "AAAAA", "-_9", "A=", "AA==", "+/8", "A A", "-_8\n"}) {
    EXPECT_TRUE(from_base64url(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(KeyPaths, NameRowsAndColumns) {
  const KeyPath row{.keyspace = "ks", .table = "t", .key = "k", .names = {}};
  EXPECT_EQ(parse_key_path("/v1/kv/ks/t/k"), row);
  KeyPath column = row;
  column.names = {"c"};
  EXPECT_EQ(parse_key_path("/v1/kv/ks/t/k/c"), column);
  EXPECT_EQ(parse_key_path("/v1/kv/ks/t:c/k"), column);
  column.names = {"s", "c"};
  EXPECT_EQ(parse_key_path("/v1/kv/ks/t/k/s:c"), column);
  EXPECT_EQ(parse_key_path("/v1/kv/ks/t:s:c/k"), column);
}

TEST(KeyPaths, KeepWhatIsEncodedApart) {
  const KeyPath path{.keyspace = "k s", .table = "t", .key = "a/b:c?", .names = {"x:y", ""}};
  EXPECT_EQ(parse_key_path("/v1/kv/k%20s/t/a%2Fb:c%3F/x%3Ay:"), path);
}

TEST(KeyPaths, RefuseOthers) {
  std::string many = "/v1/kv/ks/t/k/c";
  for (std::size_t i = 0; i < KeyPath::kNamesMax; ++i) many += ":c";
  for (const std::string& text :
       {std::string("/v1/kv/"), std::string("/v1/kv/ks"), std::string("/v1/kv/ks/t"),
        std::string("/v1/kv/ks/t/k/c/d"), std::string("/v1/kv/ks/t:c/k/c"),
        std::string("/v1/kv/ks/t/%"), std::string("/v1/ks/t/k"), many}) {
    EXPECT_TRUE(parse_key_path(text).failed_with(Errc::invalid_argument)) << text;
  }
}

}  // namespace
}  // namespace helenus::keyvalue
