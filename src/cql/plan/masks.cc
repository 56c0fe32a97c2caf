#include "cql/plan/masks.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <openssl/evp.h>

#include "base/uuid.h"
#include "cql/plan/time_uuid.h"
#include "model/big_number.h"
#include "model/value.h"

namespace helenus::cql {

using base::Bytes;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;

namespace {

using Hidden = QueryResult<OptionalBytes>;

// ---- mask_default ----

Bytes nothing_of(const DataType& type);

Bytes nothing_of_parts(const DataType& type) {
  std::vector<OptionalBytes> parts;
  for (const DataType& part : type.parts()) parts.emplace_back(nothing_of(part));
  return model::compose_tuple(parts);
}

// What stands for any value of a type.
Bytes nothing_of(const DataType& type) {
  switch (type.kind()) {
    case TypeKind::ascii:
    case TypeKind::varchar:
      return model::text_value("****");
    case TypeKind::blob:
      return Bytes();
    case TypeKind::boolean:
      return model::boolean_value(false);
    case TypeKind::tinyint:
      return model::tinyint_value(0);
    case TypeKind::smallint:
      return model::smallint_value(0);
    case TypeKind::int_:
      return model::int_value(0);
    case TypeKind::varint:
      return model::varint_value(0);
    case TypeKind::decimal:
      return model::varint_to_decimal(model::varint_value(0));
    case TypeKind::float_:
      return model::float_value(0);
    case TypeKind::double_:
      return model::double_value(0);
    case TypeKind::date:
      return model::date_value(0);
    case TypeKind::duration:
      return model::duration_value({});
    case TypeKind::inet:
      return model::int_value(0);  // 0.0.0.0
    case TypeKind::uuid:
      return model::uuid_value(base::Uuid());
    case TypeKind::timeuuid:
      return model::uuid_value(time_uuid(0, 0x8080808080808080));
    case TypeKind::list:
    case TypeKind::set:
    case TypeKind::map:
      return model::compose_list({});
    case TypeKind::tuple:
    case TypeKind::udt:
      return nothing_of_parts(type);
    case TypeKind::vector:
      return model::compose_vector(std::vector<Bytes>(type.dimension(), model::float_value(0)));
    default:
      return model::bigint_value(0);  // counter, timestamp, time
  }
}

Hidden mask_default(const Function& function, Function::Arguments /*arguments*/,
                    Moment& /*moment*/) {
  return OptionalBytes(nothing_of(function.returns));
}

Hidden mask_null(const Function& /*function*/, Function::Arguments /*arguments*/,
                 Moment& /*moment*/) {
  return OptionalBytes();
}

Hidden mask_replace(const Function& /*function*/, Function::Arguments arguments,
                    Moment& /*moment*/) {
  return arguments[1];
}

// ---- mask_inner, mask_outer ----

// Where the characters of a text begin, and where it ends.
std::vector<std::size_t> character_starts(std::string_view text) {
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool continues = (static_cast<unsigned char>(text[i]) & 0xc0U) == 0x80;
    if (!continues) starts.push_back(i);
  }
  starts.push_back(text.size());
  return starts;
}

QueryResult<std::string> padding_of(const Function& function, Function::Arguments arguments) {
  if (arguments.size() < 4 || !arguments[3]) return std::string("*");
  const std::string_view text = arguments[3]->text();
  const std::size_t count = character_starts(text).size() - 1;
  if (count != 1) {
    return invalid(
        "The padding argument for function system.{} should be single-character, but '{}' has {} "
        "characters.",
        function.name, text, count);
  }
  return std::string(text);
}

QueryResult<std::int64_t> margin_of(const OptionalBytes& argument) {
  if (!argument || argument->empty()) return std::int64_t{0};
  TRY(const std::int32_t margin, model::read_int(*argument));
  return std::int64_t{margin};
}

template <bool kInner>
Hidden mask_part(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  if (!arguments[0]) return OptionalBytes();
  TRY(const std::int64_t begin, margin_of(arguments[1]));
  TRY(const std::int64_t margin, margin_of(arguments[2]));
  TRY(const std::string padding, padding_of(function, arguments));
  const std::string_view text = arguments[0]->text();
  const std::vector<std::size_t> starts = character_starts(text);
  const auto count = static_cast<std::int64_t>(starts.size()) - 1;
  const std::int64_t end = count - 1 - margin;
  std::string masked;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_within = i >= begin && i <= end;
    const auto at = static_cast<std::size_t>(i);
    if (is_within == kInner) {
      masked += padding;
    } else {
      masked += text.substr(starts[at], starts[at + 1] - starts[at]);
    }
  }
  return OptionalBytes(model::text_value(masked));
}

// ---- mask_hash ----

struct Digest {
  std::string_view name;
  const EVP_MD* (*get)();
};

constexpr Digest kDigests[] = {
    {"MD5", &EVP_md5},           {"SHA", &EVP_sha1},          {"SHA-1", &EVP_sha1},
    {"SHA-224", &EVP_sha224},    {"SHA-256", &EVP_sha256},    {"SHA-384", &EVP_sha384},
    {"SHA-512", &EVP_sha512},    {"SHA3-224", &EVP_sha3_224}, {"SHA3-256", &EVP_sha3_256},
    {"SHA3-384", &EVP_sha3_384}, {"SHA3-512", &EVP_sha3_512},
};

Hidden mask_hash(const Function& /*function*/, Function::Arguments arguments, Moment& /*moment*/) {
  if (!arguments[0]) return OptionalBytes();
  std::string name = "SHA-256";
  if (arguments.size() > 1 && arguments[1]) name = std::string(arguments[1]->text());
  const auto same_letters = [](char a, char b) {
    return a == (b >= 'a' && b <= 'z' ? static_cast<char>(b - 'a' + 'A') : b);
  };
  const auto* const digest = std::ranges::find_if(kDigests, [&](const Digest& known) {
    return std::ranges::equal(known.name, name, same_letters);
  });
  if (digest == std::end(kDigests)) return invalid("Hash algorithm not found: {}", name);
  std::array<std::byte, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  const Bytes& value = *arguments[0];
  if (EVP_Digest(value.data(), value.size(), reinterpret_cast<unsigned char*>(hash.data()), &size,
                 digest->get(), nullptr) != 1) {
    return invalid("Hash algorithm not found: {}", name);
  }
  return OptionalBytes(Bytes::copy_of(base::ByteView(hash).first(size)));
}

// ---- Which is meant ----

struct Mask {
  std::string_view name;
  std::string_view full_name;
  std::string_view signature;
  std::size_t arguments_min;
  std::size_t arguments_max;
  Function::Body body;
};

constexpr Mask kMasks[] = {
    {"masknull", "mask_null", "any", 1, 1, &mask_null},
    {"maskdefault", "mask_default", "any", 1, 1, &mask_default},
    {"maskreplace", "mask_replace", "any, same_as(0)", 2, 2, &mask_replace},
    {"maskinner", "mask_inner", "string, int, int, [text]", 3, 4, &mask_part<true>},
    {"maskouter", "mask_outer", "string, int, int, [text]", 3, 4, &mask_part<false>},
    {"maskhash", "mask_hash", "any, [text]", 1, 2, &mask_hash},
};

const Mask* find_mask(std::string_view name) {
  const auto* const found = std::ranges::find(kMasks, name, &Mask::name);
  return found == std::end(kMasks) ? nullptr : found;
}

bool hides_a_part(const Mask& mask) {
  return mask.body == &mask_part<true> || mask.body == &mask_part<false>;
}

// Of what is hidden.
QueryResult<DataType> masked_type(const Mask& mask, std::span<const ArgumentHint> hints,
                                  const DataType* receiver) {
  std::optional<DataType> type = hints[0].type;
  if (!type && mask.body == &mask_replace) type = hints[1].type;
  if (!type && receiver != nullptr && mask.body != &mask_hash) type = *receiver;
  if (!type) {
    return invalid(
        "Cannot infer type of argument {} in call to function system.{}({}): use type casts to "
        "disambiguate",
        hints[0].text, mask.full_name, mask.signature);
  }
  if (hides_a_part(mask) && !type->is_text()) {
    return invalid(
        "Function system.{} requires an argument of type string, but found argument {} of type {}",
        mask.full_name, hints[0].text, type->to_cql());
  }
  return *type;
}

}  // namespace

bool is_mask(std::string_view name) {
  return find_mask(name) != nullptr;
}

QueryResult<Function> mask_function(std::string_view name, std::span<const ArgumentHint> hints,
                                    const DataType* receiver) {
  const Mask& mask = *find_mask(name);
  if (hints.size() < mask.arguments_min || hints.size() > mask.arguments_max) {
    return invalid("Invalid number of arguments for function system.{}({})", mask.full_name,
                   mask.signature);
  }
  TRY(const DataType type, masked_type(mask, hints, receiver));
  std::vector<DataType> arguments = {type};
  if (mask.body == &mask_replace) arguments.push_back(type);
  if (hides_a_part(mask)) arguments.insert(arguments.end(), 2, DataType(TypeKind::int_));
  if (arguments.size() < hints.size()) arguments.push_back(DataType::text());
  return Function{.name = std::string(mask.full_name),
                  .arguments = std::move(arguments),
                  .returns = mask.body == &mask_hash ? DataType(TypeKind::blob) : type,
                  .body = mask.body,
                  .takes_nulls = true};
}

}  // namespace helenus::cql
