#include "sim/scenarios/node_identity.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "node/node.h"
#include "runtime/event.h"
#include "runtime/sleep.h"
#include "runtime/transport.h"

namespace helenus::sim {

namespace {

using base::Errc;
using base::Result;
using runtime::Task;
using runtime::Until;

constexpr std::uint16_t kAdminPort = 7070;
constexpr Duration kRetryDelay = 1s;
constexpr Duration kAskTimeout = 5s;
constexpr Duration kThinkTime = 150ms;
constexpr std::size_t kAnswerSizeMax = 4096;
constexpr std::uint32_t kFinalAnswers = 3;

struct Board {
  std::set<std::string> bodies;
  std::vector<std::string> refused;  // reasons to refuse to start that no fault explains
  std::uint64_t answers = 0;
  std::uint64_t failed_starts = 0;
  bool healed = false;
  std::uint32_t final_answers = 0;
};

// Runs a Node, and another one when that could not start: disks recover.
class NodeProcess final : public Process {
 public:
  NodeProcess(runtime::Runtime& runtime, runtime::Address address, Board& board)
      : runtime_(runtime), address_(address), board_(board) {}

  Task<void> run(runtime::StopToken stop) override {
    while (!stop.stop_requested()) {
      node::Node node(
          runtime_, {.data_directory = "/data", .admin_address = address_, .with_database = false});
      const auto started = co_await node.start();
      if (started) {
        runtime::Event never(runtime_);
        static_cast<void>(co_await never.wait({.stop = stop}));
      } else {
        note_failed_start(started.error());
        static_cast<void>(co_await runtime::sleep_for(runtime_, kRetryDelay, stop));
      }
      co_await node.stop();
    }
  }

 private:
  void note_failed_start(const base::Error& error) {
    ++board_.failed_starts;
    const bool by_the_disk = error.code() == Errc::io_error || error.code() == Errc::no_space;
    if (!by_the_disk) board_.refused.push_back(error.to_string());
  }

  runtime::Runtime& runtime_;
  const runtime::Address address_;
  Board& board_;
};

class Operator final : public Process {
 public:
  Operator(runtime::Runtime& runtime, runtime::Address node, Board& board)
      : runtime_(runtime), node_(node), board_(board) {}

  Task<void> run(runtime::StopToken stop) override {
    while (!stop.stop_requested()) {
      const auto body = co_await ask(Until::after(runtime_, kAskTimeout, stop));
      if (body) {
        ++board_.answers;
        board_.bodies.insert(*body);
        if (board_.healed) ++board_.final_answers;
      }
      static_cast<void>(co_await runtime::sleep_for(runtime_, kThinkTime, stop));
    }
  }

 private:
  Task<Result<std::string>> ask(Until until) {
    CO_TRY(auto stream, co_await runtime_.transport.connect(node_, until));
    constexpr std::string_view kRequest = "GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n";
    CO_TRY_VOID(co_await stream->write(base::as_bytes(kRequest), until));
    base::Buffer answer(kAnswerSizeMax);
    for (;;) {
      const std::size_t filled = answer.size();
      if (filled == kAnswerSizeMax) co_return base::Error(Errc::corrupt, "an endless answer");
      const auto room = answer.extend(kAnswerSizeMax - filled);
      CO_TRY(const auto got, co_await stream->read(room, until));
      answer.truncate(filled + got);
      if (got == 0) break;
    }
    const std::string_view text = base::as_text(answer.view());
    const std::size_t body = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.1 200 ") || body == std::string_view::npos) {
      co_return base::Error(Errc::corrupt, "not an answer");
    }
    co_return std::string(text.substr(body + 4));
  }

  runtime::Runtime& runtime_;
  const runtime::Address node_;
  Board& board_;
};

class NodeIdentityScenario final : public Scenario {
 public:
  FaultBudget budget() const override {
    return {.permitted = kNetworkFaults | kProcessFaults | kClockFaults | kHonestDiskFaults |
                         FaultSet{Fault::buggify}};
  }

  void setup(World& world, base::Prng&) override {
    Machine& node = world.add_machine({.name = "node"}, {});
    const runtime::Address address = node.address(kAdminPort);
    node.set_process([this, address](runtime::Runtime& runtime) {
      return std::make_unique<NodeProcess>(runtime, address, board_);
    });
    node.start();
    node_ = node.id();
    Machine& asking =
        world.add_machine({.name = "operator"}, [this, address](runtime::Runtime& runtime) {
          return std::make_unique<Operator>(runtime, address, board_);
        });
    asking.start();
  }

  std::vector<MachineId> targets() const override { return {node_}; }
  void on_healed() override { board_.healed = true; }
  bool quiet() const override { return board_.final_answers >= kFinalAnswers; }
  void check(Violations& violations) override {
    if (board_.bodies.size() > 1) {
      violations.add(fmt::format("the node told {} identities", board_.bodies.size()));
    }
    for (const std::string& reason : board_.refused) {
      violations.add(fmt::format("the node refused to start: {}", reason));
    }
  }
  void add_to(base::Digest& digest) const override {
    for (const std::string& body : board_.bodies) digest.add(base::as_bytes(body));
    digest.add(board_.answers);
    digest.add(board_.failed_starts);
  }

 private:
  Board board_;
  MachineId node_ = 0;
};

}  // namespace

std::unique_ptr<Scenario> make_node_identity_scenario() {
  return std::make_unique<NodeIdentityScenario>();
}

}  // namespace helenus::sim
