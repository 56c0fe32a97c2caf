#include "storage/log/allocation_count_test_support.h"

#include <cstdlib>
#include <new>

namespace {

std::uint64_t& count() {
  static std::uint64_t calls = 0;
  return calls;
}

}  // namespace

namespace helenus::storage {

std::uint64_t allocations() {
  return count();
}

}  // namespace helenus::storage

void* operator new(std::size_t size) {
  ++count();
  return std::malloc(size);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++count();
  const auto align = static_cast<std::size_t>(alignment);
  return std::aligned_alloc(align, (size + align - 1) / align * align);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
