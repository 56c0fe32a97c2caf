// The contract of storage/entry/cursor.h as tests, for every run of entries that offers cursors:
// memtables, sstables, merges of them.
//
// An implementation derives a CursorSubject and instantiates the suite:
//   INSTANTIATE_TEST_SUITE_P(Sstable, CursorContract, testing::Values(make_sstable_subject));
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "runtime/task.h"
#include "storage/entry/cursor.h"

namespace helenus::storage::contract {

struct ContractValue {
  std::string value;
  std::uint16_t partition_size = 0;
  friend bool operator==(const ContractValue&, const ContractValue&) = default;
};
// What a run holds; std::string sorts as memcmp does.
using ContractEntries = std::map<std::string, ContractValue>;

// Makes a fresh cursor over the run; it may be called several times.
using CursorMaker = std::function<std::unique_ptr<Cursor>()>;
// A named function: a coroutine must not outlive a lambda's captures.
using CursorBody = runtime::Task<void> (*)(CursorMaker make, const ContractEntries& entries);

class CursorSubject {
 public:
  virtual ~CursorSubject() = default;
  // Makes a run of exactly these entries and lets the body use cursors over it. The entries outlive
  // the call.
  virtual void run(const ContractEntries& entries, CursorBody body) = 0;
};

using CursorSubjectFactory = std::function<std::unique_ptr<CursorSubject>()>;

// For gtest, which would print its bytes.
inline void PrintTo(const CursorSubjectFactory&, std::ostream* out) {
  *out << "the subject that the suite's instance is named after";
}

class CursorContract : public testing::TestWithParam<CursorSubjectFactory> {
 protected:
  // Runs the body over each of several sets of entries: none, one, many, alike, long, binary.
  void run_over_all(CursorBody body);
  void run_over(const ContractEntries& entries, CursorBody body);
};

}  // namespace helenus::storage::contract
