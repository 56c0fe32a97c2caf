// SnapshotDescription: what a snapshot is of: the file that makes it one
// (docs/formats/snapshot.md).
//
//   DIRECTORY/snapshots/NAME/description    in the first data directory, written last
//
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "model/keyspace_number.h"
#include "model/node_id.h"
#include "runtime/time.h"
#include "storage/ids/table_id.h"

namespace helenus::node {

inline constexpr std::size_t kSnapshotNameSizeMax = 64;
inline constexpr std::size_t kSnapshotDescriptionSizeMax = std::size_t{16} << 20;

// A folder is named so: letters, digits, '_', '-' and '.', which it does not begin with.
base::Result<void> check_snapshot_name(std::string_view name);

struct SnapshotDescription {
  // A table, or an index of one.
  struct Table {
    std::string name;
    base::Uuid id;
    storage::TableId storage;
    bool is_index = false;
    friend bool operator==(const Table&, const Table&) = default;
  };
  struct Keyspace {
    std::string name;
    model::KeyspaceNumber number;
    std::vector<Table> tables;
    friend bool operator==(const Keyspace&, const Keyspace&) = default;
  };

  model::NodeId node;
  runtime::WallTime created;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::vector<Keyspace> keyspaces;
  friend bool operator==(const SnapshotDescription&, const SnapshotDescription&) = default;
};

base::Bytes encode(const SnapshotDescription& description);
// Errors: corrupt; unsupported (another version).
base::Result<SnapshotDescription> decode_snapshot_description(base::ByteView bytes);

}  // namespace helenus::node
