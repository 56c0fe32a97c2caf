// The bytes of messages about rows: docs/formats/replication-messages.md.
#include "base/codec.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "causality/codec.h"
#include "replication/messages/messages.h"

namespace helenus::rpc {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using base::Errc;
using base::Error;
using base::Result;
using causality::CellChange;
using causality::ColumnId;
using causality::Mutation;
using causality::PartitionStore;
using causality::RowRange;
using causality::Timestamp;
using causality::WallTime;
using namespace replication;  // NOLINT: the messages are its own

namespace {

constexpr std::uint8_t kFormatVersion = 1;
// Bits that say what follows.
constexpr std::uint8_t kHasContext = 1;
constexpr std::uint8_t kHasOperation = 2;
constexpr std::uint8_t kTimestampIsExplicit = 4;
constexpr std::uint8_t kIsRemembered = 8;
constexpr std::uint8_t kMutationBits = 15;

// Encodes one message.
class Writer {
 public:
  Writer() { out_.u8(kFormatVersion); }
  Encoder& out() { return out_; }
  Bytes finish() { return std::move(buffer_).freeze(); }

  void flag(bool value) { out_.u8(value ? 1 : 0); }
  void bytes(const Bytes& value) { out_.prefixed(value.view()); }
  template <class T>
  void nested(const T& value) {
    bytes(causality::encoded(value));
  }
  void maybe(const std::optional<Bytes>& value) {
    flag(value.has_value());
    if (value) bytes(*value);
  }
  void range(const RowRange& range) {
    maybe(range.from);
    maybe(range.to);
  }
  void expiry(const std::optional<WallTime>& time) {
    flag(time.has_value());
    if (time) out_.signed_varint(time->value());
  }
  void columns(const std::vector<ColumnId>& columns) {
    out_.varint(columns.size());
    for (const ColumnId column : columns) out_.varint(column.value());
  }
  void mutation(const Mutation& mutation) {
    std::uint8_t bits = 0;
    if (mutation.context) bits |= kHasContext;
    if (mutation.operation) bits |= kHasOperation;
    if (mutation.timestamp_is_explicit) bits |= kTimestampIsExplicit;
    if (mutation.remembered_until) bits |= kIsRemembered;
    out_.u8(bits);
    if (mutation.context) nested(*mutation.context);
    if (mutation.operation) out_.raw(*mutation.operation);
    out_.signed_varint(mutation.timestamp.value());
    if (mutation.remembered_until) out_.signed_varint(mutation.remembered_until->value());
    out_.varint(mutation.cells.size());
    for (const CellChange& cell : mutation.cells) {
      bytes(cell.row);
      out_.varint(cell.column.value());
      out_.u8(static_cast<std::uint8_t>(cell.kind));
      expiry(cell.expires);
      out_.signed_varint(cell.amount);
      bytes(cell.value);
    }
    out_.varint(mutation.deleted_ranges.size());
    for (const RowRange& each : mutation.deleted_ranges) range(each);
  }
  // Of a delta, without its cells and ranges.
  void head(const causality::Delta& delta) {
    out_.varint(delta.dot.actor.node.value());
    out_.varint(delta.dot.actor.incarnation.value());
    out_.varint(delta.dot.counter);
    out_.signed_varint(delta.timestamp.value());
    nested(delta.context);
  }
  void store(const PartitionStore& store) {
    out_.varint(store.rows().size());
    for (const auto& [row, cells] : store.rows()) {
      bytes(row);
      nested(cells);
    }
    out_.varint(store.range_deletes().size());
    for (const auto& range_delete : store.range_deletes()) nested(range_delete);
  }

 private:
  base::Buffer buffer_;
  Encoder out_{buffer_};
};

// Decodes one message. The first thing wrong is remembered, and everything after it means nothing.
class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes), in_(bytes.view()) {
    if (in_.u8() != kFormatVersion) in_.fail("a message of another format");
  }
  Decoder& in() { return in_; }
  bool ok() const { return in_.ok() && !error_; }
  Result<void> finish() {
    if (error_) return *std::move(error_);
    return in_.finish();
  }

  bool flag() {
    const std::uint8_t value = in_.u8();
    if (value > 1) in_.fail("a flag that is neither 0 nor 1");
    return value == 1;
  }
  // Shares the message's memory.
  Bytes bytes() {
    const base::ByteView view = in_.prefixed();
    if (!in_.ok()) return {};
    return bytes_.slice(in_.offset() - view.size(), view.size());
  }
  template <class T>
  T nested(Result<T> (*decode)(const Bytes&)) {
    const Bytes value = bytes();
    if (!ok()) return T();
    Result<T> decoded = decode(value);
    if (!decoded) {
      error_ = std::move(decoded).error();
      return T();
    }
    return *std::move(decoded);
  }
  std::optional<Bytes> maybe() {
    if (!flag()) return std::nullopt;
    return bytes();
  }
  RowRange range() {
    RowRange range;
    range.from = maybe();
    range.to = maybe();
    return range;
  }
  std::optional<WallTime> expiry() {
    if (!flag()) return std::nullopt;
    return WallTime{in_.signed_varint()};
  }
  std::uint32_t small() {
    const std::uint64_t value = in_.varint();
    if (value > std::numeric_limits<std::uint32_t>::max()) in_.fail("a number out of range");
    return static_cast<std::uint32_t>(value);
  }
  std::vector<ColumnId> columns() {
    std::vector<ColumnId> columns;
    for (std::size_t count = in_.count(1); count > 0 && ok(); --count) {
      columns.emplace_back(small());
    }
    return columns;
  }
  Mutation mutation() {
    Mutation mutation;
    const std::uint8_t bits = in_.u8();
    if ((bits & ~kMutationBits) != 0) in_.fail("bits of a mutation that mean nothing");
    if ((bits & kHasContext) != 0) mutation.context = nested(&causality::decode_context);
    if ((bits & kHasOperation) != 0) {
      causality::OperationId id{};
      const base::ByteView raw = in_.raw(id.size());
      if (ok()) std::ranges::copy(raw, id.begin());
      mutation.operation = id;
    }
    mutation.timestamp_is_explicit = (bits & kTimestampIsExplicit) != 0;
    mutation.timestamp = Timestamp{in_.signed_varint()};
    if ((bits & kIsRemembered) != 0) mutation.remembered_until = WallTime{in_.signed_varint()};
    constexpr std::size_t kCellBytesMin = 6;
    for (std::size_t count = in_.count(kCellBytesMin); count > 0 && ok(); --count) {
      CellChange cell;
      cell.row = bytes();
      cell.column = ColumnId{small()};
      const std::uint8_t kind = in_.u8();
      if (kind > static_cast<std::uint8_t>(causality::VersionKind::increment)) {
        in_.fail("a kind of version that there is not");
      }
      cell.kind = static_cast<causality::VersionKind>(kind);
      cell.expires = expiry();
      cell.amount = in_.signed_varint();
      cell.value = bytes();
      mutation.cells.push_back(std::move(cell));
    }
    for (std::size_t count = in_.count(2); count > 0 && ok(); --count) {
      mutation.deleted_ranges.push_back(range());
    }
    return mutation;
  }
  causality::Delta head() {
    causality::Delta delta;
    const std::uint32_t node = small();
    delta.dot.actor = causality::actor_of(node, small());
    delta.dot.counter = in_.varint();
    if (delta.dot.counter == 0 || delta.dot.counter > causality::kCounterMax) {
      in_.fail("a counter out of range");
    }
    delta.timestamp = Timestamp{in_.signed_varint()};
    delta.context = nested(&causality::decode_context);
    return delta;
  }
  PartitionStore store() {
    PartitionStore store;
    std::optional<Bytes> last;
    for (std::size_t count = in_.count(2); count > 0 && ok(); --count) {
      const Bytes row = bytes();
      if (last && row <= *last) in_.fail("rows out of order");
      last = row;
      auto cells = nested(&causality::decode_row);
      if (ok()) store.absorb(row, std::move(cells));
    }
    for (std::size_t count = in_.count(1); count > 0 && ok(); --count) {
      const auto range_delete = nested(&causality::decode_range_delete);
      if (ok()) store.absorb(range_delete);
    }
    return store;
  }
  storage::TableId table() { return storage::TableId{in_.varint()}; }
  storage::TabletId tablet() { return storage::TabletId{in_.varint()}; }
  causality::Epoch epoch() { return causality::Epoch{in_.varint()}; }

 private:
  const Bytes& bytes_;
  Decoder in_;
  std::optional<Error> error_;
};

void put(Writer& writer, const storage::RowRead& read) {
  writer.store(read.partition);
  writer.nested(read.clock);
  writer.out().signed_varint(read.floor.value());
  writer.out().signed_varint(read.wall.value());
  writer.flag(read.is_newer_than_clock);
}

storage::RowRead get_read(Reader& reader) {
  storage::RowRead read;
  read.partition = reader.store();
  read.clock = reader.nested(&causality::decode_clock);
  read.floor = Timestamp{reader.in().signed_varint()};
  read.wall = causality::WallTime{reader.in().signed_varint()};
  read.is_newer_than_clock = reader.flag();
  return read;
}

template <class T>
Result<T> finished(Reader& reader, T value) {
  TRY_VOID(reader.finish());
  return value;
}

}  // namespace

Bytes Codec<WriteMessage>::encode(const WriteMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().u16_le(static_cast<std::uint16_t>(message.level));
  writer.out().varint(message.write.table.value());
  writer.bytes(message.write.partition);
  writer.flag(message.write.explicit_timestamp);
  writer.flag(message.write.unites_clocks);
  writer.columns(message.write.columns.of_rows);
  writer.columns(message.write.columns.of_first);
  writer.mutation(message.write.mutation);
  return writer.finish();
}

Result<WriteMessage> Codec<WriteMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  WriteMessage message;
  message.epoch = reader.epoch();
  const auto level = model::consistency_from(reader.in().u16_le());
  if (!level) reader.in().fail("a consistency level that there is not");
  message.level = level.value_or(model::Consistency::one);
  message.write.table = reader.table();
  message.write.partition = reader.bytes();
  message.write.explicit_timestamp = reader.flag();
  message.write.unites_clocks = reader.flag();
  message.write.columns.of_rows = reader.columns();
  message.write.columns.of_first = reader.columns();
  message.write.mutation = reader.mutation();
  return finished(reader, std::move(message));
}

Bytes Codec<WriteReply>::encode(const WriteReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.minted);
  writer.flag(reply.met);
  writer.out().varint(reply.report.required);
  writer.out().varint(reply.report.received);
  writer.out().varint(reply.report.failed);
  writer.flag(reply.delta.has_value());
  if (reply.delta) writer.head(*reply.delta);
  return writer.finish();
}

Result<WriteReply> Codec<WriteReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  WriteReply reply;
  reply.minted = reader.flag();
  reply.met = reader.flag();
  reply.report.required = reader.small();
  reply.report.received = reader.small();
  reply.report.failed = reader.small();
  if (reader.flag()) reply.delta = reader.head();
  return finished(reader, reply);
}

Bytes Codec<ApplyMessage>::encode(const ApplyMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  writer.nested(message.delta);
  return writer.finish();
}

Result<ApplyMessage> Codec<ApplyMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ApplyMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  message.delta = reader.nested(&causality::decode_delta);
  return finished(reader, std::move(message));
}

Bytes Codec<ApplyReply>::encode(const ApplyReply&, ProtocolVersion) {
  return Writer().finish();
}

Result<ApplyReply> Codec<ApplyReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  return finished(reader, ApplyReply());
}

Bytes Codec<ReadMessage>::encode(const ReadMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.flag(message.at_one_moment);
  writer.out().varint(message.rows.size());
  for (const RowName& name : message.rows) {
    writer.bytes(name.partition);
    writer.bytes(name.row);
  }
  return writer.finish();
}

Result<ReadMessage> Codec<ReadMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ReadMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.at_one_moment = reader.flag();
  const std::size_t count = reader.in().count(2);
  if (count == 0 || count > ReadMessage::kRowsMax) reader.in().fail("too few or too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    RowName name;
    name.partition = reader.bytes();
    name.row = reader.bytes();
    message.rows.push_back(std::move(name));
  }
  return finished(reader, std::move(message));
}

Bytes Codec<ReadReply>::encode(const ReadReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().varint(reply.rows.size());
  for (const storage::RowRead& read : reply.rows) put(writer, read);
  return writer.finish();
}

Result<ReadReply> Codec<ReadReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ReadReply reply;
  constexpr std::size_t kReadBytesMin = 4;
  const std::size_t count = reader.in().count(kReadBytesMin);
  if (count > ReadMessage::kRowsMax) reader.in().fail("too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) reply.rows.push_back(get_read(reader));
  return finished(reader, std::move(reply));
}

Bytes Codec<ScanMessage>::encode(const ScanMessage& message, ProtocolVersion) {
  Writer writer;
  const RowsRequest& request = message.request;
  writer.out().varint(message.epoch.value());
  writer.out().varint(request.table.value());
  writer.bytes(request.partitions.from);
  writer.maybe(request.partitions.to);
  writer.out().u8(static_cast<std::uint8_t>(request.from));
  writer.bytes(request.partition);
  writer.bytes(request.row);
  writer.flag(request.backwards);
  writer.out().varint(request.rows_max);
  writer.flag(request.at_one_moment);
  return writer.finish();
}

Result<ScanMessage> Codec<ScanMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ScanMessage message;
  RowsRequest& request = message.request;
  message.epoch = reader.epoch();
  request.table = reader.table();
  request.partitions.from = reader.bytes();
  request.partitions.to = reader.maybe();
  const std::uint8_t from = reader.in().u8();
  if (from > static_cast<std::uint8_t>(RowsRequest::From::edge)) {
    reader.in().fail("a beginning that there is not");
  }
  request.from = static_cast<RowsRequest::From>(from);
  request.partition = reader.bytes();
  request.row = reader.bytes();
  request.backwards = reader.flag();
  const std::uint64_t rows_max = reader.in().varint();
  if (rows_max == 0 || rows_max > kAnswerRowsMax) reader.in().fail("too few or too many rows");
  request.rows_max = static_cast<std::size_t>(rows_max);
  request.at_one_moment = reader.flag();
  return finished(reader, std::move(message));
}

Bytes Codec<RowsAnswer>::encode(const RowsAnswer& answer, ProtocolVersion) {
  Writer writer;
  writer.nested(answer.clock);
  writer.flag(answer.more);
  writer.out().signed_varint(answer.wall.value());
  writer.flag(answer.is_newer_than_clock);
  writer.out().varint(answer.rows.size());
  for (const RowsAnswer::Row& row : answer.rows) {
    writer.bytes(row.partition);
    writer.bytes(row.row);
    writer.store(row.stored);
  }
  return writer.finish();
}

Result<RowsAnswer> Codec<RowsAnswer>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RowsAnswer answer;
  answer.clock = reader.nested(&causality::decode_clock);
  answer.more = reader.flag();
  answer.wall = causality::WallTime{reader.in().signed_varint()};
  answer.is_newer_than_clock = reader.flag();
  constexpr std::size_t kRowBytesMin = 4;
  const std::size_t count = reader.in().count(kRowBytesMin);
  if (count > kAnswerRowsMax) reader.in().fail("too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    RowsAnswer::Row row;
    row.partition = reader.bytes();
    row.row = reader.bytes();
    row.stored = reader.store();
    answer.rows.push_back(std::move(row));
  }
  return finished(reader, std::move(answer));
}

Bytes Codec<ClockMessage>::encode(const ClockMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  return writer.finish();
}

Result<ClockMessage> Codec<ClockMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ClockMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  return finished(reader, std::move(message));
}

Bytes Codec<ClockReply>::encode(const ClockReply& reply, ProtocolVersion) {
  Writer writer;
  writer.nested(reply.clock);
  writer.out().signed_varint(reply.floor.value());
  return writer.finish();
}

Result<ClockReply> Codec<ClockReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ClockReply reply;
  reply.clock = reader.nested(&causality::decode_clock);
  reply.floor = Timestamp{reader.in().signed_varint()};
  return finished(reader, std::move(reply));
}

Bytes Codec<RepairMessage>::encode(const RepairMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  writer.out().raw(message.to.value().bytes());
  writer.nested(message.clock);
  return writer.finish();
}

Result<RepairMessage> Codec<RepairMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RepairMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  base::Uuid::Octets node{};
  const base::ByteView raw = reader.in().raw(node.size());
  if (raw.size() == node.size()) std::ranges::copy(raw, node.begin());
  message.to = model::NodeId(base::Uuid(node));
  message.clock = reader.nested(&causality::decode_clock);
  return finished(reader, std::move(message));
}

Bytes Codec<RepairReply>::encode(const RepairReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().varint(reply.applied);
  writer.flag(reply.complete);
  return writer.finish();
}

Result<RepairReply> Codec<RepairReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RepairReply reply;
  reply.applied = reader.small();
  reply.complete = reader.flag();
  return finished(reader, reply);
}

// ---- Anti-entropy ----

Bytes Codec<AnnounceMessage>::encode(const AnnounceMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().signed_varint(message.wall.value());
  writer.out().varint(message.clocks.size());
  for (const AnnouncedClock& each : message.clocks) {
    writer.out().varint(each.tablet.value());
    writer.out().varint(each.epoch.value());
    writer.out().u64_le(each.life);
    writer.nested(each.clock);
  }
  return writer.finish();
}

Result<AnnounceMessage> Codec<AnnounceMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  AnnounceMessage message;
  message.wall = WallTime{reader.in().signed_varint()};
  constexpr std::size_t kClockBytesMin = 12;
  const std::size_t count = reader.in().count(kClockBytesMin);
  if (count == 0 || count > AnnounceMessage::kClocksMax) {
    reader.in().fail("too few or too many clocks");
  }
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    AnnouncedClock each;
    each.tablet = reader.tablet();
    each.epoch = reader.epoch();
    each.life = reader.in().u64_le();
    each.clock = reader.nested(&causality::decode_clock);
    if (i > 0 && each.tablet <= message.clocks.back().tablet)
      reader.in().fail("tablets disordered");
    message.clocks.push_back(std::move(each));
  }
  return finished(reader, std::move(message));
}

Bytes Codec<AnnounceReply>::encode(const AnnounceReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().varint(reply.known.size());
  for (const auto& life : reply.known) {
    writer.flag(life.has_value());
    if (life) writer.out().u64_le(*life);
  }
  return writer.finish();
}

Result<AnnounceReply> Codec<AnnounceReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  AnnounceReply reply;
  const std::size_t count = reader.in().count(1);
  if (count > AnnounceMessage::kClocksMax) reader.in().fail("too many clocks");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    std::optional<std::uint64_t> life;
    if (reader.flag()) life = reader.in().u64_le();
    reply.known.push_back(life);
  }
  return finished(reader, std::move(reply));
}

Bytes Codec<PullMessage>::encode(const PullMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().varint(message.epoch.value());
  writer.nested(message.clock);
  writer.out().varint(message.bytes_max);
  return writer.finish();
}

Result<PullMessage> Codec<PullMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  PullMessage message;
  message.tablet = reader.tablet();
  message.epoch = reader.epoch();
  message.clock = reader.nested(&causality::decode_clock);
  message.bytes_max = reader.in().varint();
  if (message.bytes_max == 0 || message.bytes_max > PullMessage::kBytesMax) {
    reader.in().fail("too few or too many bytes");
  }
  return finished(reader, std::move(message));
}

Bytes Codec<PullReply>::encode(const PullReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.complete);
  writer.nested(reply.withheld);
  writer.nested(reply.covered);
  writer.out().varint(reply.mutations.size());
  for (const PulledMutation& mutation : reply.mutations) {
    writer.out().varint(mutation.table.value());
    writer.bytes(mutation.partition);
    writer.bytes(mutation.delta);
  }
  return writer.finish();
}

Result<PullReply> Codec<PullReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  PullReply reply;
  reply.complete = reader.flag();
  reply.withheld = reader.nested(&causality::decode_clock);
  reply.covered = reader.nested(&causality::decode_clock);
  constexpr std::size_t kMutationBytesMin = 3;
  const std::size_t count = reader.in().count(kMutationBytesMin);
  if (count > PullReply::kMutationsMax) reader.in().fail("too many mutations");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    PulledMutation mutation;
    mutation.table = reader.table();
    mutation.partition = reader.bytes();
    mutation.delta = reader.bytes();
    reply.mutations.push_back(std::move(mutation));
  }
  return finished(reader, std::move(reply));
}

// ---- Streams of tablets ----

Bytes Codec<StreamOpenMessage>::encode(const StreamOpenMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().varint(message.epoch.value());
  return writer.finish();
}

Result<StreamOpenMessage> Codec<StreamOpenMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamOpenMessage message;
  message.tablet = reader.tablet();
  message.epoch = reader.epoch();
  return finished(reader, message);
}

Bytes Codec<StreamOpenReply>::encode(const StreamOpenReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().u64_le(reply.stream);
  writer.nested(reply.clock);
  writer.out().signed_varint(reply.floor.value());
  writer.out().signed_varint(reply.dropped_before.value());
  writer.out().varint(reply.tables.size());
  for (const StreamedTable& each : reply.tables) {
    writer.out().varint(each.table.value());
    writer.flag(each.has_entries);
  }
  return writer.finish();
}

Result<StreamOpenReply> Codec<StreamOpenReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamOpenReply reply;
  reply.stream = reader.in().u64_le();
  reply.clock = reader.nested(&causality::decode_clock);
  reply.floor = Timestamp{reader.in().signed_varint()};
  reply.dropped_before = WallTime{reader.in().signed_varint()};
  const std::size_t count = reader.in().count(2);
  if (count > StreamOpenReply::kTablesMax) reader.in().fail("too many tables");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    StreamedTable each;
    each.table = reader.table();
    each.has_entries = reader.flag();
    if (i > 0 && each.table <= reply.tables.back().table) reader.in().fail("tables disordered");
    reply.tables.push_back(each);
  }
  return finished(reader, std::move(reply));
}

Bytes Codec<StreamPageMessage>::encode(const StreamPageMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().u64_le(message.stream);
  writer.out().varint(message.table.value());
  writer.maybe(message.after);
  writer.out().varint(message.bytes_max);
  writer.flag(message.is_over);
  return writer.finish();
}

Result<StreamPageMessage> Codec<StreamPageMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamPageMessage message;
  message.tablet = reader.tablet();
  message.stream = reader.in().u64_le();
  message.table = reader.table();
  message.after = reader.maybe();
  message.bytes_max = reader.in().varint();
  message.is_over = reader.flag();
  if (message.bytes_max == 0 || message.bytes_max > StreamPageMessage::kBytesMax) {
    reader.in().fail("too few or too many bytes");
  }
  return finished(reader, std::move(message));
}

Bytes Codec<StreamPageReply>::encode(const StreamPageReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.complete);
  writer.out().varint(reply.entries.size());
  for (const StreamedEntry& each : reply.entries) {
    writer.bytes(each.key);
    writer.out().varint(each.partition_size);
    writer.bytes(each.entry);
  }
  return writer.finish();
}

Result<StreamPageReply> Codec<StreamPageReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamPageReply reply;
  reply.complete = reader.flag();
  constexpr std::size_t kEntryBytesMin = 5;
  const std::size_t count = reader.in().count(kEntryBytesMin);
  if (count > StreamPageReply::kEntriesMax) reader.in().fail("too many entries");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    StreamedEntry each;
    each.key = reader.bytes();
    const std::uint64_t partition_size = reader.in().varint();
    each.entry = reader.bytes();
    if (partition_size == 0 || partition_size >= each.key.size() ||
        each.key.size() > std::numeric_limits<std::uint16_t>::max()) {
      reader.in().fail("a key of the wrong size");
    }
    each.partition_size = static_cast<std::uint16_t>(partition_size);
    if (i > 0 && each.key <= reply.entries.back().key) reader.in().fail("keys disordered");
    reply.entries.push_back(std::move(each));
  }
  return finished(reader, std::move(reply));
}

}  // namespace helenus::rpc
