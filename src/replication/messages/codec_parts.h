// What the codecs of messages about rows are made of (docs/formats/replication-messages.md).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/hash.h"
#include "base/result.h"
#include "causality/codec.h"
#include "replication/messages/messages.h"

namespace helenus::replication::codec {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using base::Error;
using base::Result;
using causality::CellChange;
using causality::ColumnId;
using causality::Mutation;
using causality::PartitionStore;
using causality::RowRange;
using causality::Timestamp;
using causality::WallTime;

inline constexpr std::uint8_t kFormatVersion = 1;
// Bits that say what follows.
inline constexpr std::uint8_t kHasContext = 1;
inline constexpr std::uint8_t kHasOperation = 2;
inline constexpr std::uint8_t kTimestampIsExplicit = 4;
inline constexpr std::uint8_t kIsRemembered = 8;
inline constexpr std::uint8_t kMutationBits = 15;

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
  void digest(const std::optional<base::Hash128>& digest) {
    flag(digest.has_value());
    if (!digest) return;
    out_.u64_le(digest->high);
    out_.u64_le(digest->low);
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
  std::optional<base::Hash128> digest() {
    if (!flag()) return std::nullopt;
    const std::uint64_t high = in_.u64_le();
    return base::Hash128{.high = high, .low = in_.u64_le()};
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

template <class T>
Result<T> finished(Reader& reader, T value) {
  TRY_VOID(reader.finish());
  return value;
}

}  // namespace helenus::replication::codec
