#include "storage/read/superseded_files.h"

#include <algorithm>

namespace helenus::storage {

void Superseded::add(const causality::Clock& context) {
  if (!counts_ || context.empty()) return;
  const auto covered = [&](const causality::Clock& each) { return each.covers(context); };
  if (std::ranges::any_of(contexts_, covered)) return;
  std::erase_if(contexts_, [&](const causality::Clock& each) { return context.covers(each); });
  contexts_.push_back(context);
}

bool Superseded::covers(const SstableMetadata& file) const {
  if (contexts_.empty()) return false;
  const auto named = file.named(tablet_);
  return named && std::ranges::any_of(contexts_, [&](const causality::Clock& context) {
           return context.covers(*named);
         });
}

}  // namespace helenus::storage
