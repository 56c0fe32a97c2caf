// KeyValueService: rows and columns over HTTP, with their siblings and their contexts
// (docs/http.md).
//
//   GET     every value that is there, and in Helenus-Context what its reader has seen by that
//   PUT     writes under the context that the request brings: what that names is replaced, and what
//           it does not name stays beside it (where the table keeps siblings)
//   DELETE  the same, and leaves nothing in its place
//
// No update is lost. In a table that keeps siblings a write has a context or is refused, and it
// supersedes what its context names and nothing else, whatever happens between the read and the
// write: contexts are authenticated, and of one partition of one table
// (cql/catalog/context_token.h). If-Match reads first, and refuses a write that is known to make a
// sibling; one that comes between becomes a sibling and is not lost. What is refused has written
// nothing: every reason to refuse is looked for before the one write that a request does.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "admin/http.h"
#include "causality/context.h"
#include "cql/catalog/catalog_snapshot.h"
#include "cql/catalog/context_token.h"
#include "cql/execute/statement_clock.h"
#include "keyvalue/key_target.h"
#include "keyvalue/refusal.h"
#include "model/consistency.h"
#include "replication/coordinator/coordinator.h"
#include "replication/request/partition_write.h"
#include "runtime/operation.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "storage/read/row_read.h"

namespace helenus::keyvalue {

struct KeyValueStatistics {
  // Requests, by method and status. Both are from short lists.
  std::map<std::pair<std::string, int>, std::uint64_t> answers;
  std::uint64_t reads_of_siblings = 0;  // answers that showed several values of a column
};

class KeyValueService {
 public:
  struct Options {
    runtime::Duration timeout = std::chrono::seconds(10);  // of a request
    // Whether others than those on this machine are served. There is no way to show who one is.
    bool is_remote = false;
  };

  // Requires: all outlive it.
  KeyValueService(runtime::Runtime& runtime, replication::Coordinator& coordinator,
                  const cql::CatalogReader& catalog, const cql::ContextSecret& secret,
                  Options options)
      : runtime_(runtime),
        coordinator_(coordinator),
        catalog_(catalog),
        secret_(secret),
        options_(options),
        clock_(runtime, newest_) {}
  KeyValueService(const KeyValueService&) = delete;
  KeyValueService& operator=(const KeyValueService&) = delete;

  // Requires: the path begins with admin::kDataPath; the request outlives the task.
  runtime::Task<admin::HttpResponse> answer(const admin::HttpRequest& request,
                                            runtime::StopToken stop);

  const KeyValueStatistics& statistics() const { return statistics_; }

 private:
  // What a request asks, once its path and its parameters are understood.
  struct Asked {
    KeyTarget target;
    model::Consistency level = model::Consistency::quorum;
    std::optional<std::int64_t> ttl_seconds = std::nullopt;
    runtime::Until until = {};
  };
  // What is there, as one reader sees it.
  struct Seen;
  // Refused, or T.
  template <class T>
  using Outcome = runtime::Task<HttpResult<T>>;

  HttpResult<void> check_client(const admin::HttpRequest& request) const;
  HttpResult<Asked> understand(const admin::HttpRequest& request, runtime::StopToken stop) const;
  Outcome<admin::HttpResponse> answer_any(const admin::HttpRequest& request,
                                          runtime::StopToken stop);
  Outcome<admin::HttpResponse> get(const admin::HttpRequest& request, Asked asked);
  Outcome<admin::HttpResponse> put(const admin::HttpRequest& request, Asked asked);
  Outcome<admin::HttpResponse> remove(const admin::HttpRequest& request, Asked asked);

  Outcome<Seen> read(const Asked& asked);
  admin::HttpResponse show(const admin::HttpRequest& request, const KeyTarget& target,
                           const Seen& seen, int status);
  // Without their contexts. Refused: 400, for a body that is no value.
  HttpResult<replication::PartitionWrite> write_of(const admin::HttpRequest& request,
                                                   const Asked& asked);
  replication::PartitionWrite removal_of(const KeyTarget& target);
  replication::PartitionWrite nothing_yet(const KeyTarget& target);
  std::optional<causality::WallTime> memory_of(const KeyTarget& target);
  // Sets the context of the write, by the headers; a response where a condition does not hold.
  Outcome<std::optional<admin::HttpResponse>> set_context(const admin::HttpRequest& request,
                                                          const Asked& asked,
                                                          replication::PartitionWrite& write);
  // The same where there is a condition.
  Outcome<std::optional<admin::HttpResponse>> judge(const admin::HttpRequest& request,
                                                    const Asked& asked,
                                                    replication::PartitionWrite& write);
  Outcome<admin::HttpResponse> execute(const Asked& asked, replication::PartitionWrite write);
  std::string seal(const causality::Context& context, const KeyTarget& target) const;
  HttpResult<causality::Context> unseal(std::string_view text,
                                        const replication::PartitionWrite& write) const;

  runtime::Runtime& runtime_;
  replication::Coordinator& coordinator_;
  const cql::CatalogReader& catalog_;
  const cql::ContextSecret& secret_;
  const Options options_;
  cql::NewestTimeUuid newest_;
  cql::StatementClock clock_;
  KeyValueStatistics statistics_;
};

}  // namespace helenus::keyvalue
