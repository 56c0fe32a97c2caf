#include "replication/cluster/replicated_reader.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "replication/cluster/gather.h"
#include "replication/cluster/stale_pause.h"
#include "replication/merge/answer_digest.h"
#include "replication/merge/answer_merge.h"
#include "runtime/sleep.h"

namespace helenus::replication {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using model::NodeId;
using runtime::Task;
using runtime::Until;
using storage::RowRead;

namespace {

constexpr runtime::Duration kProbeTimeout = std::chrono::seconds(1);
constexpr int kRepairAttempts = 4;
constexpr runtime::Duration kRepairPause = std::chrono::milliseconds(25);

template <class Answers>
void count_read(RequestStatistics& statistics, model::Consistency level, const Answers& gathered) {
  ++statistics.reads[static_cast<std::size_t>(level)];
  if (!gathered) statistics.count_error(level, gathered.error().code());
}

}  // namespace

Task<Result<ReadReply>> ReplicatedReader::ask(model::NodeId node,
                                              std::shared_ptr<const ReadMessage> message,
                                              Until until) {
  if (node == link_.self()) return local_.read(std::move(message), std::move(until));
  return link_.call(node, kReadMethod, std::move(message), std::move(until));
}

namespace {

// Makes a question to one replica of the whole one and the one for a digest, in the order in which
// they are asked.
template <class Message>
class Questions {
 public:
  // `needed`: how many answers the level needs.
  Questions(std::shared_ptr<const Message> whole, bool takes_digests, std::uint32_t needed)
      : whole_(std::move(whole)), needed_(needed) {
    if (!takes_digests || needed < 2) return;
    auto in_short = std::make_shared<Message>(*whole_);
    in_short->wants_digest = true;
    in_short_ = std::move(in_short);
  }

  bool asks_for_digests() const { return in_short_ != nullptr; }
  const std::shared_ptr<const Message>& next() {
    const std::uint32_t number = asked_++;
    return in_short_ != nullptr && number > 0 && number < needed_ ? in_short_ : whole_;
  }

 private:
  std::shared_ptr<const Message> whole_;
  std::shared_ptr<const Message> in_short_;
  std::uint32_t needed_;
  std::uint32_t asked_ = 0;
};

// A whole answer if there is one and all others show the same; none otherwise. `digest_of` makes
// the digest of a whole one.
template <class Answer, class DigestOf>
Answer* agreed(std::vector<Gathered<Answer>>& answers, const DigestOf& digest_of) {
  Answer* whole = nullptr;
  std::optional<base::Hash128> common;
  for (auto& [from, answer] : answers) {
    const auto digest = answer.digest ? answer.digest : digest_of(answer);
    if (!digest || (common && *common != *digest)) return nullptr;
    common = digest;
    if (!answer.digest) whole = &answer;
  }
  return whole;
}

template <class Answer>
bool has_digests(const std::vector<Gathered<Answer>>& answers) {
  return std::ranges::any_of(answers,
                             [](const auto& one) { return one.answer.digest.has_value(); });
}

}  // namespace

Task<Result<std::vector<RowRead>>> ReplicatedReader::read(storage::TableId table, Bytes partition,
                                                          std::vector<Bytes> rows, RequestLevel how,
                                                          Until until) {
  StalePause pause(link_.runtime());
  for (;;) {
    auto merged = co_await read_once(table, partition, rows, how, until);
    if (merged && *merged) co_return **std::move(merged);
    if (merged) {
      how.takes_digests = false;
      continue;
    }
    if (!is_stale(merged.error())) co_return std::move(merged).error();
    CO_TRY_VOID(co_await pause.wait(merged.error(), until));
  }
}

Task<Result<std::optional<std::vector<RowRead>>>> ReplicatedReader::read_once(
    storage::TableId table, const Bytes& partition, const std::vector<Bytes>& rows,
    RequestLevel how, Until until) {
  const ReplicaMapPtr map = link_.map();
  const auto place = map == nullptr ? std::nullopt : map->find_place(partition.view());
  if (!place) co_return Error(Errc::not_found, "the keyspace is gone");
  const PlacedTablet& tablet = place->keyspace->tablet(place->index);
  const LevelRule& rule = place->keyspace->rule(tablet, how.level);
  auto message = std::make_shared<ReadMessage>();
  message->epoch = tablet.epoch;
  message->table = table;
  message->at_one_moment = rows.size() > 1;
  RequestUnderWay request(link_.requests(), "read", place->keyspace->name(), how.level,
                          link_.runtime().clock.now());
  probe_suspects(tablet, table, partition);
  for (const Bytes& row : rows) message->rows.push_back({.partition = partition, .row = row});
  Questions<ReadMessage> questions(message, how.takes_digests, rule.required());
  const bool asks_for_digests = questions.asks_for_digests();
  const Until asked_until{.deadline = until.deadline, .stop = {}};
  const auto ask_one = [this, questions, asked_until](model::NodeId node) mutable {
    return ask(node, questions.next(), asked_until);
  };
  auto gathered = co_await gather<ReadReply>(link_, asks_, tablet, rule, ask_one,
                                             {.kind = AnswerTimes::Kind::point,
                                              .speculation = how.speculation,
                                              .notes = how.notes,
                                              .request = &request},
                                             std::move(until), how.report);
  count_read(link_.statistics(), how.level, gathered);
  CO_TRY(auto answers, std::move(gathered));
  link_.statistics().digest_reads += asks_for_digests ? 1 : 0;
  if (has_digests(answers)) {
    ReadReply* const whole = agreed(answers, [&](const ReadReply& answer) {
      const bool is_sound = !answer.rows.empty() && answer.rows.size() <= message->rows.size();
      return is_sound ? digest_of(message->rows, answer.rows,
                                  {.without_dots = bugs_.digests_without_dots})
                      : std::nullopt;
    });
    if (whole == nullptr) {
      ++link_.statistics().digest_mismatches;
      co_return std::nullopt;
    }
    for (const auto& [from, answer] : answers) {
      for (RowRead& read : whole->rows) {
        read.wall = std::max(read.wall, answer.digest_wall);
        if (!answer.digest) read.wall = std::max(read.wall, answer.rows.front().wall);
      }
    }
    co_return std::move(whole->rows);
  }
  CO_TRY(auto merged,
         co_await merge_reads(*message, std::move(answers), how, request, asked_until));
  co_return std::move(merged);
}

Task<Result<std::vector<RowRead>>> ReplicatedReader::merge_reads(
    const ReadMessage& message, std::vector<Gathered<ReadReply>> answers, RequestLevel how,
    RequestUnderWay& request, Until until) {
  std::size_t count = message.rows.size();
  for (const auto& answer : answers) count = std::min(count, answer.answer.rows.size());
  if (count == 0) co_return Error(Errc::corrupt, "a replica answered without a row");
  std::vector<RowRead> merged;
  std::vector<Seen> seen;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<RowRead> versions;
    for (auto& answer : answers) versions.push_back(std::move(answer.answer.rows[i]));
    if (versions.size() == 1) {
      merged.push_back(std::move(versions.front()));
      continue;
    }
    const Bytes& row = message.rows[i].row;
    merged.push_back(merge(row, versions));
    seen.resize(versions.size());
    std::vector<const causality::PartitionStore*> stores;
    for (const RowRead& version : versions) stores.push_back(&version.partition);
    for (std::size_t k = 0; k < versions.size(); ++k) {
      seen[k].node = answers[k].from;
      if (lacks_some(row, merged.back().partition, versions[k].partition, versions[k].clock,
                     stores)) {
        seen[k].lacks_of.insert(message.rows[i].partition);
      }
      seen[k].clock = std::move(versions[k].clock);
      seen[k].is_newer_than_clock |= versions[k].is_newer_than_clock;
    }
  }
  if (how.repairs && !seen.empty()) {
    request.enter("repairs");
    CO_TRY_VOID(co_await repair(message.epoch, message.table, std::move(seen), how.notes,
                                std::move(until)));
  }
  co_return merged;
}

Task<Result<std::vector<RowRead>>> ReplicatedReader::read_named(model::NodeId node,
                                                                causality::Epoch epoch,
                                                                storage::TableId table,
                                                                std::vector<RowName> names,
                                                                Until until) {
  std::vector<RowRead> reads;
  while (reads.size() < names.size()) {
    auto message = std::make_shared<ReadMessage>();
    message->epoch = epoch;
    message->table = table;
    const std::size_t count = std::min(names.size() - reads.size(), ReadMessage::kRowsMax);
    const auto first = names.begin() + static_cast<std::ptrdiff_t>(reads.size());
    message->rows.assign(first, first + static_cast<std::ptrdiff_t>(count));
    CO_TRY(auto reply, co_await ask(node, std::move(message), until));
    if (reply.rows.empty() || reply.rows.size() > count) {
      co_return Error(Errc::corrupt, "a replica answered {} rows for {}", reply.rows.size(), count);
    }
    std::ranges::move(reply.rows, std::back_inserter(reads));
  }
  co_return reads;
}

Task<Result<RowsAnswer>> ReplicatedReader::scan(TabletKey key, RowsRequest request,
                                                RequestLevel how, Until until) {
  StalePause pause(link_.runtime());
  for (;;) {
    auto answer = co_await scan_once(key, request, how, until);
    if (answer && *answer) co_return **std::move(answer);
    if (answer) {
      how.takes_digests = false;
      continue;
    }
    if (!is_stale(answer.error())) co_return std::move(answer).error();
    CO_TRY_VOID(co_await pause.wait(answer.error(), until));
  }
}

Task<Result<std::optional<RowsAnswer>>> ReplicatedReader::scan_once(TabletKey key,
                                                                    const RowsRequest& request,
                                                                    RequestLevel how, Until until) {
  const ReplicaMapPtr map = link_.map();
  const KeyspaceMap* keyspace = map == nullptr ? nullptr : map->find(key.keyspace);
  if (keyspace == nullptr) co_return Error(Errc::not_found, "the keyspace is gone");
  const PlacedTablet& tablet = keyspace->tablet(key.index);
  const LevelRule& rule = keyspace->rule(tablet, how.level);
  RequestUnderWay under_way(link_.requests(), "scan", keyspace->name(), how.level,
                            link_.runtime().clock.now());
  auto message = std::make_shared<ScanMessage>();
  message->epoch = tablet.epoch;
  message->request = request;
  Questions<ScanMessage> questions(message, how.takes_digests && !how.unites_answers,
                                   rule.required());
  const bool asks_for_digests = questions.asks_for_digests();
  const Until asked_until{.deadline = until.deadline, .stop = {}};
  const auto ask_one = [this, questions, asked_until](model::NodeId node) mutable {
    const auto& question = questions.next();
    if (node == link_.self()) return local_.scan(question, asked_until);
    return link_.call(node, kScanMethod, question, asked_until);
  };
  probe_suspects(tablet, request.table, request.partitions.from);
  auto gathered = co_await gather<RowsAnswer>(link_, asks_, tablet, rule, ask_one,
                                              {.kind = AnswerTimes::Kind::scan,
                                               .speculation = how.speculation,
                                               .notes = how.notes,
                                               .request = &under_way},
                                              until, how.report);
  count_read(link_.statistics(), how.level, gathered);
  CO_TRY(auto answers, std::move(gathered));
  link_.statistics().digest_reads += asks_for_digests ? 1 : 0;
  if (has_digests(answers)) {
    RowsAnswer* const whole = agreed(answers, [&](const RowsAnswer& answer) {
      return digest_of(answer, {.without_dots = bugs_.digests_without_dots});
    });
    if (whole == nullptr) {
      ++link_.statistics().digest_mismatches;
      co_return std::nullopt;
    }
    for (const auto& [from, answer] : answers) whole->wall = std::max(whole->wall, answer.wall);
    co_return std::move(*whole);
  }
  CO_TRY(auto merged,
         co_await merge_scans(*message, std::move(answers), how, under_way, until, asked_until));
  co_return std::move(merged);
}

Task<Result<RowsAnswer>> ReplicatedReader::merge_scans(const ScanMessage& message,
                                                       std::vector<Gathered<RowsAnswer>> answers,
                                                       RequestLevel how, RequestUnderWay& under_way,
                                                       Until until, Until asked_until) {
  const RowsRequest& request = message.request;
  if (answers.size() == 1) co_return std::move(answers.front().answer);
  std::vector<RowsAnswer> pages;
  std::vector<Seen> seen;
  for (auto& answer : answers) {
    seen.push_back({.node = answer.from,
                    .clock = answer.answer.clock,
                    .is_newer_than_clock = answer.answer.is_newer_than_clock});
    pages.push_back(std::move(answer.answer));
  }
  if (how.unites_answers) co_return unite(request.backwards, std::move(pages));
  AnswerMerge merging(request.backwards, std::move(pages));
  const auto needed = merging.needed();
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i].empty()) continue;
    CO_TRY(auto reads,
           co_await read_named(answers[i].from, message.epoch, request.table, needed[i], until));
    for (const RowRead& read : reads) seen[i].is_newer_than_clock |= read.is_newer_than_clock;
    merging.supply(i, std::move(reads));
  }
  auto merged = merging.take();
  for (std::size_t i = 0; i < seen.size(); ++i) seen[i].lacks_of = merging.differing()[i];
  if (how.repairs) {
    under_way.enter("repairs");
    CO_TRY_VOID(
        co_await repair(message.epoch, request.table, std::move(seen), how.notes, asked_until));
  }
  co_return merged;
}

namespace {

Task<void> ask_clock(ClusterLink& link, NodeId node, std::shared_ptr<const ClockMessage> message) {
  std::ignore = co_await link.call(node, kClockMethod, std::move(message),
                                   Until::after(link.runtime(), kProbeTimeout));
}

}  // namespace

void ReplicatedReader::probe_suspects(const PlacedTablet& tablet, storage::TableId table,
                                      const Bytes& partition) {
  for (const PlacedReplica& member : tablet.members) {
    if (!link_.is_up(member.node) || !link_.is_suspected(member.node)) continue;
    if (!link_.answer_times().claim_probe(member.node, link_.runtime().clock.now())) continue;
    auto message = std::make_shared<const ClockMessage>(
        ClockMessage{.epoch = tablet.epoch, .table = table, .partition = partition});
    if (asks_.try_spawn(ask_clock(link_, member.node, std::move(message)))) {
      ++link_.statistics().probes;
    }
  }
}

Task<Result<void>> ReplicatedReader::repair_one(NodeId from,
                                                std::shared_ptr<const RepairMessage> message,
                                                Until until) {
  RepairReply reply;
  if (from == link_.self()) {
    CO_TRY(reply, co_await local_.repair(std::move(message), std::move(until)));
  } else {
    CO_TRY(reply, co_await link_.call(from, kRepairMethod, std::move(message), std::move(until)));
  }
  link_.statistics().repaired_mutations += reply.applied;
  co_return {};
}

// A node that has just come back is reached by the next connection. A delta that comes twice is
// one.
Task<Result<void>> ReplicatedReader::repair_patiently(NodeId from,
                                                      std::shared_ptr<const RepairMessage> message,
                                                      Until until) {
  for (int attempt = 1;; ++attempt) {
    auto repaired = co_await repair_one(from, message, until);
    const bool may_pass = repaired.failed_with(Errc::unavailable) ||
                          repaired.failed_with(Errc::closed) ||
                          repaired.failed_with(Errc::connection_lost);
    if (!may_pass || attempt == kRepairAttempts) co_return repaired;
    CO_TRY_VOID(co_await runtime::sleep_for(link_.runtime(), kRepairPause, until.stop));
  }
}

Task<Result<void>> ReplicatedReader::repair(causality::Epoch epoch, storage::TableId table,
                                            std::vector<Seen> seen, RequestNotes* notes,
                                            Until until) {
  const bool differ =
      std::ranges::any_of(seen, [](const Seen& one) { return !one.lacks_of.empty(); });
  if (differ) ++link_.statistics().repairs;
  for (const Seen& behind : seen) {
    for (const Bytes& partition : behind.lacks_of) {
      for (const Seen& ahead : seen) {
        if (&ahead == &behind) continue;
        // What it showed beyond its clock the other may lack, though it has seen all of that clock.
        if (!ahead.is_newer_than_clock && behind.clock.covers(ahead.clock)) continue;
        auto message = std::make_shared<RepairMessage>();
        message->epoch = epoch;
        message->table = table;
        message->partition = partition;
        message->to = behind.node;
        if (notes != nullptr) {
          notes->note(fmt::format("Repair: {} gets from {} what it lacks",
                                  link_.name_of(behind.node), link_.name_of(ahead.node)));
        }
        message->clock = behind.clock;
        CO_TRY_VOID(co_await repair_patiently(ahead.node, std::move(message), until));
      }
    }
  }
  co_return {};
}

}  // namespace helenus::replication
