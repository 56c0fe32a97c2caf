// EntrySource: a sorted run of entries, moved through in both directions: a memtable, an sstable,
// or the merge of several. What Cursor (cursor.h) is to bytes, this is to entries: the value is
// merged or decoded only when somebody asks for it.
#pragma once

#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "storage/entry/cursor.h"
#include "storage/entry/entry.h"
#include "storage/ids/row_key.h"
#include "storage/memtable/memtable.h"

namespace helenus::storage {

class EntrySource {
 public:
  using Motion = Cursor::Motion;

  EntrySource() = default;
  EntrySource(const EntrySource&) = delete;
  EntrySource& operator=(const EntrySource&) = delete;
  virtual ~EntrySource() = default;

  // As Cursor's. A key is borrowed until the motion is over.
  virtual Motion seek(base::ByteView key) = 0;
  virtual Motion seek_before(base::ByteView key) = 0;
  virtual Motion next() = 0;
  virtual Motion previous() = 0;

  virtual bool valid() const = 0;
  // Both require valid(). The key lives until the source moves.
  virtual RowKey key() const = 0;
  // The newest write among what it has under the key, as memtables number them; zero for what is
  // durable for sure.
  virtual std::uint64_t sequence() const { return 0; }
  // Merges what the source has under the key into `entry`.
  // Errors: corrupt, unsupported, naming where the bytes came from.
  virtual base::Result<void> absorb_into(Entry& entry) const = 0;
};

// The entries of a memtable, which it keeps alive. Writes that come meanwhile may be seen.
std::unique_ptr<EntrySource> entries_of(std::shared_ptr<const Memtable> memtable);

// The entries of an sstable; `name` is what errors call it.
std::unique_ptr<EntrySource> entries_of(std::unique_ptr<Cursor> cursor, std::string name);

// Those of a file that cannot be read: every motion is this error.
std::unique_ptr<EntrySource> entries_that_fail(base::Error error);

}  // namespace helenus::storage
