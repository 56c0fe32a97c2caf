// Node: the composition root. It builds everything a node is made of from a Runtime and a Config,
// and owns the order in which they start and stop. The server runs one over the operating system,
// the simulator runs many in virtual time: the same class.
//
// Order: the data folder is locked, the identity read, the admin port opened (so that a long
// recovery can be watched), then the database with its port for clients. Stop goes the other way.
//
// What survives a crash: the data folder. Start after a crash is start.
#pragma once

#include <memory>
#include <optional>

#include "base/log.h"
#include "base/result.h"
#include "node/admin_server.h"
#include "node/config.h"
#include "node/database.h"
#include "node/identity.h"
#include "runtime/file_system.h"
#include "runtime/runtime.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"

namespace helenus::node {

class Node {
 public:
  Node(runtime::Runtime& runtime, Config config);

  // Takes the data folder, learns who it is, and opens its ports. After an error, call stop().
  // Errors name the folder or the address at fault: locked (another node runs there),
  // permission_denied, address_in_use, corrupt, ...
  runtime::Task<base::Result<void>> start();
  // Winds up in reverse order. Also right after a failed or partial start.
  runtime::Task<void> stop();

  // Requires: started.
  const Identity& identity() const { return *identity_; }
  runtime::Address admin_address() const { return admin_.address(); }
  // Requires: started, with a database.
  runtime::Address cql_address() const { return database_->cql_address(); }
  // How many cores serve clients and keep data.
  std::uint32_t cores() const { return database_->cores(); }

 private:
  runtime::Task<base::Result<void>> start_database();
  // Tells now and then what a start that takes long waits for.
  runtime::Task<void> report_progress(runtime::StopToken started);

  runtime::Task<HttpResponse> answer(const HttpRequest& request);
  runtime::Task<HttpResponse> answer_health();

  runtime::Runtime& runtime_;
  const Config config_;
  base::Logger log_;
  std::unique_ptr<runtime::FileLock> data_lock_;
  std::optional<Identity> identity_;
  bool started_ = false;
  bool stopping_ = false;
  std::optional<Database> database_;
  AdminServer admin_;
};

}  // namespace helenus::node
