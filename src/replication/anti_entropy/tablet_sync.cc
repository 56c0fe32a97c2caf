#include "replication/anti_entropy/tablet_sync.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::replication {

using causality::Clock;
using causality::Watermark;
using model::NodeId;

namespace {

// How many dots of `theirs` are not in `mine`; those of closed actors are no matter of pulls.
std::uint64_t count_missing(const Clock& mine, const Clock& theirs) {
  std::uint64_t count = 0;
  for (const causality::DotRange& range : causality::missing(mine, theirs).dots) {
    count += range.last - range.first + 1;
  }
  return count;
}

}  // namespace

TabletSync::TabletSync(causality::Epoch epoch, std::vector<NodeId> peers, bool takes_uncovered)
    : epoch_(epoch),
      takes_uncovered_(takes_uncovered),
      peers_(std::move(peers)),
      states_(peers_.size()) {}

const TabletSync::Peer* TabletSync::find(NodeId peer) const {
  const auto found = std::ranges::find(peers_, peer);
  return found == peers_.end() ? nullptr
                               : &states_[static_cast<std::size_t>(found - peers_.begin())];
}

TabletSync::Peer* TabletSync::find(NodeId peer) {
  return const_cast<Peer*>(std::as_const(*this).find(peer));
}

bool TabletSync::advance(Peer& peer) {
  if (peer.covered || !peer.announced) return false;
  peer.covered = clock_.covers(*peer.announced);
  if (!peer.covered && !takes_uncovered_) return false;
  Watermark next{.base = causality::base(*peer.announced), .wall = peer.wall};
  if (peer.watermark) {
    // An older announcement may have come late.
    next.base = causality::join(next.base, peer.watermark->base);
    next.wall = std::max(next.wall, peer.watermark->wall);
    if (next.base == peer.watermark->base && next.wall == peer.watermark->wall) return false;
  }
  peer.watermark = std::move(next);
  ++watermarks_number_;
  return true;
}

bool TabletSync::on_announcement(NodeId peer, Clock clock, causality::WallTime wall) {
  Peer* state = find(peer);
  if (state == nullptr) return false;
  // What it once told it still has: the union is a clock of its, too.
  state->announced =
      state->announced ? causality::join(*state->announced, clock) : std::move(clock);
  state->wall = std::max(state->wall, wall);
  state->covered = false;
  advance(*state);
  return true;
}

bool TabletSync::on_clock(const Clock& clock) {
  if (clock == clock_) return false;
  ASSERT_SLOW(clock.covers(clock_), "a durable clock has lost dots");
  clock_ = clock;
  staged_ = causality::join(staged_, clock);
  ++clock_number_;
  bool changed = false;
  for (Peer& peer : states_) changed |= advance(peer);
  return changed;
}

void TabletSync::on_staged(const Clock& clock) {
  staged_ = clock;
}

Clock TabletSync::announced() const {
  Clock all;
  for (const Peer& peer : states_) {
    if (peer.announced && !peer.covered) all = causality::join(all, *peer.announced);
  }
  return all;
}

bool TabletSync::is_behind() const {
  return std::ranges::any_of(states_,
                             [](const Peer& peer) { return peer.announced && !peer.covered; });
}

std::optional<NodeId> TabletSync::next_pull(std::optional<NodeId> avoid,
                                            const MayAsk& may_ask) const {
  std::optional<NodeId> best;
  std::uint64_t most = 0;
  for (const NodeId peer : peers_) {
    const std::uint64_t missing = missing_here(peer);
    if (missing == 0 || (may_ask && !may_ask(peer))) continue;
    const bool is_better = !best || best == avoid || (missing > most && peer != avoid);
    if (!is_better) continue;
    best = peer;
    most = missing;
  }
  return best;
}

std::uint64_t TabletSync::missing_here(NodeId peer) const {
  const Peer* state = find(peer);
  ASSERT(state != nullptr);
  if (state->covered || !state->announced) return 0;
  return count_missing(staged_, *state->announced);
}

std::uint64_t TabletSync::missing_there(NodeId peer) const {
  const Peer* state = find(peer);
  ASSERT(state != nullptr);
  return count_missing(state->announced.value_or(Clock()), clock_);
}

bool TabletSync::has_told_of(NodeId peer, const Clock& dots) const {
  const Peer* state = find(peer);
  ASSERT(state != nullptr);
  return state->announced && state->announced->covers(dots);
}

bool TabletSync::must_tell(NodeId peer) const {
  const Peer* state = find(peer);
  return state != nullptr && state->known_number < clock_number_;
}

void TabletSync::on_known(NodeId peer, std::uint64_t clock_number) {
  Peer* state = find(peer);
  if (state == nullptr || clock_number > clock_number_) return;
  state->known_number = std::max(state->known_number, clock_number);
}

void TabletSync::on_reconnect(NodeId peer) {
  if (Peer* state = find(peer); state != nullptr) state->known_number = 0;
}

std::vector<std::optional<Watermark>> TabletSync::watermarks() const {
  std::vector<std::optional<Watermark>> all;
  all.reserve(states_.size());
  for (const Peer& peer : states_) all.push_back(peer.watermark);
  return all;
}

}  // namespace helenus::replication
