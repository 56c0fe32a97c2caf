// Processors: which of them this process may run on, and for how much of the time.
//
// Its affinity says which. A control group (cgroup v2) may give it less time than that: two
// processors' worth of sixty-four, say. More event loops than that would be stopped in turns, each
// with whoever waits for it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace helenus::runtime::native {

// By number, ascending; at least one.
std::vector<int> processors_allowed();

// How many may be used at once; at least one.
std::uint32_t processors_granted();

// What a file cpu.max ("200000 100000", "max 100000") grants, rounded up. None: no limit, or
// nothing that can be read as one.
std::optional<std::uint32_t> processors_in(std::string_view cpu_max);

// The least that the group of this process and the groups around it grant. `membership` is what
// /proc/self/cgroup says, `root` is where the groups are mounted. None: no limit.
std::optional<std::uint32_t> processor_quota(std::string_view membership, const std::string& root);

}  // namespace helenus::runtime::native
