// Document: what the register holds. The content is the cluster's metadata (ring, tablets, epochs,
// schema), opaque here; around it lies what consensus itself needs: which version it is, who
// decides on the next one, and which changes led here.
//
// Versions are 1, 2, 3 ... without a gap: version v + 1 is made from version v by one Change. The
// acceptors that a document names decide on the version after it and on no other (acceptor.h has
// the argument). Version 0 is the blank document of a node that knows nothing yet.
//
// The trail holds the ids of the last changes, newest last, so that whoever lost the answer to its
// change can find out from a later document whether it happened: the change from version v is, if
// it is still there, at the place that belongs to version v + 1, or it never happened at all.
//
// All of this is values: no clock, no input or output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/bytes.h"
#include "base/codec.h"
#include "base/result.h"
#include "base/strong.h"
#include "base/uuid.h"
#include "model/node_id.h"

namespace helenus::consensus {

using Version = base::Strong<struct VersionTag, std::uint64_t>;
using RegisterId = base::Strong<struct RegisterIdTag, base::Uuid>;
using ChangeId = base::Strong<struct ChangeIdTag, base::Uuid>;

inline constexpr std::uint64_t kVersionMax = std::uint64_t{1} << 48;
inline constexpr std::size_t kAcceptorsMax = 15;
inline constexpr std::size_t kTrailMax = 64;
inline constexpr std::size_t kContentSizeMax = std::size_t{8} << 20;

constexpr Version after(Version version) {
  return Version(version.value() + 1);
}
constexpr std::size_t majority_of(std::size_t members) {
  return members / 2 + 1;
}

struct Document {
  Version version;
  RegisterId register_id;                // drawn once, when the cluster is founded
  std::vector<model::NodeId> acceptors;  // who decides on the next version; ascending, no one twice
  std::vector<ChangeId> trail;           // of the last min(version - 1, kTrailMax) changes
  base::Bytes content;

  bool is_blank() const { return version == Version(0); }
  bool names(model::NodeId node) const;

  friend bool operator==(const Document&, const Document&) = default;
};

// A compare-and-swap: if the register is at `expected`, it becomes this. The id is unique for ever
// (sixteen random bytes); a change that is tried again keeps its id and everything else.
struct Change {
  ChangeId id;
  Version expected;
  std::vector<model::NodeId> acceptors;
  base::Bytes content;
};

// What a document tells about a change.
enum class Fate : std::uint8_t {
  open,       // the document is not newer than what the change expects
  happened,   // it made the version after the expected one
  lost,       // another one did; it will never happen
  forgotten,  // too long ago: the trail no longer says
};
Fate fate_of(const Change& change, const Document& document);

// Whether a document keeps the invariants that its fields name. Errors: invalid_argument.
base::Result<void> validate(const Document& document);

// Version 1. Errors: invalid_argument.
base::Result<Document> found(RegisterId register_id, std::vector<model::NodeId> acceptors,
                             base::Bytes content);

// The document after `previous`. Requires: change.expected == previous.version.
// Errors: invalid_argument.
base::Result<Document> apply(const Change& change, const Document& previous);

// Whether `next` may be the result of one change to `previous`.
bool follows(const Document& next, const Document& previous);

// One document among other fields; get_document fails the decoder on what validate() refuses.
void put(base::Encoder& out, const Document& document);
Document get_document(base::Decoder& in);

// Sixteen bytes as they are.
void put(base::Encoder& out, const base::Uuid& uuid);

}  // namespace helenus::consensus
