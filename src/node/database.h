// Database: the part of a node that keeps data and answers CQL. It opens the storage of all cores
// and the catalog, and gives every core what serves clients there (core_service.h); it stops them
// in reverse.
//
// What is the node's, whatever the number of cores: the settings of memory, disk and connections.
// Memory and disk are divided among cores evenly, each with what it needs at the least; connections
// are counted over all of them.
//
// Core affinity: the core of its Runtime, save where it says otherwise.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/catalog.h"
#include "cql/connection_limit.h"
#include "cql/query_processor.h"
#include "cql/server.h"
#include "cql/system_tables.h"
#include "cql/traces.h"
#include "node/config.h"
#include "node/core_service.h"
#include "node/metrics.h"
#include "replication/coordinator.h"
#include "runtime/gate.h"
#include "runtime/run_on.h"
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
  // Why some core can write nothing any more, if that is so.
  runtime::Task<std::optional<base::Error>> failure();

  // Requires: started.
  runtime::Address cql_address() const { return cql_address_; }
  // Of all cores together. Errors: closed when it stops; overloaded.
  runtime::Task<base::Result<std::vector<Metric>>> metrics();

 private:
  base::Result<void> count_cores();
  replication::CoordinatorOptions coordinator_options() const;
  cql::ServerOptions server_options() const;
  cql::QueryProcessorOptions processor_options() const;
  cql::SystemSources system_sources(runtime::Runtime& there);
  cql::NodeFacts facts() const;
  CoreService::Options service_options() const;

  runtime::Task<base::Result<void>> start_services();
  runtime::Task<void> stop_services();
  // Whatever it takes: a core that has too much to do is asked again.
  runtime::Task<base::Result<void>> do_on(std::uint32_t core, runtime::CoreWork<void> work);
  // On any core, from what all tell.
  template <class T>
  runtime::Task<base::Result<std::vector<T>>> gather(runtime::Runtime& here,
                                                     T (*tell)(const CoreService&),
                                                     runtime::Until until);
  runtime::Task<base::Result<std::vector<Metric>>> metrics_from(runtime::Runtime& here,
                                                                runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::MetricRow>>> metric_rows(runtime::Runtime& here,
                                                                       runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::ClientRow>>> client_rows(runtime::Runtime& here,
                                                                       runtime::Until until);
  runtime::Task<base::Result<std::vector<cql::Traces::Session>>> traces(runtime::Runtime& here,
                                                                        runtime::Until until);

  runtime::Runtime& runtime_;
  const Config& config_;
  const base::Uuid host_id_;
  base::Logger log_;
  std::string phase_;
  std::string broadcast_text_;
  runtime::Address cql_address_;
  std::uint32_t cores_ = 1;
  const std::shared_ptr<cql::ConnectionLimit> connections_;

  std::unique_ptr<replication::Coordinator> coordinator_;
  bool coordinator_stopped_ = false;
  std::unique_ptr<cql::Catalog> catalog_;
  // By core, each made and destroyed there. Does not change while clients are served.
  std::vector<std::unique_ptr<CoreService>> services_;
  runtime::Gate askers_;
};

}  // namespace helenus::node
