// Descriptor: a file descriptor with one owner.
#pragma once

#include <utility>

#include <unistd.h>

namespace helenus::runtime::native {

class [[nodiscard]] Descriptor {
 public:
  Descriptor() = default;
  // Takes what a system call returned; a negative number means none.
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }
  int release() { return std::exchange(number_, -1); }
  void reset() {
    if (valid()) ::close(release());
  }

 private:
  int number_ = -1;
};

}  // namespace helenus::runtime::native
