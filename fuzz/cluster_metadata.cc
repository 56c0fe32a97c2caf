// Hostile bytes against the cluster's metadata: what decodes is valid and comes back as it was, and
// every change that is granted is valid and may follow (the transitions assert the latter).
#include "metadata/cluster_metadata.h"

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/assert.h"
#include "base/result.h"
#include "metadata/metadata_codec.h"
#include "metadata/transitions.h"

namespace helenus::metadata {
namespace {

// Placements cost tokens times nodes; larger ones teach nothing more.
constexpr std::size_t kTabletsMax = 64;

void check(const base::Result<ClusterMetadata>& metadata) {
  if (!metadata) return;
  ASSERT(decode_cluster_metadata(encode(*metadata)) == *metadata);
}

NodeDescription some_newcomer() {
  base::Uuid::Octets octets{};
  octets.fill(std::byte{0x77});
  return {.id = model::NodeId(base::Uuid(octets)),
          .node_address = runtime::Address::v4({7, 7, 7, 7}, 7),
          .client_address = runtime::Address::v4({7, 7, 7, 7}, 8),
          .datacentre = "dc1",
          .rack = "r7"};
}

}  // namespace
}  // namespace helenus::metadata

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::metadata;  // NOLINT: a main is nobody's header
  const auto metadata = decode_cluster_metadata(std::as_bytes(std::span(data, size)));
  check(metadata);
  if (!metadata || metadata->tablets.size() > kTabletsMax) return 0;
  const auto first = metadata->nodes.front().id();
  check(begin_join(*metadata, some_newcomer()));
  check(begin_leave(*metadata, first));
  check(begin_removal(*metadata, first, DataLoss::refused));
  check(begin_removal(*metadata, first, DataLoss::accepted));
  check(finish_change(*metadata, metadata->epoch));
  check(abandon_change(*metadata));
  check(change_schema(*metadata, {}));
  ASSERT(!choose_acceptors(*metadata, {first}).empty());
  return 0;
}
