#include "cql/execute/prepared_statements.h"

#include <variant>

#include "runtime/run_on.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using runtime::StopToken;
using runtime::Task;
using runtime::Until;

Task<QueryResult<protocol::PreparedResult>> PreparedStatements::prepare(std::string_view text,
                                                                        std::string keyspace,
                                                                        StopToken stop) {
  PreparedStatement statement;
  statement.id = protocol::prepared_id(keyspace, text);
  statement.text = std::string(text);
  CO_TRY(statement.plan, co_await plan_in_turns(runtime_, text, catalog_.snapshot(), keyspace,
                                                Until::after(runtime_, peer_timeout_, stop)));
  statement.keyspace = std::move(keyspace);
  protocol::PreparedResult result;
  result.id = Bytes::copy_of(ByteView(statement.id));
  result.markers = statement.plan->markers;
  result.partition_key_markers = statement.plan->partition_markers;
  result.columns = statement.plan->result_columns();
  const auto* rows = std::get_if<SelectPlan>(&statement.plan->what);
  result.metadata_id =
      rows != nullptr ? rows->metadata_id : metadata_id_of(protocol::EncodedColumns());
  cache_.put(statement);
  const auto* select = std::get_if<SelectPlan>(&statement.plan->what);
  if (select != nullptr && !select->columns_may_change && has_peers() &&
      co_await columns_differ_on_peers(statement, std::move(stop))) {
    PreparedStatement* const here = cache_.find(ByteView(statement.id));
    if (here != nullptr) here->columns_changed = true;
  }
  co_return result;
}

Task<bool> PreparedStatements::columns_differ_on_peers(const PreparedStatement& statement,
                                                       StopToken stop) {
  const Until until = Until::after(runtime_, peer_timeout_, std::move(stop));
  bool differ = false;
  for (const Peer& peer : peers_) {
    const auto ask = [&](runtime::Runtime&, const Until&) {
      return columns_differ_on_core(*peer.statements, statement);
    };
    const auto told = co_await runtime::run_on<bool>(runtime_, peer.core, ask, until);
    // Of a core that does not say, the worst is assumed: rows say what they are.
    differ = differ || !told || *told;
  }
  co_return differ;
}

Task<base::Result<bool>> PreparedStatements::columns_differ_on_core(
    PreparedStatements& there, const PreparedStatement& statement) {
  PreparedStatement* const own = there.cache_.find(ByteView(statement.id));
  if (own == nullptr) co_return false;
  own->columns_changed =
      own->columns_changed || own->plan->result_columns() != statement.plan->result_columns();
  co_return own->columns_changed;
}

const PreparedStatement* PreparedStatements::current(ByteView id) {
  PreparedStatement* const statement = cache_.find(id);
  if (statement == nullptr) return nullptr;
  if (statement->plan->catalog->number() == catalog_.snapshot()->number()) return statement;
  auto planned = plan_statement(statement->text, catalog_.snapshot(), statement->keyspace);
  const bool same = planned && (*planned)->markers == statement->plan->markers &&
                    (*planned)->result_columns() == statement->plan->result_columns();
  if (!same) return nullptr;
  statement->plan = *std::move(planned);
  return statement;
}

QueryResult<PreparedStatements::Found> PreparedStatements::find(ByteView id) {
  const PreparedStatement* const statement = current(id);
  if (statement == nullptr) return unprepared(id);
  return Found{.plan = statement->plan, .columns_changed = statement->columns_changed};
}

Task<QueryResult<PreparedStatements::Found>> PreparedStatements::borrow(ByteView id,
                                                                        StopToken stop) {
  const Until until = Until::after(runtime_, peer_timeout_, std::move(stop));
  for (const Peer& peer : peers_) {
    const auto ask = [&](runtime::Runtime&, const Until&) {
      return lend_on_core(*peer.statements, id);
    };
    auto lent =
        co_await runtime::run_on<std::optional<PreparedStatement>>(runtime_, peer.core, ask, until);
    if (!lent || !lent->has_value()) continue;
    cache_.put(**std::move(lent));
    co_return find(id);
  }
  co_return unprepared(id);
}

std::optional<PreparedStatement> PreparedStatements::lend(ByteView id) {
  const PreparedStatement* const statement = current(id);
  return statement == nullptr ? std::nullopt : std::optional(*statement);
}

Task<base::Result<std::optional<PreparedStatement>>> PreparedStatements::lend_on_core(
    PreparedStatements& there, ByteView id) {
  co_return there.lend(id);
}

const std::string* PreparedStatements::text_of(ByteView id) {
  const PreparedStatement* const statement = cache_.find(id);
  return statement == nullptr ? nullptr : &statement->text;
}

}  // namespace helenus::cql
