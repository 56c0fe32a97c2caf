#include "keyvalue/key_value_service.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "admin/http_text.h"
#include "base/hash.h"
#include "causality/resolve.h"
#include "cql/execute/consistency_check.h"
#include "cql/execute/replica_counts.h"
#include "cql/plan/row_reader.h"
#include "keyvalue/url_text.h"
#include "keyvalue/value_text.h"
#include "model/clustering_key.h"

namespace helenus::keyvalue {

using admin::HttpRequest;
using admin::HttpResponse;
using base::Bytes;
using causality::CellChange;
using causality::VersionKind;
using model::Consistency;
using replication::PartitionWrite;
using runtime::StopToken;
using runtime::Task;

namespace {

constexpr std::string_view kMethods = "GET, HEAD, PUT, DELETE";
constexpr std::string_view kContextHeader = "Helenus-Context";
// What a client says who has seen nothing.
constexpr std::string_view kNothingSeen = "none";
constexpr std::int64_t kTtlSecondsMax = std::int64_t{20} * 365 * 24 * 60 * 60;
// A client sends it back in a header.
constexpr std::size_t kContextTextMax = admin::kHttpRequestSizeMax / 4;

HttpResponse json_response(int status, const Json& json) {
  return {.status = status,
          .content_type = "application/json",
          .body = to_text(json) + "\n",
          .allow = status == 405 ? std::string(kMethods) : std::string()};
}

HttpResponse error_response(const Refusal& refusal) {
  return json_response(refusal.status, {{"error", refusal.why}});
}

// Which versions are there: the same for two readers if and only if they see the same ones, but for
// an accident of hashing. Whatever the order they are added in.
class Fingerprint {
 public:
  void add(causality::ColumnId column, const causality::Dot& dot) {
    base::Digest one;
    one.add(column.value());
    one.add(dot.actor.node.value());
    one.add(dot.actor.incarnation.value());
    one.add(dot.counter);
    sum_ += base::mix64(one.value());
  }
  std::string text() const { return fmt::format("{:016x}", sum_); }

 private:
  std::uint64_t sum_ = 0;
};

std::string etag_of(std::string_view context, const Fingerprint& versions) {
  return fmt::format("\"{}.{}\"", context, versions.text());
}

// The two parts of an ETag of ours.
struct Tag {
  std::string_view context;
  std::string_view versions;
};
HttpResult<Tag> parse_etag(std::string_view text) {
  const std::size_t dot = text.rfind('.');
  if (text.size() < 2 || text.front() != '"' || text.back() != '"' ||
      dot == std::string_view::npos || text.substr(1, text.size() - 2).contains('"')) {
    return Refusal(400, "a condition names one ETag, as an answer of this API gave it");
  }
  return Tag{.context = text.substr(1, dot - 1),
             .versions = text.substr(dot + 1, text.size() - dot - 2)};
}

HttpResult<Consistency> level_of(std::string_view query, bool is_read) {
  TRY(const auto name, parameter(query, "consistency"));
  std::optional<Consistency> level = name ? std::nullopt : std::optional(Consistency::quorum);
  for (std::uint16_t number = 0; name && number <= model::kConsistencyMax; ++number) {
    const auto known = static_cast<Consistency>(number);
    if (admin::equal_ignoring_case(name_of(known), *name)) level = known;
  }
  if (!level) return Refusal(400, "there is no consistency level of that name");
  TRY_VOID(is_read ? cql::check_read_level(*level) : cql::check_write_level(*level));
  return *level;
}

HttpResult<std::optional<std::int64_t>> ttl_of(std::string_view query) {
  TRY(const auto text, parameter(query, "ttl"));
  if (!text) return std::optional<std::int64_t>();
  std::int64_t seconds = 0;
  const auto [end, problem] = std::from_chars(text->data(), text->data() + text->size(), seconds);
  const bool is_number = problem == std::errc() && end == text->data() + text->size();
  if (!is_number || seconds < 0 || seconds > kTtlSecondsMax) {
    return Refusal(400, "ttl is a number of seconds up to {}", kTtlSecondsMax);
  }
  return std::optional(seconds);
}

// A page that somebody wrote can have a name of its own lead to this machine. It cannot have a
// browser send an address instead.
bool is_address_or_localhost(std::string_view host) {
  if (host.starts_with('[')) return true;
  host = host.substr(0, host.find(':'));
  if (admin::equal_ignoring_case(host, "localhost")) return true;
  const auto is_of_address = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  return !host.empty() && std::ranges::all_of(host, is_of_address);
}

bool prefers_bytes(const HttpRequest& request) {
  const auto accept = request.header("accept");
  return accept &&
         (accept->starts_with("application/octet-stream") || accept->starts_with("text/plain"));
}

bool is_json(const HttpRequest& request) {
  const auto type = request.header("content-type");
  if (!type) return false;
  return admin::equal_ignoring_case(admin::trim(type->substr(0, type->find(';'))),
                                    "application/json");
}

bool is_served(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

// No level of reads is below ONE.
Consistency read_level_for(Consistency write) {
  return write == Consistency::any ? Consistency::one : write;
}

}  // namespace

struct KeyValueService::Seen {
  struct Column {
    const model::Column* column = nullptr;
    std::vector<Bytes> values;
  };
  std::vector<Column> columns;  // that have values
  bool is_there = false;
  causality::Context context;
  std::string context_text;
  Fingerprint versions;
};

Task<HttpResponse> KeyValueService::answer(const HttpRequest& request, StopToken stop) {
  auto answered = co_await answer_any(request, std::move(stop));
  HttpResponse response = answered ? *std::move(answered) : error_response(answered.error());
  ++statistics_.answers[{is_served(request.method) ? request.method : "other", response.status}];
  co_return response;
}

HttpResult<void> KeyValueService::check_client(const HttpRequest& request) const {
  if (request.from_page) return Refusal(403, "rows are not for pages in browsers");
  if (options_.is_remote) return {};
  if (!request.from_loopback) {
    return Refusal(403, "rows are for clients on this machine, unless key_value_remote is true");
  }
  const auto host = request.header("host");
  if (host && !is_address_or_localhost(*host)) {
    return Refusal(403, "this node is asked for by its address, unless key_value_remote is true");
  }
  return {};
}

HttpResult<KeyValueService::Asked> KeyValueService::understand(const HttpRequest& request,
                                                               StopToken stop) const {
  TRY(const KeyPath path, parse_key_path(request.path));
  const cql::CatalogPtr catalog = catalog_.snapshot();
  Asked asked;
  TRY(asked.target, find_target(path, *catalog));
  TRY(asked.level, level_of(request.query, request.method == "GET" || request.method == "HEAD"));
  TRY(asked.ttl_seconds, ttl_of(request.query));
  if (asked.ttl_seconds && request.method != "PUT") return Refusal(400, "only PUT has a ttl");
  asked.until = runtime::Until::after(runtime_, options_.timeout, std::move(stop));
  return asked;
}

KeyValueService::Outcome<HttpResponse> KeyValueService::answer_any(const HttpRequest& request,
                                                                   StopToken stop) {
  CO_TRY_VOID(check_client(request));
  const std::string& method = request.method;
  if (!is_served(method)) {
    co_return Refusal(405, "a row is asked for with {}", kMethods);
  }
  CO_TRY(Asked asked, understand(request, std::move(stop)));
  if (method == "PUT") co_return co_await put(request, std::move(asked));
  if (method == "DELETE") co_return co_await remove(request, std::move(asked));
  co_return co_await get(request, std::move(asked));
}

// ---- Reading ----

KeyValueService::Outcome<KeyValueService::Seen> KeyValueService::read(const Asked& asked) {
  const KeyTarget& target = asked.target;
  replication::LevelReport report;
  const auto read =
      co_await coordinator_.read_row(target.storage, target.partition, target.clustering,
                                     asked.until, {.level = asked.level, .report = &report});
  if (!read) co_return cql::read_error(read.error(), asked.level, cql::counts_of(report));
  const causality::WallTime now = clock_.now().seconds();
  const cql::RowLayout layout(target.table, std::vector<bool>(target.table->columns.size()));
  Seen seen;
  const auto look = [&](causality::ColumnId id) {
    const causality::CellStore cell = read->partition.cell(target.clustering, id);
    std::vector<Bytes> values;
    std::vector<const causality::Version*> versions;
    for (const auto* version : causality::visible(cell, target.policy, now)) {
      versions.push_back(version);
      seen.versions.add(id, version->dot);
    }
    std::ranges::sort(versions,
                      [](const auto* a, const auto* b) { return causality::defeats(*a, *b) > 0; });
    for (const auto* version : versions) values.push_back(version->value);
    seen.is_there = seen.is_there || !values.empty();
    return values;
  };
  if (target.column == nullptr) look(model::kRowMarker);
  for (const model::Column& column : target.table->regular_columns()) {
    if (target.column != nullptr && target.column->id != column.id) continue;
    auto values = look(column.id);
    if (values.empty() || !has_text(column.type)) continue;
    seen.columns.push_back({.column = &column, .values = std::move(values)});
  }
  seen.context = cql::RowReader(layout, now).context_of(*read, target.clustering);
  seen.context_text = seal(seen.context, target);
  if (seen.context_text.size() > kContextTextMax) {
    co_return Refusal(503, "what this reader has seen has too many gaps to be said: try again");
  }
  co_return seen;
}

HttpResponse KeyValueService::show(const HttpRequest& request, const KeyTarget& target,
                                   const Seen& seen, int status) {
  const auto several = [](const Seen::Column& column) { return column.values.size() > 1; };
  const bool has_siblings = std::ranges::any_of(seen.columns, several);
  if (has_siblings) ++statistics_.reads_of_siblings;
  HttpResponse response;
  if (!seen.is_there) {
    const std::string_view what = target.column == nullptr ? "row" : "column in this row";
    response = error_response(Refusal(status, "there is no such {}", what));
  } else if (target.column == nullptr) {
    Json columns = Json::object();
    for (const Seen::Column& column : seen.columns) {
      Json& values = columns[column.column->name] = Json::array();
      for (const Bytes& value : column.values) {
        values.push_back(json_of_value(column.column->type, value));
      }
    }
    response = json_response(status, {{"columns", std::move(columns)}});
  } else if (status == 200 && prefers_bytes(request) && !has_siblings) {
    const Seen::Column& column = seen.columns.front();
    const bool is_blob = column.column->type.kind() == model::TypeKind::blob;
    response = {.content_type = is_blob ? "application/octet-stream" : "text/plain; charset=utf-8",
                .body = body_of_value(column.column->type, column.values.front())};
  } else {
    Json values = Json::array();
    for (const Bytes& value : seen.columns.front().values) {
      values.push_back(json_of_value(target.column->type, value));
    }
    // Who wants the bytes of one value is given all of them to choose from.
    if (status == 200 && prefers_bytes(request)) status = 300;
    response = json_response(status, {{"siblings", std::move(values)}});
  }
  response.headers.emplace_back(kContextHeader, seen.context_text);
  if (seen.is_there) {
    response.headers.emplace_back("ETag", etag_of(seen.context_text, seen.versions));
  }
  return response;
}

KeyValueService::Outcome<HttpResponse> KeyValueService::get(const HttpRequest& request,
                                                            Asked asked) {
  CO_TRY(const Seen seen, co_await read(asked));
  const auto none_match = request.header("if-none-match");
  if (none_match && seen.is_there && *none_match != "*") {
    CO_TRY(const Tag known, parse_etag(*none_match));
    if (known.versions == seen.versions.text()) {
      HttpResponse response = show(request, asked.target, seen, 304);
      response.body.clear();
      co_return response;
    }
  }
  co_return show(request, asked.target, seen, seen.is_there ? 200 : 404);
}

// ---- Writing ----

namespace {

CellChange value_cell(const KeyTarget& target, causality::ColumnId column, Bytes value) {
  CellChange cell;
  cell.row = target.clustering;
  cell.column = column;
  cell.value = std::move(value);
  return cell;
}

CellChange deleted_cell(const KeyTarget& target, causality::ColumnId column,
                        std::optional<causality::WallTime> remembered_until) {
  CellChange cell;
  cell.row = target.clustering;
  cell.column = column;
  cell.kind = VersionKind::deletion;
  cell.expires = remembered_until;
  return cell;
}

HttpResult<Bytes> value_of_request(const HttpRequest& request, const model::DataType& type) {
  if (!is_json(request)) {
    TRY(Bytes value, value_of_body(type, request.body));
    return value;
  }
  TRY(const Json json, parse_flat_json(request.body.text()));
  if (json.is_null()) return Refusal(400, "null is no value: DELETE it");
  TRY(Bytes value, value_of_json(type, json));
  return value;
}

// The columns that a row of JSON has, and that there is a row.
HttpResult<std::vector<CellChange>> cells_of_row(const HttpRequest& request,
                                                 const KeyTarget& target) {
  TRY(const Json row, parse_flat_json(request.body.text()));
  if (!row.is_object()) return Refusal(400, "a row is a JSON object of its columns");
  std::vector<CellChange> cells;
  for (const auto& [name, json] : row.items()) {
    const model::Column* column = target.table->find(name);
    if (column == nullptr || column->kind != model::ColumnKind::regular ||
        !has_text(column->type)) {
      return Refusal(400, "{} is no column that a row of JSON may have", name);
    }
    if (json.is_null()) continue;
    TRY(Bytes value, value_of_json(column->type, json));
    cells.push_back(value_cell(target, column->id, std::move(value)));
  }
  cells.push_back(value_cell(target, model::kRowMarker, {}));
  return cells;
}

}  // namespace

// Until when deletes of the target are remembered, as those of statements are.
std::optional<causality::WallTime> KeyValueService::memory_of(const KeyTarget& target) {
  const std::int64_t memory = target.table->options.delete_memory_seconds;
  if (target.policy != causality::Policy::lww || memory == 0) return std::nullopt;
  return causality::WallTime{clock_.now().seconds().value() + memory};
}

PartitionWrite KeyValueService::nothing_yet(const KeyTarget& target) {
  PartitionWrite write;
  write.table = target.storage;
  write.partition = target.partition;
  write.mutation.timestamp = causality::Timestamp{clock_.next_timestamp_us()};
  return write;
}

HttpResult<PartitionWrite> KeyValueService::write_of(const HttpRequest& request,
                                                     const Asked& asked) {
  const KeyTarget& target = asked.target;
  PartitionWrite write = nothing_yet(target);
  std::vector<CellChange>& cells = write.mutation.cells;
  if (target.column != nullptr) {
    TRY(Bytes value, value_of_request(request, target.column->type));
    cells.push_back(value_cell(target, target.column->id, std::move(value)));
  } else {
    TRY(cells, cells_of_row(request, target));
  }
  const std::int64_t ttl = asked.ttl_seconds.value_or(target.table->options.default_time_to_live);
  if (ttl > 0) {
    const causality::WallTime expires{clock_.now().seconds().value() + ttl};
    for (CellChange& cell : cells) cell.expires = expires;
  }
  if (target.column != nullptr) return write;
  // What the row does not say is not there any more.
  for (const model::Column& column : target.table->regular_columns()) {
    const auto is_put = [&](const CellChange& cell) { return cell.column == column.id; };
    if (!has_text(column.type) || std::ranges::any_of(cells, is_put)) continue;
    cells.push_back(deleted_cell(target, column.id, memory_of(target)));
  }
  return write;
}

namespace {

// What a delete of the row takes; elements of collections lie behind their row.
causality::RowRange range_of(const KeyTarget& target) {
  if (target.table->clustering().empty()) return {};
  const bool has_elements =
      std::ranges::any_of(target.table->regular_columns(),
                          [](const model::Column& column) { return column.type.is_multi_cell(); });
  if (!has_elements) return causality::range_of_row(target.clustering);
  const model::ClusteringRange rows = model::rows_with_prefix(target.clustering);
  return {.from = rows.from, .to = rows.to};
}

}  // namespace

PartitionWrite KeyValueService::removal_of(const KeyTarget& target) {
  PartitionWrite write = nothing_yet(target);
  if (target.column != nullptr) {
    write.mutation.cells.push_back(deleted_cell(target, target.column->id, memory_of(target)));
    return write;
  }
  write.mutation.deleted_ranges.push_back(range_of(target));
  write.mutation.remembered_until = memory_of(target);
  return write;
}

namespace {

// What a write says of what its client has seen. One of them at most.
struct Claims {
  std::optional<std::string_view> given;
  std::optional<std::string_view> match;
  std::optional<std::string_view> none_match;

  bool has_condition() const { return match || none_match; }
};

HttpResult<Claims> claims_of(const HttpRequest& request, const KeyTarget& target) {
  const Claims claims{.given = request.header(kContextHeader),
                      .match = request.header("if-match"),
                      .none_match = request.header("if-none-match")};
  if (!claims.has_condition()) return claims;
  if (!target.keeps_siblings()) {
    return Refusal(400,
                   "a condition needs a table that keeps siblings: in {}.{} a write that comes "
                   "meanwhile would be lost",
                   target.table->keyspace, target.table->name);
  }
  if (claims.given || (claims.match && claims.none_match)) {
    return Refusal(400, "one of Helenus-Context, If-Match and If-None-Match, not two");
  }
  if (claims.none_match && (*claims.none_match != "*" || request.method != "PUT")) {
    return Refusal(400, "If-None-Match of a write is *, of a PUT");
  }
  return claims;
}

}  // namespace

KeyValueService::Outcome<std::optional<HttpResponse>> KeyValueService::set_context(
    const HttpRequest& request, const Asked& asked, PartitionWrite& write) {
  using Decided = std::optional<HttpResponse>;
  const KeyTarget& target = asked.target;
  CO_TRY(const Claims claims, claims_of(request, target));
  if (claims.has_condition()) co_return co_await judge(request, asked, write);
  if (claims.given && *claims.given != kNothingSeen) {
    CO_TRY(write.mutation.context, unseal(*claims.given, write));
    co_return Decided();
  }
  if (!target.keeps_siblings()) co_return Decided();
  const bool is_put = request.method == "PUT";
  if (!claims.given) {
    co_return Refusal(
        409,
        "{}.{} keeps siblings: GET the row, and send its Helenus-Context with what "
        "replaces it{}",
        target.table->keyspace, target.table->name,
        is_put ? ", or 'Helenus-Context: none' to stand beside all that is there" : "");
  }
  if (!is_put) co_return Refusal(409, "a delete that has seen nothing deletes nothing");
  write.mutation.context = causality::Context{
      .epoch = replication::kEpoch, .floor = causality::kTimestampMin, .dots = {}};
  co_return Decided();
}

KeyValueService::Outcome<std::optional<HttpResponse>> KeyValueService::judge(
    const HttpRequest& request, const Asked& asked, PartitionWrite& write) {
  using Decided = std::optional<HttpResponse>;
  const auto match = request.header("if-match");
  Tag tag;
  if (match) {
    CO_TRY(tag, parse_etag(*match));
    CO_TRY(write.mutation.context, unseal(tag.context, write));
  }
  Asked look = asked;
  look.level = read_level_for(asked.level);
  CO_TRY(const Seen seen, co_await read(look));
  const bool holds = match ? seen.is_there && tag.versions == seen.versions.text() : !seen.is_there;
  if (!holds) co_return Decided(show(request, asked.target, seen, 412));
  if (!match) write.mutation.context = seen.context;
  co_return Decided();
}

KeyValueService::Outcome<HttpResponse> KeyValueService::put(const HttpRequest& request,
                                                            Asked asked) {
  CO_TRY(PartitionWrite write, write_of(request, asked));
  CO_TRY(auto decided, co_await set_context(request, asked, write));
  if (decided) co_return *std::move(decided);
  co_return co_await execute(asked, std::move(write));
}

// What is not there is not deleted: so a wrong key is told.
KeyValueService::Outcome<HttpResponse> KeyValueService::remove(const HttpRequest& request,
                                                               Asked asked) {
  PartitionWrite write = removal_of(asked.target);
  CO_TRY(auto decided, co_await set_context(request, asked, write));
  if (decided) co_return *std::move(decided);
  Asked look = asked;
  look.level = read_level_for(asked.level);
  CO_TRY(const Seen seen, co_await read(look));
  if (!seen.is_there) co_return show(request, asked.target, seen, 404);
  co_return co_await execute(asked, std::move(write));
}

KeyValueService::Outcome<HttpResponse> KeyValueService::execute(const Asked& asked,
                                                                PartitionWrite write) {
  std::vector<causality::ColumnId> columns;  // that have values then, as their writer knows
  for (const CellChange& cell : write.mutation.cells) {
    if (cell.kind == VersionKind::value) columns.push_back(cell.column);
  }
  replication::LevelReport report;
  const auto written = co_await coordinator_.write(std::move(write), asked.until,
                                                   {.level = asked.level, .report = &report});
  if (!written) {
    co_return cql::write_error(written.error(), asked.level, cql::protocol::WriteType::simple,
                               cql::counts_of(report));
  }
  HttpResponse response;
  response.status = 204;
  if (!written->has_value()) co_return response;
  const causality::Delta& delta = **written;
  causality::Context context = delta.context;
  context.floor = std::max(context.floor, delta.timestamp);
  context.dots.add(delta.dot);
  const std::string text = seal(context, asked.target);
  if (text.size() > kContextTextMax) co_return response;
  response.headers.emplace_back(kContextHeader, text);
  if (columns.empty()) co_return response;
  Fingerprint versions;
  for (const causality::ColumnId column : columns) versions.add(column, delta.dot);
  response.headers.emplace_back("ETag", etag_of(text, versions));
  co_return response;
}

// ---- Contexts ----

std::string KeyValueService::seal(const causality::Context& context,
                                  const KeyTarget& target) const {
  return to_base64url(cql::seal(context, target.storage, target.partition.view(), secret_));
}

HttpResult<causality::Context> KeyValueService::unseal(std::string_view text,
                                                       const PartitionWrite& write) const {
  TRY(const Bytes bytes, from_base64url(text));
  TRY(cql::PlacedContext placed, cql::unseal(bytes, secret_));
  TRY_VOID(cql::check_place(placed, std::span(&write, 1), secret_));
  return std::move(placed.context);
}

}  // namespace helenus::keyvalue
