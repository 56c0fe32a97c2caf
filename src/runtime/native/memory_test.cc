// Stories about how much memory a process is given.
#include "runtime/native/memory.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/native/temporary_directory.h"

namespace helenus::runtime::native {
namespace {

TEST(Memory, TheLeastOfTheGroupsAroundIsGranted) {
  const TemporaryDirectory folder;
  const auto grant = [&](const std::string& group, const std::string& text) {
    std::filesystem::create_directories(folder.path() + group);
    std::ofstream(folder.path() + group + "/memory.max") << text;
  };
  const std::string membership = "0::/slice/pod\n";
  EXPECT_EQ(memory_quota(membership, folder.path()), std::nullopt);
  grant("/slice/pod", "max\n");
  EXPECT_EQ(memory_quota(membership, folder.path()), std::nullopt);
  grant("/slice", "1073741824\n");
  EXPECT_EQ(memory_quota(membership, folder.path()), std::uint64_t{1} << 30);
  grant("/slice/pod", "536870912\n");
  EXPECT_EQ(memory_quota(membership, folder.path()), std::uint64_t{1} << 29);
  grant("/slice/pod", "99999999999999999999999\n");
  EXPECT_EQ(memory_quota(membership, folder.path()), std::uint64_t{1} << 30);
  EXPECT_EQ(memory_quota("12:memory:/slice\n", folder.path()), std::nullopt);
}

TEST(Memory, SomeIsGranted) {
  EXPECT_GT(memory_granted(), std::uint64_t{1} << 20);
}

}  // namespace
}  // namespace helenus::runtime::native
