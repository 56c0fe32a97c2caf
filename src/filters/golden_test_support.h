// For tests: filters against files of theirs that must decode for ever, and be written as they
// were. HELENUS_TESTDATA is the folder of the files.
#pragma once

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace helenus::filters {

inline base::Bytes golden(std::string_view name) {
  std::ifstream file(std::string(HELENUS_TESTDATA) + "/" + std::string(name), std::ios::binary);
  EXPECT_TRUE(file.is_open()) << name;
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  return base::Bytes::copy_of(bytes);
}

inline const std::vector<std::string> kKeys = {"key-0", "key-1", "key-2",
                                               "key-3", "key-4", "key-5"};

// The filter has all keys.
template <class F>
void expect_golden_bytes(std::string_view name, const F& filter) {
  EXPECT_EQ(base::to_hex(filter.encode()), base::to_hex(golden(name))) << name;
  const auto decoded = F::decode(golden(name));
  ASSERT_TRUE(decoded.has_value()) << name << ": " << decoded.error().to_string();
  EXPECT_EQ(decoded->size(), kKeys.size());
  for (const std::string& key : kKeys) EXPECT_TRUE(decoded->contains(key)) << name << ", " << key;
}

template <class F>
void expect_golden(std::string_view name, F filter) {
  for (const std::string& key : kKeys) ASSERT_TRUE(filter.insert(key));
  expect_golden_bytes(name, filter);
}

}  // namespace helenus::filters
