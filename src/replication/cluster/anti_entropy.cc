#include "replication/cluster/anti_entropy.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "causality/codec.h"
#include "runtime/sleep.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using causality::Clock;
using model::NodeId;
using runtime::Duration;
using runtime::MonotonicTime;
using runtime::Task;
using runtime::Until;
using storage::TabletId;

namespace {

// What a clock takes in a message, about.
std::size_t announced_bytes(const Clock& clock) {
  constexpr std::size_t kHeadBytes = 32;
  constexpr std::size_t kRangeBytes = 8;
  std::size_t bytes = kHeadBytes + clock.closed().size() * kRangeBytes;
  for (const Clock::Entry& entry : clock.entries()) {
    bytes += (2 + entry.counters.ranges().size()) * kRangeBytes;
  }
  return bytes;
}

std::uint64_t count_dots(const Clock& clock) {
  std::uint64_t count = 0;
  for (const causality::DotRange& range : causality::missing(Clock(), clock).dots) {
    count += range.last - range.first + 1;
  }
  return count;
}

Duration longer(Duration pause, const AntiEntropyOptions& options) {
  return std::clamp(pause * 2, options.pause_min, options.pause_max);
}

}  // namespace

void AntiEntropyReport::add(const AntiEntropyReport& other) {
  for (const Peer& theirs : other.peers) {
    const auto at = std::ranges::lower_bound(peers, theirs.node, {}, &Peer::node);
    if (at == peers.end() || at->node != theirs.node) {
      peers.insert(at, theirs);
      continue;
    }
    at->tablets += theirs.tablets;
    at->lacking_there += theirs.lacking_there;
    at->lacking_here += theirs.lacking_here;
    at->clocks_to_tell += theirs.clocks_to_tell;
  }
  announcements += other.announcements;
  announcements_failed += other.announcements_failed;
  clocks_announced += other.clocks_announced;
  clocks_refused += other.clocks_refused;
  clocks_taken += other.clocks_taken;
  clocks_ignored += other.clocks_ignored;
  pulls += other.pulls;
  pulls_failed += other.pulls_failed;
  pages += other.pages;
  mutations_pulled += other.mutations_pulled;
  bytes_pulled += other.bytes_pulled;
  pages_served += other.pages_served;
  bytes_served += other.bytes_served;
  streams += other.streams;
  streams_failed += other.streams_failed;
  streams_refused += other.streams_refused;
  entries_streamed += other.entries_streamed;
  bytes_streamed += other.bytes_streamed;
  streams_served += other.streams_served;
  stream_bytes_served += other.stream_bytes_served;
  dots_covered += other.dots_covered;
  mutations_put_off += other.mutations_put_off;
  mutations_refused += other.mutations_refused;
  withheld += other.withheld;
  tablets_behind_themselves += other.tablets_behind_themselves;
  tablets += other.tablets;
  tablets_behind += other.tablets_behind;
}

AntiEntropy::Tablet::Tablet(const HeldTablet& its, std::uint64_t number, PlantedBugs bugs)
    : held(its),
      life(number),
      sync(its.epoch, its.peers, bugs.watermarks_without_covering),
      peers(its.peers.size()) {}

AntiEntropy::AntiEntropy(runtime::Runtime& runtime, ClusterLink& link, Replica& replica,
                         AntiEntropyOptions options)
    : runtime_(runtime),
      link_(link),
      replica_(replica),
      options_(options),
      log_(runtime.logger("replication.anti_entropy")),
      source_(runtime, replica.engine()),
      tasks_(runtime) {}

// ---- Metadata ----

void AntiEntropy::take(ReplicaMapPtr map) {
  map_ = std::move(map);
  for (const auto& [id, tablet] : tablets_) {
    if (!std::exchange(tablet->waits_for_metadata, false)) continue;
    tablet->pulled_not_before = {};
    tablet->avoided.reset();
  }
}

void AntiEntropy::take(const HeldTabletsPtr& held) {
  held_ = held;
  std::set<TabletId> kept;
  for (const HeldTablet& each : held->all()) {
    if (each.core != runtime_.cores.here()) continue;
    if (each.peers.empty()) {
      replica_.engine().set_watermarks(each.info.id, {});
      tablets_.erase(each.info.id);
      kept.insert(each.info.id);
      continue;
    }
    kept.insert(each.info.id);
    const auto known = tablets_.find(each.info.id);
    if (known == tablets_.end() || known->second->held.epoch != each.epoch ||
        known->second->held.peers != each.peers) {
      add(each);
    } else {
      known->second->held = each;
    }
  }
  for (auto at = tablets_.begin(); at != tablets_.end();) {
    if (kept.contains(at->first)) {
      ++at;
      continue;
    }
    replica_.engine().set_watermarks(at->first, {std::nullopt});
    at = tablets_.erase(at);
  }
  const auto gone = [this](TabletId id) { return !tablets_.contains(id); };
  std::erase_if(behind_, gone);
  std::erase_if(moved_, gone);
  note_catching_up();
  std::set<NodeId> nodes;
  for (const auto& [id, tablet] : tablets_) {
    nodes.insert(tablet->sync.peers().begin(), tablet->sync.peers().end());
  }
  std::erase_if(peers_, [&](const auto& each) { return !nodes.contains(each.first); });
}

void AntiEntropy::add(const HeldTablet& held) {
  auto& tablet = tablets_[held.info.id];
  tablet = std::make_unique<Tablet>(held, runtime_.random.next(), options_.bugs);
  behind_.erase(held.info.id);
  // What was stable among other replicas need not be among these.
  replica_.engine().set_watermarks(held.info.id, tablet->sync.watermarks());
  refresh(*tablet);
  tell_all(*tablet);
}

// ---- What all goes by ----

AntiEntropy::Tablet* AntiEntropy::find(TabletId id, std::uint64_t life) {
  const auto found = tablets_.find(id);
  return found == tablets_.end() || found->second->life != life ? nullptr : found->second.get();
}

std::optional<std::size_t> AntiEntropy::index_of(const Tablet& tablet, NodeId peer) {
  const auto peers = tablet.sync.peers();
  const auto found = std::ranges::find(peers, peer);
  if (found == peers.end()) return std::nullopt;
  return static_cast<std::size_t>(found - peers.begin());
}

void AntiEntropy::refresh(Tablet& tablet) {
  const auto clock = replica_.engine().synced_clock(tablet.held.info.id);
  // One that was made anew begins with the next metadata.
  if (!clock || !clock->covers(tablet.sync.clock())) return;
  const std::uint64_t number = tablet.sync.clock_number();
  if (tablet.sync.on_clock(*clock)) moved_.insert(tablet.held.info.id);
  if (tablet.sync.clock_number() != number) tell_all(tablet);
}

void AntiEntropy::tell_all(const Tablet& tablet) {
  for (const NodeId peer : tablet.sync.peers()) peers_[peer].to_tell.insert(tablet.held.info.id);
}

void AntiEntropy::note_life(Tablet& tablet, std::size_t peer, std::uint64_t life) {
  std::optional<std::uint64_t>& known = tablet.peers[peer].life;
  if (known == life) return;
  const bool is_another = known.has_value();
  known = life;
  if (!is_another) return;
  const NodeId node = tablet.sync.peers()[peer];
  tablet.sync.on_reconnect(node);
  tablet.peers[peer].told_not_before = {};
  peers_[node].to_tell.insert(tablet.held.info.id);
}

void AntiEntropy::set_watermarks() {
  for (const TabletId id : moved_) {
    replica_.engine().set_watermarks(id, tablets_.at(id)->sync.watermarks());
  }
  moved_.clear();
}

void AntiEntropy::start() {
  tasks_.spawn(look_loop());
}

Task<void> AntiEntropy::stop() {
  stop_.request_stop();
  source_.close();
  co_await tasks_.join();
}

std::size_t AntiEntropy::begin_round(std::string_view keyspace) {
  std::size_t tablets = 0;
  for (const auto& [id, tablet] : tablets_) {
    if (!keyspace.empty() && tablet->held.keyspace->name() != keyspace) continue;
    ++tablets;
    tablet->pause = {};
    tablet->pulled_not_before = {};
    tablet->avoided.reset();
    for (PeerReplica& peer : tablet->peers) peer.told_not_before = {};
    for (const NodeId peer : tablet->sync.peers()) tablet->sync.on_reconnect(peer);
    tell_all(*tablet);
  }
  for (auto& [node, peer] : peers_) {
    peer.pause = {};
    peer.told_not_before = {};
  }
  return tablets;
}

Task<void> AntiEntropy::look_loop() {
  while (co_await runtime::sleep_for(runtime_, options_.interval, stop_.token())) {
    for (const TabletId id : replica_.engine().take_changed_clocks()) {
      if (const auto tablet = tablets_.find(id); tablet != tablets_.end()) refresh(*tablet->second);
    }
    set_watermarks();
    source_.expire();
    start_catch_up_pulls();
    start_pulls();
    start_telling();
  }
}

// ---- Announcing ----

void AntiEntropy::start_telling() {
  const MonotonicTime now = runtime_.clock.now();
  for (auto& [node, peer] : peers_) {
    if (peer.to_tell.empty() || peer.telling || now < peer.told_not_before || !link_.is_up(node)) {
      continue;
    }
    peer.telling = true;
    tasks_.spawn(tell(node));
  }
}

std::shared_ptr<const AnnounceMessage> AntiEntropy::next_announcement(NodeId to, Peer& peer,
                                                                      std::vector<Told>& told,
                                                                      bool& is_full) {
  auto message = std::make_shared<AnnounceMessage>();
  const MonotonicTime now = runtime_.clock.now();
  message->wall = causality::WallTime{
      std::chrono::floor<std::chrono::seconds>(runtime_.clock.wall_now().since_origin()).count()};
  std::size_t bytes = 0;
  std::erase_if(peer.to_tell, [&](TabletId id) {
    const auto tablet = tablets_.find(id);
    return tablet == tablets_.end() || !tablet->second->sync.must_tell(to);
  });
  for (const TabletId id : peer.to_tell) {
    const Tablet& tablet = *tablets_.at(id);
    if (is_silent(tablet)) continue;
    if (now < tablet.peers[*index_of(tablet, to)].told_not_before) continue;
    is_full = message->clocks.size() == AnnounceMessage::kClocksMax ||
              bytes >= options_.announced_bytes_max;
    if (is_full) break;
    message->clocks.push_back({.tablet = id,
                               .epoch = tablet.held.epoch,
                               .life = tablet.life,
                               .clock = tablet.sync.clock()});
    told.push_back({.tablet = id, .clock_number = tablet.sync.clock_number()});
    bytes += announced_bytes(tablet.sync.clock());
  }
  return message;
}

Task<void> AntiEntropy::tell(NodeId to) {
  bool more = true;
  while (more) more = co_await tell_once(to);
  if (const auto peer = peers_.find(to); peer != peers_.end()) peer->second.telling = false;
}

Task<bool> AntiEntropy::tell_once(NodeId to) {
  const auto before = peers_.find(to);
  if (before == peers_.end()) co_return false;
  std::vector<Told> told;
  bool is_full = false;
  const auto message = next_announcement(to, before->second, told, is_full);
  if (told.empty()) co_return false;
  ++counts_.announcements;
  counts_.clocks_announced += told.size();
  auto reply =
      co_await link_.call(to, kAnnounceMethod, message,
                          Until::after(runtime_, options_.announce_timeout, stop_.token()));
  if (reply && reply->known.size() != told.size()) {
    reply =
        Error(Errc::corrupt, "an answer about {} of {} clocks", reply->known.size(), told.size());
  }
  const auto peer = peers_.find(to);
  if (peer == peers_.end()) co_return false;
  if (!reply) {
    ++counts_.announcements_failed;
    peer->second.pause = longer(peer->second.pause, options_);
    peer->second.told_not_before = runtime_.clock.now() + peer->second.pause;
    co_return false;
  }
  peer->second.pause = {};
  on_told(to, peer->second, *message, told, *reply);
  co_return is_full && !stop_.token().stop_requested();
}

void AntiEntropy::on_told(NodeId to, Peer& peer, const AnnounceMessage& message,
                          const std::vector<Told>& told, const AnnounceReply& reply) {
  for (std::size_t i = 0; i < told.size(); ++i) {
    Tablet* tablet = find(told[i].tablet, message.clocks[i].life);
    if (tablet == nullptr) continue;
    const std::size_t index = *index_of(*tablet, to);
    if (!reply.known[i]) {
      ++counts_.clocks_refused;
      tablet->peers[index].told_not_before = runtime_.clock.now() + options_.pause_refused;
      continue;
    }
    // An answer of another life than the one that was heard of last may be the one that was before
    // it: it is told once more.
    const auto known_life = tablet->peers[index].life;
    note_life(*tablet, index, *reply.known[i]);
    if (known_life && known_life != reply.known[i]) continue;
    tablet->sync.on_known(to, told[i].clock_number);
    if (!tablet->sync.must_tell(to)) peer.to_tell.erase(told[i].tablet);
  }
}

AnnounceReply AntiEntropy::on_announce(NodeId from, const AnnounceMessage& message) {
  AnnounceReply reply;
  for (const AnnouncedClock& each : message.clocks) {
    const auto found = tablets_.find(each.tablet);
    const bool is_held = found != tablets_.end() && found->second->held.epoch == each.epoch;
    const auto index = is_held ? index_of(*found->second, from) : std::nullopt;
    if (!index) {
      ++counts_.clocks_ignored;
      reply.known.push_back(std::nullopt);
      continue;
    }
    Tablet& tablet = *found->second;
    ++counts_.clocks_taken;
    note_life(tablet, *index, each.life);
    const std::uint64_t number = tablet.sync.watermarks_number();
    tablet.sync.on_announcement(from, each.clock, message.wall);
    if (tablet.sync.watermarks_number() != number) moved_.insert(each.tablet);
    if (tablet.sync.is_behind()) behind_.insert(each.tablet);
    const auto staged = replica_.engine().staged_clock(each.tablet);
    const causality::ActorId own = tablet.held.info.actor;
    if (staged && each.clock.max_of(own) > staged->max_of(own) && !tablet.behind_itself) {
      tablet.behind_itself = true;
      replica_.stop_serving(each.tablet);
      log_.error("a peer has seen writes of this replica that it has not: it has lost them",
                 base::kv("tablet", each.tablet), base::kv("peer", from));
    }
    reply.known.push_back(tablet.life);
  }
  return reply;
}

// ---- Pulling ----

bool AntiEntropy::must_pull(Tablet& tablet) {
  const auto staged = replica_.engine().staged_clock(tablet.held.info.id);
  if (!staged) return false;
  tablet.sync.on_staged(*staged);
  const bool is_due = !staged->covers(tablet.due);
  tablet.due = tablet.sync.announced();
  return is_due && !tablet.pulling && runtime_.clock.now() >= tablet.pulled_not_before;
}

void AntiEntropy::start_pulls() {
  std::erase_if(behind_, [&](TabletId id) {
    Tablet& tablet = *tablets_.at(id);
    if (tablet.sync.is_behind()) return false;
    tablet.due = {};
    tablet.withheld = {};
    return true;
  });
  // Who was not among the first has its turn the next time.
  std::vector<TabletId> turns(behind_.upper_bound(pulled_last_), behind_.end());
  turns.insert(turns.end(), behind_.begin(), behind_.upper_bound(pulled_last_));
  for (const TabletId id : turns) {
    Tablet& tablet = *tablets_.at(id);
    if (is_silent(tablet) || !must_pull(tablet) || pulling_ >= options_.pulls_max) continue;
    const auto from =
        tablet.sync.next_pull(tablet.avoided, [this](NodeId node) { return link_.is_up(node); });
    if (!from) continue;
    tablet.pulling = true;
    ++pulling_;
    ++counts_.pulls;
    pulled_last_ = id;
    tasks_.spawn(pull(id, tablet.life, *from), runtime::Priority::background);
  }
}

Task<void> AntiEntropy::pull(TabletId id, std::uint64_t life, NodeId from) {
  auto end = co_await pull_pages(id, life, from);
  if (must_stream(id, life, end)) end = co_await stream(id, life, from);
  --pulling_;
  finish_pull(id, life, from, end);
}

void AntiEntropy::finish_pull(TabletId id, std::uint64_t life, NodeId from,
                              const Result<PullEnd>& end) {
  if (!end) {
    ++counts_.pulls_failed;
    log_.debug("a pull failed", base::kv("tablet", id), base::kv("peer", from),
               base::kv("error", end.error()));
  }
  Tablet* tablet = find(id, life);
  if (tablet == nullptr) return;
  tablet->pulling = false;
  if (end && *end == PullEnd::complete) note_pulled(*tablet, from);
  if (end && *end == PullEnd::postponed) {
    tablet->pulled_not_before = runtime_.clock.now() + options_.pause_min;
  } else if (end && *end != PullEnd::stuck) {
    tablet->pause = {};
    tablet->pulled_not_before = {};
    tablet->avoided.reset();
  } else {
    tablet->pause = longer(tablet->pause, options_);
    tablet->pulled_not_before = runtime_.clock.now() + tablet->pause;
    tablet->avoided = from;
  }
}

Task<Result<AntiEntropy::PullEnd>> AntiEntropy::pull_pages(TabletId id, std::uint64_t life,
                                                           NodeId from) {
  // What this peer gave and could not be taken: not asked for again in this turn.
  Clock left;
  for (std::size_t page = 0; page < options_.pages_max; ++page) {
    const Tablet* tablet = find(id, life);
    if (tablet == nullptr) co_return PullEnd::cut;
    CO_TRY(const Clock here, replica_.engine().staged_clock(id));
    auto message = std::make_shared<PullMessage>();
    message->tablet = id;
    message->epoch = tablet->held.epoch;
    message->clock = causality::join(here, left);
    message->bytes_max = std::min(options_.pulled_bytes_max, PullMessage::kBytesMax);
    const std::shared_ptr<const PullMessage> asked = std::move(message);
    const Until until = Until::after(runtime_, options_.pull_timeout, stop_.token());
    CO_TRY(auto reply, co_await link_.call(from, kPullMethod, asked, until));
    if (find(id, life) == nullptr) co_return PullEnd::cut;
    ++counts_.pages;
    const bool complete = reply.complete;
    note_withheld(*find(id, life), from, reply.withheld);
    CO_TRY_VOID(co_await take_page(id, std::move(reply), left, until));
    Tablet* now = find(id, life);
    if (now == nullptr) co_return PullEnd::cut;
    refresh(*now);
    CO_TRY(const Clock taken, replica_.engine().staged_clock(id));
    const bool has_grown = !asked->clock.covers(causality::join(taken, left));
    if (complete) {
      now->sync.on_staged(taken);
      const bool gave_all =
          left.empty() && now->withheld.empty() && (has_grown || now->sync.missing_here(from) == 0);
      co_return gave_all ? PullEnd::complete : PullEnd::stuck;
    }
    if (!has_grown) co_return PullEnd::stuck;
  }
  co_return PullEnd::cut;
}

Task<Result<void>> AntiEntropy::take_page(TabletId id, PullReply reply, Clock& left, Until until) {
  for (const PulledMutation& mutation : reply.mutations) {
    counts_.bytes_pulled += mutation.partition.size() + mutation.delta.size();
  }
  CO_TRY(const auto done, co_await replica_.apply(id, std::move(reply.mutations), until));
  counts_.mutations_pulled += done.applied;
  Clock covered = std::move(reply.covered);
  for (const auto& [table, dot] : done.without_table) {
    const bool was_given =
        options_.bugs.unknown_is_dropped ||
        (map_ != nullptr && metadata::StorageId{table.value()} < map_->next_storage());
    if (was_given) {
      covered.add(dot);
      continue;
    }
    left.add(dot);
    ++counts_.mutations_put_off;
    if (const auto tablet = tablets_.find(id); tablet != tablets_.end()) {
      tablet->second->waits_for_metadata = true;
    }
  }
  left = causality::join(left, done.refused);
  if (done.why_refused) {
    counts_.mutations_refused += count_dots(done.refused);
    log_.debug("mutations of a peer were refused", base::kv("tablet", id),
               base::kv("error", *done.why_refused));
  }
  CO_TRY(const Clock here, replica_.engine().staged_clock(id));
  covered = causality::subtract(covered, here);
  if (covered.empty()) co_return {};
  counts_.dots_covered += count_dots(covered);
  co_return co_await replica_.engine().cover(id, std::move(covered));
}

void AntiEntropy::note_withheld(Tablet& tablet, NodeId from, Clock withheld) {
  if (!withheld.empty() && tablet.withheld.empty()) {
    log_.warn("a peer cannot give all that a replica here lacks",
              base::kv("tablet", tablet.held.info.id), base::kv("peer", from),
              base::kv("writes", count_dots(withheld)));
  }
  tablet.withheld = std::move(withheld);
}

Task<Result<PullReply>> AntiEntropy::on_pull(NodeId from, PullMessage message, Until until) {
  const auto found = tablets_.find(message.tablet);
  if (found == tablets_.end() || found->second->held.epoch != message.epoch ||
      !index_of(*found->second, from) || is_silent(*found->second)) {
    co_return Error(Errc::refused, "no replica of tablet {} for this node in epoch {}",
                    message.tablet, message.epoch);
  }
  const std::uint64_t life = found->second->life;
  if (serving_ >= options_.pulls_served_max) {
    co_return Error(Errc::overloaded, "too many pulls are being answered");
  }
  ++serving_;
  const PlacedReplica* asking = placed(*found->second).find(from);
  Result<void> settled;
  if (asking != nullptr && (asking->in_doubt || placed(*found->second).is_joint)) {
    settled = co_await replica_.engine().durable_so_far(until);
  }
  const auto bytes_max =
      static_cast<std::size_t>(std::min(message.bytes_max, PullMessage::kBytesMax));
  auto missing = co_await replica_.engine().missing_mutations(
      message.tablet, std::move(message.clock), bytes_max, std::move(until));
  --serving_;
  CO_TRY_VOID(settled);
  CO_TRY_VOID(missing);
  if (find(message.tablet, life) == nullptr) {
    co_return Error(Errc::refused, "the replicas of tablet {} have changed", message.tablet);
  }
  ++counts_.pages_served;
  PullReply reply;
  reply.complete = missing->complete;
  reply.withheld = std::move(missing->withheld);
  reply.covered = std::move(missing->covered);
  for (storage::LoggedMutation& mutation : missing->mutations) {
    counts_.bytes_served += mutation.partition.size() + mutation.delta.size();
    reply.mutations.push_back({.table = mutation.table,
                               .partition = std::move(mutation.partition),
                               .delta = std::move(mutation.delta)});
  }
  co_return reply;
}

// ---- What is going on ----

AntiEntropyReport AntiEntropy::report() const {
  AntiEntropyReport report = counts_;
  report.tablets = tablets_.size();
  std::map<NodeId, AntiEntropyReport::Peer> peers;
  for (const auto& [id, tablet] : tablets_) {
    if (tablet->sync.is_behind()) ++report.tablets_behind;
    if (tablet->behind_itself) ++report.tablets_behind_themselves;
    report.withheld += count_dots(tablet->withheld);
    for (const NodeId node : tablet->sync.peers()) {
      AntiEntropyReport::Peer& peer = peers[node];
      peer.node = node;
      ++peer.tablets;
      peer.lacking_there += tablet->sync.missing_there(node);
      peer.lacking_here += tablet->sync.missing_here(node);
      if (tablet->sync.must_tell(node)) ++peer.clocks_to_tell;
    }
  }
  for (auto& [node, peer] : peers) report.peers.push_back(peer);
  return report;
}

}  // namespace helenus::replication
