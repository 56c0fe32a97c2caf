#include "filters/ring_sectors.h"

#include <limits>

namespace helenus::filters {

template <class Low>
unsigned RingSectors<Low>::Line::count() const {
  unsigned count = 0;
  for (unsigned i = 0; i < kNodesPerLine; ++i) count += (owners[i] & kNext) == 0 ? 1 : 0;
  return count;
}

template <class Low>
RingSectors<Low>::RingSectors(unsigned bits, std::span<const PlacedNode> nodes)
    : shift_(32 - bits), lines_(std::size_t{1} << bits, line_of({}, kNext)) {
  ASSERT(shift_ <= static_cast<unsigned>(std::numeric_limits<Low>::digits));
  if (nodes.empty()) return;
  // From the last sector to the first, so that each knows what comes after it.
  Node next = nodes.front().node;
  for (std::uint64_t sector = lines_.size(); sector-- > 0;) {
    entries_.clear();
    while (!nodes.empty() && sector_of(nodes.back().position) == sector) {
      entries_.push_back({low_of(nodes.back().position), nodes.back().node});
      nodes = nodes.first(nodes.size() - 1);
    }
    std::ranges::reverse(entries_);
    write(sector, entries_, next);
    if (!entries_.empty()) next = entries_.front().node;
  }
  ASSERT(nodes.empty());
}

template <class Low>
auto RingSectors<Low>::find_in_overflow(std::uint32_t owner, Low low) const -> Node {
  while ((owner & kMore) != 0) {
    const Line& line = overflow_[owner & kNodeMax];
    owner = line.owners[line.count_before(low)];
  }
  return owner & kNodeMax;
}

template <class Low>
auto RingSectors<Low>::line_of(std::span<const Entry> entries, std::uint32_t after) -> Line {
  Line line;
  for (unsigned i = 0; i < kNodesPerLine; ++i) {
    const bool is_used = i < entries.size();
    line.lows[i] = is_used ? entries[i].low : std::numeric_limits<Low>::max();
    line.owners[i] = is_used ? entries[i].node : after;
  }
  line.owners[kNodesPerLine] = after;
  return line;
}

template <class Low>
auto RingSectors<Low>::last_line(std::uint64_t sector) -> Line& {
  Line* line = &lines_[sector];
  while (line->is_followed()) line = &overflow_[line->owners[kNodesPerLine] & kNodeMax];
  return *line;
}

template <class Low>
void RingSectors<Low>::read(std::uint64_t sector, std::vector<Entry>& entries) const {
  entries.clear();
  for (const Line* line = &lines_[sector];; line = &line_after(*line)) {
    const unsigned count = line->count();
    for (unsigned i = 0; i < count; ++i) entries.push_back({line->lows[i], line->owners[i]});
    if (!line->is_followed()) return;
  }
}

template <class Low>
std::uint32_t RingSectors<Low>::store_overflow(const Line& line) {
  if (free_overflow_.empty()) {
    free_overflow_.push_back(static_cast<std::uint32_t>(overflow_.size()));
    overflow_.emplace_back();
  }
  const std::uint32_t number = free_overflow_.back();
  free_overflow_.pop_back();
  overflow_[number] = line;
  return number;
}

template <class Low>
void RingSectors<Low>::write(std::uint64_t sector, std::span<const Entry> entries, Node next) {
  for (const Line* line = &lines_[sector]; line->is_followed(); line = &line_after(*line)) {
    free_overflow_.push_back(line->owners[kNodesPerLine] & kNodeMax);
  }
  // The last line first, since each must know the number of the one after it.
  std::uint32_t after = kNext | next;
  while (entries.size() > kNodesPerLine) {
    const std::size_t full = (entries.size() - 1) / kNodesPerLine * kNodesPerLine;
    after = kMore | store_overflow(line_of(entries.subspan(full), after));
    entries = entries.first(full);
  }
  lines_[sector] = line_of(entries, after);
}

template <class Low>
void RingSectors<Low>::set_next_after(std::uint64_t sector, Node next) {
  Line& last = last_line(sector);
  for (unsigned i = last.count(); i <= kNodesPerLine; ++i) last.owners[i] = kNext | next;
}

// The node that comes first from this sector on: all sectors before it lead there, back to the one
// that has nodes itself. That may be this very sector, when it is the only one.
template <class Low>
void RingSectors<Low>::announce(std::uint64_t sector, Node first) {
  std::uint64_t before = sector;
  do {
    before = (before - 1) & (lines_.size() - 1);
    set_next_after(before, first);
  } while (lines_[before].is_empty() && before != sector);
}

template <class Low>
bool RingSectors<Low>::is_taken(Position position) const {
  const Low low = low_of(position);
  for (const Line* line = &lines_[sector_of(position)];; line = &line_after(*line)) {
    const unsigned before = line->count_before(low);
    const std::uint32_t owner = line->owners[before];
    if ((owner & kMore) == 0) return (owner & kNext) == 0 && line->lows[before] == low;
  }
}

template <class Low>
void RingSectors<Low>::add(Position position, Node node) {
  ASSERT(node <= kNodeMax && !is_taken(position));
  const std::uint64_t sector = sector_of(position);
  read(sector, entries_);
  const Low low = low_of(position);
  const auto at = std::ranges::lower_bound(entries_, low, {}, &Entry::low);
  const bool is_first = at == entries_.begin();
  entries_.insert(at, {low, node});
  write(sector, entries_, next_after(sector));
  if (is_first) announce(sector, node);
}

template <class Low>
auto RingSectors<Low>::find_taken(Low low) -> typename std::vector<Entry>::iterator {
  const auto found = std::ranges::lower_bound(entries_, low, {}, &Entry::low);
  ASSERT(found != entries_.end() && found->low == low);
  return found;
}

template <class Low>
void RingSectors<Low>::remove(Position position) {
  const std::uint64_t sector = sector_of(position);
  read(sector, entries_);
  const auto found = find_taken(low_of(position));
  const bool is_first = found == entries_.begin();
  entries_.erase(found);
  const Node next = next_after(sector);
  write(sector, entries_, next);
  if (is_first) announce(sector, entries_.empty() ? next : entries_.front().node);
}

template <class Low>
void RingSectors<Low>::renumber(Position position, Node node) {
  ASSERT(node <= kNodeMax);
  const std::uint64_t sector = sector_of(position);
  read(sector, entries_);
  const auto found = find_taken(low_of(position));
  found->node = node;
  write(sector, entries_, next_after(sector));
  if (found == entries_.begin()) announce(sector, node);
}

template <class Low>
std::uint32_t RingSectors<Low>::crowd_at(Position position) const {
  std::uint32_t crowd = 0;
  for (const Line* line = &lines_[sector_of(position)];; line = &line_after(*line)) {
    crowd += line->count();
    if (!line->is_followed()) return crowd;
  }
}

template <class Low>
std::uint64_t RingSectors<Low>::longest_gap() const {
  // Twice round, for the gap that the ring's beginning lies in.
  std::uint64_t longest = 0;
  std::uint64_t empty = 0;
  for (std::uint64_t i = 0; i < 2 * lines_.size(); ++i) {
    empty = lines_[i & (lines_.size() - 1)].is_empty() ? empty + 1 : 0;
    longest = std::max(longest, empty);
  }
  return std::min<std::uint64_t>(longest, lines_.size());
}

template <class Low>
std::vector<PlacedNode> RingSectors<Low>::nodes() const {
  std::vector<PlacedNode> nodes;
  std::vector<Entry> entries;
  for (std::uint64_t sector = 0; sector < lines_.size(); ++sector) {
    read(sector, entries);
    const auto high = static_cast<Position>(sector << shift_);
    for (const Entry& entry : entries) nodes.push_back({high | entry.low, entry.node});
  }
  return nodes;
}

template <class Low>
std::uint64_t RingSectors<Low>::memory_bytes() const {
  return (lines_.capacity() + overflow_.capacity()) * sizeof(Line) +
         free_overflow_.capacity() * sizeof(std::uint32_t);
}

template class RingSectors<std::uint16_t>;
template class RingSectors<std::uint32_t>;

}  // namespace helenus::filters
