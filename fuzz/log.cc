// Fuzzes base/log.h: the input is a value, a key and a module name at once. Whatever it holds,
// format_line gives one line without control characters whose quotes are balanced, so that one
// field cannot pose as two. The same text as log levels parses, or is refused with a reason.
#include "base/log.h"

#include <cstddef>
#include <cstdint>

#include "base/assert.h"
#include "base/bytes.h"

namespace helenus::base {
namespace {

void check_line(std::string_view text) {
  const LogField fields[] = {{.key = "key", .value = std::string(text)}};
  const std::string line = format_line("T", {LogLevel::info, "module", "message", fields});
  for (const char c : line) ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);

  const std::string_view prefix = "T info  module  message key=";
  ASSERT(line.starts_with(prefix));
  std::string_view value = std::string_view(line).substr(prefix.size());
  ASSERT(!value.empty());
  if (value.front() != '"') {
    ASSERT(value.find_first_of(" =\"\\") == std::string_view::npos);
    return;
  }
  value.remove_prefix(1);
  while (!value.starts_with('"')) {
    const std::size_t size = value.starts_with('\\') ? 2 : 1;
    ASSERT(size < value.size(), "the value has no end");
    value.remove_prefix(size);
  }
  ASSERT(value == "\"", "the quote that closes the value ends the line");
}

void check_other_places(std::string_view text) {
  const LogField fields[] = {{.key = text, .value = "value"}};
  const std::string line = format_line("T", {LogLevel::warn, text, text, fields});
  for (const char c : line) ASSERT(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  ASSERT(line.ends_with("=value"));
}

void check_levels(std::string_view text) {
  const auto levels = LogLevels::parse(text);
  if (!levels) {
    ASSERT(levels.failed_with(Errc::invalid_argument) && !levels.error().context().empty());
    return;
  }
  ASSERT(LogLevels::parse(levels->to_string()) == *levels);
}

}  // namespace
}  // namespace helenus::base

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::base;
  const std::string_view text = as_text(std::as_bytes(std::span(data, size)));
  check_line(text);
  check_other_places(text);
  check_levels(text);
  return 0;
}
