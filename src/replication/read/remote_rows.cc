#include "replication/read/remote_rows.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::replication {

using base::Bytes;
using base::Result;
using runtime::Task;

namespace {

// The least key greater than this one.
Bytes just_behind(base::ByteView key) {
  base::Buffer buffer(key.size() + 1);
  buffer.append(key);
  buffer.push_back(std::byte{0});
  return std::move(buffer).freeze();
}

}  // namespace

Task<Result<void>> RemoteRows::fetch() {
  answer_.rows.clear();
  index_ = 0;
  ++trips_;
  CO_TRY(answer_, co_await fetch_(request_, until_));
  request_.rows_max = std::min(request_.rows_max * 2, kRowsMax);
  co_return {};
}

Task<Result<void>> RemoteRows::begin(RowsRequest::From from, bool backwards, Bytes partition,
                                     Bytes row) {
  request_.from = from;
  request_.backwards = backwards;
  request_.partition = std::move(partition);
  request_.row = std::move(row);
  request_.rows_max = request_.at_one_moment ? kRowsFirstTogether : kRowsFirst;
  if (std::exchange(expects_many_, false)) request_.rows_max = kRowsTogetherMax;
  return fetch();
}

Task<Result<void>> RemoteRows::seek(Bytes partition, Bytes row) {
  return begin(RowsRequest::From::row, false, std::move(partition), std::move(row));
}

Task<Result<void>> RemoteRows::seek_before(Bytes partition, Bytes row) {
  return begin(RowsRequest::From::row, true, std::move(partition), std::move(row));
}

Task<Result<void>> RemoteRows::seek_bound(Bytes bound) {
  return begin(RowsRequest::From::bound, false, std::move(bound), {});
}

Task<Result<void>> RemoteRows::seek_before_bound(Bytes bound) {
  return begin(RowsRequest::From::bound, true, std::move(bound), {});
}

Task<Result<void>> RemoteRows::seek_first() {
  return begin(RowsRequest::From::edge, false, {}, {});
}

Task<Result<void>> RemoteRows::seek_last() {
  return begin(RowsRequest::From::edge, true, {}, {});
}

RemoteRows::Motion RemoteRows::step(bool backwards) {
  ASSERT_SLOW(valid());
  const RowsAnswer::Row& row = answer_.rows[index_];
  if (request_.backwards != backwards) {
    return begin(RowsRequest::From::row, backwards, row.partition,
                 backwards ? row.row : just_behind(row.row));
  }
  if (index_ + 1 < answer_.rows.size() || !answer_.more) {
    ++index_;
    return Result<void>();
  }
  request_.from = RowsRequest::From::row;
  request_.partition = row.partition;
  request_.row = backwards ? row.row : just_behind(row.row);
  return fetch();
}

}  // namespace helenus::replication
