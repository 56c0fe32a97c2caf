#include "replication/cluster/anti_entropy_service.h"

#include <cstddef>
#include <vector>

#include "replication/cluster/on_core.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TabletId;

namespace {

// The part of an announcement that concerns one core.
struct CorePart {
  AnnounceMessage message;
  std::vector<std::size_t> places;  // in the whole
};

Task<Result<AnnounceReply>> announce_to(AntiEntropy& anti_entropy, NodeId from,
                                        const AnnounceMessage& message) {
  co_return anti_entropy.on_announce(from, message);
}

}  // namespace

void AntiEntropyService::take(const HeldTabletsPtr& held) {
  cores_.clear();
  for (const HeldTablet& each : held->all()) cores_.emplace(each.info.id, each.core);
}

void AntiEntropyService::serve(rpc::Rpc& rpc) {
  rpc.serve(kAnnounceMethod, [this](NodeId from, AnnounceMessage message, Until until) {
    return announce(from, std::move(message), std::move(until));
  });
  rpc.serve(kPullMethod, [this](NodeId from, PullMessage message, Until until) {
    return pull(from, std::move(message), std::move(until));
  });
  rpc.serve(kStreamOpenMethod, [this](NodeId from, StreamOpenMessage message, Until until) {
    return open_stream(from, message, std::move(until));
  });
  rpc.serve(kStreamPageMethod, [this](NodeId from, StreamPageMessage message, Until until) {
    return page_of_stream(from, std::move(message), std::move(until));
  });
}

Task<Result<AnnounceReply>> AntiEntropyService::announce(NodeId from, AnnounceMessage message,
                                                         Until until) {
  AnnounceReply reply;
  reply.known.resize(message.clocks.size());
  std::map<runtime::CoreId, CorePart> parts;
  for (std::size_t i = 0; i < message.clocks.size(); ++i) {
    const auto core = cores_.find(message.clocks[i].tablet);
    if (core == cores_.end()) {
      ++clocks_ignored_;
      continue;
    }
    CorePart& part = parts[core->second];
    part.message.wall = message.wall;
    part.message.clocks.push_back(std::move(message.clocks[i]));
    part.places.push_back(i);
  }
  for (const auto& [core, part] : parts) {
    AntiEntropy& anti_entropy = anti_entropy_of_(core);
    const auto there = [&](Runtime&, const Until&) {
      return announce_to(anti_entropy, from, part.message);
    };
    // What a core does not take now is told again.
    const auto known = co_await on_core<AnnounceReply>(here_, core, there, until);
    for (std::size_t i = 0; known && i < known->known.size(); ++i) {
      reply.known[part.places[i]] = known->known[i];
    }
  }
  co_return reply;
}

template <class Reply, class Ask>
Task<Result<Reply>> AntiEntropyService::ask_core_of(TabletId tablet, const Ask& ask, Until until) {
  const auto core = cores_.find(tablet);
  if (core == cores_.end()) {
    co_return Error(Errc::refused, "this node has no replica of tablet {}", tablet);
  }
  AntiEntropy& anti_entropy = anti_entropy_of_(core->second);
  const auto there = [&](Runtime&, Until remaining) {
    return ask(anti_entropy, std::move(remaining));
  };
  co_return co_await on_core<Reply>(here_, core->second, there, std::move(until));
}

Task<Result<PullReply>> AntiEntropyService::pull(NodeId from, PullMessage message, Until until) {
  const TabletId tablet = message.tablet;
  const auto ask = [&](AntiEntropy& there, Until remaining) {
    return there.on_pull(from, std::move(message), std::move(remaining));
  };
  co_return co_await ask_core_of<PullReply>(tablet, ask, std::move(until));
}

Task<Result<StreamOpenReply>> AntiEntropyService::open_stream(NodeId from,
                                                              StreamOpenMessage message,
                                                              Until until) {
  const auto ask = [&](AntiEntropy& there, Until remaining) {
    return there.on_stream_open(from, message, std::move(remaining));
  };
  co_return co_await ask_core_of<StreamOpenReply>(message.tablet, ask, std::move(until));
}

Task<Result<StreamPageReply>> AntiEntropyService::page_of_stream(NodeId from,
                                                                 StreamPageMessage message,
                                                                 Until until) {
  const TabletId tablet = message.tablet;
  const auto ask = [&](AntiEntropy& there, Until remaining) {
    return there.on_stream_page(from, std::move(message), std::move(remaining));
  };
  co_return co_await ask_core_of<StreamPageReply>(tablet, ask, std::move(until));
}

}  // namespace helenus::replication
