#include "storage/manifest/knowledge.h"

#include "base/codec.h"
#include "causality/codec.h"

namespace helenus::storage {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;

namespace {

constexpr std::uint8_t kMetadataVersion = 1;
// A tablet's id, two clocks and whether there is a wall time.
constexpr std::size_t kTabletSizeMin = 4;
// A tablet's id, deletes, an empty histogram, increments and an empty clock.
constexpr std::size_t kGarbageSizeMin = 6;
// A tablet's id and an empty clock.
constexpr std::size_t kNamedSizeMin = 2;

Result<TabletKnowledge> get_tablet(base::Decoder& in) {
  const base::ByteView base = in.prefixed();
  const base::ByteView stable = in.prefixed();
  const std::uint8_t has_wall = in.u8();
  if (has_wall > 1) in.fail("a wall time is neither there nor not");
  TabletKnowledge knowledge;
  if (has_wall == 1) {
    knowledge.stable.wall = causality::WallTime{static_cast<std::int64_t>(in.u64_le())};
  }
  TRY_VOID(in.status());
  TRY(knowledge.base, causality::decode_clock(Bytes::copy_of(base)));
  TRY(knowledge.stable.dots, causality::decode_clock(Bytes::copy_of(stable)));
  return knowledge;
}

void put_garbage(base::Encoder& out, const GarbageByTablet& garbage) {
  out.varint(garbage.size());
  for (const auto& [tablet, each] : garbage) {
    out.varint(tablet.value());
    out.varint(each.deletes);
    encode(out, each.expiring);
    out.varint(each.increments);
    out.prefixed(causality::encoded(each.up_to));
  }
}

Result<GarbageByTablet> get_garbage(base::Decoder& in) {
  GarbageByTablet garbage;
  for (std::size_t left = in.count(kGarbageSizeMin); left > 0 && in.ok(); --left) {
    const TabletId tablet{in.varint()};
    if (!garbage.empty() && garbage.rbegin()->first >= tablet) in.fail("garbage is out of order");
    Garbage each;
    each.deletes = in.varint();
    each.expiring = decode_expiry_histogram(in);
    each.increments = in.varint();
    const base::ByteView up_to = in.prefixed();
    TRY_VOID(in.status());
    TRY(each.up_to, causality::decode_clock(Bytes::copy_of(up_to)));
    garbage.emplace_hint(garbage.end(), tablet, std::move(each));
  }
  return garbage;
}

Result<absl::btree_map<TabletId, causality::Clock>> get_named(base::Decoder& in) {
  absl::btree_map<TabletId, causality::Clock> named;
  for (std::size_t left = in.count(kNamedSizeMin); left > 0 && in.ok(); --left) {
    const TabletId tablet{in.varint()};
    if (!named.empty() && named.rbegin()->first >= tablet) in.fail("what is named is out of order");
    const base::ByteView above = in.prefixed();
    TRY_VOID(in.status());
    TRY(auto clock, causality::decode_clock(Bytes::copy_of(above)));
    named.emplace_hint(named.end(), tablet, std::move(clock));
  }
  return named;
}

}  // namespace

std::optional<causality::Clock> SstableMetadata::named(TabletId tablet) const {
  const auto above = named_above.find(tablet);
  if (above == named_above.end()) return std::nullopt;
  const auto known = at_last_freeze.find(tablet);
  if (known == at_last_freeze.end()) return above->second;
  return causality::join(known->second.base, above->second);
}

bool TabletKnowledge::covers(const TabletKnowledge& other) const {
  const bool wall = !other.stable.wall || (stable.wall && *stable.wall >= *other.stable.wall);
  return wall && base.covers(other.base) && stable.dots.covers(other.stable.dots);
}

Bytes encode(const SstableMetadata& metadata) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.u8(kMetadataVersion);
  out.varint(metadata.table.value());
  out.varint(metadata.freeze_first.value());
  out.varint(metadata.freeze_last.value());
  out.varint(metadata.deleted_ranges);
  out.varint(metadata.at_last_freeze.size());
  for (const auto& [tablet, knowledge] : metadata.at_last_freeze) {
    out.varint(tablet.value());
    out.prefixed(causality::encoded(knowledge.base));
    out.prefixed(causality::encoded(knowledge.stable.dots));
    out.u8(knowledge.stable.wall ? 1 : 0);
    if (knowledge.stable.wall) {
      out.u64_le(static_cast<std::uint64_t>(knowledge.stable.wall->value()));
    }
  }
  out.varint(metadata.cells);
  put_garbage(out, metadata.garbage);
  out.varint(metadata.named_above.size());
  for (const auto& [tablet, above] : metadata.named_above) {
    out.varint(tablet.value());
    out.prefixed(causality::encoded(above));
  }
  out.signed_varint(metadata.newest_write.value());
  out.u8(metadata.is_copy ? 1 : 0);
  return std::move(buffer).freeze();
}

Result<SstableMetadata> decode_sstable_metadata(const Bytes& bytes) {
  base::Decoder in(bytes);
  const std::uint8_t version = in.u8();
  if (in.ok() && version != kMetadataVersion) {
    return Error(Errc::unsupported, "sstable metadata of version {}", version);
  }
  SstableMetadata metadata;
  metadata.table = TableId{in.varint()};
  metadata.freeze_first = FreezeNumber{in.varint()};
  metadata.freeze_last = FreezeNumber{in.varint()};
  metadata.deleted_ranges = in.varint();
  if (metadata.freeze_last < metadata.freeze_first) in.fail("freezes are out of order");
  for (std::size_t left = in.count(kTabletSizeMin); left > 0 && in.ok(); --left) {
    const TabletId tablet{in.varint()};
    const auto& before = metadata.at_last_freeze;
    if (!before.empty() && before.rbegin()->first >= tablet) in.fail("tablets are out of order");
    TRY(auto knowledge, get_tablet(in));
    metadata.at_last_freeze.emplace_hint(metadata.at_last_freeze.end(), tablet,
                                         std::move(knowledge));
  }
  metadata.cells = in.varint();
  TRY(metadata.garbage, get_garbage(in));
  TRY(metadata.named_above, get_named(in));
  metadata.newest_write = causality::Timestamp{in.signed_varint()};
  const std::uint8_t is_copy = in.u8();
  if (is_copy > 1) in.fail("a file is neither a copy nor not");
  metadata.is_copy = is_copy == 1;
  TRY_VOID(in.finish());
  return metadata;
}

}  // namespace helenus::storage
