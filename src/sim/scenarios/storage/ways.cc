#include "sim/scenarios/storage/ways.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"

namespace helenus::sim {

namespace {

constexpr std::size_t kTraceLinesMax = 40;

std::string encoded(World& world, const WayEnd& end) {
  base::Buffer bytes;
  base::Encoder out(bytes);
  out.varint(world.state_hash());
  out.varint(world.event_count());
  out.varint(end.violations.kept().size());
  for (const std::string& what : end.violations.kept()) out.prefixed(what);
  const auto trace =
      end.violations.empty() ? std::vector<std::string>() : world.log().trace(kTraceLinesMax);
  out.varint(trace.size());
  for (const std::string& line : trace) out.prefixed(line);
  out.varint(end.sightings.size());
  for (const Sighting& sighting : end.sightings) {
    out.prefixed(sighting.name);
    out.varint(sighting.count);
    out.varint(sighting.wanted);
  }
  return std::string(base::as_text(bytes.view()));
}

}  // namespace

std::string WaysOfSeed::to_string() const {
  return fmt::format("history {}, kind {}, share {} of {}", history, kind, share, kWaysShared);
}

WorldOptions world_of_history(const RunOptions& options, std::uint64_t history) {
  WorldOptions world;
  world.buggify = history % 2 == 0;
  world.log = options.log;
  return world;
}

void Ways::take(const std::function<bool()>& run_event,
                const std::function<WayEnd(std::uint64_t event)>& story) {
  const DiskQueue& disk = world_.machine().disk_queue();
  std::uint32_t begun = disk.operations_begun();
  for (std::uint64_t event = 1; run_event() && outcome_.violations.empty(); ++event) {
    const bool of_the_disk = std::exchange(begun, disk.operations_begun()) != begun;
    if (options_.events == Events::of_the_disk && !of_the_disk) continue;
    if (event % (kWaysShared * options_.stride) != seed_.share * options_.stride) continue;
    take_one(event, story);
  }
}

void Ways::take_one(std::uint64_t event, const std::function<WayEnd(std::uint64_t event)>& story) {
  ++count_;
  Worker worker([&](const Worker::Send& send) {
    const WayEnd end = story(event);
    send(encoded(world_.world(), end));
  });
  const auto bytes = worker.receive();
  if (bytes && worker.join()) return add(event, *bytes);
  outcome_.violations.add(fmt::format("the process died on the way from event {}", event));
}

void Ways::add(std::uint64_t event, const std::string& bytes) {
  base::Decoder in(base::as_bytes(bytes));
  digest_.add(in.varint());
  outcome_.events += in.varint();
  for (std::size_t left = in.count(1); left > 0; --left) {
    outcome_.violations.add(fmt::format("event {}: {}", event, in.prefixed_text()));
  }
  for (std::size_t left = in.count(1); left > 0; --left) {
    outcome_.trace.emplace_back(in.prefixed_text());
  }
  for (std::size_t left = in.count(3); left > 0; --left) {
    const std::string name(in.prefixed_text());
    auto sum = std::ranges::find(outcome_.sightings, name, &Sighting::name);
    if (sum == outcome_.sightings.end()) {
      sum = outcome_.sightings.insert(sum, {.name = name, .count = 0, .wanted = 0});
    }
    sum->count += in.varint();
    sum->wanted = in.varint();
  }
  ASSERT(in.finish().has_value(), "what a copy sends is whole");
}

RunOutcome Ways::outcome(const Violations& of_history) {
  outcome_.plan = seed_.to_string();
  for (Sighting& sighting : outcome_.sightings) sighting.wanted = count_ / sighting.wanted;
  outcome_.violations.add_all(of_history);
  std::vector<std::string> trace = std::move(outcome_.trace);
  add_world(world_.world(), digest_, outcome_);
  if (!trace.empty()) outcome_.trace = std::move(trace);
  outcome_.state_hash = digest_.value();
  return std::move(outcome_);
}

}  // namespace helenus::sim
