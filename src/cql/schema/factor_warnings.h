// factor_warnings: what a client is warned of who wants more replicas than there are nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/schema.h"

namespace helenus::cql {

// How many nodes each data centre has.
using NodeCounts = std::map<std::string, std::uint32_t>;

std::vector<std::string> factor_warnings(const model::Keyspace& keyspace, const NodeCounts& nodes);

}  // namespace helenus::cql
