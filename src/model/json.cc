// Texts of JSON (RFC 8259) to a tree.
#include "model/json.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/utf8.h"

namespace helenus::model {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr char kFirstPrintable = ' ';

bool is_json_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

void put_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

class JsonParser {
 public:
  JsonParser(std::string_view text, base::Pace* pace) : text_(text), pace_(pace) {}

  Result<JsonValue> parse() {
    JsonValue value;
    TRY_VOID(parse_value(value, kJsonDepthMax));
    skip_blanks();
    if (at_ != text_.size()) return wrong();
    return value;
  }

 private:
  Error wrong() const {
    return Error(Errc::invalid_argument, "Could not decode JSON string: unexpected text at {}",
                 at_);
  }
  bool done() const { return at_ == text_.size(); }
  bool take(char letter) {
    if (done() || text_[at_] != letter) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  void skip_blanks() {
    while (!done() &&
           (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
      ++at_;
    }
  }

  Result<void> parse_value(JsonValue& value, std::size_t depth_left) {
    TRY_VOID(base::Pace::turn(pace_));
    if (depth_left == 0) {
      return Error(Errc::invalid_argument,
                   "Could not decode JSON string: it nests more than {} deep", kJsonDepthMax);
    }
    skip_blanks();
    if (done()) return wrong();
    if (take('{')) return parse_object(value, depth_left - 1);
    if (take('[')) return parse_array(value, depth_left - 1);
    if (text_[at_] == '"') {
      value.kind = JsonValue::Kind::string;
      return parse_string(value.text);
    }
    if (take_word("null")) return {};
    for (const std::string_view word : {"true", "false"}) {
      if (!take_word(word)) continue;
      value.kind = JsonValue::Kind::boolean;
      value.text = word;
      return {};
    }
    return parse_number(value);
  }

  Result<void> parse_object(JsonValue& value, std::size_t depth_left) {
    value.kind = JsonValue::Kind::object;
    skip_blanks();
    if (take('}')) return {};
    do {
      skip_blanks();
      std::string name;
      TRY_VOID(parse_string(name));
      skip_blanks();
      if (!take(':')) return wrong();
      JsonValue part;
      TRY_VOID(parse_value(part, depth_left));
      value.names.push_back(std::move(name));
      value.parts.push_back(std::move(part));
      skip_blanks();
    } while (take(','));
    return take('}') ? Result<void>() : wrong();
  }

  Result<void> parse_array(JsonValue& value, std::size_t depth_left) {
    value.kind = JsonValue::Kind::array;
    skip_blanks();
    if (take(']')) return {};
    do {
      JsonValue part;
      TRY_VOID(parse_value(part, depth_left));
      value.parts.push_back(std::move(part));
      skip_blanks();
    } while (take(','));
    return take(']') ? Result<void>() : wrong();
  }

  Result<void> parse_string(std::string& out) {
    if (!take('"')) return wrong();
    while (!done()) {
      const std::size_t plain = std::min(text_.find_first_of("\"\\", at_), text_.size());
      const std::string_view run = text_.substr(at_, plain - at_);
      const bool has_control = std::ranges::any_of(
          run, [](char letter) { return letter >= 0 && letter < kFirstPrintable; });
      if (has_control) return wrong();
      out += run;
      at_ = plain;
      if (take('"')) return {};
      if (!take('\\')) break;
      TRY_VOID(parse_escape(out));
      TRY_VOID(base::Pace::turn(pace_));
    }
    return wrong();
  }

  Result<void> parse_escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    if (done()) return wrong();
    const char letter = text_[at_++];
    if (const std::size_t index = kLetters.find(letter); index != std::string_view::npos) {
      out.push_back(kMeanings[index]);
      return {};
    }
    if (letter != 'u') return wrong();
    TRY(std::uint32_t code, parse_code());
    const bool is_low = code >= 0xDC00 && code < 0xE000;
    if (is_low) return wrong();
    if (code >= 0xD800 && code < 0xDC00) {
      if (!take_word("\\u")) return wrong();
      TRY(const std::uint32_t low, parse_code());
      if (low < 0xDC00 || low >= 0xE000) return wrong();
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    put_utf8(out, code);
    return {};
  }

  Result<std::uint32_t> parse_code() {
    constexpr std::size_t kDigits = 4;
    std::uint32_t code = 0;
    for (std::size_t i = 0; i < kDigits; ++i) {
      if (done()) return wrong();
      const char letter = text_[at_++];
      if (is_json_digit(letter)) {
        code = code * 16 + static_cast<std::uint32_t>(letter - '0');
      } else if ((letter | ' ') >= 'a' && (letter | ' ') <= 'f') {
        code = code * 16 + static_cast<std::uint32_t>((letter | ' ') - 'a' + 10);
      } else {
        return wrong();
      }
    }
    return code;
  }

  bool take_digits() {
    const std::size_t before = at_;
    while (!done() && is_json_digit(text_[at_])) ++at_;
    return at_ > before;
  }

  Result<void> parse_number(JsonValue& value) {
    const std::size_t begin = at_;
    value.kind = JsonValue::Kind::integer;
    take('-');
    if (!take('0') && !take_digits()) return wrong();
    if (take('.')) {
      value.kind = JsonValue::Kind::floating;
      if (!take_digits()) return wrong();
    }
    if (take('e') || take('E')) {
      value.kind = JsonValue::Kind::floating;
      if (!take('-')) take('+');
      if (!take_digits()) return wrong();
    }
    value.text = text_.substr(begin, at_ - begin);
    return {};
  }

  const std::string_view text_;
  base::Pace* const pace_;
  std::size_t at_ = 0;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text, base::Pace* pace) {
  if (!is_utf8(base::as_bytes(text))) {
    return Error(Errc::invalid_argument, "Could not decode JSON string: it is not UTF-8");
  }
  return JsonParser(text, pace).parse();
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    switch (letter) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (letter >= 0 && letter < kFirstPrintable) {
          out += fmt::format("\\u{:04X}", static_cast<unsigned>(letter));
        } else {
          out.push_back(letter);
        }
    }
  }
  return out + "\"";
}

namespace {

bool is_upper(char letter) {
  return letter >= 'A' && letter <= 'Z';
}

}  // namespace

std::string json_name(std::string_view name) {
  if (std::ranges::none_of(name, is_upper)) return json_string(name);
  return json_string(fmt::format("\"{}\"", name));
}

std::string name_of_json(std::string_view name) {
  if (name.size() >= 2 && name.front() == '"' && name.back() == '"') {
    return std::string(name.substr(1, name.size() - 2));
  }
  std::string lower(name);
  for (char& letter : lower) {
    if (is_upper(letter)) letter = static_cast<char>(letter - 'A' + 'a');
  }
  return lower;
}

}  // namespace helenus::model
