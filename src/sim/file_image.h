// FileImage: the bytes of a file, in pages that copies share until one of them is written to. So
// that the cached and the durable state of a file, and the snapshots of a whole disk, cost little.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>

#include "base/bytes.h"
#include "base/hash.h"

namespace helenus::sim {

class FileImage {
 public:
  static constexpr std::uint64_t kPageSize = 4096;

  std::uint64_t size() const { return size_; }
  // Pages that were ever written to; the others read as zeros.
  std::uint64_t page_count() const { return pages_.size(); }
  bool has_page(std::uint64_t index) const { return pages_.contains(index); }
  // How many of them are at that index or beyond.
  std::uint64_t page_count_from(std::uint64_t index) const;

  // Fills `into` from `offset`, with zeros where nothing was written, whatever the size.
  void read(std::uint64_t offset, base::MutableByteView into) const;
  // Makes the file longer if need be.
  void write(std::uint64_t offset, base::ByteView from);
  // What is beyond is gone: growing again shows zeros.
  void resize(std::uint64_t size);

  // Takes over the page from `other`, shared.
  void share_page(const FileImage& other, std::uint64_t index);
  bool shares_page(const FileImage& other, std::uint64_t index) const;
  // The index of the nth page. Requires: nth < page_count().
  std::uint64_t page_index(std::uint64_t nth) const;
  // Requires: has_page(index).
  void flip_bit(std::uint64_t index, std::uint64_t bit);

  void add_to(base::Digest& digest) const;

 private:
  using Page = std::array<std::byte, kPageSize>;

  // The page, there and nobody else's.
  Page& own_page(std::uint64_t index);

  std::uint64_t size_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Page>> pages_;
};

}  // namespace helenus::sim
