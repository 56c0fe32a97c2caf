// MetadataLedger: what any node of a simulated cluster ever knew as the metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "cluster/cluster_options.h"
#include "metadata/cluster_metadata.h"
#include "metadata/transitions.h"
#include "sim/violations.h"

namespace helenus::cluster::testing {

// It is in memory that no crash touches. It complains if one version has two documents, if one does
// not follow from the one before, or if a tablet has other replicas in the same epoch (keyspaces
// are never dropped here).
class MetadataLedger {
 public:
  void saw(std::uint64_t version, const MetadataPtr& metadata) {
    const auto [at, is_new] = documents_.try_emplace(version, metadata);
    if (!is_new) {
      violations_.expect(*at->second == *metadata, "two documents of version {}", version);
      return;
    }
    if (const auto next = std::next(at); next != documents_.end()) expect_follows(next, at);
    if (at != documents_.begin()) expect_follows(at, std::prev(at));
    for (const auto& [name, keyspace] : metadata->keyspaces) {
      const auto replicas = metadata::replicas_of(*metadata, keyspace.replication);
      for (std::size_t i = 0; i < replicas.size(); ++i) {
        const auto [known, is_first] = replicas_.try_emplace(
            std::tuple(name, i, metadata->tablets[i].epoch.value()), replicas[i]);
        violations_.expect(is_first || metadata::same_replicas(known->second, replicas[i]),
                           "tablet {} of {} has other replicas in version {}", i, name, version);
      }
    }
  }
  std::size_t versions() const { return documents_.size(); }
  const sim::Violations& violations() const { return violations_; }
  std::size_t epochs() const {
    std::set<std::uint64_t> epochs;
    for (const auto& [version, metadata] : documents_) epochs.insert(metadata->epoch.value());
    return epochs.size();
  }

  bool is_work_time = false;       // clients alter the schema
  std::uint64_t keyspaces = 0;     // made so far
  std::uint64_t acknowledged = 0;  // changes

 private:
  using Documents = std::map<std::uint64_t, MetadataPtr>;
  void expect_follows(Documents::const_iterator next, Documents::const_iterator before) {
    if (next->first != before->first + 1) return;
    violations_.expect(metadata::may_follow(*next->second, *before->second),
                       "version {} does not follow", next->first);
  }

  sim::Violations violations_;
  Documents documents_;
  std::map<std::tuple<std::string, std::size_t, std::uint64_t>, metadata::TabletReplicas> replicas_;
};

}  // namespace helenus::cluster::testing
