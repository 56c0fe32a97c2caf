#include "causality/operation.h"

#include <set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "causality/codec.h"
#include "causality/counter.h"
#include "causality/delta.h"
#include "causality/resolve.h"

namespace helenus::causality {
namespace {

using base::Errc;

OperationId id_of(const std::array<unsigned, 16>& octets) {
  OperationId id{};
  for (std::size_t i = 0; i < octets.size(); ++i) id[i] = static_cast<std::byte>(octets[i]);
  return id;
}

// The example of RFC 9562 for version 7: 2022-02-22 19:22:22 UTC.
const OperationId kVersion7 = id_of({0x01, 0x7f, 0x22, 0xe2, 0x79, 0xb0, 0x7c, 0xc3, 0x98, 0xc4,
                                     0xdc, 0x0c, 0x0c, 0x07, 0x39, 0x8f});
// And that for version 1, of the same moment.
const OperationId kVersion1 = id_of({0xc2, 0x32, 0xab, 0x00, 0x94, 0x14, 0x11, 0xec, 0xb3, 0xc8,
                                     0x9f, 0x6b, 0xde, 0xce, 0xd8, 0x46});

TEST(Operation, BothVersionsSayWhenTheyWereMade) {
  EXPECT_EQ(time_of(kVersion7).value(), 1'645'557'742'000);
  EXPECT_EQ(time_of(kVersion1).value(), 1'645'557'742'000);
}

TEST(Operation, OtherSizesAndVersionsAreRefused) {
  EXPECT_EQ(*parse_operation_id(kVersion7), kVersion7);
  EXPECT_EQ(*parse_operation_id(kVersion1), kVersion1);
  EXPECT_TRUE(parse_operation_id({}).failed_with(Errc::invalid_argument));
  EXPECT_TRUE(
      parse_operation_id(base::ByteView(kVersion7).first(15)).failed_with(Errc::invalid_argument));
  OperationId random = kVersion7;
  random[6] = std::byte{0x4c};
  EXPECT_TRUE(parse_operation_id(random).failed_with(Errc::invalid_argument));
}

RC_GTEST_PROP(Operation, EveryChangeOfARequestHasANameOfItsOwnAndItsTime,
              (std::set<std::uint32_t> ordinals)) {
  std::set<OperationId> names;
  for (const std::uint32_t ordinal : ordinals) {
    const OperationId name = nth(kVersion7, ordinal);
    names.insert(name);
    RC_ASSERT(time_of(name) == time_of(kVersion7));
    RC_ASSERT((name[8] & std::byte{0xc0}) == (kVersion7[8] & std::byte{0xc0}));
  }
  RC_ASSERT(names.size() == ordinals.size());
  RC_ASSERT(nth(kVersion1, 0) == kVersion1);
}

Delta increment_of(Dot dot, std::int64_t amount, std::optional<OperationId> operation) {
  Delta delta{.dot = dot,
              .context = {},
              .timestamp = Timestamp{1},
              .operation = operation,
              .cells = {},
              .deleted_ranges = {}};
  delta.cells.push_back({.row = base::Bytes::copy_of(std::string_view("r")),
                         .column = ColumnId{0},
                         .kind = VersionKind::increment,
                         .expires = {},
                         .amount = amount,
                         .value = {}});
  return delta;
}

CellStore cell_of_all(const std::vector<Delta>& deltas) {
  PartitionStore stored;
  for (const Delta& delta : deltas) stored.absorb(fragment_of(delta, Policy::counter));
  return stored.cell(base::Bytes::copy_of(std::string_view("r")), ColumnId{0});
}

TEST(Operation, TwoDotsOfOneOperationCountOnce) {
  const Dot here{actor_of(1, 1), 1};
  const Dot there{actor_of(2, 1), 1};
  const auto cell =
      cell_of_all({increment_of(here, 5, kVersion7), increment_of(there, 5, kVersion7),
                   increment_of({actor_of(1, 1), 2}, 5, nth(kVersion7, 1)),
                   increment_of({actor_of(1, 1), 3}, 5, std::nullopt),
                   increment_of({actor_of(2, 1), 2}, 5, std::nullopt)});
  EXPECT_EQ(cell.versions().size(), 5U);
  EXPECT_EQ(counter_value(cell), 20);
}

TEST(Operation, AnIncrementKeepsItsNameInItsBytes) {
  const auto cell = cell_of_all({increment_of({actor_of(1, 1), 1}, 5, kVersion7),
                                 increment_of({actor_of(2, 1), 1}, 5, std::nullopt)});
  const auto read = decode_cell(encoded(cell));
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, cell);
  EXPECT_EQ(read->versions()[0].value, base::Bytes::copy_of(kVersion7));
  EXPECT_TRUE(read->versions()[1].value.empty());
}

TEST(Operation, ANameOfWhatAddsNothingIsCorrupt) {
  const auto bytes = encoded(cell_of_all({increment_of({actor_of(1, 1), 1}, 5, kVersion7)}));
  std::vector<std::byte> broken(bytes.view().begin(), bytes.view().end());
  // Version, count, dot, flags: from an increment with a name to a delete with one.
  ASSERT_EQ(broken[5], std::byte{18});
  broken[5] = std::byte{17};
  EXPECT_TRUE(decode_cell(base::Bytes::copy_of(broken)).failed_with(Errc::corrupt));
  EXPECT_TRUE(decode_cell(bytes.slice(0, bytes.size() - 8)).failed_with(Errc::corrupt));
}

}  // namespace
}  // namespace helenus::causality
