// StreamFeed: what a stream of another node brings (stream_source.h), checked, as storage takes it.
//
// What comes from the other node must be in order, of the tablet, whole, and no more than it
// claims: a version whose dot is not in the claim would enter a store without its dot (S5).
// Anything else is an error, and nothing of the copy is taken.
//
// In memory: one page. Core affinity: that of the link.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/cluster/cluster_link.h"
#include "replication/messages/messages.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"
#include "storage/engine/tablet_snapshot.h"
#include "storage/entry/entry.h"
#include "storage/ids/key_range.h"

namespace helenus::replication {

struct StreamFeedOptions {
  std::uint64_t page_bytes_max = std::uint64_t{1} << 20;
  // For a page; one that does not come is asked for again, so many times.
  runtime::Duration page_timeout = std::chrono::seconds(10);
  std::size_t attempts_max = 4;
  runtime::Duration pause = std::chrono::milliseconds(250);
};

struct StreamCounts {
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  bool was_refused = false;  // what came was not what may come
};

// What an entry says. Errors: corrupt, saying what is wrong.
base::Result<storage::Entry> check_streamed(const StreamedEntry& streamed,
                                            const storage::KeyRange& range,
                                            const causality::Clock& claim);

class StreamFeed final : public storage::TabletFeed {
 public:
  using Received = std::function<runtime::Task<base::Result<void>>()>;

  // The link outlives it. `received` is asked when everything is here (TabletFeed::received).
  StreamFeed(ClusterLink& link, model::NodeId from, storage::TabletId tablet,
             storage::KeyRange range, StreamOpenReply opened, StreamFeedOptions options,
             runtime::StopToken stop, Received received);

  const storage::TabletClaim& claim() const override { return claim_; }
  std::unique_ptr<storage::EntrySource> entries(storage::TableId table) override;
  runtime::Task<base::Result<void>> received() override { return received_(); }
  const StreamCounts& counts() const { return counts_; }
  // No more is taken: the source need not keep it.
  runtime::Task<void> end();

 private:
  friend class StreamedEntries;

  runtime::Task<base::Result<StreamPageReply>> ask(storage::TableId table,
                                                   std::optional<base::Bytes> after);
  ClusterLink& link_;
  const model::NodeId from_;
  const storage::TabletId tablet_;
  const storage::KeyRange range_;
  const std::uint64_t stream_;
  const StreamFeedOptions options_;
  const runtime::StopToken stop_;
  const Received received_;
  storage::TabletClaim claim_;
  std::set<storage::TableId> with_entries_;
  StreamCounts counts_;
};

}  // namespace helenus::replication
