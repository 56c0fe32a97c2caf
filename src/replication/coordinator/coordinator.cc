#include "replication/coordinator/coordinator.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "replication/read/range_cursor.h"
#include "replication/replica/replica.h"
#include "replication/replica/replicas.h"
#include "replication/tablets/tablet_directory.h"
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
using runtime::Runtime;
using runtime::Task;
using runtime::Until;
using storage::TableId;
using storage::TabletId;

Coordinator::Coordinator(Runtime& here, const Replicas& replicas)
    : runtime_(here), replicas_(replicas), tablets_(replicas.tablets()) {
  for (const storage::TabletInfo& tablet : tablets_.all()) {
    const CoreId core = tablets_.core_of(tablet.id);
    places_.push_back(
        {.core = core, .replica = &replicas_.on(core), .here = core == runtime_.cores.here()});
  }
}

// ---- Writing ----

Task<Result<std::optional<Delta>>> Coordinator::write(PartitionWrite write, Until until,
                                                      RequestLevel) {
  const std::size_t index = tablets_.index_of(write.partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) return write_on_core(index, std::move(write), std::move(until));
  return place.replica->write(tablets_.all()[index].id, std::move(write), std::move(until));
}

Task<Result<std::optional<Delta>>> Coordinator::write_on_core(std::size_t index,
                                                              PartitionWrite write, Until until) {
  const TabletPlace& place = places_[index];
  const auto there = [&](Runtime&, Until remaining) {
    return place.replica->write(tablets_.all()[index].id, std::move(write), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::optional<Delta>>(runtime_, place.core, there,
                                                           std::move(until));
}

Task<Result<void>> Coordinator::write_until_durable(PartitionWrite write, Until admitted) {
  const std::size_t index = tablets_.index_of(write.partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) return write_until_durable_on_core(index, std::move(write), std::move(admitted));
  return place.replica->write_until_durable(tablets_.all()[index].id, std::move(write),
                                            std::move(admitted));
}

Task<Result<void>> Coordinator::write_until_durable_on_core(std::size_t index, PartitionWrite write,
                                                            Until admitted) {
  const TabletPlace& place = places_[index];
  const auto there = [&](Runtime&, Until remaining) {
    return place.replica->write_until_durable(tablets_.all()[index].id, std::move(write),
                                              std::move(remaining));
  };
  co_return co_await runtime::run_on<void>(runtime_, place.core, there, std::move(admitted));
}

Task<Result<std::vector<Delta>>> Coordinator::write(std::vector<PartitionWrite> writes, Until until,
                                                    RequestLevel) {
  const auto is_here = [&](const PartitionWrite& write) {
    return places_[tablets_.index_of(write.partition.view())].here;
  };
  if (!writes.empty() && std::ranges::all_of(writes, is_here)) {
    return replicas_.on(runtime_.cores.here()).write(std::move(writes), std::move(until));
  }
  return write_to_cores(std::move(writes), std::move(until));
}

namespace {

bool outcome_is_unknown(const Error& error) {
  return error.code() == Errc::timeout || error.code() == Errc::cancelled;
}

}  // namespace

// What would be refused for what it is, or for want of room, is refused before the first core
// writes. What goes wrong after that leaves a part written: nobody may be told otherwise.
Task<Result<std::vector<Delta>>> Coordinator::write_to_cores(std::vector<PartitionWrite> writes,
                                                             Until until) {
  std::map<CoreId, std::vector<PartitionWrite>> by_core;
  for (PartitionWrite& write : writes) {
    const CoreId core = places_[tablets_.index_of(write.partition.view())].core;
    by_core[core].push_back(std::move(write));
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
  std::vector<Delta> deltas;
  std::optional<Error> failure;
  std::size_t failures = 0;
  auto written = co_await runtime::when_all(std::move(parts));
  for (Result<std::vector<Delta>>& part : written) {
    if (part) {
      std::ranges::move(*part, std::back_inserter(deltas));
      continue;
    }
    ++failures;
    // That it is not known what became of a part says the most.
    if (!failure || outcome_is_unknown(part.error())) failure = std::move(part).error();
  }
  if (!failure) co_return deltas;
  if (failures == written.size()) co_return *std::move(failure);
  co_return Error(Errc::timeout, "a part of the writes is there, another one failed: {}", *failure);
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
  Replica& replica = replicas_.on(core);
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
  Replica& replica = replicas_.on(core);
  if (core == runtime_.cores.here()) {
    co_return co_await replica.write(std::move(writes), std::move(until));
  }
  const auto write = [&](Runtime&, Until remaining) {
    return replica.write(std::move(writes), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::vector<Delta>>(runtime_, core, write, std::move(until));
}

// ---- Reading ----

Task<Result<storage::RowRead>> Coordinator::read_row(TableId table, Bytes partition, Bytes row,
                                                     Until until, RequestLevel) {
  const std::size_t index = tablets_.index_of(partition.view());
  const TabletPlace& place = places_[index];
  if (!place.here) {
    return read_row_on_core(index, table, std::move(partition), std::move(row), std::move(until));
  }
  return place.replica->engine().read_row(table, tablets_.all()[index].id, std::move(partition),
                                          std::move(row), std::move(until));
}

Task<Result<storage::RowRead>> Coordinator::read_row_on_core(std::size_t index, TableId table,
                                                             Bytes partition, Bytes row,
                                                             Until until) {
  const TabletPlace& place = places_[index];
  const auto read = [&](Runtime&, Until remaining) {
    return place.replica->engine().read_row(table, tablets_.all()[index].id, std::move(partition),
                                            std::move(row), std::move(remaining));
  };
  co_return co_await runtime::run_on<storage::RowRead>(runtime_, place.core, read,
                                                       std::move(until));
}

Task<Result<std::vector<storage::RowRead>>> Coordinator::read_rows_at_one_moment(
    TableId table, Bytes partition, std::vector<Bytes> rows, Until until, RequestLevel) {
  const std::size_t index = tablets_.index_of(partition.view());
  const TabletPlace& place = places_[index];
  const TabletId tablet = tablets_.all()[index].id;
  if (place.here) {
    co_return co_await place.replica->read_rows_at_one_moment(table, tablet, std::move(partition),
                                                              std::move(rows), std::move(until));
  }
  const auto read = [&](Runtime&, Until remaining) {
    return place.replica->read_rows_at_one_moment(table, tablet, std::move(partition),
                                                  std::move(rows), std::move(remaining));
  };
  co_return co_await runtime::run_on<std::vector<storage::RowRead>>(runtime_, place.core, read,
                                                                    std::move(until));
}

std::unique_ptr<RangeCursor> Coordinator::scan(TableId table, storage::KeyRange partitions,
                                               ScanOptions options) {
  return std::make_unique<RangeCursor>(runtime_, tablets_.all(), places_, table,
                                       std::move(partitions), std::move(options));
}

// ---- Of all cores ----

// `work` makes a task of an engine and an Until; it is asked on each core in turn.
template <class T, class Work>
Task<Result<std::vector<T>>> Coordinator::ask_all(Work work, Until until) {
  std::vector<T> answers;
  for (std::uint32_t core = 0; core < replicas_.cores(); ++core) {
    storage::Engine& engine = replicas_.on(CoreId{core}).engine();
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

const std::vector<storage::TabletInfo>& Coordinator::tablets() const {
  return tablets_.all();
}

storage::EngineStatistics Coordinator::statistics_here() const {
  return replicas_.on(runtime_.cores.here()).engine().statistics();
}

std::optional<Error> Coordinator::fatal_error_here() const {
  return replicas_.on(runtime_.cores.here()).engine().fatal_error();
}

}  // namespace helenus::replication
