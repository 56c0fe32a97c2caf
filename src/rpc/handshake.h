// The handshake: who is let in, and how a dial goes.
//
// With a secret (cluster_secret.h) each side proves to the other that it knows it, and neither says
// it. A proof is an HMAC under the secret of which side it is and of every frame of the handshake
// so far: both nonces, so that no proof serves twice; both ids, the name of the cluster, the
// versions, the lane, all fields that there are. The caller proves first, so that a stranger is
// told nothing but a nonce. Of the secrets and of all of these frames follow two keys, one for each
// direction, with which every later frame is marked: whoever sits between two nodes can read, and
// can cut the connection, and no more. Contents are not encrypted.
//
// Without a secret nothing is proved. Such nodes talk only to others that have none either, and
// only over loopback addresses, so that a few nodes on one machine need no preparation.
//
// What a proof says: the peer holds the secret of the cluster. Which of its nodes it is, it says
// itself; no two connections under one id and different lives go on side by side (rpc.h).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/result.h"
#include "rpc/cluster_secret.h"
#include "rpc/frame.h"
#include "rpc/options.h"
#include "rpc/pipe.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::rpc {

// What a node judges strangers by.
struct Self {
  const Options& options;
  std::uint64_t life = 0;  // drawn at the start
  // A peer refused this node because another one runs under its id. May be absent.
  std::function<void(const std::string& text)> id_is_taken = {};
};

enum class Side : std::uint8_t { caller, callee };

// Why a caller at that address is not even asked for a proof, or cannot go without one.
std::optional<Refusal> judge_stranger(const Self& self, const Hello& hello,
                                      const runtime::Address& address);
// Whether the caller is one of us, and what we speak with it then. A proof is not looked for here.
std::variant<Welcome, Refusal> judge(const Self& self, const Hello& hello);
// Of a proof that no secret here has made.
Refusal refuse_proof(const Self& self);

// Errors: refused, if in the clear nothing may be said to that address.
base::Result<void> check_in_the_clear(const Options& options, const runtime::Address& address);

Proof prove(const ClusterSecret& secret, Side side, const Transcript& transcript);
// The secret that made the proof; null if none of them did.
const ClusterSecret* find_secret(const std::vector<ClusterSecret>& secrets, Side side,
                                 const Transcript& transcript, const Proof& proof);

// For the marks of the frames that each side writes. Both secrets have made a proof.
struct SessionKeys {
  Key caller;
  Key callee;
};
SessionKeys session_keys(const ClusterSecret& caller, const ClusterSecret& callee,
                         const Transcript& transcript);

struct Dialled {
  std::unique_ptr<Pipe> pipe;
  // The node answered; what it said.
  std::variant<Welcome, Refusal> reply;
  // It has proved that it is of this cluster, or there is no secret to prove.
  bool is_proved = false;
  // When it was asked for that, and when the answer was here.
  runtime::MonotonicTime asked_at = {};
  runtime::MonotonicTime heard_at = {};
};

// Connects and shakes hands. Requires: the hello is complete but for its nonce.
// Errors: those of connecting and reading; corrupt if what answers is no node of ours; refused if
// it has not proved to be one.
runtime::Task<base::Result<Dialled>> dial(runtime::Runtime& runtime, const Self& self,
                                          runtime::Address address, Hello hello,
                                          runtime::Until until);

// Tells the node if it was refused, by a node of this cluster, because another has its id.
void note_id_taken(const Self& self, const Dialled& dialled);

}  // namespace helenus::rpc
