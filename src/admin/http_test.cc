#include "admin/http.h"

#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace helenus::admin {
namespace {

using base::Errc;

base::Result<std::optional<HttpRequest>> parse(std::string_view text) {
  return parse_http_request(base::as_bytes(text));
}

TEST(Http, ParsesARequestAndSaysHowMuchItTook) {
  const std::string first = "GET /healthz?a=b HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n";
  const auto request = parse(first + "GET /next");
  ASSERT_TRUE(request.has_value() && request->has_value());
  EXPECT_EQ((*request)->method, "GET");
  EXPECT_EQ((*request)->path, "/healthz");
  EXPECT_EQ((*request)->query, "a=b");
  EXPECT_TRUE((*request)->keep_alive);
  EXPECT_EQ((*request)->size, first.size());
}

TEST(Http, EveryPrefixOfARequestIsIncomplete) {
  const std::string whole = "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto request = parse(whole.substr(0, size));
    ASSERT_TRUE(request.has_value()) << size;
    EXPECT_FALSE(request->has_value()) << size;
  }
  const auto request = parse(whole);
  ASSERT_TRUE(request.has_value() && request->has_value());
  EXPECT_TRUE((*request)->keep_alive);
}

TEST(Http, KeepAliveFollowsVersionAndHeader) {
  EXPECT_FALSE((*parse("GET / HTTP/1.0\r\n\r\n"))->keep_alive);
  EXPECT_FALSE((*parse("GET / HTTP/1.1\r\ncOnnection:  Close \r\n\r\n"))->keep_alive);
  EXPECT_TRUE((*parse("GET / HTTP/1.1\r\nConnection: Upgrade\r\n\r\n"))->keep_alive);
  EXPECT_TRUE((*parse("GET / HTTP/1.0\r\nConnection: TE , Keep-Alive\r\n\r\n"))->keep_alive);
}

TEST(Http, AWishToCloseWinsWhereverItStands) {
  for (const char* headers :
       {"Connection: close, TE", "Connection: TE,close", "Connection: close,,",
        "Connection: close\r\nConnection: keep-alive", "Connection: keep-alive, close"}) {
    const auto request = parse(std::string("GET / HTTP/1.1\r\n") + headers + "\r\n\r\n");
    ASSERT_TRUE(request.has_value() && request->has_value()) << headers;
    EXPECT_FALSE((*request)->keep_alive) << headers;
  }
}

TEST(Http, KnowsWhatABrowserSendsForAPage) {
  EXPECT_FALSE((*parse("POST / HTTP/1.1\r\nHost: h\r\n\r\n"))->from_page);
  EXPECT_TRUE((*parse("POST / HTTP/1.1\r\noRigin: null\r\n\r\n"))->from_page);
}

TEST(Http, RefusesWhatAProxyMightReadOtherwise) {
  using namespace std::string_view_literals;
  // Each hides a length or an encoding from one of two readers.
  for (const std::string_view headers :
       {"Content-Length : 5"sv, "Content-Length\t: 5"sv, " Content-Length: 5"sv,
        "X: a\r\n Content-Length: 5"sv, "X: a\r\n\tTransfer-Encoding: chunked"sv,
        "X: a\nContent-Length: 5"sv, "X: a\rContent-Length: 5"sv, "X: a\0b"sv, "X\0: a"sv,
        "Trans\x0b-Encoding: chunked"sv, "X: \x7f"sv, "(comment): a"sv, "\xe4: a"sv}) {
    const auto text = "GET / HTTP/1.1\r\n" + std::string(headers) + "\r\n\r\n";
    EXPECT_TRUE(parse(text).failed_with(Errc::invalid_argument)) << headers;
  }
  EXPECT_TRUE(parse("GET / HTTP/1.1\r\nX:\t a\tb \xe4\r\nY:\r\n\r\n").has_value());
}

TEST(Http, RefusesWhatIsNotARequest) {
  for (const char* text :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", " / HTTP/1.1\r\n\r\n", "GET x HTTP/1.1\r\n\r\n",
        "GET /a b HTTP/1.1\r\n\r\n", "G(T / HTTP/1.1\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nnocolon\r\n\r\n", "GET / HTTP/1.1\r\n: empty\r\n\r\n"}) {
    EXPECT_TRUE(parse(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(Http, RefusesBodiesOfUnknownLengthAndOtherVersions) {
  for (const char* text :
       {"GET / HTTP/2.0\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
        "PUT / HTTP/1.1\r\nExpect: miracles\r\n\r\n"}) {
    EXPECT_TRUE(parse(text).failed_with(Errc::unsupported)) << text;
  }
  for (const char* length :
       {"00", "+0", "-1", "", "3x", "0x3", "3, 3", "99999999999999999999999"}) {
    const auto text = fmt::format("PUT / HTTP/1.1\r\nContent-Length: {}\r\n\r\n", length);
    EXPECT_TRUE(parse(text).failed_with(Errc::invalid_argument)) << text;
  }
}

TEST(Http, SaysHowLongTheBodyIsAndLeavesIt) {
  const std::string head =
      "PUT /v1/kv/k HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-Continue\r\n\r\n";
  const auto request = parse(head + "abc");
  ASSERT_TRUE(request.has_value() && request->has_value());
  EXPECT_EQ((*request)->size, head.size());
  EXPECT_EQ((*request)->body_size, 3U);
  EXPECT_TRUE((*request)->awaits_continue);
  EXPECT_EQ((*parse("GET / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"))->body_size, 0U);
}

TEST(Http, KeepsHeadersAndRefusesTwoOfThoseThatSayOneThing) {
  const auto request = parse("GET / HTTP/1.1\r\nX-A:  1 \r\nx-a: 2\r\nIf-Match: \"e\"\r\n\r\n");
  ASSERT_TRUE(request.has_value() && request->has_value());
  EXPECT_EQ((*request)->header("X-a"), "1");
  EXPECT_EQ((*request)->header("IF-MATCH"), "\"e\"");
  EXPECT_EQ((*request)->header("X-b"), std::nullopt);
  for (const char* name : {"Content-Length", "Host", "Helenus-Context", "If-Match", "Origin"}) {
    const auto text = fmt::format("GET / HTTP/1.1\r\n{}: 0\r\n{}: 0\r\n\r\n", name, name);
    EXPECT_TRUE(parse(text).failed_with(Errc::invalid_argument)) << name;
  }
  std::string many = "GET / HTTP/1.1\r\n";
  for (std::size_t i = 0; i <= kHttpHeadersMax; ++i) many += "X: y\r\n";
  EXPECT_TRUE(parse(many + "\r\n").failed_with(Errc::invalid_argument));
}

TEST(Http, AnEndlessRequestIsCutAtTheLimit) {
  std::string endless = "GET / HTTP/1.1\r\nX: ";
  endless.resize(kHttpRequestSizeMax - 1, 'a');
  EXPECT_TRUE(parse(endless).has_value());
  endless += "a";
  EXPECT_TRUE(parse(endless).failed_with(Errc::invalid_argument));
}

TEST(Http, AnswersCarryTheirLengthAlsoWithoutTheBody) {
  const HttpResponse response{.status = 404, .body = "no\n"};
  EXPECT_EQ(encode(response, true, true),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/plain; charset=utf-8\r\n"
            "Content-Length: 3\r\nConnection: keep-alive\r\n\r\nno\n");
  EXPECT_TRUE(encode(response, false, false).ends_with("Connection: close\r\n\r\n"));
  const HttpResponse refused{.status = 405, .body = "", .allow = "GET, HEAD"};
  EXPECT_TRUE(encode(refused, false, true).contains("\r\nAllow: GET, HEAD\r\n"));
  const HttpResponse without{.status = 204, .body = "x", .headers = {{"ETag", "\"e\""}}};
  EXPECT_EQ(encode(without, true, true),
            "HTTP/1.1 204 No Content\r\nETag: \"e\"\r\nConnection: keep-alive\r\n\r\n");
}

}  // namespace
}  // namespace helenus::admin
