// Responses: what a server answers, as plain structures, written to and read from bodies of frames.
// ERROR, READY, AUTHENTICATE, SUPPORTED, RESULT of every kind, EVENT, AUTH_CHALLENGE, AUTH_SUCCESS.
//
// A server makes a Response: a body that is encoded already, and what stands in front of it (the
// trace, warnings, custom payload). `encode_frame` appends it to what a connection is to send.
// Rows are streamed into their Response by a RowsWriter (rows.h).
//
// A client reads a ResponseMessage with `decode_response`; it owns what it holds, and the cells of
// rows are a slice of the frame's body. A malformed body is Errc::corrupt with what was wrong and
// where, bytes behind the message included.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/uuid.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/metadata.h"
#include "cql/protocol/primitives.h"
#include "cql/protocol/request.h"

namespace helenus::cql::protocol {

enum class WriteType : std::uint8_t {
  simple,
  batch,
  unlogged_batch,
  counter,
  batch_log,
  cas,
  view,
  cdc,
};
// As the protocol spells it: "UNLOGGED_BATCH".
std::string_view name_of(WriteType type);

struct UnavailableDetails {
  Consistency consistency = Consistency::one;
  std::int32_t required = 0;
  std::int32_t alive = 0;
  friend bool operator==(const UnavailableDetails&, const UnavailableDetails&) = default;
};
struct WriteTimeoutDetails {
  Consistency consistency = Consistency::one;
  std::int32_t received = 0;
  std::int32_t block_for = 0;
  WriteType write_type = WriteType::simple;
  friend bool operator==(const WriteTimeoutDetails&, const WriteTimeoutDetails&) = default;
};
struct ReadTimeoutDetails {
  Consistency consistency = Consistency::one;
  std::int32_t received = 0;
  std::int32_t block_for = 0;
  bool data_present = false;
  friend bool operator==(const ReadTimeoutDetails&, const ReadTimeoutDetails&) = default;
};
struct ReadFailureDetails {
  Consistency consistency = Consistency::one;
  std::int32_t received = 0;
  std::int32_t block_for = 0;
  std::int32_t failures = 0;
  bool data_present = false;
  friend bool operator==(const ReadFailureDetails&, const ReadFailureDetails&) = default;
};
struct WriteFailureDetails {
  Consistency consistency = Consistency::one;
  std::int32_t received = 0;
  std::int32_t block_for = 0;
  std::int32_t failures = 0;
  WriteType write_type = WriteType::simple;
  friend bool operator==(const WriteFailureDetails&, const WriteFailureDetails&) = default;
};
struct FunctionFailureDetails {
  std::string keyspace;
  std::string function;
  std::vector<std::string> argument_types;
  friend bool operator==(const FunctionFailureDetails&, const FunctionFailureDetails&) = default;
};
struct AlreadyExistsDetails {
  std::string keyspace;
  std::string table;  // empty: the keyspace itself
  friend bool operator==(const AlreadyExistsDetails&, const AlreadyExistsDetails&) = default;
};
struct UnpreparedDetails {
  base::Bytes id;
  friend bool operator==(const UnpreparedDetails&, const UnpreparedDetails&) = default;
};
using ErrorDetails = std::variant<std::monostate, UnavailableDetails, WriteTimeoutDetails,
                                  ReadTimeoutDetails, ReadFailureDetails, FunctionFailureDetails,
                                  WriteFailureDetails, AlreadyExistsDetails, UnpreparedDetails>;

// The details belong to the code: each alternative but the first is the body of one code, and the
// codes without one have none. Make the former by the constructor from details.
struct ErrorMessage {
  ErrorCode code = ErrorCode::server_error;
  std::string message;
  ErrorDetails details;

  ErrorMessage() = default;
  // Requires: a code without details.
  ErrorMessage(ErrorCode code_, std::string message_);
  // Requires: not monostate.
  ErrorMessage(ErrorDetails details_, std::string message_);
  friend bool operator==(const ErrorMessage&, const ErrorMessage&) = default;
};

// The kinds of change, as the protocol spells them ("NEW_NODE", "UP", "CREATED"), and what changes.
enum class TopologyChangeKind : std::uint8_t { new_node, removed_node, moved_node };
enum class StatusChangeKind : std::uint8_t { up, down };
enum class SchemaChangeKind : std::uint8_t { created, updated, dropped };
enum class SchemaTarget : std::uint8_t { keyspace, table, type, function, aggregate };
std::string_view name_of(TopologyChangeKind kind);
std::string_view name_of(StatusChangeKind kind);
std::string_view name_of(SchemaChangeKind kind);
std::string_view name_of(SchemaTarget target);

struct TopologyChange {
  TopologyChangeKind kind = TopologyChangeKind::new_node;
  Inet node;
  friend bool operator==(const TopologyChange&, const TopologyChange&) = default;
};

struct StatusChange {
  StatusChangeKind kind = StatusChangeKind::up;
  Inet node;
  friend bool operator==(const StatusChange&, const StatusChange&) = default;
};

struct SchemaChange {
  SchemaChangeKind kind = SchemaChangeKind::created;
  SchemaTarget target = SchemaTarget::keyspace;
  std::string keyspace;
  std::string name;                         // unless the target is the keyspace
  std::vector<std::string> argument_types;  // of functions and aggregates
  friend bool operator==(const SchemaChange&, const SchemaChange&) = default;
};

using Event = std::variant<TopologyChange, StatusChange, SchemaChange>;
EventKind kind_of(const Event& event);

struct ReadyMessage {
  friend bool operator==(const ReadyMessage&, const ReadyMessage&) = default;
};
struct AuthenticateMessage {
  std::string authenticator;  // a class name that drivers know
  friend bool operator==(const AuthenticateMessage&, const AuthenticateMessage&) = default;
};
struct AuthChallengeMessage {
  std::optional<base::Bytes> token;
  friend bool operator==(const AuthChallengeMessage&, const AuthChallengeMessage&) = default;
};
struct AuthSuccessMessage {
  std::optional<base::Bytes> token;
  friend bool operator==(const AuthSuccessMessage&, const AuthSuccessMessage&) = default;
};
struct SupportedMessage {
  std::vector<std::pair<std::string, std::vector<std::string>>> options;
  friend bool operator==(const SupportedMessage&, const SupportedMessage&) = default;
};

// What a RESULT begins with.
enum class ResultKind : std::int32_t {
  nothing = 1,
  rows = 2,
  set_keyspace = 3,
  prepared = 4,
  schema_change = 5,
};
inline constexpr std::size_t kResultKinds = 5;

struct VoidResult {
  friend bool operator==(const VoidResult&, const VoidResult&) = default;
};
struct SetKeyspaceResult {
  std::string keyspace;
  friend bool operator==(const SetKeyspaceResult&, const SetKeyspaceResult&) = default;
};
struct SchemaChangeResult {
  SchemaChange change;
  friend bool operator==(const SchemaChangeResult&, const SchemaChangeResult&) = default;
};
struct PreparedResult {
  base::Bytes id;
  std::optional<base::Bytes> metadata_id = std::nullopt;  // of `columns`, in version 5
  std::vector<ColumnSpec> markers;
  // For each column of the partition key, in its order, the marker that binds it; none unless all
  // of them are bound. By this drivers find the replica to send an EXECUTE to.
  std::vector<std::uint16_t> partition_key_markers;
  std::vector<ColumnSpec> columns;  // of the rows it will give; none for what gives none
  friend bool operator==(const PreparedResult&, const PreparedResult&) = default;
};
// Rows as a client has them; `rows` holds row_count times column_count cells and nothing else.
struct RowsResult {
  std::uint32_t column_count = 0;
  std::vector<ColumnSpec> columns;  // none if the server was asked to leave them out
  std::optional<base::Bytes> paging_state;
  std::uint32_t row_count = 0;
  base::Bytes rows;
  friend bool operator==(const RowsResult&, const RowsResult&) = default;
};
// Walks the cells of a RowsResult, row by row, left to right. It borrows from `rows`.
class CellCursor {
 public:
  explicit CellCursor(const RowsResult& result [[clang::lifetimebound]])
      : in_(result.rows), left_(std::size_t{result.row_count} * result.column_count) {}
  bool done() const { return left_ == 0; }
  // None is null. Requires: !done().
  std::optional<base::ByteView> next();

 private:
  base::Decoder in_;
  std::size_t left_;
};

using ResponseMessage =
    std::variant<ErrorMessage, ReadyMessage, AuthenticateMessage, SupportedMessage, VoidResult,
                 RowsResult, SetKeyspaceResult, PreparedResult, SchemaChangeResult, Event,
                 AuthChallengeMessage, AuthSuccessMessage>;
Opcode opcode_of(const ResponseMessage& message);

struct OwnedPayloadEntry {
  std::string key;
  std::optional<base::Bytes> value;
  friend bool operator==(const OwnedPayloadEntry&, const OwnedPayloadEntry&) = default;
};

// What stands in front of the message, each only if there is something to say.
struct ResponsePrefix {
  std::optional<base::Uuid> tracing;
  std::vector<std::string> warnings;
  std::vector<OwnedPayloadEntry> payload;

  std::uint8_t flags() const;
  friend bool operator==(const ResponsePrefix&, const ResponsePrefix&) = default;
};

// An answer, encoded but for its frame. The body is in two pieces because what stands in front of
// rows (their count, where the next page begins) is known only behind them.
struct Response {
  Opcode opcode = Opcode::error;
  ResponsePrefix prefix;
  std::array<base::Bytes, 2> body;

  std::size_t body_size() const { return body[0].size() + body[1].size(); }
  // Encodes a message. Texts too long for the protocol are cut (messages of errors, warnings);
  // names are never: Requires: no name, list or map beyond kShortSizeMax.
  static Response of(const ResponseMessage& message);
  static Response error(ErrorCode code, std::string message);
};

// Version 5 tells failures by node and reason, where version 4 counts them. Which nodes they were
// is not told: there are none in its map.
void tell_failures_by_reason(Response& error);

// The header and the prefix of a response's frame, appended to `out`; the pieces of its body must
// follow. For those who send the pieces from where they lie.
void encode_frame_head(const Response& response, std::int16_t stream, base::Buffer& out);
// The whole frame, appended, and compressed where that pays.
void encode_frame(const Response& response, std::int16_t stream, Compression compression,
                  base::Buffer& out);
// An event's whole frame, uncompressed, to be sent to any number of connections.
base::Bytes encode_event_frame(const Event& event);

struct DecodedResponse {
  std::int16_t stream = 0;
  ResponsePrefix prefix;
  ResponseMessage message;
  friend bool operator==(const DecodedResponse&, const DecodedResponse&) = default;
};
// Requires: the header is of a response, the body is plain. Errors: corrupt.
base::Result<DecodedResponse> decode_response(const FrameHeader& header, const base::Bytes& body);

}  // namespace helenus::cql::protocol
