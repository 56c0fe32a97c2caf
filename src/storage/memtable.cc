#include "storage/memtable.h"

#include <algorithm>
#include <limits>

#include "base/codec.h"
#include "causality/codec.h"

namespace helenus::storage {

namespace {

// The part of a delta that concerns one row.
causality::Delta restricted_to(const causality::Delta& delta,
                               std::span<const causality::CellChange> cells) {
  return {.dot = delta.dot,
          .context = delta.context,
          .timestamp = delta.timestamp,
          .operation = {},
          .cells = {cells.begin(), cells.end()},
          .scopes = {}};
}

}  // namespace

Memtable::Key::Key(base::ByteView bytes)
    : head(0), data(bytes.data()), size(static_cast<std::uint32_t>(bytes.size())) {
  if (bytes.size() >= sizeof head) {
    head = base::load_be<std::uint64_t>(data);
    return;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    head |= std::to_integer<std::uint64_t>(bytes[i]) << (56 - 8 * i);
  }
}

absl::weak_ordering Memtable::KeyOrder::operator()(const Key& a, const Key& b) const {
  // A short key is filled up with zeros: unequal heads prove everything, equal ones nothing.
  if (a.head != b.head) {
    return a.head < b.head ? absl::weak_ordering::less : absl::weak_ordering::greater;
  }
  const std::strong_ordering order = base::compare(a.view(), b.view());
  if (order == 0) return absl::weak_ordering::equivalent;
  return order < 0 ? absl::weak_ordering::less : absl::weak_ordering::greater;
}

void Memtable::apply(base::ByteView partition, const causality::Delta& delta,
                     base::ByteView encoded, std::uint64_t sequence) {
  ASSERT(!frozen_);
  if (!delta.scopes.empty()) has_scopes_ = true;
  const std::span<const causality::CellChange> cells = delta.cells;
  const bool one_row = !cells.empty() && cells.front().row == cells.back().row;
  if (one_row && delta.scopes.empty()) {
    add({partition, EntryKind::row, cells.front().row}, encoded, sequence);
    return;
  }
  if (cells.empty()) {
    add({partition, EntryKind::scopes, {}}, encoded, sequence);
    return;
  }
  for (auto first = cells.begin(); first != cells.end();) {
    const auto last = std::find_if(first, cells.end(), [&](const causality::CellChange& change) {
      return change.row != first->row;
    });
    const base::Bytes part = causality::encoded(restricted_to(delta, {first, last}));
    add({partition, EntryKind::row, first->row}, part, sequence);
    first = last;
  }
  if (!delta.scopes.empty()) {
    causality::Delta part = restricted_to(delta, {});
    part.scopes = delta.scopes;
    part.timestamp = causality::timestamp_of_scopes(delta);
    add({partition, EntryKind::scopes, {}}, causality::encoded(part), sequence);
  }
}

Entry Memtable::find(base::ByteView key) const {
  const auto at = keys_.find(Key(key));
  return at == keys_.end() ? Entry() : merge(at->second);
}

bool Memtable::contains_partition(base::ByteView partition) const {
  const auto at = keys_.lower_bound(Key(partition));
  return at != keys_.end() && base::as_text(at->first.view()).starts_with(base::as_text(partition));
}

void Memtable::add(const EntryKey& key, base::ByteView encoded, std::uint64_t sequence) {
  const std::string bytes = encode_key(key);
  auto at = keys_.lower_bound(Key(base::as_bytes(bytes)));
  if (at == keys_.end() || !base::equal(at->first.view(), base::as_bytes(bytes))) {
    const base::ByteView owned = arena_.copy(base::as_bytes(bytes));
    ++generation_;
    at = keys_.insert(
        at, {Key(owned), Chain{.partition = static_cast<std::uint32_t>(key.partition.size())}});
  }
  Chain& chain = at->second;
  push(chain, Form::delta, encoded);
  chain.sequence = sequence;
  if (chain.length <= kFragmentsPerKeyMax) return;
  base::Buffer merged;
  base::Encoder out(merged);
  encode(out, merge(chain));
  chain.newest = nullptr;
  chain.length = 0;
  push(chain, Form::merged, merged.view());
}

void Memtable::push(Chain& chain, Form form, base::ByteView encoded) {
  ASSERT(encoded.size() <= std::numeric_limits<std::uint32_t>::max());
  std::byte* memory = arena_.allocate(sizeof(Fragment) + encoded.size(), alignof(Fragment));
  const auto* fragment = ::new (memory) Fragment{
      .next = chain.newest, .size = static_cast<std::uint32_t>(encoded.size()), .form = form};
  std::memcpy(memory + sizeof(Fragment), encoded.data(), encoded.size());
  chain.newest = fragment;
  ++chain.length;
}

Entry Memtable::merge(const Chain& chain) const {
  Entry merged;
  for (const Fragment* at = chain.newest; at != nullptr; at = at->next) {
    const base::Bytes bytes = base::Bytes::copy_of(at->bytes());
    if (at->form == Form::delta) {
      auto delta = causality::decode_delta(bytes);
      ASSERT(delta.has_value(), "memory of ours: {}", delta.error().to_string());
      merged.absorb(*std::move(delta), policy_);
    } else {
      auto entry = decode_entry(bytes);
      ASSERT(entry.has_value(), "memory of ours: {}", entry.error().to_string());
      merged.absorb(*std::move(entry));
    }
  }
  return merged;
}

void Memtable::Cursor::stand_on(Keys::const_iterator at) {
  valid_ = at != memtable_->keys_.end();
  if (!valid_) return;
  at_ = at;
  generation_ = memtable_->generation_;
  key_ = at->first.view();
  partition_size_ = at->second.partition;
}

const Memtable::Chain& Memtable::Cursor::chain() const {
  return in_place() ? at_->second : memtable_->keys_.find(Key(key_))->second;
}

void Memtable::Cursor::seek_last() {
  const Keys& keys = memtable_->keys_;
  stand_on(keys.empty() ? keys.end() : std::prev(keys.end()));
}

void Memtable::Cursor::seek(base::ByteView key) {
  stand_on(memtable_->keys_.lower_bound(Key(key)));
}

void Memtable::Cursor::seek_before(base::ByteView key) {
  const auto at = memtable_->keys_.lower_bound(Key(key));
  stand_on(at == memtable_->keys_.begin() ? memtable_->keys_.end() : std::prev(at));
}

void Memtable::Cursor::next() {
  stand_on(in_place() ? std::next(at_) : memtable_->keys_.upper_bound(Key(key_)));
}

void Memtable::Cursor::previous() {
  seek_before(key_);
}

}  // namespace helenus::storage
