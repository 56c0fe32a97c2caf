// Table: the memory of a filter, its own or borrowed from the bytes it was decoded from.
//
// A decoded filter looks into the bytes it was given, so that opening a large file costs no copy
// and no second resident set. The first change copies them once; from then on the table is its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::filters {

class Table {
 public:
  // All zero, aligned to a cache line, and from 4 MiB on to a huge page.
  // Requires: 0 < bytes <= Buffer::kCapacityMax. Errors: overloaded when there is no such memory.
  static base::Result<Table> zeroed(std::uint64_t bytes);
  // Looks into `bytes` and keeps them alive.
  static Table viewing(base::Bytes bytes);

  Table(Table&&) noexcept = default;
  Table& operator=(Table&&) noexcept = default;

  const std::byte* data() const { return data_; }
  std::uint64_t size() const { return size_; }
  base::ByteView view() const { return {data_, size_}; }
  bool is_borrowed() const { return writable_ == nullptr; }

  // The same bytes, to be changed. The first call on a borrowed table copies it.
  std::byte* writable() {
    if (writable_ == nullptr) [[unlikely]]
      make_own();
    return writable_;
  }

 private:
  Table() = default;
  void make_own();

  base::Buffer own_;
  base::Bytes lender_;
  const std::byte* data_ = nullptr;
  std::byte* writable_ = nullptr;  // data_ when the memory is our own
  std::size_t size_ = 0;
};

}  // namespace helenus::filters
