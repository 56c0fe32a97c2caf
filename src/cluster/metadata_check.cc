#include "cluster/metadata_check.h"

#include <algorithm>

#include "metadata/cluster_metadata.h"
#include "metadata/metadata_codec.h"

namespace helenus::cluster {

using base::Errc;
using base::Error;
using base::Result;

Result<void> check_metadata(const std::string& cluster_name, const consensus::Document& document,
                            const consensus::Document* previous) {
  TRY(const auto metadata, metadata::decode_cluster_metadata(document.content));
  if (metadata.cluster_name != cluster_name) {
    return Error(Errc::refused, "metadata of the cluster \"{}\"", metadata.cluster_name);
  }
  for (const model::NodeId acceptor : document.acceptors) {
    if (metadata.find(acceptor) == nullptr) {
      return Error(Errc::refused, "node {} would decide, and is not of the cluster", acceptor);
    }
  }
  if (previous == nullptr) return {};
  TRY(const auto before, metadata::decode_cluster_metadata(previous->content));
  if (!metadata::may_follow(metadata, before)) {
    return Error(Errc::refused, "metadata that may not follow those of version {}",
                 previous->version);
  }
  auto expected = metadata::choose_acceptors(metadata, previous->acceptors);
  std::ranges::sort(expected);
  if (document.acceptors != expected) {
    return Error(Errc::refused, "other nodes would decide than the metadata ask for");
  }
  return {};
}

}  // namespace helenus::cluster
