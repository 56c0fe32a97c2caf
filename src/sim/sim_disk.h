// SimDisk: the state of one machine's disk, and what is left of it after a crash.
//
// A file is what its readers see (cached) and what a power loss leaves at least (durable), with
// the changes between the two, in order. A sync moves changes over, oldest first; a power loss
// keeps, drops or tears each that is left, by sectors. A change records whole sectors as the
// cache held them after it, so that a sector on disk is always one that once existed. A directory
// is the same in names: a power loss keeps some of its latest changes and loses those after. What
// changes two directories at once (a move) survives in both or in neither.
//
// A failed sync has brought some of its changes to the disk and not others, and marks all of them
// clean: the cache may go on showing them, later syncs do not write them, and a power loss loses
// them. That is what kernels do, and why a failed sync is final.
//
// Nothing here takes time or fails by chance, except where a name says so: latency and errors are
// SimFileSystem's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/prng.h"
#include "base/result.h"
#include "runtime/file_system.h"
#include "sim/file_image.h"

namespace helenus::sim {

using InodeId = std::uint64_t;

struct DiskOptions {
  std::uint64_t capacity_bytes = std::uint64_t{64} << 30;
  // Unsynced changes that a file may have; beyond, the oldest are written back.
  std::size_t unsynced_max = 4096;
};

// What happened to a disk.
struct DiskCounts {
  std::uint64_t writes_lost = 0;  // by power losses
  std::uint64_t writes_torn = 0;
  std::uint64_t names_lost = 0;
  std::uint64_t bits_flipped = 0;
  std::uint64_t writes_misdirected = 0;
  std::uint64_t images_put_back = 0;
};

class SimDisk {
 public:
  static constexpr std::uint64_t kSectorSize = 512;
  static constexpr std::uint64_t kFileSizeMax = std::uint64_t{1} << 44;
  static constexpr std::size_t kNameMax = 255;
  static constexpr InodeId kRoot = 1;

  SimDisk(std::uint64_t device, base::Prng stream, DiskOptions options);

  // ---- Names ----
  base::Result<InodeId> find(std::string_view path) const;
  // The file, made if the options say so.
  base::Result<InodeId> open(std::string_view path, const runtime::OpenOptions& options);
  base::Result<void> make_directories(std::string_view path);
  base::Result<std::vector<runtime::DirectoryEntry>> list(std::string_view path) const;
  base::Result<runtime::FileInfo> info(std::string_view path) const;
  base::Result<void> rename(std::string_view from, std::string_view to);
  base::Result<void> remove(std::string_view path);
  base::Result<void> link(std::string_view from, std::string_view to);
  base::Result<runtime::DiskSpace> space(std::string_view path) const;
  // Names of that directory changed so far become durable with commit_names(directory, mark).
  base::Result<InodeId> find_directory(std::string_view path) const;
  std::uint64_t names_mark() const { return name_changes_; }
  void commit_names(InodeId directory, std::uint64_t mark);

  // ---- Files ----
  // While held, a file outlives its names. The crash of its holder ends all holds.
  void hold(InodeId file) { ++inode(file).holds; }
  void release(InodeId file, std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }
  base::Result<void> lock(InodeId file);
  void unlock(InodeId file, std::uint64_t epoch);

  std::uint64_t size(InodeId file) const { return inode(file).cached.size(); }
  std::size_t read(InodeId file, std::uint64_t offset, base::MutableByteView into) const;
  // Errors: no_space; then part of it is there.
  base::Result<void> write(InodeId file, std::uint64_t offset, base::ByteView from);
  base::Result<void> preallocate(InodeId file, std::uint64_t size);
  void truncate(InodeId file, std::uint64_t size);
  // What was written so far becomes durable with sync(file, mark).
  std::uint64_t sync_mark(InodeId file) const { return inode(file).changes_made; }
  // A write that is misdirected, by that chance, lands in another place of this or another file.
  void sync(InodeId file, std::uint64_t mark, double misdirection);
  // The changes up to there are taken for synced, and only some are. `forget` drops the cache, so
  // that readers see at once what is on the disk.
  void fail_sync(InodeId file, std::uint64_t mark, bool forget);

  // ---- Crashes and damage ----
  // The process is gone; the cache is not.
  void on_kill();
  void on_power_loss();
  // Flips a bit of a file at rest; false if no file has bytes.
  bool rot();

  // What a power loss now would leave for sure.
  struct Image;
  std::shared_ptr<const Image> snapshot() const;
  // The disk is as it was then; with other identities, as a copy has, if so wanted. Only between
  // a power loss and a start.
  void put_back(const Image& image, bool other_identities);

  std::uint64_t capacity() const { return capacity_bytes_; }
  void set_capacity(std::uint64_t bytes) { capacity_bytes_ = bytes; }
  const DiskOptions& options() const { return options_; }
  std::uint64_t used_bytes() const { return used_pages_ * FileImage::kPageSize; }
  const DiskCounts& counts() const { return counts_; }
  base::Prng& stream() { return stream_; }
  void add_to(base::Digest& digest);

 private:
  // Whole sectors as the cache held them after a write; or, without bytes, a new size.
  struct Change {
    std::uint64_t number;
    std::uint64_t offset;
    std::vector<std::byte> sectors;
    std::uint64_t size_after;
    bool is_resize;
  };
  struct Edit {
    std::string name;
    InodeId target;  // zero takes the name away
  };
  struct NameChange {
    std::uint64_t number;
    std::vector<Edit> edits;
    InodeId partner;  // the other directory of a move, or zero
  };
  using Names = std::map<std::string, InodeId, std::less<>>;

  struct Inode {
    InodeId id = 0;
    bool is_directory = false;
    bool locked = false;
    std::uint32_t links = 0;  // names that readers see
    std::uint32_t holds = 0;

    FileImage cached;
    FileImage durable;
    std::deque<Change> unsynced;
    std::uint64_t changes_made = 0;
    std::uint64_t reserved_pages = 0;
    bool diverged = false;  // the cache may show what the disk will never have

    Names names;
    Names durable_names;
    std::deque<NameChange> unsynced_names;
  };
  struct Place {
    InodeId parent;
    std::string name;
    InodeId target;  // zero if nothing is there
  };

  Inode& inode(InodeId id);
  const Inode& inode(InodeId id) const;
  Inode& make_inode(bool is_directory);
  base::Result<std::vector<std::string_view>> split(std::string_view path) const;
  base::Result<Place> locate(std::string_view path) const;
  void change_names(std::uint64_t number, InodeId directory, std::vector<Edit> edits,
                    InodeId partner = 0);
  void move_name(const Place& source, const Place& target);
  bool lies_within(InodeId inner, InodeId outer) const;
  void on_unlinked_or_released(const Inode& file);
  // Drops what no name, durable or not, and no holder leads to.
  void collect_garbage();
  void count_links_and_pages();

  std::uint64_t pages_of(const Inode& file) const;
  // The cache is dropped and filled from the disk.
  void reread(Inode& file);
  void note_write(Inode& file, std::uint64_t offset, std::size_t count);
  void write_back(Inode& file, const Change& change);
  void misdirect(Inode& file, const Change& change);
  void lose_power(Inode& file);
  // Brings to the disk what chance wants of these changes.
  void keep_by_luck(Inode& file, const std::deque<Change>& changes);
  void keep_some_sectors(Inode& file, const Change& change);
  void keep_sectors(Inode& file, const Change& change, std::size_t first, std::size_t count);
  void lose_names();

  const DiskOptions options_;
  std::uint64_t device_;
  std::uint64_t capacity_bytes_;
  base::Prng stream_;
  DiskCounts counts_;
  std::uint64_t epoch_ = 0;
  std::uint64_t name_changes_ = 0;
  InodeId next_inode_ = kRoot;
  std::uint64_t used_pages_ = 0;
  std::size_t garbage_at_ = 1024;  // how many inodes make a collection worth while
  std::map<InodeId, Inode> inodes_;
};

struct SimDisk::Image {
  std::map<InodeId, Inode> inodes;
};

}  // namespace helenus::sim
