// TabletDirectory: the tablets of a node: their ranges, their cores, and under whose names they
// mint; and the tables whose rows they hold.
//
//   auto tablets = co_await TabletDirectory::open(runtime, *engines, options);
//   co_await tablets->create_table(table, {.policy = Policy::lww});
//   tablets->all()[tablets->index_of(partition)].id
//
// The ring. Partitions are byte strings that begin with their token (model/partition_key.h), and a
// tablet is a range of them: the ring is cut into `count` equal ranges of tokens when the folder is
// made, and stays cut so.
//
// Names. A tablet mints under (node, incarnation). After a stop that may have lost a tail of the
// log it gets the next incarnation before it takes a write (S14): names are never used twice.
//
// Core affinity: opened, and tables changed, on the core of the Engines. Its tablets do not change
// after that, and may be looked at on any core.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/bytes.h"
#include "base/log.h"
#include "base/result.h"
#include "runtime/cores.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "storage/engine/tablet_info.h"
#include "storage/ids/table_id.h"
#include "storage/manifest/manifest.h"

namespace helenus::storage {
class Engines;
}

namespace helenus::replication {

struct TabletOptions {
  static constexpr std::uint32_t kCountMax = 65536;

  // Into how many ranges the ring is cut; fixed when the folder is made.
  std::uint32_t count = 16;
  // Who mints here.
  std::uint32_t node_number = 1;
};

class TabletDirectory {
  struct Private {
    explicit Private() = default;
  };

 public:
  // Makes the tablets of a new folder, and renames those in doubt. Errors: invalid_argument when
  // the folder was made with another number of tablets; of the engines. Requires: the engines
  // outlive it.
  static runtime::Task<base::Result<std::unique_ptr<TabletDirectory>>> open(
      runtime::Runtime& runtime, storage::Engines& engines, TabletOptions options);
  // For open().
  TabletDirectory(Private, runtime::Runtime& runtime, storage::Engines& engines,
                  TabletOptions options);
  TabletDirectory(const TabletDirectory&) = delete;
  TabletDirectory& operator=(const TabletDirectory&) = delete;

  // Ascending by range; together they are the ring.
  const std::vector<storage::TabletInfo>& all() const { return tablets_; }
  // Of all(): which one holds the partition.
  std::size_t index_of(base::ByteView partition) const;
  runtime::CoreId core_of(storage::TabletId tablet) const;

  // The tables there are, ascending. Errors: of the wait for the core that knows them.
  runtime::Task<base::Result<std::vector<storage::TableId>>> tables();
  // In all tablets. Durable when they return. Errors: already_exists; not_found; see Engine.
  runtime::Task<base::Result<void>> create_table(storage::TableId table,
                                                 storage::TableOptions options);
  // See Engine::alter_table.
  runtime::Task<base::Result<void>> alter_table(storage::TableId table,
                                                storage::TableOptions options);
  runtime::Task<base::Result<void>> drop_table(storage::TableId table);

 private:
  runtime::Task<base::Result<void>> make_tablets();
  runtime::Task<base::Result<void>> rename_doubtful();

  runtime::Runtime& runtime_;
  storage::Engines& engines_;
  const TabletOptions options_;
  base::Logger log_;
  std::vector<storage::TabletInfo> tablets_;
};

}  // namespace helenus::replication
