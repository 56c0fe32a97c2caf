#include "cql/parser/error_text.h"

#include <gtest/gtest.h>

namespace helenus::cql::parser {
namespace {

TEST(ErrorText, KeepsWhatCanBeRead) {
  const std::string_view around_the_edges = "a ß € 𝄞 ~ \xe0\xa0\x80 \xed\x9f\xbf \xf4\x8f\xbf\xbf";
  EXPECT_EQ(presentable(around_the_edges), around_the_edges);
}

TEST(ErrorText, DropsLineEndsAndTurnsTabsIntoBlanks) {
  EXPECT_EQ(presentable("a\r\n\tb"), "a b");
}

TEST(ErrorText, ReplacesControlCharacters) {
  EXPECT_EQ(presentable(std::string_view("\x1b[0m\0\x7f", 6)), "?[0m??");
}

TEST(ErrorText, ReplacesWhatIsNoUtf8ByteByByte) {
  EXPECT_EQ(presentable("\xff"), "?");
  EXPECT_EQ(presentable("\xc3"), "?") << "ends early";
  EXPECT_EQ(presentable("\xc3z"), "?z") << "goes on wrongly";
  EXPECT_EQ(presentable("\xc0\x80"), "??") << "longer than need be, in two bytes";
  EXPECT_EQ(presentable("\xe0\x80\x80"), "???") << "in three";
  EXPECT_EQ(presentable("\xf0\x80\x80\x80"), "????") << "in four";
  EXPECT_EQ(presentable("\xed\xa0\x80"), "???") << "half of a surrogate pair";
  EXPECT_EQ(presentable("\xf4\x90\x80\x80"), "????") << "beyond the last character";
  EXPECT_EQ(presentable("\xf5\x80"), "??") << "leads nothing";
}

TEST(ErrorText, CutsAtEitherEnd) {
  EXPECT_EQ(beginning_of("abcdef", 6), "abcdef");
  EXPECT_EQ(beginning_of("abcdef", 3), "abc...");
  EXPECT_EQ(end_of("abcdef", 6), "abcdef");
  EXPECT_EQ(end_of("abcdef", 3), "...def");
}

}  // namespace
}  // namespace helenus::cql::parser
