#include "cluster/known_metadata.h"

#include <memory>

#include "metadata/metadata_codec.h"

namespace helenus::cluster {

using base::Result;
using runtime::Task;

Result<void> KnownMetadata::adopt(const consensus::Document& document) {
  if (document.version <= version_) return {};
  TRY(auto next, metadata::decode_cluster_metadata(document.content));
  const MetadataPtr before =
      std::exchange(metadata_, std::make_shared<const metadata::ClusterMetadata>(std::move(next)));
  version_ = document.version;
  ring_ = metadata::present_ring(*metadata_);
  for (const Listener& listener : listeners_) listener(metadata_, before);
  news_.wake_all();
  newer_.wake_all();
  return {};
}

Task<Result<void>> KnownMetadata::wait_newer(consensus::Version version, runtime::Until until) {
  while (version_ <= version) CO_TRY_VOID(co_await newer_.wait(until));
  co_return {};
}

void KnownMetadata::close() {
  newer_.wake_all(base::Error(base::Errc::closed));
}

}  // namespace helenus::cluster
