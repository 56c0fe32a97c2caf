// ConvergenceChecker: whether all who were asked for the same thing gave the same answer, however
// often they were asked.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace helenus::sim {

class ConvergenceHistory {
 public:
  // What `who` said of `what`.
  void answer(const std::string& what, std::string who, std::string answer) {
    answers_[what].push_back({.who = std::move(who), .text = std::move(answer)});
  }
  void clear() { answers_.clear(); }

  struct Answer {
    std::string who;
    std::string text;
  };
  const std::map<std::string, std::vector<Answer>>& answers() const { return answers_; }

 private:
  std::map<std::string, std::vector<Answer>> answers_;
};

// For everything that was answered in more than one way who said what; empty if there is nothing.
std::vector<std::string> check_convergence(const ConvergenceHistory& history);

}  // namespace helenus::sim
