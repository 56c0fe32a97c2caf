// AdminServer: HTTP for operators on a port of its own. It answers GET and HEAD through a handler.
//
// Bounded: so many connections at once (the next ones wait to be accepted), a request of limited
// size, a limited time to send one. A slow or hostile client costs its own connection only.
#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "base/result.h"
#include "node/http.h"
#include "runtime/semaphore.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::node {

class AdminServer {
 public:
  static constexpr std::size_t kConnectionsMax = 256;
  static constexpr runtime::Duration kRequestTimeout = std::chrono::seconds(30);

  // What to answer; plain, quick and never waiting.
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  AdminServer(runtime::Runtime& runtime, Handler handler)
      : runtime_(runtime),
        handler_(std::move(handler)),
        log_(runtime.logger("admin")),
        connections_(runtime, kConnectionsMax, 1),
        tasks_(runtime) {}

  // Errors: those of listening.
  base::Result<void> start(const runtime::Address& address);
  // Ends every connection and returns when all is quiet. Requires: start was called and succeeded,
  // or was never called.
  runtime::Task<void> stop();

  // The address in force. Requires: started.
  runtime::Address address() const { return listener_->address(); }

 private:
  runtime::Task<void> accept_connections();
  runtime::Task<void> serve(std::unique_ptr<runtime::Stream> stream, runtime::Permit permit);

  runtime::Runtime& runtime_;
  Handler handler_;
  base::Logger log_;
  runtime::StopSource stopping_;
  runtime::Semaphore connections_;
  std::unique_ptr<runtime::Listener> listener_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::node
