#include "bench/cql_dialect.h"

#include <cerrno>
#include <string>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <sys/socket.h>

#include "base/codec.h"
#include "bench/load_socket.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/native/system_error.h"

namespace helenus::bench {

namespace {

namespace protocol = cql::protocol;
using base::ByteView;
using base::Errc;
using base::Error;
using runtime::native::system_error;

constexpr std::int32_t kDriversPageSize = 5000;
// Behind the kind of the result: the flags of the metadata, the count of columns, that of rows.
constexpr std::size_t kRowCountAt = protocol::kHeaderSize + 12;

// One request after the other over a blocking socket.
class Conversation {
 public:
  explicit Conversation(runtime::native::Descriptor socket) : socket_(std::move(socket)) {}

  base::Result<protocol::ResponseMessage> ask(protocol::RequestMessage message) {
    base::Buffer out;
    protocol::Request request;
    request.message = std::move(message);
    protocol::encode_request(request, out);
    const ssize_t sent = ::send(socket_.number(), out.data(), out.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(out.size())) return system_error(errno, "send a request");
    TRY(const protocol::Frame frame, receive());
    TRY(protocol::DecodedResponse response, protocol::decode_response(frame.header, frame.body));
    if (const auto* refusal = std::get_if<protocol::ErrorMessage>(&response.message)) {
      return Error(Errc::refused, "the server refuses: {}", refusal->message);
    }
    return std::move(response.message);
  }

 private:
  base::Result<protocol::Frame> receive() {
    for (;;) {
      auto step = reader_.next();
      if (auto* frame = std::get_if<protocol::Frame>(&step)) return std::move(*frame);
      if (const auto* refusal = std::get_if<protocol::FrameRefusal>(&step)) {
        return Error(Errc::corrupt, "{}", refusal->message);
      }
      if (std::holds_alternative<protocol::FrameHeader>(step)) continue;
      const base::MutableByteView room = reader_.room();
      const ssize_t count = ::recv(socket_.number(), room.data(), room.size(), 0);
      if (count < 0) return system_error(errno, "receive a response");
      if (count == 0) return Error(Errc::closed, "the server closed the connection");
      reader_.commit(static_cast<std::size_t>(count));
    }
  }

  runtime::native::Descriptor socket_;
  protocol::FrameReader reader_{protocol::Direction::response};
};

protocol::StartupRequest startup() {
  return {.options = {{protocol::kOptionCqlVersion, "3.0.0"}}};
}

base::Result<base::Bytes> prepare_statement(Conversation& conversation, std::string_view text) {
  TRY(const protocol::ResponseMessage answer,
      conversation.ask(protocol::PrepareRequest{.text = text}));
  const auto* prepared = std::get_if<protocol::PreparedResult>(&answer);
  if (prepared == nullptr) return Error(Errc::corrupt, "a PREPARE was answered by something else");
  return prepared->id;
}

}  // namespace

base::Result<void> CqlDialect::prepare(std::uint16_t port) {
  TRY(auto socket, connect_to_loopback(port));
  Conversation conversation(std::move(socket));
  TRY_VOID(conversation.ask(startup()));
  const std::string keyspace = fmt::format(
      "CREATE KEYSPACE ycsb WITH replication = "
      "{{'class': 'SimpleStrategy', 'replication_factor': {}}}",
      options_.replication_factor);
  for (const std::string_view statement : {
           std::string_view(keyspace),
           std::string_view("CREATE TABLE ycsb.usertable (key text PRIMARY KEY, value blob)"),
       }) {
    TRY_VOID(conversation.ask(protocol::QueryRequest{.text = statement, .parameters = {}}));
  }
  TRY(select_, prepare_statement(conversation, "SELECT value FROM ycsb.usertable WHERE key = ?"));
  TRY(insert_,
      prepare_statement(conversation, "INSERT INTO ycsb.usertable (key, value) VALUES (?, ?)"));
  return {};
}

void CqlDialect::greet(base::Buffer& out) {
  protocol::Request request;
  request.message = startup();
  protocol::encode_request(request, out);
}

void CqlDialect::encode(const Operation& operation, std::uint16_t slot, base::Buffer& out) {
  const bool reads = operation.kind == Operation::Kind::read;
  const auto key = key_text(operation.key);
  std::array<char, kValueSize> value;
  protocol::ExecuteRequest execute;
  execute.id = reads ? select_ : insert_;
  execute.parameters.consistency = options_.level;
  execute.parameters.skip_metadata = true;
  execute.parameters.page_size = kDriversPageSize;
  execute.parameters.values.push_back(protocol::Value::of(std::as_bytes(std::span(key))));
  if (!reads) {
    value = value_text(operation.key, operation.version);
    execute.parameters.values.push_back(protocol::Value::of(std::as_bytes(std::span(value))));
  }
  protocol::Request request;
  request.stream = static_cast<std::int16_t>(slot);
  request.message = std::move(execute);
  protocol::encode_request(request, out);
}

base::Result<std::optional<Reply>> CqlDialect::first_reply(ByteView bytes) {
  if (bytes.size() < protocol::kHeaderSize) return std::nullopt;
  const std::size_t size = protocol::kHeaderSize + base::load_be<std::uint32_t>(bytes.data() + 5);
  if (size > protocol::kBodySizeCap) return Error(Errc::corrupt, "a frame of {} bytes", size);
  if (bytes.size() < size) return std::nullopt;
  const auto opcode = static_cast<protocol::Opcode>(bytes[4]);
  if (opcode == protocol::Opcode::error) {
    const std::size_t message_at = std::min(size, protocol::kHeaderSize + 6);
    return Error(Errc::refused, "the server refuses: {}",
                 base::as_text(bytes.subspan(message_at, size - message_at)));
  }
  const bool has_rows = opcode == protocol::Opcode::result && size >= kRowCountAt + 4 &&
                        base::load_be<std::uint32_t>(bytes.data() + protocol::kHeaderSize) ==
                            std::uint32_t(protocol::ResultKind::rows);
  if (has_rows && base::load_be<std::uint32_t>(bytes.data() + kRowCountAt) != 1) {
    return Error(Errc::not_found, "the server has no such row");
  }
  return Reply{.size = size, .slot = base::load_be<std::uint16_t>(bytes.data() + 2)};
}

}  // namespace helenus::bench
