// What clients of the register saw, and whether one register can have shown it to them.
//
// Versions are totally ordered and each is made once, so linearizability needs no search. Every
// operation that returned a document of version w observed w; a lost change from v observed that
// v + 1 is there. The history is linearizable if and only if, for any two operations of which one
// returned before the other began,
//   - the later one observed no older version, and
//   - if the later one made a version, it is newer than all that the earlier one observed,
// and each version was made by one change at most, from the document before it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "consensus/document.h"
#include "consensus/proposer.h"

namespace helenus::consensus {

class History {
 public:
  struct Operation {
    std::optional<Change> change;  // none: a read
    std::uint64_t invoked = 0;
    std::optional<std::uint64_t> returned;
    std::optional<Outcome> outcome;  // none: its client died
  };

  explicit History(Document founding) { documents_.emplace(founding.version, founding); }

  std::size_t invoke(std::optional<Change> change) {
    operations_.push_back({.change = std::move(change),
                           .invoked = ++moment_,
                           .returned = std::nullopt,
                           .outcome = std::nullopt});
    return operations_.size() - 1;
  }
  void complete(std::size_t operation, const Outcome& outcome) {
    operations_[operation].returned = ++moment_;
    operations_[operation].outcome = outcome;
    saw(outcome.document);
  }
  // A document that anybody, a client or an acceptor, takes for decided.
  void saw(const Document& document) {
    if (document.is_blank()) return;
    const auto [at, is_new] = documents_.try_emplace(document.version, document);
    if (!is_new && at->second != document) {
      complaints_.push_back(fmt::format("two documents of version {}", document.version));
    }
  }

  std::size_t count(Outcome::Kind kind) const {
    std::size_t count = 0;
    for (const auto& operation : operations_) {
      if (operation.outcome && operation.outcome->kind == kind) ++count;
    }
    return count;
  }
  const std::map<Version, Document>& documents() const { return documents_; }

  // What does not hold; empty if everything does.
  std::vector<std::string> complaints() const {
    std::vector<std::string> all = complaints_;
    check_chain(all);
    for (const auto& operation : operations_) check_fate(operation, all);
    for (const auto& earlier : operations_) {
      if (!earlier.returned || !observed(earlier)) continue;
      for (const auto& later : operations_) {
        if (later.invoked > *earlier.returned) check_order(earlier, later, all);
      }
    }
    return all;
  }

 private:
  // The version that an operation surely saw.
  static std::optional<Version> observed(const Operation& operation) {
    if (!operation.outcome) return std::nullopt;
    switch (operation.outcome->kind) {
      case Outcome::Kind::read:
        return operation.outcome->document.version;
      case Outcome::Kind::changed:
        return after(operation.change->expected);
      case Outcome::Kind::conflict:
        return operation.outcome->document.version > operation.change->expected
                   ? std::optional(after(operation.change->expected))
                   : std::nullopt;
      case Outcome::Kind::unavailable:
      case Outcome::Kind::unknown:
        return std::nullopt;
    }
    return std::nullopt;
  }

  // The version that a change made, if it did, whether or not its client knows.
  std::optional<Version> made(const Operation& operation) const {
    if (!operation.change) return std::nullopt;
    const Version version = after(operation.change->expected);
    // That very document, or the first one seen behind it, whose trail tells.
    const auto at = documents_.lower_bound(version);
    if (at == documents_.end() || fate_of(*operation.change, at->second) != Fate::happened) {
      return std::nullopt;
    }
    return version;
  }

  void check_chain(std::vector<std::string>& all) const {
    for (const auto& [version, document] : documents_) {
      const auto next = documents_.find(after(version));
      if (next != documents_.end() && !follows(next->second, document)) {
        all.push_back(fmt::format("version {} does not follow", next->first));
      }
      // The clients of the test write the ids of all changes into the content, one after another.
      if (document.content.size() != (version.value() - 1) * base::Uuid::kSize) {
        all.push_back(fmt::format("the content of version {} has lost a change", version));
      } else if (next != documents_.end() &&
                 next->second.content.size() >= document.content.size() &&
                 next->second.content.slice(0, document.content.size()) != document.content) {
        all.push_back(fmt::format("version {} does not contain the one before", next->first));
      }
    }
  }

  void check_fate(const Operation& operation, std::vector<std::string>& all) const {
    if (!operation.change || !operation.outcome) return;
    const bool happened = made(operation).has_value();
    const auto kind = operation.outcome->kind;
    const auto expected = operation.change->expected;
    if (kind == Outcome::Kind::changed && !happened) {
      all.push_back(fmt::format("a change from {} was acknowledged and is not there", expected));
    }
    if ((kind == Outcome::Kind::conflict || kind == Outcome::Kind::unavailable) && happened) {
      all.push_back(fmt::format("a change from {} was denied and is there", expected));
    }
  }

  void check_order(const Operation& earlier, const Operation& later,
                   std::vector<std::string>& all) const {
    const Version seen = *observed(earlier);
    if (later.outcome && later.outcome->kind == Outcome::Kind::read &&
        later.outcome->document.version < seen) {
      all.push_back(fmt::format("version {} was read after {} had been seen",
                                later.outcome->document.version, seen));
    }
    const auto version = made(later);
    if (version && *version <= seen) {
      all.push_back(fmt::format("version {} was seen before its change began", *version));
    }
  }

  std::uint64_t moment_ = 0;
  std::vector<Operation> operations_;
  std::map<Version, Document> documents_;
  std::vector<std::string> complaints_;
};

}  // namespace helenus::consensus
