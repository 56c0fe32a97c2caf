// The log facade: what code of every module writes its log lines through.
//
// A line is a level, a module, a message that is a literal, and fields that carry the values. The
// message being a literal, a line can be searched for, counted and translated, and nothing a
// client sent can pose as it. Values are formatted only when the line is wanted:
//
//   Logger log(sink, "storage.commit_log");
//   log.warn("segment is torn", kv("segment", id), kv("bytes_lost", count));
//   -> 2026-11-15T09:30:00.123456Z warn  storage.commit_log  segment is torn segment=7
//   bytes_lost=52
//
// Ownership: there is no global logger. A sink is made by the composition root, handed to
// constructors, and outlives the loggers made from it.
// Threads: a Logger may be used by one core at a time; whether a sink may be shared between cores
// is the sink's contract (SpdlogSink: yes, CapturingSink: no).
// Cost: a line below the module's level costs one compare of a byte the Logger holds; its
// arguments are passed by reference and never formatted.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace helenus::base {

enum class LogLevel : unsigned char { trace, debug, info, warn, error, off };

std::string_view name_of(LogLevel level);
std::optional<LogLevel> log_level_named(std::string_view name);

// One value of a line, formatted.
struct LogField {
  std::string_view key;
  std::string value;
};

// One line on its way to a sink; it borrows from the call that logs.
struct LogRecord {
  LogLevel level;
  std::string_view module;
  std::string_view message;
  std::span<const LogField> fields;
};

// Where lines go.
class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink() = default;

  // The least level wanted of a module. Asked once for each Logger, when it is made.
  virtual LogLevel level_for(std::string_view module) const = 0;
  // Must not fail: a log that cannot be written must not stop what it reports on.
  virtual void write(const LogRecord& record) = 0;
};

// A sink that wants nothing.
class NullSink final : public LogSink {
 public:
  LogLevel level_for(std::string_view) const override { return LogLevel::off; }
  void write(const LogRecord&) override {}
};

// A text known when compiling: messages and keys.
class LogLiteral {
 public:
  consteval LogLiteral(const char* text) : text_(text) {}  // NOLINT: written as a plain literal
  constexpr std::string_view text() const { return text_; }

 private:
  std::string_view text_;
};

// A key and a borrowed value, not yet formatted. Lives only inside the call that logs.
template <class T>
struct KeyValue {
  std::string_view key;
  const T& value;
};

// The value may be of any type that fmt formats.
template <class T>
KeyValue<T> kv(LogLiteral key, const T& value [[clang::lifetimebound]]) {
  return {key.text(), value};
}

template <class T>
LogField field(std::string_view key, const T& value) {
  return {key, fmt::format("{}", value)};
}

// Writes the lines of one module. A module is a dotted name; see LogLevels.
class Logger {
 public:
  Logger(LogSink& sink, std::string module)
      : sink_(&sink), module_(std::move(module)), level_(sink.level_for(module_)) {}

  // For values that cost something to gather; a plain line needs no such check.
  bool enabled(LogLevel level) const { return level >= level_; }
  std::string_view module() const { return module_; }
  LogSink& sink() const { return *sink_; }

  template <class... T>
  void trace(LogLiteral message, const KeyValue<T>&... values) const {
    write(LogLevel::trace, message, values...);
  }
  template <class... T>
  void debug(LogLiteral message, const KeyValue<T>&... values) const {
    write(LogLevel::debug, message, values...);
  }
  template <class... T>
  void info(LogLiteral message, const KeyValue<T>&... values) const {
    write(LogLevel::info, message, values...);
  }
  template <class... T>
  void warn(LogLiteral message, const KeyValue<T>&... values) const {
    write(LogLevel::warn, message, values...);
  }
  template <class... T>
  void error(LogLiteral message, const KeyValue<T>&... values) const {
    write(LogLevel::error, message, values...);
  }

 private:
  template <class... T>
  void write(LogLevel level, LogLiteral message, const KeyValue<T>&... values) const {
    if (!enabled(level)) return;
    const std::array<LogField, sizeof...(T)> fields{field(values.key, values.value)...};
    sink_->write({.level = level, .module = module_, .message = message.text(), .fields = fields});
  }

  LogSink* sink_;
  std::string module_;
  LogLevel level_;
};

// Which level each module logs at: a default and exceptions. A name covers the modules below it
// ("storage" covers "storage.commit_log"), and the longest name wins.
class LogLevels {
 public:
  static constexpr std::size_t kTextSizeMax = 4096;
  static constexpr std::size_t kOverridesMax = 64;

  explicit LogLevels(LogLevel standard = LogLevel::info) : standard_(standard) {}

  // "info,storage=debug,storage.compaction=trace": the default once or not at all, then modules;
  // spaces around the parts are allowed. Errors: invalid_argument, naming the part at fault.
  static Result<LogLevels> parse(std::string_view text);

  // Requires: a module name is dotted words of a-z, 0-9 and _.
  void set(std::string_view module, LogLevel level);
  LogLevel level_for(std::string_view module) const;

  // What `parse` reads, modules in order.
  std::string to_string() const;

  friend bool operator==(const LogLevels&, const LogLevels&) = default;

 private:
  LogLevel standard_;
  std::map<std::string, LogLevel, std::less<>> overrides_;
};

// A message or a value is cut to this many bytes, with a note of how much is missing.
inline constexpr std::size_t kLogTextSizeMax = 4096;

// The line of a record, without its newline, in logfmt: words stay bare, anything else is quoted.
// Whatever the values hold, the result is one line of well-formed UTF-8 whose fields are the
// record's: control characters, line and paragraph separators, changes of writing direction and
// malformed UTF-8 are escaped. `time_text` is trusted.
std::string format_line(std::string_view time_text, const LogRecord& record);

}  // namespace helenus::base

template <>
struct fmt::formatter<helenus::base::LogLevel> : fmt::formatter<std::string_view> {
  auto format(helenus::base::LogLevel level, fmt::format_context& ctx) const {
    return fmt::formatter<std::string_view>::format(helenus::base::name_of(level), ctx);
  }
};
