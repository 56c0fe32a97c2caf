// MutationFile: mutations of a shard's tablets that were not stable when their memtable was flushed
// (mutation_log.h), as an sstable of its own: sorted by tablet and dot, a record under each; and
// behind them an index of operation ids: sorted by tablet, id and dot.
// docs/formats/mutation-log.md.
//
// Its metadata says which dots it holds and, of each tablet, the largest timestamp: a start needs
// nothing else of it.
//
// A file is never changed. Its dots become stable one after the other and are then dead weight,
// until a merge leaves them out or the last one goes, and the file with it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <absl/container/btree_map.h>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/entry/cursor.h"
#include "storage/manifest/manifest.h"
#include "storage/mutations/mutation_log.h"
#include "storage/mutations/operation_hold.h"
#include "storage/sstable/sstable_reader.h"

namespace helenus::storage {

// What a file has of one tablet.
struct TabletMutations {
  causality::Clock dots;
  // The largest of an 'lww' table; kTimestampMin if there is none.
  causality::Timestamp largest = causality::kTimestampMin;
  // Of the newest operation id among them.
  causality::OperationTime newest_operation = kNoOperation;
  friend bool operator==(const TabletMutations&, const TabletMutations&) = default;
};
using MutationFileMetadata = absl::btree_map<TabletId, TabletMutations>;

base::Bytes encode(const MutationFileMetadata& metadata);
// Errors: corrupt; unsupported (another version, or the metadata of another kind of file).
base::Result<MutationFileMetadata> decode_mutation_file_metadata(const base::Bytes& bytes);

// The key of an entry: sorts as (tablet, dot) does.
inline constexpr std::size_t kMutationKeySize = 24;
using MutationKey = std::array<std::byte, kMutationKeySize>;
MutationKey mutation_key(TabletId tablet, causality::Dot dot);
struct TabletDot {
  TabletId tablet;
  causality::Dot dot;
  friend auto operator<=>(const TabletDot&, const TabletDot&) = default;
};
// Errors: corrupt.
base::Result<TabletDot> decode_mutation_key(base::ByteView key);
// As the sstable wants it: a partition is a tablet.
RowKey mutation_row_key(const MutationKey& key);

// The key of an entry of the index of operation ids, which has no value: sorts behind all
// mutations, as (tablet, operation, dot) does.
inline constexpr std::size_t kOperationKeySize = 48;
using OperationKey = std::array<std::byte, kOperationKeySize>;
struct IndexedOperation {
  TabletId tablet;
  causality::OperationId operation;
  causality::Dot dot;
  friend auto operator<=>(const IndexedOperation&, const IndexedOperation&) = default;
};
OperationKey operation_key(const IndexedOperation& indexed);
// Whether it is the key of the index and not of a mutation.
bool is_operation_key(base::ByteView key);
// Errors: corrupt.
base::Result<IndexedOperation> decode_operation_key(base::ByteView key);
RowKey operation_row_key(const OperationKey& key);
// The least key that an entry of the index has, and the least of an operation.
base::ByteView operations_begin();
OperationKey operation_begin(TabletId tablet, const causality::OperationId& operation);

// The value of an entry: the table, and the record.
void encode_mutation_value(TableId table, base::ByteView record, base::Buffer& out);
struct MutationValue {
  TableId table;
  base::Bytes record;  // shares the value's memory
};
// Errors: corrupt.
base::Result<MutationValue> decode_mutation_value(const base::Bytes& value);

struct MutationFile {
  SstableRecord record;
  MutationFileMetadata metadata;
  std::shared_ptr<SstableReader> reader;
};

// The dots that the file has under an operation id of the tablet, ascending; at most so many.
// Errors: corrupt, naming the file; io_error, timeout, cancelled.
inline constexpr std::size_t kAliasesMax = 64;
runtime::Task<base::Result<std::vector<causality::Dot>>> find_operation(
    std::shared_ptr<const MutationFile> file, TabletId tablet, causality::OperationId operation,
    runtime::Until until);

// Walks some dots of one tablet in a file, ascending. Keeps the file alive.
class MutationFileWalk {
 public:
  // Requires: the file holds every dot of `wanted`, none of which is a closed actor's.
  MutationFileWalk(std::shared_ptr<const MutationFile> file, TabletId tablet,
                   const causality::Clock& wanted, runtime::Until until);

  // To the first dot, and to the next. Errors: corrupt (a dot that the file's metadata names is not
  // there, or its entry is not whole), naming the file; io_error, timeout, cancelled.
  runtime::Task<base::Result<void>> next();
  // Where it stands; none before the first and behind the last. The timestamp is not known.
  const std::optional<KeptMutation>& current() const { return current_; }

 private:
  base::Error damaged(const char* what) const;

  std::shared_ptr<const MutationFile> file_;
  const TabletId tablet_;
  std::vector<causality::DotRange> ranges_;
  std::size_t range_ = 0;
  std::optional<causality::Dot> wanted_;
  std::unique_ptr<Cursor> cursor_;
  std::optional<KeptMutation> current_;
};

}  // namespace helenus::storage
