// What crashes and decay do to a SimDisk; the rest of it is in sim_disk.cc.
#include <algorithm>
#include <iterator>

#include "base/assert.h"
#include "sim/sim_disk.h"

namespace helenus::sim {

void SimDisk::on_kill() {
  ++epoch_;
  for (auto& [id, each] : inodes_) {
    each.holds = 0;
    each.locked = false;
  }
  collect_garbage();
  count_links_and_pages();
}

void SimDisk::on_power_loss() {
  ++epoch_;
  lose_names();
  for (auto& [id, each] : inodes_) {
    each.holds = 0;
    each.locked = false;
    each.names = each.durable_names;
    if (!each.is_directory) lose_power(each);
  }
  collect_garbage();
  count_links_and_pages();
}

void SimDisk::lose_names() {
  for (auto& [id, directory] : inodes_) {
    if (directory.unsynced_names.empty()) continue;
    const std::size_t kept = stream_.below(directory.unsynced_names.size() + 1);
    if (kept > 0) commit_names(id, directory.unsynced_names[kept - 1].number);
  }
  // Only now: committing a move may have committed more in a directory looked at before.
  for (auto& [id, directory] : inodes_) {
    counts_.names_lost += directory.unsynced_names.size();
    directory.unsynced_names.clear();
  }
}

void SimDisk::lose_power(Inode& file) {
  keep_by_luck(file, file.unsynced);
  file.unsynced.clear();
  file.cached = file.durable;
  file.diverged = false;
  file.reserved_pages = std::min(
      file.reserved_pages, (file.cached.size() + FileImage::kPageSize - 1) / FileImage::kPageSize);
}

void SimDisk::keep_by_luck(Inode& file, const std::deque<Change>& changes) {
  if (changes.empty()) return;
  enum class Luck : unsigned char { none, mixed, all };
  const std::uint64_t dice = stream_.below(4);
  const Luck luck = dice == 0 ? Luck::none : dice == 1 ? Luck::all : Luck::mixed;
  for (const Change& change : changes) {
    const std::uint64_t fate = luck == Luck::mixed ? stream_.below(3) : 0;
    if (luck == Luck::none || (luck == Luck::mixed && fate == 0)) {
      ++counts_.writes_lost;
    } else if (luck == Luck::all || fate == 1 || change.is_resize) {
      keep_sectors(file, change, 0, change.sectors.size() / kSectorSize);
    } else {
      keep_some_sectors(file, change);
    }
  }
}

void SimDisk::keep_sectors(Inode& file, const Change& change, std::size_t first,
                           std::size_t count) {
  if (change.is_resize) return file.durable.resize(change.size_after);
  if (count == 0) return;
  const std::uint64_t size = file.durable.size();
  const std::uint64_t offset = change.offset + first * kSectorSize;
  const base::ByteView sectors(change.sectors);
  file.durable.write(offset, sectors.subspan(first * kSectorSize, count * kSectorSize));
  const std::uint64_t end = std::min(offset + count * kSectorSize, change.size_after);
  file.durable.resize(std::max(size, end));
}

// Tears a write: a beginning of it, an end of it, or any of its sectors; and sometimes the size
// that it meant to reach, with zeros where its bytes would be.
void SimDisk::keep_some_sectors(Inode& file, const Change& change) {
  const std::size_t count = change.sectors.size() / kSectorSize;
  const std::size_t cut = stream_.below(count + 1);
  switch (stream_.below(3)) {
    case 0:
      keep_sectors(file, change, 0, cut);
      break;
    case 1:
      keep_sectors(file, change, cut, count - cut);
      break;
    default:
      for (std::size_t sector = 0; sector < count; ++sector) {
        if (stream_.chance(0.5)) keep_sectors(file, change, sector, 1);
      }
  }
  if (stream_.chance(0.125)) {
    file.durable.resize(std::max(file.durable.size(), change.size_after));
  }
  ++counts_.writes_torn;
}

void SimDisk::collect_garbage() {
  std::vector<InodeId> to_visit{kRoot};
  std::map<InodeId, bool> reached{{kRoot, true}};
  const auto reach = [&](InodeId id) {
    if (id != 0 && inodes_.contains(id) && reached.emplace(id, true).second) {
      to_visit.push_back(id);
    }
  };
  for (const auto& [id, each] : inodes_) {
    if (each.holds > 0) reach(id);
  }
  while (!to_visit.empty()) {
    const Inode& each = inode(to_visit.back());
    to_visit.pop_back();
    for (const auto& [name, target] : each.names) reach(target);
    for (const auto& [name, target] : each.durable_names) reach(target);
    for (const NameChange& change : each.unsynced_names) {
      reach(change.partner);
      for (const Edit& edit : change.edits) reach(edit.target);
    }
  }
  std::erase_if(inodes_, [&](const auto& entry) { return !reached.contains(entry.first); });
}

void SimDisk::count_links_and_pages() {
  for (auto& [id, each] : inodes_) each.links = 0;
  for (auto& [id, each] : inodes_) {
    for (const auto& [name, target] : each.names) ++inode(target).links;
  }
  used_pages_ = 0;
  for (const auto& [id, each] : inodes_) {
    if (each.links > 0 || each.holds > 0) used_pages_ += pages_of(each);
  }
}

// The device wrote the sectors somewhere else, and read back what was there before.
void SimDisk::misdirect(Inode& file, const Change& change) {
  ++counts_.writes_misdirected;
  std::vector<Inode*> victims;
  for (auto& [id, each] : inodes_) {
    if (each.durable.size() >= kSectorSize && each.links > 0) victims.push_back(&each);
  }
  if (!victims.empty()) {
    const bool same_file = stream_.chance(0.5) && file.durable.size() >= kSectorSize;
    Inode& victim = same_file ? file : *victims[stream_.below(victims.size())];
    const std::uint64_t sectors = victim.durable.size() / kSectorSize;
    const std::uint64_t at = stream_.below(sectors) * kSectorSize;
    const std::size_t count =
        std::min<std::uint64_t>(change.sectors.size(), sectors * kSectorSize - at);
    victim.durable.write(at, base::ByteView(change.sectors).first(count));
    const std::uint64_t pages_before = pages_of(victim);
    victim.cached.write(at, base::ByteView(change.sectors).first(count));
    used_pages_ += pages_of(victim) - pages_before;
  }
  file.durable.resize(std::max(file.durable.size(), change.size_after));
  file.diverged = true;
  if (file.unsynced.empty()) reread(file);
}

bool SimDisk::rot() {
  std::vector<Inode*> candidates;
  for (auto& [id, each] : inodes_) {
    if (each.durable.page_count() > 0 && each.durable.size() > 0) candidates.push_back(&each);
  }
  if (candidates.empty()) return false;
  Inode& file = *candidates[stream_.below(candidates.size())];
  const std::uint64_t page = file.durable.page_index(stream_.below(file.durable.page_count()));
  const std::uint64_t begin = page * FileImage::kPageSize;
  if (begin >= file.durable.size()) return false;
  const std::uint64_t bytes = std::min(FileImage::kPageSize, file.durable.size() - begin);
  const bool clean = file.cached.shares_page(file.durable, page);
  file.durable.flip_bit(page, stream_.below(bytes * 8));
  if (clean) file.cached.share_page(file.durable, page);
  ++counts_.bits_flipped;
  return true;
}

std::shared_ptr<const SimDisk::Image> SimDisk::snapshot() const {
  auto image = std::make_shared<Image>();
  for (const auto& [id, each] : inodes_) {
    Inode& copy = image->inodes[id];
    copy.id = id;
    copy.is_directory = each.is_directory;
    copy.cached = copy.durable = each.durable;
    copy.names = copy.durable_names = each.durable_names;
  }
  return image;
}

void SimDisk::put_back(const Image& image, bool other_identities) {
  ++epoch_;
  ++counts_.images_put_back;
  inodes_ = image.inodes;
  if (other_identities) ++device_;
  collect_garbage();
  count_links_and_pages();
}

void SimDisk::add_to(base::Digest& digest) {
  for (const auto& [id, each] : inodes_) {
    digest.add(id);
    each.cached.add_to(digest);
    each.durable.add_to(digest);
    for (const auto& [name, target] : each.names) {
      digest.add(base::as_bytes(name));
      digest.add(target);
    }
  }
  digest.add(stream_.next());
}

}  // namespace helenus::sim
