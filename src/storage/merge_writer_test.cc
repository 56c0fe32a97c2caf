// What a merge may strip beside files that it cannot look into.
#include "storage/merge_writer.h"

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "causality/codec.h"
#include "storage/sstable_test_support.h"

namespace helenus::storage {
namespace {

using causality::actor_of;
using runtime::Runtime;
using runtime::Task;

constexpr TabletId kTablet{1};
constexpr const char* kPartition = "p";
constexpr const char* kRow = "r";

std::string scopes_key() {
  return encode_key({base::as_bytes(kPartition), EntryKind::scopes, {}});
}

// One row, written by somebody who had seen another mutation.
std::shared_ptr<const Memtable> one_row() {
  causality::Delta delta;
  delta.dot = {actor_of(1, 1), 2};
  delta.context.dots.add(causality::Dot{actor_of(1, 1), 1});
  causality::CellChange cell;
  cell.row = base::Bytes::copy_of(kRow);
  cell.value = base::Bytes::copy_of("v");
  delta.cells.push_back(std::move(cell));
  auto memtable = std::make_shared<Memtable>(causality::Policy::lww);
  memtable->apply(base::as_bytes(kPartition), delta, causality::encoded(delta), 1);
  memtable->freeze();
  return memtable;
}

// A file that could not even be opened, with one key as far as the manifest knows.
std::shared_ptr<const Sstable> unreadable_file(const std::string& key) {
  Sstable file{.record = {.number = FileNumber{1},
                          .keys = 1,
                          .freeze_first = FreezeNumber{1},
                          .freeze_last = FreezeNumber{1},
                          .key_first = base::Bytes::copy_of(key),
                          .key_last = base::Bytes::copy_of(key)},
               .metadata = {},
               .reader = nullptr,
               .damage = base::Error(base::Errc::corrupt, "footer")};
  return std::make_shared<const Sstable>(std::move(file));
}

Task<void> flush_beside(Runtime& runtime, SstableList others, MergeCounts& counts) {
  TabletKnowledge knowledge;
  knowledge.base.add(causality::DotRange{actor_of(1, 1), 1, 2});
  MergePlan plan{.table = TableId{7},
                 .freeze_first = FreezeNumber{2},
                 .freeze_last = FreezeNumber{2},
                 .knowledge = {{kTablet, knowledge}},
                 .tablets = {{.id = kTablet, .range = {}}},
                 .others = std::move(others)};
  const auto writer = co_await SstableWriter::create(runtime, "/out.sst", {});
  CO_ASSERT_OK(writer);
  MergeWriter merge(runtime, std::move(plan));
  const auto source = entries_of(one_row());
  CO_ASSERT_OK(co_await merge.run(*source, **writer, {}));
  CO_ASSERT_OK(co_await (*writer)->finish({}));
  counts = merge.counts();
}

MergeCounts counts_beside(const SstableList& others) {
  MergeCounts counts;
  SimMachine().run([&](Runtime& runtime) { return flush_beside(runtime, others, counts); });
  EXPECT_EQ(counts.keys_read, 1);
  return counts;
}

// The row's key is not in it, but a delete of the row may be: what the row has seen must stay.
TEST(MergeWriter, AFileThatCannotBeReadMayHoldScopesOfThePartition) {
  EXPECT_EQ(counts_beside({unreadable_file(scopes_key())}).keys_whole, 0);
}

TEST(MergeWriter, AFileThatCannotBeReadHoldsNothingOutsideItsKeys) {
  EXPECT_EQ(counts_beside({}).keys_whole, 1);
  EXPECT_EQ(counts_beside({unreadable_file("q")}).keys_whole, 1);
}

}  // namespace
}  // namespace helenus::storage
