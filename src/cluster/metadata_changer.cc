#include "cluster/metadata_changer.h"

#include <utility>

#include "metadata/metadata_codec.h"
#include "runtime/random_uuid.h"

namespace helenus::cluster {

using base::Errc;
using base::Result;
using runtime::Task;
using runtime::Until;

Task<Result<MetadataPtr>> MetadataChanger::change(Transition transition, Until until) {
  for (;;) {
    CO_TRY(const consensus::Document document, co_await store_.read(until));
    CO_TRY(const auto now, metadata::decode_cluster_metadata(document.content));
    CO_TRY(const auto next, transition(now));
    if (next == now) {
      CO_TRY_VOID(known_.adopt(document));
      co_return known_.metadata();
    }
    auto changed =
        co_await store_.change({.id = consensus::ChangeId(runtime::draw_uuid(runtime_.random)),
                                .expected = document.version,
                                .acceptors = metadata::choose_acceptors(next, document.acceptors),
                                .content = metadata::encode(next)},
                               until);
    if (changed) {
      CO_TRY_VOID(known_.adopt(*changed));
      co_return known_.metadata();
    }
    if (!changed.failed_with(Errc::already_exists)) co_return std::move(changed).error();
  }
}

}  // namespace helenus::cluster
