// PersistentAcceptor: an Acceptor bound to a file. It answers a question when what the answer rests
// on is durable, and never otherwise.
//
// The file (docs/formats/consensus.md) is replaced as a whole: written beside, synced, renamed, the
// folder synced. So under its name there is at every moment a whole state, the last one or the one
// before it, of which no answer has left yet; a torn write is never seen. That is also why it is
// not two slots in turn or a log: there the last record, damaged after it was answered for, looks
// like one that was torn while being written, and the one before it would be taken: a promise
// forgotten. Here whatever does not decode is damage, and the acceptor does not open (S6). It costs
// one more sync, a few times a day.
//
// A write that finds no space is tried again when Hooks::make_room has made some. One that fails is
// final: this object answers nothing any more, and failure() says why. What
// the file then holds is the last state or the one before; no answer rests on the difference. As a
// failed sync of a folder may have left a name that a power loss undoes, open() writes the state
// anew before it is used.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/result.h"
#include "consensus/acceptor.h"
#include "consensus/document.h"
#include "model/node_id.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/task_group.h"

namespace helenus::consensus {

class PersistentAcceptor {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Two documents of the greatest size, and what is around them.
  static constexpr std::size_t kFileSizeMax = 2 * kContentSizeMax + (std::size_t{64} << 10);

  struct Hooks {
    // An answer may go. What cannot be sent is dropped: whoever asked asks again.
    std::function<void(const Outgoing&)> send;
    // A newer document than before is durable here.
    std::function<void(const Document&)> learned;
    // It answers nothing any more, and failure() says why. May be absent.
    std::function<void()> failed = {};
    // There is no space for the state: whether there is some now. May be absent.
    std::function<runtime::Task<bool>()> make_room = {};
  };

  // The first state of a node, to be durable before the node's identity is: a node that has an
  // identity and no state has lost it. What an attempt to create the node left is replaced.
  // Requires: the folder is durable, the node has no identity yet. Errors: of the file system.
  static runtime::Task<base::Result<void>> create(runtime::Runtime& runtime, std::string path,
                                                  AcceptorState first);

  // The state as the file has it; changes nothing. Errors: as of open().
  static runtime::Task<base::Result<AcceptorState>> read(runtime::Runtime& runtime,
                                                         std::string path, model::NodeId node);

  // Reads the state and makes sure that it is durable. Errors: not_found and corrupt, after which
  // this node must not take part under its id; unsupported; refused if it is another node's; of the
  // file system. All name the file.
  static runtime::Task<base::Result<std::unique_ptr<PersistentAcceptor>>> open(
      runtime::Runtime& runtime, std::string path, model::NodeId node, Hooks hooks);
  // For open().
  PersistentAcceptor(Private, runtime::Runtime& runtime, std::string path, AcceptorState durable,
                     Hooks hooks);
  PersistentAcceptor(const PersistentAcceptor&) = delete;
  PersistentAcceptor& operator=(const PersistentAcceptor&) = delete;

  // Takes a question in; hooks.send gets the answer, if there is one, now or later.
  void receive(model::NodeId from, const Message& question);

  // The newest document that is durable here.
  const Document& durable_document() const { return acceptor_.durable_document(); }
  const Acceptor& acceptor() const { return acceptor_; }
  // Why it answers nothing any more, if that is so.
  const std::optional<base::Error>& failure() const { return failure_; }

  // Takes nothing in any more, and returns when no write is under way.
  runtime::Task<void> stop();

 private:
  static runtime::Task<base::Result<void>> replace(runtime::Runtime& runtime, std::string path,
                                                   base::Bytes state, const Hooks& hooks);
  void pump();
  runtime::Task<void> write_all();

  runtime::Runtime& runtime_;
  const std::string path_;
  const Hooks hooks_;
  base::Logger log_;
  Acceptor acceptor_;
  std::optional<base::Error> failure_;
  bool stopping_ = false;
  std::optional<Acceptor::Write> write_;
  runtime::TaskGroup writer_;
};

}  // namespace helenus::consensus
