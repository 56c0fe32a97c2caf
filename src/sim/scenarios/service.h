// Request and answer over frames, for the systems of the shipped scenarios: a server that serves
// each connection in a task of its own, and a client's connection that is made when needed.
#pragma once

#include <cstdint>
#include <memory>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/address.h"
#include "runtime/semaphore.h"
#include "runtime/task.h"
#include "runtime/task_group.h"
#include "runtime/transport.h"

namespace helenus::sim {

inline constexpr std::uint16_t kServicePort = 7000;

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // The answer. An error ends the connection without one.
  virtual runtime::Task<base::Result<base::Bytes>> handle(base::Bytes request) = 0;
};

// Listens on the machine's address and serves until stopped. Returns when every connection is
// over. Errors: those of listening.
runtime::Task<base::Result<void>> serve(runtime::Runtime& runtime, runtime::Address address,
                                        RequestHandler& handler, runtime::StopToken stop);

// A connection to a server, with one request under way at a time.
class Caller {
 public:
  static constexpr std::size_t kWaitersMax = 64;

  Caller(runtime::Runtime& runtime, runtime::Address server)
      : runtime_(runtime), server_(server), turn_(runtime, 1, kWaitersMax) {}

  // Errors: whatever went wrong; whether the request was served is then in doubt.
  runtime::Task<base::Result<base::Bytes>> call(base::Bytes request, runtime::Until until);

 private:
  runtime::Task<base::Result<base::Bytes>> call_now(base::Bytes request, runtime::Until until);

  runtime::Runtime& runtime_;
  const runtime::Address server_;
  std::unique_ptr<runtime::Stream> stream_;
  runtime::Semaphore turn_;
};

}  // namespace helenus::sim
