// RESP, version 2: what Redis speaks. Commands out, replies in; as much of it as GET and SET need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::bench {

// Appends a command as an array of bulk strings.
void encode_resp_command(std::initializer_list<std::string_view> words, base::Buffer& out);

struct RespReply {
  enum class Kind : std::uint8_t { simple, error, integer, bulk, null };
  Kind kind = Kind::null;
  std::string_view text;  // borrows from the bytes read; without what frames it
  std::size_t size = 0;   // bytes the reply takes, its frame included

  friend bool operator==(const RespReply&, const RespReply&) = default;
};

inline constexpr std::size_t kRespLineSizeMax = 64 << 10;
inline constexpr std::size_t kRespBulkSizeMax = std::size_t{512} << 20;

// The reply the bytes begin with; none if it is not complete. Errors: corrupt, unsupported
// (arrays).
base::Result<std::optional<RespReply>> decode_resp_reply(base::ByteView bytes);

}  // namespace helenus::bench
