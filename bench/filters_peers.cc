#include "bench/filters_peers.h"

#include <rocksdb/filter_policy.h>
#include <rocksdb/slice.h>
#include <rocksdb/status.h>
#include <rocksdb/table.h>
#include <rocksdb/version.h>

#include "base/assert.h"

// RocksDB's public header names the two interfaces below and does not declare them: tables use
// them, users do not. What is declared here is their shape in the library, which a later version
// may change; `build` would not survive that unnoticed.
static_assert(ROCKSDB_MAJOR == 7 && ROCKSDB_MINOR == 8, "compare the interfaces with the library");

namespace rocksdb {

class FilterBitsBuilder {
 public:
  virtual ~FilterBitsBuilder() = default;
  virtual void AddKey(const Slice& key) = 0;
  virtual std::size_t EstimateEntriesAdded() = 0;
  virtual Slice Finish(std::unique_ptr<const char[]>* memory) = 0;
};

class FilterBitsReader {
 public:
  virtual ~FilterBitsReader() = default;
  virtual bool MayMatch(const Slice& key) = 0;
};

}  // namespace rocksdb

namespace helenus::bench {

namespace {

rocksdb::Slice slice_of(const std::uint64_t& key) {
  return {reinterpret_cast<const char*>(&key), sizeof key};
}

const rocksdb::FilterPolicy* new_policy(RocksDbFilter::Kind kind, double bits_per_key) {
  return kind == RocksDbFilter::Kind::bloom ? rocksdb::NewBloomFilterPolicy(bits_per_key)
                                            : rocksdb::NewRibbonFilterPolicy(bits_per_key);
}

}  // namespace

RocksDbFilter::RocksDbFilter(Kind kind, double bits_per_key)
    : policy_(new_policy(kind, bits_per_key)) {}

RocksDbFilter::~RocksDbFilter() = default;

void RocksDbFilter::build(std::uint64_t count) {
  rocksdb::BlockBasedTableOptions options;
  options.format_version = 5;
  const rocksdb::FilterBuildingContext context(options);
  const std::unique_ptr<rocksdb::FilterBitsBuilder> builder(
      policy_->GetBuilderWithContext(context));
  for (std::uint64_t key = 0; key < count; ++key) builder->AddKey(slice_of(key));
  ASSERT(builder->EstimateEntriesAdded() == count);
  const rocksdb::Slice filter = builder->Finish(&memory_);
  bytes_ = filter.size();
  reader_.reset(policy_->GetFilterBitsReader(filter));
  ASSERT(count == 0 || (contains(0) && contains(count - 1)));
}

bool RocksDbFilter::contains(std::uint64_t key) const {
  return reader_->MayMatch(slice_of(key));
}

}  // namespace helenus::bench
