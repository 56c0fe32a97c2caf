// Stories about rows over HTTP, on one node.
#include "keyvalue/key_value_service.h"

#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cql/execute/query_story_test_support.h"
#include "keyvalue/key_value_metrics.h"
#include "runtime/contract/world.h"
#include "runtime/sleep.h"

namespace helenus::keyvalue {
namespace {

using admin::HttpHeaders;
using admin::HttpRequest;
using admin::HttpResponse;
using cql::testing::QueryStory;
using runtime::Task;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

// One node and a client on its machine.
class Rows {
 public:
  explicit Rows(QueryStory& story, bool is_remote = false)
      : service_(story.runtime(), story.coordinator(), story.catalog(),
                 story.catalog().context_secret(), {.timeout = 5s, .is_remote = is_remote}) {}

  Task<HttpResponse> ask(std::string method, std::string path, std::string body = {},
                         HttpHeaders headers = {}) {
    HttpRequest request;
    request.method = std::move(method);
    const std::size_t question = path.find('?');
    request.path = "/v1/kv/" + path.substr(0, question);
    if (question != std::string::npos) request.query = path.substr(question + 1);
    request.headers = std::move(headers);
    request.body = base::Bytes::copy_of(body);
    request.from_loopback = true;
    co_return co_await answer(std::move(request));
  }
  Task<HttpResponse> answer(HttpRequest request) {
    HttpResponse response = co_await service_.answer(request, {});
    co_return response;
  }
  Task<HttpResponse> put(std::string path, std::string body, std::string context) {
    return ask("PUT", std::move(path), std::move(body), {{"Helenus-Context", std::move(context)}});
  }
  KeyValueService& service() { return service_; }

 private:
  KeyValueService service_;
};

std::string header(const HttpResponse& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return {};
}
std::string context_of(const HttpResponse& response) {
  return header(response, "Helenus-Context");
}

using Story = std::function<Task<void>(QueryStory&, Rows&)>;

void tell(const Story& story) {
  cql::testing::tell([&](QueryStory& node) -> Task<void> {
    co_await cql::testing::begin(node);
    co_await node.must(
        "CREATE TABLE s (k text PRIMARY KEY, v text, w int, l list<int>) "
        "WITH conflicts = 'siblings'");
    co_await node.must("CREATE TABLE t (k int PRIMARY KEY, v text)");
    Rows rows(node);
    co_await story(node, rows);
  });
}

Task<void> shows_and_resolves(QueryStory& node, Rows& rows) {
  EXPECT_EQ((co_await rows.ask("GET", "ks/s/k")).status, 404);
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "a", "none")).status, 204);
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "b", "none")).status, 204);
  const HttpResponse both = co_await rows.ask("GET", "ks/s/k/v");
  EXPECT_EQ(both.body, "{\"siblings\":[\"b\",\"a\"]}\n") << "first the one that CQL shows";
  EXPECT_EQ((co_await node.run("SELECT v FROM s WHERE k = 'k'")).text(), "'b'");
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "c", context_of(both))).status, 204);
  EXPECT_EQ((co_await rows.ask("GET", "ks/s/k")).body, "{\"columns\":{\"v\":[\"c\"]}}\n");
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "d", context_of(both))).status, 204);
  const HttpResponse again = co_await rows.ask("GET", "ks/s/k/v");
  EXPECT_EQ(again.body, "{\"siblings\":[\"d\",\"c\"]}\n");
  const HttpResponse gone =
      co_await rows.ask("DELETE", "ks/s/k/v", {}, {{"Helenus-Context", context_of(again)}});
  EXPECT_EQ(gone.status, 204);
  EXPECT_EQ((co_await rows.ask("GET", "ks/s/k")).status, 404);
  EXPECT_EQ(rows.service().statistics().reads_of_siblings, 2U);
}
TEST(KeyValue, ShowsSiblingsUntilTheyAreResolved) {
  tell(shows_and_resolves);
}

// A context of a payload of CQL is the same as that of a header.
Task<void> shares_contexts(QueryStory& node, Rows& rows) {
  co_await node.must("CREATE TABLE u (k int PRIMARY KEY, v text) WITH conflicts = 'siblings'");
  EXPECT_EQ((co_await rows.put("ks/u/1/v", "a", "none")).status, 204);
  cql::testing::How how;
  how.context = (co_await node.run("SELECT v FROM u WHERE k = 1")).context;
  CO_ASSERT_TRUE(how.context.has_value());
  EXPECT_EQ((co_await rows.put("ks/u/1/v", "b", "none")).status, 204);
  co_await node.run("UPDATE u SET v = 'c' WHERE k = 1", how);
  EXPECT_EQ((co_await rows.ask("GET", "ks/u/1/v")).body, "{\"siblings\":[\"c\",\"b\"]}\n");
}
TEST(KeyValue, AndCqlShareContexts) {
  tell(shares_contexts);
}

Task<void> expires(QueryStory& node, Rows& rows) {
  EXPECT_EQ((co_await rows.put("ks/s/k/v?ttl=10", "a", "none")).status, 204);
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "b", "none")).status, 204);
  CO_ASSERT_OK(co_await runtime::sleep_for(node.runtime(), 11s, {}));
  EXPECT_EQ((co_await rows.ask("GET", "ks/s/k/v")).body, "{\"siblings\":[\"b\"]}\n");
  EXPECT_EQ((co_await rows.ask("PUT", "ks/t/1?ttl=10", R"({"v": "x"})")).status, 204);
  CO_ASSERT_OK(co_await runtime::sleep_for(node.runtime(), 11s, {}));
  EXPECT_EQ((co_await rows.ask("GET", "ks/t/1")).status, 404) << "its marker, too";
}
TEST(KeyValue, ValuesExpire) {
  tell(expires);
}

Task<void> leaves_other_columns(QueryStory& node, Rows& rows) {
  co_await node.must("INSERT INTO s (k, v, w, l) VALUES ('k', 'a', 1, [1])");
  const HttpResponse seen = co_await rows.ask("GET", "ks/s/k");
  EXPECT_EQ(seen.body, "{\"columns\":{\"v\":[\"a\"],\"w\":[1]}}\n");
  EXPECT_EQ((co_await rows.put("ks/s/k", R"({"w": 2})", context_of(seen))).status, 204);
  EXPECT_EQ((co_await node.run("SELECT v, w, l FROM s WHERE k = 'k'")).text(), "null, 2, [1]");
}
TEST(KeyValue, ARowThatIsPutLeavesColumnsThatHaveNoFormHere) {
  tell(leaves_other_columns);
}

Task<void> deletes_elements(QueryStory& node, Rows& rows) {
  co_await node.must("CREATE TABLE c (k int, c int, v int, l list<int>, PRIMARY KEY (k, c))");
  co_await node.must("INSERT INTO c (k, c, v, l) VALUES (1, 1, 1, [1, 2])");
  co_await node.must("INSERT INTO c (k, c, v, l) VALUES (1, 2, 2, [3])");
  EXPECT_EQ((co_await rows.ask("GET", "ks/c/1/1")).status, 200);
  EXPECT_EQ((co_await rows.ask("DELETE", "ks/c/1/1")).status, 204);
  EXPECT_EQ((co_await node.run("SELECT c, v, l FROM c")).text(), "2, 2, [3]");
}
TEST(KeyValue, ARowIsDeletedWithItsCollections) {
  tell(deletes_elements);
}

Task<void> refuses(QueryStory& node, Rows& rows) {
  EXPECT_EQ((co_await rows.put("ks/s/k/v", "a", "none")).status, 204);
  const std::string good = context_of(co_await rows.ask("GET", "ks/s/k"));
  const auto refused = [&](int status, const char* words, std::string method, std::string path,
                           std::string body = {}, HttpHeaders headers = {}) -> Task<void> {
    const HttpResponse response = co_await rows.ask(method, path, std::move(body), headers);
    EXPECT_EQ(response.status, status) << method << " " << path << " " << response.body;
    EXPECT_THAT(response.body, HasSubstr(words)) << method << " " << path;
  };
  const HttpHeaders under = {{"Helenus-Context", good}};
  co_await refused(409, "keeps siblings", "PUT", "ks/s/k/v", "b");
  co_await refused(409, "keeps siblings", "DELETE", "ks/s/k");
  co_await refused(409, "seen nothing", "DELETE", "ks/s/k", {}, {{"Helenus-Context", "none"}});
  co_await refused(400, "another partition", "PUT", "ks/s/other/v", "b", under);
  co_await refused(400, "another table", "PUT", "ks/t/1/v", "b", under);
  co_await refused(404, "no table", "PUT", "ks/none/k", "b", under);
  co_await refused(404, "no table", "GET", "system/local/local");
  co_await refused(404, "no column", "GET", "ks/s/k/none");
  co_await refused(404, "no such row", "DELETE", "ks/t/1");
  co_await refused(400, "of the key", "PUT", "ks/s/k/k", "b", under);
  co_await refused(400, "list<int>", "PUT", "ks/s/k/l", "[1]", under);
  co_await refused(400, "int", "GET", "ks/t/x");
  co_await refused(400, "JSON object", "PUT", "ks/s/k", "[]", under);
  co_await refused(400, "no column", "PUT", "ks/s/k", R"({"l": "x"})", under);
  co_await refused(400, "level", "GET", "ks/s/k?consistency=SOME");
  co_await refused(400, "ANY", "GET", "ks/s/k?consistency=any");
  co_await refused(400, "serializable", "PUT", "ks/s/k/v?consistency=serial", "b", under);
  co_await refused(400, "ttl", "PUT", "ks/s/k/v?ttl=x", "b", under);
  co_await refused(400, "lost", "PUT", "ks/t/1/v", "b", {{"If-None-Match", "*"}});
  co_await refused(400, "not two", "PUT", "ks/s/k/v", "b",
                   {{"Helenus-Context", good}, {"If-None-Match", "*"}});
  co_await refused(412, "siblings", "PUT", "ks/s/k/v", "b", {{"If-None-Match", "*"}});
  co_await refused(405, "GET, HEAD, PUT, DELETE", "POST", "ks/s/k");
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string flipped = good;
    flipped[i] = flipped[i] == 'A' ? 'B' : 'A';
    if (flipped != good) {
      co_await refused(400, "", "PUT", "ks/s/k/v", "b", {{"Helenus-Context", flipped}});
    }
    co_await refused(400, "", "PUT", "ks/s/k/v", "b", {{"Helenus-Context", good.substr(0, i)}});
  }
  EXPECT_EQ((co_await rows.ask("GET", "ks/s/k/v")).body, "{\"siblings\":[\"a\"]}\n");
  EXPECT_EQ((co_await node.run("SELECT k FROM s")).text(), "'k'");
  EXPECT_EQ((co_await node.run("SELECT k FROM t")).text(), "");
}
TEST(KeyValue, WhatIsRefusedHasWrittenNothing) {
  tell(refuses);
}

Task<void> serves_few(QueryStory& node, Rows& rows) {
  HttpRequest request;
  request.method = "GET";
  request.path = "/v1/kv/ks/s/k";
  request.from_loopback = true;
  EXPECT_EQ((co_await rows.answer(request)).status, 404);
  for (const char* host : {"127.0.0.1:7070", "localhost", "[::1]:7070", "LOCALHOST:1"}) {
    request.headers = {{"Host", host}};
    EXPECT_EQ((co_await rows.answer(request)).status, 404) << host;
  }
  for (const char* host : {"evil.test", "127.0.0.1.evil.test", "", "localhost.evil:7070"}) {
    request.headers = {{"Host", host}};
    EXPECT_EQ((co_await rows.answer(request)).status, 403) << host;
  }
  request.headers.clear();
  request.from_loopback = false;
  EXPECT_EQ((co_await rows.answer(request)).status, 403);
  Rows remote(node, true);
  EXPECT_EQ((co_await remote.answer(request)).status, 404);
  request.from_page = true;
  EXPECT_EQ((co_await remote.answer(request)).status, 403);
}
TEST(KeyValue, ServesThisMachineUnlessItIsToldOtherwise) {
  tell(serves_few);
}

TEST(KeyValueMetrics, AreDocumented) {
  std::ifstream file(HELENUS_DOCUMENTS "/operations/metrics.md");
  std::stringstream document;
  document << file.rdbuf();
  KeyValueStatistics statistics;
  statistics.answers[{"GET", 200}] = 3;
  std::vector<admin::Metric> metrics;
  add_key_value_metrics(statistics, metrics);
  EXPECT_THAT(admin::to_prometheus(metrics), HasSubstr("{method=\"GET\",status=\"200\"} 3\n"));
  for (const admin::Metric& metric : metrics) {
    EXPECT_THAT(document.str(), HasSubstr(fmt::format("| `{}` |", metric.name)));
  }
}

}  // namespace
}  // namespace helenus::keyvalue
