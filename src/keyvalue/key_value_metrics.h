// What the key-value API has done, as samples (docs/operations/metrics.md).
#pragma once

#include <vector>

#include "admin/metrics.h"
#include "keyvalue/key_value_service.h"

namespace helenus::keyvalue {

void add_key_value_metrics(const KeyValueStatistics& statistics,
                           std::vector<admin::Metric>& metrics);

}  // namespace helenus::keyvalue
