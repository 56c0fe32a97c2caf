#include "storage/manifest/manifest.h"

#include <algorithm>
#include <bit>

#include "base/codec.h"
#include "base/versioned_file.h"
#include "causality/codec.h"
#include "runtime/files.h"

namespace helenus::storage {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr base::FileFormat kFormat{.magic = "HLNSMNFT", .version = 2};
// Without the node.
constexpr base::FileFormat kFormatV1{.magic = "HLNSMNFT", .version = 1};
// The least a record of each kind can take.
constexpr std::size_t kSstableSizeMin = 8;
constexpr std::size_t kTableSizeMin = 6;
constexpr std::size_t kTabletSizeMin = 6;
constexpr std::size_t kPositionSizeMin = 4;
constexpr std::size_t kRangeSizeMin = 2;
constexpr std::size_t kSetAsideSizeMin = 2;

void put_sstable(Encoder& out, const SstableRecord& file) {
  out.varint(file.number.value());
  out.varint(file.directory);
  out.varint(file.bytes);
  out.varint(file.keys);
  out.varint(file.freeze_first.value());
  out.varint(file.freeze_last.value());
  out.prefixed(file.key_first);
  out.prefixed(file.key_last);
}

SstableRecord get_sstable(Decoder& in) {
  SstableRecord file;
  file.number = FileNumber{in.varint()};
  const std::uint64_t directory = in.varint();
  if (directory > UINT32_MAX) in.fail("a directory's number is too large");
  file.directory = static_cast<std::uint32_t>(directory);
  file.bytes = in.varint();
  file.keys = in.varint();
  file.freeze_first = FreezeNumber{in.varint()};
  file.freeze_last = FreezeNumber{in.varint()};
  file.key_first = Bytes::copy_of(in.prefixed());
  file.key_last = Bytes::copy_of(in.prefixed());
  if (file.freeze_last < file.freeze_first) in.fail("a file's freezes are out of order");
  if (file.key_last < file.key_first) in.fail("a file's keys are out of order");
  return file;
}

void put_flushed(Encoder& out, const FlushedLog& flushed) {
  out.varint(flushed.incarnation());
  out.varint(flushed.positions().size());
  for (const auto& [core, position] : flushed.positions()) {
    out.varint(core);
    out.varint(position.segment.incarnation);
    out.varint(position.segment.sequence);
    out.varint(position.offset);
  }
}

std::uint32_t get_u32(Decoder& in) {
  const std::uint64_t value = in.varint();
  if (value > UINT32_MAX) in.fail("a number is too large");
  return static_cast<std::uint32_t>(value);
}

FlushedLog get_flushed(Decoder& in) {
  FlushedLog flushed;
  flushed.add_before(get_u32(in));
  for (std::size_t left = in.count(kPositionSizeMin); left > 0 && in.ok(); --left) {
    const std::uint32_t core = get_u32(in);
    const std::uint32_t incarnation = get_u32(in);
    const std::uint32_t sequence = get_u32(in);
    const LogPosition position{{incarnation, sequence}, in.varint()};
    const auto& before = flushed.positions();
    if (!before.empty() && before.rbegin()->first >= core) in.fail("cores are out of order");
    if (incarnation < flushed.incarnation()) in.fail("a position is not ahead of its table");
    flushed.add(core, position);
  }
  return flushed;
}

// How large a table's filters are said to be.
enum class FilterSize : std::uint8_t { by_node, by_rate, by_bits };

void put_filter(Encoder& out, const std::optional<TableFilter>& filter) {
  out.u8(filter ? 1 : 0);
  if (!filter) return;
  out.u8(static_cast<std::uint8_t>(filter->kind));
  const auto put_size = [&](FilterSize size, double value) {
    out.u8(static_cast<std::uint8_t>(size));
    out.u64_le(std::bit_cast<std::uint64_t>(value));
  };
  if (filter->false_positive_rate) {
    put_size(FilterSize::by_rate, *filter->false_positive_rate);
  } else if (filter->bits_per_hash) {
    put_size(FilterSize::by_bits, *filter->bits_per_hash);
  } else {
    out.u8(static_cast<std::uint8_t>(FilterSize::by_node));
  }
}

std::optional<TableFilter> get_filter(Decoder& in) {
  const std::uint8_t own = in.u8();
  if (own > 1) in.fail("a filter is neither the table's nor the node's");
  if (own != 1) return std::nullopt;
  const std::uint8_t kind = in.u8();
  if (kind >= kFilterKinds.size()) {
    in.fail("unknown kind of filter");
    return std::nullopt;
  }
  TableFilter filter{.kind = kFilterKinds[kind]};
  const std::uint8_t size = in.u8();
  if (size > static_cast<std::uint8_t>(FilterSize::by_bits)) in.fail("a filter of unknown size");
  if (size != static_cast<std::uint8_t>(FilterSize::by_node)) {
    const bool is_rate = size == static_cast<std::uint8_t>(FilterSize::by_rate);
    (is_rate ? filter.false_positive_rate : filter.bits_per_hash) =
        std::bit_cast<double>(in.u64_le());
  }
  if (!validate(filter)) in.fail("a filter of a size that it cannot have");
  return filter;
}

TableOptions get_options(Decoder& in) {
  const std::uint8_t policy = in.u8();
  if (policy > static_cast<std::uint8_t>(causality::Policy::counter)) in.fail("unknown policy");
  const std::uint8_t compression = in.u8();
  if (compression > static_cast<std::uint8_t>(Compression::zstd)) in.fail("unknown compression");
  return {.policy = static_cast<causality::Policy>(policy),
          .compression = static_cast<Compression>(compression),
          .filter = get_filter(in)};
}

void put_files(Encoder& out, const std::vector<SstableRecord>& files) {
  out.varint(files.size());
  for (const SstableRecord& file : files) put_sstable(out, file);
}

std::vector<SstableRecord> get_files(Decoder& in) {
  std::vector<SstableRecord> files;
  for (std::size_t left = in.count(kSstableSizeMin); left > 0 && in.ok(); --left) {
    SstableRecord file = get_sstable(in);
    if (!files.empty() && file.number <= files.back().number) in.fail("files are out of order");
    files.push_back(std::move(file));
  }
  return files;
}

TableRecord get_table(Decoder& in) {
  TableRecord table;
  table.options = get_options(in);
  table.flushed = get_flushed(in);
  table.sstables = get_files(in);
  return table;
}

void put_range(Encoder& out, const KeyRange& range) {
  out.prefixed(range.from);
  out.u8(range.to ? 1 : 0);
  if (range.to) out.prefixed(*range.to);
}

KeyRange get_range(Decoder& in) {
  KeyRange range;
  range.from = Bytes::copy_of(in.prefixed());
  const std::uint8_t bounded = in.u8();
  if (bounded > 1) in.fail("a range is neither bounded nor not");
  if (bounded == 1) range.to = Bytes::copy_of(in.prefixed());
  if (range.to && *range.to <= range.from) in.fail("a range is empty");
  return range;
}

void put_ranges(Encoder& out, const std::vector<KeyRange>& ranges) {
  out.varint(ranges.size());
  for (const KeyRange& range : ranges) put_range(out, range);
}

std::vector<KeyRange> get_ranges(Decoder& in) {
  std::vector<KeyRange> ranges;
  for (std::size_t left = in.count(kRangeSizeMin); left > 0 && in.ok(); --left) {
    KeyRange range = get_range(in);
    const bool behind = ranges.empty() || (ranges.back().to && *ranges.back().to <= range.from);
    if (!behind) in.fail("ranges are out of order");
    ranges.push_back(std::move(range));
  }
  return ranges;
}

void put_tablet(Encoder& out, const TabletRecord& tablet) {
  put_range(out, tablet.range);
  out.varint(tablet.actor.node.value());
  out.varint(tablet.actor.incarnation.value());
  out.prefixed(causality::encoded(tablet.clock));
  out.prefixed(causality::encoded(tablet.shed));
  out.signed_varint(tablet.shed_largest.value());
  out.prefixed(causality::encoded(tablet.covered));
}

Result<TabletRecord> get_tablet(Decoder& in) {
  TabletRecord tablet;
  tablet.range = get_range(in);
  const std::uint32_t node = get_u32(in);
  tablet.actor = causality::actor_of(node, get_u32(in));
  const base::ByteView clock = in.prefixed();
  const base::ByteView shed = in.prefixed();
  tablet.shed_largest = causality::Timestamp{in.signed_varint()};
  const base::ByteView covered = in.prefixed();
  TRY_VOID(in.status());
  TRY(tablet.clock, causality::decode_clock(Bytes::copy_of(clock)));
  TRY(tablet.shed, causality::decode_clock(Bytes::copy_of(shed)));
  TRY(tablet.covered, causality::decode_clock(Bytes::copy_of(covered)));
  return tablet;
}

void put_reached(Encoder& out, const std::optional<LogReached>& reached) {
  out.u8(reached ? 1 : 0);
  if (!reached) return;
  out.varint(reached->core);
  out.varint(reached->position.segment.incarnation);
  out.varint(reached->position.segment.sequence);
  out.varint(reached->position.offset);
}

std::optional<LogReached> get_reached(Decoder& in) {
  const std::uint8_t has = in.u8();
  if (has > 1) in.fail("a position is neither there nor not");
  if (has != 1) return std::nullopt;
  LogReached reached{.core = get_u32(in), .position = {}};
  reached.position.segment.incarnation = get_u32(in);
  reached.position.segment.sequence = get_u32(in);
  reached.position.offset = in.varint();
  return reached;
}

Result<void> check_given(const ManifestState& state, const std::vector<SstableRecord>& files) {
  for (const SstableRecord& file : files) {
    if (file.number >= state.next_file || file.freeze_last >= state.next_freeze) {
      return Error(Errc::corrupt, "file {} has a number that was not given yet", file.number);
    }
  }
  return {};
}

}  // namespace

bool FlushedLog::contains(std::uint32_t core, LogPosition position) const {
  if (position.segment.incarnation < incarnation_) return true;
  const auto at = positions_.find(core);
  return at != positions_.end() && position < at->second;
}

void FlushedLog::add_before(std::uint32_t incarnation) {
  if (incarnation <= incarnation_) return;
  incarnation_ = incarnation;
  absl::erase_if(positions_,
                 [&](const auto& entry) { return entry.second.segment.incarnation < incarnation; });
}

void FlushedLog::add(std::uint32_t core, LogPosition position) {
  if (contains(core, position)) return;
  positions_[core] = position;
}

namespace {

constexpr std::size_t kIndexSizeMin = 4;

// Those tables that are indexes.
void put_indexes(Encoder& out, const ManifestState& state) {
  const auto is_index = [](const auto& table) { return table.second.options.index.has_value(); };
  out.varint(static_cast<std::uint64_t>(std::ranges::count_if(state.tables, is_index)));
  for (const auto& [id, table] : state.tables) {
    if (!table.options.index) continue;
    out.varint(id.value());
    out.varint(table.options.index->table.value());
    out.u8(table.index_is_built ? 1 : 0);
    out.prefixed(table.options.index->definition);
  }
}

void get_indexes(Decoder& in, ManifestState& state) {
  const std::size_t count = in.count(kIndexSizeMin);
  if (count == 0 && in.remaining() == 0) in.fail("that there are no indexes is written down");
  std::optional<TableId> previous;
  for (std::size_t left = count; left > 0 && in.ok(); --left) {
    const TableId id{in.varint()};
    const TableId of{in.varint()};
    const std::uint8_t built = in.u8();
    Bytes definition = Bytes::copy_of(in.prefixed());
    if (previous && id <= *previous) in.fail("indexes are out of order");
    if (built > 1) in.fail("an index is neither built nor not");
    previous = id;
    const auto table = state.tables.find(id);
    if (table == state.tables.end()) {
      in.fail("an index without a table");
      return;
    }
    table->second.options.index = IndexOf{.table = of, .definition = std::move(definition)};
    table->second.index_is_built = built == 1;
  }
}

}  // namespace

// ---- How files are merged ----

namespace {

constexpr std::size_t kStrategySizeMin = 9;
constexpr std::size_t kLevelSizeMin = 2;

bool has_own_strategy(const TableRecord& table) {
  return table.options.compaction != CompactionStrategy();
}

bool has_levels(const TableRecord& table) {
  return std::ranges::any_of(table.sstables, [](const auto& file) { return file.level > 0; });
}

bool has_compaction(const ManifestState& state) {
  return std::ranges::any_of(state.tables, [](const auto& table) {
    return has_own_strategy(table.second) || has_levels(table.second);
  });
}

void put_strategy(Encoder& out, const CompactionStrategy& strategy) {
  out.u8(static_cast<std::uint8_t>(strategy.rule));
  out.u8(strategy.enabled ? 1 : 0);
  out.varint(strategy.files_min);
  out.varint(strategy.files_max);
  out.varint(strategy.small_bytes ? *strategy.small_bytes + 1 : 0);
  out.varint(strategy.file_bytes);
  out.varint(strategy.fanout);
  out.varint(static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(strategy.window).count()));
}

CompactionStrategy get_strategy(Decoder& in) {
  CompactionStrategy strategy;
  const std::uint8_t rule = in.u8();
  if (rule > static_cast<std::uint8_t>(CompactionRule::time_window)) in.fail("unknown compaction");
  strategy.rule = static_cast<CompactionRule>(rule);
  const std::uint8_t enabled = in.u8();
  if (enabled > 1) in.fail("compaction is neither enabled nor not");
  strategy.enabled = enabled == 1;
  strategy.files_min = get_u32(in);
  strategy.files_max = get_u32(in);
  const std::uint64_t small = in.varint();
  if (small > 0) strategy.small_bytes = small - 1;
  strategy.file_bytes = in.varint();
  strategy.fanout = get_u32(in);
  const std::uint64_t seconds = in.varint();
  if (seconds > static_cast<std::uint64_t>(UINT32_MAX)) in.fail("a window is too long");
  strategy.window = std::chrono::seconds(static_cast<std::uint32_t>(seconds));
  if (in.ok() && !validate(strategy)) in.fail("a compaction that cannot be");
  return strategy;
}

// Of tables with a rule of their own, and of files above level 0.
void put_compaction(Encoder& out, const ManifestState& state) {
  const auto own = [](const auto& table) { return has_own_strategy(table.second); };
  out.varint(static_cast<std::uint64_t>(std::ranges::count_if(state.tables, own)));
  for (const auto& [id, table] : state.tables) {
    if (!has_own_strategy(table)) continue;
    out.varint(id.value());
    put_strategy(out, table.options.compaction);
  }
  std::vector<const SstableRecord*> leveled;
  for (const auto& [id, table] : state.tables) {
    for (const SstableRecord& file : table.sstables) {
      if (file.level > 0) leveled.push_back(&file);
    }
  }
  std::ranges::sort(leveled, {}, [](const SstableRecord* file) { return file->number; });
  out.varint(leveled.size());
  for (const SstableRecord* file : leveled) {
    out.varint(file->number.value());
    out.varint(file->level);
  }
}

void get_compaction(Decoder& in, ManifestState& state) {
  std::optional<TableId> previous;
  for (std::size_t left = in.count(kStrategySizeMin); left > 0 && in.ok(); --left) {
    const TableId id{in.varint()};
    if (previous && id <= *previous) in.fail("compactions are out of order");
    previous = id;
    const auto table = state.tables.find(id);
    if (table == state.tables.end()) {
      in.fail("a compaction without a table");
      return;
    }
    table->second.options.compaction = get_strategy(in);
    if (!has_own_strategy(table->second)) in.fail("the usual compaction is written down");
  }
  absl::btree_map<FileNumber, SstableRecord*> files;
  for (auto& [id, table] : state.tables) {
    for (SstableRecord& file : table.sstables) files.emplace(file.number, &file);
  }
  FileNumber last{0};
  for (std::size_t left = in.count(kLevelSizeMin); left > 0 && in.ok(); --left) {
    const FileNumber number{in.varint()};
    const std::uint32_t level = get_u32(in);
    const auto file = files.find(number);
    if (number <= last || file == files.end()) in.fail("levels of files that are not there");
    if (level == 0) in.fail("level 0 is written down");
    if (!in.ok()) return;
    last = number;
    file->second->level = level;
  }
}

}  // namespace

Result<void> validate(const CompactionStrategy& strategy) {
  const bool has_files = strategy.files_max == 0 || strategy.files_min <= strategy.files_max;
  if (strategy.files_min == 1 || !has_files) {
    return Error(Errc::invalid_argument, "{} to {} files are merged at once", strategy.files_min,
                 strategy.files_max);
  }
  if (strategy.file_bytes == 0 || strategy.fanout < 2 || strategy.fanout > 1000) {
    return Error(Errc::invalid_argument, "levels of files of {} bytes, each {} times as large",
                 strategy.file_bytes, strategy.fanout);
  }
  if (strategy.window < std::chrono::seconds(1)) {
    return Error(Errc::invalid_argument, "a window of less than a second");
  }
  return {};
}

Bytes encode(const ManifestState& state) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.varint(state.next_file.value());
  out.varint(state.next_freeze.value());
  out.varint(state.tables.size());
  for (const auto& [id, table] : state.tables) {
    out.varint(id.value());
    out.u8(static_cast<std::uint8_t>(table.options.policy));
    out.u8(static_cast<std::uint8_t>(table.options.compression));
    put_filter(out, table.options.filter);
    put_flushed(out, table.flushed);
    put_files(out, table.sstables);
  }
  out.varint(state.tablets.size());
  for (const auto& [id, tablet] : state.tablets) {
    out.varint(id.value());
    put_tablet(out, tablet);
  }
  put_files(out, state.mutation_files);
  put_ranges(out, state.dropped_ranges);
  out.varint(state.set_aside.size());
  for (const auto& [number, gone] : state.set_aside) {
    out.varint(number.value());
    put_ranges(out, gone);
  }
  out.varint(state.generation);
  put_reached(out, state.log_reached);
  out.raw(state.node.value_or(base::Uuid()).bytes());
  const bool has_indexes = std::ranges::any_of(
      state.tables, [](const auto& table) { return table.second.options.index.has_value(); });
  const bool has_merging = has_compaction(state);
  if (state.operation_floor > 0 || has_indexes || has_merging) out.varint(state.operation_floor);
  if (has_indexes || has_merging) put_indexes(out, state);
  if (has_merging) put_compaction(out, state);
  return base::encode_file(kFormat, buffer.view());
}

Result<ManifestState> decode_manifest(const Bytes& bytes) {
  const bool is_first = base::file_version(kFormat, bytes) == kFormatV1.version;
  TRY(const auto content, base::decode_file(is_first ? kFormatV1 : kFormat, bytes));
  Decoder in(content);
  ManifestState state;
  state.next_file = FileNumber{in.varint()};
  state.next_freeze = FreezeNumber{in.varint()};
  for (std::size_t left = in.count(kTableSizeMin); left > 0 && in.ok(); --left) {
    const TableId id{in.varint()};
    const bool ascending = state.tables.empty() || state.tables.rbegin()->first < id;
    if (!ascending) in.fail("tables are out of order");
    state.tables.emplace_hint(state.tables.end(), id, get_table(in));
  }
  for (std::size_t left = in.count(kTabletSizeMin); left > 0 && in.ok(); --left) {
    const TabletId id{in.varint()};
    const bool ascending = state.tablets.empty() || state.tablets.rbegin()->first < id;
    if (!ascending) in.fail("tablets are out of order");
    TRY(auto tablet, get_tablet(in));
    state.tablets.emplace_hint(state.tablets.end(), id, std::move(tablet));
  }
  state.mutation_files = get_files(in);
  state.dropped_ranges = get_ranges(in);
  for (std::size_t left = in.count(kSetAsideSizeMin); left > 0 && in.ok(); --left) {
    const FileNumber number{in.varint()};
    const bool ascending = state.set_aside.empty() || state.set_aside.rbegin()->first < number;
    if (!ascending) in.fail("files set aside are out of order");
    state.set_aside.emplace_hint(state.set_aside.end(), number, get_ranges(in));
  }
  state.generation = in.varint();
  state.log_reached = get_reached(in);
  if (!is_first) {
    const base::Uuid node = base::decode_uuid(in);
    if (node != base::Uuid()) state.node = node;
  }
  if (in.ok() && in.remaining() > 0) {
    state.operation_floor = in.varint();
    if (state.operation_floor == 0 && in.remaining() == 0) {
      in.fail("an absent floor is written down");
    }
  }
  if (in.ok() && in.remaining() > 0) get_indexes(in, state);
  if (in.ok() && in.remaining() > 0) {
    get_compaction(in, state);
    if (in.ok() && !has_compaction(state)) in.fail("that nothing is merged is written down");
  }
  TRY_VOID(in.finish());
  for (const auto& [id, table] : state.tables) TRY_VOID(check_given(state, table.sstables));
  TRY_VOID(check_given(state, state.mutation_files));
  return state;
}

runtime::Task<Result<ManifestState>> read_manifest(runtime::Runtime& runtime, std::string path) {
  CO_TRY(const auto bytes, co_await runtime::read_file(runtime, path, kManifestSizeMax));
  auto state = decode_manifest(bytes);
  if (!state) co_return std::move(state).error().within(path);
  co_return std::move(state);
}

runtime::Task<Result<void>> write_manifest(runtime::Runtime& runtime, std::string path,
                                           const ManifestState& state) {
  return runtime::replace_file(runtime, std::move(path), encode(state));
}

}  // namespace helenus::storage
