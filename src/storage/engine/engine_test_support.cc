#include "storage/engine/engine_test_support.h"

#include <utility>

#include "causality/resolve.h"

namespace helenus::storage::testing {

using base::Bytes;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

causality::Mutation put_of(const std::string& row, const std::string& value, std::int64_t timestamp,
                           std::optional<causality::WallTime> expires) {
  causality::Mutation mutation;
  mutation.timestamp = causality::Timestamp{timestamp};
  causality::CellChange change;
  change.row = Bytes::copy_of(row);
  change.column = causality::ColumnId{0};
  change.expires = expires;
  change.value = Bytes::copy_of(value);
  mutation.cells.push_back(std::move(change));
  return mutation;
}

Task<Result<void>> EngineStory::open() {
  CO_TRY(engine_, co_await Engine::open(runtime_, options_));
  auto made = co_await engine_->create_table(kTable, {});
  if (!made && !made.failed_with(Errc::already_exists)) co_return made;
  made = co_await engine_->create_tablet(kTablet, {}, causality::actor_of(1, 1));
  if (!made && !made.failed_with(Errc::already_exists)) co_return made;
  co_return {};
}

Task<Result<causality::Delta>> EngineStory::put(std::string partition, std::string row,
                                                std::string value, Until until) {
  return engine_->write(kTable, kTablet, Bytes::copy_of(partition), put_of(row, value, ++time_),
                        causality::Epoch{1}, std::move(until));
}

std::string EngineStory::shown(const causality::PartitionStore& partition, const Bytes& row) const {
  const causality::CellStore cell = partition.cell(row, causality::ColumnId{0});
  std::string text;
  for (const causality::Version* version : causality::visible(cell, causality::Policy::lww, now)) {
    text += version->value.text();
  }
  return text;
}

Task<Result<std::string>> EngineStory::get(std::string partition, std::string row, TableId table) {
  const Bytes key = Bytes::copy_of(row);
  CO_TRY(const auto read, co_await engine_->read_row(table, kTablet, Bytes::copy_of(partition), key,
                                                     Until::forever()));
  co_return shown(read.partition, key);
}

Task<Result<Shown>> EngineStory::scan(TabletId tablet, TableId table) {
  CO_TRY(const auto cursor, engine_->cursor(table, tablet, {}));
  Shown forward;
  CO_TRY_VOID(co_await cursor->seek_first());
  while (cursor->valid()) {
    CO_TRY(const auto read, cursor->read());
    const Bytes row = Bytes::copy_of(cursor->row_key());
    const std::string text = shown(read, row);
    const std::string partition(base::as_text(cursor->partition()));
    if (!text.empty()) forward[partition + "/" + std::string(row.text())] = text;
    CO_TRY_VOID(co_await cursor->next());
  }
  CO_TRY_VOID(co_await cursor->seek_last());
  std::size_t backward = 0;
  while (cursor->valid()) {
    CO_TRY(const auto read, cursor->read());
    if (!shown(read, Bytes::copy_of(cursor->row_key())).empty()) ++backward;
    CO_TRY_VOID(co_await cursor->previous());
  }
  EXPECT_EQ(backward, forward.size());
  CO_TRY_VOID(co_await engine_->wait_durable(cursor->trace(), Until::forever()));
  co_return forward;
}

}  // namespace helenus::storage::testing
