// Secret<T>: a value that must not reach a log, an error message or a dashboard. It formats as
// "***" and hands out what it holds only to whoever calls `reveal()` by name, so every place that
// uses a password or key is one search away. It neither compares nor converts.
#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace helenus::base {

template <class T>
class Secret {
 public:
  Secret() = default;
  explicit Secret(T value) : value_(std::move(value)) {}

  const T& reveal() const { return value_; }

 private:
  T value_{};
};

}  // namespace helenus::base

template <class T>
struct fmt::formatter<helenus::base::Secret<T>> : fmt::formatter<std::string_view> {
  auto format(const helenus::base::Secret<T>&, fmt::format_context& ctx) const {
    return fmt::formatter<std::string_view>::format("***", ctx);
  }
};
