#include "rpc/handshake.h"

#include <utility>

namespace helenus::rpc {

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

}  // namespace

std::variant<Welcome, Refusal> judge(const Self& self, const Hello& hello) {
  const Options& us = self.options;
  if (hello.cluster != us.cluster) {
    return refusal(
        self, RefusalReason::other_cluster,
        fmt::format("this is a node of the cluster '{}', not of '{}'", us.cluster, hello.cluster));
  }
  const auto version = common_version(us.versions, hello.versions);
  if (!version) {
    return refusal(self, RefusalReason::no_common_version,
                   fmt::format("this node speaks versions {} to {} of the protocol, not {} to {}",
                               us.versions.oldest.value(), us.versions.newest.value(),
                               hello.versions.oldest.value(), hello.versions.newest.value()));
  }
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
  return Welcome{.version = *version, .node = us.node, .body_size_max = us.limits.body_size_max};
}

Task<Result<Dialled>> dial(runtime::Runtime& runtime, const Self& self, runtime::Address address,
                           Hello hello, Until until) {
  CO_TRY(auto stream, co_await runtime.transport.connect(address, until));
  auto pipe = std::make_unique<Pipe>(runtime, std::move(stream), kHandshakeBodySizeMax);
  CO_TRY_VOID(co_await pipe->write(hello, until));
  CO_TRY(const Frame frame, co_await pipe->read(until));
  if (const auto* refused = std::get_if<Refusal>(&frame)) {
    co_return Dialled{.pipe = std::move(pipe), .reply = *refused};
  }
  const auto* welcome = std::get_if<Welcome>(&frame);
  if (welcome == nullptr) {
    co_return Error(Errc::corrupt, "it greets with a frame of the kind '{}'", name_of(frame));
  }
  CO_TRY_VOID(check(self, hello, *welcome));
  pipe->set_body_size_max(self.options.limits.body_size_max);
  co_return Dialled{.pipe = std::move(pipe), .reply = *welcome};
}

}  // namespace helenus::rpc
