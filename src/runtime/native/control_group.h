// Control groups (cgroup v2): what the groups that this process is in say of themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace helenus::runtime::native {

// Where the kernel shows them.
inline constexpr std::string_view kGroupRoot = "/sys/fs/cgroup";

// Of which groups this process is, as the kernel says it (/proc/self/cgroup).
std::string own_groups();
// The beginning of the file of that name in the group that `membership` names and in each around
// it, the innermost first; empty where there is none. No texts if it names no group of version 2.
std::vector<std::string> texts_of_groups(std::string_view membership, const std::string& root,
                                         std::string_view file);

}  // namespace helenus::runtime::native
