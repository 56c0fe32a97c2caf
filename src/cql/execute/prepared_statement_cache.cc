#include "cql/execute/prepared_statement_cache.h"

#include <algorithm>
#include <utility>

namespace helenus::cql {

void PreparedStatementCache::put(PreparedStatement statement) {
  const PreparedStatement* before = find(base::ByteView(statement.id));
  if (before != nullptr) {
    statement.columns_changed = statement.columns_changed || before->columns_changed ||
                                before->plan->result_columns() != statement.plan->result_columns();
  }
  erase(statement.id);
  bytes_ += cost_of(statement);
  by_use_.push_front(std::move(statement));
  by_id_[base::Uuid(by_use_.front().id)] = by_use_.begin();
  while (by_use_.size() > 1 &&
         (by_use_.size() > limits_.statements_max || bytes_ > limits_.bytes_max)) {
    const protocol::PreparedId oldest = by_use_.back().id;
    erase(oldest);
    ++evicted_;
  }
}

PreparedStatement* PreparedStatementCache::find(base::ByteView id) {
  protocol::PreparedId wanted;
  if (id.size() != wanted.size()) return nullptr;
  std::ranges::copy(id, wanted.begin());
  const auto found = by_id_.find(base::Uuid(wanted));
  if (found == by_id_.end()) return nullptr;
  by_use_.splice(by_use_.begin(), by_use_, found->second);
  return &by_use_.front();
}

void PreparedStatementCache::erase(const protocol::PreparedId& id) {
  const auto found = by_id_.find(base::Uuid(id));
  if (found == by_id_.end()) return;
  bytes_ -= cost_of(*found->second);
  by_use_.erase(found->second);
  by_id_.erase(found);
}

}  // namespace helenus::cql
