#include "cluster/metadata_follower.h"

#include <chrono>
#include <cstddef>
#include <vector>

#include <fmt/format.h>

#include "cluster/announcement.h"
#include "runtime/random.h"
#include "runtime/sleep.h"

namespace helenus::cluster {

using base::Errc;
using base::Result;
using consensus::Version;
using model::NodeId;
using runtime::Task;
using runtime::Until;

MetadataFollower::MetadataFollower(const NodeContext& context, consensus::PaxosStore& store,
                                   KnownMetadata& known, const membership::GossipService& gossip)
    : context_(context),
      store_(store),
      known_(known),
      gossip_(gossip),
      log_(context.runtime.logger("cluster")) {}

Task<void> MetadataFollower::follow() {
  for (;;) {
    const auto document = co_await store_.wait_newer(known_.version(), {.stop = context_.stopping});
    if (!document) co_return;
    if (const auto adopted = known_.adopt(*document); !adopted) {
      log_.error("newer metadata cannot be decoded; this node goes on with older ones",
                 base::kv("version", document->version), base::kv("reason", adopted.error()));
      co_return;
    }
  }
}

// Clients are not to miss on this node what was decided while it was away, nor what it decided
// alone and had not noted as decided when it stopped. The other acceptors may be starting as well,
// so they are asked again and again. If too few of them come there is nobody to wait for, and this
// node starts with what it has.
Task<Result<bool>> MetadataFollower::catch_up(Until until) {
  const std::size_t acceptors = store_.known().acceptors.size();
  const auto timeout = context_.options.catch_up_timeout;
  const auto seconds = std::chrono::duration_cast<std::chrono::duration<double>>(timeout);
  context_.phase.set(fmt::format(
      "waits for {} of the {} nodes that decide on the metadata to tell the newest, {} s at most",
      consensus::majority_of(acceptors), acceptors, seconds.count()));
  const auto newest = co_await store_.read(context_.attempt(timeout, until));
  if (newest) {
    CO_TRY_VOID(known_.adopt(*newest));
    co_return true;
  }
  if (until.stop.stop_requested()) co_return newest.error();
  log_.warn("too few acceptors told the newest metadata: this node starts with those it has",
            base::kv("version", store_.known().version), base::kv("error", newest.error()));
  context_.tasks.spawn(keep_catching_up());
  CO_TRY_VOID(known_.adopt(store_.known()));
  co_return false;
}

// Other nodes acknowledge changes without a node that they take for down, as they did with this one
// until they heard of it. A node that has spoken to it by gossip knows of it before it is asked
// here, on the same connection: what that node changes from then on waits for this one, and what
// was decided before is read here. The others were greeted as well; one that changes something and
// has not heard of this node yet is left, for some rounds of gossip at most. If no node speaks to
// this one soon, none is taken to be there.
Task<Result<void>> MetadataFollower::catch_up_when_heard_of(Until until) {
  if (known_.metadata()->nodes.size() == 1) co_return {};
  context_.phase.set("waits for another node to hear of it");
  const auto interval = context_.options.gossip_interval;
  const Until soon = context_.attempt(interval, until);
  while (gossip_.view().nodes().empty()) {
    const auto heard = co_await context_.news.wait(soon);
    if (heard.failed_with(Errc::timeout)) co_return {};
    if (!heard) co_return heard.error();
  }
  const auto newest = co_await store_.read(context_.attempt(interval, until));
  if (newest) co_return known_.adopt(*newest);
  if (until.stop.stop_requested()) co_return newest.error();
  // Too few acceptors answered in time; gossip tells this node what it misses.
  co_return {};
}

// What was decided when this node stopped need not be in its file as decided; asking finds it out.
// Gossip tells of documents that a node has applied. One that was decided and that no node has
// applied yet is found by asking the acceptors.
Task<void> MetadataFollower::keep_catching_up() {
  const auto timeout = context_.options.attempt_timeout;
  while (true) {
    const auto attempt = Until::after(context_.runtime, timeout, context_.stopping);
    if (co_await store_.read(attempt)) break;
    if (!co_await runtime::sleep_for(context_.runtime, timeout, context_.stopping)) break;
  }
}

void MetadataFollower::on_state(NodeId node, membership::StateKey key, const base::Bytes& value) {
  if (key != membership::StateKey::metadata_version) return;
  const auto version = membership::decode_metadata_version(value);
  if (version) store_.heard_of(node, Version(*version));
}

// A node that tells of a newer version is asked for it at once, and that question or its answer may
// be lost: so one that has it is asked in each round for as long as this node is behind.
Task<void> MetadataFollower::keep_asking_holders() {
  const auto interval = context_.options.gossip_interval;
  while (co_await runtime::sleep_for(context_.runtime, interval, context_.stopping)) {
    if (const auto holder = draw_holder_of_newer()) {
      store_.heard_of(*holder, applied_version_of(gossip_, *holder));
    }
  }
}

std::optional<NodeId> MetadataFollower::draw_holder_of_newer() const {
  std::vector<NodeId> up;
  std::vector<NodeId> down;
  for (const auto& [node, known] : gossip_.view().nodes()) {
    if (applied_version_of(gossip_, node) > store_.known().version) {
      (known.up ? up : down).push_back(node);
    }
  }
  const std::vector<NodeId>& holders = up.empty() ? down : up;
  if (holders.empty()) return std::nullopt;
  return holders[context_.runtime.random.below(holders.size())];
}

}  // namespace helenus::cluster
