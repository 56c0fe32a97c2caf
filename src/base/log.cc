#include "base/log.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/assert.h"

namespace helenus::base {

namespace {

constexpr std::array<std::string_view, 6> kLevelNames = {"trace", "debug", "info",
                                                         "warn",  "error", "off"};

bool is_word(std::string_view text, std::string_view others) {
  const auto allowed = [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || others.contains(c);
  };
  return !text.empty() && std::ranges::all_of(text, allowed);
}

bool is_module_name(std::string_view text) {
  while (true) {
    const std::size_t dot = text.find('.');
    if (!is_word(text.substr(0, dot), "_")) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string_view without_spaces_around(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// Characters that are valid text and yet change where a line ends, how it is ordered on a screen,
// or what a terminal does.
bool is_deceptive(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7f && character <= 0x9f) || character == 0x2028 ||
         character == 0x2029 ||  // line, paragraph separator
         character == 0x061c || character == 0x200e || character == 0x200f ||
         (character >= 0x202a && character <= 0x202e) ||  // direction embeddings, overrides
         (character >= 0x2066 && character <= 0x2069) ||  // direction isolates
         character == 0xfeff;
}

struct Utf8Character {
  std::uint32_t character;
  std::size_t size;  // zero when the bytes are not a well-formed character
};

// The character that `text` begins with. Requires: text is not empty.
Utf8Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || text.size() < size) return {0, 0};
  std::uint32_t character = lead & (0x7fu >> size);
  for (std::size_t index = 1; index < size; ++index) {
    if ((byte(index) & 0xc0) != 0x80) return {0, 0};
    character = (character << 6) | (byte(index) & 0x3fu);
  }
  // The shortest form only, no surrogates, nothing beyond Unicode.
  constexpr std::array<std::uint32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = character >= 0xd800 && character <= 0xdfff;
  if (character < kLeast[size] || character > 0x10ffff || is_surrogate) return {0, 0};
  return {character, size};
}

void append_escaped(std::string& line, std::string_view text) {
  switch (text[0]) {
    case '\n':
      line += "\\n";
      return;
    case '\r':
      line += "\\r";
      return;
    case '\t':
      line += "\\t";
      return;
    case '"':
    case '\\':
      line += '\\';
      line += text[0];
      return;
    default:
      for (const char byte : text) {
        fmt::format_to(std::back_inserter(line), "\\x{:02x}", static_cast<std::uint8_t>(byte));
      }
  }
}

// Appends `text` with everything escaped that is deceptive or among `special`; returns whether
// anything was, or a space occurred: whether a value must be quoted.
bool append_text(std::string& line, std::string_view text, std::string_view special) {
  bool conspicuous = text.empty();
  const std::size_t size_missing = text.size() - std::min(text.size(), kLogTextSizeMax);
  text.remove_suffix(size_missing);
  while (!text.empty()) {
    const auto [character, size] = first_character(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(size, 1));
    if (size == 0 || is_deceptive(character) || special.contains(bytes[0])) {
      append_escaped(line, bytes);
      conspicuous = true;
    } else {
      line += bytes;
      conspicuous |= character == ' ' || character == '=';
    }
    text.remove_prefix(bytes.size());
  }
  if (size_missing == 0) return conspicuous;
  fmt::format_to(std::back_inserter(line), "... {} bytes more", size_missing);
  return true;
}

void append_value(std::string& line, std::string_view value) {
  const std::size_t start = line.size();
  if (!append_text(line, value, "\"\\")) return;
  line.insert(start, 1, '"');
  line += '"';
}

}  // namespace

std::string_view name_of(LogLevel level) {
  const auto index = static_cast<std::size_t>(level);
  ASSERT(index < kLevelNames.size());
  return kLevelNames[index];
}

std::optional<LogLevel> log_level_named(std::string_view name) {
  const auto* const found = std::ranges::find(kLevelNames, name);
  if (found == kLevelNames.end()) return std::nullopt;
  return static_cast<LogLevel>(found - kLevelNames.begin());
}

Result<LogLevels> LogLevels::parse(std::string_view text) {
  if (text.size() > kTextSizeMax) {
    return Error(Errc::invalid_argument, "log levels: text of {} bytes, at most {} are allowed",
                 text.size(), kTextSizeMax);
  }
  const auto bad = [](std::string_view part, std::string_view problem) {
    return Error(Errc::invalid_argument, "log levels: '{}' {}", part, problem);
  };
  LogLevels levels;
  bool standard_given = false;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    const std::string_view part = without_spaces_around(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);

    const std::size_t equals = part.find('=');
    const bool is_standard = equals == std::string_view::npos;
    const std::string_view level_name =
        is_standard ? part : without_spaces_around(part.substr(equals + 1));
    const std::optional<LogLevel> level = log_level_named(level_name);
    if (!level) return bad(part, "names no level (trace, debug, info, warn, error, off)");
    if (is_standard) {
      if (standard_given) return bad(part, "is a second default level");
      standard_given = true;
      levels.standard_ = *level;
      continue;
    }
    const std::string_view module = without_spaces_around(part.substr(0, equals));
    if (!is_module_name(module)) {
      return bad(part, "names no module (dotted words of a-z, 0-9 and _)");
    }
    if (levels.overrides_.contains(module)) return bad(part, "sets a module a second time");
    if (levels.overrides_.size() == kOverridesMax) return bad(part, "is one module too many");
    levels.set(module, *level);
  }
  return levels;
}

void LogLevels::set(std::string_view module, LogLevel level) {
  ASSERT(is_module_name(module), "module '{}'", module);
  overrides_.insert_or_assign(std::string(module), level);
}

LogLevel LogLevels::level_for(std::string_view module) const {
  while (!module.empty()) {
    if (const auto found = overrides_.find(module); found != overrides_.end()) {
      return found->second;
    }
    const std::size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? "" : module.substr(0, dot);
  }
  return standard_;
}

std::string LogLevels::to_string() const {
  std::string text(name_of(standard_));
  for (const auto& [module, level] : overrides_) {
    fmt::format_to(std::back_inserter(text), ",{}={}", module, level);
  }
  return text;
}

std::string format_line(std::string_view time_text, const LogRecord& record) {
  std::string line = fmt::format("{} {:<5} ", time_text, record.level);
  append_text(line, record.module, "\\");
  line += "  ";
  append_text(line, record.message, "\\");
  for (const LogField& field : record.fields) {
    line += ' ';
    const std::size_t start = line.size();
    append_text(line, field.key, "\"\\");
    std::replace_if(
        line.begin() + static_cast<std::ptrdiff_t>(start), line.end(),
        [](char c) { return c == ' ' || c == '=' || c == '"'; }, '_');
    line += '=';
    append_value(line, field.value);
  }
  return line;
}

}  // namespace helenus::base
