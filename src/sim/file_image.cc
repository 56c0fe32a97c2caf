#include "sim/file_image.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace helenus::sim {

void FileImage::read(std::uint64_t offset, base::MutableByteView into) const {
  while (!into.empty()) {
    const std::uint64_t within = offset % kPageSize;
    const std::size_t count = std::min<std::uint64_t>(into.size(), kPageSize - within);
    const auto found = pages_.find(offset / kPageSize);
    if (found == pages_.end()) {
      std::memset(into.data(), 0, count);
    } else {
      std::memcpy(into.data(), found->second->data() + within, count);
    }
    offset += count;
    into = into.subspan(count);
  }
}

FileImage::Page& FileImage::own_page(std::uint64_t index) {
  std::shared_ptr<Page>& page = pages_[index];
  if (page == nullptr) {
    page = std::make_shared<Page>();
  } else if (page.use_count() > 1) {
    page = std::make_shared<Page>(*page);
  }
  return *page;
}

void FileImage::write(std::uint64_t offset, base::ByteView from) {
  if (from.empty()) return;
  size_ = std::max(size_, offset + from.size());
  while (!from.empty()) {
    const std::uint64_t within = offset % kPageSize;
    const std::size_t count = std::min<std::uint64_t>(from.size(), kPageSize - within);
    std::memcpy(own_page(offset / kPageSize).data() + within, from.data(), count);
    offset += count;
    from = from.subspan(count);
  }
}

void FileImage::resize(std::uint64_t size) {
  if (size < size_) {
    const std::uint64_t within = size % kPageSize;
    pages_.erase(pages_.lower_bound((size + kPageSize - 1) / kPageSize), pages_.end());
    if (within > 0 && has_page(size / kPageSize)) {
      Page& last = own_page(size / kPageSize);
      std::memset(last.data() + within, 0, kPageSize - within);
    }
  }
  size_ = size;
}

void FileImage::share_page(const FileImage& other, std::uint64_t index) {
  const auto found = other.pages_.find(index);
  if (found == other.pages_.end()) {
    pages_.erase(index);
  } else {
    pages_[index] = found->second;
  }
}

bool FileImage::shares_page(const FileImage& other, std::uint64_t index) const {
  const auto ours = pages_.find(index);
  const auto theirs = other.pages_.find(index);
  return ours != pages_.end() && theirs != other.pages_.end() && ours->second == theirs->second;
}

std::uint64_t FileImage::page_index(std::uint64_t nth) const {
  ASSERT(nth < page_count());
  return std::next(pages_.begin(), static_cast<std::ptrdiff_t>(nth))->first;
}

std::uint64_t FileImage::page_count_from(std::uint64_t index) const {
  return static_cast<std::uint64_t>(std::distance(pages_.lower_bound(index), pages_.end()));
}

void FileImage::flip_bit(std::uint64_t index, std::uint64_t bit) {
  ASSERT(has_page(index) && bit < kPageSize * 8);
  own_page(index)[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
}

void FileImage::add_to(base::Digest& digest) const {
  digest.add(size_);
  for (const auto& [index, page] : pages_) {
    digest.add(index);
    digest.add(base::ByteView(*page));
  }
}

}  // namespace helenus::sim
