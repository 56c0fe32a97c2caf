#include "ring/partitioner.h"

#include <cstdint>

#include "base/assert.h"
#include "ring/murmur3.h"

namespace helenus::ring {

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.dht.";
constexpr std::string_view kMurmur3Class = "org.apache.cassandra.dht.Murmur3Partitioner";
constexpr std::string_view kOrderedClass = "org.apache.cassandra.dht.ByteOrderedPartitioner";
constexpr std::uint64_t kSignBit = std::uint64_t{1} << 63;
constexpr std::size_t kTokenSize = 8;

Position of_ordered_word(std::uint64_t word) {
  return Position::of_token(model::Token(static_cast<std::int64_t>(word ^ kSignBit)));
}

}  // namespace

Position Position::of_token(model::Token token) {
  const std::uint64_t word = static_cast<std::uint64_t>(token.value()) ^ kSignBit;
  std::string bytes(kTokenSize, '\0');
  for (std::size_t index = 0; index < kTokenSize; ++index) {
    bytes[index] = static_cast<char>(word >> (8 * (kTokenSize - 1 - index)));
  }
  return Position(std::move(bytes));
}

Position Position::of_bytes(base::ByteView bytes) {
  ASSERT(bytes.size() <= kSizeMax, "{} bytes", bytes.size());
  return Position(std::string(base::as_text(bytes)));
}

model::Token Position::token() const {
  ASSERT(bytes_.size() == kTokenSize, "{} bytes", bytes_.size());
  std::uint64_t word = 0;
  for (const char byte : bytes_) word = word << 8 | static_cast<unsigned char>(byte);
  return model::Token(static_cast<std::int64_t>(word ^ kSignBit));
}

Position position_of(Partitioner partitioner, base::ByteView routing_key) {
  return partitioner == Partitioner::murmur3 ? Position::of_token(token_of(routing_key))
                                             : Position::of_bytes(routing_key);
}

std::string_view class_name_of(Partitioner partitioner) {
  return partitioner == Partitioner::murmur3 ? kMurmur3Class : kOrderedClass;
}

base::Result<Partitioner> parse_partitioner(std::string_view name) {
  for (const auto partitioner : {Partitioner::murmur3, Partitioner::ordered}) {
    const std::string_view whole = class_name_of(partitioner);
    if (name == whole || name == whole.substr(kPackage.size())) return partitioner;
  }
  return base::Error(base::Errc::invalid_argument, "no partitioner is called '{}'", name);
}

std::string to_text(Partitioner partitioner, const Position& position) {
  return partitioner == Partitioner::murmur3 ? model::to_string(position.token())
                                             : base::to_hex(position.bytes());
}

std::vector<Position> evenly_spread_tokens(std::size_t count) {
  ASSERT(count > 0 && count <= kTokensMax, "{} tokens", count);
  std::vector<Position> tokens;
  tokens.reserve(count);
  for (std::size_t index = 1; index <= count; ++index) {
    const auto end = (static_cast<unsigned __int128>(index) << 64) / count - 1;
    tokens.push_back(of_ordered_word(static_cast<std::uint64_t>(end)));
  }
  return tokens;
}

}  // namespace helenus::ring
