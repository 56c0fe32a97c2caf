// Hostile bytes against what comes before two nodes know each other: files of secrets, hellos of
// strangers, proofs, and frames behind a handshake that lack the right mark.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "rpc/cluster_secret.h"
#include "rpc/frame.h"
#include "rpc/handshake.h"

namespace {

using namespace helenus;  // NOLINT: a main is nobody's header
using runtime::Address;

rpc::ClusterSecret secret_of(std::uint8_t number) {
  rpc::Key key;
  key.fill(std::byte{number});
  return rpc::ClusterSecret(key);
}

void check_file(base::ByteView bytes) {
  const auto secrets = rpc::parse_cluster_secrets(base::as_text(bytes));
  if (!secrets) return;
  ASSERT(!secrets->empty() && secrets->size() <= rpc::kClusterSecretsMax);
  std::string again;
  for (const rpc::ClusterSecret& secret : *secrets) again += secret.line().reveal();
  const auto parsed = rpc::parse_cluster_secrets(again);
  ASSERT(parsed && parsed->size() == secrets->size());
  for (std::size_t i = 0; i < secrets->size(); ++i) {
    ASSERT((*parsed)[i].reveal() == (*secrets)[i].reveal());
  }
}

void check_hello(const rpc::Hello& hello) {
  const Address here = Address::v4({127, 0, 0, 1}, 7000);
  const Address there = Address::v4({192, 0, 2, 1}, 7000);
  rpc::Options options{.cluster = "troy", .node = model::NodeId()};
  const rpc::Self self{.options = options, .life = 1};
  ASSERT(rpc::judge_stranger(self, hello, there).has_value());
  const bool is_let_in = !rpc::judge_stranger(self, hello, here);
  ASSERT(!is_let_in || (!hello.nonce && hello.cluster == "troy"));
  options.secrets = {secret_of(1)};
  for (const Address& address : {here, there}) {
    const auto refusal = rpc::judge_stranger(self, hello, address);
    ASSERT(refusal || (hello.nonce && hello.cluster == "troy"));
    ASSERT(!refusal || refusal->text.size() <= rpc::kTextSizeMax);
  }
}

void check_proof(const base::Bytes& body, const rpc::Proof& proof) {
  rpc::Transcript transcript;
  transcript.add(body);
  const std::vector<rpc::ClusterSecret> secrets = {secret_of(1), secret_of(2)};
  ASSERT(rpc::find_secret(secrets, rpc::Side::caller, transcript, proof) == nullptr);
  const rpc::Proof right = rpc::prove(secrets.back(), rpc::Side::callee, transcript);
  ASSERT(rpc::find_secret(secrets, rpc::Side::callee, transcript, right) == &secrets.back());
  ASSERT(rpc::find_secret(secrets, rpc::Side::caller, transcript, right) == nullptr);
}

// Whatever comes, nothing is taken for a frame of the peer.
void check_marks(base::ByteView bytes) {
  rpc::Seal seal(secret_of(3).reveal());
  rpc::FrameReader reader(4096);
  reader.set_seal(&seal);
  for (;;) {
    const auto body = reader.next();
    ASSERT(!body || !*body);
    if (!body || bytes.empty()) return;
    const base::MutableByteView room = reader.room();
    const std::size_t size = std::min(bytes.size(), room.size());
    std::ranges::copy(bytes.first(size), room.begin());
    reader.commit(size);
    bytes = bytes.subspan(size);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::ByteView bytes = std::as_bytes(std::span(data, size));
  check_file(bytes);
  check_marks(bytes);
  const base::Bytes body = base::Bytes::copy_of(bytes);
  const auto frame = rpc::decode_body(body);
  if (!frame) return 0;
  if (const auto* hello = std::get_if<rpc::Hello>(&*frame)) check_hello(*hello);
  if (const auto* proof = std::get_if<rpc::Proof>(&*frame)) check_proof(body, *proof);
  return 0;
}
