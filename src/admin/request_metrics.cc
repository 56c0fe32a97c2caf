// Metrics of requests among replicas on several nodes, and of the clocks of these.
#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "admin/metrics.h"
#include "model/consistency.h"

namespace helenus::admin {

using replication::RequestStatistics;

namespace {

// Every level of the protocol.
void add_by_level(std::string_view name, std::string_view help, std::string_view labels,
                  const RequestStatistics::ByLevel& counts, std::vector<Metric>& metrics) {
  for (std::uint16_t level = 0; level < counts.size(); ++level) {
    metrics.push_back(
        {name, help, MetricKind::counter,
         fmt::format("{},level=\"{}\"", labels, model::name_of(*model::consistency_from(level))),
         static_cast<double>(counts[level])});
  }
}

}  // namespace

void add_request_metrics(const RequestStatistics& statistics, std::vector<Metric>& metrics) {
  constexpr std::string_view kRequests = "helenus_replication_requests_total";
  constexpr std::string_view kRequestsHelp =
      "Reads and writes of partitions that several nodes hold, by level.";
  add_by_level(kRequests, kRequestsHelp, "kind=\"read\"", statistics.reads, metrics);
  add_by_level(kRequests, kRequestsHelp, "kind=\"write\"", statistics.writes, metrics);
  constexpr std::string_view kErrors = "helenus_replication_levels_missed_total";
  constexpr std::string_view kErrorsHelp = "Those that did not meet their level, by what was told.";
  add_by_level(kErrors, kErrorsHelp, "why=\"unavailable\"", statistics.unavailable, metrics);
  add_by_level(kErrors, kErrorsHelp, "why=\"timeout\"", statistics.timed_out, metrics);
  add_by_level(kErrors, kErrorsHelp, "why=\"failure\"", statistics.failed, metrics);
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    metrics.push_back({name, help, MetricKind::counter, {}, static_cast<double>(value)});
  };
  counter("helenus_replication_digest_reads_total",
          "Reads for which one replica was asked for rows, and others for digests",
          statistics.digest_reads);
  counter("helenus_replication_digest_mismatches_total",
          "Those of them that had to ask for everything, as the digests differed",
          statistics.digest_mismatches);
  counter("helenus_replication_spares_asked_total",
          "Replicas that were asked beside those a read needs, as one was slow or failed.",
          statistics.spares_asked);
  counter("helenus_replication_probes_total",
          "Questions to nodes that are suspected of standing still.", statistics.probes);
  counter("helenus_replication_read_repairs_total", "Reads whose replicas differed.",
          statistics.repairs);
  counter("helenus_replication_repaired_mutations_total",
          "Mutations that were sent to replicas before a read was answered.",
          statistics.repaired_mutations);
  counter("helenus_replication_deltas_sent_total", "Mutations that were sent to other replicas.",
          statistics.deltas_sent);
  counter("helenus_replication_deltas_lost_total",
          "Those that a replica did not acknowledge in time.", statistics.deltas_lost);
  counter("helenus_replication_deltas_not_sent_total",
          "Mutations that were left to anti-entropy: the node is down, or too much is on its way.",
          statistics.deltas_not_sent);
}

// Of kPeersShownMax nodes at most.
void add_clock_metrics(std::span<const ClockWatch::Ahead> clocks, std::vector<Metric>& metrics) {
  const auto apart = std::ranges::count_if(clocks, &ClockWatch::Ahead::is_apart);
  metrics.push_back({"helenus_cluster_clocks_apart",
                     "Nodes whose clocks are ahead of this one's by more than half a second.",
                     MetricKind::gauge,
                     {},
                     static_cast<double>(apart)});
  for (const ClockWatch::Ahead& clock : clocks.first(std::min(clocks.size(), kPeersShownMax))) {
    metrics.push_back({"helenus_cluster_clock_ahead_seconds",
                       "By how much a node's clock is ahead of this one's, at least.",
                       MetricKind::gauge, fmt::format("peer=\"{}\"", clock.node),
                       std::chrono::duration<double>(clock.at_least).count()});
  }
}

}  // namespace helenus::admin
