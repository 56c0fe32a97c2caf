#include "replication/cluster/replicated_writer.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include <absl/container/inlined_vector.h>
#include <fmt/format.h>

#include "causality/codec.h"
#include "replication/cluster/gather.h"
#include "replication/cluster/stale_pause.h"
#include "runtime/event.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using causality::Delta;
using model::Consistency;
using runtime::Task;
using runtime::Until;

namespace {

// Whether it deletes anything, beside what it writes.
bool deletes(const causality::Mutation& mutation) {
  return !mutation.deleted_ranges.empty() ||
         std::ranges::any_of(mutation.cells, [](const causality::CellChange& cell) {
           return cell.kind == causality::VersionKind::deletion;
         });
}

bool reads_several(Consistency level) {
  switch (level) {
    case Consistency::two:
    case Consistency::three:
    case Consistency::quorum:
    case Consistency::all:
    case Consistency::local_quorum:
    case Consistency::each_quorum:
      return true;
    default:
      return false;
  }
}

std::size_t size_of(const ApplyMessage& message) {
  std::size_t bytes = 256 + message.partition.size();
  for (const causality::CellChange& cell : message.delta.cells) {
    bytes += sizeof(cell) + cell.row.size() + cell.value.size();
  }
  return bytes + message.delta.deleted_ranges.size() * sizeof(causality::RowRange);
}

}  // namespace

// What a write waits for; lives as long as something is being sent.
struct ReplicatedWriter::Acks {
  Acks(runtime::Runtime& runtime, ReplicaMapPtr keeps_rule, const LevelRule& rule,
       const std::vector<CountedReplica>& places)
      : map(std::move(keeps_rule)), tally(rule, places), decided(runtime) {}
  void acknowledge(CountedReplica place) {
    tally.acknowledge(place);
    tell();
  }
  void fail(CountedReplica place) {
    tally.fail(place);
    tell();
  }
  // One that answered with an error, and will not have it by this request.
  void refuse(CountedReplica place) {
    ++refusals;
    fail(place);
  }
  void tell() {
    if (tally.met() || tally.is_impossible()) decided.set();
  }
  // The replicas are others now: what they acknowledge is another count.
  void overtake() {
    is_overtaken = true;
    decided.set();
  }

  const ReplicaMapPtr map;
  AckTally tally;
  std::uint32_t refusals = 0;
  bool is_overtaken = false;
  absl::InlinedVector<model::NodeId, 4> acknowledged;  // others, in the order of their answers
  runtime::Event decided;
};

struct ReplicatedWriter::Sending {
  TabletKey tablet;
  Consistency level;
  storage::TableId table;
  base::Bytes partition;
  const Delta& delta;
};

namespace {

// Nothing was heard of it, or not in time: it may have it, or will.
bool is_in_doubt(Errc code) {
  switch (code) {
    case Errc::timeout:
    case Errc::cancelled:
    case Errc::connection_lost:
    case Errc::unavailable:
    case Errc::closed:
      return true;
    default:
      return false;
  }
}

std::vector<std::string> notes_of(const Delta& delta, bool has_united,
                                  std::span<const model::NodeId> acknowledged,
                                  const ClusterLink& link) {
  std::vector<std::string> notes;
  if (has_united) notes.emplace_back("Learned what replicas have seen");
  notes.push_back(
      fmt::format("{} minted {} and made it durable", link.name_of(link.self()), delta.dot));
  for (const model::NodeId node : acknowledged) {
    notes.push_back(fmt::format("{} has it", link.name_of(node)));
  }
  return notes;
}

}  // namespace

Task<Result<ReplicatedWriter::Written>> ReplicatedWriter::write(HeldTablet held, Consistency level,
                                                                PartitionWrite write, Until until,
                                                                bool tells_notes) {
  const ReplicaMapPtr map = link_.map();
  const KeyspaceMap* keyspace = map == nullptr ? nullptr : map->find(held.key.keyspace);
  if (keyspace == nullptr) co_return Error(Errc::not_found, "the keyspace is gone");
  const PlacedTablet& tablet = keyspace->tablet(held.key.index);
  if (tablet.epoch != held.epoch || tablet.find(link_.self()) == nullptr) {
    co_return Error(kStale, "tablet {} is in epoch {}", held.info.id, tablet.epoch);
  }
  const LevelRule& rule = keyspace->rule(tablet, level);
  RequestUnderWay request(link_.requests(), "write", keyspace->name(), level,
                          link_.runtime().clock.now());
  WriteReply reply;
  const auto candidates = in_order_of_asking(tablet, link_);
  CO_TRY_VOID(check_enough(candidates, rule, &reply.report));

  const bool unites = write.unites_clocks || deletes(write.mutation);
  const bool has_past = write.mutation.context.has_value() || write.explicit_timestamp;
  if (unites && !has_past && reads_several(level) && !bugs_.deletes_by_own_clock) {
    request.enter("asks what replicas have seen");
    CO_TRY_VOID(co_await unite_clocks(held, tablet, rule, write, until));
  }
  const storage::TableId table = write.table;
  const base::Bytes partition = write.partition;
  request.enter("makes it durable here");
  CO_TRY(auto delta, co_await replica_.write(held.info.id, std::move(write), until, held.epoch));
  if (!delta) {
    // Whatever is newer is known here; others have it, or get it without this request.
    reply.minted = false;
    reply.met = true;
    co_return Written{.reply = reply, .delta = std::nullopt};
  }
  const Sending sending{
      .tablet = held.key, .level = level, .table = table, .partition = partition, .delta = *delta};
  AcksPtr acks = co_await bring(sending, request, until);
  while (acks != nullptr && acks->is_overtaken && !acks->tally.met()) {
    acks = co_await bring(sending, request, until);
  }
  request.enter("ends");
  if (acks == nullptr) co_return Error(Errc::timeout, "it is here, and the keyspace is gone");
  reply.met = acks->tally.met();
  reply.report = {.required = acks->tally.required(),
                  .received = acks->tally.acknowledged(),
                  // Where others may still have it in time it is late, not failed.
                  .failed = acks->tally.is_impossible() ? acks->refusals : 0};
  std::vector<std::string> notes;
  if (tells_notes) notes = notes_of(*delta, unites, acks->acknowledged, link_);
  co_return Written{.reply = reply, .delta = std::move(delta), .notes = std::move(notes)};
}

Task<ReplicatedWriter::AcksPtr> ReplicatedWriter::bring(const Sending& sending,
                                                        RequestUnderWay& request, Until until) {
  const ReplicaMapPtr map = link_.map();
  const KeyspaceMap* keyspace = map->find(sending.tablet.keyspace);
  if (keyspace == nullptr) co_return nullptr;
  const PlacedTablet& tablet = keyspace->tablet(sending.tablet.index);
  auto message = std::make_shared<ApplyMessage>();
  message->epoch = tablet.epoch;
  message->table = sending.table;
  message->partition = sending.partition;
  message->delta = sending.delta;
  const std::size_t bytes = size_of(*message);
  const rpc::Payload payload = link_.payload_of(std::shared_ptr<const ApplyMessage>(message));

  std::vector<CountedReplica> places;
  for (const PlacedReplica& member : tablet.members) places.push_back(member.counted());
  auto acks =
      std::make_shared<Acks>(link_.runtime(), map, keyspace->rule(tablet, sending.level), places);
  const Until sent_until{.deadline = until.deadline, .stop = {}};
  const auto reach = [&](const PlacedReplica& replica, bool counts) {
    if (replica.node == link_.self() && counts && !replica.in_doubt) {
      acks->acknowledge(replica.counted());
      return;
    }
    const bool sending_it = replica.node != link_.self() && deltas_ == Deltas::sent &&
                            !replica.in_doubt && link_.is_up(replica.node) &&
                            bytes_sending_ + bytes <= kBytesSendingMax &&
                            sends_.try_spawn(send(acks, sending.tablet, replica, counts,
                                                  message->epoch, payload, bytes, sent_until));
    if (sending_it) bytes_sending_ += bytes;
    ++(sending_it ? link_.statistics().deltas_sent : link_.statistics().deltas_not_sent);
    if (!sending_it && counts) acks->fail(replica.counted());
  };
  for (const PlacedReplica& member : tablet.members) reach(member, true);
  for (const PlacedReplica& pending : tablet.pending) reach(pending, false);
  acks->tell();
  request.enter("waits for replicas", &acks->tally);
  std::ignore = co_await acks->decided.wait(std::move(until));
  // Nobody else keeps what is counted here.
  request.enter("was sent");
  co_return acks;
}

namespace {

// Whether the tablet is in another epoch here by now.
bool has_moved_on(const ClusterLink& link, const TabletKey& key, causality::Epoch epoch) {
  const KeyspaceMap* keyspace = link.map()->find(key.keyspace);
  return keyspace == nullptr || keyspace->tablet(key.index).epoch != epoch;
}

}  // namespace

Task<void> ReplicatedWriter::send(AcksPtr acks, TabletKey tablet, PlacedReplica to, bool counts,
                                  causality::Epoch epoch, rpc::Payload message, std::size_t bytes,
                                  Until until) {
  auto applied = co_await link_.call(to.node, kApplyMethod, message, until);
  // One of the two is ahead of the other, for a moment.
  StalePause pause(link_.runtime());
  while (!applied && is_stale(applied.error())) {
    if (has_moved_on(link_, tablet, epoch)) {
      acks->overtake();
      break;
    }
    const auto waited = co_await pause.wait(applied.error(), until);
    if (!waited) break;
    if (has_moved_on(link_, tablet, epoch)) continue;
    applied = co_await link_.call(to.node, kApplyMethod, message, until);
  }
  bytes_sending_ -= bytes;
  if (!applied) ++link_.statistics().deltas_lost;
  if (!counts) co_return;
  if (applied) {
    acks->acknowledged.push_back(to.node);
    acks->acknowledge(to.counted());
  } else if (is_in_doubt(applied.error().code()) || is_stale(applied.error())) {
    acks->fail(to.counted());
  } else {
    acks->refuse(to.counted());
  }
}

Task<Result<RepairReply>> ReplicatedWriter::repair(HeldTablet held, const RepairMessage& message,
                                                   Until until) {
  // What a replica lacks that was away for long comes by anti-entropy, in its own time.
  constexpr std::size_t kPagesMax = 4;
  constexpr std::size_t kPageBytes = std::size_t{256} << 10;
  RepairReply reply;
  causality::Clock clock = message.clock;
  for (std::size_t page = 0; page < kPagesMax; ++page) {
    CO_TRY(const auto missing,
           co_await replica_.engine().missing_mutations(held.info.id, clock, kPageBytes, until));
    for (const storage::LoggedMutation& mutation : missing.mutations) {
      clock.add(mutation.dot);
      if (mutation.table != message.table || mutation.partition != message.partition) continue;
      auto apply = std::make_shared<ApplyMessage>();
      apply->epoch = held.epoch;
      apply->table = message.table;
      apply->partition = message.partition;
      CO_TRY(apply->delta, causality::decode_delta(mutation.delta));
      if (bugs_.repairs_bring_parts && !apply->delta.cells.empty()) apply->delta.cells.resize(1);
      CO_TRY_VOID(co_await link_.call(
          message.to, kApplyMethod, std::shared_ptr<const ApplyMessage>(std::move(apply)), until));
      ++reply.applied;
    }
    if (missing.complete) co_return reply;
    clock = causality::join(clock, missing.covered);
  }
  reply.complete = false;
  co_return reply;
}

namespace {

Task<Result<ClockReply>> own_clock(Replica& replica, storage::TabletId tablet,
                                   std::shared_ptr<const ClockMessage> message) {
  co_return co_await replica.clock_of(tablet, message->table, message->partition);
}

}  // namespace

Task<Result<void>> ReplicatedWriter::unite_clocks(const HeldTablet& held,
                                                  const PlacedTablet& tablet, const LevelRule& rule,
                                                  PartitionWrite& write, Until until) {
  const auto message = std::make_shared<const ClockMessage>(
      ClockMessage{.epoch = tablet.epoch, .table = write.table, .partition = write.partition});
  // Minting takes the own clock only where it takes it beside a context.
  const auto ask = [this, message, until,
                    tablet_here = held.info.id](model::NodeId node) -> Task<Result<ClockReply>> {
    if (node != link_.self()) return link_.call(node, kClockMethod, message, until);
    return own_clock(replica_, tablet_here, message);
  };
  CO_TRY(const auto answers,
         co_await gather<ClockReply>(link_, sends_, tablet, rule, ask, {}, until, nullptr));
  causality::Context context{.epoch = tablet.epoch, .floor = causality::kTimestampMin, .dots = {}};
  for (const Gathered<ClockReply>& answer : answers) {
    context.dots = causality::join(context.dots, answer.answer.clock);
    context.floor = std::max(context.floor, answer.answer.floor);
  }
  write.mutation.context = std::move(context);
  co_return {};
}

}  // namespace helenus::replication
