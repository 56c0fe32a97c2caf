// RowsChecker: whether rows kept what they promised, cell by cell, as their clients saw it.
//
// The system that is judged gives every write a timestamp that is later than that of every write
// that had ended before it began, and shows of each cell the latest write that reached the reader.
// So, of a read R and a write X whose value it saw:
//   nowhere    X was written, to that cell, and began before R returned
//   refused    X was not refused
//   late       X is not older than a write Y that was there when R began: no Y began after X had
//              ended. If Y deletes the cell, X is a zombie; else Y is lost. A write is there from
//              its acknowledgement on, and when a read returns that saw it and spreads.
//   expired    X has no time to live, or it had not passed when R began
// and where R saw nothing, that is what the cell was before the first write, what a delete left
// that is not older than a put that was there, or what an expired write left. A weak read may miss
// any write, so `late` and what R did not see are judged for strong reads only. A write of unknown
// outcome ends when the history says so, or never.
//
// And of two strong reads (order): of two writes the one that was seen although the other was there
// is the later one; the other is not seen again once this one is there.
#pragma once

#include <string>
#include <vector>

#include "sim/checkers/rows_history.h"

namespace helenus::sim {

struct RowsRules {
  // By how much clocks that decide what has expired differed from each other, and what else may
  // delay or round a time to live.
  RowsHistory::Moment expiry_slack = 0;
  // Whether a write that began later has the later timestamp. If not, what was overwritten may be
  // seen instead; only a write that does nothing but delete is later than all that had ended.
  bool timestamps_follow_time = true;
};

// What does not hold, one sentence each; empty if all does.
std::vector<std::string> check_rows(const RowsHistory& history, const RowsRules& rules);

}  // namespace helenus::sim
