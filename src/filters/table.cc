#include "filters/table.h"

#include <cstring>
#include <new>
#include <utility>

namespace helenus::filters {

namespace {

constexpr std::size_t kCacheLine = 64;

// A large table begins where a huge page can begin, so that a system that gives huge pages can give
// them for all of it.
constexpr std::size_t kHugePage = std::size_t{1} << 21;
static_assert(kHugePage <= base::Buffer::kAlignmentMax);

base::Buffer memory_for(std::size_t bytes) {
  return base::Buffer(bytes, bytes < 2 * kHugePage ? kCacheLine : kHugePage);
}

}  // namespace

base::Result<Table> Table::zeroed(std::uint64_t bytes) {
  ASSERT(bytes > 0);
  Table table;
  table.size_ = static_cast<std::size_t>(bytes);
  try {
    table.own_ = memory_for(table.size_);
  } catch (const std::bad_alloc&) {
    return base::Error(base::Errc::overloaded, "no memory for a filter of {} bytes", bytes);
  }
  std::memset(table.own_.extend(table.size_).data(), 0, table.size_);
  table.data_ = table.writable_ = table.own_.data();
  return table;
}

Table Table::viewing(base::Bytes bytes) {
  Table table;
  table.data_ = bytes.data();
  table.size_ = bytes.size();
  table.lender_ = std::move(bytes);
  return table;
}

void Table::make_own() {
  base::Buffer copy = memory_for(size_);
  copy.append(view());
  own_ = std::move(copy);
  data_ = writable_ = own_.data();
  lender_ = {};
}

}  // namespace helenus::filters
