#include "replication/cluster/requests_under_way.h"

namespace helenus::replication {

RequestUnderWay::RequestUnderWay(RequestsUnderWay& all, std::string_view kind,
                                 std::string_view keyspace, model::Consistency level,
                                 runtime::MonotonicTime now)
    : all_(all),
      before_(all.newest_),
      id_(all.next_id_++),
      kind_(kind),
      keyspace_(keyspace),
      level_(level),
      began_at_(now) {
  (before_ == nullptr ? all_.oldest_ : before_->behind_) = this;
  all_.newest_ = this;
}

RequestUnderWay::~RequestUnderWay() {
  (before_ == nullptr ? all_.oldest_ : before_->behind_) = behind_;
  (behind_ == nullptr ? all_.newest_ : behind_->before_) = before_;
}

std::vector<RequestFacts> RequestsUnderWay::list(runtime::MonotonicTime now) const {
  std::vector<RequestFacts> facts;
  for (const RequestUnderWay* each = oldest_; each != nullptr && facts.size() < kShownMax;
       each = each->behind_) {
    facts.push_back({.id = each->id_,
                     .kind = std::string(each->kind_),
                     .keyspace = std::string(each->keyspace_),
                     .level = each->level_,
                     .phase = std::string(each->phase_),
                     .required = each->tally_ == nullptr ? 0 : each->tally_->required(),
                     .received = each->tally_ == nullptr ? 0 : each->tally_->acknowledged(),
                     .age = now - each->began_at_});
  }
  return facts;
}

}  // namespace helenus::replication
