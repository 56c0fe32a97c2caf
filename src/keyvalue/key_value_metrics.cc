#include "keyvalue/key_value_metrics.h"

#include <fmt/format.h>

namespace helenus::keyvalue {

void add_key_value_metrics(const KeyValueStatistics& statistics,
                           std::vector<admin::Metric>& metrics) {
  for (const auto& [what, count] : statistics.answers) {
    metrics.push_back({"helenus_key_value_requests_total",
                       "Requests for rows over HTTP, by method and status.",
                       admin::MetricKind::counter,
                       fmt::format("method=\"{}\",status=\"{}\"", what.first, what.second),
                       static_cast<double>(count)});
  }
  metrics.push_back({"helenus_key_value_reads_of_siblings_total",
                     "Answers over HTTP that showed several values of a column.",
                     admin::MetricKind::counter,
                     {},
                     static_cast<double>(statistics.reads_of_siblings)});
}

}  // namespace helenus::keyvalue
