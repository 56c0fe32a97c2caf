#include "replication/cluster/stream_source.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "runtime/take_turn.h"
#include "storage/entry/entry.h"

namespace helenus::replication {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

Task<Result<StreamOpenReply>> StreamSource::open(model::NodeId to, storage::TabletId tablet,
                                                 Until until) {
  if (closed_) co_return Error(Errc::closed, "no tablet is given any more");
  expire();
  // Who asks again has lost the one before.
  std::erase_if(streams_, [&](const auto& each) {
    return each.second->to == to && each.second->tablet == tablet && !each.second->busy;
  });
  if (streams_.size() + opening_ >= kStreamsMax) {
    co_return Error(Errc::overloaded, "too many tablets are being copied from this node");
  }
  ++opening_;
  auto snapshot = co_await engine_.snapshot(tablet, std::move(until));
  --opening_;
  CO_TRY_VOID(snapshot);
  if (closed_) co_return Error(Errc::closed, "no tablet is given any more");
  const storage::TabletClaim& claim = (*snapshot)->claim();
  StreamOpenReply reply;
  reply.stream = runtime_.random.next();
  reply.clock = claim.clock;
  reply.floor = claim.floor;
  reply.dropped_before = claim.dropped_before;
  reply.newest_operation = claim.newest_operation;
  std::optional<storage::TableId> last_table;
  for (const storage::TableId table : claim.tables) {
    const bool has_entries = (*snapshot)->may_have(table);
    if (has_entries) last_table = table;
    reply.tables.push_back({.table = table, .has_entries = has_entries});
  }
  if (reply.tables.size() > StreamOpenReply::kTablesMax) {
    co_return Error(Errc::unsupported, "a tablet of {} tables", reply.tables.size());
  }
  if (!last_table) co_return reply;
  streams_[reply.stream] = std::make_shared<Stream>(Stream{.to = to,
                                                           .tablet = tablet,
                                                           .snapshot = *std::move(snapshot),
                                                           .last_table = last_table,
                                                           .used = runtime_.clock.now()});
  co_return reply;
}

void StreamSource::expire() {
  const runtime::MonotonicTime now = runtime_.clock.now();
  std::erase_if(streams_, [&](const auto& each) {
    return !each.second->busy && now >= each.second->used + kIdleMax;
  });
}

void StreamSource::close() {
  closed_ = true;
  stop_.request_stop();
  streams_.clear();
}

Task<Result<StreamPageReply>> StreamSource::page(model::NodeId to, StreamPageMessage message) {
  const auto found = streams_.find(message.stream);
  if (found == streams_.end() || found->second->to != to ||
      found->second->tablet != message.tablet) {
    co_return Error(Errc::not_found, "stream {} of tablet {}", message.stream, message.tablet);
  }
  const std::shared_ptr<Stream> stream = found->second;
  if (message.is_over) {
    streams_.erase(found);
    co_return StreamPageReply();
  }
  if (stream->busy) co_return Error(Errc::overloaded, "a page of this stream is being made");
  stream->busy = true;
  const std::uint64_t number = message.stream;
  auto reply = co_await fill(stream, std::move(message));
  stream->busy = false;
  stream->used = runtime_.clock.now();
  const bool is_last = reply && reply->complete && stream->table == stream->last_table;
  if (!reply) stream->entries = nullptr;
  if (is_last) streams_.erase(number);
  co_return reply;
}

Task<Result<void>> StreamSource::move_to(Stream& stream, const StreamPageMessage& message) {
  const bool goes_on =
      stream.entries != nullptr && stream.table == message.table && stream.after == message.after;
  if (goes_on) co_return {};
  stream.table = message.table;
  stream.after = message.after;
  stream.entries = stream.snapshot->entries(message.table, {.stop = stop_.token()});
  const base::Bytes from = message.after.value_or(base::Bytes());
  CO_TRY_VOID(co_await stream.entries->seek(from.view()));
  const bool is_known = message.after && stream.entries->valid() &&
                        base::equal(stream.entries->key().bytes, message.after->view());
  if (is_known) CO_TRY_VOID(co_await stream.entries->next());
  co_return {};
}

Task<Result<StreamPageReply>> StreamSource::fill(std::shared_ptr<Stream> stream,
                                                 StreamPageMessage message) {
  constexpr std::size_t kEntriesPerLook = 32;
  CO_TRY_VOID(co_await move_to(*stream, message));
  const auto bytes_max = std::min(message.bytes_max, StreamPageMessage::kBytesMax);
  StreamPageReply reply;
  std::uint64_t bytes = 0;
  storage::EntrySource& entries = *stream->entries;
  while (entries.valid() && bytes < bytes_max &&
         reply.entries.size() < StreamPageReply::kEntriesMax) {
    storage::Entry entry;
    CO_TRY_VOID(entries.absorb_into(entry));
    base::Buffer buffer;
    base::Encoder out(buffer);
    encode(out, entry);
    const storage::RowKey key = entries.key();
    reply.entries.push_back({.key = base::Bytes::copy_of(key.bytes),
                             .partition_size = key.partition_size,
                             .entry = std::move(buffer).freeze()});
    bytes += reply.entries.back().key.size() + reply.entries.back().entry.size();
    CO_TRY_VOID(co_await entries.next());
    if (reply.entries.size() % kEntriesPerLook == 0) {
      CO_TRY_VOID(co_await runtime::Turn(runtime_, Until{.stop = stop_.token()}));
    }
  }
  reply.complete = !entries.valid();
  if (!reply.entries.empty()) stream->after = reply.entries.back().key;
  co_return reply;
}

}  // namespace helenus::replication
