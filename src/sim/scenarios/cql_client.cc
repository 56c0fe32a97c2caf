#include "sim/scenarios/cql_client.h"

#include <utility>
#include <variant>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/value.h"

namespace helenus::sim {

namespace protocol = cql::protocol;
using base::Errc;
using base::Error;
using base::Result;
using runtime::Task;
using runtime::Until;

namespace {

base::Bytes frame_of(protocol::RequestMessage message) {
  protocol::Request request;
  request.stream = 1;
  request.message = std::move(message);
  base::Buffer out;
  protocol::encode_request(request, out);
  return std::move(out).freeze();
}

// What `how` holds outlives them.
protocol::QueryParameters parameters_of(const CqlHow& how) {
  protocol::QueryParameters parameters;
  parameters.consistency = how.consistency;
  parameters.page_size = how.page_size;
  if (how.paging_state) parameters.paging_state = how.paging_state->view();
  parameters.default_timestamp_us = how.timestamp_us;
  return parameters;
}

CqlAnswer answer_of(protocol::DecodedResponse response) {
  CqlAnswer answer;
  if (auto* error = std::get_if<protocol::ErrorMessage>(&response.message)) {
    answer.error = std::move(*error);
  } else if (auto* prepared = std::get_if<protocol::PreparedResult>(&response.message)) {
    answer.prepared_id = prepared->id;
  } else if (auto* rows = std::get_if<protocol::RowsResult>(&response.message)) {
    answer.paging_state = rows->paging_state;
    protocol::CellCursor cells(*rows);
    for (std::uint32_t row = 0; row < rows->row_count; ++row) {
      std::vector<std::string> shown;
      for (const protocol::ColumnSpec& column : rows->columns) {
        const auto cell = cells.next();
        shown.push_back(cell ? model::to_text(column.type, *cell) : "null");
      }
      answer.rows.push_back(fmt::format("{}", fmt::join(shown, ", ")));
    }
  }
  return answer;
}

}  // namespace

std::string CqlAnswer::text() const {
  if (error) return fmt::format("{:04x}: {}", static_cast<int>(error->code), error->message);
  return rows.empty() ? "done" : fmt::format("{}", fmt::join(rows, "; "));
}

CqlClient::Answer CqlClient::query(std::string text, CqlHow how, Until until) {
  base::Bytes frame =
      frame_of(protocol::QueryRequest{.text = text, .parameters = parameters_of(how)});
  co_return co_await ask(std::move(frame), std::move(until));
}

CqlClient::Answer CqlClient::prepare(std::string text, Until until) {
  base::Bytes frame = frame_of(protocol::PrepareRequest{.text = text});
  co_return co_await ask(std::move(frame), std::move(until));
}

CqlClient::Answer CqlClient::execute(base::Bytes id, std::vector<std::optional<std::string>> values,
                                     CqlHow how, Until until) {
  protocol::ExecuteRequest request{.id = id.view(), .parameters = parameters_of(how)};
  for (const auto& value : values) {
    request.parameters.values.push_back(value ? protocol::Value::of(base::as_bytes(*value))
                                              : protocol::Value::null());
  }
  base::Bytes frame = frame_of(std::move(request));
  co_return co_await ask(std::move(frame), std::move(until));
}

Task<Result<void>> CqlClient::open(Until until) {
  CO_TRY(stream_, co_await runtime_.transport.connect(server_, until));
  reader_.emplace(protocol::Direction::response, protocol::kBodySizeCap);
  protocol::StartupRequest startup;
  startup.options = {{protocol::kOptionCqlVersion, "3.0.0"}};
  CO_TRY(const CqlAnswer answer, co_await exchange(frame_of(startup), until));
  if (answer.error) co_return Error(Errc::refused, "{}", answer.text());
  co_return {};
}

CqlClient::Answer CqlClient::ask(base::Bytes frame, Until until) {
  if (stream_ == nullptr) {
    const auto opened = co_await open(until);
    if (!opened) {
      close();
      co_return opened.error();
    }
  }
  auto answer = co_await exchange(std::move(frame), std::move(until));
  if (!answer) close();
  co_return answer;
}

CqlClient::Answer CqlClient::exchange(base::Bytes frame, Until until) {
  CO_TRY_VOID(co_await stream_->write(frame, until));
  for (;;) {
    auto step = reader_->next();
    if (const auto* got = std::get_if<protocol::Frame>(&step)) {
      CO_TRY(const base::Bytes body,
             protocol::plain_body(*got, protocol::Compression::none, protocol::kBodySizeCap));
      CO_TRY(auto response, protocol::decode_response(got->header, body));
      co_return answer_of(std::move(response));
    }
    if (const auto* refusal = std::get_if<protocol::FrameRefusal>(&step)) {
      co_return Error(Errc::corrupt, "{}", refusal->message);
    }
    if (!std::holds_alternative<protocol::FrameReader::NeedBytes>(step)) continue;
    CO_TRY(const std::size_t count, co_await stream_->read(reader_->room(), until));
    if (count == 0) co_return Error(Errc::closed);
    reader_->commit(count);
  }
}

}  // namespace helenus::sim
