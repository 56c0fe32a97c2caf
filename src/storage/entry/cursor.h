// Cursor: a place in a sorted run of entries that can be moved in both directions. Memtables,
// sstables and merges of them offer the same one; contract/cursor_contract.h tests all alike.
//
//   CO_TRY_VOID(co_await cursor.seek(from));
//   while (cursor.valid()) {
//     ... cursor.key(), cursor.value() ...
//     CO_TRY_VOID(co_await cursor.next());
//   }
//
// A cursor stands on an entry, or nowhere: at first, after a motion past either end, and after an
// error. A motion waits only when something must be read, and allocates nothing otherwise. An error
// is never the end: a motion that could not read says so, and only a motion that succeeded and left
// the cursor invalid has shown that there is no entry.
//
// It sees its run as it was when the cursor was made, or newer where the run says so; files it
// needs stay readable though they be removed meanwhile.
// Core affinity: belongs to the core it was made on. One motion at a time.
#pragma once

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/maybe_task.h"
#include "storage/ids/row_key.h"

namespace helenus::storage {

class Cursor {
 public:
  using Motion = runtime::MaybeTask<base::Result<void>>;

  Cursor() = default;
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;
  virtual ~Cursor() = default;

  // To the first entry whose key is not below `key`. The key is borrowed until the motion is over.
  virtual Motion seek(base::ByteView key) = 0;
  // To the last entry whose key is below `key`. (At or below: append a zero byte to the key.)
  virtual Motion seek_before(base::ByteView key) = 0;
  virtual Motion seek_first() = 0;
  virtual Motion seek_last() = 0;
  // Both require: valid().
  virtual Motion next() = 0;
  virtual Motion previous() = 0;

  bool valid() const { return valid_; }
  // All below require valid(); views live until the cursor moves.
  RowKey key() const {
    ASSERT_SLOW(valid_);
    return key_;
  }
  base::ByteView value() const {
    ASSERT_SLOW(valid_);
    return value_;
  }
  // The value, sharing memory where it can, to be kept beyond the next motion.
  virtual base::Bytes share_value() const = 0;

 protected:
  void stand_on(RowKey key, base::ByteView value) {
    key_ = key;
    value_ = value;
    valid_ = true;
  }
  void stand_nowhere() { valid_ = false; }

 private:
  RowKey key_;
  base::ByteView value_;
  bool valid_ = false;
};

}  // namespace helenus::storage
