// FunctionProcess: a process that is one function, for tests and small tools.
#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "sim/process.h"

namespace helenus::sim {

class FunctionProcess final : public Process {
 public:
  using Function = std::function<runtime::Task<void>(runtime::Runtime&, runtime::StopToken)>;

  FunctionProcess(runtime::Runtime& runtime, Function function)
      : runtime_(runtime), function_(std::move(function)) {}

  // The function is kept here while its coroutine runs, so it may capture.
  runtime::Task<void> run(runtime::StopToken stop) override {
    co_await function_(runtime_, std::move(stop));
  }

  static ProcessFactory factory(Function function) {
    return [function = std::move(function)](runtime::Runtime& runtime) {
      return std::make_unique<FunctionProcess>(runtime, function);
    };
  }

 private:
  runtime::Runtime& runtime_;
  const Function function_;
};

}  // namespace helenus::sim
