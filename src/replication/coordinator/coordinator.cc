#include "replication/coordinator/coordinator.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "replication/cluster/check_alone.h"
#include "replication/cluster/gather.h"
#include "replication/cluster/on_core.h"
#include "replication/cluster/replicas.h"
#include "replication/cluster/stale_pause.h"
#include "replication/messages/messages.h"
#include "replication/read/range_cursor.h"
#include "runtime/run_on.h"
#include "runtime/when_all.h"
#include "storage/engine/engine.h"

namespace helenus::replication {

using base::Bytes;
using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using causality::Delta;
using runtime::CoreId;
using runtime::MaybeTask;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using storage::TabletId;

Coordinator::Coordinator(Runtime& here, const Replicas& replicas)
    : runtime_(here), replicas_(replicas), core_(replicas.on(here.cores.here())) {}

const HeldTablet* Coordinator::find_alone(ByteView partition) const {
  const HeldTablet* held = core_.held == nullptr ? nullptr : core_.held->find(partition);
  return held != nullptr && held->is_alone() ? held : nullptr;
}

const std::shared_ptr<const HeldTablets>& Coordinator::tablets() const {
  return core_.held;
}

// ---- Writing ----

namespace {

template <class T>
Task<Result<T>> failed(Error error) {
  co_return error;
}

}  // namespace

Task<Result<std::optional<Delta>>> Coordinator::write(PartitionWrite write, Until until,
                                                      RequestLevel how) {
  const HeldTablet* held = find_alone(write.partition.view());
  if (held == nullptr) return write_among_nodes(std::move(write), std::move(until), how);
  if (auto met = check_alone(*held, core_.link, how); !met) {
    return failed<std::optional<Delta>>(std::move(met).error());
  }
  if (held->core != runtime_.cores.here()) {
    return write_on_core(held->core, held->info.id, held->epoch, std::move(write),
                         std::move(until));
  }
  return core_.replica.write(held->info.id, std::move(write), std::move(until), held->epoch);
}

std::optional<Result<Coordinator::BegunWrite>> Coordinator::begin_write(PartitionWrite& write,
                                                                        const Until& until,
                                                                        RequestLevel how) {
  const HeldTablet* held = find_alone(write.partition.view());
  if (held == nullptr || held->core != runtime_.cores.here()) return std::nullopt;
  if (auto met = check_alone(*held, core_.link, how); !met) return std::move(met).error();
  auto staged = core_.replica.write_at_once(held->info.id, write, until, held->epoch);
  if (!staged) return std::nullopt;
  if (!*staged) return std::move(*staged).error();
  return BegunWrite{.engine = &core_.replica.engine(), .position = *(*staged)->position};
}

Task<Result<std::optional<Delta>>> Coordinator::write_on_core(CoreId core, TabletId tablet,
                                                              causality::Epoch epoch,
                                                              PartitionWrite write, Until until) {
  const auto there = [&](Runtime&, Until remaining) {
    return replicas_.on(core).replica.write(tablet, std::move(write), std::move(remaining), epoch);
  };
  co_return co_await runtime::run_on<std::optional<Delta>>(runtime_, core, there, std::move(until));
}

namespace {

// Whether an error of a replica, or of the way to it, says that nothing was executed, and another
// replica may be asked.
bool was_not_executed(const Error& error) {
  switch (error.code()) {
    case Errc::unavailable:
    case Errc::refused:
    case Errc::overloaded:
    case Errc::no_space:
    case Errc::closed:
    case Errc::not_found:
    case kStale:
      return true;
    default:
      return false;
  }
}

// What is told when no replica took the write.
Error none_took_it(Error error) {
  const bool says_who = error.code() == Errc::refused || error.code() == Errc::closed;
  return says_who ? Error(Errc::unavailable, "no replica took it: {}", error) : error;
}

using Written = ReplicatedWriter::Written;

// By the replica of that node.
Task<Result<Written>> write_by(const Replicas& replicas, ReplicaCore& core, model::NodeId node,
                               std::shared_ptr<const WriteMessage> message, Until until,
                               bool tells_notes) {
  if (node != core.link.self()) {
    RequestUnderWay request(core.link.requests(), "write by another node", "", message->level,
                            core.link.runtime().clock.now());
    request.enter("waits for who mints");
    CO_TRY(WriteReply reply,
           co_await core.link.call(node, kWriteMethod, std::move(message), std::move(until)));
    auto delta = std::move(reply.delta);
    co_return Written{.reply = std::move(reply), .delta = std::move(delta), .notes = {}};
  }
  const HeldTablet* found =
      core.held == nullptr ? nullptr : core.held->find(message->write.partition.view());
  if (found == nullptr || found->is_in_doubt) {
    co_return Error(Errc::refused, "the replica here does not serve");
  }
  const HeldTablet held = *found;
  const auto there = [&](Runtime&, Until remaining) -> Task<Result<Written>> {
    return replicas.on(held.core).writer->write(held, message->level, message->write,
                                                std::move(remaining), tells_notes);
  };
  co_return co_await on_core<Written>(core.link.runtime(), held.core, there, std::move(until));
}

void note(RequestNotes& notes, const Written& written, std::string_view by) {
  for (const std::string& activity : written.notes) notes.note(activity);
  notes.note(fmt::format("{} says that {} of {} replicas have the write", by,
                         written.reply.report.received, written.reply.report.required));
}

Error not_met(const LevelReport& report) {
  if (report.failed > 0) {
    return {Errc::io_error, "{} of {} replicas have it, {} failed", report.received,
            report.required, report.failed};
  }
  return {Errc::timeout, "{} of {} replicas have it", report.received, report.required};
}

}  // namespace

Task<Result<std::optional<Delta>>> Coordinator::write_among_nodes(PartitionWrite write, Until until,
                                                                  RequestLevel how) {
  RequestStatistics& statistics = core_.link.statistics();
  ++statistics.writes[static_cast<std::size_t>(how.level)];
  // A replica that is in another epoch has executed nothing.
  StalePause pause(runtime_);
  auto message = std::make_shared<WriteMessage>();
  message->level = how.level;
  message->write = std::move(write);
  auto written = co_await write_by_members(message, until, how);
  while (!written && is_stale(written.error())) {
    const auto waited = co_await pause.wait(written.error(), until);
    if (!waited) {
      written = waited.error();
      break;
    }
    message = std::make_shared<WriteMessage>(*message);
    written = co_await write_by_members(message, until, how);
  }
  if (!written) statistics.count_error(how.level, written.error().code());
  co_return written;
}

Task<Result<std::optional<Delta>>> Coordinator::write_by_members(
    std::shared_ptr<WriteMessage> message, Until until, RequestLevel how) {
  LevelReport unheard;
  LevelReport& report = how.report == nullptr ? unheard : *how.report;
  const ReplicaMapPtr map = core_.link.map();
  const auto place =
      map == nullptr ? std::nullopt : map->find_place(message->write.partition.view());
  if (!place) co_return Error(Errc::not_found, "the keyspace is gone");
  const PlacedTablet& tablet = place->keyspace->tablet(place->index);
  const auto candidates = in_order_of_asking(tablet, core_.link);
  CO_TRY_VOID(check_enough(candidates, place->keyspace->rule(tablet, how.level), &report));
  core_.reader->probe_suspects(tablet, message->write.table, message->write.partition);
  message->epoch = tablet.epoch;
  std::optional<Error> refusal;
  for (const PlacedReplica* candidate : candidates) {
    const std::string by = how.notes == nullptr ? "" : core_.link.name_of(candidate->node);
    if (how.notes != nullptr) how.notes->note(fmt::format("{} is to mint the write", by));
    auto written =
        co_await write_by(replicas_, core_, candidate->node, message, until, how.notes != nullptr);
    if (written) {
      report = written->reply.report;
      if (how.notes != nullptr) note(*how.notes, *written, by);
      if (!written->reply.met) co_return not_met(report);
      co_return std::move(written->delta);
    }
    if (how.notes != nullptr) {
      how.notes->note(fmt::format("{} did not: {}", by, written.error()));
    }
    if (!was_not_executed(written.error())) co_return std::move(written).error();
    if (!refusal || !is_stale(*refusal)) refusal = std::move(written).error();
  }
  ASSERT(refusal);
  co_return none_took_it(*std::move(refusal));
}

Task<Result<std::vector<Delta>>> Coordinator::write(std::vector<PartitionWrite> writes, Until until,
                                                    RequestLevel how) {
  bool is_here = !writes.empty();
  for (const PartitionWrite& write : writes) {
    const HeldTablet* held = find_alone(write.partition.view());
    if (held == nullptr) return write_partitions(std::move(writes), std::move(until), how);
    if (auto met = check_alone(*held, core_.link, how); !met) {
      return failed<std::vector<Delta>>(std::move(met).error());
    }
    is_here = is_here && held->core == runtime_.cores.here();
  }
  if (is_here) return core_.replica.write(std::move(writes), std::move(until));
  return write_to_cores(std::move(writes), std::move(until));
}

namespace {

bool outcome_is_unknown(const Error& error) {
  return error.code() == Errc::timeout || error.code() == Errc::cancelled ||
         error.code() == Errc::connection_lost;
}

// Of parts that were written side by side: an error that says that nothing was written says so of
// all of them.
Result<std::vector<Delta>> outcome_of(std::vector<Result<std::vector<Delta>>> parts) {
  std::vector<Delta> deltas;
  std::optional<Error> failure;
  std::size_t failures = 0;
  for (Result<std::vector<Delta>>& part : parts) {
    if (part) {
      std::ranges::move(*part, std::back_inserter(deltas));
      continue;
    }
    ++failures;
    // That it is not known what became of a part says the most.
    if (!failure || outcome_is_unknown(part.error())) failure = std::move(part).error();
  }
  if (!failure) return deltas;
  if (failures == parts.size()) return *std::move(failure);
  return Error(Errc::timeout, "a part of the writes is there, another one failed: {}", *failure);
}

}  // namespace

// What would be refused for what it is, or for want of room, is refused before the first core
// writes. What goes wrong after that leaves a part written: nobody may be told otherwise.
Task<Result<std::vector<Delta>>> Coordinator::write_to_cores(std::vector<PartitionWrite> writes,
                                                             Until until) {
  std::map<CoreId, std::vector<PartitionWrite>> by_core;
  for (PartitionWrite& write : writes) {
    const HeldTablet* held = find_alone(write.partition.view());
    if (held == nullptr) co_return Error(Errc::not_found, "the keyspace is gone");
    by_core[held->core].push_back(std::move(write));
  }
  if (by_core.size() > 1) {
    std::vector<Task<Result<void>>> admissions;
    for (const auto& [core, some] : by_core) admissions.push_back(admit_on(core, some, until));
    for (Result<void>& admitted : co_await runtime::when_all(std::move(admissions))) {
      CO_TRY_VOID(std::move(admitted));
    }
  }
  std::vector<Task<Result<std::vector<Delta>>>> parts;
  for (auto& [core, some] : by_core) parts.push_back(write_on(core, std::move(some), until));
  co_return outcome_of(co_await runtime::when_all(std::move(parts)));
}

// ---- Several partitions among several nodes ----

Result<void> Coordinator::check_available(ByteView partition, RequestLevel how) const {
  const ReplicaMapPtr& map = core_.link.map();
  const auto place = map == nullptr ? std::nullopt : map->find_place(partition);
  if (!place) return Error(Errc::not_found, "the keyspace is gone");
  const PlacedTablet& tablet = place->keyspace->tablet(place->index);
  const auto candidates = in_order_of_asking(tablet, core_.link);
  return check_enough(candidates, place->keyspace->rule(tablet, how.level), how.report);
}

// Where too few replicas of one are up, none is written. Writes to one partition go one after the
// other, partitions side by side.
Task<Result<std::vector<Delta>>> Coordinator::write_partitions(std::vector<PartitionWrite> writes,
                                                               Until until, RequestLevel how) {
  std::map<Bytes, std::vector<PartitionWrite>> by_partition;
  for (PartitionWrite& write : writes) {
    CO_TRY_VOID(check_available(write.partition.view(), how));
    by_partition[write.partition].push_back(std::move(write));
  }
  std::vector<LevelReport> reports(by_partition.size());
  std::vector<Result<std::vector<Delta>>> outcomes;
  auto next = by_partition.begin();
  while (next != by_partition.end()) {
    std::vector<Task<Result<std::vector<Delta>>>> parts;
    for (; next != by_partition.end() && parts.size() < kPartitionsAtOnce; ++next) {
      LevelReport& report = reports[outcomes.size() + parts.size()];
      parts.push_back(write_in_order(std::move(next->second), until,
                                     {.level = how.level, .report = &report, .notes = how.notes}));
    }
    std::ranges::move(co_await runtime::when_all(std::move(parts)), std::back_inserter(outcomes));
  }
  for (std::size_t i = 0; i < outcomes.size() && how.report != nullptr; ++i) {
    if (i == 0 || !outcomes[i]) *how.report = reports[i];
  }
  co_return outcome_of(std::move(outcomes));
}

Task<Result<std::vector<Delta>>> Coordinator::write_in_order(std::vector<PartitionWrite> writes,
                                                             Until until, RequestLevel how) {
  std::vector<Delta> deltas;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    auto written = co_await write(std::move(writes[i]), until, how);
    if (!written && i == 0) co_return std::move(written).error();
    if (!written) {
      co_return Error(Errc::timeout, "{} of {} writes are there, then: {}", i, writes.size(),
                      written.error());
    }
    if (*written) deltas.push_back(**std::move(written));
  }
  co_return deltas;
}

namespace {

Task<Result<void>> admit_on_core(Replica& replica, const std::vector<PartitionWrite>& writes,
                                 Until until) {
  CO_TRY_VOID(replica.check(writes));
  co_return co_await replica.admit(writes, std::move(until));
}

}  // namespace

Task<Result<void>> Coordinator::admit_on(CoreId core, const std::vector<PartitionWrite>& writes,
                                         Until until) {
  Replica& replica = replicas_.on(core).replica;
  if (core == runtime_.cores.here()) {
    co_return co_await admit_on_core(replica, writes, std::move(until));
  }
  const auto admit = [&](Runtime&, Until remaining) {
    return admit_on_core(replica, writes, std::move(remaining));
  };
  co_return co_await runtime::run_on<void>(runtime_, core, admit, std::move(until));
}

Task<Result<std::vector<Delta>>> Coordinator::write_on(CoreId core,
                                                       std::vector<PartitionWrite> writes,
                                                       Until until) {
  Replica& replica = replicas_.on(core).replica;
  if (core == runtime_.cores.here()) {
    co_return co_await replica.write(std::move(writes), std::move(until));
  }
  const auto write = [&](Runtime&, Until remaining) {
    return replica.write(std::move(writes), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::vector<Delta>>(runtime_, core, write, std::move(until));
}

// ---- Reading ----

std::optional<MaybeTask<Result<storage::RowRead>>> Coordinator::read_row_here(
    TableId table, const Bytes& partition, const Bytes& row, const Until& until, RequestLevel how) {
  const HeldTablet* held = find_alone(partition.view());
  if (held == nullptr || held->core != runtime_.cores.here()) return std::nullopt;
  if (auto met = check_alone(*held, core_.link, how); !met) {
    return Result<storage::RowRead>(std::move(met).error());
  }
  return core_.replica.engine().read_row(table, held->info.id, partition, row, until);
}

MaybeTask<Result<storage::RowRead>> Coordinator::read_row(TableId table, Bytes partition, Bytes row,
                                                          Until until, RequestLevel how) {
  if (auto here = read_row_here(table, partition, row, until, how)) return *std::move(here);
  const HeldTablet* held = find_alone(partition.view());
  if (held == nullptr) {
    return read_row_among_nodes(table, std::move(partition), std::move(row), std::move(until), how);
  }
  if (auto met = check_alone(*held, core_.link, how); !met) {
    return Result<storage::RowRead>(std::move(met).error());
  }
  return read_row_on_core(held->core, held->info.id, table, std::move(partition), std::move(row),
                          std::move(until));
}

namespace {

Task<Result<storage::RowRead>> read_row_of(storage::Engine& engine, TabletId tablet, TableId table,
                                           Bytes partition, Bytes row, Until until) {
  co_return co_await engine.read_row(table, tablet, std::move(partition), std::move(row),
                                     std::move(until));
}

}  // namespace

Task<Result<storage::RowRead>> Coordinator::read_row_on_core(CoreId core, TabletId tablet,
                                                             TableId table, Bytes partition,
                                                             Bytes row, Until until) {
  const auto read = [&](Runtime&, Until remaining) {
    return read_row_of(replicas_.on(core).replica.engine(), tablet, table, std::move(partition),
                       std::move(row), std::move(remaining));
  };
  co_return co_await runtime::run_on<storage::RowRead>(runtime_, core, read, std::move(until));
}

Task<Result<storage::RowRead>> Coordinator::read_row_among_nodes(TableId table, Bytes partition,
                                                                 Bytes row, Until until,
                                                                 RequestLevel how) {
  std::vector<Bytes> rows;
  rows.push_back(std::move(row));
  CO_TRY(auto reads, co_await core_.reader->read(table, std::move(partition), std::move(rows), how,
                                                 std::move(until)));
  co_return std::move(reads.front());
}

Task<Result<std::vector<storage::RowRead>>> Coordinator::read_rows_at_one_moment(
    TableId table, Bytes partition, std::vector<Bytes> rows, Until until, RequestLevel how) {
  const HeldTablet* held = find_alone(partition.view());
  if (held == nullptr) {
    co_return co_await core_.reader->read(table, std::move(partition), std::move(rows), how,
                                          std::move(until));
  }
  CO_TRY_VOID(check_alone(*held, core_.link, how));
  const CoreId core = held->core;
  const TabletId tablet = held->info.id;
  const auto read = [&](Runtime&, Until remaining) {
    return replicas_.on(core).replica.read_rows_at_one_moment(
        table, tablet, std::move(partition), std::move(rows), std::move(remaining));
  };
  co_return co_await on_core<std::vector<storage::RowRead>>(runtime_, core, read, std::move(until));
}

std::unique_ptr<RangeCursor> Coordinator::scan(TableId table, storage::KeyRange partitions,
                                               ScanOptions options) {
  return std::make_unique<RangeCursor>(runtime_, replicas_, table, std::move(partitions),
                                       std::move(options));
}

std::vector<storage::KeyRange> Coordinator::tablets_of(const storage::KeyRange& partitions) const {
  std::vector<storage::KeyRange> tablets;
  const bool is_hollow = partitions.to && *partitions.to <= partitions.from;
  if (core_.held == nullptr || is_hollow) return tablets;
  const ReplicaMapPtr map = core_.held->map();
  const auto place = map->find_place(partitions.from.view());
  if (!place) return tablets;
  for (std::size_t i = place->index; i < place->keyspace->tablet_count(); ++i) {
    const TabletBounds& bounds = place->keyspace->bounds(static_cast<ring::TabletIndex>(i));
    if (partitions.to && bounds.from >= *partitions.to) break;
    tablets.push_back({.from = bounds.from, .to = bounds.to});
  }
  return tablets;
}

// ---- Of all cores ----

// `work` makes a task of an engine and an Until; it is asked on each core in turn.
template <class T, class Work>
Task<Result<std::vector<T>>> Coordinator::ask_all(Work work, Until until) const {
  std::vector<T> answers;
  for (std::uint32_t core = 0; core < replicas_.cores(); ++core) {
    storage::Engine& engine = replicas_.on(CoreId{core}).replica.engine();
    if (CoreId{core} == runtime_.cores.here()) {
      CO_TRY(auto answer, co_await work(engine, until));
      answers.push_back(std::move(answer));
      continue;
    }
    const auto there = [&](Runtime&, Until remaining) {
      return work(engine, std::move(remaining));
    };
    CO_TRY(auto answer, co_await runtime::run_on<T>(runtime_, CoreId{core}, there, until));
    answers.push_back(std::move(answer));
  }
  co_return answers;
}

namespace {

// Whether the core has the table: one without tablets never does.
Result<bool> found(Result<void> done) {
  if (done.failed_with(Errc::not_found)) return false;
  TRY_VOID(std::move(done));
  return true;
}

Task<Result<bool>> flush_on_core(storage::Engine& engine, TableId table, Until until) {
  co_return found(co_await engine.flush(table, std::move(until)));
}

Task<Result<bool>> compact_on_core(storage::Engine& engine, TableId table, Until until) {
  co_return found(co_await engine.compact(table, std::move(until)));
}

Task<Result<std::vector<TableId>>> unbuilt_on_core(storage::Engine& engine) {
  co_return engine.indexes_being_built();
}

// One core after the other: what is damaged on one is told when all have looked.
Task<Result<bool>> verify_on_core(storage::Engine& engine, TableId table, Until until,
                                  std::optional<Error>& damage) {
  auto done = found(co_await engine.verify(table, until));
  if (done || until.stop.stop_requested()) co_return done;
  if (!damage) damage = done.error();
  co_return true;
}

Task<Result<bool>> verify_mutations_on_core(storage::Engine& engine, Until until) {
  CO_TRY_VOID(co_await engine.verify_mutations(std::move(until)));
  co_return true;
}

Result<void> found_somewhere(const std::vector<bool>& found, TableId table) {
  if (std::ranges::find(found, true) != found.end()) return {};
  return Error(Errc::not_found, "table {}", table);
}

}  // namespace

Task<Result<void>> Coordinator::flush(TableId table, Until until) {
  const auto flush = [table](storage::Engine& engine, Until remaining) {
    return flush_on_core(engine, table, std::move(remaining));
  };
  CO_TRY(const auto found, co_await ask_all<bool>(flush, std::move(until)));
  co_return found_somewhere(found, table);
}

Task<Result<void>> Coordinator::compact(TableId table, Until until) {
  const auto compact = [table](storage::Engine& engine, Until remaining) {
    return compact_on_core(engine, table, std::move(remaining));
  };
  CO_TRY(const auto found, co_await ask_all<bool>(compact, std::move(until)));
  co_return found_somewhere(found, table);
}

Task<Result<std::set<TableId>>> Coordinator::indexes_being_built(Until until) const {
  const auto ask = [](storage::Engine& engine, const Until& /*remaining*/) {
    return unbuilt_on_core(engine);
  };
  CO_TRY(const auto told, co_await ask_all<std::vector<TableId>>(ask, std::move(until)));
  std::set<TableId> unbuilt;
  for (const auto& some : told) unbuilt.insert(some.begin(), some.end());
  co_return unbuilt;
}

Task<Result<void>> Coordinator::verify(TableId table, Until until) {
  std::optional<Error> damage;
  const auto verify = [table, &damage](storage::Engine& engine, Until remaining) {
    return verify_on_core(engine, table, std::move(remaining), damage);
  };
  CO_TRY(const auto found, co_await ask_all<bool>(verify, std::move(until)));
  if (damage) co_return *damage;
  co_return found_somewhere(found, table);
}

Task<Result<void>> Coordinator::verify_mutations(Until until) {
  const auto verify = [](storage::Engine& engine, Until remaining) {
    return verify_mutations_on_core(engine, std::move(remaining));
  };
  CO_TRY_VOID(co_await ask_all<bool>(verify, std::move(until)));
  co_return {};
}

storage::EngineStatistics Coordinator::statistics_here() const {
  return core_.replica.engine().statistics();
}

std::vector<storage::TableStatistics> Coordinator::table_statistics_here() const {
  return core_.replica.engine().table_statistics();
}

std::optional<Error> Coordinator::fatal_error_here() const {
  return core_.replica.engine().fatal_error();
}

std::optional<Error> Coordinator::write_refusal_here() const {
  return core_.replica.engine().write_refusal();
}

}  // namespace helenus::replication
