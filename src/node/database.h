// Database: the part of a node that keeps data and answers CQL. It builds coordinator, catalog,
// tables of the system, query processor and CQL server, each upon those before it, and stops them
// in reverse.
//
// Core affinity: the core of its Runtime. Connections are served there too.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog.h"
#include "cql/query_processor.h"
#include "cql/server.h"
#include "cql/system_tables.h"
#include "cql/virtual_table.h"
#include "node/config.h"
#include "node/metrics.h"
#include "replication/coordinator.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::node {

class Database {
 public:
  // Requires: `config` outlives it.
  Database(runtime::Runtime& runtime, const Config& config, base::Uuid host_id);

  // Recovers what there is and opens the port for clients. Errors name the file, the folder or the
  // address at fault. After an error, call stop().
  runtime::Task<base::Result<void>> start();
  // Answers what is under way, refuses the rest, and seals the commit log. Also right after a start
  // that failed, and a second time.
  runtime::Task<void> stop();

  // What start() waits for, or "serving".
  const std::string& phase() const { return phase_; }
  // Why nothing can be written any more, if that is so.
  std::optional<base::Error> failure() const;

  // Requires: started.
  runtime::Address cql_address() const { return server_->address(); }
  std::vector<Metric> metrics() const;

 private:
  replication::CoordinatorOptions coordinator_options() const;
  cql::ServerOptions server_options() const;
  cql::QueryProcessorOptions processor_options() const;
  cql::SystemSources system_sources();
  cql::NodeFacts facts(runtime::Address cql_address) const;

  runtime::Runtime& runtime_;
  const Config& config_;
  const base::Uuid host_id_;
  base::Logger log_;
  std::string phase_;
  std::string broadcast_text_;

  std::unique_ptr<replication::Coordinator> coordinator_;
  bool coordinator_stopped_ = false;
  std::unique_ptr<cql::Catalog> catalog_;
  cql::VirtualTables tables_;
  std::unique_ptr<cql::QueryProcessor> processor_;
  std::unique_ptr<cql::Server> server_;
};

}  // namespace helenus::node
