// The rows that storage benchmarks write and read: keys of 16 bytes in the order of a hash, values
// of 100 bytes of which half repeats the other half, so that they compress to about a half.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <rocksdb/slice.h>
#include <rocksdb/status.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/codec.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/result.h"

namespace helenus::bench {

inline constexpr std::size_t kKeySize = 16;
inline constexpr std::size_t kValueSize = 100;

template <class T>
T must(base::Result<T> result) {
  ASSERT(result.has_value(), "{}", result.error().to_string());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}
inline void must(const rocksdb::Status& status) {
  ASSERT(status.ok(), "{}", status.ToString());
}

// The rows, by their place in the order of keys.
class Data {
 public:
  explicit Data(std::uint64_t rows) : heads_(rows) {
    for (std::uint64_t i = 0; i < rows; ++i) heads_[i] = base::mix64(i + 1);
    std::ranges::sort(heads_);
    base::Prng prng(1);
    pool_.resize((std::size_t{1} << 20) + kValueSize);
    for (std::size_t i = 0; i < pool_.size(); i += kValueSize / 2) {
      // Half of every value is new, half repeats it.
      const std::size_t size = std::min(kValueSize / 2, pool_.size() - i);
      if (i / (kValueSize / 2) % 2 == 1) {
        std::copy_n(pool_.begin() + static_cast<std::ptrdiff_t>(i - kValueSize / 2), size,
                    pool_.begin() + static_cast<std::ptrdiff_t>(i));
      } else {
        for (std::size_t j = 0; j < size; ++j) pool_[i + j] = static_cast<char>(prng.below(256));
      }
    }
  }

  std::uint64_t rows() const { return heads_.size(); }
  void key(std::uint64_t index, std::byte* into) const {
    base::store_be(into, heads_[index]);
    base::store_be(into + 8, base::mix64(heads_[index]));
  }
  // A key that is not there, between others.
  void absent_key(std::uint64_t index, std::byte* into) const {
    base::store_be(into, heads_[index]);
    base::store_be(into + 8, ~base::mix64(heads_[index]));
  }
  std::string_view value(std::uint64_t index) const {
    return std::string_view(pool_).substr(index * kValueSize % (std::size_t{1} << 20), kValueSize);
  }

 private:
  std::vector<std::uint64_t> heads_;
  std::string pool_;
};

struct Key {
  std::byte bytes[kKeySize];
  base::ByteView view() const { return bytes; }
  rocksdb::Slice slice() const { return {reinterpret_cast<const char*>(bytes), kKeySize}; }
};

}  // namespace helenus::bench
