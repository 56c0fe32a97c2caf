#include "admin/metrics.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <iterator>

#include <fmt/format.h>

namespace helenus::admin {

namespace {

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter:
      return "counter";
    case MetricKind::gauge:
      return "gauge";
    case MetricKind::histogram:
      return "histogram";
  }
  return "untyped";
}

// Buckets end one below powers of two, where those of base::Histogram end as well.
struct HistogramShape {
  unsigned bits_first;
  unsigned bits_last;
  double per_unit;  // how many of what was recorded make one of what is shown
};
constexpr HistogramShape kSmallCounts{.bits_first = 0, .bits_last = 6, .per_unit = 1};
// Nanoseconds as seconds: 16 us to 17 s.
constexpr HistogramShape kLatencies{.bits_first = 14, .bits_last = 34, .per_unit = 1e9};

class Adder {
 public:
  explicit Adder(std::vector<Metric>& metrics) : metrics_(metrics) {}

  template <class Number>
  void counter(std::string_view name, std::string_view help, Number value) {
    metrics_.push_back({name, help, MetricKind::counter, {}, static_cast<double>(value)});
  }
  template <class Number>
  void gauge(std::string_view name, std::string_view help, Number value) {
    metrics_.push_back({name, help, MetricKind::gauge, {}, static_cast<double>(value)});
  }
  void histogram(std::string_view name, std::string_view help, const base::Histogram& histogram,
                 const HistogramShape& shape, const std::string& labels = {}) {
    const auto sample = [&](std::string_view suffix, std::string of, double value) {
      metrics_.push_back({name, help, MetricKind::histogram, std::move(of), value, suffix});
    };
    const std::string_view comma = labels.empty() ? "" : ",";
    for (unsigned bits = shape.bits_first; bits <= shape.bits_last; ++bits) {
      const std::uint64_t most = (std::uint64_t{1} << bits) - 1;
      sample(
          "_bucket",
          fmt::format("{}{}le=\"{}\"", labels, comma, static_cast<double>(most) / shape.per_unit),
          static_cast<double>(histogram.count_up_to(most)));
    }
    const auto count = static_cast<double>(histogram.count());
    sample("_bucket", fmt::format("{}{}le=\"+Inf\"", labels, comma), count);
    sample("_sum", labels, histogram.sum() / shape.per_unit);
    sample("_count", labels, count);
  }

 private:
  std::vector<Metric>& metrics_;
};

void add_writes(const storage::EngineStatistics& statistics, Adder& add) {
  add.counter("helenus_storage_writes_total", "Mutations that were logged and applied.",
              statistics.writes);
  add.counter("helenus_storage_write_bytes_total", "Bytes of their records in the commit log.",
              statistics.write_bytes);
  add.counter("helenus_storage_user_bytes_total", "Bytes of keys and values in them.",
              statistics.user_bytes);
  add.counter("helenus_storage_writes_repeated_total",
              "Mutations of other replicas that had been applied before.",
              statistics.writes_repeated);
  add.counter("helenus_storage_writes_delayed_total", "Mutations that waited for room.",
              statistics.writes_delayed);
  add.counter("helenus_storage_writes_refused_total",
              "Mutations that were refused: the disk is full, or memory is and flushes fail.",
              statistics.writes_refused);
  add.gauge("helenus_storage_disk_full", "Cores that take deletes only, since the disk is full.",
            statistics.disks_full);
  add.gauge("helenus_storage_disk_reserve_bytes",
            "Bytes of disk kept for deletes, changes of the schema and the next start.",
            statistics.disk_reserve_bytes);
  add.gauge("helenus_storage_write_amplification",
            "Bytes that went to files for each byte of keys and values, since the start.",
            statistics.write_amplification());
}

void add_reads(const storage::EngineStatistics& statistics, Adder& add) {
  add.counter("helenus_storage_reads_total", "Rows that were looked up.", statistics.reads);
  add.counter("helenus_storage_reads_from_memtables_total", "Lookups that found rows in memory.",
              statistics.reads_from_memtables);
  add.counter("helenus_storage_reads_from_sstables_total", "Lookups that found rows in files.",
              statistics.reads_from_sstables);
  add.counter("helenus_storage_reads_found_nothing_total", "Lookups that found no row.",
              statistics.reads_found_nothing);
  add.counter("helenus_storage_sstables_superseded_total",
              "Files that lookups did not open, since a newer delete had seen all of them.",
              statistics.sstables_superseded);
  add.counter("helenus_storage_reads_waited_for_log_total",
              "Lookups that saw a write before it was durable, and waited for it.",
              statistics.reads_waited_for_log);
  add.histogram("helenus_storage_blocks_per_read", "Blocks read from the disk for one lookup.",
                statistics.blocks_per_read, kSmallCounts);
  add.histogram("helenus_storage_sstables_per_read", "Files that one lookup had to look into.",
                statistics.sstables_per_read, kSmallCounts);
}

void add_maintenance(const storage::EngineStatistics& statistics, Adder& add) {
  add.counter("helenus_storage_flushes_total", "Memtables written to files.", statistics.flushes);
  add.counter("helenus_storage_flushed_bytes_total", "Bytes written by flushes.",
              statistics.flushed_bytes);
  add.counter("helenus_storage_flush_failures_total", "Flushes that failed and were tried again.",
              statistics.flush_failures);
  add.counter("helenus_storage_compactions_total", "Compactions that were completed.",
              statistics.compactions);
  add.counter("helenus_storage_compacted_bytes_read_total", "Bytes read by compactions.",
              statistics.compacted_bytes_read);
  add.counter("helenus_storage_compacted_bytes_written_total", "Bytes written by compactions.",
              statistics.compacted_bytes_written);
  add.counter("helenus_storage_compaction_failures_total", "Compactions that failed.",
              statistics.compaction_failures);
  add.counter("helenus_storage_collections_total",
              "Compactions for the sake of deletes and expired values alone.",
              statistics.collections);
  add.counter("helenus_storage_keys_gone_total",
              "Keys of which flushes and compactions found nothing left.", statistics.keys_gone);
  add.counter("helenus_storage_index_rows_read_total",
              "Rows that were brought into indexes made after them.", statistics.index_rows_read);
  add.counter("helenus_storage_index_entries_stale_total",
              "Entries of indexes that merges left out, since no row has their value.",
              statistics.index_entries_stale);
  add.gauge("helenus_storage_indexes_being_built",
            "Indexes that some core of this node does not read yet.",
            statistics.indexes_being_built);
  add.counter("helenus_storage_directories_passed_over_total",
              "Data directories that were in trouble when a new file's was chosen.",
              statistics.directories_passed_over);
  add.counter("helenus_storage_partitions_unsettled_total",
              "Partitions merged without being freed of deletes, having too many of ranges.",
              statistics.partitions_unsettled);
  add.gauge("helenus_storage_tablets_in_doubt",
            "Tablets that may have lost writes and have no new actor yet.",
            statistics.tablets_in_doubt);
  add.gauge("helenus_storage_tablets_stopped",
            "Tablets that serve nobody, since a mutation file of theirs is damaged.",
            statistics.tablets_stopped);
  add.gauge("helenus_storage_memtable_bytes", "Bytes in memtables.", statistics.memtable_bytes);
  add.gauge("helenus_storage_memtables_waiting", "Memtables that wait to be flushed.",
            statistics.memtables_waiting);
  add.gauge("helenus_storage_sstables", "Files of rows.", statistics.sstables);
  add.gauge("helenus_storage_sstables_set_aside", "Damaged ones among them.",
            statistics.sstables_set_aside);
  add.gauge("helenus_storage_sstable_bytes", "Bytes of files of rows.", statistics.sstable_bytes);
  add.gauge("helenus_storage_sstable_resident_bytes", "Bytes of indexes and filters in memory.",
            statistics.sstable_resident_bytes);
  add.gauge("helenus_storage_increments_unfolded",
            "Increments of counters in files that are not in a total yet.",
            statistics.increments_unfolded);
  add.gauge("helenus_storage_compaction_backlog_bytes", "Bytes that compactions should merge.",
            statistics.compaction_backlog_bytes);
  add.gauge("helenus_storage_compactions_running", "Compactions under way.",
            statistics.compactions_running);
}

void add_mutation_log(const storage::EngineStatistics& statistics, Adder& add) {
  add.counter("helenus_mutation_log_moved_total",
              "Mutations that some replica lacked when their memtable was flushed.",
              statistics.mutations_moved);
  add.counter("helenus_mutation_log_written_bytes_total", "Bytes written to mutation files.",
              statistics.mutation_bytes_written);
  add.counter("helenus_mutation_log_files_shed_total",
              "Mutation files given up over the cap: replicas that need them are reconciled.",
              statistics.mutation_files_shed);
  add.gauge("helenus_mutation_log_mutations", "Mutations kept in memory for other replicas.",
            statistics.mutations_in_memory);
  add.gauge("helenus_mutation_log_memory_bytes", "Bytes that they take.",
            statistics.mutation_memory_bytes);
  add.gauge("helenus_mutation_log_files", "Mutation files.", statistics.mutation_files);
  add.gauge("helenus_mutation_log_file_bytes", "Their bytes.", statistics.mutation_file_bytes);
  add.gauge("helenus_mutation_log_dots_bytes", "Bytes of the sets of dots of mutation files.",
            statistics.mutation_dots_bytes);
  add.gauge("helenus_storage_timestamp_floor_bytes",
            "Bytes of the timestamps above which writes must lie.",
            statistics.timestamp_floor_bytes);
}

void add_operations(const storage::EngineStatistics& statistics, Adder& add) {
  add.counter("helenus_operations_total", "Mutations that were made under operation ids.",
              statistics.operations);
  add.counter("helenus_operations_screen_hits_total",
              "Ids that the filter took for known, and that were looked up.",
              statistics.operation_screen_hits);
  add.counter("helenus_operations_duplicates_total",
              "Ids that were known: nothing was written again.", statistics.operation_duplicates);
  add.counter("helenus_operations_false_positives_total",
              "Ids that the filter took for known and that were new.",
              statistics.operation_false_positives);
  add.counter("helenus_operations_expired_total", "Ids refused as older than the window.",
              statistics.operations_expired);
  add.counter("helenus_operations_from_the_future_total",
              "Ids refused as further ahead than clocks may be.",
              statistics.operations_from_the_future);
  add.counter("helenus_operations_refused_total",
              "Ids refused as the mutation log is over its cap.", statistics.operations_refused);
  add.gauge("helenus_operations_remembered", "Ids that the filter answers for.",
            statistics.operations_remembered);
  add.gauge("helenus_operations_filter_bytes", "Bytes of the filter.",
            statistics.operation_filter_bytes);
  add.gauge("helenus_operations_tablets_holding",
            "Tablets whose mutation logs keep what is stable until its ids have expired.",
            statistics.tablets_holding_operations);
}

void add_files(const storage::EngineStatistics& statistics, Adder& add) {
  const storage::SstableCounters& files = statistics.sstable_counters;
  add.counter("helenus_sstable_blocks_read_total", "Data and index blocks read from the disk.",
              files.data_blocks_read + files.index_blocks_read);
  add.counter("helenus_sstable_bytes_read_total", "Bytes read from files of rows.",
              files.bytes_read);
  add.counter("helenus_sstable_reads_total", "Reads of files of rows.", files.reads);
  add.counter("helenus_sstable_reads_delayed_total", "Reads that waited for their turn.",
              files.reads_delayed);
  add.counter("helenus_sstable_reads_shared_total",
              "Waits for a block that another lookup was reading.", files.reads_shared);
  add.counter("helenus_filter_negatives_total", "Lookups that a filter spared a file.",
              files.filter_negatives);
  add.counter("helenus_filter_positives_total", "Lookups that a filter let through to a row.",
              files.filter_positives);
  add.counter("helenus_filter_false_positives_total", "Lookups that a filter let through in vain.",
              files.filter_false_positives);
  const storage::BlockCache::Counters& cache = statistics.cache_counters;
  add.counter("helenus_block_cache_hits_total", "Blocks found in the cache.", cache.hits);
  add.counter("helenus_block_cache_misses_total", "Blocks not found in the cache.", cache.misses);
  add.counter("helenus_block_cache_insertions_total", "Blocks that were taken in.",
              cache.insertions);
  add.counter("helenus_block_cache_evictions_total", "Blocks that made room for others.",
              cache.evictions);
  add.counter("helenus_block_cache_ghost_hits_total",
              "Blocks that were evicted and wanted again soon.", cache.ghost_hits);
  add.counter("helenus_block_cache_refusals_total", "Blocks that were too large to be kept.",
              cache.refusals);
  const storage::CommitLogUsage& log = statistics.log_usage;
  add.counter("helenus_commitlog_written_bytes_total", "Bytes written to the commit log.",
              statistics.log_bytes_written);
  add.gauge("helenus_commitlog_disk_bytes", "Bytes of the commit log's files.", log.disk_bytes);
  add.gauge("helenus_commitlog_disk_bytes_max", "Bytes that they may take.", log.disk_bytes_max);
  add.gauge("helenus_commitlog_segments", "Segments that are needed.", log.segments);
  add.gauge("helenus_commitlog_spare_files", "Files that wait to be segments again.",
            log.spare_files);
  add.gauge("helenus_commitlog_staged_bytes", "Bytes that wait for the disk.", log.staged_bytes);
  add.gauge("helenus_commitlog_waiters", "Writes that wait to be durable.", log.waiters);
}

void add_gossip(const membership::GossipService::Statistics& gossip, Adder& add) {
  add.counter("helenus_gossip_rounds_total", "Rounds of gossip.", gossip.rounds);
  add.counter("helenus_gossip_messages_sent_total", "Messages that were sent.",
              gossip.messages_sent);
  add.counter("helenus_gossip_sent_bytes_total", "Their bytes.", gossip.bytes_sent);
  add.counter("helenus_gossip_messages_dropped_total",
              "Messages that could not be sent: nobody was reached.", gossip.messages_dropped);
  add.counter("helenus_gossip_messages_refused_total",
              "Messages of others that made no sense or were of another cluster.",
              gossip.messages_refused);
}

void add_consensus(const consensus::PaxosStore::Statistics& consensus, Adder& add) {
  add.counter("helenus_consensus_messages_dropped_total",
              "Messages that could not be sent: nobody was reached.", consensus.messages_dropped);
  add.counter("helenus_consensus_messages_refused_total",
              "Messages of others that made no sense, or were of a later version or another "
              "cluster.",
              consensus.messages_refused);
  add.counter("helenus_consensus_claims_denied_total",
              "Documents that somebody said were decided, and that the acceptors denied.",
              consensus.claims_denied);
}

void add_connections(const rpc::Statistics& rpc, Adder& add) {
  add.gauge("helenus_rpc_connections_inbound", "Connections that other nodes dialled.",
            rpc.connections_current);
  add.counter("helenus_rpc_connections_accepted_total", "Connections that were accepted.",
              rpc.connections_accepted);
  add.counter("helenus_rpc_connections_refused_total",
              "Connections of strangers, of other versions, or too many.", rpc.connections_refused);
  add.counter("helenus_rpc_proofs_refused_total",
              "Of these, connections without a proof of the cluster's secret.", rpc.proofs_refused);
  add.counter("helenus_rpc_connections_bad_total",
              "Connections ended for garbage, damage or silence.", rpc.connections_bad);
  add.gauge("helenus_rpc_handler_bytes", "Bytes of requests of other nodes that are at work.",
            rpc.handler_bytes_current);
}

// One number of a peer.
struct PeerMetric {
  std::string_view name;
  std::string_view help;
  MetricKind kind;
  double (*value)(const rpc::PeerStatistics& peer);
};

template <auto kField>
constexpr double field_of(const rpc::PeerStatistics& peer) {
  return static_cast<double>(peer.*kField);
}

double calls_failed(const rpc::PeerStatistics& peer) {
  std::uint64_t sum = 0;
  for (const auto& [code, count] : peer.calls_failed) sum += count;
  return static_cast<double>(sum);
}

using Peer = rpc::PeerStatistics;

constexpr auto kPeerMetrics = std::to_array<PeerMetric>({
    {"helenus_rpc_connections", "Connections with a node, in both directions.", MetricKind::gauge,
     field_of<&Peer::connections_current>},
    {"helenus_rpc_sent_bytes_total", "Bytes sent to a node.", MetricKind::counter,
     field_of<&Peer::bytes_sent>},
    {"helenus_rpc_received_bytes_total", "Bytes received from a node.", MetricKind::counter,
     field_of<&Peer::bytes_received>},
    {"helenus_rpc_dials_total", "Attempts to connect to a node.", MetricKind::counter,
     field_of<&Peer::dials>},
    {"helenus_rpc_dials_failed_total", "Those that failed.", MetricKind::counter,
     field_of<&Peer::dials_failed>},
    {"helenus_rpc_connections_broken_total", "Connections to a node that broke.",
     MetricKind::counter, field_of<&Peer::connections_broken>},
    {"helenus_rpc_requests_sent_total", "Requests sent to a node.", MetricKind::counter,
     field_of<&Peer::requests_sent>},
    {"helenus_rpc_requests_current", "Requests to a node that wait to be sent or answered.",
     MetricKind::gauge, field_of<&Peer::requests_current>},
    {"helenus_rpc_calls_failed_total", "Requests to a node that failed, for whatever reason.",
     MetricKind::counter, calls_failed},
    {"helenus_rpc_one_way_sent_total", "One-way messages sent to a node.", MetricKind::counter,
     field_of<&Peer::one_way_sent>},
    {"helenus_rpc_one_way_dropped_total", "One-way messages to a node that were never sent.",
     MetricKind::counter, field_of<&Peer::one_way_dropped>},
    {"helenus_rpc_requests_received_total", "Requests of a node.", MetricKind::counter,
     field_of<&Peer::requests_received>},
    {"helenus_rpc_requests_refused_total",
     "Requests of a node that were too many, or that nobody serves.", MetricKind::counter,
     field_of<&Peer::requests_refused>},
    {"helenus_rpc_requests_late_total",
     "Requests of a node that were not executed, as their time was over when they were read.",
     MetricKind::counter, field_of<&Peer::requests_late>},
    {"helenus_rpc_one_way_received_total", "One-way messages of a node.", MetricKind::counter,
     field_of<&Peer::one_way_received>},
});

std::string label_of(model::NodeId node) {
  return fmt::format("node=\"{}\"", node.value().to_string());
}
constexpr std::string_view kOthersLabel = "node=\"others\"";

void add_peers(const ClusterStatistics& statistics, std::vector<Metric>& metrics) {
  std::vector<std::string> labels(statistics.peers.size());  // none: one of the others
  std::size_t shown = 0;
  for (std::size_t i = 0; i < labels.size() && shown < kPeersShownMax; ++i) {
    if (!statistics.peers[i].is_of_cluster) continue;
    labels[i] = label_of(statistics.peers[i].node);
    ++shown;
  }
  for (const PeerMetric& metric : kPeerMetrics) {
    double others = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double value = metric.value(statistics.peers[i].statistics);
      if (labels[i].empty()) {
        others += value;
      } else {
        metrics.push_back({metric.name, metric.help, metric.kind, labels[i], value});
      }
    }
    metrics.push_back({metric.name, metric.help, metric.kind, std::string(kOthersLabel), others});
  }
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto& round_trip = statistics.peers[i].statistics.round_trip_smoothed;
    if (labels[i].empty() || !round_trip) continue;
    metrics.push_back({"helenus_rpc_round_trip_seconds",
                       "From a ping to its answer, of late: a moving average.", MetricKind::gauge,
                       labels[i], std::chrono::duration<double>(*round_trip).count()});
  }
}

}  // namespace

void add_cluster_metrics(const ClusterStatistics& statistics, std::vector<Metric>& metrics) {
  Adder add(metrics);
  add.gauge("helenus_cluster_nodes", "Nodes of the cluster.", statistics.nodes);
  add.gauge("helenus_cluster_nodes_up", "Those that are up, as this node sees it.",
            statistics.nodes_up);
  add_clock_metrics(statistics.clocks, metrics);
  add.gauge("helenus_cluster_metadata_version", "Version of the metadata that this node acts by.",
            statistics.metadata_version);
  add_gossip(statistics.gossip, add);
  add_consensus(statistics.consensus, add);
  add_connections(statistics.rpc, add);
  add_peers(statistics, metrics);
}

void add_engine_metrics(const storage::EngineStatistics& statistics, std::vector<Metric>& metrics) {
  Adder add(metrics);
  add_writes(statistics, add);
  add_reads(statistics, add);
  add_maintenance(statistics, add);
  add_mutation_log(statistics, add);
  add_operations(statistics, add);
  add_files(statistics, add);
}

namespace {

// By ServerStatistics' kinds of answers.
constexpr std::array<std::string_view, cql::ServerStatistics::kAnswerKinds> kAnswerNames = {
    "error", "void", "rows", "set_keyspace", "prepared", "schema_change"};

}  // namespace

void add_server_metrics(const cql::ServerStatistics& statistics, std::size_t request_bytes,
                        std::vector<Metric>& metrics) {
  Adder add(metrics);
  add.gauge("helenus_cql_connections", "Connections of clients.", statistics.connections_current);
  add.counter("helenus_cql_connections_accepted_total", "Connections that were accepted.",
              statistics.connections_accepted);
  add.counter("helenus_cql_connections_refused_total", "Connections that were too many.",
              statistics.connections_refused);
  add.counter("helenus_cql_connections_timed_out_total",
              "Connections that were slow to start, to send or to take answers.",
              statistics.connections_timed_out);
  add.gauge("helenus_cql_requests_current", "Requests under way.", statistics.requests_current);
  for (std::size_t opcode = 0; opcode < statistics.requests.size(); ++opcode) {
    if (statistics.requests[opcode] == 0) continue;
    const auto name = cql::protocol::name_of(static_cast<cql::protocol::Opcode>(opcode));
    metrics.push_back({"helenus_cql_requests_total", "Requests, by opcode.", MetricKind::counter,
                       fmt::format("opcode=\"{}\"", name),
                       static_cast<double>(statistics.requests[opcode])});
  }
  for (std::size_t kind = 0; kind < kAnswerNames.size(); ++kind) {
    const base::Histogram& took = statistics.answer_ns[kind];
    if (took.empty()) continue;
    add.histogram("helenus_cql_request_seconds",
                  "From a request about data to its answer, by what that was.", took, kLatencies,
                  fmt::format("answer=\"{}\"", kAnswerNames[kind]));
  }
  for (const auto& [code, count] : statistics.errors) {
    metrics.push_back(
        {"helenus_cql_errors_total", "Answers that were errors, by code.", MetricKind::counter,
         fmt::format("code=\"{:#06x}\"", static_cast<unsigned>(code)), static_cast<double>(count)});
  }
  add.counter("helenus_cql_events_total", "Events sent, each client counted.", statistics.events);
  add.counter("helenus_cql_read_bytes_total", "Bytes read from clients.", statistics.bytes_read);
  add.counter("helenus_cql_written_bytes_total", "Bytes written to clients.",
              statistics.bytes_written);
  add.gauge("helenus_cql_request_bytes", "Bytes of requests in memory.", request_bytes);
}

namespace {

using replication::AntiEntropyReport;

struct MissingMetric {
  std::string_view name;
  std::string_view help;
  std::uint64_t AntiEntropyReport::Peer::* value;
};
constexpr auto kMissingMetrics = std::to_array<MissingMetric>({
    {"helenus_replication_missing_there", "Writes that are here, and a peer has not told of.",
     &AntiEntropyReport::Peer::lacking_there},
    {"helenus_replication_missing_here", "Writes that a peer has told of, and are not here.",
     &AntiEntropyReport::Peer::lacking_here},
});

void add_missing(const AntiEntropyReport& report, std::vector<Metric>& metrics) {
  for (const MissingMetric& metric : kMissingMetrics) {
    double others = 0;
    for (std::size_t i = 0; i < report.peers.size(); ++i) {
      const auto value = static_cast<double>(report.peers[i].*metric.value);
      if (i < kPeersShownMax) {
        metrics.push_back(
            {metric.name, metric.help, MetricKind::gauge, label_of(report.peers[i].node), value});
      } else {
        others += value;
      }
    }
    metrics.push_back(
        {metric.name, metric.help, MetricKind::gauge, std::string(kOthersLabel), others});
  }
}

void add_announcements(const AntiEntropyReport& report, Adder& add) {
  add.counter("helenus_replication_announcements_total", "Messages that told clocks to peers.",
              report.announcements);
  add.counter("helenus_replication_announcements_failed_total", "Those that failed.",
              report.announcements_failed);
  add.counter("helenus_replication_clocks_announced_total", "Clocks of tablets that were told.",
              report.clocks_announced);
  add.counter("helenus_replication_clocks_refused_total",
              "Those that a peer refused: of another epoch, or of a tablet it does not hold.",
              report.clocks_refused);
  add.counter("helenus_replication_clocks_taken_total", "Clocks of peers that were taken.",
              report.clocks_taken);
  add.counter("helenus_replication_clocks_ignored_total",
              "Clocks of peers that were of another epoch, or of a tablet that is not here.",
              report.clocks_ignored);
}

void add_pulls(const AntiEntropyReport& report, Adder& add) {
  add.counter("helenus_replication_pulls_total", "Fetches of what was missing in a tablet.",
              report.pulls);
  add.counter("helenus_replication_pulls_failed_total", "Those that failed.", report.pulls_failed);
  add.counter("helenus_replication_pages_total", "Pages that were fetched.", report.pages);
  add.counter("helenus_replication_pulled_bytes_total", "Bytes of mutations that were fetched.",
              report.bytes_pulled);
  add.counter("helenus_replication_mutations_pulled_total",
              "Mutations that were fetched and applied.", report.mutations_pulled);
  add.counter("helenus_replication_dots_covered_total",
              "Writes that left nothing to fetch, and count as here.", report.dots_covered);
  add.counter("helenus_replication_mutations_put_off_total",
              "Mutations of tables that the metadata had not given yet.", report.mutations_put_off);
  add.counter("helenus_replication_mutations_refused_total",
              "Mutations that storage refused, for what they are.", report.mutations_refused);
  add.counter("helenus_replication_pages_served_total", "Pages that peers fetched.",
              report.pages_served);
  add.counter("helenus_replication_served_bytes_total", "Their bytes.", report.bytes_served);
}

void add_streams(const AntiEntropyReport& report, Adder& add) {
  add.counter("helenus_replication_streams_total",
              "Copies of tablets that were begun to be taken from peers.", report.streams);
  add.counter("helenus_replication_streams_failed_total", "Those that failed.",
              report.streams_failed);
  add.counter("helenus_replication_streams_refused_total",
              "Those that failed since a peer sent what it may not.", report.streams_refused);
  add.counter("helenus_replication_streamed_entries_total", "Rows and range deletes they brought.",
              report.entries_streamed);
  add.counter("helenus_replication_streamed_bytes_total", "Their bytes.", report.bytes_streamed);
  add.counter("helenus_replication_streams_served_total", "Copies of tablets that peers began.",
              report.streams_served);
  add.counter("helenus_replication_streams_served_bytes_total", "Bytes they were given.",
              report.stream_bytes_served);
}

}  // namespace

void add_replication_metrics(const AntiEntropyReport& report, std::vector<Metric>& metrics) {
  Adder add(metrics);
  add_missing(report, metrics);
  add_announcements(report, add);
  add_pulls(report, add);
  add_streams(report, add);
  add.gauge("helenus_replication_withheld",
            "Writes that a peer has seen and could not give, when it was asked last.",
            report.withheld);
  add.gauge("helenus_replication_tablets", "Tablets that other nodes hold, too.", report.tablets);
  add.gauge("helenus_replication_tablets_behind",
            "Those in which a peer has told of what is not on the disk here.",
            report.tablets_behind);
  add.gauge("helenus_replication_tablets_behind_themselves",
            "Those in which a peer has seen writes of this node that it has not itself.",
            report.tablets_behind_themselves);
}

std::string to_prometheus(std::span<const Metric> metrics) {
  std::string text;
  auto out = std::back_inserter(text);
  std::string_view last;
  for (const Metric& metric : metrics) {
    if (metric.name != last) {
      fmt::format_to(out, "# HELP {} {}\n# TYPE {} {}\n", metric.name, metric.help, metric.name,
                     name_of(metric.kind));
      last = metric.name;
    }
    fmt::format_to(out, "{}{}", metric.name, metric.suffix);
    if (!metric.labels.empty()) fmt::format_to(out, "{{{}}}", metric.labels);
    fmt::format_to(out, " {}\n", metric.value);
  }
  return text;
}

}  // namespace helenus::admin
