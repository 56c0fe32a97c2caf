// What a coordinator asks replicas on other nodes, what a replica that minted asks its peers, and
// what replicas tell each other when nobody asks.
//
//   write     mint this here, and answer at that level      coordinator ▸ one replica
//   apply     a delta that was minted elsewhere             replica that minted ▸ the others
//   read      rows by their keys                            coordinator ▸ replicas
//   scan      rows of a tablet, one after the other         coordinator ▸ replicas
//   clock     what the replica has seen, for a delete       replica that mints ▸ others
//   repair    what another replica lacks of a partition     coordinator ▸ one that has it
//   announce  what the sender's replicas have seen          replica ▸ the others
//   pull      what of this does my replica lack?            replica ▸ one that has it
//
// Partitions name their keyspace and token themselves (model/partition_key.h): so a message needs
// no tablet, only the epoch in which its sender thinks that the receiver is a replica (S10). A
// receiver that is in another epoch answers kStale: not executed (R18). What is about a tablet as a
// whole, announce and pull, names it as storage does (tablet_id()).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot.h"
#include "causality/operation.h"
#include "model/consistency.h"
#include "model/node_id.h"
#include "replication/request/partition_write.h"
#include "replication/request/request_level.h"
#include "replication/request/rows_request.h"
#include "rpc/message.h"
#include "rpc/verb.h"
#include "storage/ids/key_range.h"
#include "storage/ids/table_id.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

// How a replica refuses what is of another epoch than its own: nothing was executed, and who asks
// again by newer metadata may be answered. No other error of a request for rows has this code.
inline constexpr base::Errc kStale = base::Errc::locked;
inline bool is_stale(const base::Error& error) {
  return error.code() == kStale;
}

struct WriteMessage {
  causality::Epoch epoch;
  model::Consistency level = model::Consistency::one;
  PartitionWrite write;
};
struct WriteReply {
  // It was minted here and is durable; false if an explicit timestamp won in no cell.
  bool minted = true;
  // Whether the level was met in time.
  bool met = false;
  LevelReport report;
  // What was minted, without its cells and ranges: what a client has seen that wrote it.
  std::optional<causality::Delta> delta = {};
  friend bool operator==(const WriteReply&, const WriteReply&) = default;
};

struct ApplyMessage {
  causality::Epoch epoch;
  storage::TableId table;
  base::Bytes partition;
  causality::Delta delta;
};
// Durable at the receiver, or it was before.
struct ApplyReply {
  friend bool operator==(const ApplyReply&, const ApplyReply&) = default;
};

struct RowName {
  base::Bytes partition;
  base::Bytes row;
  friend bool operator==(const RowName&, const RowName&) = default;
};
struct ReadMessage {
  // A reader asks again for what did not fit into an answer.
  static constexpr std::size_t kRowsMax = 4096;

  causality::Epoch epoch;
  storage::TableId table;
  // All of one partition, and to be read as they were at one moment; otherwise each for itself.
  bool at_one_moment = false;
  // What a reader would see of them is enough, as a digest (merge/answer_digest.h).
  bool wants_digest = false;
  std::vector<RowName> rows;
};
struct ReadReply {
  // Of the first ones of the rows asked for, at least one; in their order.
  std::vector<storage::RowRead> rows;
  // In place of the rows, where that was asked for and can be told of them; and the latest of their
  // wall times.
  std::optional<base::Hash128> digest = {};
  causality::WallTime digest_wall = {};
};

struct ScanMessage {
  causality::Epoch epoch;
  RowsRequest request;        // without its tablet: its partitions lie in one
  bool wants_digest = false;  // as in ReadMessage
};
// Answered with a RowsAnswer.

struct ClockMessage {
  causality::Epoch epoch;
  storage::TableId table;
  base::Bytes partition;
};
struct ClockReply {
  causality::Clock clock;
  // No less than the timestamp of any unstable mutation of the partition.
  causality::Timestamp floor = causality::kTimestampMin;
};

// What of one partition the replica of a node lacks that has this clock: the receiver sends it
// there itself, as who minted it would (ApplyMessage).
struct RepairMessage {
  causality::Epoch epoch;
  storage::TableId table;
  base::Bytes partition;
  model::NodeId to;
  causality::Clock clock;
};
struct RepairReply {
  std::uint32_t applied = 0;
  // False: so much is lacking that not all of it was looked at.
  bool complete = true;
  friend bool operator==(const RepairReply&, const RepairReply&) = default;
};

// What a replica of the sender has seen, and keeps through a power loss (R4).
struct AnnouncedClock {
  storage::TabletId tablet;
  causality::Epoch epoch;
  // Another number each time that the replica begins to listen: it then has to be told everything.
  std::uint64_t life = 0;
  causality::Clock clock;
  friend bool operator==(const AnnouncedClock&, const AnnouncedClock&) = default;
};
struct AnnounceMessage {
  static constexpr std::size_t kClocksMax = 1024;

  // The sender's, when it had these clocks.
  causality::WallTime wall;
  // Ascending by tablet, each once; not empty.
  std::vector<AnnouncedClock> clocks;
  friend bool operator==(const AnnounceMessage&, const AnnounceMessage&) = default;
};
struct AnnounceReply {
  // By clock: the life of the replica that knows it now; none if it was not taken, as the receiver
  // holds no such tablet or is in another epoch.
  std::vector<std::optional<std::uint64_t>> known;
  friend bool operator==(const AnnounceReply&, const AnnounceReply&) = default;
};

struct PullMessage {
  // What an answer may bring at most, whatever is asked for, beyond one mutation.
  static constexpr std::uint64_t kBytesMax = std::uint64_t{4} << 20;

  storage::TabletId tablet;
  causality::Epoch epoch;
  // What the sender has.
  causality::Clock clock;
  std::uint64_t bytes_max = kBytesMax;
  friend bool operator==(const PullMessage&, const PullMessage&) = default;
};
struct PulledMutation {
  storage::TableId table;
  base::Bytes partition;
  base::Bytes delta;  // encoded, and not looked at: causality::decode_delta
  friend bool operator==(const PulledMutation&, const PulledMutation&) = default;
};
// See storage::MissingMutations.
struct PullReply {
  static constexpr std::size_t kMutationsMax = std::size_t{1} << 18;

  std::vector<PulledMutation> mutations;
  bool complete = true;
  causality::Clock withheld;
  causality::Clock covered;
  friend bool operator==(const PullReply&, const PullReply&) = default;
};

// Asks for all that the receiver has of a tablet: it keeps it as it is now, for a while.
struct StreamOpenMessage {
  storage::TabletId tablet;
  causality::Epoch epoch;
  friend bool operator==(const StreamOpenMessage&, const StreamOpenMessage&) = default;
};
struct StreamedTable {
  storage::TableId table;
  bool has_entries = false;  // false: surely none
  friend bool operator==(const StreamedTable&, const StreamedTable&) = default;
};
// What taking all of it makes true: see storage::TabletClaim.
struct StreamOpenReply {
  static constexpr std::size_t kTablesMax = std::size_t{1} << 16;

  std::uint64_t stream = 0;
  causality::Clock clock;
  causality::Timestamp floor = causality::kTimestampMin;
  causality::WallTime dropped_before;
  causality::OperationTime newest_operation;
  std::vector<StreamedTable> tables;  // ascending
  friend bool operator==(const StreamOpenReply&, const StreamOpenReply&) = default;
};

// Asks for the next entries of one table. The same may be asked again.
struct StreamPageMessage {
  static constexpr std::uint64_t kBytesMax = std::uint64_t{4} << 20;

  storage::TabletId tablet;
  std::uint64_t stream = 0;
  storage::TableId table;
  // The key that the page before ended with; none: from the beginning.
  std::optional<base::Bytes> after;
  std::uint64_t bytes_max = kBytesMax;
  // Nothing more of the stream is asked for: the answer is empty.
  bool is_over = false;
  friend bool operator==(const StreamPageMessage&, const StreamPageMessage&) = default;
};
// An entry of a table (storage/entry/entry.h), whole.
struct StreamedEntry {
  base::Bytes key;
  std::uint16_t partition_size = 0;
  base::Bytes entry;  // encoded, and not looked at: storage::decode_entry
  friend bool operator==(const StreamedEntry&, const StreamedEntry&) = default;
};
struct StreamPageReply {
  static constexpr std::size_t kEntriesMax = std::size_t{1} << 16;

  // Strictly ascending by key, which is longer than its partition's part.
  std::vector<StreamedEntry> entries;
  bool complete = true;  // there are no more
  friend bool operator==(const StreamPageReply&, const StreamPageReply&) = default;
};

// Of answers that one message may bring.
inline constexpr std::size_t kAnswerRowsMax = 65536;

inline constexpr rpc::Method<WriteMessage, WriteReply> kWriteMethod{rpc::verbs::kWrite};
inline constexpr rpc::Method<ApplyMessage, ApplyReply> kApplyMethod{rpc::verbs::kApply};
inline constexpr rpc::Method<ReadMessage, ReadReply> kReadMethod{rpc::verbs::kRead};
inline constexpr rpc::Method<ScanMessage, RowsAnswer> kScanMethod{rpc::verbs::kScan};
inline constexpr rpc::Method<ClockMessage, ClockReply> kClockMethod{rpc::verbs::kClock};
inline constexpr rpc::Method<RepairMessage, RepairReply> kRepairMethod{rpc::verbs::kRepair};
inline constexpr rpc::Method<AnnounceMessage, AnnounceReply> kAnnounceMethod{rpc::verbs::kAnnounce};
inline constexpr rpc::Method<PullMessage, PullReply> kPullMethod{rpc::verbs::kPull};
inline constexpr rpc::Method<StreamOpenMessage, StreamOpenReply> kStreamOpenMethod{
    rpc::verbs::kStreamOpen};
inline constexpr rpc::Method<StreamPageMessage, StreamPageReply> kStreamPageMethod{
    rpc::verbs::kStreamPage};

}  // namespace helenus::replication

namespace helenus::rpc {

#define HELENUS_CODEC(Message)                                                               \
  template <>                                                                                \
  struct Codec<replication::Message> {                                                       \
    static base::Bytes encode(const replication::Message& message, ProtocolVersion version); \
    static base::Result<replication::Message> decode(const base::Bytes& bytes,               \
                                                     ProtocolVersion version);               \
  }
HELENUS_CODEC(WriteMessage);
HELENUS_CODEC(WriteReply);
HELENUS_CODEC(ApplyMessage);
HELENUS_CODEC(ApplyReply);
HELENUS_CODEC(ReadMessage);
HELENUS_CODEC(ReadReply);
HELENUS_CODEC(ScanMessage);
HELENUS_CODEC(RowsAnswer);
HELENUS_CODEC(ClockMessage);
HELENUS_CODEC(ClockReply);
HELENUS_CODEC(RepairMessage);
HELENUS_CODEC(RepairReply);
HELENUS_CODEC(AnnounceMessage);
HELENUS_CODEC(AnnounceReply);
HELENUS_CODEC(PullMessage);
HELENUS_CODEC(PullReply);
HELENUS_CODEC(StreamOpenMessage);
HELENUS_CODEC(StreamOpenReply);
HELENUS_CODEC(StreamPageMessage);
HELENUS_CODEC(StreamPageReply);
#undef HELENUS_CODEC

}  // namespace helenus::rpc
