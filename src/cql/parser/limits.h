// How much of everything one statement may have. A statement within these limits takes memory in
// proportion to its length, time in proportion to it, and a stack that kNestingDepthMax bounds.
#pragma once

#include <cstddef>

namespace helenus::cql::parser {

// Bytes of text. Frames end at 16 MiB, but that is for values: a statement that long in text is a
// mistake, and the tree of `[1,1,1...` takes 32 times the space of its text.
inline constexpr std::size_t kStatementBytesMax = std::size_t{1} << 20;

// Levels of literals, calls, parentheses and types within one another.
inline constexpr std::size_t kNestingDepthMax = 64;

// The protocol counts the values of a request in sixteen bits.
inline constexpr std::size_t kMarkersMax = 65535;

}  // namespace helenus::cql::parser
