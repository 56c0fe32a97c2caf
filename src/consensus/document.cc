#include "consensus/document.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/assert.h"

namespace helenus::consensus {

using base::Errc;
using base::Error;
using base::Result;

namespace {

std::size_t trail_size_of(Version version) {
  ASSERT(version > Version(0));
  return static_cast<std::size_t>(std::min<std::uint64_t>(version.value() - 1, kTrailMax));
}

// What is wrong with a document; nullptr if nothing is.
const char* problem_of(const Document& document) {
  if (document.is_blank()) {
    return document == Document() ? nullptr : "a blank document has no fields";
  }
  if (document.version.value() > kVersionMax) return "too large a version";
  if (document.acceptors.empty()) return "nobody decides on the next version";
  if (document.acceptors.size() > kAcceptorsMax) return "too many acceptors";
  if (std::ranges::adjacent_find(document.acceptors, std::ranges::greater_equal{}) !=
      document.acceptors.end()) {
    return "acceptors are not ascending, each once";
  }
  if (document.trail.size() != trail_size_of(document.version)) {
    return "the trail is not as long as the version asks for";
  }
  if (document.content.size() > kContentSizeMax) return "the content is too large";
  return nullptr;
}

}  // namespace

bool Document::names(model::NodeId node) const {
  return std::ranges::binary_search(acceptors, node);
}

Fate fate_of(const Change& change, const Document& document) {
  if (document.version <= change.expected) return Fate::open;
  const std::uint64_t newer = document.version.value() - change.expected.value() - 1;
  if (newer >= document.trail.size()) return Fate::forgotten;
  const auto& made_it = document.trail[document.trail.size() - 1 - newer];
  return made_it == change.id ? Fate::happened : Fate::lost;
}

Result<void> validate(const Document& document) {
  if (const char* problem = problem_of(document)) return Error(Errc::invalid_argument, problem);
  return {};
}

Result<Document> found(RegisterId register_id, std::vector<model::NodeId> acceptors,
                       base::Bytes content) {
  std::ranges::sort(acceptors);
  Document document{.version = Version(1),
                    .register_id = register_id,
                    .acceptors = std::move(acceptors),
                    .trail = {},
                    .content = std::move(content)};
  TRY_VOID(validate(document));
  return document;
}

Result<Document> apply(const Change& change, const Document& previous) {
  ASSERT(change.expected == previous.version && !previous.is_blank());
  Document document{.version = after(previous.version),
                    .register_id = previous.register_id,
                    .acceptors = change.acceptors,
                    .trail = previous.trail,
                    .content = change.content};
  std::ranges::sort(document.acceptors);
  if (document.trail.size() == kTrailMax) document.trail.erase(document.trail.begin());
  document.trail.push_back(change.id);
  TRY_VOID(validate(document));
  return document;
}

bool follows(const Document& next, const Document& previous) {
  if (previous.is_blank() || next.version != after(previous.version)) return false;
  if (next.register_id != previous.register_id || problem_of(next) != nullptr) return false;
  const std::size_t kept = next.trail.size() - 1;
  return std::equal(next.trail.begin(), next.trail.end() - 1,
                    previous.trail.end() - static_cast<std::ptrdiff_t>(kept), previous.trail.end());
}

void put(base::Encoder& out, const base::Uuid& uuid) {
  out.raw(uuid.bytes());
}

void put(base::Encoder& out, const Document& document) {
  out.varint(document.version.value());
  if (document.is_blank()) return;
  put(out, document.register_id.value());
  out.varint(document.acceptors.size());
  for (const auto& acceptor : document.acceptors) put(out, acceptor.value());
  out.varint(document.trail.size());
  for (const auto& change : document.trail) put(out, change.value());
  out.prefixed(document.content);
}

Document get_document(base::Decoder& in) {
  Document document;
  document.version = Version(in.varint());
  if (document.is_blank()) return document;
  document.register_id = RegisterId(base::decode_uuid(in));
  const std::size_t acceptors = in.count(base::Uuid::kSize);
  if (acceptors > kAcceptorsMax) in.fail("too many acceptors");
  for (std::size_t i = 0; in.ok() && i < acceptors; ++i) {
    document.acceptors.emplace_back(base::decode_uuid(in));
  }
  const std::size_t changes = in.count(base::Uuid::kSize);
  if (changes > kTrailMax) in.fail("too long a trail");
  for (std::size_t i = 0; in.ok() && i < changes; ++i)
    document.trail.emplace_back(base::decode_uuid(in));
  document.content = base::Bytes::copy_of(in.prefixed());
  if (!in.ok()) return {};
  if (const char* problem = problem_of(document)) {
    in.fail(problem);
    return {};
  }
  return document;
}

}  // namespace helenus::consensus
