#include "causality/codec.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "causality/counter.h"

namespace helenus::causality {

namespace {

using base::Bytes;
using base::Decoder;
using base::Encoder;

// Flag bits. A bit not named here is zero, and a decoder refuses it otherwise.
enum ContextFlags : std::uint8_t { kHasFloor = 1 };
enum DeltaFlags : std::uint8_t { kHasOperation = 1, kIsRemembered = 2 };
enum VersionFlags : std::uint8_t {
  kKindMask = 3,
  kExpires = 4,
  kSameRow = 8,   // of a change
  kIsNamed = 16,  // of a version: an increment that keeps its operation id
  // Of a version: a delete of a counter, or an increment that was deleted.
  kIsRecord = 32,
};
// The fourth of the kinds that the bits of kKindMask have room for. No change has it.
constexpr std::uint8_t kTotal = 3;
enum RangeFlags : std::uint8_t { kHasFrom = 1, kHasTo = 2 };

// Reads fields out of a block and cuts byte strings from it without copying.
class Reader : public Decoder {
 public:
  explicit Reader(const Bytes& bytes) : Decoder(bytes.view()), bytes_(bytes) {}

  Bytes slice() {
    const base::ByteView view = prefixed();
    if (view.empty()) return {};
    return bytes_.slice(static_cast<std::size_t>(view.data() - bytes_.data()), view.size());
  }
  Bytes raw_slice(std::size_t size) {
    const base::ByteView view = raw(size);
    if (!ok()) return {};
    return bytes_.slice(static_cast<std::size_t>(view.data() - bytes_.data()), view.size());
  }
  std::uint8_t flags(std::uint8_t known) {
    const std::uint8_t bits = u8();
    if ((bits & ~known) != 0) fail("has unknown flags");
    return ok() ? bits : std::uint8_t{0};
  }
  std::uint32_t u32_varint() {
    const std::uint64_t value = varint();
    if (value > UINT32_MAX) fail("a 32-bit number is too large");
    return static_cast<std::uint32_t>(value);
  }

 private:
  const Bytes& bytes_;
};

// How many of `elements` to make room for before they are read. In memory an element takes up to
// thirty times its smallest encoding: a count that promises more than it keeps gets no more than
// this, and an honest one grows as its elements come.
std::size_t room_for(std::size_t elements) {
  constexpr std::size_t kAheadMax = 1024;
  return std::min(elements, kAheadMax);
}

void put_actor(Encoder& out, ActorId actor) {
  out.varint(actor.node.value());
  out.varint(actor.incarnation.value());
}
ActorId get_actor(Reader& in) {
  const NodeNumber node{in.u32_varint()};
  return {node, Incarnation{in.u32_varint()}};
}

void put_dot(Encoder& out, const Dot& dot) {
  put_actor(out, dot.actor);
  out.varint(dot.counter);
}
Dot get_dot(Reader& in) {
  const ActorId actor = get_actor(in);
  const Counter counter = in.varint();
  if (counter == 0 || counter > kCounterMax) in.fail("a counter is out of range");
  return {actor, counter};
}

// Ranges as the holes before them and their lengths, so that small gaps take small numbers. The
// head counts ranges and says whether the first one is a base, whose hole is then left out.
void put_counters(Encoder& out, const CounterSet& counters) {
  const auto ranges = counters.ranges();
  const bool has_base = ranges.front().first == 1;
  out.varint(ranges.size() * 2 + (has_base ? 1 : 0));
  Counter next = 1;
  bool first = true;
  for (const CounterRange& range : ranges) {
    if (!first || !has_base) out.varint(range.first - next - 1);
    out.varint(range.last - range.first);
    next = range.last + 1;
    first = false;
  }
}
CounterSet get_counters(Reader& in) {
  const std::uint64_t head = in.varint();
  // Nearly every actor is a base without a gap.
  if (head == 3) {
    const std::uint64_t more = in.varint();
    if (more < kCounterMax) return in.ok() ? CounterSet::up_to(more + 1) : CounterSet();
    in.fail("a range ends beyond the largest counter");
    return {};
  }
  const std::uint64_t ranges = head / 2;
  // A base takes a byte at least, any other range two.
  if (ranges == 0 || ranges > (in.remaining() + 1) / 2) {
    in.fail("counts more ranges than there are bytes for");
    return {};
  }
  CounterSet counters;
  Counter next = 1;
  bool at_base = (head & 1) != 0;
  for (std::uint64_t i = 0; i < ranges && in.ok(); ++i) {
    const std::uint64_t hole = at_base ? 0 : in.varint() + 1;
    const std::uint64_t more = in.varint();
    if ((!at_base && hole == 0) || hole > kCounterMax - next || more > kCounterMax - next - hole) {
      in.fail("a range ends beyond the largest counter");
      return {};
    }
    const Counter begin = next + hole;
    counters.insert({begin, begin + more});
    next = begin + more + 1;
    if (next > kCounterMax && i + 1 < ranges) in.fail("a range follows the largest counter");
    at_base = false;
  }
  return counters;
}

void put_clock(Encoder& out, const Clock& clock) {
  out.varint(clock.entries().size());
  for (const Clock::Entry& entry : clock.entries()) {
    put_actor(out, entry.actor);
    put_counters(out, entry.counters);
  }
  out.varint(clock.closed().size());
  for (const ClosedActors& closed : clock.closed()) {
    out.varint(closed.node.value());
    out.varint(closed.first.value());
    out.varint(closed.last.value() - closed.first.value());
  }
}
Clock get_clock(Reader& in) {
  Clock clock;
  std::optional<ActorId> previous;
  const std::size_t actors = in.count(4);
  clock.reserve(room_for(actors));
  for (std::size_t i = 0; i < actors && in.ok(); ++i) {
    const ActorId actor = get_actor(in);
    if (previous && !(*previous < actor)) in.fail("actors are out of order");
    CounterSet counters = get_counters(in);
    if (counters.base() == kCounterMax) in.fail("a closed actor is written as a range");
    if (in.ok()) clock.add(actor, std::move(counters));
    previous = actor;
  }
  std::optional<ClosedActors> last;
  const std::size_t closed = in.count(3);
  for (std::size_t i = 0; i < closed && in.ok(); ++i) {
    const NodeNumber node{in.u32_varint()};
    const std::uint32_t begin = in.u32_varint();
    const std::uint32_t more = in.u32_varint();
    if (more > UINT32_MAX - begin) in.fail("an incarnation is too large");
    const ClosedActors marks{node, Incarnation{begin}, Incarnation{begin + more}};
    const bool apart = !last || last->node < node ||
                       (last->node == node && std::uint64_t{last->last.value()} + 1 < begin);
    if (!apart) in.fail("closed marks are out of order");
    if (!in.ok()) break;
    const std::size_t before = clock.entries().size();
    clock.close(marks);
    if (clock.entries().size() != before) in.fail("an actor is both closed and not");
    last = marks;
  }
  return clock;
}

void put_context(Encoder& out, const Context& context) {
  out.u8(context.floor == kTimestampMin ? 0 : kHasFloor);
  out.varint(context.epoch.value());
  if (context.floor != kTimestampMin) out.signed_varint(context.floor.value());
  put_clock(out, context.dots);
}
Context get_context(Reader& in) {
  const std::uint8_t flags = in.flags(kHasFloor);
  Context context;
  context.epoch = Epoch{in.varint()};
  if ((flags & kHasFloor) != 0) {
    context.floor = Timestamp{in.signed_varint()};
    if (context.floor == kTimestampMin) in.fail("an absent floor is written down");
  }
  context.dots = get_clock(in);
  return context;
}

unsigned kind_bits(VersionKind kind) {
  switch (kind) {
    case VersionKind::total:
      return kTotal;
    case VersionKind::reset:
      return static_cast<unsigned>(VersionKind::deletion) | kIsRecord;
    case VersionKind::folded:
      return kTotal | kIsRecord;
    case VersionKind::dead:
      return static_cast<unsigned>(VersionKind::increment) | kIsRecord;
    default:
      return static_cast<unsigned>(kind);
  }
}
VersionKind kind_of(Reader& in, std::uint8_t flags) {
  const auto kind = static_cast<VersionKind>(flags & kKindMask);
  if ((flags & kIsRecord) == 0) {
    return (flags & kKindMask) == kTotal ? VersionKind::total : kind;
  }
  if ((flags & kKindMask) == kTotal) return VersionKind::folded;
  if (kind == VersionKind::deletion) return VersionKind::reset;
  if (kind != VersionKind::increment) in.fail("a record of neither a delete nor an increment");
  return VersionKind::dead;
}

// What versions and cell changes share: kind, expiry and what the kind carries.
template <class Cell>
std::uint8_t flags_of(const Cell& cell) {
  return static_cast<std::uint8_t>(kind_bits(cell.kind) | (cell.expires ? kExpires : 0U));
}
template <class Cell>
void put_content(Encoder& out, const Cell& cell) {
  if (cell.expires) out.signed_varint(cell.expires->value());
  if (cell.kind == VersionKind::value) out.prefixed(cell.value.view());
  if (adds_up(cell.kind)) out.signed_varint(cell.amount);
}
template <class Cell>
void get_content(Reader& in, std::uint8_t flags, Cell& cell) {
  cell.kind = kind_of(in, flags);
  if ((flags & kExpires) != 0) {
    if (cell.kind != VersionKind::value && cell.kind != VersionKind::deletion)
      in.fail("something of a counter expires");
    cell.expires = WallTime{in.signed_varint()};
  }
  if (cell.kind == VersionKind::value) cell.value = in.slice();
  if (adds_up(cell.kind)) cell.amount = in.signed_varint();
}

void put_cell(Encoder& out, const CellStore& cell) {
  out.varint(cell.versions().size());
  for (const Version& version : cell.versions()) {
    const bool is_named = (version.kind == VersionKind::increment && !version.value.empty()) ||
                          version.kind == VersionKind::dead;
    put_dot(out, version.dot);
    out.u8(static_cast<std::uint8_t>(flags_of(version) | (is_named ? kIsNamed : 0U)));
    out.signed_varint(version.timestamp.value());
    put_content(out, version);
    if (is_named) out.raw(version.value);
  }
  put_clock(out, cell.context());
}
CellStore get_cell(Reader& in) {
  Versions versions;
  const std::size_t count = in.count(5);
  versions.reserve(room_for(count));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    Version& version = versions.emplace_back();
    version.dot = get_dot(in);
    const std::uint8_t flags = in.flags(kKindMask | kExpires | kIsNamed | kIsRecord);
    version.timestamp = Timestamp{in.signed_varint()};
    get_content(in, flags, version);
    if (version.kind == VersionKind::dead && (flags & kIsNamed) == 0) in.fail("a name is missing");
    if ((flags & kIsNamed) != 0) {
      if (version.kind != VersionKind::increment && version.kind != VersionKind::dead)
        in.fail("a version that adds nothing has a name");
      version.value = in.raw_slice(sizeof(OperationId));
    }
    if (i > 0 && !(versions[i - 1].dot < version.dot)) in.fail("versions are out of order");
  }
  Clock context = get_clock(in);
  for (const Version& version : versions) {
    if (!is_record(version.kind) && context.contains(version.dot))
      in.fail("a version is in its own context");
  }
  if (!in.ok()) return {};
  return CellStore(std::move(versions), std::move(context));
}

void put_range(Encoder& out, const RowRange& row_range) {
  out.u8(
      static_cast<std::uint8_t>((row_range.from ? kHasFrom : 0U) | (row_range.to ? kHasTo : 0U)));
  if (row_range.from) out.prefixed(row_range.from->view());
  if (row_range.to) out.prefixed(row_range.to->view());
}
RowRange get_range(Reader& in) {
  const std::uint8_t flags = in.flags(kHasFrom | kHasTo);
  RowRange row_range;
  if ((flags & kHasFrom) != 0) row_range.from = in.slice();
  if ((flags & kHasTo) != 0) row_range.to = in.slice();
  if (row_range.from && row_range.to && !(*row_range.from < *row_range.to))
    in.fail("a range has no rows");
  return row_range;
}

void get_row(Reader& in, RowStore& row) {
  row.clear();
  std::optional<std::uint32_t> previous;
  const std::size_t count = in.count(4);
  row.reserve(room_for(count));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    const std::uint32_t column = in.u32_varint();
    if (previous && column <= *previous) in.fail("columns are out of order");
    previous = column;
    CellStore cell = get_cell(in);
    if (in.ok() && cell.empty()) in.fail("an empty cell is written down");
    row.absorb(ColumnId{column}, std::move(cell));
  }
}

void put_changes(Encoder& out, const std::vector<CellChange>& cells) {
  out.varint(cells.size());
  const CellChange* previous = nullptr;
  for (const CellChange& change : cells) {
    const bool same_row = previous != nullptr && previous->row == change.row;
    out.u8(static_cast<std::uint8_t>(flags_of(change) | (same_row ? kSameRow : 0U)));
    if (!same_row) out.prefixed(change.row.view());
    out.varint(change.column.value());
    put_content(out, change);
    previous = &change;
  }
}
std::vector<CellChange> get_changes(Reader& in) {
  std::vector<CellChange> cells;
  // A delete in the row of the one before takes no more.
  const std::size_t count = in.count(2);
  cells.reserve(room_for(count));
  for (std::size_t i = 0; i < count && in.ok(); ++i) {
    CellChange& change = cells.emplace_back();
    const CellChange* previous = i == 0 ? nullptr : &cells[i - 1];
    const std::uint8_t flags = in.flags(kKindMask | kExpires | kSameRow);
    const bool same_row = (flags & kSameRow) != 0;
    if (same_row && previous == nullptr) {
      in.fail("no row to repeat");
      break;
    }
    change.row = same_row ? previous->row : in.slice();
    change.column = ColumnId{in.u32_varint()};
    get_content(in, flags, change);
    if (change.kind == VersionKind::total) in.fail("a change of unknown kind");
    if (previous == nullptr) continue;
    const bool ascending = same_row ? previous->column < change.column : previous->row < change.row;
    if (!ascending) in.fail("cells are out of order");
  }
  return cells;
}

// Increments stand alone and supersede nothing; see mint.
bool mixes_increments(const Delta& delta) {
  const auto increments =
      std::ranges::count(delta.cells, VersionKind::increment, &CellChange::kind);
  if (increments == 0) return false;
  return std::cmp_not_equal(increments, delta.cells.size()) || !delta.deleted_ranges.empty() ||
         !delta.context.dots.empty();
}

Delta get_delta(Reader& in) {
  Delta delta;
  const std::uint8_t flags = in.flags(kHasOperation | kIsRemembered);
  delta.dot = get_dot(in);
  delta.timestamp = Timestamp{static_cast<std::int64_t>(in.u64_le())};
  if ((flags & kHasOperation) != 0) {
    const base::ByteView id = in.raw(sizeof(OperationId));
    if (in.ok()) std::ranges::copy(id, delta.operation.emplace().begin());
  }
  if ((flags & kIsRemembered) != 0) delta.remembered_until = WallTime{in.signed_varint()};
  delta.context = get_context(in);
  delta.cells = get_changes(in);
  const std::size_t deleted_ranges = in.count(1);
  for (std::size_t i = 0; i < deleted_ranges && in.ok(); ++i) {
    delta.deleted_ranges.push_back(get_range(in));
    if (i > 0 && !(delta.deleted_ranges[i - 1] < delta.deleted_ranges[i]))
      in.fail("ranges are out of order");
  }
  if (in.ok() && delta.cells.empty() && delta.deleted_ranges.empty())
    in.fail("a delta changes nothing");
  if (delta.remembered_until && delta.deleted_ranges.empty()) in.fail("no delete is remembered");
  if (delta.context.dots.contains(delta.dot)) in.fail("a dot is in its own context");
  if (mixes_increments(delta)) in.fail("increments beside something else");
  return delta;
}

base::Result<void> check_version(Reader& in) {
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kFormatVersion) {
    return base::Error(base::Errc::unsupported, "causality format {}", version);
  }
  return {};
}

template <class T>
base::Result<T> decode(const Bytes& bytes, T (*get)(Reader&)) {
  Reader in(bytes);
  TRY_VOID(check_version(in));
  T value = get(in);
  TRY_VOID(in.finish());
  return value;
}

}  // namespace

void encode(Encoder& out, const Clock& clock) {
  out.u8(kFormatVersion);
  put_clock(out, clock);
}
void encode(Encoder& out, const Context& context) {
  out.u8(kFormatVersion);
  put_context(out, context);
}
void encode(Encoder& out, const CellStore& cell) {
  out.u8(kFormatVersion);
  put_cell(out, cell);
}
void encode(Encoder& out, const RowStore& row) {
  out.u8(kFormatVersion);
  out.varint(row.cells().size());
  for (const auto& [column, cell] : row.cells()) {
    out.varint(column.value());
    put_cell(out, cell);
  }
}
void encode(Encoder& out, const RangeDelete& range_delete) {
  out.u8(kFormatVersion);
  put_range(out, range_delete.range);
  put_cell(out, range_delete.store);
}
void encode(Encoder& out, const Delta& delta) {
  out.u8(kFormatVersion);
  out.u8(static_cast<std::uint8_t>((delta.operation ? kHasOperation : 0U) |
                                   (delta.remembered_until ? kIsRemembered : 0U)));
  put_dot(out, delta.dot);
  out.u64_le(static_cast<std::uint64_t>(delta.timestamp.value()));
  if (delta.operation) out.raw(*delta.operation);
  if (delta.remembered_until) out.signed_varint(delta.remembered_until->value());
  put_context(out, delta.context);
  put_changes(out, delta.cells);
  out.varint(delta.deleted_ranges.size());
  for (const RowRange& row_range : delta.deleted_ranges) put_range(out, row_range);
}

base::Result<Clock> decode_clock(const Bytes& bytes) {
  return decode(bytes, &get_clock);
}
base::Result<Context> decode_context(const Bytes& bytes) {
  return decode(bytes, &get_context);
}
base::Result<CellStore> decode_cell(const Bytes& bytes) {
  return decode(bytes, &get_cell);
}
base::Result<RowStore> decode_row(const Bytes& bytes) {
  RowStore row;
  TRY_VOID(decode_row_into(row, bytes));
  return row;
}
base::Result<void> decode_row_into(RowStore& row, const Bytes& bytes) {
  Reader in(bytes);
  TRY_VOID(check_version(in));
  get_row(in, row);
  return in.finish();
}
base::Result<RangeDelete> decode_range_delete(const Bytes& bytes) {
  return decode<RangeDelete>(bytes, [](Reader& in) {
    RowRange row_range = get_range(in);
    return RangeDelete{std::move(row_range), get_cell(in)};
  });
}
base::Result<Delta> decode_delta(const Bytes& bytes) {
  return decode(bytes, &get_delta);
}

}  // namespace helenus::causality
