#include "cluster/node_phase.h"

#include "runtime/sleep.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

NodePhase::NodePhase(runtime::Runtime& runtime, runtime::Duration retry_pause)
    : runtime_(runtime), retry_pause_(retry_pause), log_(runtime.logger("cluster")) {}

Task<Result<void>> NodePhase::pause(std::string waits_for, Until until) {
  text_ = "waits for " + std::move(waits_for);
  // An attempt that the deadline cut short found out less than the attempt before it.
  if (runtime_.clock.now() >= until.deadline) {
    co_return Error(Errc::timeout, waited_for_.empty() ? text_ : waited_for_);
  }
  if (waited_for_ != text_) log_.info("starting", base::kv("phase", text_));
  waited_for_ = text_;
  co_return co_await runtime::sleep_for(runtime_, retry_pause_, until.stop);
}

}  // namespace helenus::cluster
