// CqlClient: a client of a node, over the network of its world. One request at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cql/protocol/frame.h"
#include "cql/protocol/request.h"
#include "cql/protocol/response.h"
#include "runtime/address.h"
#include "runtime/runtime.h"
#include "runtime/task.h"
#include "runtime/transport.h"

namespace helenus::sim {

// What a statement is answered with.
struct CqlAnswer {
  std::optional<cql::protocol::ErrorMessage> error;
  std::vector<std::string> rows;  // each as literals: "1, 'a', null"
  std::optional<base::Bytes> paging_state;
  std::optional<base::Bytes> prepared_id;

  // "done", "2200: what is wrong", or the rows with semicolons between them.
  std::string text() const;
  bool is_error(cql::protocol::ErrorCode code) const { return error && error->code == code; }
};

// How a statement is sent.
struct CqlHow {
  std::optional<std::int32_t> page_size;
  std::optional<base::Bytes> paging_state;
  std::optional<std::int64_t> timestamp_us;
  cql::protocol::Consistency consistency = cql::protocol::Consistency::one;
};

class CqlClient {
 public:
  using Answer = runtime::Task<base::Result<CqlAnswer>>;

  // Connects with the first request, and again after an error.
  CqlClient(runtime::Runtime& runtime, runtime::Address server)
      : runtime_(runtime), server_(server) {}

  // Errors: those of the transport; closed; corrupt. What a node refuses is an answer.
  Answer query(std::string text, CqlHow how, runtime::Until until);
  Answer prepare(std::string text, runtime::Until until);
  // One value for each marker; none is null.
  Answer execute(base::Bytes id, std::vector<std::optional<std::string>> values, CqlHow how,
                 runtime::Until until);
  void close() { stream_.reset(); }
  // Of the next connection.
  void set_server(runtime::Address server) {
    close();
    server_ = server;
  }

 private:
  runtime::Task<base::Result<void>> open(runtime::Until until);
  Answer ask(base::Bytes frame, runtime::Until until);
  Answer exchange(base::Bytes frame, runtime::Until until);

  runtime::Runtime& runtime_;
  runtime::Address server_;
  std::unique_ptr<runtime::Stream> stream_;
  std::optional<cql::protocol::FrameReader> reader_;
};

}  // namespace helenus::sim
