#include "consensus/persistent_acceptor.h"

#include <utility>

#include "base/assert.h"
#include "runtime/files.h"

namespace helenus::consensus {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Task;

Task<Result<void>> PersistentAcceptor::create(runtime::Runtime& runtime, std::string path,
                                              AcceptorState first) {
  co_return co_await runtime::replace_file(runtime, std::move(path), encode(first));
}

Task<Result<AcceptorState>> PersistentAcceptor::read(runtime::Runtime& runtime, std::string path,
                                                     NodeId node) {
  const auto bytes = co_await runtime::read_file(runtime, path, kFileSizeMax);
  if (bytes.failed_with(Errc::not_found)) {
    co_return Error(
        Errc::not_found,
        "{} is missing: what node {} has voted is forgotten, so it must not go on under "
        "its id; restore all of the folder from a backup, or start a new node with "
        "empty folders in its place",
        path, node);
  }
  if (!bytes) co_return bytes.error();
  auto state = decode_acceptor_state(*bytes);
  if (!state) co_return std::move(state).error().within(path);
  if (state->node != node) {
    co_return Error(Errc::refused, "{}: the state of node {}, and this is node {}", path,
                    state->node, node);
  }
  co_return state;
}

Task<Result<std::unique_ptr<PersistentAcceptor>>> PersistentAcceptor::open(
    runtime::Runtime& runtime, std::string path, NodeId node, Hooks hooks) {
  CO_TRY(auto state, co_await read(runtime, path, node));
  CO_TRY_VOID(co_await replace(runtime, path, encode(state), hooks));
  co_return std::make_unique<PersistentAcceptor>(Private(), runtime, std::move(path),
                                                 std::move(state), std::move(hooks));
}

// One that found no space left the old state, or the new one whose name may not be durable: both
// are good to be replaced.
Task<Result<void>> PersistentAcceptor::replace(runtime::Runtime& runtime, std::string path,
                                               base::Bytes state, const Hooks& hooks) {
  while (true) {
    auto replaced = co_await runtime::replace_file(runtime, path, state);
    if (!replaced.failed_with(Errc::no_space) || !hooks.make_room) co_return replaced;
    const bool more_room = co_await hooks.make_room();
    if (!more_room) co_return replaced;
  }
}

PersistentAcceptor::PersistentAcceptor(Private, runtime::Runtime& runtime, std::string path,
                                       AcceptorState durable, Hooks hooks)
    : runtime_(runtime),
      path_(std::move(path)),
      hooks_(std::move(hooks)),
      log_(runtime.logger("consensus")),
      acceptor_(std::move(durable)),
      writer_(runtime, 1) {
  ASSERT(hooks_.send && hooks_.learned);
}

void PersistentAcceptor::receive(model::NodeId from, const Message& question) {
  if (stopping_ || failure_) return;
  acceptor_.receive(from, question);
  pump();
}

// What a hook calls may come back to here: nothing is left half done when one is called.
void PersistentAcceptor::pump() {
  if (writer_.empty()) {
    write_ = acceptor_.next_write();
    if (write_) writer_.spawn(write_all());
  }
  for (const Outgoing& answer : acceptor_.take_answers()) hooks_.send(answer);
}

Task<void> PersistentAcceptor::write_all() {
  while (write_) {
    auto replaced = co_await replace(runtime_, path_, write_->state, hooks_);
    if (!replaced) {
      failure_ = std::move(replaced).error();
      log_.error("the acceptor's state could not be written; this node decides on nothing any more",
                 base::kv("error", *failure_));
      if (hooks_.failed) hooks_.failed();
      co_return;
    }
    const Version before = acceptor_.durable_document().version;
    acceptor_.written(write_->sequence);
    write_ = acceptor_.next_write();
    if (acceptor_.durable_document().version > before) {
      hooks_.learned(acceptor_.durable_document());
    }
    for (const Outgoing& answer : acceptor_.take_answers()) hooks_.send(answer);
    // A hook may have brought further questions, for which pump() had to wait.
    if (!write_) write_ = acceptor_.next_write();
  }
}

Task<void> PersistentAcceptor::stop() {
  stopping_ = true;
  co_await writer_.join();
}

}  // namespace helenus::consensus
