// PlantedBugs: rules of replication broken on purpose, one at a time, for tests that must find each
// of them. Production breaks none.
#pragma once

namespace helenus::replication {

struct PlantedBugs {
  // A read repair brings a part of a mutation with its dot (S3).
  bool repairs_bring_parts = false;
  // A delete goes by its own replica's clock (S2).
  bool deletes_by_own_clock = false;
  // A mutation of a table that is not known yet counts as one of a table that was dropped (R9).
  bool unknown_is_dropped = false;
  // A clock that was told is a watermark before all of it is here (R5).
  bool watermarks_without_covering = false;
  // An explicit timestamp is judged by what is stored, without the mutation log (rule (d)).
  bool judges_without_log = false;
  // A write keeps its timestamp, whatever it replaces (rule (b)); see storage::EngineOptions.
  bool timestamps_are_not_raised = false;
  // A digest tells versions apart by their timestamps alone (R7).
  bool digests_without_dots = false;

  friend bool operator==(const PlantedBugs&, const PlantedBugs&) = default;
};

}  // namespace helenus::replication
