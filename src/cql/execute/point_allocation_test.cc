// What a prepared read or write of one row allocates, from the request to its response.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "storage/log/allocation_count_test_support.h"

namespace helenus::cql::testing {
namespace {

using runtime::Task;

constexpr int kRequests = 2000;
// All of it counts: planning is done, what is left is the request, the coordinator and storage. A
// value of a request that came from a connection is not copied as it is here: one less of a read,
// two less of a write.
constexpr double kReadMax = 7.5;
constexpr double kWriteMax = 16.0;

protocol::Request execute_request(const base::Bytes& id, const std::vector<base::Bytes>& values) {
  protocol::ExecuteRequest execute;
  execute.id = id.view();
  execute.parameters.skip_metadata = true;
  for (const base::Bytes& value : values) {
    execute.parameters.values.push_back(
        {.kind = protocol::Value::Kind::bytes, .bytes = value.view()});
  }
  protocol::Request request;
  request.message = std::move(execute);
  return request;
}

// The allocations of one request, without those of the request itself, on average.
Task<double> allocations_of(QueryStory& story, base::Bytes id, std::vector<base::Bytes> values,
                            int requests) {
  std::uint64_t count = 0;
  for (int i = 0; i < requests; ++i) {
    protocol::Request request = execute_request(id, values);
    const std::uint64_t before = storage::allocations();
    const protocol::Response response =
        co_await story.processor().handle(std::move(request), story.session(), {});
    count += storage::allocations() - before;
    EXPECT_EQ(response.opcode, protocol::Opcode::result);
  }
  co_return static_cast<double>(count) / requests;
}

TEST(PointAllocation, APreparedReadAndWriteOfOneRowAllocateLittle) {
  tell([](QueryStory& story) -> Task<void> {
    co_await begin(story);
    co_await story.must("CREATE TABLE t (k text PRIMARY KEY, v blob)");
    const base::Bytes key = base::Bytes::copy_of("key0000000000001");
    const base::Bytes value = base::Bytes::copy_of(std::string(100, 'v'));
    const base::Bytes insert =
        prepared_of(co_await story.prepare("INSERT INTO t (k, v) VALUES (?, ?)")).id;
    const base::Bytes select =
        prepared_of(co_await story.prepare("SELECT v FROM t WHERE k = ?")).id;
    const auto first = co_await allocations_of(story, insert, {key, value}, 1);
    EXPECT_GT(first, 0);
    EXPECT_LE(co_await allocations_of(story, select, {key}, kRequests), kReadMax);
    EXPECT_LE(co_await allocations_of(story, insert, {key, value}, kRequests), kWriteMax);
  });
  EXPECT_GT(storage::allocations(), 0U) << "the operators of this program are not in use";
}

}  // namespace
}  // namespace helenus::cql::testing
