#include "sim/worker.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"

namespace helenus::sim {

namespace {

void write_fully(int to, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(to, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    // Nobody listens any more.
    if (written <= 0) ::_exit(1);
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

void send_record(int to, std::string_view record) {
  const auto size = static_cast<std::uint64_t>(record.size());
  std::array<char, sizeof size> header;
  std::memcpy(header.data(), &size, sizeof size);
  write_fully(to, header.data(), header.size());
  write_fully(to, record.data(), record.size());
}

}  // namespace

Worker::Worker(const std::function<void(const Send&)>& work) {
  std::array<int, 2> ends;
  ASSERT(::pipe(ends.data()) == 0);
  // What is buffered would be written by both.
  std::fflush(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  ASSERT(process_ >= 0);
  pipe_ = ends[0];
  if (process_ > 0) {
    ::close(ends[1]);
    return;
  }
  ::close(ends[0]);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  work([to = ends[1]](std::string_view record) { send_record(to, record); });
  std::fflush(nullptr);
  ::_exit(0);
}

Worker::~Worker() {
  join();
}

bool Worker::read_fully(char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t got = ::read(pipe_, to, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

std::optional<std::string> Worker::receive() {
  std::uint64_t size = 0;
  std::array<char, sizeof size> header;
  if (is_joined_ || !read_fully(header.data(), header.size())) return std::nullopt;
  std::memcpy(&size, header.data(), sizeof size);
  std::string record(size, '\0');
  if (!read_fully(record.data(), size)) return std::nullopt;
  return record;
}

bool Worker::join() {
  if (is_joined_) return ended_well_;
  is_joined_ = true;
  ::close(pipe_);
  int status = 0;
  while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
  }
  ended_well_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return ended_well_;
}

}  // namespace helenus::sim
