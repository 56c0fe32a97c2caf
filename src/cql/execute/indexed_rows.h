// IndexedRows: the rows that an index points at.
//
//   tablet by tablet: entries of the value ─▶ candidates, in the order of their keys
//                     ─▶ StoredRows of some of them ─▶ rows that match
//
// An entry is a hint (R23): every candidate is read as any row is, at the statement's level, and
// the whole WHERE clause is asked of it. So a row that is shown is one that a scan would show; and
// every row that a scan would show has an entry at every replica that has the row and whose index
// is built (storage/engine/table_indexer.h). Where no index can be asked, since it is not built
// yet or has too many entries to be sorted, the tablet is scanned instead.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/execute/row_stream.h"
#include "model/index_entries.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

class IndexedRows final : public RowStream {
 public:
  // Requires: runtime and coordinator outlive it; `request` has an index and does not go by keys.
  IndexedRows(runtime::Runtime& runtime, replication::Coordinator& coordinator,
              storage::TableId storage, storage::TableId index, RowRequest request);

  runtime::Task<base::Result<void>> fill(std::vector<Row>& rows, Amount amount) override;
  void skip_rest_of(const base::Bytes& partition) override;
  replication::LevelReport report() const override { return report_; }

 private:
  // How many entries of one value are read at a time.
  static constexpr std::size_t kEntriesAtOnce = 256;
  static constexpr std::size_t kBytesAtOnce = std::size_t{256} << 10;
  // How many entries of several values of a tablet are sorted at most.
  static constexpr std::size_t kEntriesSortedMax = 65'536;
  static constexpr std::size_t kBytesSortedMax = std::size_t{4} << 20;
  // How many tablets are asked at a time: at first one, then twice as many each time.
  static constexpr std::size_t kTabletsAtOnce = 32;
  static constexpr std::size_t kTabletsSortedAtOnce = 4;
  // How many candidates are read with one stream of rows.
  static constexpr std::size_t kCandidatesTogether = 64;

  // What a tablet's part of the index says, or why it does not.
  struct Entries {
    std::vector<model::IndexCandidate> candidates;
    std::optional<base::Bytes> next;  // the first one of the value that was not read
    bool are_too_many = false;        // to be sorted
    std::optional<base::Error> error;
  };

  // Sets rows_, or is at the end.
  runtime::Task<base::Result<void>> next_rows();
  // Of the tablet, from there on.
  runtime::Task<Entries> entries_of(std::size_t tablet, base::Bytes from);
  runtime::Task<base::Result<void>> read_entries(std::size_t tablet, base::Bytes from,
                                                 Entries& into);
  base::Result<void> add_candidates(replication::RangeCursor& cursor, Entries& into) const;
  // Of this tablet and those that follow.
  runtime::Task<void> look_ahead();
  // Takes over what the tablet says. Errors: those that no scan would be without.
  base::Result<void> take(Entries entries);
  bool is_wanted(const model::IndexCandidate& candidate) const;
  void scan_tablet();
  void read_candidates();
  RowRequest request_of_rows() const;
  storage::KeyRange tablet_wanted() const;
  void note(std::string activity) const;

  runtime::Runtime& runtime_;
  replication::Coordinator& coordinator_;
  const storage::TableId storage_;
  const storage::TableId index_;
  const RowRequest request_;
  const std::vector<storage::KeyRange> tablets_;
  std::size_t tablet_ = 0;
  bool tablet_is_begun_ = false;
  std::deque<Entries> ahead_;  // of the tablet and those that follow
  std::size_t tablets_at_once_ = 1;
  std::optional<base::Bytes> next_entry_;  // of the tablet
  std::deque<model::IndexCandidate> candidates_;
  // Of the last ones read that are more than one row: what lies in it was read with it.
  std::optional<base::Bytes> covered_;
  std::unique_ptr<StoredRows> rows_;
  // The last row that was shown.
  std::optional<RowPosition> last_;
  std::optional<base::Bytes> skipped_;
  replication::LevelReport report_;
};

}  // namespace helenus::cql
