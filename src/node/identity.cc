#include "node/identity.h"

#include "base/codec.h"
#include "base/versioned_file.h"
#include "runtime/clock.h"
#include "runtime/file_system.h"
#include "runtime/files.h"
#include "runtime/random.h"

namespace helenus::node {

using base::Errc;
using base::Result;

namespace {

constexpr base::FileFormat kFormat{.magic = "HLNSNODE", .version = 1};
// Room for what later versions may add, so that they are told apart from garbage.
constexpr std::size_t kFileSizeMax = 4096;

}  // namespace

base::Bytes encode(const Identity& identity) {
  base::Buffer buffer;
  base::Encoder out(buffer);
  out.raw(identity.node.value().bytes());
  out.u64_le(static_cast<std::uint64_t>(identity.created.since_origin().count()));
  return base::encode_file(kFormat, buffer.view());
}

Result<Identity> decode_identity(base::ByteView bytes) {
  TRY(const auto content, base::decode_file(kFormat, bytes));
  base::Decoder in(content);
  const model::NodeId node(base::decode_uuid(in));
  const runtime::WallTime created(runtime::Duration(static_cast<std::int64_t>(in.u64_le())));
  TRY_VOID(in.finish());
  return Identity{.node = node, .created = created};
}

runtime::Task<Result<Identity>> load_or_create_identity(runtime::Runtime& runtime,
                                                        std::string data_directory,
                                                        Prepare prepare) {
  const std::string path = data_directory + "/identity";
  auto content = co_await runtime::read_file(runtime, path, kFileSizeMax);
  if (content) {
    auto identity = decode_identity(*content);
    if (!identity) co_return std::move(identity).error().within(path);
    // Whoever made it may have been killed before its name was durable; telling it would be early.
    CO_TRY_VOID(co_await runtime.files.sync_directory(data_directory));
    co_return std::move(identity);
  }
  if (!content.failed_with(Errc::not_found)) co_return std::move(content).error();

  base::Uuid::Octets random;
  runtime.random.fill_secret(random);
  const Identity identity{.node = model::NodeId(base::Uuid::from_random(random)),
                          .created = runtime.clock.wall_now()};
  CO_TRY_VOID(co_await prepare(identity.node));
  CO_TRY_VOID(co_await runtime::replace_file(runtime, path, encode(identity)));
  co_return identity;
}

}  // namespace helenus::node
