#include "cql/protocol/response.h"

#include <algorithm>
#include <limits>
#include <span>

namespace helenus::cql::protocol {

using base::Bytes;
using base::ByteView;
using base::Decoder;
using base::Encoder;

namespace {

// In the order of ErrorDetails.
constexpr std::array kErrorsWithDetails = {
    ErrorCode::unavailable,    ErrorCode::write_timeout,    ErrorCode::read_timeout,
    ErrorCode::read_failure,   ErrorCode::function_failure, ErrorCode::write_failure,
    ErrorCode::already_exists, ErrorCode::unprepared,
};
static_assert(kErrorsWithDetails.size() + 1 == std::variant_size_v<ErrorDetails>);

constexpr std::array<std::string_view, 8> kWriteTypes = {
    "SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG", "CAS", "VIEW", "CDC"};
constexpr std::array<std::string_view, 3> kTopologyChanges = {"NEW_NODE", "REMOVED_NODE",
                                                              "MOVED_NODE"};
constexpr std::array<std::string_view, 2> kStatusChanges = {"UP", "DOWN"};
constexpr std::array<std::string_view, 3> kSchemaChanges = {"CREATED", "UPDATED", "DROPPED"};
constexpr std::array<std::string_view, 5> kSchemaTargets = {"KEYSPACE", "TABLE", "TYPE", "FUNCTION",
                                                            "AGGREGATE"};

void put_int(Encoder& out, std::int32_t value) {
  out.u32_be(static_cast<std::uint32_t>(value));
}

void put_cut_string(Encoder& out, std::string_view text) {
  put_string(out, cut_utf8(text, kShortSizeMax));
}

// The beginning that the bodies of timeouts and failures share.
template <class Details>
void put_progress(Encoder& out, const Details& details) {
  put_consistency(out, details.consistency);
  put_int(out, details.received);
  put_int(out, details.block_for);
}

struct PutDetails {
  Encoder& out;

  void operator()(const std::monostate&) {}
  void operator()(const UnavailableDetails& details) {
    put_consistency(out, details.consistency);
    put_int(out, details.required);
    put_int(out, details.alive);
  }
  void operator()(const WriteTimeoutDetails& details) {
    put_progress(out, details);
    put_string(out, name_of(details.write_type));
  }
  void operator()(const ReadTimeoutDetails& details) {
    put_progress(out, details);
    out.u8(details.data_present ? 1 : 0);
  }
  void operator()(const ReadFailureDetails& details) {
    put_progress(out, details);
    put_int(out, details.failures);
    out.u8(details.data_present ? 1 : 0);
  }
  void operator()(const FunctionFailureDetails& details) {
    put_string(out, details.keyspace);
    put_string(out, details.function);
    put_string_list(out, details.argument_types);
  }
  void operator()(const WriteFailureDetails& details) {
    put_progress(out, details);
    put_int(out, details.failures);
    put_string(out, name_of(details.write_type));
  }
  void operator()(const AlreadyExistsDetails& details) {
    put_string(out, details.keyspace);
    put_string(out, details.table);
  }
  void operator()(const UnpreparedDetails& details) { put_short_bytes(out, details.id); }
};

void put_schema_change(Encoder& out, const SchemaChange& change) {
  put_string(out, name_of(change.kind));
  put_string(out, name_of(change.target));
  put_string(out, change.keyspace);
  if (change.target == SchemaTarget::keyspace) return;
  put_string(out, change.name);
  if (change.target == SchemaTarget::function || change.target == SchemaTarget::aggregate) {
    put_string_list(out, change.argument_types);
  }
}

struct PutEvent {
  Encoder& out;

  void operator()(const TopologyChange& change) {
    put_string(out, name_of(change.kind));
    put_inet(out, change.node);
  }
  void operator()(const StatusChange& change) {
    put_string(out, name_of(change.kind));
    put_inet(out, change.node);
  }
  void operator()(const SchemaChange& change) { put_schema_change(out, change); }
};

void put_result_columns(Encoder& out, std::span<const ColumnSpec> columns) {
  const EncodedColumns encoded(columns);
  out.u32_be(columns.empty() ? kMetadataNone : encoded.flags());
  out.u32_be(encoded.count());
  out.raw(encoded.specs());
}

struct PutMessage {
  Encoder& out;

  void kind(ResultKind kind) { put_int(out, static_cast<std::int32_t>(kind)); }

  void operator()(const ErrorMessage& error) {
    put_int(out, static_cast<std::int32_t>(error.code));
    put_cut_string(out, error.message);
    std::visit(PutDetails{out}, error.details);
  }
  void operator()(const ReadyMessage&) {}
  void operator()(const AuthenticateMessage& message) { put_string(out, message.authenticator); }
  void operator()(const AuthChallengeMessage& message) { put_bytes(out, message.token); }
  void operator()(const AuthSuccessMessage& message) { put_bytes(out, message.token); }
  void operator()(const SupportedMessage& message) {
    ASSERT(message.options.size() <= kShortSizeMax);
    out.u16_be(static_cast<std::uint16_t>(message.options.size()));
    for (const auto& [name, values] : message.options) {
      put_string(out, name);
      put_string_list(out, values);
    }
  }
  void operator()(const VoidResult&) { kind(ResultKind::nothing); }
  void operator()(const SetKeyspaceResult& result) {
    kind(ResultKind::set_keyspace);
    put_string(out, result.keyspace);
  }
  void operator()(const SchemaChangeResult& result) {
    kind(ResultKind::schema_change);
    put_schema_change(out, result.change);
  }
  void operator()(const PreparedResult& result) {
    kind(ResultKind::prepared);
    put_short_bytes(out, result.id);
    if (result.metadata_id) put_short_bytes(out, *result.metadata_id);
    const EncodedColumns markers(result.markers);
    out.u32_be(markers.flags());
    out.u32_be(markers.count());
    out.u32_be(static_cast<std::uint32_t>(result.partition_key_markers.size()));
    for (const std::uint16_t marker : result.partition_key_markers) out.u16_be(marker);
    out.raw(markers.specs());
    put_result_columns(out, result.columns);
  }
  void operator()(const RowsResult& result) {
    ASSERT(result.columns.empty() || result.columns.size() == result.column_count);
    kind(ResultKind::rows);
    const EncodedColumns encoded(result.columns);
    out.u32_be((result.columns.empty() ? kMetadataNone : encoded.flags()) |
               (result.paging_state ? kMetadataHasMorePages : 0));
    out.u32_be(result.column_count);
    if (result.paging_state) put_bytes(out, *result.paging_state);
    out.raw(encoded.specs());
    out.u32_be(result.row_count);
    out.raw(result.rows);
  }
  void operator()(const Event& event) {
    put_string(out, name_of(kind_of(event)));
    std::visit(PutEvent{out}, event);
  }
};

void put_prefix(Encoder& out, const ResponsePrefix& prefix) {
  if (prefix.tracing) put_uuid(out, *prefix.tracing);
  if (!prefix.warnings.empty()) {
    const std::size_t count = std::min(prefix.warnings.size(), kShortSizeMax);
    out.u16_be(static_cast<std::uint16_t>(count));
    for (const std::string& warning : std::span(prefix.warnings).first(count)) {
      put_cut_string(out, warning);
    }
  }
  if (prefix.payload.empty()) return;
  ASSERT(prefix.payload.size() <= kShortSizeMax);
  out.u16_be(static_cast<std::uint16_t>(prefix.payload.size()));
  for (const OwnedPayloadEntry& entry : prefix.payload) {
    put_string(out, entry.key);
    put_bytes(out, entry.value);
  }
}

// A string that is one of the names of an enumeration, in its order.
template <class Enum, std::size_t Count>
Enum get_named(Decoder& in, const std::array<std::string_view, Count>& names) {
  const std::string_view name = get_string(in);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    in.fail("a string is none of those that may stand here");
    return Enum();
  }
  return static_cast<Enum>(found - names.begin());
}

std::int32_t get_int(Decoder& in) {
  return static_cast<std::int32_t>(in.u32_be());
}

std::vector<std::string> get_owned_list(Decoder& in) {
  const auto texts = get_string_list(in);
  return {texts.begin(), texts.end()};
}

std::optional<Bytes> owned(const std::optional<ByteView>& bytes) {
  if (!bytes) return std::nullopt;
  return Bytes::copy_of(*bytes);
}

template <class Details>
Details get_progress(Decoder& in) {
  Details details;
  details.consistency = get_consistency(in);
  details.received = get_int(in);
  details.block_for = get_int(in);
  return details;
}

ErrorDetails get_details(Decoder& in, ErrorCode code) {
  switch (code) {
    case ErrorCode::unavailable: {
      UnavailableDetails details{.consistency = get_consistency(in)};
      details.required = get_int(in);
      details.alive = get_int(in);
      return details;
    }
    case ErrorCode::write_timeout: {
      auto details = get_progress<WriteTimeoutDetails>(in);
      details.write_type = get_named<WriteType>(in, kWriteTypes);
      return details;
    }
    case ErrorCode::read_timeout: {
      auto details = get_progress<ReadTimeoutDetails>(in);
      details.data_present = in.u8() != 0;
      return details;
    }
    case ErrorCode::read_failure: {
      auto details = get_progress<ReadFailureDetails>(in);
      details.failures = get_int(in);
      details.data_present = in.u8() != 0;
      return details;
    }
    case ErrorCode::function_failure: {
      FunctionFailureDetails details;
      details.keyspace = get_string(in);
      details.function = get_string(in);
      details.argument_types = get_owned_list(in);
      return details;
    }
    case ErrorCode::write_failure: {
      auto details = get_progress<WriteFailureDetails>(in);
      details.failures = get_int(in);
      details.write_type = get_named<WriteType>(in, kWriteTypes);
      return details;
    }
    case ErrorCode::already_exists: {
      AlreadyExistsDetails details;
      details.keyspace = get_string(in);
      details.table = get_string(in);
      return details;
    }
    case ErrorCode::unprepared:
      return UnpreparedDetails{.id = Bytes::copy_of(get_short_bytes(in))};
    default:
      return std::monostate();
  }
}

ErrorMessage get_error(Decoder& in) {
  ErrorMessage error;
  const std::int32_t code = get_int(in);
  if (!is_error_code(code)) in.fail("the code of an error is unknown");
  error.code = static_cast<ErrorCode>(code);
  error.message = get_string(in);
  error.details = get_details(in, error.code);
  return error;
}

SupportedMessage get_supported(Decoder& in) {
  SupportedMessage message;
  const std::size_t count = get_short_count(in, 2 * sizeof(std::uint16_t));
  for (std::size_t index = 0; index < count && in.ok(); ++index) {
    std::string name(get_string(in));
    message.options.emplace_back(std::move(name), get_owned_list(in));
  }
  return message;
}

SchemaChange get_schema_change(Decoder& in) {
  SchemaChange change;
  change.kind = get_named<SchemaChangeKind>(in, kSchemaChanges);
  change.target = get_named<SchemaTarget>(in, kSchemaTargets);
  change.keyspace = get_string(in);
  if (change.target == SchemaTarget::keyspace) return change;
  change.name = get_string(in);
  if (change.target == SchemaTarget::function || change.target == SchemaTarget::aggregate) {
    change.argument_types = get_owned_list(in);
  }
  return change;
}

Event get_event(Decoder& in) {
  const auto event = event_kind_named(get_string(in));
  if (!event) {
    in.fail("an event is unknown");
    return {};
  }
  switch (*event) {
    case EventKind::topology_change: {
      const auto kind = get_named<TopologyChangeKind>(in, kTopologyChanges);
      return TopologyChange{.kind = kind, .node = get_inet(in)};
    }
    case EventKind::status_change: {
      const auto kind = get_named<StatusChangeKind>(in, kStatusChanges);
      return StatusChange{.kind = kind, .node = get_inet(in)};
    }
    case EventKind::schema_change:
      break;
  }
  return get_schema_change(in);
}

PreparedResult get_prepared(Decoder& in) {
  PreparedResult result;
  result.id = Bytes::copy_of(get_short_bytes(in));
  const std::uint32_t flags = in.u32_be();
  const std::uint32_t count = in.u32_be();
  const std::size_t key_count = get_int_count(in, sizeof(std::uint16_t));
  for (std::size_t index = 0; index < key_count && in.ok(); ++index) {
    result.partition_key_markers.push_back(in.u16_be());
  }
  result.markers = get_columns(in, flags, count);
  const std::uint32_t result_flags = in.u32_be();
  const std::uint32_t result_count = in.u32_be();
  if ((result_flags & kMetadataHasMorePages) != 0) in.fail("a prepared statement has pages");
  if ((result_flags & kMetadataNone) == 0) {
    result.columns = get_columns(in, result_flags, result_count);
  }
  return result;
}

// Passes over the cells, which must be all that is left, and gives them as one slice.
Bytes get_cells(Decoder& in, const Bytes& body, std::uint64_t count) {
  if (count > in.remaining() / sizeof(std::int32_t)) {
    in.fail("counts more rows than there are bytes for");
    return {};
  }
  const std::size_t begin = in.offset();
  for (std::uint64_t index = 0; index < count && in.ok(); ++index) get_bytes(in);
  return body.slice(begin, in.offset() - begin);
}

RowsResult get_rows(Decoder& in, const Bytes& body) {
  RowsResult result;
  const std::uint32_t flags = in.u32_be();
  result.column_count = in.u32_be();
  if (result.column_count > kColumnsMax) in.fail("a result has too many columns");
  if ((flags & kMetadataHasMorePages) != 0) {
    const auto state = get_bytes(in);
    if (!state) in.fail("there are more pages, but no paging state");
    result.paging_state = owned(state);
  }
  if ((flags & kMetadataNone) == 0) {
    result.columns = get_columns(in, flags, result.column_count);
  }
  result.row_count = in.u32_be();
  if (result.row_count > std::numeric_limits<std::int32_t>::max()) in.fail("a count is negative");
  if (!in.ok()) return {};
  result.rows = get_cells(in, body, std::uint64_t{result.row_count} * result.column_count);
  return result;
}

ResponseMessage get_result(Decoder& in, const Bytes& body) {
  switch (static_cast<ResultKind>(get_int(in))) {
    case ResultKind::nothing:
      return VoidResult();
    case ResultKind::rows:
      return get_rows(in, body);
    case ResultKind::set_keyspace:
      return SetKeyspaceResult{.keyspace = std::string(get_string(in))};
    case ResultKind::prepared:
      return get_prepared(in);
    case ResultKind::schema_change:
      return SchemaChangeResult{.change = get_schema_change(in)};
  }
  in.fail("the kind of a result is unknown");
  return VoidResult();
}

ResponseMessage get_message(Opcode opcode, Decoder& in, const Bytes& body) {
  switch (opcode) {
    case Opcode::error:
      return get_error(in);
    case Opcode::ready:
      return ReadyMessage();
    case Opcode::authenticate:
      return AuthenticateMessage{.authenticator = std::string(get_string(in))};
    case Opcode::supported:
      return get_supported(in);
    case Opcode::result:
      return get_result(in, body);
    case Opcode::event:
      return get_event(in);
    case Opcode::auth_challenge:
      return AuthChallengeMessage{.token = owned(get_bytes(in))};
    case Opcode::auth_success:
      return AuthSuccessMessage{.token = owned(get_bytes(in))};
    default:
      UNREACHABLE("opcode {} is no response's", static_cast<unsigned>(opcode));
  }
}

ResponsePrefix get_prefix(Decoder& in, const FrameHeader& header) {
  ResponsePrefix prefix;
  if (header.has(kFlagTracing)) prefix.tracing = base::decode_uuid(in);
  if (header.has(kFlagWarnings)) prefix.warnings = get_owned_list(in);
  if (header.has(kFlagPayload)) {
    for (const PayloadEntry& entry : get_payload(in)) {
      prefix.payload.push_back({.key = std::string(entry.key), .value = owned(entry.value)});
    }
  }
  return prefix;
}

}  // namespace

std::string_view name_of(WriteType type) {
  return kWriteTypes[static_cast<std::size_t>(type)];
}
std::string_view name_of(TopologyChangeKind kind) {
  return kTopologyChanges[static_cast<std::size_t>(kind)];
}
std::string_view name_of(StatusChangeKind kind) {
  return kStatusChanges[static_cast<std::size_t>(kind)];
}
std::string_view name_of(SchemaChangeKind kind) {
  return kSchemaChanges[static_cast<std::size_t>(kind)];
}
std::string_view name_of(SchemaTarget target) {
  return kSchemaTargets[static_cast<std::size_t>(target)];
}

std::optional<ByteView> CellCursor::next() {
  ASSERT(left_ > 0);
  --left_;
  return get_bytes(in_);
}

ErrorMessage::ErrorMessage(ErrorCode code_, std::string message_)
    : code(code_), message(std::move(message_)) {
  ASSERT(std::ranges::find(kErrorsWithDetails, code) == kErrorsWithDetails.end(),
         "error {} has details", static_cast<std::int32_t>(code));
}

ErrorMessage::ErrorMessage(ErrorDetails details_, std::string message_)
    : message(std::move(message_)), details(std::move(details_)) {
  ASSERT(details.index() > 0);
  code = kErrorsWithDetails[details.index() - 1];
}

EventKind kind_of(const Event& event) {
  static_assert(std::variant_size_v<Event> == kEventKinds);
  return static_cast<EventKind>(event.index());
}

Opcode opcode_of(const ResponseMessage& message) {
  static constexpr std::array kOpcodes = {
      Opcode::error,  Opcode::ready,  Opcode::authenticate,   Opcode::supported,
      Opcode::result, Opcode::result, Opcode::result,         Opcode::result,
      Opcode::result, Opcode::event,  Opcode::auth_challenge, Opcode::auth_success};
  static_assert(kOpcodes.size() == std::variant_size_v<ResponseMessage>);
  return kOpcodes[message.index()];
}

std::uint8_t ResponsePrefix::flags() const {
  return static_cast<std::uint8_t>((tracing ? unsigned{kFlagTracing} : 0U) |
                                   (warnings.empty() ? 0U : unsigned{kFlagWarnings}) |
                                   (payload.empty() ? 0U : unsigned{kFlagPayload}));
}

Response Response::of(const ResponseMessage& message) {
  base::Buffer buffer;
  Encoder out(buffer);
  std::visit(PutMessage{out}, message);
  Response response;
  response.opcode = opcode_of(message);
  response.body[0] = std::move(buffer).freeze();
  return response;
}

Response Response::error(ErrorCode code, std::string message) {
  return of(ErrorMessage(code, std::move(message)));
}

void tell_failures_by_reason(Response& error) {
  ASSERT(error.opcode == Opcode::error);
  const ByteView body = error.body[0].view();
  Decoder in(body);
  const auto code = static_cast<ErrorCode>(in.u32_be());
  if (code != ErrorCode::read_failure && code != ErrorCode::write_failure) return;
  const std::string_view message = get_string(in);
  constexpr std::size_t kBeforeCount = sizeof(std::uint16_t) + 2 * sizeof(std::uint32_t);
  const std::size_t at =
      sizeof(std::uint32_t) + sizeof(std::uint16_t) + message.size() + kBeforeCount;
  base::Buffer told;
  told.append(body);
  base::store_be(told.data() + at, std::uint32_t{0});
  error.body[0] = std::move(told).freeze();
}

void encode_frame_head(const Response& response, std::int16_t stream, base::Buffer& out) {
  FrameWriter frame(out, {.direction = Direction::response,
                          .flags = response.prefix.flags(),
                          .stream = stream,
                          .opcode = response.opcode});
  put_prefix(frame.body(), response.prefix);
  frame.finish(response.body_size());
}

void encode_frame(const Response& response, std::int16_t stream, Compression compression,
                  base::Buffer& out) {
  const std::size_t begin = out.size();
  encode_frame_head(response, stream, out);
  for (const Bytes& piece : response.body) out.append(piece);
  if (compression == Compression::lz4) compress_frame(out, begin);
}

base::Result<DecodedResponse> decode_response(const FrameHeader& header, const Bytes& body) {
  ASSERT(direction_of(static_cast<std::uint8_t>(header.opcode)) == Direction::response);
  Decoder in(body);
  DecodedResponse response;
  response.stream = header.stream;
  response.prefix = get_prefix(in, header);
  response.message = get_message(header.opcode, in, body);
  TRY_VOID(in.finish());
  return response;
}

Bytes encode_event_frame(const Event& event) {
  base::Buffer out;
  encode_frame(Response::of(event), kEventStream, Compression::none, out);
  return std::move(out).freeze();
}

}  // namespace helenus::cql::protocol
