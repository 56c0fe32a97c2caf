// CatalogView: the catalog as one core sees it. Reading is a plain look at the snapshot of this
// moment; a change is run on the catalog's core, and is in the views of all cores when it returns.
//
//   CatalogView view(runtime, catalog, catalog.snapshot());   on any core
//   catalog.attach(view);                                     on the catalog's
//
// Core affinity: the core of its Runtime.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/uuid.h"
#include "cql/catalog/catalog.h"
#include "cql/errors/query_error.h"
#include "cql/parser/ast.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::cql {

class CatalogView final : public CatalogReader {
 public:
  // Requires: the catalog outlives it.
  CatalogView(runtime::Runtime& here, Catalog& catalog, CatalogPtr snapshot)
      : here_(here), core_(here.cores.here()), catalog_(catalog) {
    snapshot_ = std::move(snapshot);
  }
  CatalogView(const CatalogView&) = delete;
  CatalogView& operator=(const CatalogView&) = delete;

  // May be asked on any core.
  runtime::CoreId core() const { return core_; }

  const ContextSecret& context_secret() const { return catalog_.context_secret(); }

  // As the catalog's. Errors besides: overloaded.
  runtime::Task<QueryResult<std::optional<Catalog::Change>>> change(parser::Statement statement,
                                                                    std::string session_keyspace,
                                                                    runtime::Until until);
  runtime::Task<QueryResult<void>> truncate(base::Uuid table, runtime::Until until);

  // Called on this core. For ever: what a listener refers to outlives the view.
  void add_listener(Catalog::Listener listener) { listeners_.push_back(std::move(listener)); }

  // For the catalog, on this core.
  void take(CatalogPtr snapshot) { snapshot_ = std::move(snapshot); }
  void announce(const Catalog::Change& change) const {
    for (const Catalog::Listener& listener : listeners_) listener(change);
  }

 private:
  bool at_home() const { return catalog_.home() == core_; }
  runtime::Task<QueryResult<std::optional<Catalog::Change>>> change_at_home(
      parser::Statement statement, std::string session_keyspace, runtime::Until until);
  runtime::Task<QueryResult<void>> truncate_at_home(base::Uuid table, runtime::Until until);

  runtime::Runtime& here_;
  const runtime::CoreId core_;
  Catalog& catalog_;
  std::vector<Catalog::Listener> listeners_;
};

}  // namespace helenus::cql
