#include "runtime/native/control_group.h"

#include <algorithm>
#include <array>

#include <fcntl.h>
#include <unistd.h>

#include "runtime/native/descriptor.h"

namespace helenus::runtime::native {

namespace {

constexpr std::string_view kUnified = "0::";  // the line of cgroup v2

// The beginning of a small file; nothing if there is none.
std::string beginning_of(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text;
  const ssize_t count = file.valid() ? ::read(file.number(), text.data(), text.size()) : 0;
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0))};
}

}  // namespace

std::string own_groups() {
  return beginning_of("/proc/self/cgroup");
}

std::vector<std::string> texts_of_groups(std::string_view membership, const std::string& root,
                                         std::string_view file) {
  std::vector<std::string> texts;
  const std::size_t line = membership.starts_with(kUnified) ? 0 : membership.find("\n0::");
  if (line == std::string_view::npos) return texts;
  std::string_view group = membership.substr(membership.find(kUnified, line) + kUnified.size());
  group = group.substr(0, group.find('\n'));
  for (;;) {
    texts.push_back(beginning_of(root + std::string(group) + "/" + std::string(file)));
    if (group.empty()) return texts;
    group = group.substr(0, group.rfind('/'));
  }
}

}  // namespace helenus::runtime::native
