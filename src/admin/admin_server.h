// AdminServer: HTTP for operators on a port of its own. It answers GET and HEAD, which change
// nothing, through a handler, and POST from those who may change something.
//
// Bounded: so many connections at once (the next ones wait to be accepted), a request of limited
// size, a limited time to send one and to take its answer. A slow or hostile client costs a
// connection, and that for a limited time.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "admin/http.h"
#include "base/log.h"
#include "base/result.h"
#include "runtime/semaphore.h"
#include "runtime/stop_token.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::admin {

// Why a request is not for the handler, if it is not. Who is not on this machine may ask for no
// change (403), whatever there is to be changed: no token exists that it could show. Nor may a page
// in a browser on this machine. Methods other than GET, HEAD and POST there are none (405).
std::optional<HttpResponse> refuse(const HttpRequest& request, const runtime::Address& client);

class AdminServer {
 public:
  static constexpr std::size_t kConnectionsMax = 256;
  static constexpr runtime::Duration kRequestTimeout = std::chrono::seconds(30);
  // How long, and for how many bytes, a connection that was answered for the last time is read on.
  static constexpr runtime::Duration kLingerTimeout = std::chrono::seconds(5);
  static constexpr std::size_t kLingerSizeMax = std::size_t{1} << 20;

  // What to answer, in bounded time: GET and HEAD are asked often, POST may take as long as its
  // change takes. The request outlives the task.
  using Handler = std::function<runtime::Task<HttpResponse>(const HttpRequest&)>;

  AdminServer(runtime::Runtime& runtime, Handler handler)
      : runtime_(runtime),
        handler_(std::move(handler)),
        log_(runtime.logger("admin")),
        connections_(runtime, kConnectionsMax, 1),
        tasks_(runtime) {}

  // Errors: those of listening. Requires: not started, and not stopped.
  base::Result<void> start(const runtime::Address& address);
  // Ends every connection and returns when all is quiet. Also right without a start that succeeded,
  // and a second time. For good: there is no second start.
  runtime::Task<void> stop();

  // The address in force. Requires: started.
  runtime::Address address() const { return listener_->address(); }

 private:
  runtime::Task<void> accept_connections();
  runtime::Task<void> serve(std::unique_ptr<runtime::Stream> stream, runtime::Permit permit);
  runtime::Task<void> linger(runtime::Stream& stream);

  runtime::Runtime& runtime_;
  Handler handler_;
  base::Logger log_;
  runtime::StopSource stopping_;
  runtime::Semaphore connections_;
  std::unique_ptr<runtime::Listener> listener_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::admin
