// What a coordinator asks replicas on other nodes, and what a replica that minted asks its peers.
//
//   write   mint this here, and answer at that level      coordinator ▸ one replica
//   apply   a delta that was minted elsewhere             replica that minted ▸ the others
//   read    rows by their keys                            coordinator ▸ replicas
//   scan    rows of a tablet, one after the other         coordinator ▸ replicas
//   clock   what the replica has seen, for a delete       replica that mints ▸ others
//
// Partitions name their keyspace and token themselves (model/partition_key.h): so a message needs
// no tablet, only the epoch in which its sender thinks that the receiver is a replica (S10). A
// receiver that is in another epoch answers Errc::refused: not executed.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "causality/clock.h"
#include "causality/delta.h"
#include "causality/dot.h"
#include "model/consistency.h"
#include "replication/request/partition_write.h"
#include "replication/request/request_level.h"
#include "replication/request/rows_request.h"
#include "rpc/message.h"
#include "rpc/verb.h"
#include "storage/ids/table_id.h"
#include "storage/read/row_read.h"

namespace helenus::replication {

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
  std::vector<RowName> rows;
};
struct ReadReply {
  // Of the first ones of the rows asked for, at least one; in their order.
  std::vector<storage::RowRead> rows;
};

struct ScanMessage {
  causality::Epoch epoch;
  RowsRequest request;  // without its tablet: its partitions lie in one
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

// Of answers that one message may bring.
inline constexpr std::size_t kAnswerRowsMax = 65536;

inline constexpr rpc::Method<WriteMessage, WriteReply> kWriteMethod{rpc::verbs::kWrite};
inline constexpr rpc::Method<ApplyMessage, ApplyReply> kApplyMethod{rpc::verbs::kApply};
inline constexpr rpc::Method<ReadMessage, ReadReply> kReadMethod{rpc::verbs::kRead};
inline constexpr rpc::Method<ScanMessage, RowsAnswer> kScanMethod{rpc::verbs::kScan};
inline constexpr rpc::Method<ClockMessage, ClockReply> kClockMethod{rpc::verbs::kClock};

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
#undef HELENUS_CODEC

}  // namespace helenus::rpc
