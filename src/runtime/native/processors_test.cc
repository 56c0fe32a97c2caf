// Stories about how many processors a process is given.
#include "runtime/native/processors.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/native/temporary_directory.h"

namespace helenus::runtime::native {
namespace {

TEST(Processors, AQuotaIsRoundedUp) {
  EXPECT_EQ(processors_in("200000 100000\n"), 2U);
  EXPECT_EQ(processors_in("250000 100000\n"), 3U);
  EXPECT_EQ(processors_in("1000 100000\n"), 1U);
  EXPECT_EQ(processors_in("18446744073709551615 1\n"), 4294967295U);
}

TEST(Processors, WhatIsNoQuotaIsNone) {
  for (const std::string_view text : {"max 100000\n", "", "200000", "200000 ", "200000 0\n",
                                      "-1 100000\n", "x y\n", "99999999999999999999999 100000\n"}) {
    EXPECT_EQ(processors_in(text), std::nullopt) << text;
  }
}

TEST(Processors, TheGroupsAroundAreAskedToo) {
  const TemporaryDirectory folder;
  const auto grant = [&](const std::string& group, const std::string& text) {
    std::filesystem::create_directories(folder.path() + group);
    std::ofstream(folder.path() + group + "/cpu.max") << text;
  };
  grant("/slice/pod/container", "800000 100000\n");
  grant("/slice/pod", "max 100000\n");
  EXPECT_EQ(processor_quota("0::/slice/pod/container\n", folder.path()), 8U);
  grant("/slice", "300000 100000\n");
  EXPECT_EQ(processor_quota("0::/slice/pod/container\n", folder.path()), 3U);
  EXPECT_EQ(processor_quota("12:cpu:/x\n0::/slice/pod/container\n", folder.path()), 3U);
  EXPECT_EQ(processor_quota("0::/slice/pod/gone\n", folder.path()), 3U);
  EXPECT_EQ(processor_quota("0::/\n", folder.path()), std::nullopt);
  grant("", "100000 100000\n");
  EXPECT_EQ(processor_quota("0::/\n", folder.path()), 1U);
  EXPECT_EQ(processor_quota("12:cpu:/slice/pod/container\n", folder.path()), std::nullopt);
  EXPECT_EQ(processor_quota("", folder.path()), std::nullopt);
}

TEST(Processors, AtLeastOneIsGranted) {
  EXPECT_GE(processors_granted(), 1U);
  EXPECT_LE(processors_granted(), processors_allowed().size());
}

}  // namespace
}  // namespace helenus::runtime::native
