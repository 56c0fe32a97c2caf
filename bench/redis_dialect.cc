#include "bench/redis_dialect.h"

#include "bench/resp.h"

namespace helenus::bench {

namespace {

template <std::size_t kSize>
std::string_view view_of(const std::array<char, kSize>& text) {
  return {text.data(), kSize};
}

}  // namespace

void RedisDialect::greet(base::Buffer& out) {
  encode_resp_command({"PING"}, out);
}

void RedisDialect::encode(const Operation& operation, std::uint16_t, base::Buffer& out) {
  const auto key = key_text(operation.key);
  if (operation.kind == Operation::Kind::read) {
    encode_resp_command({"GET", view_of(key)}, out);
  } else {
    const auto value = value_text(operation.key, operation.version);
    encode_resp_command({"SET", view_of(key), view_of(value)}, out);
  }
}

base::Result<std::optional<Reply>> RedisDialect::first_reply(base::ByteView bytes) {
  TRY(const std::optional<RespReply> reply, decode_resp_reply(bytes));
  if (!reply) return std::nullopt;
  if (reply->kind == RespReply::Kind::error) {
    return base::Error(base::Errc::refused, "Redis refuses: {}", reply->text);
  }
  if (reply->kind == RespReply::Kind::null) {
    return base::Error(base::Errc::not_found, "Redis has no such key");
  }
  return Reply{.size = reply->size, .slot = std::nullopt};
}

}  // namespace helenus::bench
