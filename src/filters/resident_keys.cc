#include "filters/resident_keys.h"

#include <utility>

#include "filters/envelope.h"

namespace helenus::filters {

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
