#include "bench/resp.h"

#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace helenus::bench {

namespace {

using base::Errc;
using base::Error;

constexpr std::string_view kLineEnd = "\r\n";

void append_number_line(char kind, std::size_t number, base::Buffer& out) {
  char line[32];
  line[0] = kind;
  char* end = std::to_chars(line + 1, std::end(line) - 2, number).ptr;
  *end++ = '\r';
  *end++ = '\n';
  out.append(std::string_view(line, end));
}

base::Result<std::int64_t> number_of(std::string_view line) {
  std::int64_t number = 0;
  const auto [end, fault] = std::from_chars(line.data(), line.data() + line.size(), number);
  if (line.empty() || fault != std::errc() || end != line.data() + line.size()) {
    return Error(Errc::corrupt, "RESP: '{}' is no number", line.substr(0, 32));
  }
  return number;
}

base::Result<std::optional<RespReply>> bulk(std::string_view text, std::size_t head_size,
                                            std::string_view line) {
  TRY(const std::int64_t length, number_of(line));
  if (length == -1) return RespReply{.kind = RespReply::Kind::null, .text = {}, .size = head_size};
  if (length < 0 || static_cast<std::size_t>(length) > kRespBulkSizeMax) {
    return Error(Errc::corrupt, "RESP: a bulk string of {} bytes", length);
  }
  const auto size = static_cast<std::size_t>(length);
  if (text.size() < head_size + size + kLineEnd.size()) return std::nullopt;
  if (text.substr(head_size + size, kLineEnd.size()) != kLineEnd) {
    return Error(Errc::corrupt, "RESP: a bulk string of {} bytes does not end there", length);
  }
  return RespReply{.kind = RespReply::Kind::bulk,
                   .text = text.substr(head_size, size),
                   .size = head_size + size + kLineEnd.size()};
}

}  // namespace

void encode_resp_command(std::initializer_list<std::string_view> words, base::Buffer& out) {
  append_number_line('*', words.size(), out);
  for (const std::string_view word : words) {
    append_number_line('$', word.size(), out);
    out.append(word);
    out.append(kLineEnd);
  }
}

base::Result<std::optional<RespReply>> decode_resp_reply(base::ByteView bytes) {
  const std::string_view text = base::as_text(bytes);
  const std::size_t line_end = text.substr(0, kRespLineSizeMax).find(kLineEnd);
  if (line_end == std::string_view::npos) {
    if (text.size() >= kRespLineSizeMax) return Error(Errc::corrupt, "RESP: a line without an end");
    return std::nullopt;
  }
  if (line_end == 0) return Error(Errc::corrupt, "RESP: an empty line");
  const std::string_view line = text.substr(1, line_end - 1);
  const std::size_t head_size = line_end + kLineEnd.size();
  switch (text[0]) {
    case '+':
      return RespReply{.kind = RespReply::Kind::simple, .text = line, .size = head_size};
    case '-':
      return RespReply{.kind = RespReply::Kind::error, .text = line, .size = head_size};
    case ':': {
      const auto number = number_of(line);
      if (!number) return number.error();
      return RespReply{.kind = RespReply::Kind::integer, .text = line, .size = head_size};
    }
    case '$':
      return bulk(text, head_size, line);
    case '*':
      return Error(Errc::unsupported, "RESP: arrays are not read here");
    default:
      return Error(Errc::corrupt, "RESP: no reply begins with '{}'", text[0]);
  }
}

}  // namespace helenus::bench
