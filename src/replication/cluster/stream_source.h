// StreamSource: gives other nodes all that a tablet here has, as it was at one moment, page by page
// (storage/engine/tablet_transfer.h). Cassandra's word for it is streaming.
//
//   open()   the tablet's tables are frozen, and the claim is told
//   page()   the next entries of one table; a page may be asked for again
//
// A stream is what memory keeps of the moment, and files that a merge may have taken away: so few
// are open at once, one that nobody asks for goes after a while, and with the last page it goes at
// once. Whoever has lost his begins anew.
//
// Core affinity: the engine's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/result.h"
#include "model/node_id.h"
#include "replication/messages/messages.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/time.h"
#include "storage/engine/engine.h"
#include "storage/read/entry_source.h"

namespace helenus::replication {

class StreamSource {
 public:
  static constexpr std::size_t kStreamsMax = 4;
  static constexpr runtime::Duration kIdleMax = std::chrono::seconds(30);

  // Both outlive it.
  StreamSource(runtime::Runtime& runtime, storage::Engine& engine)
      : runtime_(runtime), engine_(engine) {}
  StreamSource(const StreamSource&) = delete;
  StreamSource& operator=(const StreamSource&) = delete;

  // Errors: overloaded; closed; those of Engine::snapshot.
  runtime::Task<base::Result<StreamOpenReply>> open(model::NodeId to, storage::TabletId tablet,
                                                    runtime::Until until);
  // Errors: not_found (there is no such stream for that node any more); overloaded (a page of it is
  // being made); corrupt, io_error, cancelled: a part of the tablet cannot be read.
  runtime::Task<base::Result<StreamPageReply>> page(model::NodeId to, StreamPageMessage message);
  // Streams that nobody has asked for go.
  void expire();
  // All of them go, and none is opened any more.
  void close();

  std::size_t open_streams() const { return streams_.size(); }

 private:
  struct Stream {
    model::NodeId to;
    storage::TabletId tablet;
    std::shared_ptr<const storage::TabletSnapshot> snapshot;
    std::optional<storage::TableId> last_table = {};  // of those with entries
    runtime::MonotonicTime used = {};
    bool busy = false;
    // Where the page before ended.
    std::optional<storage::TableId> table = {};
    std::optional<base::Bytes> after = {};
    std::unique_ptr<storage::EntrySource> entries = nullptr;
  };

  runtime::Task<base::Result<void>> move_to(Stream& stream, const StreamPageMessage& message);
  runtime::Task<base::Result<StreamPageReply>> fill(std::shared_ptr<Stream> stream,
                                                    StreamPageMessage message);

  runtime::Runtime& runtime_;
  storage::Engine& engine_;
  std::map<std::uint64_t, std::shared_ptr<Stream>> streams_;
  std::size_t opening_ = 0;
  bool closed_ = false;
  runtime::StopSource stop_;
};

}  // namespace helenus::replication
