#include "storage/manifest.h"

#include "base/codec.h"
#include "base/crc32c.h"
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

constexpr std::string_view kMagic = "HLNSMNFT";
constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kChecksumSize = 4;
// The least a record of each kind can take.
constexpr std::size_t kSstableSizeMin = 8;
constexpr std::size_t kTableSizeMin = 3;
constexpr std::size_t kTabletSizeMin = 4;

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

TableRecord get_table(Decoder& in) {
  TableRecord table;
  const std::uint8_t policy = in.u8();
  if (policy > static_cast<std::uint8_t>(causality::Policy::counter)) in.fail("unknown policy");
  table.policy = static_cast<causality::Policy>(policy);
  for (std::size_t left = in.count(kSstableSizeMin); left > 0 && in.ok(); --left) {
    SstableRecord file = get_sstable(in);
    if (!table.sstables.empty() && file.number <= table.sstables.back().number) {
      in.fail("files are out of order");
    }
    table.sstables.push_back(std::move(file));
  }
  return table;
}

Result<TabletRecord> get_tablet(Decoder& in) {
  const std::uint64_t node = in.varint();
  const std::uint64_t incarnation = in.varint();
  if (node > UINT32_MAX || incarnation > UINT32_MAX) in.fail("an actor is out of range");
  const base::ByteView encoded = in.prefixed();
  TRY_VOID(in.status());
  TRY(auto clock, causality::decode_clock(Bytes::copy_of(encoded)));
  return TabletRecord{.actor = causality::actor_of(static_cast<std::uint32_t>(node),
                                                   static_cast<std::uint32_t>(incarnation)),
                      .clock = std::move(clock)};
}

// The file without its frame: checked magic, version and checksum.
Result<base::ByteView> body_of(base::ByteView bytes) {
  const std::size_t head_size = kMagic.size() + 1;
  if (bytes.size() < head_size + kChecksumSize ||
      !base::equal(bytes.first(kMagic.size()), base::as_bytes(kMagic))) {
    return Error(Errc::corrupt, "does not begin with {}", kMagic);
  }
  // The version is read first: a later one may have another frame.
  const auto version = std::to_integer<std::uint8_t>(bytes[kMagic.size()]);
  if (version != kVersion) {
    return Error(Errc::unsupported, "version {}, this program reads version {}", version, kVersion);
  }
  const std::size_t covered = bytes.size() - kChecksumSize;
  if (base::load_le<std::uint32_t>(bytes.data() + covered) != base::crc32c(bytes.first(covered))) {
    return Error(Errc::corrupt, "checksum does not match");
  }
  return bytes.subspan(head_size, covered - head_size);
}

}  // namespace

Bytes encode(const ManifestState& state) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.raw(base::as_bytes(kMagic));
  out.u8(kVersion);
  out.varint(state.next_file.value());
  out.varint(state.next_freeze.value());
  out.varint(state.tables.size());
  for (const auto& [id, table] : state.tables) {
    out.varint(id.value());
    out.u8(static_cast<std::uint8_t>(table.policy));
    out.varint(table.sstables.size());
    for (const SstableRecord& file : table.sstables) put_sstable(out, file);
  }
  out.varint(state.tablets.size());
  for (const auto& [id, tablet] : state.tablets) {
    out.varint(id.value());
    out.varint(tablet.actor.node.value());
    out.varint(tablet.actor.incarnation.value());
    out.prefixed(causality::encoded(tablet.clock));
  }
  out.u32_le(base::crc32c(buffer.view()));
  return std::move(buffer).freeze();
}

Result<ManifestState> decode_manifest(const Bytes& bytes) {
  TRY(const auto body, body_of(bytes));
  Decoder in(body);
  ManifestState state;
  state.next_file = FileNumber{in.varint()};
  state.next_freeze = FreezeNumber{in.varint()};
  for (std::size_t left = in.count(kTableSizeMin); left > 0 && in.ok(); --left) {
    const ManifestTableId id{in.varint()};
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
  TRY_VOID(in.finish());
  for (const auto& [id, table] : state.tables) {
    for (const SstableRecord& file : table.sstables) {
      if (file.number >= state.next_file || file.freeze_last >= state.next_freeze) {
        return Error(Errc::corrupt, "file {} has a number that was not given yet", file.number);
      }
    }
  }
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
