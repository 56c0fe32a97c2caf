#include "bench/server_process.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/load_socket.h"
#include "bench/stopwatch.h"
#include "runtime/native/system_error.h"

namespace helenus::bench {

using base::Errc;
using base::Error;
using base::Result;
using runtime::native::Descriptor;
using runtime::native::system_error;

Processors allowed_processors() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  int first = -1;
  int last = 0;
  for (int number = 0; number < CPU_SETSIZE; ++number) {
    if (!CPU_ISSET(number, &allowed)) continue;
    if (first < 0) first = number;
    last = number;
  }
  return {.first = first, .last = last};
}

void stay_on(int processor) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  CPU_SET(processor, &wanted);
  ::sched_setaffinity(0, sizeof wanted, &wanted);
}

Result<std::string> http_get(std::uint16_t port, std::string_view path) {
  TRY(const Descriptor socket, connect_to_loopback(port));
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
  if (::send(socket.number(), request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    return system_error(errno, "ask over HTTP");
  }
  std::string answer;
  std::array<char, 16384> piece;
  for (;;) {
    const ssize_t count = ::recv(socket.number(), piece.data(), piece.size(), 0);
    if (count < 0) return system_error(errno, "hear the answer over HTTP");
    if (count == 0) return answer;
    answer.append(piece.data(), static_cast<std::size_t>(count));
  }
}

Result<TemporaryFolder> TemporaryFolder::make() {
  std::error_code fault;
  std::string path =
      (std::filesystem::temp_directory_path(fault) / "helenus-bench-XXXXXX").string();
  if (fault) return system_error(fault.value(), "find a folder for temporary files");
  if (::mkdtemp(path.data()) == nullptr) return system_error(errno, "make a temporary folder");
  return TemporaryFolder(std::move(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<std::uint16_t> free_port() {
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.number(), generic, size) != 0 ||
      ::getsockname(socket.number(), generic, &size) != 0) {
    return system_error(errno, "find a free port");
  }
  return ntohs(address.sin_port);
}

Result<std::unique_ptr<ServerProcess>> ServerProcess::start(const std::vector<std::string>& command,
                                                            int processor,
                                                            std::string_view ready_text) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return system_error(errno, "make a pipe");
  Descriptor from(ends[0]);
  const Descriptor to(ends[1]);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return system_error(errno, "start a process");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    stay_on(processor);
    ::dup2(to.number(), STDOUT_FILENO);
    ::execvp(words[0], words.data());
    std::_Exit(127);
  }
  auto server = std::make_unique<ServerProcess>(MadeByStart{}, process, std::move(from));
  auto ready = server->await(ready_text);
  if (!ready) return std::move(ready).error().within(command[0]);
  return server;
}

Result<void> ServerProcess::await(std::string_view ready_text) {
  const Stopwatch watch;
  for (;;) {
    const std::size_t found = output_.find(ready_text);
    if (found != std::string::npos && output_.find('\n', found) != std::string::npos) return {};
    const double left = kReadySecondsMax - watch.seconds();
    pollfd readable{.fd = output_from_.number(), .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&readable, 1, static_cast<int>(left * 1e3)) <= 0) {
      return Error(Errc::timeout, "the server is not ready after {} s", kReadySecondsMax);
    }
    std::array<char, 4096> piece;
    const ssize_t count = ::read(output_from_.number(), piece.data(), piece.size());
    if (count <= 0) return Error(Errc::closed, "the server did not start: {}", output_);
    output_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

ServerProcess::~ServerProcess() {
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

}  // namespace helenus::bench
