#include "keyvalue/value_text.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "model/value.h"

namespace helenus::keyvalue {
namespace {

using base::Bytes;
using base::Errc;
using model::DataType;

DataType type(const char* name) {
  return *DataType::native_named(name);
}

TEST(ValueText, JsonComesBackAsItWasGiven) {
  const std::vector<std::pair<const char*, std::vector<const char*>>> values = {
      {"text", {R"("")", R"("it's")", R"("\u0000")", R"("caf\u00e9 \ud83d\ude00")"}},
      {"ascii", {R"("a~")"}},
      {"blob", {R"("0x")", R"("0xcafe00")"}},
      {"tinyint", {"-128", "127"}},
      {"smallint", {"-32768"}},
      {"int", {"0", "-2147483648"}},
      {"bigint", {"9223372036854775807", "-9223372036854775808"}},
      {"varint", {R"("123456789012345678901234567890")"}},
      {"decimal", {R"("-1.50")"}},
      {"double", {"1.5", "-0.1", R"("NaN")", R"("Infinity")"}},
      {"float", {"0.5"}},
      {"boolean", {"true", "false"}},
      {"uuid", {R"("550e8400-e29b-41d4-a716-446655440000")"}},
      {"inet", {R"("192.0.2.1")", R"("0:0:0:0:0:0:0:1")"}},
      {"date", {R"("2026-02-28")"}},
  };
  for (const auto& [name, texts] : values) {
    ASSERT_TRUE(has_text(type(name))) << name;
    for (const char* text : texts) {
      const auto json = parse_flat_json(text);
      ASSERT_TRUE(json.has_value()) << text;
      const auto value = value_of_json(type(name), *json);
      ASSERT_TRUE(value.has_value()) << name << " " << text << value.error().to_string();
      EXPECT_EQ(json_of_value(type(name), *value), *json) << name << " " << text;
    }
  }
}

TEST(ValueText, TextComesBackAsItWasGiven) {
  for (const auto& [name, text] : std::vector<std::pair<const char*, const char*>>{
           {"text", "'quoted'"},
           {"int", "-7"},
           {"boolean", "true"},
           {"inet", "::1"},
           {"timestamp", "2026-11-19 12:00:00.000+0000"},
           {"duration", "1h30m"}}) {
    const auto value = value_of_body(type(name), Bytes::copy_of(std::string_view(text)));
    ASSERT_TRUE(value.has_value()) << name;
    const std::string shown = body_of_value(type(name), *value);
    const auto again = value_of_body(type(name), Bytes::copy_of(shown));
    ASSERT_TRUE(again.has_value()) << name << " " << shown;
    EXPECT_EQ(*again, *value) << name;
  }
  const Bytes raw = Bytes::copy_of(std::string_view("\0\xff", 2));
  EXPECT_EQ(*value_of_body(type("blob"), raw), raw);
  EXPECT_EQ(body_of_value(type("blob"), raw), std::string("\0\xff", 2));
}

TEST(ValueText, RefusesWhatIsNoValue) {
  for (const auto& [name, json] :
       std::vector<std::pair<const char*, const char*>>{{"text", "1"},
                                                        {"text", "true"},
                                                        {"text", "[]"},
                                                        {"text", "{}"},
                                                        {"int", "1.5"},
                                                        {"int", "2147483648"},
                                                        {"int", R"("x")"},
                                                        {"int", "true"},
                                                        {"boolean", "1"},
                                                        {"blob", R"("cafe")"},
                                                        {"blob", R"("0xc")"},
                                                        {"blob", R"("0xzz")"},
                                                        {"uuid", R"("1")"},
                                                        {"decimal", "0.1"},
                                                        {"ascii", R"("\u00e9")"},
                                                        {"inet", R"("here")"}}) {
    const auto value = value_of_json(type(name), *parse_flat_json(json));
    EXPECT_TRUE(value.failed_with(Errc::invalid_argument)) << name << " " << json;
  }
  EXPECT_TRUE(value_of_text(type("text"), "\xff").failed_with(Errc::invalid_argument));
  EXPECT_FALSE(has_text(*DataType::list_of(type("int"))));
  EXPECT_FALSE(has_text(type("counter")));
}

TEST(ValueText, JsonIsFlatOrRefused) {
  for (const char* text : {"", "{", "{\"a\": 1", "nul", "{\"a\": {}}", "[[]]", "1 2", "\"\xff\""}) {
    EXPECT_TRUE(parse_flat_json(text).failed_with(Errc::invalid_argument)) << text;
  }
  EXPECT_TRUE(parse_flat_json(std::string(1 << 20, '[')).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(parse_flat_json(R"({"a": "[[{\"", "b": [1]})").failed_with(Errc::invalid_argument));
  EXPECT_TRUE(parse_flat_json(R"({"a": "[[{\"", "b": null})").has_value());
}

}  // namespace
}  // namespace helenus::keyvalue
