#include "cql/catalog/catalog_view.h"

#include "runtime/run_on.h"

namespace helenus::cql {

using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

using Changed = QueryResult<std::optional<Catalog::Change>>;

// On the catalog's core.
Task<Result<Changed>> change_on_core(Catalog& catalog, parser::Statement statement,
                                     std::string session_keyspace, Until until) {
  co_return co_await catalog.change(std::move(statement), std::move(session_keyspace),
                                    std::move(until));
}

Task<Result<QueryResult<void>>> truncate_on_core(Catalog& catalog, base::Uuid table, Until until) {
  co_return co_await catalog.truncate(table, std::move(until));
}

}  // namespace

Task<Changed> CatalogView::change(parser::Statement statement, std::string session_keyspace,
                                  Until until) {
  if (at_home()) {
    return catalog_.change(std::move(statement), std::move(session_keyspace), std::move(until));
  }
  return change_at_home(std::move(statement), std::move(session_keyspace), std::move(until));
}

Task<Changed> CatalogView::change_at_home(parser::Statement statement, std::string session_keyspace,
                                          Until until) {
  const auto there = [&](Runtime&, Until remaining) {
    return change_on_core(catalog_, std::move(statement), std::move(session_keyspace),
                          std::move(remaining));
  };
  auto changed = co_await runtime::run_on<Changed>(here_, catalog_.home(), there, std::move(until));
  if (!changed) co_return changed.error();
  co_return *std::move(changed);
}

Task<QueryResult<void>> CatalogView::truncate(base::Uuid table, Until until) {
  if (at_home()) return catalog_.truncate(table, std::move(until));
  return truncate_at_home(table, std::move(until));
}

Task<QueryResult<void>> CatalogView::truncate_at_home(base::Uuid table, Until until) {
  const auto there = [&](Runtime&, Until remaining) {
    return truncate_on_core(catalog_, table, std::move(remaining));
  };
  auto truncated =
      co_await runtime::run_on<QueryResult<void>>(here_, catalog_.home(), there, std::move(until));
  if (!truncated) co_return truncated.error();
  co_return *std::move(truncated);
}

}  // namespace helenus::cql
