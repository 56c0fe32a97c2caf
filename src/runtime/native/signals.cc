#include "runtime/native/signals.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

sigset_t stop_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGINT);
  ::sigaddset(&signals, SIGTERM);
  return signals;
}

}  // namespace

base::Result<std::unique_ptr<SignalWatcher>> SignalWatcher::open() {
  const sigset_t signals = stop_signals();
  Descriptor read_from(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!read_from.valid()) return system_error(errno, "make a signal descriptor");
  Descriptor end(::eventfd(0, EFD_CLOEXEC));
  if (!end.valid()) return system_error(errno, "make an event descriptor");
  auto watcher =
      std::unique_ptr<SignalWatcher>(new SignalWatcher(std::move(read_from), std::move(end)));
  ::pthread_sigmask(SIG_BLOCK, &signals, &watcher->mask_before_);
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &watcher->pipe_before_);
  ::sigaction(SIGXFSZ, &ignore, &watcher->file_size_before_);
  return watcher;
}

base::Result<void> SignalWatcher::start(std::function<void(int)> on_first) {
  on_first_ = std::move(on_first);
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error& error) {
    return system_error(error.code().value(), "start the thread for signals");
  }
  return {};
}

void SignalWatcher::stop() {
  if (!thread_.joinable()) return;
  const std::uint64_t one = 1;
  const auto written = ::write(end_.number(), &one, sizeof one);
  ASSERT(written == sizeof one);
  thread_.join();
}

SignalWatcher::~SignalWatcher() {
  stop();
  ::sigaction(SIGXFSZ, &file_size_before_, nullptr);
  ::sigaction(SIGPIPE, &pipe_before_, nullptr);
  ::pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void SignalWatcher::watch() {
  bool stop_asked = false;
  for (;;) {
    std::array<pollfd, 2> watched{pollfd{.fd = signals_.number(), .events = POLLIN, .revents = 0},
                                  pollfd{.fd = end_.number(), .events = POLLIN, .revents = 0}};
    if (::poll(watched.data(), watched.size(), -1) < 0) continue;
    if (watched[1].revents != 0) return;
    signalfd_siginfo signal{};
    if (::read(signals_.number(), &signal, sizeof signal) != sizeof signal) continue;
    if (std::exchange(stop_asked, true)) ::_exit(kForcedExitCode);
    on_first_(static_cast<int>(signal.ssi_signo));
  }
}

}  // namespace helenus::runtime::native
