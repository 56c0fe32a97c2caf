// The bytes of messages about rows: docs/formats/replication-messages.md.
#include "causality/codec.h"

#include <utility>

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

namespace {

void put(Writer& writer, const storage::RowRead& read) {
  writer.store(read.partition);
  writer.nested(read.clock);
  writer.out().signed_varint(read.floor.value());
  writer.out().signed_varint(read.wall.value());
  writer.flag(read.is_newer_than_clock);
}

storage::RowRead get_read(Reader& reader) {
  storage::RowRead read;
  read.partition = reader.store();
  read.clock = reader.nested(&causality::decode_clock);
  read.floor = Timestamp{reader.in().signed_varint()};
  read.wall = causality::WallTime{reader.in().signed_varint()};
  read.is_newer_than_clock = reader.flag();
  return read;
}

}  // namespace

Bytes Codec<WriteMessage>::encode(const WriteMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().u16_le(static_cast<std::uint16_t>(message.level));
  writer.out().varint(message.write.table.value());
  writer.bytes(message.write.partition);
  writer.flag(message.write.explicit_timestamp);
  writer.flag(message.write.unites_clocks);
  writer.columns(message.write.columns.of_rows);
  writer.columns(message.write.columns.of_first);
  writer.mutation(message.write.mutation);
  return writer.finish();
}

Result<WriteMessage> Codec<WriteMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  WriteMessage message;
  message.epoch = reader.epoch();
  const auto level = model::consistency_from(reader.in().u16_le());
  if (!level) reader.in().fail("a consistency level that there is not");
  message.level = level.value_or(model::Consistency::one);
  message.write.table = reader.table();
  message.write.partition = reader.bytes();
  message.write.explicit_timestamp = reader.flag();
  message.write.unites_clocks = reader.flag();
  message.write.columns.of_rows = reader.columns();
  message.write.columns.of_first = reader.columns();
  message.write.mutation = reader.mutation();
  return finished(reader, std::move(message));
}

Bytes Codec<WriteReply>::encode(const WriteReply& reply, ProtocolVersion) {
  Writer writer;
  writer.flag(reply.minted);
  writer.flag(reply.met);
  writer.out().varint(reply.report.required);
  writer.out().varint(reply.report.received);
  writer.out().varint(reply.report.failed);
  writer.flag(reply.delta.has_value());
  if (reply.delta) writer.head(*reply.delta);
  return writer.finish();
}

Result<WriteReply> Codec<WriteReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  WriteReply reply;
  reply.minted = reader.flag();
  reply.met = reader.flag();
  reply.report.required = reader.small();
  reply.report.received = reader.small();
  reply.report.failed = reader.small();
  if (reader.flag()) reply.delta = reader.head();
  return finished(reader, reply);
}

Bytes Codec<ApplyMessage>::encode(const ApplyMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  writer.nested(message.delta);
  return writer.finish();
}

Result<ApplyMessage> Codec<ApplyMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ApplyMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  message.delta = reader.nested(&causality::decode_delta);
  return finished(reader, std::move(message));
}

Bytes Codec<ApplyReply>::encode(const ApplyReply&, ProtocolVersion) {
  return Writer().finish();
}

Result<ApplyReply> Codec<ApplyReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  return finished(reader, ApplyReply());
}

Bytes Codec<ReadMessage>::encode(const ReadMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.flag(message.at_one_moment);
  writer.flag(message.wants_digest);
  writer.out().varint(message.rows.size());
  for (const RowName& name : message.rows) {
    writer.bytes(name.partition);
    writer.bytes(name.row);
  }
  return writer.finish();
}

Result<ReadMessage> Codec<ReadMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ReadMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.at_one_moment = reader.flag();
  message.wants_digest = reader.flag();
  const std::size_t count = reader.in().count(2);
  if (count == 0 || count > ReadMessage::kRowsMax) reader.in().fail("too few or too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    RowName name;
    name.partition = reader.bytes();
    name.row = reader.bytes();
    message.rows.push_back(std::move(name));
  }
  return finished(reader, std::move(message));
}

Bytes Codec<ReadReply>::encode(const ReadReply& reply, ProtocolVersion) {
  Writer writer;
  writer.digest(reply.digest);
  if (reply.digest) {
    writer.out().signed_varint(reply.digest_wall.value());
    return writer.finish();
  }
  writer.out().varint(reply.rows.size());
  for (const storage::RowRead& read : reply.rows) put(writer, read);
  return writer.finish();
}

Result<ReadReply> Codec<ReadReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ReadReply reply;
  reply.digest = reader.digest();
  if (reply.digest) {
    reply.digest_wall = WallTime{reader.in().signed_varint()};
    return finished(reader, std::move(reply));
  }
  constexpr std::size_t kReadBytesMin = 4;
  const std::size_t count = reader.in().count(kReadBytesMin);
  if (count > ReadMessage::kRowsMax) reader.in().fail("too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) reply.rows.push_back(get_read(reader));
  return finished(reader, std::move(reply));
}

Bytes Codec<ScanMessage>::encode(const ScanMessage& message, ProtocolVersion) {
  Writer writer;
  const RowsRequest& request = message.request;
  writer.out().varint(message.epoch.value());
  writer.out().varint(request.table.value());
  writer.bytes(request.partitions.from);
  writer.maybe(request.partitions.to);
  writer.out().u8(static_cast<std::uint8_t>(request.from));
  writer.bytes(request.partition);
  writer.bytes(request.row);
  writer.flag(request.backwards);
  writer.out().varint(request.rows_max);
  writer.flag(request.at_one_moment);
  writer.flag(message.wants_digest);
  return writer.finish();
}

Result<ScanMessage> Codec<ScanMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ScanMessage message;
  RowsRequest& request = message.request;
  message.epoch = reader.epoch();
  request.table = reader.table();
  request.partitions.from = reader.bytes();
  request.partitions.to = reader.maybe();
  const std::uint8_t from = reader.in().u8();
  if (from > static_cast<std::uint8_t>(RowsRequest::From::edge)) {
    reader.in().fail("a beginning that there is not");
  }
  request.from = static_cast<RowsRequest::From>(from);
  request.partition = reader.bytes();
  request.row = reader.bytes();
  request.backwards = reader.flag();
  const std::uint64_t rows_max = reader.in().varint();
  if (rows_max == 0 || rows_max > kAnswerRowsMax) reader.in().fail("too few or too many rows");
  request.rows_max = static_cast<std::size_t>(rows_max);
  request.at_one_moment = reader.flag();
  message.wants_digest = reader.flag();
  return finished(reader, std::move(message));
}

Bytes Codec<RowsAnswer>::encode(const RowsAnswer& answer, ProtocolVersion) {
  Writer writer;
  writer.digest(answer.digest);
  writer.flag(answer.more);
  writer.out().signed_varint(answer.wall.value());
  writer.flag(answer.is_newer_than_clock);
  if (answer.digest) return writer.finish();
  writer.nested(answer.clock);
  writer.out().varint(answer.rows.size());
  for (const RowsAnswer::Row& row : answer.rows) {
    writer.bytes(row.partition);
    writer.bytes(row.row);
    writer.store(row.stored);
  }
  return writer.finish();
}

Result<RowsAnswer> Codec<RowsAnswer>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RowsAnswer answer;
  answer.digest = reader.digest();
  answer.more = reader.flag();
  answer.wall = causality::WallTime{reader.in().signed_varint()};
  answer.is_newer_than_clock = reader.flag();
  if (answer.digest) return finished(reader, std::move(answer));
  answer.clock = reader.nested(&causality::decode_clock);
  constexpr std::size_t kRowBytesMin = 4;
  const std::size_t count = reader.in().count(kRowBytesMin);
  if (count > kAnswerRowsMax) reader.in().fail("too many rows");
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    RowsAnswer::Row row;
    row.partition = reader.bytes();
    row.row = reader.bytes();
    row.stored = reader.store();
    answer.rows.push_back(std::move(row));
  }
  return finished(reader, std::move(answer));
}

Bytes Codec<ClockMessage>::encode(const ClockMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  return writer.finish();
}

Result<ClockMessage> Codec<ClockMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ClockMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  return finished(reader, std::move(message));
}

Bytes Codec<ClockReply>::encode(const ClockReply& reply, ProtocolVersion) {
  Writer writer;
  writer.nested(reply.clock);
  writer.out().signed_varint(reply.floor.value());
  return writer.finish();
}

Result<ClockReply> Codec<ClockReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  ClockReply reply;
  reply.clock = reader.nested(&causality::decode_clock);
  reply.floor = Timestamp{reader.in().signed_varint()};
  return finished(reader, std::move(reply));
}

Bytes Codec<RepairMessage>::encode(const RepairMessage& message, ProtocolVersion) {
  Writer writer;
  writer.out().varint(message.epoch.value());
  writer.out().varint(message.table.value());
  writer.bytes(message.partition);
  writer.out().raw(message.to.value().bytes());
  writer.nested(message.clock);
  return writer.finish();
}

Result<RepairMessage> Codec<RepairMessage>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RepairMessage message;
  message.epoch = reader.epoch();
  message.table = reader.table();
  message.partition = reader.bytes();
  base::Uuid::Octets node{};
  const base::ByteView raw = reader.in().raw(node.size());
  if (raw.size() == node.size()) std::ranges::copy(raw, node.begin());
  message.to = model::NodeId(base::Uuid(node));
  message.clock = reader.nested(&causality::decode_clock);
  return finished(reader, std::move(message));
}

Bytes Codec<RepairReply>::encode(const RepairReply& reply, ProtocolVersion) {
  Writer writer;
  writer.out().varint(reply.applied);
  writer.flag(reply.complete);
  return writer.finish();
}

Result<RepairReply> Codec<RepairReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Reader reader(bytes);
  RepairReply reply;
  reply.applied = reader.small();
  reply.complete = reader.flag();
  return finished(reader, reply);
}

// ---- Anti-entropy ----

}  // namespace helenus::rpc
