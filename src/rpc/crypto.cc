#include "rpc/crypto.h"

#include <climits>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>

#include "base/assert.h"
#include "base/codec.h"

namespace helenus::rpc {

using base::ByteView;

namespace {

const unsigned char* octets(ByteView bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* octets(base::MutableByteView bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

}  // namespace

Digest256 sha256(ByteView bytes) {
  Digest256 digest;
  ::SHA256(octets(bytes), bytes.size(), octets(base::MutableByteView(digest)));
  return digest;
}

Digest256 hmac_sha256(ByteView key, ByteView message) {
  ASSERT(key.size() <= INT_MAX);
  Digest256 digest;
  unsigned int size = 0;
  const auto* made =
      ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), octets(message),
             message.size(), octets(base::MutableByteView(digest)), &size);
  ASSERT(made != nullptr && size == digest.size());
  return digest;
}

Key hkdf_sha256(ByteView material, ByteView salt, std::string_view info) {
  const Digest256 extracted = hmac_sha256(salt, material);
  base::Buffer block;
  block.append(info);
  block.push_back(std::byte{1});
  return hmac_sha256(extracted, block.view());
}

bool equal_in_constant_time(ByteView a, ByteView b) {
  return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Seal::Seal(const Key& key) : context_(::EVP_CIPHER_CTX_new()) {
  ASSERT(context_ != nullptr);
  const int ready =
      ::EVP_EncryptInit_ex(context_, ::EVP_aes_256_gcm(), nullptr, octets(ByteView(key)), nullptr);
  ASSERT(ready == 1);
}

Seal::~Seal() {
  ::EVP_CIPHER_CTX_free(context_);
}

Seal::Mark Seal::next(std::initializer_list<ByteView> frame) {
  std::array<std::byte, 12> nonce{};
  base::store_le(nonce.data(), frames_++);
  int ok = ::EVP_EncryptInit_ex(context_, nullptr, nullptr, nullptr, octets(ByteView(nonce)));
  ASSERT(ok == 1);
  int size = 0;
  for (const ByteView piece : frame) {
    if (piece.empty()) continue;
    ASSERT(piece.size() <= INT_MAX);
    ok = ::EVP_EncryptUpdate(context_, nullptr, &size, octets(piece),
                             static_cast<int>(piece.size()));
    ASSERT(ok == 1);
  }
  Mark mark;
  ok = ::EVP_EncryptFinal_ex(context_, octets(base::MutableByteView(mark)), &size);
  ASSERT(ok == 1 && size == 0);
  ok = ::EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_GCM_GET_TAG, kMarkSize, mark.data());
  ASSERT(ok == 1);
  return mark;
}

}  // namespace helenus::rpc
