// Token: the place of a partition on the ring, and of a node's claim on it.
//
// Signed 64 bits, as drivers expect of the Murmur3 partitioner. A node owns the tokens of
// (previous, own], wrapping round. No partition has kTokenMin but that of the empty key: it serves
// as "before all of them".
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/strong.h"

namespace helenus::model {

using Token = base::Strong<struct TokenTag, std::int64_t>;

inline constexpr Token kTokenMin{std::numeric_limits<std::int64_t>::min()};
inline constexpr Token kTokenMax{std::numeric_limits<std::int64_t>::max()};

// Decimal, as in system.local's `tokens`.
std::string to_string(Token token);
// Errors: invalid_argument.
base::Result<Token> parse_token(std::string_view text);

}  // namespace helenus::model
