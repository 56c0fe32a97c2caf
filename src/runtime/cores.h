// Cores: the other event loops of this process, and messages to them.
//
// State belongs to one core; others ask for it by message. `call_on` runs a task on another core
// and brings back its result.
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "base/strong.h"

namespace helenus::runtime {

class Runtime;
class TaskGroup;

using CoreId = base::Strong<struct CoreIdTag, std::uint32_t>;

// Runs on the core it was sent to, from its event loop.
using CoreMessage = std::move_only_function<void(Runtime& there)>;

class Cores {
 public:
  // Messages that may wait for a core, from each other core.
  static constexpr std::size_t kWaitingMax = 8192;
  // Tasks that others may have under way on a core at once.
  static constexpr std::size_t kGuestsMax = 65536;

  virtual ~Cores() = default;

  virtual std::uint32_t count() const = 0;
  virtual CoreId here() const = 0;

  // Sends a message. Messages between the same two cores run in the order sent. Fails with
  // Errc::overloaded when kWaitingMax are waiting, and with Errc::closed when that core has
  // stopped. The same core may be named; the message still goes through the queue.
  virtual base::Result<void> send(CoreId to, CoreMessage message) = 0;
  // Sends the answer to a message received: always accepted, since what it answers was bounded.
  // Dropped when that core has stopped.
  virtual void reply(CoreId to, CoreMessage message) = 0;

  // The tasks that other cores run here, at most kGuestsMax; waited for when this core stops.
  virtual TaskGroup& guests() = 0;
};

}  // namespace helenus::runtime
