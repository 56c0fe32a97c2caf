#include "runtime/native/loop.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <utility>

#include "base/assert.h"
#include "runtime/native/system_error.h"

namespace helenus::runtime::native {

namespace {

Duration read_clock(clockid_t which) {
  timespec time{};
  ::clock_gettime(which, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

timespec to_timespec(Duration duration) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(duration);
  return {.tv_sec = seconds.count(), .tv_nsec = (duration - seconds).count()};
}

constexpr Duration kCoarseWaitMax = std::chrono::hours(1);

// Whether the kernel waits to the nanosecond: some sandboxes know only the older call.
bool has_fine_waits(const Descriptor& epoll) {
  epoll_event event{};
  const timespec at_once{};
  return ::epoll_pwait2(epoll.number(), &event, 1, &at_once, nullptr) >= 0;
}

}  // namespace

MonotonicTime NativeClock::now() const {
  return MonotonicTime(read_clock(CLOCK_BOOTTIME));
}

WallTime NativeClock::wall_now() const {
  return WallTime(read_clock(CLOCK_REALTIME));
}

base::Result<std::unique_ptr<Loop>> Loop::open(std::uint32_t cores) {
  Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return system_error(errno, "make an epoll descriptor");
  TRY(auto inbox, Inbox::open(cores));
  // The wake-up descriptor has nobody to tell: waking is all it does.
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  if (::epoll_ctl(epoll.number(), EPOLL_CTL_ADD, inbox->wake_descriptor(), &event) != 0) {
    return system_error(errno, "watch the inbox");
  }
  const bool coarse_waits = !has_fine_waits(epoll);
  return std::unique_ptr<Loop>(new Loop(std::move(epoll), std::move(inbox), coarse_waits));
}

base::Result<void> Loop::watch(int descriptor, std::uint32_t events, Pollable& pollable) {
  epoll_event event{.events = events, .data = {.ptr = &pollable}};
  if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, descriptor, &event) == 0) return {};
  if (errno == EEXIST && ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, descriptor, &event) == 0) {
    return {};
  }
  return system_error(errno, "watch a descriptor");
}

void Loop::run(Runtime& runtime) {
  look();
  while (!stopping_) {
    const bool background_waits = !queue(Priority::background).empty();
    run_foreground();
    fire_timers();
    read_inbox(runtime);
    const bool flush_again = flusher_ != nullptr && flusher_->flush();
    step();
    const bool more_to_do = has_foreground() || flush_again || stopping_;
    if (!more_to_do || now_ >= poll_at_) {
      poll(!more_to_do && queue(Priority::background).empty());
    }
    if (queue(Priority::background).empty()) continue;
    if (!has_foreground() || (background_waits && background_share_.is_due(now_))) {
      run_background();
    }
  }
}

void Loop::look_and_adapt() {
  const MonotonicTime before = now_;
  look();
  if (now_ - before > kLookGap) {
    steps_per_look_ = std::max(1U, steps_per_look_ / 2);
  } else if (now_ - before < kLookGap / 2) {
    steps_per_look_ = std::min(kStepsPerLookMax, steps_per_look_ * 2);
  }
}

void Loop::run_foreground() {
  IntrusiveList<Job>& jobs = queue(Priority::foreground);
  slice_ends_ = now_ + kSlice;
  if (!turn_end_.linked()) jobs.push_back(turn_end_);
  while (now_ < slice_ends_) {
    Job& job = jobs.pop_front();
    if (&job == &turn_end_) return;
    immediate_ = 0;
    job.run();
    step();
  }
}

void Loop::run_background() {
  IntrusiveList<Job>& jobs = queue(Priority::background);
  look();
  const MonotonicTime began_at = now_;
  slice_ends_ = began_at + kSlice;
  running_ = Priority::background;
  do {
    immediate_ = 0;
    jobs.pop_front().run();
    look();
    // Who was woken by this goes before the rest.
  } while (now_ < slice_ends_ && !jobs.empty() && !has_foreground());
  running_ = Priority::foreground;
  background_share_.ran(began_at, now_);
  poll_at_ = now_;
}

void Loop::fire_timers() {
  for (std::size_t count = 0; count < kTimersPerTurn; ++count) {
    Timer* timer = timers_.take_due(now_);
    if (timer == nullptr) return;
    immediate_ = 0;
    timer->fire();
  }
}

void Loop::read_inbox(Runtime& runtime) {
  if (letters_read_ == letters_.size()) {
    letters_.clear();
    letters_read_ = 0;
    if (!inbox_->waiting()) return;
    inbox_->take(letters_, jobs_back_);
    for (PoolJob* job : jobs_back_) job->finish();
    jobs_back_.clear();
  }
  const std::size_t end = std::min(letters_.size(), letters_read_ + kMessagesPerTurn);
  slice_ends_ = now_ + kSlice;
  while (letters_read_ < end && now_ < slice_ends_) {
    Letter letter = std::move(letters_[letters_read_++]);
    immediate_ = 0;
    letter.message(runtime);
    if (letter.post != Post::control) ++counted_run_;
    step();
  }
}

int Loop::wait_for_events(MonotonicTime until) {
  Duration wait(0);
  if (!until.is_never() && until > MonotonicTime()) wait = std::max(until - clock_.now(), wait);
  if (coarse_waits_) {
    // Rounded up: a timer may fire late, never early.
    const auto milliseconds = std::min<Duration>(wait, kCoarseWaitMax);
    const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(milliseconds);
    const int timeout = until.is_never() ? -1 : static_cast<int>(rounded.count());
    return ::epoll_wait(epoll_.number(), events_.data(), kEventsPerPoll, timeout);
  }
  const timespec timeout = to_timespec(wait);
  return ::epoll_pwait2(epoll_.number(), events_.data(), kEventsPerPoll,
                        until.is_never() ? nullptr : &timeout, nullptr);
}

void Loop::poll(bool may_wait) {
  const bool sleeps = may_wait && inbox_->prepare_to_sleep();
  const int count = wait_for_events(sleeps ? timers_.next_at() : MonotonicTime());
  if (sleeps) inbox_->awake();
  // Completions of io_uring interrupt the wait like signals do; the next turn collects them.
  ASSERT(count >= 0 || errno == EINTR, "epoll: {}", system_text(errno));
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events_[static_cast<std::size_t>(i)];
    if (event.data.ptr != nullptr) static_cast<Pollable*>(event.data.ptr)->on_ready(event.events);
  }
  look();
  poll_at_ = now_ + kSlice;
}

}  // namespace helenus::runtime::native
