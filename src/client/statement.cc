#include "client/statement.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/assert.h"

namespace helenus::client {

using base::ByteView;
using base::Errc;
using base::Error;
using base::Result;
using cql::protocol::kShortSizeMax;

namespace {

// More than a request takes beside its parts, and than a part takes in front of its content.
constexpr std::size_t kRequestOverhead = 128;
constexpr std::size_t kPartOverhead = 16;

// Adds up what a request takes, and refuses what its parts have no room for.
class SizeCheck {
 public:
  explicit SizeCheck(std::size_t size_max) : size_max_(size_max) {}

  void add(std::size_t size) { size_ += size + kPartOverhead; }
  void add_short(std::size_t size, std::string_view what) {
    if (size > kShortSizeMax) refuse(what, size);
    add(size);
  }
  void check_count(std::size_t count, std::string_view what) {
    if (count > kShortSizeMax) refuse(what, count);
  }
  void add_values(const std::vector<BoundValue>& values) {
    check_count(values.size(), "bound values");
    for (const BoundValue& value : values) add(value.size());
  }

  Result<void> finish() const {
    if (problem_) return *problem_;
    if (size_ > size_max_) {
      return Error(Errc::invalid_argument, "a request of {} bytes, where {} are the most", size_,
                   size_max_);
    }
    return {};
  }

 private:
  void refuse(std::string_view what, std::size_t count) {
    problem_ =
        Error(Errc::invalid_argument, "{}: {}, where {} are the most", what, count, kShortSizeMax);
  }

  const std::size_t size_max_;
  std::size_t size_ = kRequestOverhead;
  std::optional<Error> problem_;
};

void check_part(const Query& query, SizeCheck& check) {
  check.add(query.text.size());
  check.add_values(query.values);
  for (const std::string& name : query.names) check.add_short(name.size(), "bytes of a name");
}
void check_part(const Execution& execution, SizeCheck& check) {
  ASSERT(execution.prepared != nullptr);
  check.add_short(execution.prepared->id.size(), "bytes of a prepared id");
  check.add_values(execution.values);
}
void check_part(const Batch& batch, SizeCheck& check) {
  check.check_count(batch.statements.size(), "statements of a batch");
  for (const auto& statement : batch.statements) {
    std::visit([&](const auto& part) { check_part(part, check); }, statement);
  }
}

cql::protocol::Values views_of(const std::vector<BoundValue>& values) {
  cql::protocol::Values views;
  views.reserve(values.size());
  for (const BoundValue& value : values) views.push_back(value.view());
  return views;
}

cql::protocol::QueryParameters parameters_of(const RequestOptions& options,
                                             const std::vector<BoundValue>& values) {
  cql::protocol::QueryParameters parameters{.consistency = options.consistency,
                                            .serial_consistency = options.serial_consistency,
                                            .skip_metadata = false,
                                            .page_size = options.page_size,
                                            .paging_state = std::nullopt,
                                            .default_timestamp_us = options.default_timestamp_us,
                                            .values = views_of(values),
                                            .names = {}};
  if (options.paging_state) parameters.paging_state = options.paging_state->view();
  return parameters;
}

struct MakeMessage {
  const RequestOptions& options;

  cql::protocol::RequestMessage operator()(const Query& query) const {
    auto parameters = parameters_of(options, query.values);
    parameters.names.assign(query.names.begin(), query.names.end());
    return cql::protocol::QueryRequest{.text = query.text, .parameters = std::move(parameters)};
  }
  cql::protocol::RequestMessage operator()(const Execution& execution) const {
    return cql::protocol::ExecuteRequest{.id = execution.prepared->id,
                                         .parameters = parameters_of(options, execution.values)};
  }
  cql::protocol::RequestMessage operator()(const Batch& batch) const {
    cql::protocol::BatchRequest request{.type = batch.type,
                                        .statements = {},
                                        .consistency = options.consistency,
                                        .serial_consistency = options.serial_consistency,
                                        .default_timestamp_us = options.default_timestamp_us};
    request.statements.reserve(batch.statements.size());
    for (const auto& statement : batch.statements) {
      const auto* query = std::get_if<Query>(&statement);
      const auto* execution = std::get_if<Execution>(&statement);
      request.statements.push_back(
          {.prepared = execution != nullptr,
           .text = query != nullptr ? std::string_view(query->text) : std::string_view(),
           .id = execution != nullptr ? execution->prepared->id.view() : ByteView(),
           .values = views_of(query != nullptr ? query->values : execution->values)});
    }
    return request;
  }
};

Result<void> check_names(const Statement& statement) {
  if (const auto* query = std::get_if<Query>(&statement)) {
    if (query->names.empty() || query->names.size() == query->values.size()) return {};
    return Error(Errc::invalid_argument, "{} names for {} values", query->names.size(),
                 query->values.size());
  }
  if (const auto* batch = std::get_if<Batch>(&statement)) {
    for (const auto& part : batch->statements) {
      const auto* query = std::get_if<Query>(&part);
      if (query == nullptr || query->names.empty()) continue;
      return Error(Errc::invalid_argument, "values of a batch have no names");
    }
  }
  return {};
}

// Calls `visit` with each Execution there is.
template <class Visit>
void visit_executions(const Statement& statement, Visit visit) {
  if (const auto* execution = std::get_if<Execution>(&statement)) visit(*execution);
  if (const auto* batch = std::get_if<Batch>(&statement)) {
    for (const auto& part : batch->statements) {
      if (const auto* execution = std::get_if<Execution>(&part)) visit(*execution);
    }
  }
}

}  // namespace

Prepared find_prepared(const Statement& statement, ByteView id) {
  Prepared found;
  visit_executions(statement, [&](const Execution& execution) {
    if (base::equal(execution.prepared->id, id)) found = execution.prepared;
  });
  return found;
}

std::size_t prepared_count(const Statement& statement) {
  std::size_t count = 0;
  visit_executions(statement, [&](const Execution&) { ++count; });
  return count;
}

Result<cql::protocol::Request> make_request(const Statement& statement,
                                            const RequestOptions& options, std::size_t size_max) {
  SizeCheck check(size_max);
  std::visit([&](const auto& kind) { check_part(kind, check); }, statement);
  if (options.paging_state) check.add(options.paging_state->size());
  check.check_count(options.payload.size(), "entries of a payload");
  for (const auto& entry : options.payload) {
    check.add_short(entry.key.size(), "bytes of a payload's key");
    if (entry.value) check.add(entry.value->size());
  }
  TRY_VOID(check.finish());
  TRY_VOID(check_names(statement));
  cql::protocol::Request request;
  request.tracing = options.tracing;
  for (const auto& entry : options.payload) {
    request.payload.push_back({.key = entry.key, .value = std::nullopt});
    if (entry.value) request.payload.back().value = entry.value->view();
  }
  request.message = std::visit(MakeMessage{options}, statement);
  return request;
}

}  // namespace helenus::client
