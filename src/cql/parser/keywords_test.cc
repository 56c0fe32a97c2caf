#include "cql/parser/keywords.h"

#include <string>

#include <gtest/gtest.h>

namespace helenus::cql::parser {
namespace {

TEST(Keywords, AreFoundInAnyCase) {
  EXPECT_EQ(find_keyword("select"), Keyword::k_select);
  EXPECT_EQ(find_keyword("SeLeCt"), Keyword::k_select);
  EXPECT_EQ(find_keyword("writetime"), Keyword::k_writetime);
}

TEST(Keywords, AreNothingElse) {
  for (const char* word : {"", "selec", "selects", "a", "a_word_longer_than_all_keywords", "ä"}) {
    EXPECT_EQ(find_keyword(word), Keyword::none) << word;
  }
}

TEST(Keywords, AreSpelledInLowerCaseAndFindThemselves) {
  for (auto keyword = Keyword::k_add; keyword <= Keyword::k_writetime;
       keyword = static_cast<Keyword>(static_cast<int>(keyword) + 1)) {
    const std::string spelling(spelling_of(keyword));
    EXPECT_EQ(find_keyword(spelling), keyword) << spelling;
  }
}

TEST(Keywords, HaveTheirClasses) {
  EXPECT_EQ(class_of(Keyword::k_select), KeywordClass::reserved);
  EXPECT_EQ(class_of(Keyword::k_values), KeywordClass::basic);
  EXPECT_EQ(class_of(Keyword::k_varint), KeywordClass::native);
  EXPECT_EQ(class_of(Keyword::k_ttl), KeywordClass::special);
}

TEST(Keywords, LeaveRoomForTypesToCome) {
  EXPECT_TRUE(is_reserved_type_name("byte"));
  EXPECT_FALSE(is_reserved_type_name("bytes"));
}

}  // namespace
}  // namespace helenus::cql::parser
