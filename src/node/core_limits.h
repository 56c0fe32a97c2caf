// Core limits: what each core of a node may take, so that together they take what the configuration
// gives the node, whatever their number. Evenly, and each with what it needs at the least: a node
// with very many cores takes more than it was given rather than have cores that can do nothing.
//
// Pure: functions of the configuration.
#pragma once

#include <cstdint>

#include "cql/execute/query_processor.h"
#include "cql/server/admission.h"
#include "cql/server/server.h"
#include "node/config.h"
#include "storage/engine/engine_options.h"

namespace helenus::node {

// Requires of all: cores > 0.
storage::EngineOptions engine_options(const Config& config, std::uint32_t cores);
// What clients may take. What is the node's is the same for any number of cores.
cql::AdmissionLimits admission_limits(const Config& config, std::uint32_t cores);
// Without the core's admission.
cql::ServerOptions server_options(const Config& config, std::uint32_t cores);
cql::QueryProcessorOptions processor_options(const Config& config, std::uint32_t cores);

}  // namespace helenus::node
