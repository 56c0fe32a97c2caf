#include "cql/protocol/request.h"

#include <algorithm>
#include <array>

#include <openssl/evp.h>

namespace helenus::cql::protocol {

using base::Bytes;
using base::ByteView;
using base::Decoder;
using base::Encoder;

namespace {

constexpr std::uint8_t kParameterValues = 0x01;
constexpr std::uint8_t kParameterSkipMetadata = 0x02;
constexpr std::uint8_t kParameterPageSize = 0x04;
constexpr std::uint8_t kParameterPagingState = 0x08;
constexpr std::uint8_t kParameterSerialConsistency = 0x10;
constexpr std::uint8_t kParameterTimestamp = 0x20;
constexpr std::uint8_t kParameterNames = 0x40;
// Of version 5, whose flags have four bytes.
constexpr std::uint32_t kParameterKeyspace = 0x80;
constexpr std::uint32_t kParameterNow = 0x100;
constexpr std::uint32_t kPrepareKeyspace = 0x01;
// What a batch has no place for.
constexpr std::uint8_t kParametersNotOfBatches =
    kParameterValues | kParameterPageSize | kParameterPagingState | kParameterNames;

constexpr std::size_t kShortSize = sizeof(std::uint16_t);
constexpr std::size_t kIntSize = sizeof(std::uint32_t);
// kind, an empty text or id, no values
constexpr std::size_t kBatchStatementSizeMin = 1 + kShortSize + kShortSize;

constexpr std::array<std::string_view, kEventKinds> kEventNames = {
    "TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"};

std::uint32_t get_flags(Decoder& in, std::uint8_t version) {
  return version >= kVersionOfSegments ? in.u32_be() : in.u8();
}

void put_flags(Encoder& out, std::uint32_t flags, std::uint8_t version) {
  if (version >= kVersionOfSegments) {
    out.u32_be(flags);
  } else {
    out.u8(static_cast<std::uint8_t>(flags));
  }
}

Values get_values(Decoder& in) {
  Values values(get_short_count(in, kIntSize));
  for (Value& value : values) value = get_value(in);
  return values;
}

void get_named_values(Decoder& in, QueryParameters& parameters) {
  const std::size_t count = get_short_count(in, kShortSize + kIntSize);
  parameters.names.reserve(count);
  parameters.values.reserve(count);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    parameters.names.push_back(get_string(in));
    parameters.values.push_back(get_value(in));
  }
}

QueryParameters get_parameters(Decoder& in, std::uint8_t version) {
  QueryParameters parameters;
  parameters.consistency = get_consistency(in);
  const std::uint32_t flags = get_flags(in, version);
  if ((flags & kParameterValues) != 0) {
    if ((flags & kParameterNames) != 0) {
      get_named_values(in, parameters);
    } else {
      parameters.values = get_values(in);
    }
  }
  parameters.skip_metadata = (flags & kParameterSkipMetadata) != 0;
  if ((flags & kParameterPageSize) != 0) {
    parameters.page_size = static_cast<std::int32_t>(in.u32_be());
  }
  if ((flags & kParameterPagingState) != 0) parameters.paging_state = get_bytes(in);
  if ((flags & kParameterSerialConsistency) != 0) {
    parameters.serial_consistency = get_consistency(in);
  }
  if ((flags & kParameterTimestamp) != 0) {
    parameters.default_timestamp_us = static_cast<std::int64_t>(in.u64_be());
  }
  if (version < kVersionOfSegments) return parameters;
  if ((flags & kParameterKeyspace) != 0) parameters.keyspace = get_string(in);
  if ((flags & kParameterNow) != 0) {
    parameters.now_seconds = static_cast<std::int32_t>(in.u32_be());
  }
  return parameters;
}

void put_values(Encoder& out, std::span<const Value> values) {
  ASSERT(values.size() <= kShortSizeMax);
  out.u16_be(static_cast<std::uint16_t>(values.size()));
  for (const Value& value : values) put_value(out, value);
}

void put_named_values(Encoder& out, const QueryParameters& parameters) {
  ASSERT(parameters.names.size() == parameters.values.size() &&
         parameters.values.size() <= kShortSizeMax);
  out.u16_be(static_cast<std::uint16_t>(parameters.values.size()));
  for (std::size_t index = 0; index < parameters.values.size(); ++index) {
    put_string(out, parameters.names[index]);
    put_value(out, parameters.values[index]);
  }
}

void put_parameters(Encoder& out, const QueryParameters& parameters, std::uint8_t version) {
  const auto flag = [](bool present, unsigned bit) { return present ? bit : 0U; };
  const bool named = !parameters.names.empty();
  const unsigned flags =
      flag(!parameters.values.empty(), kParameterValues) | flag(named, kParameterNames) |
      flag(parameters.skip_metadata, kParameterSkipMetadata) |
      flag(parameters.page_size.has_value(), kParameterPageSize) |
      flag(parameters.paging_state.has_value(), kParameterPagingState) |
      flag(parameters.serial_consistency.has_value(), kParameterSerialConsistency) |
      flag(parameters.default_timestamp_us.has_value(), kParameterTimestamp) |
      flag(parameters.keyspace.has_value(), kParameterKeyspace) |
      flag(parameters.now_seconds.has_value(), kParameterNow);
  put_consistency(out, parameters.consistency);
  put_flags(out, flags, version);
  if (named) {
    put_named_values(out, parameters);
  } else if (!parameters.values.empty()) {
    put_values(out, parameters.values);
  }
  if (parameters.page_size) out.u32_be(static_cast<std::uint32_t>(*parameters.page_size));
  if (parameters.paging_state) put_bytes(out, parameters.paging_state);
  if (parameters.serial_consistency) put_consistency(out, *parameters.serial_consistency);
  if (parameters.default_timestamp_us) {
    out.u64_be(static_cast<std::uint64_t>(*parameters.default_timestamp_us));
  }
  if (version < kVersionOfSegments) return;
  if (parameters.keyspace) put_string(out, *parameters.keyspace);
  if (parameters.now_seconds) out.u32_be(static_cast<std::uint32_t>(*parameters.now_seconds));
}

StartupRequest get_startup(Decoder& in) {
  const std::size_t count = get_short_count(in, kShortSize + kShortSize);
  StartupRequest request;
  request.options.reserve(count);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    const std::string_view name = get_string(in);
    request.options.emplace_back(name, get_string(in));
  }
  return request;
}

RegisterRequest get_register(Decoder& in) {
  RegisterRequest request;
  for (const std::string_view name : get_string_list(in)) {
    const auto kind = event_kind_named(name);
    if (!kind) {
      in.fail("an event to register for is unknown");
      break;
    }
    request.kinds.push_back(*kind);
  }
  return request;
}

BatchStatement get_batch_statement(Decoder& in) {
  BatchStatement statement;
  const std::uint8_t kind = in.u8();
  if (kind > 1) in.fail("a statement of a batch is neither text nor prepared");
  statement.prepared = kind == 1;
  if (statement.prepared) {
    statement.id = get_short_bytes(in);
  } else {
    statement.text = get_long_string(in);
  }
  statement.values = get_values(in);
  return statement;
}

BatchRequest get_batch(Decoder& in, std::uint8_t version) {
  BatchRequest request;
  const std::uint8_t type = in.u8();
  if (type > static_cast<std::uint8_t>(BatchType::counter))
    in.fail("the type of a batch is unknown");
  request.type = static_cast<BatchType>(type);
  const std::size_t count = get_short_count(in, kBatchStatementSizeMin);
  request.statements.reserve(count);
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    request.statements.push_back(get_batch_statement(in));
  }
  request.consistency = get_consistency(in);
  const std::uint32_t flags = get_flags(in, version);
  if ((flags & kParametersNotOfBatches) != 0) in.fail("a batch has flags that only queries have");
  if ((flags & kParameterSerialConsistency) != 0) request.serial_consistency = get_consistency(in);
  if ((flags & kParameterTimestamp) != 0) {
    request.default_timestamp_us = static_cast<std::int64_t>(in.u64_be());
  }
  if (version < kVersionOfSegments) return request;
  if ((flags & kParameterKeyspace) != 0) request.keyspace = get_string(in);
  if ((flags & kParameterNow) != 0) request.now_seconds = static_cast<std::int32_t>(in.u32_be());
  return request;
}

PrepareRequest get_prepare(Decoder& in, std::uint8_t version) {
  PrepareRequest request{.text = get_long_string(in)};
  if (version < kVersionOfSegments) return request;
  if ((in.u32_be() & kPrepareKeyspace) != 0) request.keyspace = get_string(in);
  return request;
}

ExecuteRequest get_execute(Decoder& in, std::uint8_t version) {
  ExecuteRequest request{.id = get_short_bytes(in), .parameters = {}};
  if (version >= kVersionOfSegments) request.metadata_id = get_short_bytes(in);
  request.parameters = get_parameters(in, version);
  return request;
}

RequestMessage get_message(Opcode opcode, Decoder& in, std::uint8_t version) {
  switch (opcode) {
    case Opcode::startup:
      return get_startup(in);
    case Opcode::options:
      return OptionsRequest();
    case Opcode::query: {
      const std::string_view text = get_long_string(in);
      return QueryRequest{.text = text, .parameters = get_parameters(in, version)};
    }
    case Opcode::prepare:
      return get_prepare(in, version);
    case Opcode::execute:
      return get_execute(in, version);
    case Opcode::registration:
      return get_register(in);
    case Opcode::batch:
      return get_batch(in, version);
    case Opcode::auth_response:
      return AuthResponseRequest{.token = get_bytes(in)};
    default:
      UNREACHABLE("opcode {} is no request's", static_cast<unsigned>(opcode));
  }
}

struct PutMessage {
  Encoder& out;
  std::uint8_t version;

  void operator()(const OptionsRequest&) {}
  void operator()(const StartupRequest& request) {
    ASSERT(request.options.size() <= kShortSizeMax);
    out.u16_be(static_cast<std::uint16_t>(request.options.size()));
    for (const auto& [name, value] : request.options) {
      put_string(out, name);
      put_string(out, value);
    }
  }
  void operator()(const QueryRequest& request) {
    put_long_string(out, request.text);
    put_parameters(out, request.parameters, version);
  }
  void operator()(const PrepareRequest& request) {
    put_long_string(out, request.text);
    if (version < kVersionOfSegments) return;
    out.u32_be(request.keyspace ? kPrepareKeyspace : 0);
    if (request.keyspace) put_string(out, *request.keyspace);
  }
  void operator()(const ExecuteRequest& request) {
    put_short_bytes(out, request.id);
    if (version >= kVersionOfSegments) {
      put_short_bytes(out, request.metadata_id.value_or(ByteView()));
    }
    put_parameters(out, request.parameters, version);
  }
  void operator()(const RegisterRequest& request) {
    ASSERT(request.kinds.size() <= kShortSizeMax);
    out.u16_be(static_cast<std::uint16_t>(request.kinds.size()));
    for (const EventKind kind : request.kinds) put_string(out, name_of(kind));
  }
  void operator()(const BatchRequest& request) {
    ASSERT(request.statements.size() <= kShortSizeMax);
    out.u8(static_cast<std::uint8_t>(request.type));
    out.u16_be(static_cast<std::uint16_t>(request.statements.size()));
    for (const BatchStatement& statement : request.statements) {
      out.u8(statement.prepared ? 1 : 0);
      if (statement.prepared) {
        put_short_bytes(out, statement.id);
      } else {
        put_long_string(out, statement.text);
      }
      put_values(out, statement.values);
    }
    put_consistency(out, request.consistency);
    put_flags(out,
              (request.serial_consistency ? unsigned{kParameterSerialConsistency} : 0U) |
                  (request.default_timestamp_us ? unsigned{kParameterTimestamp} : 0U) |
                  (request.keyspace ? kParameterKeyspace : 0U) |
                  (request.now_seconds ? kParameterNow : 0U),
              version);
    if (request.serial_consistency) put_consistency(out, *request.serial_consistency);
    if (request.default_timestamp_us) {
      out.u64_be(static_cast<std::uint64_t>(*request.default_timestamp_us));
    }
    if (version < kVersionOfSegments) return;
    if (request.keyspace) put_string(out, *request.keyspace);
    if (request.now_seconds) out.u32_be(static_cast<std::uint32_t>(*request.now_seconds));
  }
  void operator()(const AuthResponseRequest& request) { put_bytes(out, request.token); }
};

}  // namespace

bool operator==(const QueryParameters& a, const QueryParameters& b) {
  const bool same_state =
      a.paging_state.has_value() == b.paging_state.has_value() &&
      (!a.paging_state.has_value() || base::equal(*a.paging_state, *b.paging_state));
  return same_state && a.consistency == b.consistency &&
         a.serial_consistency == b.serial_consistency && a.skip_metadata == b.skip_metadata &&
         a.page_size == b.page_size && a.default_timestamp_us == b.default_timestamp_us &&
         a.values == b.values && a.names == b.names && a.keyspace == b.keyspace &&
         a.now_seconds == b.now_seconds;
}

std::optional<std::string_view> StartupRequest::find(std::string_view name) const {
  std::optional<std::string_view> found;
  for (const auto& [option, value] : options) {
    if (equal_ignoring_case(option, name)) found = value;
  }
  return found;
}

std::string_view name_of(EventKind kind) {
  return kEventNames[static_cast<std::size_t>(kind)];
}

std::optional<EventKind> event_kind_named(std::string_view name) {
  const auto found = std::ranges::find_if(
      kEventNames, [&](std::string_view known) { return equal_ignoring_case(known, name); });
  if (found == kEventNames.end()) return std::nullopt;
  return static_cast<EventKind>(found - kEventNames.begin());
}

Opcode opcode_of(const RequestMessage& message) {
  static constexpr std::array kOpcodes = {
      Opcode::options, Opcode::startup,      Opcode::query, Opcode::prepare,
      Opcode::execute, Opcode::registration, Opcode::batch, Opcode::auth_response};
  static_assert(kOpcodes.size() == std::variant_size_v<RequestMessage>);
  return kOpcodes[message.index()];
}

Bytes Request::keep(ByteView part) const {
  const std::less_equal<const std::byte*> not_behind;
  const bool inside = not_behind(body.data(), part.data()) &&
                      not_behind(part.data() + part.size(), body.data() + body.size());
  if (!inside || body.empty()) return Bytes::copy_of(part);
  return body.slice(static_cast<std::size_t>(part.data() - body.data()), part.size());
}

std::optional<ByteView> Request::payload_of(std::string_view key) const {
  const auto found = std::ranges::find(payload, key, &PayloadEntry::key);
  return found == payload.end() ? std::nullopt : found->value;
}

base::Result<Request> decode_request(const FrameHeader& header, Bytes body) {
  ASSERT(direction_of(static_cast<std::uint8_t>(header.opcode)) == Direction::request);
  Decoder in(body);
  Request request{.stream = header.stream,
                  .version = header.version,
                  .tracing = header.has(kFlagTracing),
                  .payload = {},
                  .message = {},
                  .body = {}};
  if (header.has(kFlagPayload)) request.payload = get_payload(in);
  request.message = get_message(header.opcode, in, header.version);
  TRY_VOID(in.status());
  request.body = std::move(body);
  return request;
}

void encode_request(const Request& request, base::Buffer& out) {
  const unsigned flags = (request.tracing ? unsigned{kFlagTracing} : 0U) |
                         (request.payload.empty() ? 0U : unsigned{kFlagPayload});
  FrameWriter frame(out, {.direction = Direction::request,
                          .version = request.version,
                          .flags = static_cast<std::uint8_t>(flags),
                          .stream = request.stream,
                          .opcode = opcode_of(request.message)});
  if (!request.payload.empty()) put_payload(frame.body(), request.payload);
  std::visit(PutMessage{frame.body(), request.version}, request.message);
  frame.finish();
}

PreparedId prepared_id(std::string_view keyspace, std::string_view text) {
  base::Buffer named(keyspace.size() + text.size() + base::kVarintSizeMax);
  base::Encoder encoder(named);
  encoder.prefixed(keyspace);
  encoder.raw(base::as_bytes(text));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  const int done =
      EVP_Digest(named.data(), named.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  ASSERT(done == 1, "SHA-256 is not to be had");
  PreparedId id;
  std::ranges::copy(std::as_bytes(std::span(digest)).first(id.size()), id.begin());
  return id;
}

}  // namespace helenus::cql::protocol
