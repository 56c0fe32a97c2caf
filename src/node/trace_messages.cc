// The bytes of what nodes tell each other of traces: docs/formats/traces.md.
#include "node/trace_messages.h"

#include <algorithm>
#include <utility>

#include "base/codec.h"
#include "membership/application_state.h"
#include "model/utf8.h"

namespace helenus::rpc {

using base::Bytes;
using base::Decoder;
using base::Encoder;
using base::Result;
using cql::Traces;
using node::TracesReply;
using node::TracesRequest;

namespace {

constexpr std::uint8_t kFormatVersion = 1;
// What a session, an event and a parameter take at least.
constexpr std::size_t kSessionBytesMin = 16 + 6;
constexpr std::size_t kEventBytesMin = 16 + 2;
constexpr std::size_t kParameterBytesMin = 2;

void put_uuid(Encoder& out, const base::Uuid& uuid) {
  out.raw(uuid.bytes());
}

base::Uuid get_uuid(Decoder& in) {
  const base::ByteView bytes = in.raw(base::Uuid::Octets().size());
  base::Uuid::Octets octets{};
  if (bytes.size() == octets.size()) std::ranges::copy(bytes, octets.begin());
  return base::Uuid(octets);
}

std::int32_t get_int(Decoder& in) {
  const std::int64_t value = in.signed_varint();
  if (!std::in_range<std::int32_t>(value)) {
    in.fail("a number that is out of range");
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

std::string get_text(Decoder& in) {
  const std::string_view text = in.prefixed_text();
  if (text.size() > Traces::kTextSizeMax) in.fail("a text of a trace that is too long");
  if (!model::is_utf8(base::as_bytes(text))) in.fail("a text of a trace that is no UTF-8");
  return in.ok() ? std::string(text) : std::string();
}

runtime::Address get_address(Decoder& in) {
  const auto address = membership::decode_address(in.prefixed());
  if (address) return *address;
  in.fail("what is no address");
  return {};
}

void put_session(Encoder& out, const Traces::Session& session) {
  put_uuid(out, session.id);
  out.prefixed(membership::encode_address(session.client).view());
  out.prefixed(std::string_view(session.command));
  out.prefixed(std::string_view(session.request));
  out.varint(session.parameters.size());
  for (const auto& [name, value] : session.parameters) {
    out.prefixed(std::string_view(name));
    out.prefixed(std::string_view(value));
  }
  out.signed_varint(session.started_at.since_origin().count());
  out.signed_varint(session.duration_us);
  out.varint(session.events.size());
  for (const Traces::Event& event : session.events) {
    put_uuid(out, event.id);
    out.prefixed(std::string_view(event.activity));
    out.signed_varint(event.elapsed_us);
  }
}

Traces::Session get_session(Decoder& in) {
  Traces::Session session;
  session.id = get_uuid(in);
  session.client = get_address(in);
  session.command = get_text(in);
  session.request = get_text(in);
  for (std::size_t left = in.count(kParameterBytesMin); left > 0 && in.ok(); --left) {
    std::string name = get_text(in);
    session.parameters[std::move(name)] = get_text(in);
  }
  session.started_at = runtime::WallTime(runtime::Duration(in.signed_varint()));
  session.duration_us = get_int(in);
  for (std::size_t left = in.count(kEventBytesMin); left > 0 && in.ok(); --left) {
    Traces::Event event;
    event.id = get_uuid(in);
    event.activity = get_text(in);
    event.elapsed_us = get_int(in);
    session.events.push_back(std::move(event));
  }
  return session;
}

void check_version(Decoder& in) {
  if (in.u8() != kFormatVersion) in.fail("a version of traces that is not known");
}

}  // namespace

Bytes Codec<TracesRequest>::encode(const TracesRequest&, ProtocolVersion) {
  base::Buffer buffer;
  Encoder(buffer).u8(kFormatVersion);
  return std::move(buffer).freeze();
}

Result<TracesRequest> Codec<TracesRequest>::decode(const Bytes& bytes, ProtocolVersion) {
  Decoder in(bytes);
  check_version(in);
  TRY_VOID(in.finish());
  return TracesRequest{};
}

Bytes Codec<TracesReply>::encode(const TracesReply& reply, ProtocolVersion) {
  base::Buffer buffer;
  Encoder out(buffer);
  out.u8(kFormatVersion);
  out.prefixed(membership::encode_address(reply.coordinator).view());
  out.varint(reply.sessions.size());
  for (const Traces::Session& session : reply.sessions) put_session(out, session);
  return std::move(buffer).freeze();
}

Result<TracesReply> Codec<TracesReply>::decode(const Bytes& bytes, ProtocolVersion) {
  Decoder in(bytes);
  check_version(in);
  TracesReply reply;
  reply.coordinator = get_address(in);
  for (std::size_t left = in.count(kSessionBytesMin); left > 0 && in.ok(); --left) {
    reply.sessions.push_back(get_session(in));
    reply.sessions.back().coordinator = reply.coordinator;
  }
  TRY_VOID(in.finish());
  return reply;
}

}  // namespace helenus::rpc
