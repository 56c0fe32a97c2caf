#include "membership/application_state.h"

#include <algorithm>
#include <array>
#include <functional>

#include "base/codec.h"

namespace helenus::membership {

using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;

std::string_view name_of(Status status) {
  switch (status) {
    case Status::joining:
      return "joining";
    case Status::normal:
      return "normal";
    case Status::leaving:
      return "leaving";
    case Status::left:
      return "left";
  }
  UNREACHABLE("status {}", static_cast<int>(status));
}

namespace {

base::Bytes encode_number(std::uint64_t number) {
  base::Buffer buffer;
  Encoder(buffer).varint(number);
  return std::move(buffer).freeze();
}

base::Result<std::uint64_t> decode_number(base::ByteView value) {
  Decoder in(value);
  const std::uint64_t number = in.varint();
  TRY_VOID(in.finish());
  return number;
}

}  // namespace

base::Bytes encode_status(Status status) {
  base::Buffer buffer;
  Encoder(buffer).u8(static_cast<std::uint8_t>(status));
  return std::move(buffer).freeze();
}

base::Result<Status> decode_status(base::ByteView value) {
  Decoder in(value);
  const std::uint8_t number = in.u8();
  TRY_VOID(in.finish());
  if (number > static_cast<std::uint8_t>(Status::left)) {
    return Error(Errc::corrupt, "no status has the number {}", number);
  }
  return static_cast<Status>(number);
}

base::Bytes encode_load(std::uint64_t bytes) {
  return encode_number(bytes);
}

base::Result<std::uint64_t> decode_load(base::ByteView value) {
  return decode_number(value);
}

base::Bytes encode_wall_clock(std::uint64_t microseconds) {
  return encode_number(microseconds);
}

base::Result<std::uint64_t> decode_wall_clock(base::ByteView value) {
  return decode_number(value);
}

base::Bytes encode_metadata_version(std::uint64_t version) {
  return encode_number(version);
}

base::Result<std::uint64_t> decode_metadata_version(base::ByteView value) {
  return decode_number(value);
}

base::Bytes encode_serves_clients(bool serves) {
  base::Buffer buffer;
  Encoder(buffer).u8(serves ? 1 : 0);
  return std::move(buffer).freeze();
}

base::Result<bool> decode_serves_clients(base::ByteView value) {
  Decoder in(value);
  const std::uint8_t number = in.u8();
  TRY_VOID(in.finish());
  if (number > 1) return Error(Errc::corrupt, "{} is neither yes nor no", number);
  return number == 1;
}

base::Bytes encode_schema_version(const base::Uuid& version) {
  return base::Bytes::copy_of(version.bytes());
}

base::Result<base::Uuid> decode_schema_version(base::ByteView value) {
  if (value.size() != base::Uuid::kSize) {
    return Error(Errc::corrupt, "a schema version of {} bytes", value.size());
  }
  base::Uuid::Octets octets;
  std::ranges::copy(value, octets.begin());
  return base::Uuid(octets);
}

base::Bytes encode_tokens(std::span<const model::Token> tokens) {
  ASSERT(tokens.size() <= kTokensMax, "{} tokens", tokens.size());
  ASSERT(std::ranges::adjacent_find(tokens, std::greater_equal<>()) == tokens.end());
  base::Buffer buffer(tokens.size() * sizeof(std::int64_t));
  Encoder out(buffer);
  for (const model::Token token : tokens) out.u64_le(static_cast<std::uint64_t>(token.value()));
  return std::move(buffer).freeze();
}

base::Result<std::vector<model::Token>> decode_tokens(base::ByteView value) {
  Decoder in(value);
  if (value.size() > kStateValueBytesMax) in.fail("too many tokens");
  std::vector<model::Token> tokens;
  while (in.ok() && in.remaining() > 0) {
    const model::Token token(static_cast<std::int64_t>(in.u64_le()));
    if (!tokens.empty() && token <= tokens.back()) in.fail("tokens out of order");
    tokens.push_back(token);
  }
  TRY_VOID(in.finish());
  return tokens;
}

base::Bytes encode_address(const runtime::Address& address) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.raw(base::as_bytes(address.ip_bytes()));
  out.u16_be(address.port());
  return std::move(buffer).freeze();
}

base::Result<runtime::Address> decode_address(base::ByteView value) {
  Decoder in(value);
  const auto octets = [&]<std::size_t N>(std::array<std::uint8_t, N> ip) {
    for (std::uint8_t& octet : ip) octet = in.u8();
    return ip;
  };
  runtime::Address address;
  if (value.size() == 4 + sizeof(std::uint16_t)) {
    address = runtime::Address::v4(octets(std::array<std::uint8_t, 4>{}), 0);
  } else if (value.size() == 16 + sizeof(std::uint16_t)) {
    address = runtime::Address::v6(octets(std::array<std::uint8_t, 16>{}), 0);
  } else {
    in.fail("the length of no address");
  }
  const std::uint16_t port = in.u16_be();
  TRY_VOID(in.finish());
  return address.with_port(port);
}

}  // namespace helenus::membership
