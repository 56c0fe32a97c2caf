// Fuzzes base::Decoder. The input is a script and then the bytes to decode:
//
//   size of the script: one byte;  script: one operation a byte, some with an operand;  bytes
//
// Whatever is read must lie inside the bytes, and writing it again must give the same bytes: the
// codec has one form for every value. After the first failure nothing may be read any more.
#include "base/codec.h"

#include <cstddef>
#include <cstdint>

namespace helenus::base {
namespace {

class Driver {
 public:
  explicit Driver(const Bytes& bytes) : bytes_(bytes), in_(bytes), out_(written_) {}

  // One operation, chosen by `operation`. `operand` is a size where one is needed.
  void run(std::uint8_t operation, std::uint8_t operand) {
    const bool was_ok = in_.ok();
    const std::size_t offset_before = in_.offset();
    const bool is_zero = read_and_write(operation, operand);
    ASSERT(in_.offset() >= offset_before && in_.offset() + in_.remaining() == bytes_.size());
    if (!was_ok) ASSERT(!in_.ok() && is_zero);
    if (!in_.ok()) ASSERT(in_.remaining() == 0 && in_.status().failed_with(Errc::corrupt));
    if (in_.ok()) {
      ASSERT(equal(written_.view(), bytes_.view().first(in_.offset())));
    }
  }

  void finish() {
    const bool all_read = in_.ok() && in_.remaining() == 0;
    ASSERT(in_.finish().has_value() == all_read);
  }

 private:
  // Whether what was read is zero or empty.
  bool read_and_write(std::uint8_t operation, std::uint8_t operand) {
    switch (operation % 13) {
      case 0:
        return number(in_.u8(), &Encoder::u8);
      case 1:
        return number(in_.u16_le(), &Encoder::u16_le);
      case 2:
        return number(in_.u32_le(), &Encoder::u32_le);
      case 3:
        return number(in_.u64_le(), &Encoder::u64_le);
      case 4:
        return number(in_.u16_be(), &Encoder::u16_be);
      case 5:
        return number(in_.u32_be(), &Encoder::u32_be);
      case 6:
        return number(in_.u64_be(), &Encoder::u64_be);
      case 7:
        return number(in_.varint(), &Encoder::varint);
      case 8:
        return number(in_.signed_varint(), &Encoder::signed_varint);
      case 9:
        return count(std::size_t{operand} + 1);
      case 10:
        return bytes(in_.raw(operand), &Encoder::raw);
      case 11:
        return bytes(in_.prefixed(), static_cast<void (Encoder::*)(ByteView)>(&Encoder::prefixed));
      default:
        if (operand == 0) in_.fail("has a fault that the caller found");
        return true;
    }
  }

  template <class T>
  bool number(T value, void (Encoder::*write)(T)) {
    if (in_.ok()) (out_.*write)(value);
    return value == 0;
  }

  bool bytes(ByteView read, void (Encoder::*write)(ByteView)) {
    if (!read.empty()) {
      ASSERT(read.data() >= bytes_.data());
      ASSERT(read.data() + read.size() <= bytes_.data() + bytes_.size());
    }
    if (in_.ok()) (out_.*write)(read);
    return read.empty();
  }

  bool count(std::size_t bytes_each_min) {
    const std::size_t elements = in_.count(bytes_each_min);
    ASSERT(elements <= in_.remaining() / bytes_each_min);
    if (in_.ok()) out_.varint(elements);
    return elements == 0;
  }

  Bytes bytes_;
  Decoder in_;
  Buffer written_;
  Encoder out_;
};

}  // namespace
}  // namespace helenus::base

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace helenus::base;
  const ByteView input = std::as_bytes(std::span(data, size));
  Decoder in(input);
  const ByteView script = in.raw(in.u8());
  // A block of their own, so that the sanitizer sees a read past either end.
  const Bytes bytes = Bytes::copy_of(in.raw(in.remaining()));
  Driver driver(bytes);
  for (std::size_t at = 0; at < script.size(); ++at) {
    const auto operation = std::to_integer<std::uint8_t>(script[at]);
    driver.run(operation, static_cast<std::uint8_t>(operation / 13));
  }
  driver.finish();
  return 0;
}
