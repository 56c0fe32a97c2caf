#include "replication/cluster/stream_feed.h"

#include <algorithm>
#include <utility>

#include "runtime/sleep.h"

namespace helenus::replication {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;
using storage::Entry;

StreamFeed::StreamFeed(ClusterLink& link, model::NodeId from, storage::TabletId tablet,
                       storage::KeyRange range, StreamOpenReply opened, StreamFeedOptions options,
                       runtime::StopToken stop, Received received)
    : link_(link),
      from_(from),
      tablet_(tablet),
      range_(std::move(range)),
      stream_(opened.stream),
      options_(options),
      stop_(std::move(stop)),
      received_(std::move(received)),
      claim_{.clock = std::move(opened.clock),
             .floor = opened.floor,
             .dropped_before = opened.dropped_before,
             .newest_operation = opened.newest_operation,
             .tables = {}} {
  for (const StreamedTable& each : opened.tables) {
    claim_.tables.push_back(each.table);
    if (each.has_entries) with_entries_.insert(each.table);
  }
}

Task<Result<StreamPageReply>> StreamFeed::ask(storage::TableId table,
                                              std::optional<base::Bytes> after) {
  const auto message = std::make_shared<const StreamPageMessage>(
      StreamPageMessage{.tablet = tablet_,
                        .stream = stream_,
                        .table = table,
                        .after = std::move(after),
                        .bytes_max = options_.page_bytes_max,
                        .is_over = false});
  for (std::size_t attempt = 1;; ++attempt) {
    auto reply = co_await link_.call(from_, kStreamPageMethod, message,
                                     Until::after(link_.runtime(), options_.page_timeout, stop_));
    const bool may_come = reply.failed_with(Errc::timeout) || reply.failed_with(Errc::overloaded) ||
                          reply.failed_with(Errc::connection_lost) ||
                          reply.failed_with(Errc::unavailable);
    if (reply || !may_come || attempt >= options_.attempts_max) co_return reply;
    CO_TRY_VOID(co_await runtime::sleep_for(link_.runtime(), options_.pause, stop_));
  }
}

Task<void> StreamFeed::end() {
  const auto message =
      std::make_shared<const StreamPageMessage>(StreamPageMessage{.tablet = tablet_,
                                                                  .stream = stream_,
                                                                  .table = {},
                                                                  .after = {},
                                                                  .bytes_max = 1,
                                                                  .is_over = true});
  std::ignore = co_await link_.call(from_, kStreamPageMethod, message,
                                    Until::after(link_.runtime(), options_.page_timeout, stop_));
}

namespace {

Error wrong(const char* what) {
  return {Errc::corrupt, "a stream of a tablet has {}", what};
}

bool is_claimed(const causality::CellStore& store, const causality::Clock& claim) {
  return std::ranges::all_of(store.versions(), [&](const causality::Version& version) {
    return claim.contains(version.dot);
  });
}

bool is_claimed(const Entry& entry, const causality::Clock& claim) {
  return is_claimed(entry.row_deletes(), claim) &&
         std::ranges::all_of(entry.row().cells(),
                             [&](const auto& cell) { return is_claimed(cell.second, claim); }) &&
         std::ranges::all_of(entry.deleted_ranges(), [&](const causality::RangeDelete& each) {
           return is_claimed(each.store, claim);
         });
}

}  // namespace

Result<Entry> check_streamed(const StreamedEntry& streamed, const storage::KeyRange& range,
                             const causality::Clock& claim) {
  const ByteView key = streamed.key.view();
  const ByteView partition = key.first(streamed.partition_size);
  if (!range.contains(partition) || !range.contains(key)) {
    return wrong("a key that is not of the tablet");
  }
  const auto kind = std::to_integer<std::uint8_t>(key[streamed.partition_size]);
  const bool is_row = kind == static_cast<std::uint8_t>(storage::EntryKind::row);
  if (!is_row && kind != static_cast<std::uint8_t>(storage::EntryKind::deleted_ranges)) {
    return wrong("a key of no kind");
  }
  TRY(auto entry, storage::decode_entry(streamed.entry));
  const bool has_row = !entry.row().empty() || !entry.row_deletes().empty();
  if (is_row ? entry.holds_ranges() : has_row) return wrong("an entry of another kind");
  if (!is_claimed(entry, claim)) return wrong("a version that it does not claim");
  return entry;
}

// The entries of one table, page after page.
class StreamedEntries final : public storage::EntrySource {
 public:
  StreamedEntries(StreamFeed& feed, storage::TableId table) : feed_(feed), table_(table) {}

  Motion seek(ByteView key) override {
    ASSERT(key.empty() && !complete_ && !last_, "a stream is read once, from its beginning");
    return fetch();
  }
  Motion seek_before(ByteView /*key*/) override { return only_forward(); }
  Motion next() override {
    ++at_;
    if (at_ < page_.entries.size()) return stand();
    if (!complete_) return fetch();
    valid_ = false;
    return Result<void>();
  }
  Motion previous() override { return only_forward(); }
  bool valid() const override { return valid_; }
  storage::RowKey key() const override {
    const StreamedEntry& here = page_.entries[at_];
    return {.bytes = here.key.view(), .partition_size = here.partition_size};
  }
  Result<void> absorb_into(Entry& entry) const override {
    entry.absorb(entry_);
    return {};
  }

 private:
  static Motion only_forward() {
    return Result<void>(Error(Errc::unsupported, "a stream is read forward"));
  }

  Task<Result<void>> fetch() {
    valid_ = false;
    CO_TRY(page_, co_await feed_.ask(table_, last_));
    at_ = 0;
    complete_ = page_.complete;
    if (page_.entries.empty()) {
      if (complete_) co_return {};
      co_return refuse(wrong("an empty page that is not the last one"));
    }
    if (last_ && page_.entries.front().key <= *last_) co_return refuse(wrong("keys disordered"));
    last_ = page_.entries.back().key;
    co_return stand();
  }

  Result<void> stand() {
    valid_ = false;
    const StreamedEntry& here = page_.entries[at_];
    auto checked = check_streamed(here, feed_.range_, feed_.claim_.clock);
    if (!checked) return refuse(std::move(checked).error());
    entry_ = *std::move(checked);
    ++feed_.counts_.entries;
    feed_.counts_.bytes += here.key.size() + here.entry.size();
    valid_ = true;
    return {};
  }

  Error refuse(Error error) {
    feed_.counts_.was_refused = true;
    return error;
  }

  StreamFeed& feed_;
  const storage::TableId table_;
  StreamPageReply page_;
  std::size_t at_ = 0;
  bool complete_ = false;
  bool valid_ = false;
  std::optional<base::Bytes> last_;
  Entry entry_;
};

std::unique_ptr<storage::EntrySource> StreamFeed::entries(storage::TableId table) {
  if (!with_entries_.contains(table)) return storage::no_entries();
  return std::make_unique<StreamedEntries>(*this, table);
}

}  // namespace helenus::replication
