// What proofs and seals are made of: SHA-256, HMAC-SHA256, HKDF (RFC 5869) and AES-256-GMAC, all of
// OpenSSL's libcrypto.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string_view>

#include "base/bytes.h"

struct evp_cipher_ctx_st;  // OpenSSL's

namespace helenus::rpc {

inline constexpr std::size_t kKeySize = 32;
using Key = std::array<std::byte, kKeySize>;
using Digest256 = std::array<std::byte, 32>;

Digest256 sha256(base::ByteView bytes);
Digest256 hmac_sha256(base::ByteView key, base::ByteView message);
// Extract and expand, to one key. `info` tells apart the keys that are made of the same material.
Key hkdf_sha256(base::ByteView material, base::ByteView salt, std::string_view info);

// Takes as long for bytes that are nearly equal as for others.
bool equal_in_constant_time(base::ByteView a, base::ByteView b);

// Seal: the marks of one direction of a connection. The mark of a frame covers its bytes and how
// many frames went before it, so a frame that was changed, repeated, left out or put elsewhere does
// not fit its mark. It is a GMAC with the number of the frame as its nonce: a key serves one Seal
// that marks and one that checks, and no other.
class Seal {
 public:
  static constexpr std::size_t kMarkSize = 16;
  using Mark = std::array<std::byte, kMarkSize>;

  explicit Seal(const Key& key);
  Seal(const Seal&) = delete;
  Seal& operator=(const Seal&) = delete;
  ~Seal();

  // The mark of the next frame, whose bytes are these one behind the other.
  Mark next(std::initializer_list<base::ByteView> frame);

 private:
  evp_cipher_ctx_st* context_;
  std::uint64_t frames_ = 0;
};

}  // namespace helenus::rpc
