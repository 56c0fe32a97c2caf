// The files of a shard's mutation logs: opening, writing and merging them.
#include <algorithm>
#include <utility>

#include "storage/compaction/background_slice.h"
#include "storage/engine/shard.h"

namespace helenus::storage {

using base::Result;
using runtime::Task;

namespace {

using MutationFileResult = Result<std::shared_ptr<const MutationFile>>;

// After so much of entries it asks whether its slice is over.
constexpr std::size_t kBytesPerLook = std::size_t{4} << 10;

}  // namespace

std::uint64_t Shard::mutation_file_bytes() const {
  std::uint64_t bytes = 0;
  for (const LiveMutationFile& each : mutation_files_) bytes += each.file->record.bytes;
  return bytes;
}

std::size_t Shard::mutation_dots_bytes() const {
  const auto bytes_of = [](const causality::Clock& dots) {
    std::size_t bytes = 0;
    for (const causality::Clock::Entry& entry : dots.entries()) {
      bytes += sizeof entry + entry.counters.ranges().size() * sizeof(causality::CounterRange);
    }
    return bytes;
  };
  std::size_t bytes = 0;
  for (const LiveMutationFile& each : mutation_files_) {
    for (const auto& [id, dots] : each.live) bytes += bytes_of(dots);
    for (const auto& [id, mutations] : each.file->metadata) bytes += bytes_of(mutations.dots);
  }
  return bytes;
}

Task<MutationFileResult> Shard::open_mutation_file(SstableRecord record) {
  auto file = std::make_shared<MutationFile>();
  CO_TRY(file->reader, co_await open_reader(record));
  auto metadata = decode_mutation_file_metadata(file->reader->metadata());
  if (!metadata) co_return std::move(metadata).error().within(path_of(record));
  file->metadata = *std::move(metadata);
  file->record = std::move(record);
  co_return file;
}

Task<Result<void>> Shard::open_mutation_files() {
  for (const SstableRecord& record : manifest_.mutation_files) {
    auto opened = co_await open_mutation_file(record);
    if (!opened && is_damage(opened.error())) {
      stop_tablets_in(record, opened.error());
      continue;
    }
    if (!opened) co_return std::move(opened).error();
    auto file = *std::move(opened);
    for (const auto& [id, mutations] : file->metadata) {
      Tablet* owner = tablet(id);
      if (owner == nullptr) continue;  // it was dropped
      // One that was dropped may have been made anew: what the earlier one saw is not this one's.
      const causality::Clock dots = causality::meet(mutations.dots, owner->clock);
      if (dots.empty()) continue;
      owner->mutations.found_in_file(dots);
      owner->floors.add(dots, mutations.largest);
      if (mutations.newest_operation != kNoOperation) {
        owner->operations.note(mutations.newest_operation);
      }
    }
    add_mutation_file(std::move(file));
  }
  co_return {};
}

// Its keys say of which tablets it may be; one that has seen nothing has nothing there.
void Shard::stop_tablets_in(const SstableRecord& mutation_file, const base::Error& why) {
  environment_.log.error("a mutation file cannot be opened", base::kv("error", why));
  unreadable_mutations_.push_back(mutation_file);
  const auto first = decode_mutation_key(mutation_file.key_first);
  const auto last = decode_mutation_key(mutation_file.key_last);
  for (const auto& [id, tablet] : tablets_) {
    if (tablet->clock.empty() || (first && id < first->tablet) || (last && last->tablet < id)) {
      continue;
    }
    tablet->lost_mutations = LostMutations{
        .among = tablet->clock,
        .why = base::Error(why.code(),
                           "{}; mutations of tablet {} that peers may need may be in it: drop the "
                           "tablet and make it anew",
                           why.context(), id)};
  }
}

bool Shard::needs_unreadable_mutations() const {
  return std::ranges::any_of(
      tablets_, [](const auto& tablet) { return tablet.second->lost_mutations.has_value(); });
}

void Shard::enter_unreadable_mutations(ManifestState& state) const {
  const auto is_unreadable = [&](const SstableRecord& record) {
    return std::ranges::find(unreadable_mutations_, record.number, &SstableRecord::number) !=
           unreadable_mutations_.end();
  };
  std::erase_if(state.mutation_files, is_unreadable);
  if (!needs_unreadable_mutations()) return;
  state.mutation_files.insert(state.mutation_files.end(), unreadable_mutations_.begin(),
                              unreadable_mutations_.end());
  std::ranges::sort(state.mutation_files, {}, &SstableRecord::number);
}

Task<void> Shard::remove_unreadable_mutations() {
  for (const SstableRecord& record : std::exchange(unreadable_mutations_, {})) {
    co_await remove_file(record);
  }
}

Task<Result<std::unique_ptr<SstableWriter>>> Shard::begin_mutation_file(SstableRecord& record,
                                                                        WriteThrottle* throttle,
                                                                        runtime::StopToken stop) {
  record.number = FileNumber{next_file_++};
  CO_TRY(record.directory, co_await choose_directory(record.number));
  // Nobody ever asks for a single dot.
  const SstableWriter::Options options{.block_bytes = environment_.options.block_bytes,
                                       .filter = {.kind = FilterKind::none},
                                       .throttle = throttle,
                                       .stop = std::move(stop)};
  auto writer = co_await SstableWriter::create(environment_.runtime, path_of(record), options);
  if (!writer) avoid_directory(record.directory, writer.error());
  co_return writer;
}

Task<MutationFileResult> Shard::finish_mutation_file(SstableRecord record,
                                                     std::unique_ptr<SstableWriter> writer,
                                                     MutationFileMetadata metadata) {
  CO_TRY(auto statistics, co_await writer->finish(encode(metadata)));
  auto settled = co_await finish_file(record, std::move(statistics));
  auto file = settled ? co_await open_mutation_file(*std::move(settled))
                      : MutationFileResult(std::move(settled).error());
  // The next try writes another one: this one would take its space in vain.
  if (!file) (void)co_await environment_.runtime.files.remove(path_of(record));
  co_return file;
}

Task<MutationFileResult> Shard::write_mutations(std::vector<TabletBatch> batches,
                                                FreezeNumber freeze, runtime::StopToken stop) {
  std::erase_if(batches, [](const TabletBatch& batch) { return batch.mutations.empty(); });
  if (batches.empty()) co_return nullptr;
  SstableRecord record{.number = {}, .freeze_first = freeze, .freeze_last = freeze};
  CO_TRY(auto writer, co_await begin_mutation_file(record, nullptr, std::move(stop)));
  MutationFileMetadata metadata;
  base::Buffer value;
  std::vector<IndexedOperation> index;
  for (const TabletBatch& batch : batches) {
    TabletMutations& entry = metadata[batch.tablet];
    for (const KeptMutation& mutation : batch.mutations) {
      entry.dots.add(mutation.dot);
      entry.largest = std::max(entry.largest, mutation.timestamp);
      if (mutation.operation) {
        const auto time = causality::time_of(*mutation.operation);
        entry.newest_operation = std::max(entry.newest_operation, time);
        index.push_back({batch.tablet, *mutation.operation, mutation.dot});
      }
      value.clear();
      encode_mutation_value(mutation.table, mutation.record, value);
      const MutationKey key = mutation_key(batch.tablet, mutation.dot);
      CO_TRY_VOID(co_await writer->add(mutation_row_key(key), value.view()));
    }
  }
  std::ranges::sort(index);
  for (const IndexedOperation& indexed : index) {
    const OperationKey key = operation_key(indexed);
    CO_TRY_VOID(co_await writer->add(operation_row_key(key), {}));
  }
  co_return co_await finish_mutation_file(record, std::move(writer), std::move(metadata));
}

Task<MutationFileResult> Shard::merge_mutations(
    std::vector<std::shared_ptr<const MutationFile>> inputs, WriteThrottle* throttle,
    runtime::StopToken stop) {
  SstableRecord record{.number = {},
                       .freeze_first = inputs.front()->record.freeze_first,
                       .freeze_last = inputs.front()->record.freeze_last};
  for (const auto& input : inputs) {
    record.freeze_first = std::min(record.freeze_first, input->record.freeze_first);
    record.freeze_last = std::max(record.freeze_last, input->record.freeze_last);
  }
  CO_TRY(auto writer, co_await begin_mutation_file(record, throttle, stop));
  MutationFileMetadata metadata;
  auto copied = co_await copy_kept(inputs, *writer, metadata, stop);
  if (!copied || metadata.empty()) {
    co_await writer->discard();
    if (!copied) co_return std::move(copied).error();
    co_return nullptr;
  }
  for (auto& [id, mutations] : metadata) {
    for (const auto& input : inputs) {
      const auto at = input->metadata.find(id);
      if (at == input->metadata.end()) continue;
      mutations.largest = std::max(mutations.largest, at->second.largest);
    }
  }
  co_return co_await finish_mutation_file(record, std::move(writer), std::move(metadata));
}

// An id is kept with its mutation, which was met before it.
Result<bool> Shard::keep_copied(base::ByteView key, MutationFileMetadata& metadata) {
  if (is_operation_key(key)) {
    TRY(const auto indexed, decode_operation_key(key));
    const auto at = metadata.find(indexed.tablet);
    if (at == metadata.end() || !at->second.dots.contains(indexed.dot)) return false;
    const auto time = causality::time_of(indexed.operation);
    at->second.newest_operation = std::max(at->second.newest_operation, time);
    return true;
  }
  TRY(const auto place, decode_mutation_key(key));
  const Tablet* owner = tablet(place.tablet);
  if (owner == nullptr || !owner->mutations.kept().contains(place.dot)) return false;
  metadata[place.tablet].dots.add(place.dot);
  return true;
}

Task<Result<void>> Shard::copy_kept(std::vector<std::shared_ptr<const MutationFile>> inputs,
                                    SstableWriter& writer, MutationFileMetadata& metadata,
                                    runtime::StopToken stop) {
  std::vector<std::unique_ptr<Cursor>> cursors;
  for (const auto& input : inputs) {
    cursors.push_back(input->reader->cursor({.cache_use = CacheUse::bypass}));
    CO_TRY_VOID(co_await cursors.back()->seek_first());
  }
  std::size_t step_bytes = 0;
  while (true) {
    std::erase_if(cursors, [](const auto& cursor) { return !cursor->valid(); });
    if (cursors.empty()) co_return {};
    const Cursor& least = **std::ranges::min_element(cursors, [](const auto& a, const auto& b) {
      return base::compare(a->key().bytes, b->key().bytes) < 0;
    });
    const base::Bytes key = base::Bytes::copy_of(least.key().bytes);
    CO_TRY(const bool is_kept, keep_copied(key, metadata));
    if (is_kept) CO_TRY_VOID(co_await writer.add(least.key(), least.value()));
    step_bytes += key.size() + least.value().size();
    // A start that was cut short may have left a mutation in two files.
    for (const auto& cursor : cursors) {
      if (base::equal(cursor->key().bytes, key)) CO_TRY_VOID(co_await cursor->next());
    }
    if (step_bytes < kBytesPerLook) continue;
    step_bytes = 0;
    CO_TRY_VOID(co_await end_slice(environment_.runtime, stop));
  }
}

Task<Result<void>> Shard::walk_operations(OperationScreen& screen) const {
  for (const LiveMutationFile& each : mutation_files_) {
    if (each.newest_operation() == kNoOperation) continue;
    const auto cursor = each.file->reader->cursor({.cache_use = CacheUse::bypass});
    CO_TRY_VOID(co_await cursor->seek(operations_begin()));
    while (cursor->valid()) {
      CO_TRY(const auto indexed, decode_operation_key(cursor->key().bytes));
      screen.remember(indexed.operation);
      CO_TRY_VOID(co_await cursor->next());
    }
  }
  co_return {};
}

causality::OperationTime LiveMutationFile::newest_operation() const {
  causality::OperationTime newest = kNoOperation;
  for (const auto& [id, dots] : live) {
    newest = std::max(newest, file->metadata.at(id).newest_operation);
  }
  return newest;
}

void Shard::add_mutation_file(std::shared_ptr<const MutationFile> file) {
  LiveMutationFile entry{.file = std::move(file), .live = {}};
  for (const auto& [id, mutations] : entry.file->metadata) {
    const Tablet* owner = tablet(id);
    if (owner == nullptr) continue;
    auto live = causality::subtract(causality::meet(mutations.dots, owner->clock),
                                    owner->mutations.stable());
    if (!live.empty()) entry.live.emplace(id, std::move(live));
  }
  const auto number = [](const LiveMutationFile& each) { return each.file->record.number; };
  const auto at = std::ranges::lower_bound(mutation_files_, entry.file->record.number, {}, number);
  mutation_files_.insert(at, std::move(entry));
  ++mutation_file_changes_;
}

void Shard::drop_mutation_file(FileNumber number) {
  mutations_aside_.erase(number);
  ++mutation_file_changes_;
  std::erase_if(mutation_files_,
                [&](const LiveMutationFile& each) { return each.file->record.number == number; });
}

Task<void> Shard::remove_mutation_file(std::shared_ptr<const MutationFile> file) {
  co_await remove_file(file->record);
}

bool Shard::collect_mutations(const Tablet& tablet) {
  bool changed = false;
  for (LiveMutationFile& each : mutation_files_) {
    const auto at = each.live.find(tablet.id);
    if (at == each.live.end()) continue;
    causality::Clock left = causality::subtract(at->second, tablet.mutations.stable());
    if (left == at->second) continue;
    changed = true;
    at->second = std::move(left);
    if (at->second.empty()) each.live.erase(at);
  }
  return changed;
}

}  // namespace helenus::storage
