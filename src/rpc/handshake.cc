#include "rpc/handshake.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/assert.h"
#include "runtime/loopback.h"
#include "runtime/random.h"

namespace helenus::rpc {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

Refusal refusal(const Self& self, RefusalReason reason, std::string text) {
  text.resize(std::min(text.size(), kTextSizeMax));
  return {.reason = reason, .versions = self.options.versions, .text = std::move(text)};
}

// What a welcome must say to be an answer to that hello.
Result<void> check(const Self& self, const Hello& hello, const Welcome& welcome) {
  if (!self.options.versions.contains(welcome.version)) {
    return Error(Errc::corrupt, "it chose version {}, which was not offered",
                 welcome.version.value());
  }
  if (hello.to && *hello.to != welcome.node) {
    return Error(Errc::refused, "it is node {}, not {}", welcome.node.value(), hello.to->value());
  }
  if (welcome.body_size_max < kFrameOverheadMax) {
    return Error(Errc::corrupt, "it takes frames of {} bytes", welcome.body_size_max);
  }
  return {};
}

constexpr std::string_view label_of(Side side) {
  return side == Side::caller ? "helenus rpc: caller" : "helenus rpc: callee";
}

std::optional<Refusal> judge_name_and_versions(const Self& self, const Hello& hello) {
  const Options& us = self.options;
  if (hello.cluster != us.cluster) {
    return refusal(
        self, RefusalReason::other_cluster,
        fmt::format("this is a node of the cluster '{}', not of '{}'", us.cluster, hello.cluster));
  }
  if (!common_version(us.versions, hello.versions)) {
    return refusal(self, RefusalReason::no_common_version,
                   fmt::format("this node speaks versions {} to {} of the protocol, not {} to {}",
                               us.versions.oldest.value(), us.versions.newest.value(),
                               hello.versions.oldest.value(), hello.versions.newest.value()));
  }
  return std::nullopt;
}

}  // namespace

Result<void> check_in_the_clear(const Options& options, const runtime::Address& address) {
  if (!options.secrets.empty() || options.any_address_in_the_clear) return {};
  if (runtime::is_loopback(address)) return {};
  return Error(Errc::refused,
               "{} is no loopback address, and a node without a cluster secret talks to no other: "
               "copy the file cluster_secret of another node, or name it as cluster_secret_file",
               address);
}

std::optional<Refusal> judge_stranger(const Self& self, const Hello& hello,
                                      const runtime::Address& address) {
  if (auto refused = judge_name_and_versions(self, hello)) return refused;
  const bool has_secret = !self.options.secrets.empty();
  if (has_secret && !hello.nonce) {
    return refusal(self, RefusalReason::no_proof,
                   "the nodes of this cluster have a secret, and the one that dials has none: copy "
                   "the file cluster_secret of another node to it");
  }
  if (!has_secret && hello.nonce) {
    return refusal(self, RefusalReason::no_proof,
                   "this node has no cluster secret, and the one that dials has: copy its file "
                   "cluster_secret to this one");
  }
  if (const auto clear = check_in_the_clear(self.options, address); !clear) {
    return refusal(self, RefusalReason::no_proof, std::string(clear.error().context()));
  }
  return std::nullopt;
}

Refusal refuse_proof(const Self& self) {
  return refusal(self, RefusalReason::no_proof, "the proof is not of this cluster's secret");
}

Proof prove(const ClusterSecret& secret, Side side, const Transcript& transcript) {
  base::Buffer message;
  message.append(label_of(side));
  message.append(transcript.view());
  return {.proof = hmac_sha256(secret.reveal(), message.view())};
}

const ClusterSecret* find_secret(const std::vector<ClusterSecret>& secrets, Side side,
                                 const Transcript& transcript, const Proof& proof) {
  const ClusterSecret* found = nullptr;
  for (const ClusterSecret& secret : secrets) {
    const Proof expected = prove(secret, side, transcript);
    if (equal_in_constant_time(expected.proof, proof.proof)) found = &secret;
  }
  return found;
}

SessionKeys session_keys(const ClusterSecret& caller, const ClusterSecret& callee,
                         const Transcript& transcript) {
  base::Buffer material;
  material.append(ByteView(caller.reveal()));
  material.append(ByteView(callee.reveal()));
  const Digest256 salt = sha256(transcript.view());
  return {.caller = hkdf_sha256(material.view(), salt, "helenus rpc: frames of the caller"),
          .callee = hkdf_sha256(material.view(), salt, "helenus rpc: frames of the callee")};
}

std::variant<Welcome, Refusal> judge(const Self& self, const Hello& hello) {
  const Options& us = self.options;
  if (auto refused = judge_name_and_versions(self, hello)) return *std::move(refused);
  if (hello.from == us.node) {
    if (hello.life == self.life) {
      return refusal(self, RefusalReason::itself, "this is the very node that dials");
    }
    return refusal(self, RefusalReason::same_id,
                   fmt::format("another node runs under the id {}", us.node.value()));
  }
  if (hello.to && *hello.to != us.node) {
    return refusal(self, RefusalReason::other_node,
                   fmt::format("this is node {}, not {}", us.node.value(), hello.to->value()));
  }
  if (hello.body_size_max < kFrameOverheadMax) {
    return refusal(self, RefusalReason::bad_handshake,
                   fmt::format("frames of {} bytes are of no use", hello.body_size_max));
  }
  return Welcome{.version = *common_version(us.versions, hello.versions),
                 .node = us.node,
                 .body_size_max = us.limits.body_size_max};
}

namespace {

Error wrong_greeting(const Frame& frame) {
  return {Errc::corrupt, "it greets with a frame of the kind '{}'", name_of(frame)};
}

// The proof behind what the callee said last; its marks begin behind it.
Task<Result<void>> take_proof(const Self& self, Pipe& pipe, const Transcript& transcript,
                              Until until) {
  CO_TRY(const Frame frame, co_await pipe.read(std::move(until)));
  const auto* proof = std::get_if<Proof>(&frame);
  if (proof == nullptr) co_return wrong_greeting(frame);
  const std::vector<ClusterSecret>& secrets = self.options.secrets;
  const ClusterSecret* made_by = find_secret(secrets, Side::callee, transcript, *proof);
  if (made_by == nullptr) {
    co_return Error(Errc::refused, "its proof is not of this cluster's secret");
  }
  const SessionKeys keys = session_keys(secrets.front(), *made_by, transcript);
  pipe.seal(keys.caller, keys.callee);
  co_return {};
}

}  // namespace

Task<Result<Dialled>> dial(runtime::Runtime& runtime, const Self& self, runtime::Address address,
                           Hello hello, Until until) {
  CO_TRY_VOID(check_in_the_clear(self.options, address));
  const bool has_secret = !self.options.secrets.empty();
  if (has_secret) runtime.random.fill_secret(hello.nonce.emplace());
  CO_TRY(auto stream, co_await runtime.transport.connect(address, until));
  auto pipe = std::make_unique<Pipe>(runtime, std::move(stream), kHandshakeBodySizeMax);
  Transcript transcript;
  auto asked_at = runtime.clock.now();
  CO_TRY_VOID(co_await pipe->write(hello, until, &transcript));
  CO_TRY(Frame frame, co_await pipe->read(until, &transcript));
  const bool is_challenged = std::holds_alternative<Challenge>(frame);
  if (is_challenged != has_secret && !std::holds_alternative<Refusal>(frame)) {
    if (!has_secret || !std::holds_alternative<Welcome>(frame)) co_return wrong_greeting(frame);
    co_return Error(Errc::refused, "it has not proved to be of this cluster");
  }
  if (is_challenged) {
    const Proof proof = prove(self.options.secrets.front(), Side::caller, transcript);
    asked_at = runtime.clock.now();
    CO_TRY_VOID(co_await pipe->write(proof, until, &transcript));
    CO_TRY(frame, co_await pipe->read(until, &transcript));
  }
  const auto heard_at = runtime.clock.now();
  if (const auto* refused = std::get_if<Refusal>(&frame)) {
    Dialled dialled{.pipe = std::move(pipe), .reply = *refused, .is_proved = !has_secret};
    if (is_challenged && refused->reason != RefusalReason::no_proof) {
      const auto proved = co_await take_proof(self, *dialled.pipe, transcript, until);
      dialled.is_proved = proved.has_value();
    }
    co_return std::move(dialled);
  }
  const auto* welcome = std::get_if<Welcome>(&frame);
  if (welcome == nullptr) co_return wrong_greeting(frame);
  CO_TRY_VOID(check(self, hello, *welcome));
  if (is_challenged) CO_TRY_VOID(co_await take_proof(self, *pipe, transcript, until));
  pipe->set_body_size_max(self.options.limits.body_size_max);
  co_return Dialled{.pipe = std::move(pipe),
                    .reply = *welcome,
                    .is_proved = true,
                    .asked_at = asked_at,
                    .heard_at = heard_at};
}

void note_id_taken(const Self& self, const Dialled& dialled) {
  const auto* refusal = std::get_if<Refusal>(&dialled.reply);
  if (refusal == nullptr || refusal->reason != RefusalReason::same_id) return;
  if (dialled.is_proved && self.id_is_taken) self.id_is_taken(refusal->text);
}

}  // namespace helenus::rpc
