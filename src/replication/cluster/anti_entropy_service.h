// AntiEntropyService: hands what other nodes announce, and what they pull, to the cores that have
// the tablets. It listens on the core of the Rpc. One announcement may be about tablets of several
// cores.
//
// Core affinity: the core of the Rpc.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/anti_entropy.h"
#include "replication/messages/messages.h"
#include "replication/tablets/held_tablets.h"
#include "rpc/rpc.h"
#include "runtime/cores.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::replication {

class AntiEntropyService {
 public:
  // Of a core; asked on the core of the Rpc, used over there.
  using AntiEntropyOf = std::function<AntiEntropy&(runtime::CoreId core)>;

  // What they refer to outlives the Rpc's stop(), and so does this.
  AntiEntropyService(runtime::Runtime& here, AntiEntropyOf anti_entropy_of)
      : here_(here), anti_entropy_of_(std::move(anti_entropy_of)) {}
  AntiEntropyService(const AntiEntropyService&) = delete;
  AntiEntropyService& operator=(const AntiEntropyService&) = delete;

  void take(const HeldTabletsPtr& held);
  // Requires: nobody serves these verbs yet.
  void serve(rpc::Rpc& rpc);
  // None: this node holds no replica of it.
  std::optional<runtime::CoreId> core_of(storage::TabletId tablet) const {
    const auto core = cores_.find(tablet);
    return core == cores_.end() ? std::nullopt : std::optional(core->second);
  }
  // Of peers, of tablets that this node holds no replica of.
  std::uint64_t clocks_ignored() const { return clocks_ignored_; }

 private:
  runtime::Task<base::Result<AnnounceReply>> announce(model::NodeId from, AnnounceMessage message,
                                                      runtime::Until until);
  runtime::Task<base::Result<PullReply>> pull(model::NodeId from, PullMessage message,
                                              runtime::Until until);
  runtime::Task<base::Result<StreamOpenReply>> open_stream(model::NodeId from,
                                                           StreamOpenMessage message,
                                                           runtime::Until until);
  runtime::Task<base::Result<StreamPageReply>> page_of_stream(model::NodeId from,
                                                              StreamPageMessage message,
                                                              runtime::Until until);
  // What `ask`(AntiEntropy&, Until) answers on the core that has the tablet. Errors: refused.
  template <class Reply, class Ask>
  runtime::Task<base::Result<Reply>> ask_core_of(storage::TabletId tablet, const Ask& ask,
                                                 runtime::Until until);

  runtime::Runtime& here_;
  const AntiEntropyOf anti_entropy_of_;
  std::map<storage::TabletId, runtime::CoreId> cores_;
  std::uint64_t clocks_ignored_ = 0;
};

}  // namespace helenus::replication
