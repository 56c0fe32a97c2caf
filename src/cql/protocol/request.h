// Requests: what clients ask, as plain structures, read from and written to bodies of frames.
//
// Ownership: a decoded Request owns its body (shared, without a copy) and everything in it borrows
// from that body: moving or copying the Request leaves the views right, and what must outlive it is
// taken with `keep()`. A Request made by hand borrows from its maker.
//
// Reading forgives what Cassandra forgives: bytes behind the message, and flags it does not know.
// Everything else malformed is Errc::corrupt with what was wrong and where; the answer to that is a
// protocol error on the request's stream.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <absl/container/inlined_vector.h>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/primitives.h"

namespace helenus::cql::protocol {

// Most statements bind few values; those take no memory of their own.
using Values = absl::InlinedVector<Value, 6>;

struct QueryParameters {
  Consistency consistency = Consistency::one;
  std::optional<Consistency> serial_consistency;  // whatever the client sent
  bool skip_metadata = false;
  std::optional<std::int32_t> page_size;  // not positive: the client wants no pages
  std::optional<base::ByteView> paging_state;
  std::optional<std::int64_t> default_timestamp_us;
  Values values;
  std::vector<std::string_view> names;  // none, or one a value
  // Of version 5: in place of the session's keyspace and of the clock.
  std::optional<std::string_view> keyspace = std::nullopt;
  std::optional<std::int32_t> now_seconds = std::nullopt;

  friend bool operator==(const QueryParameters& a, const QueryParameters& b);
};

struct StartupRequest {
  std::vector<std::pair<std::string_view, std::string_view>> options;

  // The value of an option; names are compared without regard to case. Of several, the last.
  std::optional<std::string_view> find(std::string_view name) const;
  friend bool operator==(const StartupRequest&, const StartupRequest&) = default;
};
inline constexpr std::string_view kOptionCqlVersion = "CQL_VERSION";
inline constexpr std::string_view kOptionCompression = "COMPRESSION";
inline constexpr std::string_view kOptionProtocolVersions = "PROTOCOL_VERSIONS";
inline constexpr std::string_view kOptionDriverName = "DRIVER_NAME";
inline constexpr std::string_view kOptionDriverVersion = "DRIVER_VERSION";

struct OptionsRequest {
  friend bool operator==(const OptionsRequest&, const OptionsRequest&) = default;
};

struct QueryRequest {
  std::string_view text;
  QueryParameters parameters;
  friend bool operator==(const QueryRequest&, const QueryRequest&) = default;
};

struct PrepareRequest {
  std::string_view text;
  std::optional<std::string_view> keyspace = std::nullopt;  // as in QueryParameters
  friend bool operator==(const PrepareRequest&, const PrepareRequest&) = default;
};

struct ExecuteRequest {
  base::ByteView id;
  // Of version 5: what the client holds of the result's columns.
  std::optional<base::ByteView> metadata_id = std::nullopt;
  QueryParameters parameters;
  friend bool operator==(const ExecuteRequest& a, const ExecuteRequest& b) {
    if (a.metadata_id.has_value() != b.metadata_id.has_value()) return false;
    return base::equal(a.id, b.id) && a.parameters == b.parameters &&
           (!a.metadata_id || base::equal(*a.metadata_id, *b.metadata_id));
  }
};

enum class EventKind : std::uint8_t { topology_change, status_change, schema_change };
inline constexpr std::size_t kEventKinds = 3;
// As the protocol spells it: "TOPOLOGY_CHANGE".
std::string_view name_of(EventKind kind);
// In capitals or not, as Cassandra reads it.
std::optional<EventKind> event_kind_named(std::string_view name);

struct RegisterRequest {
  std::vector<EventKind> kinds;
  friend bool operator==(const RegisterRequest&, const RegisterRequest&) = default;
};

enum class BatchType : std::uint8_t { logged = 0, unlogged = 1, counter = 2 };

struct BatchStatement {
  bool prepared = false;
  std::string_view text;  // unless prepared
  base::ByteView id;      // if prepared
  Values values;
  friend bool operator==(const BatchStatement& a, const BatchStatement& b) {
    return a.prepared == b.prepared && a.text == b.text && base::equal(a.id, b.id) &&
           a.values == b.values;
  }
};

struct BatchRequest {
  BatchType type = BatchType::logged;
  std::vector<BatchStatement> statements;
  Consistency consistency = Consistency::one;
  std::optional<Consistency> serial_consistency;
  std::optional<std::int64_t> default_timestamp_us;
  std::optional<std::string_view> keyspace = std::nullopt;  // as in QueryParameters
  std::optional<std::int32_t> now_seconds = std::nullopt;
  friend bool operator==(const BatchRequest&, const BatchRequest&) = default;
};

struct AuthResponseRequest {
  std::optional<base::ByteView> token;
  friend bool operator==(const AuthResponseRequest& a, const AuthResponseRequest& b) {
    if (a.token.has_value() != b.token.has_value()) return false;
    return !a.token.has_value() || base::equal(*a.token, *b.token);
  }
};

using RequestMessage =
    std::variant<OptionsRequest, StartupRequest, QueryRequest, PrepareRequest, ExecuteRequest,
                 RegisterRequest, BatchRequest, AuthResponseRequest>;
Opcode opcode_of(const RequestMessage& message);

struct Request {
  std::int16_t stream = 0;
  std::uint8_t version = kVersion;
  bool tracing = false;  // the client wants a trace of this request
  std::vector<PayloadEntry> payload;
  RequestMessage message;
  base::Bytes body;  // what the rest borrows from; empty in a Request made by hand

  // A part of this request that outlives it: a slice of its body (and so of all of it), or a copy
  // where the part lies elsewhere.
  base::Bytes keep(base::ByteView part) const;
  // The value of a key of the custom payload; none if absent or null.
  std::optional<base::ByteView> payload_of(std::string_view key) const;

  // What was asked; not the memory it lies in.
  friend bool operator==(const Request& a, const Request& b) {
    return a.stream == b.stream && a.version == b.version && a.tracing == b.tracing &&
           a.payload == b.payload && a.message == b.message;
  }
};

// Requires: the header is of a request, the body is plain. Errors: corrupt.
base::Result<Request> decode_request(const FrameHeader& header, base::Bytes body);
// Appends a whole frame, uncompressed; for clients.
void encode_request(const Request& request, base::Buffer& out);

// What a PREPARE is answered with and an EXECUTE names: sixteen bytes that every node computes
// alike, now and after a restart, from nothing but the keyspace in force and the text.
using PreparedId = std::array<std::byte, 16>;
PreparedId prepared_id(std::string_view keyspace, std::string_view text);

}  // namespace helenus::cql::protocol
