#include "filters/resident_keys.h"

#include <utility>

#include "filters/envelope.h"
#include "filters/filter.h"

namespace helenus::filters {

base::Result<ResidentKeys> ResidentKeys::for_slots(std::uint64_t slot_count) {
  if (slot_count == 0 || slot_count > kTableBytesMax / kEntryBytes) {
    return base::Error(base::Errc::invalid_argument, "resident keys of {} slots", slot_count);
  }
  TRY(Table table, Table::zeroed(slot_count * kEntryBytes));
  return ResidentKeys(std::move(table));
}

base::Bytes ResidentKeys::encode() const {
  return seal({.kind = Kind::resident_keys,
               .width = 8 * kEntryBytes,
               .capacity = slot_count(),
               .units = slot_count()},
              table_.view());
}

base::Result<ResidentKeys> ResidentKeys::decode(const base::Bytes& encoded) {
  TRY(Opened opened, unseal(encoded, Kind::resident_keys));
  const Envelope expected{.kind = Kind::resident_keys,
                          .width = 8 * kEntryBytes,
                          .capacity = opened.body.size() / kEntryBytes,
                          .units = opened.body.size() / kEntryBytes};
  if (opened.body.empty() || opened.body.size() % kEntryBytes != 0 || opened.envelope != expected) {
    return base::Error(base::Errc::corrupt, "{} bytes for {} resident keys", opened.body.size(),
                       opened.envelope.units);
  }
  return ResidentKeys(Table::viewing(std::move(opened.body)));
}

}  // namespace helenus::filters
