// The bytes of what replicas tell each other: docs/formats/replication-messages.md.
#include <utility>

#include "causality/codec.h"
#include "replication/messages/codec_parts.h"
#include "replication/messages/messages.h"

namespace helenus::rpc {

using base::Bytes;
using base::Result;
using causality::Timestamp;
using causality::WallTime;
using namespace replication;  // NOLINT: the messages are its own
using codec::finished;
using codec::Reader;
using codec::Writer;

Bytes Codec<AnnounceMessage>::encode(const AnnounceMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().signed_varint(message.wall.value());
  writer.out().varint(message.clocks.size());
  for (const AnnouncedClock& each : message.clocks) {
    writer.out().varint(each.tablet.value());
    writer.out().varint(each.epoch.value());
    writer.out().u64_le(each.life);
    writer.nested(each.clock);
  }
  return writer.finish();
}

Result<AnnounceMessage> Codec<AnnounceMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  AnnounceMessage message;
  message.wall = WallTime{reader.in().signed_varint()};
  constexpr std::size_t kClockBytesMin = 12;
  const std::size_t count = reader.in().count(kClockBytesMin);
  if (count == 0 || count > AnnounceMessage::kClocksMax) {
    reader.in().fail("too few or too many clocks");
  }
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    AnnouncedClock each;
    each.tablet = reader.tablet();
    each.epoch = reader.epoch();
    each.life = reader.in().u64_le();
    each.clock = reader.nested(&causality::decode_clock);
    if (i > 0 && each.tablet <= message.clocks.back().tablet)
      reader.in().fail("tablets disordered");
    message.clocks.push_back(std::move(each));
  }
  return finished(reader, std::move(message));
}

Bytes Codec<AnnounceReply>::encode(const AnnounceReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().varint(reply.known.size());
  for (const auto& life : reply.known) {
    writer.flag(life.has_value());
    if (life) writer.out().u64_le(*life);
  }
  return writer.finish();
}

Result<AnnounceReply> Codec<AnnounceReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  AnnounceReply reply;
  const std::size_t count = reader.in().count(1);
  if (count > AnnounceMessage::kClocksMax) reader.in().fail("too many clocks");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    std::optional<std::uint64_t> life;
    if (reader.flag()) life = reader.in().u64_le();
    reply.known.push_back(life);
  }
  return finished(reader, std::move(reply));
}

Bytes Codec<PullMessage>::encode(const PullMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().varint(message.epoch.value());
  writer.nested(message.clock);
  writer.out().varint(message.bytes_max);
  return writer.finish();
}

Result<PullMessage> Codec<PullMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  PullMessage message;
  message.tablet = reader.tablet();
  message.epoch = reader.epoch();
  message.clock = reader.nested(&causality::decode_clock);
  message.bytes_max = reader.in().varint();
  if (message.bytes_max == 0 || message.bytes_max > PullMessage::kBytesMax) {
    reader.in().fail("too few or too many bytes");
  }
  return finished(reader, std::move(message));
}

Bytes Codec<PullReply>::encode(const PullReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.complete);
  writer.nested(reply.withheld);
  writer.nested(reply.covered);
  writer.out().varint(reply.mutations.size());
  for (const PulledMutation& mutation : reply.mutations) {
    writer.out().varint(mutation.table.value());
    writer.bytes(mutation.partition);
    writer.bytes(mutation.delta);
  }
  return writer.finish();
}

Result<PullReply> Codec<PullReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  PullReply reply;
  reply.complete = reader.flag();
  reply.withheld = reader.nested(&causality::decode_clock);
  reply.covered = reader.nested(&causality::decode_clock);
  constexpr std::size_t kMutationBytesMin = 3;
  const std::size_t count = reader.in().count(kMutationBytesMin);
  if (count > PullReply::kMutationsMax) reader.in().fail("too many mutations");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    PulledMutation mutation;
    mutation.table = reader.table();
    mutation.partition = reader.bytes();
    mutation.delta = reader.bytes();
    reply.mutations.push_back(std::move(mutation));
  }
  return finished(reader, std::move(reply));
}

// ---- Streams of tablets ----

Bytes Codec<StreamOpenMessage>::encode(const StreamOpenMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().varint(message.epoch.value());
  return writer.finish();
}

Result<StreamOpenMessage> Codec<StreamOpenMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamOpenMessage message;
  message.tablet = reader.tablet();
  message.epoch = reader.epoch();
  return finished(reader, message);
}

Bytes Codec<StreamOpenReply>::encode(const StreamOpenReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().u64_le(reply.stream);
  writer.nested(reply.clock);
  writer.out().signed_varint(reply.floor.value());
  writer.out().signed_varint(reply.dropped_before.value());
  writer.out().signed_varint(reply.newest_operation.value());
  writer.out().varint(reply.tables.size());
  for (const StreamedTable& each : reply.tables) {
    writer.out().varint(each.table.value());
    writer.flag(each.has_entries);
  }
  return writer.finish();
}

Result<StreamOpenReply> Codec<StreamOpenReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamOpenReply reply;
  reply.stream = reader.in().u64_le();
  reply.clock = reader.nested(&causality::decode_clock);
  reply.floor = Timestamp{reader.in().signed_varint()};
  reply.dropped_before = WallTime{reader.in().signed_varint()};
  reply.newest_operation = causality::OperationTime{reader.in().signed_varint()};
  const std::size_t count = reader.in().count(2);
  if (count > StreamOpenReply::kTablesMax) reader.in().fail("too many tables");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    StreamedTable each;
    each.table = reader.table();
    each.has_entries = reader.flag();
    if (i > 0 && each.table <= reply.tables.back().table) reader.in().fail("tables disordered");
    reply.tables.push_back(each);
  }
  return finished(reader, std::move(reply));
}

Bytes Codec<StreamPageMessage>::encode(const StreamPageMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.tablet.value());
  writer.out().u64_le(message.stream);
  writer.out().varint(message.table.value());
  writer.maybe(message.after);
  writer.out().varint(message.bytes_max);
  writer.flag(message.is_over);
  return writer.finish();
}

Result<StreamPageMessage> Codec<StreamPageMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamPageMessage message;
  message.tablet = reader.tablet();
  message.stream = reader.in().u64_le();
  message.table = reader.table();
  message.after = reader.maybe();
  message.bytes_max = reader.in().varint();
  message.is_over = reader.flag();
  if (message.bytes_max == 0 || message.bytes_max > StreamPageMessage::kBytesMax) {
    reader.in().fail("too few or too many bytes");
  }
  return finished(reader, std::move(message));
}

Bytes Codec<StreamPageReply>::encode(const StreamPageReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.complete);
  writer.out().varint(reply.entries.size());
  for (const StreamedEntry& each : reply.entries) {
    writer.bytes(each.key);
    writer.out().varint(each.partition_size);
    writer.bytes(each.entry);
  }
  return writer.finish();
}

Result<StreamPageReply> Codec<StreamPageReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  StreamPageReply reply;
  reply.complete = reader.flag();
  constexpr std::size_t kEntryBytesMin = 5;
  const std::size_t count = reader.in().count(kEntryBytesMin);
  if (count > StreamPageReply::kEntriesMax) reader.in().fail("too many entries");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    StreamedEntry each;
    each.key = reader.bytes();
    const std::uint64_t partition_size = reader.in().varint();
    each.entry = reader.bytes();
    if (partition_size == 0 || partition_size >= each.key.size() ||
        each.key.size() > std::numeric_limits<std::uint16_t>::max()) {
      reader.in().fail("a key of the wrong size");
    }
    each.partition_size = static_cast<std::uint16_t>(partition_size);
    if (i > 0 && each.key <= reply.entries.back().key) reader.in().fail("keys disordered");
    reply.entries.push_back(std::move(each));
  }
  return finished(reader, std::move(reply));
}

}  // namespace helenus::rpc
