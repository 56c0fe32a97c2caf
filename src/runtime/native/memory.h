// Memory: how much of it this process may take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace helenus::runtime::native {

// What the machine has, or less where a control group (cgroup v2) grants less.
std::uint64_t memory_granted();

// The smallest `memory.max` of a group and of those around it; nothing if none is a number.
// `membership` and `root` as of texts_of_groups().
std::optional<std::uint64_t> memory_quota(std::string_view membership, const std::string& root);

}  // namespace helenus::runtime::native
