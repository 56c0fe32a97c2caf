#include "sim/checkers/convergence_checker.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace helenus::sim {

std::vector<std::string> check_convergence(const ConvergenceHistory& history) {
  std::vector<std::string> problems;
  for (const auto& [what, answers] : history.answers()) {
    std::map<std::string, std::vector<std::string>> who_said;
    for (const auto& answer : answers) who_said[answer.text].push_back(answer.who);
    if (who_said.size() < 2) continue;
    std::string text = what + " differs:";
    for (const auto& [said, who] : who_said) {
      text += fmt::format(" {} say [{}]", fmt::join(who, ", "), said);
    }
    problems.push_back(std::move(text));
  }
  return problems;
}

}  // namespace helenus::sim
