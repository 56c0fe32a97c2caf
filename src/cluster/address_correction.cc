#include "cluster/address_correction.h"

#include <utility>

#include "metadata/transitions.h"
#include "runtime/sleep.h"

namespace helenus::cluster {

using runtime::Until;

AddressCorrection::AddressCorrection(const NodeContext& context, const KnownMetadata& known,
                                     MetadataChanger& changer)
    : context_(context),
      known_(known),
      changer_(changer),
      log_(context.runtime.logger("cluster")) {}

void AddressCorrection::start() {
  if (!std::exchange(is_running_, true)) context_.tasks.spawn(run());
}

runtime::Task<void> AddressCorrection::run() {
  const auto timeout = context_.options.attempt_timeout;
  for (;;) {
    const metadata::Node* self = known_.metadata()->find(context_.self.id);
    if (self == nullptr || self->description == context_.self) break;
    const auto changed = co_await changer_.change(
        [this](const metadata::ClusterMetadata& now) {
          return metadata::change_addresses(now, context_.self.id, context_.self.node_address,
                                            context_.self.client_address);
        },
        Until::after(context_.runtime, timeout, context_.stopping));
    if (changed) continue;
    log_.warn("the metadata name an old address of this node, and could not be changed",
              base::kv("error", changed.error()));
    if (changed.failed_with(base::Errc::invalid_argument)) break;
    if (!co_await runtime::sleep_for(context_.runtime, timeout, context_.stopping)) break;
  }
  is_running_ = false;
}

}  // namespace helenus::cluster
