// AdminServer: HTTP on a port of its own, for operators and for the key-value API. It answers GET
// and HEAD, which change nothing, through a handler, and POST from those who may change something.
// Below kDataPath are rows: PUT and DELETE are there, too, and the handler judges who may ask.
//
// Bounded: so many connections at once (the next ones wait to be accepted), a request of limited
// size, bodies of so many bytes in all, a limited time to send a request and to take its answer. A
// slow or hostile client costs a connection, and that for a limited time.
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
// change of the node (403), whatever there is to be changed: no token exists that it could show.
// Nor may a page in a browser on this machine ask for any change. Methods other than GET, HEAD and
// POST there are none but for rows (405), and no other request than PUT has a body (501), which is
// no larger than AdminServer::kBodySizeMax (413).
std::optional<HttpResponse> refuse(const HttpRequest& request, const runtime::Address& client);

class AdminServer {
 public:
  static constexpr std::size_t kConnectionsMax = 256;
  // Of one body, and of all that are there or are being sent.
  static constexpr std::size_t kBodySizeMax = std::size_t{1} << 20;
  static constexpr std::size_t kBodiesSizeMax = std::size_t{16} << 20;
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
        bodies_(runtime, kBodiesSizeMax, kConnectionsMax),
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
  // The next request up to its headers, which are left in `input`; none when the stream has ended.
  runtime::Task<std::optional<base::Result<HttpRequest>>> read_head(runtime::Stream& stream,
                                                                    base::Buffer& input,
                                                                    runtime::Until until);
  // Its body, of which `input` has the beginning; takes the request out of that. False when the
  // stream has ended.
  runtime::Task<bool> read_body(runtime::Stream& stream, base::Buffer& input, HttpRequest& request,
                                runtime::Until until);
  // Answers one request. Whether another may follow; none when the stream has ended.
  runtime::Task<std::optional<bool>> serve_one(runtime::Stream& stream, base::Buffer& input);
  runtime::Task<void> linger(runtime::Stream& stream);

  runtime::Runtime& runtime_;
  Handler handler_;
  base::Logger log_;
  runtime::StopSource stopping_;
  runtime::Semaphore connections_;
  runtime::Semaphore bodies_;  // bytes
  std::unique_ptr<runtime::Listener> listener_;
  runtime::TaskGroup tasks_;
};

}  // namespace helenus::admin
