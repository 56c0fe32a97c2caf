// Pager: the rows of a statement, page by page.
//
//   Pager pager(session, Query{.text = "SELECT * FROM t"}, {.page_size = 100}, {});
//   while (!pager.done()) {
//     CO_TRY(const ResultSet page, co_await pager.next(Until::after(rt, 1s)));
//     ...
//   }
#pragma once

#include <utility>

#include "base/assert.h"
#include "client/request_error.h"
#include "client/result_set.h"
#include "client/session.h"
#include "client/statement.h"
#include "runtime/operation.h"
#include "runtime/task.h"

namespace helenus::client {

class Pager {
 public:
  // The session outlives it. Without a page size the server decides. `options.paging_state` may say
  // where to begin.
  Pager(Session& session, Statement statement, RequestOptions options, Route route)
      : session_(session),
        statement_(std::move(statement)),
        options_(std::move(options)),
        route_(std::move(route)) {}

  // Whether the last page was given.
  bool done() const { return done_; }
  // The next page; it may be empty though others follow. After an error the same page can be asked
  // for again. Errors: those of Session::execute. Requires: !done().
  runtime::Task<RequestResult<ResultSet>> next(runtime::Until until) {
    ASSERT(!done_);
    auto page = co_await session_.execute(statement_, options_, route_, std::move(until));
    if (page) {
      options_.paging_state = page->paging_state();
      done_ = !options_.paging_state;
    }
    co_return page;
  }

 private:
  Session& session_;
  const Statement statement_;
  RequestOptions options_;
  const Route route_;
  bool done_ = false;
};

}  // namespace helenus::client
