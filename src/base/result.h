// Operating errors as values: Result<T> is either a T or an Error with a code and a context.
//
// Three kinds of trouble, never mixed:
//   operating errors (timeout, damaged block, bad query)  -> Result, this file
//   programmer's errors                                   -> ASSERT, assert.h
//   exceptions                                            -> only what libraries throw, caught at
//                                                            the edge of the module that calls them
//
//   Result<Header> read_header(ByteView bytes) {
//     TRY(const auto version, read_version(bytes));
//     if (version > kVersionMax) return Error(Errc::unsupported, "header version {}", version);
//     ...
//   }
#pragma once

#include <concepts>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

namespace helenus::base {

// What crosses module borders. One list, so that it maps one to one to what clients are told.
enum class Errc : unsigned char {
  cancelled,        // the caller asked us to stop
  timeout,          // the deadline passed; for a write the outcome is unknown
  overloaded,       // a limit of ours was reached; try again later
  unavailable,      // not enough live peers to try
  closed,           // the other side, or this object, was closed in an orderly way
  connection_lost,  // the connection broke; what was in flight is in doubt
  refused,          // the other side does not want us
  address_in_use,
  not_found,
  already_exists,
  permission_denied,
  invalid_argument,  // bad input, configuration or query
  unsupported,       // well formed, but not something this version does
  corrupt,           // bytes that fail their checksum or their grammar
  no_space,          // the device is full
  io_error,          // the device failed
  locked,            // someone else holds the lock
  internal,
};

std::string_view name_of(Errc code);

// A code and, unless the code says it all, a sentence. Two words wide, so that Result<uint64_t>
// takes three: the happy path pays nothing for the context.
class [[nodiscard]] Error {
 public:
  explicit Error(Errc code) : code_(code) {}
  Error(Errc code, std::string context)
      : code_(code), context_(std::make_unique<std::string>(std::move(context))) {}
  template <class... Args>
    requires(sizeof...(Args) > 0)
  Error(Errc code, fmt::format_string<Args...> format, Args&&... args)
      : Error(code, fmt::format(format, std::forward<Args>(args)...)) {}

  Error(const Error& other)
      : code_(other.code_),
        context_(other.context_ ? std::make_unique<std::string>(*other.context_) : nullptr) {}
  Error& operator=(const Error& other) { return *this = Error(other); }
  Error(Error&&) noexcept = default;
  Error& operator=(Error&&) noexcept = default;
  ~Error() = default;

  Errc code() const { return code_; }
  std::string_view context() const { return context_ ? std::string_view(*context_) : ""; }

  // Adds what the caller was about to do in front: "opening data/x: no such file".
  Error within(std::string_view doing) &&;

  // "timeout" or "timeout: waited 3 s for 10.0.0.2".
  std::string to_string() const;

  friend bool operator==(const Error& a, const Error& b) {
    return a.code_ == b.code_ && a.context() == b.context();
  }

 private:
  Errc code_;
  std::unique_ptr<std::string> context_;
};

template <class T>
class [[nodiscard]] Result : public std::expected<T, Error> {
  using Base = std::expected<T, Error>;

 public:
  using Base::Base;
  Result(Error error) : Base(std::unexpect, std::move(error)) {}  // NOLINT: return Error(...)

  bool failed_with(Errc code) const { return !this->has_value() && this->error().code() == code; }

  // std::expected's own comparisons are ambiguous for a class derived from it.
  template <std::same_as<Result> Same>
    requires(std::is_void_v<T> || std::equality_comparable<T>)
  friend bool operator==(const Result& a, const Same& b) {
    if (a.has_value() != b.has_value()) return false;
    if (!a.has_value()) return a.error() == b.error();
    if constexpr (std::is_void_v<T>) {
      return true;
    } else {
      return *a == *b;
    }
  }
  template <class Value>
    requires(!std::same_as<Value, Result> && std::equality_comparable_with<T, Value>)
  friend bool operator==(const Result& a, const Value& b) {
    return a.has_value() && *a == b;
  }
};

static_assert(sizeof(Error) == 16);
static_assert(sizeof(Result<unsigned long>) == 24);

}  // namespace helenus::base

template <>
struct fmt::formatter<helenus::base::Errc> : fmt::formatter<std::string_view> {
  auto format(helenus::base::Errc code, fmt::format_context& ctx) const {
    return fmt::formatter<std::string_view>::format(helenus::base::name_of(code), ctx);
  }
};

template <>
struct fmt::formatter<helenus::base::Error> : fmt::formatter<std::string> {
  auto format(const helenus::base::Error& error, fmt::format_context& ctx) const {
    return fmt::formatter<std::string>::format(error.to_string(), ctx);
  }
};

// TRY(auto x, f()): declares x from a Result or returns its error. TRY_VOID(f()) for Result<void>.
// The CO_ forms are for coroutines. They are statements, not expressions: one a line, inside
// braces. A declaration cannot hold a comma: bind a structure's members in the next line.
#define HELENUS_CONCAT_INNER(a, b) a##b
#define HELENUS_CONCAT(a, b) HELENUS_CONCAT_INNER(a, b)
#define HELENUS_TRY(name, leave, declaration, ...) \
  auto name = (__VA_ARGS__);                       \
  if (!name) [[unlikely]]                          \
    leave std::move(name).error();                 \
  declaration = *std::move(name)
#define HELENUS_TRY_VOID(name, leave, ...) \
  do {                                     \
    auto name = (__VA_ARGS__);             \
    if (!name) [[unlikely]]                \
      leave std::move(name).error();       \
  } while (false)

#define TRY(declaration, ...) \
  HELENUS_TRY(HELENUS_CONCAT(try_result_, __LINE__), return, declaration, __VA_ARGS__)
#define CO_TRY(declaration, ...) \
  HELENUS_TRY(HELENUS_CONCAT(try_result_, __LINE__), co_return, declaration, __VA_ARGS__)
#define TRY_VOID(...) HELENUS_TRY_VOID(HELENUS_CONCAT(try_result_, __LINE__), return, __VA_ARGS__)
#define CO_TRY_VOID(...) \
  HELENUS_TRY_VOID(HELENUS_CONCAT(try_result_, __LINE__), co_return, __VA_ARGS__)
