#include "runtime/native/processors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include "runtime/native/descriptor.h"

namespace helenus::runtime::native {

namespace {

constexpr std::string_view kUnified = "0::";  // the line of cgroup v2

// The beginning of a small file; nothing if there is none.
std::string beginning_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t count = file.valid() ? ::read(file.number(), text.data(), text.size()) : 0;
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

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
  const std::size_t line = membership.starts_with(kUnified) ? 0 : membership.find("\n0::");
  if (line == std::string_view::npos) return std::nullopt;
  std::string_view group = membership.substr(membership.find(kUnified, line) + kUnified.size());
  group = group.substr(0, group.find('\n'));
  std::optional<std::uint32_t> least;
  for (;;) {
    const auto granted = processors_in(beginning_of(root + std::string(group) + "/cpu.max"));
    if (granted) least = std::min(least.value_or(*granted), *granted);
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/'));
  }
}

std::uint32_t processors_granted() {
  const auto allowed = static_cast<std::uint32_t>(processors_allowed().size());
  const auto quota = processor_quota(beginning_of("/proc/self/cgroup"), "/sys/fs/cgroup");
  return std::max(1U, std::min(allowed, quota.value_or(allowed)));
}

}  // namespace helenus::runtime::native
