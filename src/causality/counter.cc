#include "causality/counter.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "base/assert.h"

namespace helenus::causality {

namespace {

using Names = absl::flat_hash_set<std::string_view>;

Names dead_names(const CellStore& cell) {
  Names names;
  for (const Version& version : cell.versions()) {
    if (version.kind == VersionKind::dead) names.insert(version.value.text());
  }
  return names;
}

bool has_name(const Version& version) {
  return version.kind == VersionKind::increment && !version.value.empty();
}

std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

// Adds up what is folded.
class Total {
 public:
  void add(const Version& version) {
    if (!total_) {
      total_ = version;
      total_->kind = VersionKind::total;
      total_->value = {};
      return;
    }
    total_->amount = sum_of(total_->amount, version.amount);
    add_alias(version);
  }
  // A further dot of what was added.
  void add_alias(const Version& version) {
    total_->dot = std::max(total_->dot, version.dot);
    total_->timestamp = std::max(total_->timestamp, version.timestamp);
  }
  std::optional<Version> take() && { return std::move(total_); }

 private:
  std::optional<Version> total_;
};

}  // namespace

bool is_counter(const CellStore& cell) {
  return std::ranges::any_of(cell.versions(), [](const Version& version) {
    return version.kind != VersionKind::value && version.kind != VersionKind::deletion;
  });
}

VisibleVersions living(const CellStore& cell) {
  VisibleVersions seen;
  const Names dead = dead_names(cell);
  Names counted;
  for (const Version& version : cell.versions()) {
    if (version.kind == VersionKind::total) seen.push_back(&version);
    if (version.kind != VersionKind::increment) continue;
    if (has_name(version) && cell.versions().size() > 1) {
      const std::string_view name = version.value.text();
      if (dead.contains(name) || !counted.insert(name).second) continue;
    }
    seen.push_back(&version);
  }
  return seen;
}

std::int64_t counter_value(const CellStore& cell) {
  std::int64_t value = 0;
  for (const Version* version : living(cell)) value = sum_of(value, version->amount);
  return value;
}

void fold(CellStore& cell, const Stability& stable) {
  const auto is_stable = [&](const Version& version) { return stable.dots.contains(version.dot); };
  std::size_t totals = 0;
  const auto changes = [&](const Version& version) {
    if (version.kind == VersionKind::total) return ++totals > 1;
    return version.kind == VersionKind::folded || is_stable(version);
  };
  if (std::ranges::none_of(cell.versions(), changes)) return;
  const Names dead = dead_names(cell);
  Names waiting;  // operations of which a dot is not stable yet
  for (const Version& version : cell.versions()) {
    if (has_name(version) && !is_stable(version)) waiting.insert(version.value.text());
  }
  Names folded;
  Total total;
  Versions left;
  for (const Version& version : cell.versions()) {
    if (version.kind == VersionKind::folded) continue;
    const bool dies = has_name(version) && dead.contains(version.value.text());
    if (version.kind == VersionKind::total) {
      total.add(version);
    } else if (is_record(version.kind) || dies) {
      if (is_stable(version)) continue;
      left.push_back(version);
      left.back().kind = dies ? VersionKind::dead : version.kind;
      left.back().amount = 0;
    } else if (version.kind != VersionKind::increment || !is_stable(version) ||
               (has_name(version) && waiting.contains(version.value.text()))) {
      left.push_back(version);
    } else if (has_name(version) && !folded.insert(version.value.text()).second) {
      total.add_alias(version);
    } else {
      total.add(version);
    }
  }
  if (auto sum = std::move(total).take()) left.push_back(*std::move(sum));
  cell.replace_versions(std::move(left));
}

CellStore merge_counters(std::span<const CounterAnswer> answers) {
  ASSERT(!answers.empty());
  const CounterAnswer& base = answers.front();
  CellStore merged = base.cell;
  for (const CounterAnswer& answer : answers.subspan(1)) {
    Versions news;
    for (const Version& version : answer.cell.versions()) {
      const bool is_news =
          version.kind == VersionKind::increment && !base.clock.contains(version.dot);
      if (is_news || is_record(version.kind)) news.push_back(version);
    }
    merged.absorb(CellStore(std::move(news), answer.cell.context()));
  }
  return merged;
}

namespace {

bool is_in_total(const Version* version) {
  return version != nullptr &&
         (version->kind == VersionKind::total || version->kind == VersionKind::folded);
}

// What takes the place of an increment or total that another total holds.
Version folded_of(const Version& version) {
  Version folded;
  folded.dot = version.dot;
  folded.kind = VersionKind::folded;
  const bool is_total = version.kind == VersionKind::total;
  folded.timestamp = Timestamp(version.timestamp.value() + (is_total ? 1 : 0));
  return folded;
}

// Of theirs, where ours has `here` under its dot; none if ours says the same.
std::optional<Version> taken_of(const Version& version, const Version* here) {
  if (version.kind == VersionKind::folded) {
    if (here == nullptr || !adds_up(here->kind)) return std::nullopt;
    return folded_of(*here);
  }
  if (!adds_up(version.kind) || !is_in_total(here)) {
    if (here != nullptr && *here == version) return std::nullopt;
    return version;
  }
  if (here->kind == VersionKind::total && here->amount == version.amount) return std::nullopt;
  Version total = version;
  total.kind = VersionKind::total;
  total.value = {};
  total.timestamp = std::max(version.timestamp, Timestamp(here->timestamp.value() + 1));
  return total;
}

}  // namespace

std::optional<CellStore> counter_difference(const CellStore& theirs, const Clock& claim,
                                            const CellStore& ours) {
  // Of operations that ours has folded under a dot that theirs has: one dot of each counts, and
  // none of one that is dead.
  Names dead = dead_names(theirs);
  dead.merge(dead_names(ours));
  absl::flat_hash_map<std::string_view, const Version*> folded_here;
  for (const Version& version : theirs.versions()) {
    if (has_name(version) && is_in_total(ours.find(version.dot))) {
      folded_here.try_emplace(version.value.text(), &version);
    }
  }
  Versions versions;
  for (const Version& version : theirs.versions()) {
    const Version* const here = ours.find(version.dot);
    const auto folded =
        has_name(version) ? folded_here.find(version.value.text()) : folded_here.end();
    const bool is_counted = folded != folded_here.end() && folded->second != &version;
    const bool is_dead =
        has_name(version) && is_in_total(here) && dead.contains(version.value.text());
    if (is_counted || is_dead) {
      if (here != nullptr && adds_up(here->kind)) versions.push_back(folded_of(*here));
    } else if (auto taken = taken_of(version, here)) {
      versions.push_back(*std::move(taken));
    }
  }
  for (const Version& version : ours.versions()) {
    if (!adds_up(version.kind) || !claim.contains(version.dot)) {
      if (version.kind == VersionKind::total) return std::nullopt;
      continue;
    }
    if (theirs.find(version.dot) != nullptr || theirs.context().contains(version.dot)) continue;
    versions.push_back(folded_of(version));
  }
  std::ranges::sort(versions, {}, &Version::dot);
  return CellStore(std::move(versions), theirs.context());
}

bool lacks(const Clock& clock, const CellStore& answer) {
  return std::ranges::any_of(answer.versions(), [&](const Version& version) {
    return version.kind != VersionKind::total && version.kind != VersionKind::folded &&
           !clock.contains(version.dot);
  });
}

}  // namespace helenus::causality
