// RemoteRows: a cursor over a tablet that another core has, or other nodes. It reads as
// storage::TableCursor does, but some rows at a time: each trip brings the next ones, more of them
// each time, up to a limit.
//
// A trip opens a cursor over there, so nothing is kept there between trips: a reader that goes away
// leaves nothing behind. What a trip brings may be shown.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "base/bytes.h"
#include "base/result.h"
#include "replication/request/rows_request.h"
#include "runtime/operation.h"
#include "runtime/task.h"
#include "storage/read/table_cursor.h"

namespace helenus::replication {

class RemoteRows {
 public:
  using Motion = storage::TableCursor::Motion;

  // The first trip is for few rows: many readers want no more.
  static constexpr std::size_t kRowsFirst = 16;
  static constexpr std::size_t kRowsMax = 256;
  // The first one for rows that belong together, when nobody knows how many they are.
  static constexpr std::size_t kRowsFirstTogether = 64;
  // Those that belong together come together, if they are not of too many bytes.
  static constexpr std::size_t kRowsTogetherMax = 65536;

  // A trip. The request stays where it is until it has ended.
  using Fetch = std::function<runtime::Task<base::Result<RowsAnswer>>(const RowsRequest& request,
                                                                      runtime::Until until)>;

  // `until` ends all trips.
  RemoteRows(Fetch fetch, RowsRequest request, runtime::Until until)
      : fetch_(std::move(fetch)), request_(std::move(request)), until_(std::move(until)) {}
  RemoteRows(const RemoteRows&) = delete;
  RemoteRows& operator=(const RemoteRows&) = delete;

  // As TableCursor's, but rows outside of the request's partitions are none.
  runtime::Task<base::Result<void>> seek(base::Bytes partition, base::Bytes row);
  runtime::Task<base::Result<void>> seek_before(base::Bytes partition, base::Bytes row);
  runtime::Task<base::Result<void>> seek_bound(base::Bytes bound);
  runtime::Task<base::Result<void>> seek_before_bound(base::Bytes bound);
  runtime::Task<base::Result<void>> seek_first();
  runtime::Task<base::Result<void>> seek_last();
  Motion next() { return step(false); }
  Motion previous() { return step(true); }

  // How many trips there were.
  std::uint64_t trips() const { return trips_; }
  // The next seek is for many rows that belong together.
  void expect_many() { expects_many_ = true; }

  bool valid() const { return index_ < answer_.rows.size(); }
  base::ByteView partition() const { return answer_.rows[index_].partition; }
  base::ByteView row_key() const { return answer_.rows[index_].row; }
  const causality::PartitionStore& stored() const { return answer_.rows[index_].stored; }
  const causality::Clock& clock() const { return answer_.clock; }
  causality::WallTime wall() const { return answer_.wall; }

 private:
  Motion step(bool backwards);
  runtime::Task<base::Result<void>> begin(RowsRequest::From from, bool backwards,
                                          base::Bytes partition, base::Bytes row);
  runtime::Task<base::Result<void>> fetch();

  const Fetch fetch_;
  RowsRequest request_;
  const runtime::Until until_;
  RowsAnswer answer_;
  std::size_t index_ = 0;
  std::uint64_t trips_ = 0;
  bool expects_many_ = false;
};

}  // namespace helenus::replication
