#include "cql/server/response_queue.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace helenus::cql {
namespace {

using base::Bytes;
using protocol::Compression;
using protocol::Response;

Response answer_of(std::size_t size) {
  return Response::of(
      protocol::AuthSuccessMessage{.token = Bytes::copy_of(std::string(size, 'x'))});
}

std::string joined(const ResponseQueue::Pieces& pieces) {
  std::string text;
  for (const Bytes& piece : pieces) text += piece.text();
  return text;
}

TEST(ResponseQueue, ManySmallAnswersAreOnePiece) {
  ResponseQueue outgoing;
  base::Buffer expected;
  for (std::int16_t stream = 0; stream < 100; ++stream) {
    outgoing.add(answer_of(20), stream, Compression::none);
    protocol::encode_frame(answer_of(20), stream, Compression::none, expected);
  }
  EXPECT_EQ(outgoing.size(), expected.size());
  const auto pieces = outgoing.take(1 << 20, 64);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(pieces[0].text(), base::as_text(expected.view()));
  EXPECT_TRUE(outgoing.empty());
}

TEST(ResponseQueue, ALargeBodyIsSentFromWhereItLies) {
  ResponseQueue outgoing;
  const Response large = answer_of(100'000);
  outgoing.add(answer_of(1), 1, Compression::none);
  outgoing.add(large, 2, Compression::none);
  outgoing.add(answer_of(1), 3, Compression::none);
  const auto pieces = outgoing.take(1 << 20, 64);
  ASSERT_EQ(pieces.size(), 3U);
  EXPECT_EQ(pieces[1].data(), large.body[0].data());
}

TEST(ResponseQueue, CompressesWhatIsLargeEnough) {
  ResponseQueue outgoing;
  outgoing.add(answer_of(100'000), 1, Compression::lz4);
  EXPECT_LT(outgoing.size(), 1000U);
}

TEST(ResponseQueue, ForgetsWhatIsCleared) {
  ResponseQueue outgoing;
  outgoing.add(answer_of(100'000), 1, Compression::none);
  outgoing.add(Bytes::copy_of("event"));
  outgoing.clear();
  EXPECT_TRUE(outgoing.empty());
  EXPECT_TRUE(outgoing.take(1, 1).empty());
}

RC_GTEST_PROP(ResponseQueue, GivesWhatWasAddedInOrderHoweverItIsTaken, ()) {
  const auto sizes =
      *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 40'000));
  ResponseQueue outgoing;
  base::Buffer expected;
  std::string got;
  for (std::size_t index = 0; index < sizes.size(); ++index) {
    const auto stream = static_cast<std::int16_t>(index);
    outgoing.add(answer_of(sizes[index]), stream, Compression::none);
    protocol::encode_frame(answer_of(sizes[index]), stream, Compression::none, expected);
    if (*rc::gen::arbitrary<bool>()) {
      const auto size_max = *rc::gen::inRange<std::size_t>(1, 50'000);
      const auto pieces_max = *rc::gen::inRange<std::size_t>(1, 4);
      const auto pieces = outgoing.take(size_max, pieces_max);
      RC_ASSERT(pieces.size() <= pieces_max);
      RC_ASSERT(joined(pieces).size() <= size_max);
      got += joined(pieces);
    }
  }
  const std::size_t left = outgoing.size();
  const std::string rest = joined(outgoing.take(SIZE_MAX, SIZE_MAX));
  RC_ASSERT(rest.size() == left);
  RC_ASSERT(got + rest == base::as_text(expected.view()));
}

}  // namespace
}  // namespace helenus::cql
