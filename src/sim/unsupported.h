// Placeholders for a machine without disk or network.
#pragma once

#include "runtime/file_system.h"
#include "runtime/transport.h"

namespace helenus::sim {

class NoFileSystem final : public runtime::FileSystem {
 public:
  using Done = runtime::Task<base::Result<void>>;
  runtime::Task<base::Result<std::unique_ptr<runtime::File>>> open(std::string,
                                                                   runtime::OpenOptions) override {
    co_return base::Error(base::Errc::unsupported);
  }
  Done make_directories(std::string) override { co_return base::Error(base::Errc::unsupported); }
  runtime::Task<base::Result<std::vector<runtime::DirectoryEntry>>> list(std::string) override {
    co_return base::Error(base::Errc::unsupported);
  }
  runtime::Task<base::Result<runtime::FileInfo>> info(std::string) override {
    co_return base::Error(base::Errc::unsupported);
  }
  Done rename(std::string, std::string) override { co_return base::Error(base::Errc::unsupported); }
  Done remove(std::string) override { co_return base::Error(base::Errc::unsupported); }
  Done link(std::string, std::string) override { co_return base::Error(base::Errc::unsupported); }
  Done sync_directory(std::string) override { co_return base::Error(base::Errc::unsupported); }
  runtime::Task<base::Result<std::unique_ptr<runtime::FileLock>>> lock(std::string) override {
    co_return base::Error(base::Errc::unsupported);
  }
  runtime::Task<base::Result<runtime::DiskSpace>> space(std::string) override {
    co_return base::Error(base::Errc::unsupported);
  }
};

class NoTransport final : public runtime::Transport {
 public:
  base::Result<std::unique_ptr<runtime::Listener>> listen(const runtime::Address&,
                                                          runtime::ListenOptions) override {
    return base::Error(base::Errc::unsupported);
  }
  runtime::Task<base::Result<std::unique_ptr<runtime::Stream>>> connect(
      runtime::Address, runtime::Until, std::optional<runtime::Address>) override {
    co_return base::Error(base::Errc::unsupported);
  }
};

}  // namespace helenus::sim
