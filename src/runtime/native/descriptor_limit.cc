#include "runtime/native/descriptor_limit.h"

#include <sys/resource.h>

#include "base/assert.h"

namespace helenus::runtime::native {

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  ASSERT(::getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit raised{.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
  return ::setrlimit(RLIMIT_NOFILE, &raised) == 0 ? raised.rlim_cur : limit.rlim_cur;
}

}  // namespace helenus::runtime::native
