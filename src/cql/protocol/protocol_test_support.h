// What the tests of this folder share: bytes written as hexadecimal, and frames taken apart.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/protocol/frame.h"

namespace helenus::cql::protocol {

// "04 00 0001" as bytes; blanks are for the reader.
inline base::Bytes from_hex(std::string_view text) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  base::Buffer bytes;
  int high = -1;
  for (const char c : text) {
    if (c == ' ') continue;
    if (high < 0) {
      high = digit(c);
    } else {
      bytes.push_back(static_cast<std::byte>(high * 16 + digit(c)));
      high = -1;
    }
  }
  EXPECT_EQ(high, -1) << "half a byte";
  return std::move(bytes).freeze();
}

// Every step but NeedBytes and the announcements of headers, from bytes given in pieces of at most
// `piece_size_max`.
inline std::vector<FrameReader::Step> steps_of(FrameReader& reader, base::ByteView bytes,
                                               std::size_t piece_size_max) {
  std::vector<FrameReader::Step> steps;
  while (!bytes.empty()) {
    const std::size_t taken = reader.feed(bytes.first(std::min(bytes.size(), piece_size_max)));
    bytes = bytes.subspan(taken);
    for (auto step = reader.next(); !std::holds_alternative<FrameReader::NeedBytes>(step);
         step = reader.next()) {
      if (!std::holds_alternative<FrameHeader>(step)) steps.push_back(std::move(step));
    }
  }
  return steps;
}

// The only frame there is in these bytes.
inline Frame only_frame(Direction direction, base::ByteView bytes) {
  FrameReader reader(direction);
  auto steps = steps_of(reader, bytes, SIZE_MAX);
  EXPECT_EQ(steps.size(), 1U);
  EXPECT_TRUE(reader.at_boundary());
  if (steps.empty() || !std::holds_alternative<Frame>(steps[0])) {
    ADD_FAILURE() << "no frame";
    return {};
  }
  return std::get<Frame>(std::move(steps[0]));
}

}  // namespace helenus::cql::protocol
