// Text of clients within errors: made fit to be read, and short.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace helenus::cql::parser {

// Of one error's whole text. The protocol has sixteen bits for its length; people have less
// patience.
inline constexpr std::size_t kErrorBytesMax = 1024;

// Valid UTF-8 for terminals: line ends are left out, and what is no printable character or no
// character at all is a question mark.
std::string presentable(std::string_view text);

// The first `bytes_max` of it, presentable, with dots if that is not all.
std::string beginning_of(std::string_view text, std::size_t bytes_max);

// The last `bytes_max` of it, likewise.
std::string end_of(std::string_view text, std::size_t bytes_max);

}  // namespace helenus::cql::parser
