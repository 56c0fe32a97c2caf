// ServerProcess: a program started for a benchmark, on one processor, ended with its owner.
//
// Server and load generator stay on a processor each, so that neither wanders and the server has
// exactly one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/result.h"
#include "runtime/native/descriptor.h"

namespace helenus::bench {

// The first and the last processor this process may use; the same one if there is only one.
struct Processors {
  int first = 0;
  int last = 0;
};
// Ask before anybody is pinned.
Processors allowed_processors();
// Pins the calling thread.
void stay_on(int processor);

// A folder of its own, gone with everything in it afterwards.
class TemporaryFolder {
 public:
  static base::Result<TemporaryFolder> make();
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder();
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A port of loopback that nobody listens on; somebody else may take it before you do.
base::Result<std::uint16_t> free_port();

// What a server on this machine answers to a GET of HTTP/1.1, the head included.
base::Result<std::string> http_get(std::uint16_t port, std::string_view path);

class ServerProcess {
  struct MadeByStart {};

 public:
  // Starts the program (searched in PATH) on that processor and waits until it prints `ready_text`.
  // Errors: it ends before, or is not ready after kReadySecondsMax.
  static base::Result<std::unique_ptr<ServerProcess>> start(const std::vector<std::string>& command,
                                                            int processor,
                                                            std::string_view ready_text);
  static constexpr int kReadySecondsMax = 60;

  ServerProcess(MadeByStart, pid_t process, runtime::native::Descriptor output)
      : process_(process), output_from_(std::move(output)) {}
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  pid_t process() const { return process_; }
  // What it printed until it was ready: the end of that line included.
  const std::string& output() const { return output_; }

 private:
  base::Result<void> await(std::string_view ready_text);

  pid_t process_;
  runtime::native::Descriptor output_from_;
  std::string output_;
};

}  // namespace helenus::bench
