// TemporaryDirectory: a directory of its own for a test, gone with everything in it afterwards.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/assert.h"

namespace helenus::runtime::native {

class TemporaryDirectory {
 public:
  TemporaryDirectory() : path_(testing::TempDir() + "helenus-XXXXXX") {
    ASSERT(::mkdtemp(path_.data()) != nullptr, "cannot make {}", path_);
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace helenus::runtime::native
