// LocalStore: what a node keeps for itself alone: small values by name, each in a file of its own.
//
//   CO_TRY(const auto store, co_await LocalStore::open(runtime, data_directory + "/local"));
//   CO_TRY_VOID(co_await store->write("tables", bytes));
//   CO_TRY(const auto bytes, co_await store->read("tables"));
//
// Why not a table. What is in a tablet has a dot and goes to the tablet's other replicas. What is
// true of one node only, such as which of its folders holds the rows of a table, must go nowhere.
//
// A file (docs/formats/local-store.md) is replaced as a whole, as runtime::replace_file does it: at
// every moment there is the last value or the one before, and what does not decode is damage, never
// an empty answer (S6). A file that is not there is a value that was never written: whoever can
// tell that there must be one says so.
//
// Core affinity: the core of its Runtime.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "runtime/runtime.h"
#include "runtime/task.h"

namespace helenus::storage {

class LocalStore {
  struct Private {
    explicit Private() = default;
  };

 public:
  static constexpr std::size_t kValueSizeMax = std::size_t{8} << 20;
  static constexpr std::size_t kNameSizeMax = 64;

  // Makes the folder if there is none. What it has is durable then, also what a process left that
  // was killed before it had synced the folder. Errors: of the file system.
  static runtime::Task<base::Result<std::unique_ptr<LocalStore>>> open(runtime::Runtime& runtime,
                                                                       std::string directory);
  // For open().
  LocalStore(Private, runtime::Runtime& runtime, std::string directory)
      : runtime_(runtime), directory_(std::move(directory)) {}
  LocalStore(const LocalStore&) = delete;
  LocalStore& operator=(const LocalStore&) = delete;

  // None: nothing was ever written under that name. Errors: corrupt, unsupported; of the file
  // system. All name the file. Requires: a name of letters, digits, '-' and '_'.
  runtime::Task<base::Result<std::optional<base::Bytes>>> read(std::string name);
  // Durable when it returns. Errors: invalid_argument if the value is larger than kValueSizeMax; of
  // the file system: then the value is this one or the one before, and a power loss may yet decide
  // which. Requires: as read(); no other write of that name is under way.
  runtime::Task<base::Result<void>> write(std::string name, base::Bytes value);

 private:
  std::string path_of(std::string_view name) const;

  runtime::Runtime& runtime_;
  const std::string directory_;
};

// The content of a value's file. The name is in it, so that a file under another's name is seen.
base::Bytes encode_local_value(std::string_view name, base::ByteView value);
// Errors: corrupt; unsupported for any other version.
base::Result<base::Bytes> decode_local_value(std::string_view name, base::ByteView file);

}  // namespace helenus::storage
