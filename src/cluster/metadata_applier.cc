#include "cluster/metadata_applier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "cluster/announcement.h"
#include "runtime/dawdle.h"
#include "runtime/sleep.h"

namespace helenus::cluster {

using base::Result;
using consensus::Version;
using runtime::Task;
using runtime::Until;

namespace {

// How long the owner may take to apply metadata before it is asked again.
constexpr runtime::Duration kApplyTimeout = std::chrono::minutes(1);
constexpr runtime::Duration kApplyPauseMax = std::chrono::seconds(30);
constexpr runtime::Duration kDawdleMax = std::chrono::seconds(2);

}  // namespace

MetadataApplier::MetadataApplier(const NodeContext& context, Apply apply, KnownMetadata& known,
                                 membership::GossipService& gossip)
    : context_(context),
      apply_(std::move(apply)),
      known_(known),
      gossip_(gossip),
      log_(context.runtime.logger("cluster")) {}

void MetadataApplier::on_newer(const MetadataPtr& now, const MetadataPtr& before) {
  if (!apply_) set_applied(known_.version(), now);
  // The status of this node follows from the metadata that are known, applied or not.
  if (before && applied_) announce();
  if (!apply_) gossip_.spread();
}

void MetadataApplier::start() {
  if (apply_) context_.tasks.spawn(run());
}

Task<void> MetadataApplier::run() {
  runtime::Duration pause = context_.options.retry_pause;
  for (;;) {
    const auto newer = co_await known_.wait_newer(applied_version_, {.stop = context_.stopping});
    if (!newer) co_return;
    if (context_.runtime.buggify("cluster.late_apply")) {
      static_cast<void>(co_await runtime::dawdle(context_.runtime, kDawdleMax, context_.stopping));
    }
    const Version version = known_.version();
    const MetadataPtr metadata = known_.metadata();
    const auto applied = co_await apply_(
        metadata, version, Until::after(context_.runtime, kApplyTimeout, context_.stopping));
    if (applied) {
      pause = context_.options.retry_pause;
      set_applied(version, metadata);
      announce();
      gossip_.spread();
      context_.news.wake_all();
      continue;
    }
    if (context_.stopping.stop_requested()) co_return;
    log_.error("this node could not apply the newest metadata, and will try again",
               base::kv("version", version), base::kv("reason", applied.error()));
    if (!co_await runtime::sleep_for(context_.runtime, pause, context_.stopping)) co_return;
    pause = std::min(2 * pause, kApplyPauseMax);
  }
}

Task<Result<void>> MetadataApplier::wait_applied(Until until) {
  const Version version = known_.version();
  if (applied_version_ < version) {
    context_.phase.set(fmt::format("applies version {} of the metadata", version));
  }
  while (applied_version_ < version) CO_TRY_VOID(co_await context_.news.wait(until));
  co_return {};
}

void MetadataApplier::announce() {
  cluster::announce(gossip_, context_.self, *known_.metadata(), *applied_, applied_version_);
}

void MetadataApplier::set_applied(Version version, MetadataPtr metadata) {
  applied_version_ = version;
  applied_ = std::move(metadata);
}

}  // namespace helenus::cluster
