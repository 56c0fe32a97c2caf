#include "runtime/native/processors.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <sched.h>

#include "runtime/native/control_group.h"

namespace helenus::runtime::native {

namespace {

std::optional<std::uint64_t> take_number(std::string_view& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::vector<int> processors_allowed() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {0};
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (CPU_ISSET(number, &allowed)) processors.push_back(number);
  }
  return processors;
}

std::optional<std::uint32_t> processors_in(std::string_view cpu_max) {
  const auto quota = take_number(cpu_max);
  if (!quota || !cpu_max.starts_with(' ')) return std::nullopt;
  cpu_max.remove_prefix(1);
  const auto period = take_number(cpu_max);
  if (!period || *period == 0) return std::nullopt;
  const std::uint64_t whole = (*quota / *period) + (*quota % *period == 0 ? 0 : 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(whole, 1, std::numeric_limits<std::uint32_t>::max()));
}

std::optional<std::uint32_t> processor_quota(std::string_view membership, const std::string& root) {
  std::optional<std::uint32_t> least;
  for (const std::string& text : texts_of_groups(membership, root, "cpu.max")) {
    const auto granted = processors_in(text);
    if (granted) least = std::min(least.value_or(*granted), *granted);
  }
  return least;
}

std::uint32_t processors_granted() {
  const auto allowed = static_cast<std::uint32_t>(processors_allowed().size());
  const auto quota = processor_quota(own_groups(), std::string(kGroupRoot));
  return std::max(1U, std::min(allowed, quota.value_or(allowed)));
}

}  // namespace helenus::runtime::native
