#include "sim/scenarios/service.h"

#include <utility>

#include "runtime/sleep.h"
#include "sim/scenarios/wire.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kConnectionsMax = 256;

Task<void> serve_connection(runtime::Runtime& runtime, std::unique_ptr<runtime::Stream> stream,
                            RequestHandler& handler, runtime::StopToken stop) {
  const Until until{.stop = stop};
  for (;;) {
    auto request = co_await read_frame(*stream, until);
    if (!request) co_return;
    auto answer = co_await handler.handle(*std::move(request));
    if (!answer) co_return;
    if (runtime.buggify("service.late_answer")) {
      const auto slept = co_await runtime::sleep_for(runtime, 200ms, stop);
      if (!slept) co_return;
    }
    if (runtime.buggify("service.no_answer")) co_return;
    const auto written = co_await write_frame(*stream, *std::move(answer), until);
    if (!written) co_return;
  }
}

Task<void> accept_connections(runtime::Runtime& runtime, runtime::Listener& listener,
                              RequestHandler& handler, runtime::TaskGroup& connections,
                              runtime::StopToken stop) {
  while (!stop.stop_requested()) {
    auto stream = co_await listener.accept({.stop = stop});
    if (!stream) continue;
    // One too many is closed at once.
    (void)connections.try_spawn(serve_connection(runtime, *std::move(stream), handler, stop));
  }
}

}  // namespace

Task<Result<void>> serve(runtime::Runtime& runtime, runtime::Address address,
                         RequestHandler& handler, runtime::StopToken stop) {
  CO_TRY(const auto listener, runtime.transport.listen(address));
  runtime::TaskGroup connections(runtime, kConnectionsMax);
  co_await accept_connections(runtime, *listener, handler, connections, stop);
  co_await connections.join();
  co_return {};
}

Task<Result<base::Bytes>> Caller::call(base::Bytes request, Until until) {
  CO_TRY(const runtime::Permit permit, co_await turn_.acquire(1, until));
  auto answer = co_await call_now(std::move(request), std::move(until));
  // An answer that comes after its time would be taken for the next one's.
  if (!answer) stream_.reset();
  co_return answer;
}

Task<Result<base::Bytes>> Caller::call_now(base::Bytes request, Until until) {
  if (stream_ == nullptr) {
    CO_TRY(stream_, co_await runtime_.transport.connect(server_, until));
  }
  CO_TRY_VOID(co_await write_frame(*stream_, std::move(request), until));
  co_return co_await read_frame(*stream_, std::move(until));
}

}  // namespace helenus::sim
