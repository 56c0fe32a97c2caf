#include "filters/table.h"

#include <cstring>
#include <utility>

namespace helenus::filters {

namespace {

constexpr std::size_t kCacheLine = 64;

}  // namespace

Table Table::zeroed(std::uint64_t bytes) {
  ASSERT(bytes > 0);
  Table table;
  table.size_ = static_cast<std::size_t>(bytes);
  table.own_ = base::Buffer(table.size_, kCacheLine);
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
  base::Buffer copy(size_, kCacheLine);
  copy.append(view());
  own_ = std::move(copy);
  data_ = writable_ = own_.data();
  lender_ = {};
}

}  // namespace helenus::filters
