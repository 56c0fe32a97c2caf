#include "cql/plan/restrictions.h"

#include <algorithm>
#include <ranges>

#include <absl/container/inlined_vector.h>

#include "base/assert.h"
#include "model/identifier.h"
#include "model/index_entries.h"
#include "model/partition_key.h"
#include "ring/murmur3.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using model::ClusteringRange;
using model::DataType;
using model::Table;
using model::Token;

std::string_view name_of(StatementKind kind) {
  switch (kind) {
    case StatementKind::select:
      return "SELECT";
    case StatementKind::insert:
      return "INSERT";
    case StatementKind::update:
      return "UPDATE";
    case StatementKind::delete_:
      return "DELETE";
  }
  UNREACHABLE("a kind of statement");
}

QueryError needs_allow_filtering() {
  return invalid(
      "Cannot execute this query as it might involve data filtering and thus may have "
      "unpredictable performance. If you want to execute this query despite the performance "
      "unpredictability, use ALLOW FILTERING");
}

QueryResult<std::size_t> column_index(const Table& table, std::string_view name) {
  const model::Column* column = table.find(name);
  if (column == nullptr) {
    return invalid("Undefined column name {} in table {}.{}", model::to_cql_identifier(name),
                   table.keyspace, table.name);
  }
  return static_cast<std::size_t>(column - table.columns.data());
}

bool Restrictions::has_one_value(std::size_t column) const {
  const auto equals = [&](const Predicate& predicate) {
    return predicate.is_equal() &&
           std::ranges::find(predicate.columns, column) != predicate.columns.end();
  };
  return std::ranges::any_of(partition_, equals) || std::ranges::any_of(prefix_, equals) ||
         std::ranges::any_of(filters_, equals);
}

std::vector<std::size_t> Restrictions::columns_filtered() const {
  std::vector<std::size_t> columns;
  for (const Predicate& filter : filters_) {
    columns.insert(columns.end(), filter.columns.begin(), filter.columns.end());
  }
  return columns;
}

std::vector<std::uint16_t> Restrictions::partition_markers() const {
  std::vector<std::uint16_t> markers;
  for (const Predicate& predicate : partition_) {
    const auto marker = predicate.is_equal() ? predicate.values.front().marker() : std::nullopt;
    if (!marker) return {};
    markers.push_back(*marker);
  }
  return markers;
}

// A whole key, with the byte that storage puts between its parts and the one that ends a range, has
// the length that storage takes.
QueryResult<void> check_key_sizes(std::size_t partition, std::size_t row) {
  constexpr std::size_t kAdded = 2;
  if (partition + row + kAdded <= model::kRowKeySizeMax) return {};
  return invalid("Key length of {} is longer than maximum of {}", partition + row,
                 model::kRowKeySizeMax - kAdded);
}

namespace {

QueryResult<void> check_sizes_of_keys(const BoundRestrictions& bound) {
  std::size_t partition = 0;
  std::size_t row = 0;
  for (const Bytes& bytes : bound.partitions) partition = std::max(partition, bytes.size());
  for (const ClusteringRange& range : bound.rows) {
    row = std::max({row, range.from.size(), range.to ? range.to->size() : 0});
  }
  return check_key_sizes(partition, row);
}

}  // namespace

QueryResult<BoundRestrictions> Restrictions::bind(const Evaluation& evaluation) const {
  BoundRestrictions bound;
  bound.by_key = names_partitions_;
  if (names_partitions_) {
    TRY(bound.partitions, bind_partitions(evaluation));
  }
  if (!names_partitions_ || token_from_ || token_to_) {
    TRY(bound.range, bind_tokens(evaluation));
    std::erase_if(bound.partitions,
                  [&](const Bytes& partition) { return !bound.range.contains(partition.view()); });
  }
  TRY(bound.rows, bind_rows(evaluation));
  TRY_VOID(check_sizes_of_keys(bound));
  for (const Predicate& filter : filters_) {
    TRY_VOID(evaluation.turn());
    TRY(BoundPredicate predicate, BoundPredicate::bind(filter, *table_, evaluation));
    bound.filters.push_back(std::move(predicate));
  }
  if (index_ && !bound.by_key) bound.index = bind_index(bound.filters);
  return bound;
}

// A value that the index cannot encode is looked for by a scan.
std::optional<BoundIndex> Restrictions::bind_index(
    const std::vector<BoundPredicate>& filters) const {
  const model::Index& index = table_->indexes[index_->number];
  const model::IndexEntries entries(*table_, index);
  BoundIndex bound{.name = index.name, .from = {}, .to = {}};
  for (const std::size_t number : index_->filters) {
    const Predicate& predicate = filters_[number];
    const BoundPredicate& filter = filters[number];
    const auto encoded = predicate.element ? entries.encode(*filter.element(), filter.value())
                                           : entries.encode(filter.value());
    if (!encoded) return std::nullopt;
    if (!predicate.is_upper()) bound.from = *encoded;
    if (!predicate.is_lower()) bound.to = *encoded;
    bound.is_one_value = !predicate.is_slice();
  }
  return bound;
}

namespace {

// Every combination of what was there with the values of one more predicate.
QueryResult<void> multiply(std::vector<KeyValues>& keys, const std::vector<KeyValues>& values) {
  if (!values.empty() && keys.size() > kKeysMax / values.size()) {
    return invalid("The IN restrictions of this statement name more than {} keys", kKeysMax);
  }
  std::vector<KeyValues> product;
  product.reserve(keys.size() * values.size());
  for (const KeyValues& key : keys) {
    for (const KeyValues& more : values) {
      KeyValues longer = key;
      longer.insert(longer.end(), more.begin(), more.end());
      product.push_back(std::move(longer));
    }
  }
  keys = std::move(product);
  return {};
}

std::vector<ByteView> views_of(const KeyValues& values) {
  return {values.begin(), values.end()};
}

}  // namespace

// In the order of the columns' types, each once: so Cassandra gives partitions that IN names.
// Values that are equivalent and differ (1.0 and 1.00) are two keys.
void Restrictions::sort_keys(std::vector<KeyValues>& keys) const {
  const auto order = [&](const KeyValues& a, const KeyValues& b) {
    for (std::size_t i = 0; i < partition_.size(); ++i) {
      const DataType& type = table_->columns[partition_[i].columns.front()].type;
      const auto by_type = model::compare(type, a[i], b[i]);
      if (by_type != 0) return by_type < 0;
    }
    return a < b;
  };
  std::ranges::sort(keys, order);
  const auto repeated = std::ranges::unique(keys);
  keys.erase(repeated.begin(), repeated.end());
}

QueryResult<std::vector<Bytes>> Restrictions::bind_partitions(const Evaluation& evaluation) const {
  std::vector<KeyValues> keys(1);
  for (const Predicate& predicate : partition_) {
    TRY(const auto values, predicate.evaluate(*table_, evaluation));
    TRY_VOID(multiply(keys, values));
  }
  if (keys.size() > 1) sort_keys(keys);
  std::vector<Bytes> partitions;
  partitions.reserve(keys.size());
  for (const KeyValues& key : keys) {
    TRY(const Bytes routing_key, model::make_routing_key(views_of(key)));
    partitions.push_back(
        model::make_partition(keyspace_, ring::token_of(routing_key), routing_key));
  }
  return partitions;
}

bool Restrictions::is_row_key() const {
  const auto is_value = [](const Predicate& predicate) {
    return predicate.is_equal() && !predicate.is_tuple && !predicate.is_list &&
           predicate.columns.size() == 1 && predicate.values.size() == 1;
  };
  return names_one_row() && filters_.empty() && !token_from_ && !token_to_ && !has_slice() &&
         partition_.size() == table_->partition_key().size() &&
         prefix_.size() == clustering_.size() && std::ranges::all_of(partition_, is_value) &&
         std::ranges::all_of(prefix_, is_value);
}

namespace {

// Keys have few columns.
constexpr std::size_t kKeyColumnsUsual = 4;

QueryResult<Bytes> partition_of(model::KeyspaceNumber keyspace, std::span<const ByteView> values) {
  if (values.size() == 1) {
    TRY_VOID(model::check_routing_key(values));
    return model::make_partition(keyspace, ring::token_of(values.front()), values.front());
  }
  TRY(const Bytes routing_key, model::make_routing_key(values));
  return model::make_partition(keyspace, ring::token_of(routing_key), routing_key);
}

// The values of a key, in the order of its columns.
struct KeyColumns {
  absl::InlinedVector<Bytes, kKeyColumnsUsual> values;
  absl::InlinedVector<ByteView, kKeyColumnsUsual> views;

  QueryResult<void> add(const Predicate& predicate, const Table& table,
                        const Evaluation& evaluation) {
    TRY(Bytes value, predicate.evaluate_one(table, evaluation));
    views.push_back(value.view());
    values.push_back(std::move(value));
    return {};
  }
};

}  // namespace

QueryResult<BoundPrimaryKey> Restrictions::bind_row(const Evaluation& evaluation) const {
  ASSERT_SLOW(is_row_key());
  BoundPrimaryKey key;
  KeyColumns partition;
  for (const Predicate& predicate : partition_) {
    TRY_VOID(partition.add(predicate, *table_, evaluation));
  }
  TRY(key.partition, partition_of(keyspace_, partition.views));
  if (!prefix_.empty()) {
    KeyColumns rows;
    for (const Predicate& predicate : prefix_) TRY_VOID(rows.add(predicate, *table_, evaluation));
    TRY(key.clustering, model::encode_clustering(clustering_, rows.views));
  }
  TRY_VOID(check_key_sizes(key.partition.size(), key.clustering.size()));
  return key;
}

QueryResult<std::optional<Token>> Restrictions::token_of(const std::optional<TokenBound>& bound,
                                                         const Evaluation& evaluation) const {
  if (!bound) return std::optional<Token>();
  KeyValues values;
  for (const Term& term : bound->values) {
    TRY(TermValue value, term.evaluate(evaluation));
    if (value.is_unset()) return invalid("Invalid unset value for the partition key token");
    if (value.is_null()) return invalid("Invalid null token value");
    values.push_back(std::move(value.bytes));
  }
  if (!bound->is_number) {
    TRY(const Bytes routing_key, model::make_routing_key(views_of(values)));
    return std::optional(ring::token_of(routing_key));
  }
  TRY(const std::int64_t number, model::read_bigint(values.front()));
  return std::optional(Token{number});
}

QueryResult<storage::KeyRange> Restrictions::bind_tokens(const Evaluation& evaluation) const {
  TRY(const auto from, token_of(token_from_, evaluation));
  TRY(const auto to, token_of(token_to_, evaluation));
  storage::KeyRange range{.from = model::first_key_of(keyspace_),
                          .to = model::first_key_of(model::KeyspaceNumber(keyspace_.value() + 1))};
  if (from) {
    range.from = token_from_->inclusive ? model::first_key_of(keyspace_, *from)
                                        : model::first_key_after(keyspace_, *from);
  }
  // The ring is closed: as an upper bound the smallest token is the ring's end.
  if (to && *to != model::kTokenMin) {
    range.to = token_to_->inclusive ? model::first_key_after(keyspace_, *to)
                                    : model::first_key_of(keyspace_, *to);
    if (*range.to < range.from) range.to = range.from;
  }
  return range;
}

QueryResult<std::vector<ClusteringRange>> Restrictions::bind_rows(
    const Evaluation& evaluation) const {
  std::vector<ClusteringRange> ranges;
  if (clustering_.empty()) {
    ranges.push_back({});
    return ranges;
  }
  if (prefix_.empty() && !has_slice()) {
    ranges.push_back(model::all_clustered_rows());
    return ranges;
  }
  std::vector<KeyValues> keys(1);
  for (const Predicate& predicate : prefix_) {
    TRY(const auto values, predicate.evaluate(*table_, evaluation));
    TRY_VOID(multiply(keys, values));
  }
  std::vector<ByteView> lower_values;
  std::vector<ByteView> upper_values;
  std::vector<KeyValues> lower;
  std::vector<KeyValues> upper;
  std::optional<model::ClusteringBound> from;
  std::optional<model::ClusteringBound> to;
  if (lower_) {
    TRY(lower, lower_->evaluate(*table_, evaluation));
    lower_values = views_of(lower.front());
    from = model::ClusteringBound{.values = lower_values, .inclusive = lower_->is_inclusive()};
  }
  if (upper_) {
    TRY(upper, upper_->evaluate(*table_, evaluation));
    upper_values = views_of(upper.front());
    to = model::ClusteringBound{.values = upper_values, .inclusive = upper_->is_inclusive()};
  }
  for (const KeyValues& key : keys) {
    const std::vector<ByteView> equal = views_of(key);
    if (has_slice()) {
      TRY(const auto slices, model::slice(clustering_, equal, from, to));
      ranges.insert(ranges.end(), slices.begin(), slices.end());
    } else {
      TRY(const Bytes prefix, model::encode_clustering(clustering_, equal));
      ranges.push_back(model::rows_with_prefix(prefix));
    }
  }
  std::ranges::sort(ranges, {}, &ClusteringRange::from);
  const auto repeated = std::ranges::unique(ranges);
  ranges.erase(repeated.begin(), repeated.end());
  return ranges;
}

}  // namespace helenus::cql
