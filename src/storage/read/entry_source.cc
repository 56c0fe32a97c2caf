#include "storage/read/entry_source.h"

#include <string>
#include <utility>

namespace helenus::storage {

namespace {

// Nothing here ever waits: every motion is over when it returns.
class MemtableSource final : public EntrySource {
 public:
  explicit MemtableSource(std::shared_ptr<const Memtable> memtable)
      : memtable_(std::move(memtable)), cursor_(*memtable_) {}

  Motion seek(base::ByteView key) override {
    cursor_.seek(key);
    return base::Result<void>();
  }
  Motion seek_before(base::ByteView key) override {
    cursor_.seek_before(key);
    return base::Result<void>();
  }
  Motion next() override {
    cursor_.next();
    return base::Result<void>();
  }
  Motion previous() override {
    cursor_.previous();
    return base::Result<void>();
  }
  bool valid() const override { return cursor_.valid(); }
  RowKey key() const override {
    return {.bytes = cursor_.key(),
            .partition_size = static_cast<std::uint16_t>(cursor_.partition_size())};
  }
  std::uint64_t sequence() const override { return cursor_.sequence(); }
  base::Result<void> absorb_into(Entry& entry) const override {
    entry.absorb(cursor_.entry());
    return {};
  }

 private:
  std::shared_ptr<const Memtable> memtable_;
  Memtable::Cursor cursor_;
};

class SstableSource final : public EntrySource {
 public:
  SstableSource(std::unique_ptr<Cursor> cursor, std::string name)
      : cursor_(std::move(cursor)), name_(std::move(name)) {}

  Motion seek(base::ByteView key) override { return cursor_->seek(key); }
  Motion seek_before(base::ByteView key) override { return cursor_->seek_before(key); }
  Motion next() override { return cursor_->next(); }
  Motion previous() override { return cursor_->previous(); }
  bool valid() const override { return cursor_->valid(); }
  RowKey key() const override { return cursor_->key(); }
  base::Result<void> absorb_into(Entry& entry) const override {
    if (auto absorbed = absorb_encoded(cursor_->share_value(), entry); !absorbed) {
      return std::move(absorbed).error().within(
          fmt::format("{}: entry {}", name_, base::to_hex(cursor_->key().bytes, 64)));
    }
    return {};
  }

 private:
  std::unique_ptr<Cursor> cursor_;
  const std::string name_;
};

class FailingSource final : public EntrySource {
 public:
  explicit FailingSource(base::Error error) : error_(std::move(error)) {}

  Motion seek(base::ByteView /*key*/) override { return base::Result<void>(error_); }
  Motion seek_before(base::ByteView /*key*/) override { return base::Result<void>(error_); }
  Motion next() override { return base::Result<void>(error_); }
  Motion previous() override { return base::Result<void>(error_); }
  bool valid() const override { return false; }
  RowKey key() const override { return {}; }
  base::Result<void> absorb_into(Entry& /*entry*/) const override { return error_; }

 private:
  const base::Error error_;
};

}  // namespace

std::unique_ptr<EntrySource> entries_that_fail(base::Error error) {
  return std::make_unique<FailingSource>(std::move(error));
}

std::unique_ptr<EntrySource> entries_of(std::shared_ptr<const Memtable> memtable) {
  return std::make_unique<MemtableSource>(std::move(memtable));
}

std::unique_ptr<EntrySource> entries_of(std::unique_ptr<Cursor> cursor, std::string name) {
  return std::make_unique<SstableSource>(std::move(cursor), std::move(name));
}

}  // namespace helenus::storage
