// CatalogSnapshot: the catalog at one moment: the schema, and where the rows of each table are
// kept. What plans and requests look at; catalog.h has who changes it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/uuid.h"
#include "cql/errors/query_error.h"
#include "model/keyspace_number.h"
#include "model/schema.h"
#include "storage/ids/table_id.h"

namespace helenus::cql {

// Immutable.
class CatalogSnapshot {
 public:
  using StorageIds = std::map<base::Uuid, storage::TableId>;
  using KeyspaceNumbers = std::map<std::string, model::KeyspaceNumber, std::less<>>;

  // `users` are the keyspaces that statements made, `system` those that are always there.
  CatalogSnapshot(const model::Schema& users, const model::Schema& system, StorageIds storage,
                  KeyspaceNumbers keyspaces, std::uint64_t number, std::string data_center,
                  bool has_all_rows);

  // All keyspaces, the system's included.
  const model::Schema& schema() const { return schema_; }
  // Those that statements made.
  const model::Schema& users() const { return users_; }
  // What system.local says; a function of users() alone.
  const base::Uuid& schema_version() const { return version_; }
  // Grows with every change and every TRUNCATE while the process lives. A plan that was made of
  // another number is made again.
  std::uint64_t number() const { return number_; }
  // Where the rows of a table lie. None: it is virtual, or not of this moment.
  std::optional<storage::TableId> storage_of(const base::Uuid& table) const;
  const StorageIds& storage_ids() const { return storage_; }
  // What the partitions of its tables begin with; 0 for those that are not replicated.
  model::KeyspaceNumber keyspace_number(std::string_view keyspace) const;
  const KeyspaceNumbers& keyspace_numbers() const { return keyspaces_; }
  // Whether this node has all rows that there are. If not, it answers no statement on rows. Where
  // there is an authority, it has them only when the authority said so in this life.
  bool has_all_rows() const { return has_all_rows_; }
  // Where this node is.
  const std::string& data_center() const { return data_center_; }

 private:
  const model::Schema users_;
  const model::Schema schema_;
  const base::Uuid version_;
  const StorageIds storage_;
  const KeyspaceNumbers keyspaces_;
  const std::uint64_t number_;
  const std::string data_center_;
  const bool has_all_rows_;
};

// Whether statements on rows are answered. Errors: invalid.
QueryResult<void> check_rows(const CatalogSnapshot& catalog);

using CatalogPtr = std::shared_ptr<const CatalogSnapshot>;

// Whoever knows the snapshot of this moment: the catalog, and its views on other cores.
class CatalogReader {
 public:
  // Never null. Keep it as long as a request or a plan takes.
  const CatalogPtr& snapshot() const { return snapshot_; }

 protected:
  CatalogReader() = default;
  ~CatalogReader() = default;

  CatalogPtr snapshot_;
};

}  // namespace helenus::cql
