#include "storage/ids/row_key.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::storage {
namespace {

using base::as_bytes;

std::string separated(std::string_view a, std::string_view b) {
  base::Buffer out;
  separate(as_bytes(a), as_bytes(b), out);
  return std::string(base::as_text(out.view()));
}

TEST(RowKey, SeparatorIsAsShortAsTheKeysAllow) {
  EXPECT_EQ(separated("apple", "banana"), "b");
  EXPECT_EQ(separated("abc1", "abc9"), "abc2");
  EXPECT_EQ(separated("abc", "abcd"), "abc");
  EXPECT_EQ(separated("", "x"), "");
  EXPECT_EQ(separated("ab", "ac"), "ab");
  EXPECT_EQ(separated("abx", "ac"), "aby");
  EXPECT_EQ(separated("a\xff\xff", "b"), "a\xff\xff");
  EXPECT_EQ(separated("a\xff\x01z", "b"), "a\xff\x02");
}

RC_GTEST_PROP(RowKey, SeparatorLiesBetweenAndIsNeverLongerThanTheLowerKey,
              (std::string a, std::string b)) {
  // Few different bytes make long common prefixes, runs of 0xff and near misses likely.
  for (std::string* key : {&a, &b}) {
    for (char& byte : *key) byte = "\x00\x01\x7f\xfe\xff"[static_cast<unsigned char>(byte) % 5];
  }
  RC_PRE(a != b);
  if (b < a) std::swap(a, b);
  const std::string s = separated(a, b);
  RC_ASSERT(a <= s);
  RC_ASSERT(s < b);
  RC_ASSERT(s.size() <= a.size());
}

RC_GTEST_PROP(RowKey, CommonPrefixIsWhatAWalkFinds,
              (const std::string& shared, const std::string& a, const std::string& b)) {
  const std::string x = shared + a;
  const std::string y = shared + b;
  std::size_t walked = 0;
  while (walked < x.size() && walked < y.size() && x[walked] == y[walked]) ++walked;
  RC_ASSERT(common_prefix_size(as_bytes(x), as_bytes(y)) == walked);
}

TEST(RowKey, HashNeverChangesAsFilesDependOnIt) {
  EXPECT_EQ(key_hash(as_bytes("")), 0x2d06800538d394c2u);
  EXPECT_EQ(key_hash(as_bytes("helenus")), 0xcb65f6645b8b4e38u);
}

}  // namespace
}  // namespace helenus::storage
