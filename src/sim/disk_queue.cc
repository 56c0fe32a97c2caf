#include "sim/disk_queue.h"

#include <algorithm>
#include <utility>

#include "sim/latency.h"
#include "sim/sim_file_system.h"
#include "sim/world.h"

namespace helenus::sim {

using base::Errc;
using base::Error;

void DiskPause::start() {
  queue_.start(*this);
}

void DiskQueue::launch(Slot slot, std::uint64_t base_ns, std::uint32_t slowness) {
  slot.serial = ++serials_;
  std::size_t index = slots_.size();
  if (free_.empty()) {
    slots_.push_back(slot);
  } else {
    index = free_.back();
    free_.pop_back();
    slots_[index] = slot;
  }
  const std::uint64_t latency = draw_latency_ns(disk_.stream(), base_ns * slowness);
  world_.schedule({.at = world_.now() + Duration(latency),
                   .kind = EventKind::disk,
                   .machine = machine_,
                   .argument = (std::uint64_t{slot.serial} << 32) | index});
}

void DiskQueue::launch_sync(Slot slot) {
  launch(slot, kSyncNs, std::max(faults.slowness, faults.sync_slowness));
}

DiskQueue::Slot DiskQueue::take(std::size_t index) {
  const Slot slot = std::exchange(slots_[index], {});
  free_.push_back(index);
  if (slot.file != nullptr) slot.file->on_operation_over();
  return slot;
}

void DiskQueue::start(SimFile& file, runtime::File::ReadAt& read) {
  file.on_operation_begun();
  launch({.kind = Kind::read, .file = &file, .read = &read}, kReadNs, faults.slowness);
}

void DiskQueue::start(SimFile& file, runtime::File::Write& write) {
  if (write.kind == runtime::File::Write::Kind::sync) return start_sync(file, write);
  file.on_operation_begun();
  launch({.kind = Kind::write, .file = &file, .write = &write}, kWriteNs, faults.slowness);
}

void DiskQueue::start_sync(SimFile& file, runtime::File::Write& write) {
  file.on_operation_begun();
  launch_sync(
      {.kind = Kind::sync, .file = &file, .write = &write, .mark = disk_.sync_mark(file.inode())});
}

void DiskQueue::start(DiskPause& pause) {
  const Slot slot{.kind = Kind::pause, .pause = &pause};
  if (pause.kind == DiskPause::Kind::names_sync) return launch_sync(slot);
  launch(slot, kNamesNs, faults.slowness);
}

void DiskQueue::on_event(std::uint64_t argument) {
  const std::size_t index = argument & UINT32_MAX;
  if (index >= slots_.size() || slots_[index].serial != argument >> 32) return;
  const Slot slot = take(index);
  switch (slot.kind) {
    case Kind::none:
      UNREACHABLE("a slot that is free has no serial");
    case Kind::read:
      return finish_read(slot);
    case Kind::write:
      return finish_write(slot);
    case Kind::sync:
      return finish_sync(slot);
    case Kind::pause:
      return slot.pause->complete({});
  }
}

bool DiskQueue::strikes(double chance, std::string_view path) {
  return chance > 0 && path.ends_with(faults.only_suffix) && disk_.stream().chance(chance);
}

bool DiskQueue::read_fails(std::string_view path) {
  const bool fails = strikes(faults.read_error, path);
  counts_.read_errors += fails ? 1 : 0;
  return fails;
}

bool DiskQueue::write_fails(std::string_view path) {
  const bool fails = strikes(faults.write_error, path);
  counts_.write_errors += fails ? 1 : 0;
  return fails;
}

bool DiskQueue::sync_fails(std::string_view path) {
  const bool fails = strikes(faults.sync_error, path);
  counts_.sync_errors += fails ? 1 : 0;
  return fails;
}

void DiskQueue::finish_read(const Slot& slot) {
  runtime::File::ReadAt& read = *slot.read;
  const std::size_t count = disk_.read(slot.file->inode(), read.offset, read.into);
  if (read_fails(slot.file->path())) {
    return read.complete(Error(Errc::io_error, "reading {} at {}", slot.file->path(), read.offset));
  }
  read.complete(count);
}

void DiskQueue::finish_write(const Slot& slot) {
  runtime::File::Write& write = *slot.write;
  const InodeId inode = slot.file->inode();
  if (write_fails(slot.file->path())) {
    leave_in_doubt(slot);
    return write.complete(
        Error(Errc::io_error, "writing {} at {}", slot.file->path(), write.offset));
  }
  auto written = disk_.write(inode, write.offset, write.from);
  if (!written) {
    ++counts_.no_space;
    return write.complete(std::move(written).error().within("writing " + slot.file->path()));
  }
  if (write.kind == runtime::File::Write::Kind::write_and_sync) {
    return start_sync(*slot.file, write);
  }
  write.complete({});
}

void DiskQueue::finish_sync(const Slot& slot) {
  if (sync_fails(slot.file->path())) {
    disk_.fail_sync(slot.file->inode(), slot.mark, disk_.stream().chance(0.5));
    return slot.write->complete(Error(Errc::io_error, "syncing {}", slot.file->path()));
  }
  disk_.sync(slot.file->inode(), slot.mark, faults.misdirection);
  slot.write->complete({});
}

void DiskQueue::leave_in_doubt(const Slot& slot) {
  base::Prng& stream = disk_.stream();
  if (slot.kind == Kind::sync && stream.chance(0.5)) {
    disk_.sync(slot.file->inode(), slot.mark, 0);
  }
  if (slot.kind != Kind::write) return;
  const base::ByteView from = slot.write->from;
  const std::uint64_t dice = stream.below(3);
  const std::size_t count = dice == 0 ? 0 : dice == 1 ? from.size() : stream.below(from.size() + 1);
  // Out of space or not, it is in doubt.
  (void)disk_.write(slot.file->inode(), slot.write->offset, from.first(count));
}

void DiskQueue::cancel(runtime::File::ReadAt& read) {
  const auto found = std::ranges::find(slots_, &read, &Slot::read);
  ASSERT(found != slots_.end());
  take(static_cast<std::size_t>(found - slots_.begin()));
  read.complete(Error(Errc::cancelled));
}

void DiskQueue::cancel(runtime::File::Write& write) {
  const auto found = std::ranges::find(slots_, &write, &Slot::write);
  ASSERT(found != slots_.end());
  leave_in_doubt(take(static_cast<std::size_t>(found - slots_.begin())));
  write.complete(Error(Errc::cancelled));
}

void DiskQueue::abandon_all() {
  for (std::size_t index = 0; index < slots_.size(); ++index) {
    if (slots_[index].kind != Kind::none) leave_in_doubt(take(index));
  }
}

}  // namespace helenus::sim
