// Worker: a copy of this process that does a piece of work and tells what became of it.
//
// A simulated world is one thread and depends on nothing outside its process, so that copying the
// process (fork) copies the world: seeds are run in several processes, and a history is made to go
// on in two ways from one moment.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace helenus::sim {

class Worker {
 public:
  // Sends a record to whoever made the worker; waits while that one is far behind.
  using Send = std::function<void(std::string_view record)>;

  // Begins. Requires: this process has one thread. The copy ends when `work` returns, and is asked
  // to end (SIGTERM) when this process does.
  explicit Worker(const std::function<void(const Send&)>& work);
  // Waits for its end.
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // The next record. Nothing once the worker has ended, be it well or not.
  std::optional<std::string> receive();
  // Waits for its end; whether `work` returned. Records that were not received are lost.
  bool join();

 private:
  // False if the worker has ended.
  bool read_fully(char* to, std::size_t size);

  int process_ = -1;
  int pipe_ = -1;
  bool is_joined_ = false;
  bool ended_well_ = false;
};

}  // namespace helenus::sim
