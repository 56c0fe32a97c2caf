// HostileBytes: the bytes of a filter with sound checksums, to be changed one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/result.h"
#include "filters/envelope.h"

namespace helenus::filters {

template <class Filter>
class HostileBytes : public ::testing::Test {
 protected:
  explicit HostileBytes(const Filter& filter) {
    auto opened = *unseal(filter.encode());
    envelope_ = opened.envelope;
    body_.append(opened.body);
  }

  base::Result<Filter> decode() const { return Filter::decode(seal(envelope_, body_.view())); }
  // Whether the bytes are corrupt with one of them changed.
  bool is_corrupt_with(std::size_t offset, std::uint8_t value) {
    const std::byte kept = std::exchange(body_.data()[offset], std::byte{value});
    EXPECT_NE(kept, std::byte{value}) << offset;
    const bool is_corrupt = decode().failed_with(base::Errc::corrupt);
    body_.data()[offset] = kept;
    return is_corrupt;
  }

  Envelope envelope_;
  base::Buffer body_;
};

}  // namespace helenus::filters
