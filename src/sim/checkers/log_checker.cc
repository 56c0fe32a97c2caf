#include "sim/checkers/log_checker.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"

namespace helenus::sim {

namespace {

using Listing = LogHistory::Listing;

void check_content(const LogHistory& history, const Listing& listing,
                   std::vector<std::string>& problems) {
  std::map<std::uint64_t, std::size_t> places;
  for (std::size_t place = 0; place < listing.records.size(); ++place) {
    const std::uint64_t record = listing.records[place];
    if (!history.appends().contains(record)) {
      problems.push_back(fmt::format("record {} is listed and was never sent", record));
    }
    if (!places.emplace(record, place).second) {
      problems.push_back(fmt::format("record {} is listed twice", record));
    }
  }
  for (const auto& [record, append] : history.appends()) {
    const bool must_be_there = append.acknowledged && *append.acknowledged < listing.asked;
    if (must_be_there && !places.contains(record)) {
      problems.push_back(fmt::format("record {} was acknowledged and is lost", record));
    }
  }
}

void check_order(const LogHistory& history, const Listing& listing,
                 std::vector<std::string>& problems) {
  // From the end: nothing may be acknowledged before the earliest sending among those behind it...
  // which a record that comes after one sent later would be.
  LogHistory::Tick latest_sent = 0;
  std::uint64_t latest = 0;
  for (const std::uint64_t record : listing.records) {
    const auto found = history.appends().find(record);
    if (found == history.appends().end()) continue;
    const LogHistory::Append& append = found->second;
    if (append.acknowledged && *append.acknowledged < latest_sent) {
      problems.push_back(fmt::format(
          "record {} was acknowledged before {} was sent, and comes after it", record, latest));
    }
    if (append.sent > latest_sent) {
      latest_sent = append.sent;
      latest = record;
    }
  }
}

}  // namespace

std::uint64_t LogHistory::send() {
  const std::uint64_t record = appends_.size() + 1;
  appends_[record] = {.sent = ++ticks_, .acknowledged = std::nullopt};
  return record;
}

void LogHistory::acknowledge(std::uint64_t record) {
  Append& append = appends_.at(record);
  ASSERT(!append.acknowledged);
  append.acknowledged = ++ticks_;
  ++acknowledged_count_;
}

void LogHistory::list(Tick asked, std::vector<std::uint64_t> records) {
  listings_.push_back({.asked = asked, .records = std::move(records)});
}

void LogHistory::add_to(base::Digest& digest) const {
  for (const auto& [record, append] : appends_) {
    digest.add(record);
    digest.add(append.acknowledged.value_or(0));
  }
  for (const Listing& listing : listings_) {
    digest.add(listing.asked);
    for (const std::uint64_t record : listing.records) digest.add(record);
  }
}

std::vector<std::string> check_log(const LogHistory& history) {
  std::vector<std::string> problems;
  const Listing* longest = nullptr;
  for (const Listing& listing : history.listings()) {
    check_content(history, listing, problems);
    check_order(history, listing, problems);
    if (longest == nullptr || listing.records.size() > longest->records.size()) longest = &listing;
  }
  // Beginnings of the longest are beginnings of one another.
  for (const Listing& listing : history.listings()) {
    if (!std::ranges::equal(listing.records,
                            std::span(longest->records).first(listing.records.size()))) {
      problems.push_back(
          fmt::format("a listing of {} records is no beginning of the longest, of {}",
                      listing.records.size(), longest->records.size()));
    }
  }
  return problems;
}

}  // namespace helenus::sim
