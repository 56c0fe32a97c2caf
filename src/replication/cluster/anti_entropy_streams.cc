// What no mutation log has any more comes with a copy of the tablet (R12).
#include <algorithm>
#include <utility>

#include "replication/cluster/anti_entropy.h"
#include "runtime/in_background.h"
#include "runtime/sleep.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Task;
using runtime::Until;
using storage::TabletId;

bool AntiEntropy::is_taken_by_others(const Tablet& tablet, const causality::Clock& dots) const {
  const std::size_t peers = tablet.sync.peers().size();
  const std::size_t majority = (peers + 1) / 2 + 1;
  const auto have_it = std::ranges::count_if(tablet.sync.peers(), [&](NodeId peer) {
    const PlacedReplica* its = placed(tablet).find(peer);
    return its != nullptr && !its->in_doubt && tablet.sync.has_told_of(peer, dots);
  });
  return static_cast<std::size_t>(have_it) >= std::min(peers, majority);
}

// What comes later comes from others, if the replica is in doubt: it mints nothing then.
void AntiEntropy::add_damaged(ReentryProgress& progress) {
  const std::vector<TabletId> damaged = replica_.engine().damaged_tablets();
  std::erase_if(damaged_,
                [&](const auto& each) { return !std::ranges::binary_search(damaged, each.first); });
  for (const TabletId id : damaged) {
    const auto found = tablets_.find(id);
    const auto staged = replica_.engine().staged_clock(id);
    if (found == tablets_.end() || !staged) {
      ++progress.damaged_alone;
      continue;
    }
    const bool is_in_doubt = found->second->held.is_in_doubt;
    const auto seen =
        damaged_.try_emplace(id, DamagedTablet{.dots = *staged, .is_in_doubt = is_in_doubt}).first;
    if (seen->second.is_in_doubt != is_in_doubt) {
      seen->second = {.dots = *staged, .is_in_doubt = is_in_doubt};
    }
    if (is_taken_by_others(*found->second, seen->second.dots)) {
      progress.damaged.insert(id);
    } else {
      ++progress.damaged_waiting;
    }
  }
}

bool AntiEntropy::must_stream(TabletId id, std::uint64_t life, const Result<PullEnd>& end) {
  const Tablet* tablet = find(id, life);
  return tablet != nullptr && end && *end == PullEnd::stuck && !tablet->withheld.empty();
}

Task<Result<AntiEntropy::PullEnd>> AntiEntropy::stream(TabletId id, std::uint64_t life,
                                                       NodeId from) {
  if (streaming_ >= options_.streams_max) co_return PullEnd::postponed;
  ++streaming_;
  ++counts_.streams;
  auto end = co_await stream_tablet(id, life, from);
  --streaming_;
  if (Tablet* tablet = find(id, life); tablet != nullptr) tablet->streaming = false;
  if (!end) {
    ++counts_.streams_failed;
    log_.warn("a copy of a tablet could not be taken", base::kv("tablet", id),
              base::kv("peer", from), base::kv("error", end.error()));
  }
  co_return end;
}

Task<Result<AntiEntropy::PullEnd>> AntiEntropy::stream_tablet(TabletId id, std::uint64_t life,
                                                              NodeId from) {
  Tablet* tablet = find(id, life);
  if (tablet == nullptr) co_return PullEnd::cut;
  tablet->streaming = true;
  const auto message = std::make_shared<const StreamOpenMessage>(
      StreamOpenMessage{.tablet = id, .epoch = tablet->held.epoch});
  CO_TRY(auto opened,
         co_await link_.call(from, kStreamOpenMethod, message,
                             Until::after(runtime_, options_.pull_timeout, stop_.token())));
  tablet = find(id, life);
  if (tablet == nullptr) co_return PullEnd::cut;
  const StreamFeedOptions options{.page_bytes_max = options_.streamed_bytes_max,
                                  .page_timeout = options_.pull_timeout};
  StreamFeed feed(link_, from, id, tablet->held.info.range, std::move(opened), options,
                  stop_.token(),
                  [this, id, life, from] { return pull_before_union(id, life, from); });
  const auto taken = co_await replica_.engine().ingest(id, feed, stop_.token());
  counts_.entries_streamed += feed.counts().entries;
  counts_.bytes_streamed += feed.counts().bytes;
  if (feed.counts().was_refused) ++counts_.streams_refused;
  if (!taken) co_await feed.end();
  CO_TRY_VOID(taken);
  log_.info("a copy of a tablet was taken", base::kv("tablet", id), base::kv("peer", from),
            base::kv("entries", feed.counts().entries), base::kv("bytes", feed.counts().bytes),
            base::kv("bytes_installed", taken->bytes_installed));
  tablet = find(id, life);
  if (tablet == nullptr) co_return PullEnd::cut;
  tablet->withheld = {};
  refresh(*tablet);
  CO_TRY(const causality::Clock here, replica_.engine().staged_clock(id));
  tablet->sync.on_staged(here);
  co_return PullEnd::complete;
}

// What the peer's mutation log has comes from there, so that it is kept here, too. In another epoch
// nothing is taken (S10).
Task<Result<void>> AntiEntropy::pull_before_union(TabletId id, std::uint64_t life, NodeId from) {
  for (;;) {
    CO_TRY(const PullEnd end, co_await pull_pages(id, life, from));
    if (find(id, life) == nullptr) {
      co_return Error(Errc::refused, "the replicas of tablet {} have changed", id);
    }
    if (end != PullEnd::cut) co_return {};
  }
}

Task<Result<void>> AntiEntropy::copy(TabletId id, NodeId from, Until until) {
  Tablet* tablet = nullptr;
  for (;;) {
    const auto found = tablets_.find(id);
    if (found == tablets_.end()) co_return Error(Errc::not_found, "tablet {}", id);
    tablet = found->second.get();
    if (!tablet->pulling && streaming_ < options_.streams_max) break;
    if (until.deadline <= runtime_.clock.now()) co_return Error(Errc::timeout);
    CO_TRY_VOID(co_await runtime::sleep_for(runtime_, options_.interval, until.stop));
  }
  const std::uint64_t life = tablet->life;
  tablet->pulling = true;
  ++pulling_;
  const auto end = co_await stream(id, life, from);
  --pulling_;
  finish_pull(id, life, from, end);
  CO_TRY_VOID(end);
  if (*end != PullEnd::complete) {
    co_return Error(Errc::refused, "the replicas of tablet {} have changed", id);
  }
  co_return {};
}

// ---- Giving ----

Task<Result<StreamOpenReply>> AntiEntropy::on_stream_open(NodeId from, StreamOpenMessage message,
                                                          Until until) {
  const auto found = tablets_.find(message.tablet);
  if (found == tablets_.end() || found->second->held.epoch != message.epoch ||
      !index_of(*found->second, from)) {
    co_return Error(Errc::refused, "no replica of tablet {} for this node in epoch {}",
                    message.tablet, message.epoch);
  }
  auto reply = co_await source_.open(from, message.tablet, std::move(until));
  if (reply) ++counts_.streams_served;
  co_return reply;
}

Task<Result<StreamPageReply>> AntiEntropy::on_stream_page(NodeId from, StreamPageMessage message,
                                                          Until /*until*/) {
  const storage::TableId table = message.table;
  auto page = source_.page(from, std::move(message));
  auto reply = co_await runtime::in_background(runtime_, std::move(page));
  if (reply.failed_with(Errc::corrupt)) replica_.engine().suspect(table);
  if (reply) {
    for (const StreamedEntry& each : reply->entries) {
      counts_.stream_bytes_served += each.key.size() + each.entry.size();
    }
  }
  co_return reply;
}

}  // namespace helenus::replication
