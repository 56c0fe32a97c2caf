#include "causality/counter.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

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
  if (std::ranges::none_of(cell.versions(), [&](const Version& version) {
        return version.kind != VersionKind::total && is_stable(version);
      })) {
    return;
  }
  const Names dead = dead_names(cell);
  Names waiting;  // operations of which a dot is not stable yet
  for (const Version& version : cell.versions()) {
    if (has_name(version) && !is_stable(version)) waiting.insert(version.value.text());
  }
  Names folded;
  Total total;
  Versions left;
  std::size_t totals = 0;
  for (const Version& version : cell.versions()) {
    const bool dies = has_name(version) && dead.contains(version.value.text());
    if (version.kind == VersionKind::total) {
      ASSERT(++totals == 1, "two totals of one counter at one replica");
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

bool lacks(const Clock& clock, const CellStore& answer) {
  return std::ranges::any_of(answer.versions(), [&](const Version& version) {
    return version.kind != VersionKind::total && !clock.contains(version.dot);
  });
}

}  // namespace helenus::causality
