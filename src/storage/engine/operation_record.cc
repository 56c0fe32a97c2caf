#include "storage/engine/operation_record.h"

#include <memory>
#include <utility>
#include <vector>

#include "base/uuid.h"
#include "causality/codec.h"
#include "storage/mutations/mutation_file.h"
#include "storage/mutations/mutation_record.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;
using causality::OperationId;
using runtime::Task;
using runtime::Until;

using MaybeKnown = Result<std::optional<KnownOperation>>;

Result<bool> OperationRecord::judge(const causality::Mutation& mutation) {
  using Answer = OperationScreen::Answer;
  state_.tell_operations();
  const OperationScreen& screen = state_.operations;
  switch (screen.judge(*mutation.operation)) {
    case Answer::surely_new:
      // As a filter does that is too small.
      return state_.runtime.buggify("storage.false_positive_operation");
    case Answer::perhaps_known:
      return true;
    case Answer::from_the_future:
      ++state_.statistics.operations_from_the_future;
      return Error(Errc::invalid_argument,
                   "the operation id {} is {} ms in the future, and no more than {} ms are allowed",
                   base::Uuid(*mutation.operation),
                   causality::time_of(*mutation.operation).value() - screen.now().value(),
                   screen.options().skew_ms);
    case Answer::expired:
      break;
  }
  ++state_.statistics.operations_expired;
  return expired(mutation);
}

// What the client gave as the timestamp is its clock when it made the request; where it gave none,
// it is this cluster's.
Error OperationRecord::expired(const causality::Mutation& mutation) const {
  constexpr std::int64_t kMicrosecondsInOne = 1000;
  const OperationScreen& screen = state_.operations;
  const base::Uuid id(*mutation.operation);
  const std::int64_t age = screen.now().value() - causality::time_of(*mutation.operation).value();
  const std::int64_t window = screen.options().window_ms;
  if (mutation.timestamp.value() / kMicrosecondsInOne <= screen.floor().value()) {
    return {Errc::invalid_argument,
            "the operation id {} and the request's timestamp are older than the {} ms for which "
            "operations are remembered, the id by {} ms: the clock of the client is behind, or "
            "this is a late attempt, and whether an earlier one took effect is not known; this one "
            "did not",
            id, window, age - window};
  }
  return {Errc::invalid_argument,
          "the operation id {} is {} ms old, and operations are remembered for {} ms: whether an "
          "earlier attempt took effect is not known; this one did not",
          id, age, window};
}

Result<KnownOperation> OperationRecord::known(const KeptMutation& kept) const {
  TRY(const auto record, decode_mutation(kept.record));
  TRY(auto delta, causality::decode_delta(record.delta));
  return KnownOperation{.table = kept.table,
                        .partition = base::Bytes::copy_of(record.partition),
                        .delta = std::move(delta),
                        .position = state_.staged.last_position()};
}

MaybeKnown OperationRecord::find_in_memory(TabletId tablet, const OperationId& operation) const {
  const Tablet* replica = state_.find_tablet(tablet);
  if (replica == nullptr) return Error(Errc::not_found, "tablet {}", tablet);
  if (replica->lost_mutations) return replica->lost_mutations->why;
  const auto kept = replica->mutations.find(operation);
  if (!kept) return std::optional<KnownOperation>();
  TRY(auto found, known(*kept));
  return std::optional(std::move(found));
}

namespace {

using FilePtr = std::shared_ptr<const MutationFile>;

// Those that may have ids of the tablet, and the dots of it that they are asked for.
std::vector<std::pair<FilePtr, causality::Clock>> files_with_ids(const Shard& shard,
                                                                 TabletId tablet) {
  std::vector<std::pair<FilePtr, causality::Clock>> files;
  for (const LiveMutationFile& each : shard.mutation_files()) {
    const auto live = each.live.find(tablet);
    if (live == each.live.end()) continue;
    if (each.file->metadata.at(tablet).newest_operation == kNoOperation) continue;
    files.emplace_back(each.file, live->second);
  }
  return files;
}

// The mutation that a file has under the id, of those dots.
Task<Result<std::optional<KeptMutation>>> find_in_file(FilePtr file, TabletId tablet,
                                                       OperationId operation, causality::Clock dots,
                                                       Until until) {
  CO_TRY(const auto found, co_await find_operation(file, tablet, operation, until));
  for (const causality::Dot& dot : found) {
    if (!dots.contains(dot)) continue;
    causality::Clock wanted;
    wanted.add(dot);
    MutationFileWalk walk(file, tablet, wanted, until);
    CO_TRY_VOID(co_await walk.next());
    co_return walk.current();
  }
  co_return std::nullopt;
}

}  // namespace

Task<MaybeKnown> OperationRecord::find(TabletId tablet, OperationId operation, Until until) {
  CO_TRY(const auto pass, state_.gate.enter());
  ++state_.statistics.operation_screen_hits;
  while (true) {
    CO_TRY(auto in_memory, find_in_memory(tablet, operation));
    if (in_memory) {
      ++state_.statistics.operation_duplicates;
      co_return std::move(in_memory);
    }
    const Shard& shard = *state_.shard_of(tablet);
    const std::uint64_t changes = shard.mutation_file_changes();
    for (const auto& [file, dots] : files_with_ids(shard, tablet)) {
      CO_TRY(const auto kept, co_await find_in_file(file, tablet, operation, dots, until));
      if (!kept) continue;
      ++state_.statistics.operation_duplicates;
      CO_TRY(auto found, known(*kept));
      co_return std::optional(std::move(found));
    }
    CO_TRY(const auto since, find_in_memory(tablet, operation));
    if (since || shard.mutation_file_changes() != changes) continue;
    ++state_.statistics.operation_false_positives;
    co_return std::nullopt;
  }
}

}  // namespace helenus::storage
