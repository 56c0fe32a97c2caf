// What a Task refuses when compiling.
#include "runtime/task.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/result.h"

namespace helenus::runtime {
namespace {

// Whether a coroutine of Task<T> may say `co_return` with a U.
template <class T, class U>
constexpr bool kMayReturn = requires(detail::TaskPromise<T>& promise, U value) {
  promise.return_value(std::forward<U>(value));
};

TEST(Task, ReturnsWhatConvertsByItself) {
  using base::Errc;
  using base::Error;
  using base::Result;
  static_assert(kMayReturn<int, int>);
  static_assert(kMayReturn<std::string, const char*>);
  static_assert(kMayReturn<Result<int>, int>);
  static_assert(kMayReturn<Result<int>, Error>);
  static_assert(kMayReturn<Result<std::unique_ptr<int>>, std::unique_ptr<int>>);
  static_assert(kMayReturn<std::unique_ptr<int>, std::nullptr_t>);
}

TEST(Task, DoesNotReturnWhatOnlyAnExplicitConversionGives) {
  using base::Result;
  static_assert(!kMayReturn<std::unique_ptr<int>, int*>, "would take ownership in silence");
  static_assert(!kMayReturn<Result<bool>, Result<int>>, "would say whether there is a number");
  static_assert(!kMayReturn<bool, Result<int>>);
}

}  // namespace
}  // namespace helenus::runtime
