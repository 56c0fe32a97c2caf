// Strong types: numbers that mean one thing and do not convert by themselves.
//
//   using CoreId = base::Strong<struct CoreIdTag, std::uint32_t>;
//   CoreId core{3};  core.value() == 3;  // no implicit way back
#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <utility>

#include <fmt/format.h>

namespace helenus::base {

template <class Tag, class T>
class Strong {
 public:
  using Value = T;

  constexpr Strong() = default;
  constexpr explicit Strong(T value) : value_(std::move(value)) {}

  constexpr const T& value() const { return value_; }

  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

  template <class H>
  friend H AbslHashValue(H state, const Strong& strong) {
    return H::combine(std::move(state), strong.value_);
  }

 private:
  T value_{};
};

}  // namespace helenus::base

template <class Tag, class T>
struct std::hash<helenus::base::Strong<Tag, T>> {
  std::size_t operator()(const helenus::base::Strong<Tag, T>& strong) const {
    return std::hash<T>{}(strong.value());
  }
};

template <class Tag, class T>
struct fmt::formatter<helenus::base::Strong<Tag, T>> : fmt::formatter<T> {
  auto format(const helenus::base::Strong<Tag, T>& strong, fmt::format_context& ctx) const {
    return fmt::formatter<T>::format(strong.value(), ctx);
  }
};
