#include "causality/context.h"

#include <algorithm>

namespace helenus::causality {

Context join(const Context& a, const Context& b) {
  return {std::max(a.epoch, b.epoch), std::max(a.floor, b.floor), join(a.dots, b.dots)};
}

base::Result<void> check_claims(const Context& context, ActorId own, const Clock& clock) {
  if (context.dots.is_closed(own)) {
    return base::Error(base::Errc::invalid_argument, "the context closes the actor {}", own);
  }
  if (context.dots.max_of(own) > clock.max_of(own)) {
    return base::Error(base::Errc::invalid_argument, "the context claims {}, never minted",
                       Dot{own, context.dots.max_of(own)});
  }
  return {};
}

}  // namespace helenus::causality

fmt::format_context::iterator fmt::formatter<helenus::causality::Context>::format(
    const helenus::causality::Context& context, fmt::format_context& ctx) const {
  auto out = fmt::format_to(ctx.out(), "{} in epoch {}", context.dots, context.epoch);
  if (context.floor != helenus::causality::kTimestampMin) {
    out = fmt::format_to(out, " above {}", context.floor);
  }
  return out;
}
