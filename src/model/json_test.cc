#include "model/json.h"

#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/generators_test_support.h"

namespace helenus::model {
namespace {

using base::Bytes;
using base::Errc;

std::string read_back(const DataType& type, std::string_view text) {
  const auto json = parse_json(text);
  if (!json) return json.error().to_string();
  const auto value = from_json(type, *json);
  if (!value) return std::string(value.error().context());
  return *value ? to_text(type, **value) : "null";
}

TEST(Json, ValuesOfAllTypesAreRead) {
  const DataType number(TypeKind::int_);
  const DataType list = testing::list_type(number);
  const DataType user = *DataType::user_type(
      "k", "t", {{.name = "a", .type = number}, {.name = "Big", .type = DataType::text()}}, true);
  const std::vector<std::tuple<DataType, std::string, std::string>> cases = {
      {number, " -7 ", "-7"},
      {number, "\"12\"", "12"},
      {number, "null", "null"},
      {DataType(TypeKind::double_), "1e3", "1000.0"},
      {DataType(TypeKind::decimal), "1.50", "1.50"},
      {DataType(TypeKind::varint), "123456789012345678901234567890",
       "123456789012345678901234567890"},
      {DataType::text(), R"("a\"\\\/\n\u00e4\ud83d\ude00")", "'a\"\\/\nä😀'"},
      {DataType(TypeKind::blob), "\"0xCAFE\"", "0xcafe"},
      {DataType(TypeKind::boolean), "true", "true"},
      {DataType(TypeKind::date), "\"2024-02-03\"", "'2024-02-03'"},
      {DataType(TypeKind::timestamp), "1000", "'1970-01-01T00:00:01.000Z'"},
      {DataType(TypeKind::inet), "\"127.0.0.1\"", "'127.0.0.1'"},
      {list, "[3, 1, 2]", "[3, 1, 2]"},
      {list, "[]", "[]"},
      {testing::set_type(number), "[3, 1, 3]", "{1, 3}"},
      {testing::map_type(number, DataType::text()), R"({"2": "b", "1": "a", "2": "c"})",
       "{1: 'a', 2: 'c'}"},
      {testing::map_type(list, number), R"({"[1, 2]": 5})", "{[1, 2]: 5}"},
      {testing::tuple_type({number, DataType::text()}), R"([1, null])", "(1, null)"},
      {user, R"({"A": 1, "\"Big\"": "x"})", "{a: 1, \"Big\": 'x'}"},
  };
  for (const auto& [type, text, expected] : cases) EXPECT_EQ(read_back(type, text), expected);
}

TEST(Json, WhatDoesNotFitIsRefused) {
  const DataType number(TypeKind::int_);
  const DataType list = testing::list_type(number);
  const std::vector<std::tuple<DataType, std::string, std::string>> cases = {
      {number, "1.5", "Expected a int value, but got a Double: 1.5"},
      {number, "true", "Expected a int value, but got a Boolean: true"},
      {number, "99999999999", "Unable to make int from '99999999999'"},
      {DataType::text(), "1", "Expected a UTF-8 string, but got a Integer: 1"},
      {DataType(TypeKind::blob), "\"cafe\"",
       "String representation of blob is missing 0x prefix: cafe"},
      {list, "[1, null]", "Invalid null element in list"},
      {list, "{}", "Expected a list, but got a LinkedHashMap: {...}"},
      {list, "\"\\\"\\\"\"", "Expected JSON within a string, but got a String: "},
      {testing::map_type(number, number), "{\"1\": null}", "Invalid null value in map"},
      {testing::tuple_type({number}), "[1, 2]", "Tuple contains extra items (expected 1, got 2)"},
  };
  for (const auto& [type, text, expected] : cases) EXPECT_EQ(read_back(type, text), expected);
}

TEST(Json, OtherTextsAreNone) {
  for (const std::string text :
       {"",       " ",     "{",       "}",         "[1,]",        "{\"a\"}",     "{\"a\": }",
        "{a: 1}", "01",    "-",       "1.",        ".5",          "1e",          "+1",
        "tru",    "\"",    "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\udc00\"", "\"\n\"",
        "1 2",    "[1 2]", "nul",     "NaN",       "'a'",         "\"\xff\""}) {
    EXPECT_TRUE(parse_json(text).failed_with(Errc::invalid_argument)) << text;
  }
  const std::string deep(kJsonDepthMax + 1, '[');
  EXPECT_TRUE(
      parse_json(deep + std::string(kJsonDepthMax + 1, ']')).failed_with(Errc::invalid_argument));
  const std::string less = deep.substr(1);
  EXPECT_TRUE(parse_json(less + std::string(kJsonDepthMax, ']')).has_value());
}

TEST(Json, NamesAreInLowerCaseOrInQuotesOfTheirOwn) {
  EXPECT_EQ(json_name("abc"), "\"abc\"");
  EXPECT_EQ(json_name("aBc"), R"("\"aBc\"")");
  EXPECT_EQ(name_of_json("aBc"), "abc");
  EXPECT_EQ(name_of_json("\"aBc\""), "aBc");
}

bool is_exact(const DataType& type) {
  return !type.mentions(TypeKind::float_) && !type.mentions(TypeKind::double_) &&
         !type.mentions(TypeKind::tuple) && !type.mentions(TypeKind::udt);
}

RC_GTEST_PROP(Json, WhatIsWrittenReadsBack, ()) {
  const DataType type = testing::draw_type(3);
  const Bytes value = *normalise(type, testing::draw_value(type));
  const auto json = parse_json(to_json(type, value));
  RC_ASSERT(json.has_value());
  const auto back = from_json(type, *json);
  // An empty number is an empty string, which is no number.
  if (!back || !*back) return;
  if (is_exact(type)) RC_ASSERT(std::is_eq(compare(type, **back, value)));
}

RC_GTEST_PROP(Json, TextsOfStrangersAreSafe, ()) {
  const auto size = *rc::gen::inRange<std::size_t>(0, 40);
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    text += *rc::gen::elementOf(std::string("[]{}\",:\\u0123dtrue nullfase-.eE"));
  }
  const auto json = parse_json(text);
  if (!json) return;
  const DataType type = testing::draw_type(2);
  const auto value = from_json(type, *json);
  if (value && *value) RC_ASSERT(validate(type, **value).has_value());
}

}  // namespace
}  // namespace helenus::model
