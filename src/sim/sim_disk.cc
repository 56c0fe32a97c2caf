#include "sim/sim_disk.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"

namespace helenus::sim {

using base::Errc;
using base::Error;
using base::Result;

SimDisk::SimDisk(std::uint64_t device, base::Prng stream, DiskOptions options)
    : options_(options), device_(device), capacity_bytes_(options.capacity_bytes), stream_(stream) {
  const Inode& root = make_inode(true);
  ASSERT(root.id == kRoot);
}

SimDisk::Inode& SimDisk::inode(InodeId id) {
  const auto found = inodes_.find(id);
  ASSERT(found != inodes_.end(), "no inode {}", id);
  return found->second;
}

const SimDisk::Inode& SimDisk::inode(InodeId id) const {
  const auto found = inodes_.find(id);
  ASSERT(found != inodes_.end(), "no inode {}", id);
  return found->second;
}

SimDisk::Inode& SimDisk::make_inode(bool is_directory) {
  if (inodes_.size() >= garbage_at_) {
    collect_garbage();
    garbage_at_ = std::max<std::size_t>(1024, 2 * inodes_.size());
  }
  const InodeId id = next_inode_++;
  Inode& made = inodes_[id];
  made.id = id;
  made.is_directory = is_directory;
  return made;
}

// ---- Names ----

Result<std::vector<std::string_view>> SimDisk::split(std::string_view path) const {
  if (path.empty() || path.size() > runtime::kPathMax || path.contains('\0')) {
    return Error(Errc::invalid_argument, "not a path: {} bytes", path.size());
  }
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (name.size() > kNameMax) return Error(Errc::invalid_argument, "{}: too long", name);
    if (name.empty() || name == ".") continue;
    if (name != "..") {
      names.push_back(name);
    } else if (!names.empty()) {
      names.pop_back();
    }
  }
  return names;
}

Result<SimDisk::Place> SimDisk::locate(std::string_view path) const {
  TRY(const auto names, split(path));
  Place place{.parent = 0, .name = {}, .target = kRoot};
  for (const std::string_view name : names) {
    if (place.target == 0) return Error(Errc::not_found, "{}", path);
    const Inode& directory = inode(place.target);
    if (!directory.is_directory) {
      return Error(Errc::invalid_argument, "{}: leads through a file", path);
    }
    const auto found = directory.names.find(name);
    place = {.parent = directory.id,
             .name = std::string(name),
             .target = found == directory.names.end() ? 0 : found->second};
  }
  return place;
}

Result<InodeId> SimDisk::find(std::string_view path) const {
  TRY(const Place place, locate(path));
  if (place.target == 0) return Error(Errc::not_found, "{}", path);
  return place.target;
}

Result<InodeId> SimDisk::find_directory(std::string_view path) const {
  TRY(const InodeId id, find(path));
  if (!inode(id).is_directory) return Error(Errc::invalid_argument, "{}: not a directory", path);
  return id;
}

Result<InodeId> SimDisk::open(std::string_view path, const runtime::OpenOptions& options) {
  if ((options.exclusive && !options.create) || (options.truncate && !options.write)) {
    return Error(Errc::invalid_argument, "{}: options contradict each other", path);
  }
  TRY(const Place place, locate(path));
  if (place.target == 0) {
    if (!options.create) return Error(Errc::not_found, "{}", path);
    const InodeId made = make_inode(false).id;
    change_names(++name_changes_, place.parent, {{place.name, made}});
    return made;
  }
  if (options.exclusive) return Error(Errc::already_exists, "{}", path);
  if (inode(place.target).is_directory) {
    return Error(Errc::invalid_argument, "{}: is a directory", path);
  }
  if (options.truncate) truncate(place.target, 0);
  return place.target;
}

Result<void> SimDisk::make_directories(std::string_view path) {
  TRY(const auto names, split(path));
  InodeId at = kRoot;
  for (std::size_t index = 0; index < names.size(); ++index) {
    const Inode& directory = inode(at);
    if (!directory.is_directory) {
      return Error(Errc::invalid_argument, "{}: leads through a file", path);
    }
    const auto found = directory.names.find(names[index]);
    if (found != directory.names.end()) {
      at = found->second;
      continue;
    }
    const InodeId made = make_inode(true).id;
    change_names(++name_changes_, at, {{std::string(names[index]), made}});
    at = made;
  }
  if (!inode(at).is_directory) return Error(Errc::already_exists, "{}: a file", path);
  return {};
}

Result<std::vector<runtime::DirectoryEntry>> SimDisk::list(std::string_view path) const {
  TRY(const InodeId id, find_directory(path));
  std::vector<runtime::DirectoryEntry> entries;
  for (const auto& [name, target] : inode(id).names) {
    entries.push_back({.name = name, .is_directory = inode(target).is_directory});
  }
  return entries;
}

Result<runtime::FileInfo> SimDisk::info(std::string_view path) const {
  TRY(const InodeId id, find(path));
  const Inode& found = inode(id);
  return runtime::FileInfo{.size = found.cached.size(),
                           .is_directory = found.is_directory,
                           .identity = {.device = device_, .inode = id}};
}

Result<runtime::DiskSpace> SimDisk::space(std::string_view path) const {
  TRY_VOID(find(path));
  const std::uint64_t used = std::min(used_bytes(), capacity_bytes_);
  return runtime::DiskSpace{.total_bytes = capacity_bytes_, .free_bytes = capacity_bytes_ - used};
}

Result<void> SimDisk::rename(std::string_view from, std::string_view to) {
  const auto doing = fmt::format("renaming {} to {}", from, to);
  TRY(const Place source, locate(from));
  TRY(const Place target, locate(to));
  if (source.target == 0) return Error(Errc::not_found, "{}", doing);
  if (source.parent == 0 || target.parent == 0) {
    return Error(Errc::invalid_argument, "{}: the root stays", doing);
  }
  if (source.target == target.target) return {};
  const bool moves_directory = inode(source.target).is_directory;
  if (moves_directory && lies_within(target.parent, source.target)) {
    return Error(Errc::invalid_argument, "{}: into itself", doing);
  }
  if (target.target != 0) {
    const Inode& replaced = inode(target.target);
    if (replaced.is_directory != moves_directory || !replaced.names.empty()) {
      return Error(Errc::invalid_argument, "{}: cannot be replaced", doing);
    }
  }
  const std::uint64_t number = ++name_changes_;
  const InodeId moved = source.target;
  if (source.parent == target.parent) {
    change_names(number, source.parent, {{source.name, 0}, {target.name, moved}});
  } else {
    change_names(number, target.parent, {{target.name, moved}}, source.parent);
    change_names(number, source.parent, {{source.name, 0}}, target.parent);
  }
  return {};
}

bool SimDisk::lies_within(InodeId inner, InodeId outer) const {
  if (inner == outer) return true;
  const Inode& above = inode(outer);
  return std::ranges::any_of(above.names, [&](const auto& entry) {
    return inode(entry.second).is_directory && lies_within(inner, entry.second);
  });
}

Result<void> SimDisk::remove(std::string_view path) {
  TRY(const Place place, locate(path));
  if (place.target == 0) return Error(Errc::not_found, "{}", path);
  if (place.parent == 0) return Error(Errc::invalid_argument, "{}: the root stays", path);
  if (!inode(place.target).names.empty()) {
    return Error(Errc::invalid_argument, "{}: not empty", path);
  }
  change_names(++name_changes_, place.parent, {{place.name, 0}});
  return {};
}

Result<void> SimDisk::link(std::string_view from, std::string_view to) {
  const auto doing = fmt::format("linking {} to {}", from, to);
  TRY(const Place source, locate(from));
  TRY(const Place target, locate(to));
  if (source.target == 0) return Error(Errc::not_found, "{}", doing);
  if (target.target != 0) return Error(Errc::already_exists, "{}", doing);
  if (inode(source.target).is_directory) {
    return Error(Errc::invalid_argument, "{}: a directory", doing);
  }
  change_names(++name_changes_, target.parent, {{target.name, source.target}});
  return {};
}

void SimDisk::change_names(std::uint64_t number, InodeId directory, std::vector<Edit> edits,
                           InodeId partner) {
  Inode& changed = inode(directory);
  // First what is gained, so that a file that changes its name is never without one.
  for (const Edit& edit : edits) {
    if (edit.target != 0) ++inode(edit.target).links;
  }
  for (const Edit& edit : edits) {
    const auto found = changed.names.find(edit.name);
    if (found != changed.names.end()) {
      Inode& old = inode(found->second);
      --old.links;
      on_unlinked_or_released(old);
      changed.names.erase(found);
    }
    if (edit.target != 0) changed.names.emplace(edit.name, edit.target);
  }
  changed.unsynced_names.push_back(
      {.number = number, .edits = std::move(edits), .partner = partner});
}

void SimDisk::commit_names(InodeId directory, std::uint64_t mark) {
  const auto found = inodes_.find(directory);
  if (found == inodes_.end()) return;
  Inode& changed = found->second;
  while (!changed.unsynced_names.empty() && changed.unsynced_names.front().number <= mark) {
    const NameChange change = std::move(changed.unsynced_names.front());
    changed.unsynced_names.pop_front();
    for (const Edit& edit : change.edits) {
      if (edit.target == 0) {
        changed.durable_names.erase(edit.name);
      } else {
        changed.durable_names.insert_or_assign(edit.name, edit.target);
      }
    }
    if (change.partner != 0) commit_names(change.partner, change.number);
  }
}

// ---- Files ----

void SimDisk::on_unlinked_or_released(const Inode& file) {
  if (file.links > 0 || file.holds > 0) return;
  ASSERT(used_pages_ >= pages_of(file));
  used_pages_ -= pages_of(file);
}

void SimDisk::release(InodeId file, std::uint64_t epoch) {
  if (epoch != epoch_) return;
  Inode& released = inode(file);
  ASSERT(released.holds > 0);
  --released.holds;
  on_unlinked_or_released(released);
}

Result<void> SimDisk::lock(InodeId file) {
  if (inode(file).locked) return Error(Errc::locked);
  inode(file).locked = true;
  return {};
}

void SimDisk::unlock(InodeId file, std::uint64_t epoch) {
  if (epoch == epoch_) inode(file).locked = false;
}

std::size_t SimDisk::read(InodeId file, std::uint64_t offset, base::MutableByteView into) const {
  const FileImage& image = inode(file).cached;
  if (offset >= image.size()) return 0;
  const std::size_t count = std::min<std::uint64_t>(into.size(), image.size() - offset);
  image.read(offset, into.first(count));
  return count;
}

std::uint64_t SimDisk::pages_of(const Inode& file) const {
  return file.reserved_pages + file.cached.page_count_from(file.reserved_pages);
}

void SimDisk::reread(Inode& file) {
  const bool counted = file.links > 0 || file.holds > 0;
  if (counted) used_pages_ -= pages_of(file);
  file.cached = file.durable;
  if (counted) used_pages_ += pages_of(file);
}

Result<void> SimDisk::write(InodeId id, std::uint64_t offset, base::ByteView from) {
  if (from.empty()) return {};
  Inode& file = inode(id);
  const std::uint64_t first = offset / FileImage::kPageSize;
  const std::uint64_t last = (offset + from.size() - 1) / FileImage::kPageSize;
  const std::uint64_t pages_max = capacity_bytes_ / FileImage::kPageSize;
  for (std::uint64_t page = first; page <= last; ++page) {
    if (page < file.reserved_pages || file.cached.has_page(page)) continue;
    if (used_pages_ >= pages_max) {
      const std::uint64_t fits = std::max(page * FileImage::kPageSize, offset) - offset;
      if (fits > 0) {
        file.cached.write(offset, from.first(fits));
        note_write(file, offset, fits);
      }
      return Error(Errc::no_space);
    }
    ++used_pages_;
  }
  file.cached.write(offset, from);
  note_write(file, offset, from.size());
  return {};
}

void SimDisk::note_write(Inode& file, std::uint64_t offset, std::size_t count) {
  const std::uint64_t begin = offset / kSectorSize * kSectorSize;
  const std::uint64_t end = (offset + count + kSectorSize - 1) / kSectorSize * kSectorSize;
  Change change{.number = ++file.changes_made,
                .offset = begin,
                .sectors = std::vector<std::byte>(end - begin),
                .size_after = file.cached.size(),
                .is_resize = false};
  file.cached.read(begin, change.sectors);
  file.unsynced.push_back(std::move(change));
  if (file.unsynced.size() > options_.unsynced_max) {
    write_back(file, file.unsynced.front());
    file.unsynced.pop_front();
  }
}

Result<void> SimDisk::preallocate(InodeId id, std::uint64_t size) {
  Inode& file = inode(id);
  if (size > file.cached.size()) {
    const std::uint64_t before = pages_of(file);
    const std::uint64_t reserved_before = file.reserved_pages;
    file.reserved_pages =
        std::max(file.reserved_pages, (size + FileImage::kPageSize - 1) / FileImage::kPageSize);
    const std::uint64_t more = pages_of(file) - before;
    if (used_pages_ + more > capacity_bytes_ / FileImage::kPageSize) {
      file.reserved_pages = reserved_before;
      return Error(Errc::no_space);
    }
    used_pages_ += more;
    file.cached.resize(size);
    file.unsynced.push_back({.number = ++file.changes_made,
                             .offset = 0,
                             .sectors = {},
                             .size_after = size,
                             .is_resize = true});
  }
  return {};
}

void SimDisk::truncate(InodeId id, std::uint64_t size) {
  Inode& file = inode(id);
  if (size == file.cached.size()) return;
  used_pages_ -= pages_of(file);
  file.reserved_pages =
      std::min(file.reserved_pages, (size + FileImage::kPageSize - 1) / FileImage::kPageSize);
  file.cached.resize(size);
  used_pages_ += pages_of(file);
  file.unsynced.push_back({.number = ++file.changes_made,
                           .offset = 0,
                           .sectors = {},
                           .size_after = size,
                           .is_resize = true});
}

void SimDisk::write_back(Inode& file, const Change& change) {
  if (!change.is_resize) file.durable.write(change.offset, change.sectors);
  file.durable.resize(change.size_after);
}

void SimDisk::sync(InodeId id, std::uint64_t mark, double misdirection) {
  Inode& file = inode(id);
  while (!file.unsynced.empty() && file.unsynced.front().number <= mark) {
    const Change change = std::move(file.unsynced.front());
    file.unsynced.pop_front();
    if (!change.is_resize && misdirection > 0 && stream_.chance(misdirection)) {
      misdirect(file, change);
      continue;
    }
    write_back(file, change);
    if (!file.unsynced.empty() || change.is_resize || file.diverged) continue;
    const std::uint64_t last = (change.offset + change.sectors.size() - 1) / FileImage::kPageSize;
    for (std::uint64_t page = change.offset / FileImage::kPageSize; page <= last; ++page) {
      file.durable.share_page(file.cached, page);
    }
  }
}

void SimDisk::fail_sync(InodeId id, std::uint64_t mark, bool forget) {
  Inode& file = inode(id);
  std::deque<Change> failed;
  while (!file.unsynced.empty() && file.unsynced.front().number <= mark) {
    failed.push_back(std::move(file.unsynced.front()));
    file.unsynced.pop_front();
  }
  keep_by_luck(file, failed);
  file.diverged = true;
  if (forget && file.unsynced.empty()) reread(file);
}

}  // namespace helenus::sim
