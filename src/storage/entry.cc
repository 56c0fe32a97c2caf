#include "storage/entry.h"

#include <utility>
#include <vector>

#include "causality/codec.h"

namespace helenus::storage {

using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint8_t kFormatVersion = 1;

}  // namespace

std::string encode_key(const EntryKey& key) {
  std::string bytes;
  bytes.reserve(key.partition.size() + 1 + key.clustering.size());
  bytes += base::as_text(key.partition);
  bytes += static_cast<char>(key.kind);
  bytes += base::as_text(key.clustering);
  return bytes;
}

EntryKey key_parts(base::ByteView bytes, std::size_t partition_size) {
  ASSERT(bytes.size() > partition_size);
  const auto kind = std::to_integer<std::uint8_t>(bytes[partition_size]);
  ASSERT(kind <= static_cast<std::uint8_t>(EntryKind::row), "kind {}", kind);
  return {.partition = bytes.first(partition_size),
          .kind = static_cast<EntryKind>(kind),
          .clustering = bytes.subspan(partition_size + 1)};
}

void Entry::clear() {
  row_.clear();
  if (!scopes_.empty()) scopes_ = {};
}

void Entry::absorb(const Entry& other) {
  row_.absorb(other.row_);
  scopes_.absorb(other.scopes_);
}

void Entry::absorb(Entry&& other) {
  row_.absorb(std::move(other.row_));
  if (scopes_.empty()) {
    scopes_ = std::move(other.scopes_);
  } else {
    scopes_.absorb(other.scopes_);
  }
}

void Entry::absorb(causality::Delta delta, causality::Policy policy) {
  if (delta.scopes.empty()) {
    row_.absorb(causality::row_fragment_of(std::move(delta), policy));
    return;
  }
  const causality::PartitionStore fragment = causality::fragment_of(delta, policy);
  for (const causality::ScopedStore& scoped : fragment.scoped()) scopes_.absorb(scoped);
}

void Entry::strip(const causality::Clock& known) {
  row_.strip(known);
  scopes_.strip(known);
}

void Entry::drop_stable_scopes(causality::Policy policy, const causality::Stability& stable) {
  causality::drop_stable(scopes_, policy, stable);
}

void Entry::settle_row(causality::Policy policy, const causality::Clock& known,
                       const causality::Stability& stable, const causality::PartitionStore& scopes,
                       base::ByteView clustering) {
  // Scopes that do not hold the row say nothing about it, and a partition may have very many.
  const auto key = scopes.empty() ? base::Bytes() : base::Bytes::copy_of(clustering);
  causality::PartitionStore partition;
  for (const causality::ScopedStore& scoped : scopes.scoped()) {
    if (scoped.scope.from && *scoped.scope.from > key) break;
    if (scoped.scope.contains(key)) partition.absorb(scoped);
  }
  if (partition.empty()) {
    std::vector<std::pair<causality::ColumnId, std::vector<causality::Dot>>> drops;
    for (const auto& [column, cell] : row_.cells()) {
      auto dots = causality::droppable(cell, policy, stable);
      if (!dots.empty()) drops.emplace_back(column, std::move(dots));
    }
    for (const auto& [column, dots] : drops) row_.forget(column, dots);
    row_.strip(known);
    return;
  }
  for (const auto& [column, cell] : row_.cells()) partition.absorb(key, column, cell);
  causality::drop_stable(partition, policy, stable);
  partition.strip(known);
  const auto at = partition.rows().find(key);
  row_ = at == partition.rows().end() ? causality::RowStore() : at->second;
}

void encode(base::Encoder& out, const Entry& entry) {
  ASSERT(entry.row_.empty() || entry.scopes_.empty(), "a row and scopes under one key");
  out.u8(kFormatVersion);
  out.varint(entry.scopes().size());
  if (entry.scopes().empty()) {
    causality::encode(out, entry.row_);
    return;
  }
  for (const causality::ScopedStore& scoped : entry.scopes()) {
    out.prefixed(causality::encoded(scoped));
  }
}

Result<Entry> decode_entry(const base::Bytes& bytes) {
  Entry entry;
  TRY_VOID(absorb_encoded(bytes, entry));
  return entry;
}

Result<void> absorb_encoded(const base::Bytes& bytes, Entry& entry) {
  base::Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kFormatVersion) {
    return Error(Errc::unsupported, "entry format {}", version);
  }
  const std::size_t scopes = in.count(1);
  TRY_VOID(in.status());
  if (scopes == 0) {
    if (entry.row_.empty()) return causality::decode_row_into(entry.row_, bytes.slice(in.offset()));
    causality::RowStore row;
    TRY_VOID(causality::decode_row_into(row, bytes.slice(in.offset())));
    entry.row_.absorb(std::move(row));
    return {};
  }
  causality::PartitionStore decoded;
  for (std::size_t index = 0; index < scopes; ++index) {
    const base::ByteView encoded = in.prefixed();
    TRY_VOID(in.status());
    const auto offset = static_cast<std::size_t>(encoded.data() - bytes.data());
    TRY(const auto scoped, causality::decode_scoped(bytes.slice(offset, encoded.size())));
    decoded.absorb(scoped);
  }
  TRY_VOID(in.finish());
  if (decoded.scoped().size() != scopes) return Error(Errc::corrupt, "a scope is there twice");
  if (entry.scopes_.empty()) {
    entry.scopes_ = std::move(decoded);
  } else {
    entry.scopes_.absorb(decoded);
  }
  return {};
}

}  // namespace helenus::storage
