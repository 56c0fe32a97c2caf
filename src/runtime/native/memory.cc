#include "runtime/native/memory.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <unistd.h>

#include "runtime/native/control_group.h"

namespace helenus::runtime::native {

std::optional<std::uint64_t> memory_quota(std::string_view membership, const std::string& root) {
  std::optional<std::uint64_t> least;
  for (const std::string& text : texts_of_groups(membership, root, "memory.max")) {
    std::uint64_t bytes = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
    if (error == std::errc()) least = std::min(least.value_or(bytes), bytes);
  }
  return least;
}

std::uint64_t memory_granted() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_size = ::sysconf(_SC_PAGESIZE);
  const bool is_known = pages > 0 && page_size > 0;
  const std::uint64_t all = is_known ? std::uint64_t(pages) * std::uint64_t(page_size)
                                     : std::numeric_limits<std::uint64_t>::max();
  return std::min(all, memory_quota(own_groups(), std::string(kGroupRoot)).value_or(all));
}

}  // namespace helenus::runtime::native
