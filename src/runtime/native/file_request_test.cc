#include "runtime/native/file_request.h"

#include <array>
#include <cerrno>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "runtime/native/inbox.h"
#include "runtime/native/native_core.h"

namespace helenus::runtime::native {
namespace {

// A file whose operations are never started: only what they ask for matters here.
class PaperFile final : public File {
 public:
  using File::File;
  Task<base::Result<std::uint64_t>> size() override { co_return 0; }
  Task<base::Result<void>> preallocate(std::uint64_t) override { co_return {}; }
  Task<base::Result<void>> truncate(std::uint64_t) override { co_return {}; }
  Task<base::Result<void>> close() override { co_return {}; }

 private:
  void start_read(ReadAt&) override {}
  void start_write(Write&) override {}
  void cancel(ReadAt&) override {}
  void cancel(Write&) override {}
};

class FileRequestTest : public testing::Test {
 protected:
  ~FileRequestTest() override { requests_.give_back(request_); }

  FileRequest& reading(std::size_t size, bool direct = false) {
    read_ = std::make_unique<File::ReadAt>(file_, 0, into(size), Until::forever());
    request_.begin(*read_, "file", 3, direct);
    return request_;
  }
  FileRequest& writing(File::Write::Kind kind, std::size_t size, bool direct = false) {
    write_ = std::make_unique<File::Write>(file_, kind, 0, into(size), Until::forever());
    request_.begin(*write_, "file", 3, direct);
    return request_;
  }

 private:
  base::MutableByteView into(std::size_t size) {
    return base::MutableByteView(memory_).first(size);
  }

  std::unique_ptr<ThreadPool> pool_ = *ThreadPool::open(1);
  SharedAddresses addresses_;
  base::NullSink sink_;
  std::unique_ptr<NativeCore> core_ = *NativeCore::open(
      CoreId(0), 1, NativeCore::Files::threads,
      {.pool = *pool_, .addresses = addresses_, .log_sink = sink_, .boot_id = "boot"});
  std::array<std::byte, 4 * kDirectAlignment> memory_{};
  PaperFile file_{core_->runtime(), "file"};
  FileRequests requests_{core_->loop().inbox()};
  FileRequest& request_ = *requests_.take();
  std::unique_ptr<File::ReadAt> read_;
  std::unique_ptr<File::Write> write_;
};

using Kind = File::Write::Kind;

TEST_F(FileRequestTest, AReadGoesOnUntilItIsFullOrTheFileEnds) {
  FileRequest& request = reading(100);
  EXPECT_EQ(request.after_transfer(60), Step::transfer);
  EXPECT_EQ(request.position(), 60U);
  EXPECT_EQ(request.left(), 40U);
  EXPECT_EQ(request.after_transfer(40), Step::finished);
  FileRequest& short_one = reading(100);
  EXPECT_EQ(short_one.after_transfer(60), Step::transfer);
  EXPECT_EQ(short_one.after_transfer(0), Step::finished);
  EXPECT_EQ(short_one.done, 60U);
}

TEST_F(FileRequestTest, ADirectReadThatEndsOutOfLineIsAtTheEnd) {
  EXPECT_EQ(reading(2 * kDirectAlignment, true).after_transfer(100), Step::finished);
  EXPECT_EQ(reading(2 * kDirectAlignment, true).after_transfer(kDirectAlignment), Step::transfer);
}

TEST_F(FileRequestTest, AnInterruptedCallIsMadeAgain) {
  FileRequest& request = reading(100);
  EXPECT_EQ(request.after_transfer(-EINTR), Step::transfer);
  EXPECT_EQ(request.after_transfer(-EAGAIN), Step::transfer);
  EXPECT_EQ(writing(Kind::sync, 0).after_sync(-EINTR), Step::sync);
}

TEST_F(FileRequestTest, AShortWriteGoesOnWhereItStopped) {
  FileRequest& request = writing(Kind::write, 100);
  EXPECT_EQ(request.after_transfer(30), Step::transfer);
  EXPECT_EQ(request.position(), 30U);
  EXPECT_EQ(request.after_transfer(70), Step::finished);
}

TEST_F(FileRequestTest, AShortDirectWriteRepeatsTheBlockThatWasCutInTwo) {
  FileRequest& request = writing(Kind::write, 3 * kDirectAlignment, true);
  EXPECT_EQ(request.after_transfer(kDirectAlignment + 512), Step::transfer);
  EXPECT_EQ(request.position(), kDirectAlignment);
}

TEST_F(FileRequestTest, AWriteThatMovesNothingFailsInsteadOfTryingForEver) {
  EXPECT_EQ(writing(Kind::write, 100).after_transfer(0), Step::finished);
}

TEST_F(FileRequestTest, OnlyAWholeWriteIsSynced) {
  FileRequest& request = writing(Kind::write_and_sync, 100);
  EXPECT_EQ(request.after_transfer(99), Step::transfer);
  EXPECT_EQ(request.after_transfer(1), Step::sync);
  EXPECT_EQ(request.after_sync(0), Step::finished);
  EXPECT_EQ(writing(Kind::write_and_sync, 100).after_transfer(-EIO), Step::finished);
}

TEST_F(FileRequestTest, ASyncWhoseLinkBrokeIsAskedForAgain) {
  EXPECT_EQ(writing(Kind::write_and_sync, 100).after_sync(-ECANCELED), Step::sync);
}

TEST_F(FileRequestTest, ACutRequestGoesNoFurther) {
  FileRequest& request = writing(Kind::write_and_sync, 100);
  request.cut = true;
  EXPECT_EQ(request.after_transfer(50), Step::finished);
  FileRequest& syncing = writing(Kind::sync, 0);
  EXPECT_FALSE(syncing.cut) << "a record begins anew";
  syncing.cut = true;
  EXPECT_EQ(syncing.after_sync(-ECANCELED), Step::finished);
}

TEST(FileRequests, AreUsedAgainAndLimited) {
  const auto inbox = *Inbox::open(1);
  FileRequests requests(*inbox);
  std::vector<FileRequest*> taken;
  for (std::size_t i = 0; i < FileRequests::kPendingMax; ++i) taken.push_back(requests.take());
  EXPECT_EQ(requests.take(), nullptr);
  requests.give_back(*taken.back());
  EXPECT_EQ(requests.take(), taken.back());
  for (FileRequest* request : taken) requests.give_back(*request);
}

}  // namespace
}  // namespace helenus::runtime::native
