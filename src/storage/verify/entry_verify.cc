#include "storage/verify/entry_verify.h"

#include <algorithm>
#include <optional>

#include "storage/entry/range_delete_key.h"
#include "storage/manifest/garbage.h"

namespace helenus::storage {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;

namespace {

// How deep a path is; nothing if it does not end as one does.
std::optional<RangeDepth> depth_of_path(ByteView path) {
  constexpr unsigned kEndOfEven = 0x80;
  constexpr unsigned kEndOfOdd = 0x08;
  const auto last = std::to_integer<unsigned>(path.back());
  const auto digits = static_cast<RangeDepth>(2 * (path.size() - 1));
  if (last == kEndOfEven && digits > 0) return digits;
  if ((last & 0x0f) == kEndOfOdd) return digits + 1;
  return std::nullopt;
}

bool begins_so(const std::optional<causality::RowKey>& bound, ByteView path, RangeDepth depth) {
  return bound && has_digits(*bound, depth) &&
         base::equal(base::as_bytes(range_path(*bound, depth)), path);
}

}  // namespace

Result<void> EntryVerifier::take(RowKey key, const base::Bytes& value) {
  if (key.partition_size >= key.bytes.size() ||
      std::to_integer<unsigned>(key.bytes[key.partition_size]) >
          static_cast<unsigned>(EntryKind::row)) {
    return Error(Errc::corrupt, "key {} is of no kind", base::to_hex(key.bytes, 64));
  }
  const auto at = [&](Error error) {
    return std::move(error).within(fmt::format("entry {}", base::to_hex(key.bytes, 64)));
  };
  auto entry = decode_entry(value);
  if (!entry) return at(std::move(entry).error());
  if (base::as_text(key.partition()) != partition_) {
    partition_.assign(base::as_text(key.partition()));
    has_own_ = false;
    depths_.clear();
  }
  const EntryKey parts = key_parts(key.bytes, key.partition_size);
  const bool of_row = parts.kind == EntryKind::row;
  if (entry->empty() || of_row == entry->holds_ranges()) {
    return at(Error(Errc::corrupt, "{} holds {}", of_row ? "a row" : "an entry of ranges",
                    entry->empty() ? "nothing" : "what is of the other kind"));
  }
  Garbage uncounted;
  cells_ += count_garbage(*entry, uncounted);
  if (of_row) return {};
  ++deleted_ranges_;
  if (auto taken = take_ranges(parts.clustering, *entry); !taken) {
    return at(std::move(taken).error());
  }
  return {};
}

Result<void> EntryVerifier::take_ranges(ByteView path, const Entry& entry) {
  if (path.empty()) {
    has_own_ = true;
    depths_.assign(entry.depths().begin(), entry.depths().end());
    return {};
  }
  const auto depth = depth_of_path(path);
  if (!depth) return Error(Errc::corrupt, "its path ends in no mark");
  if (!has_own_ || std::ranges::find(depths_, *depth) == depths_.end()) {
    return Error(Errc::corrupt, "its depth {} is not named under the partition's own key", *depth);
  }
  if (!entry.depths().empty()) return Error(Errc::corrupt, "depths are named under a path");
  for (const causality::RangeDelete& range_delete : entry.deleted_ranges()) {
    if (begins_so(range_delete.range.from, path, *depth) &&
        begins_so(range_delete.range.to, path, *depth)) {
      continue;
    }
    return Error(Errc::corrupt, "a range, {}, does not begin and end as its path",
                 range_delete.range);
  }
  return {};
}

Result<void> EntryVerifier::check_counts(const SstableMetadata& metadata) const {
  if (deleted_ranges_ != metadata.deleted_ranges) {
    return Error(Errc::corrupt, "states {} entries of ranges, the file has {}",
                 metadata.deleted_ranges, deleted_ranges_);
  }
  if (cells_ != metadata.cells) {
    return Error(Errc::corrupt, "states {} cells and ranges, the file has {}", metadata.cells,
                 cells_);
  }
  return {};
}

}  // namespace helenus::storage
