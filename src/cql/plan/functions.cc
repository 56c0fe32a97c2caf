#include "cql/plan/functions.h"

#include <array>
#include <cstdint>
#include <optional>

#include "base/codec.h"
#include "base/uuid.h"
#include "cql/plan/numbers.h"
#include "cql/plan/time_uuid.h"
#include "model/json.h"

namespace helenus::cql {

using base::Bytes;
using base::ByteView;
using base::Uuid;
using model::DataType;
using model::OptionalBytes;
using model::TypeKind;

namespace {

constexpr std::int64_t kMillisecondsPerDay = 86'400'000;
constexpr std::int64_t kTicksPerMillisecond = 10'000;  // of version 1 UUIDs
constexpr std::int64_t kNanosecondsPerDay = kMillisecondsPerDay * 1'000'000;
// The clock sequence and node that sort first and last among UUIDs of one time: their bytes compare
// as signed ones.
constexpr std::uint64_t kFirstNode = 0x8080808080808080;
constexpr std::uint64_t kLastNode = 0x7f7f7f7f7f7f7f7f;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

QueryResult<std::int64_t> milliseconds_of_uuid(ByteView bytes) {
  TRY(const Uuid uuid, model::read_uuid(bytes));
  if (uuid.version() != 1) return invalid("{} is not a version 1 UUID", uuid.to_string());
  const std::byte* octets = uuid.bytes().data();
  const std::uint64_t time =
      (static_cast<std::uint64_t>(base::load_be<std::uint16_t>(octets + 6) & 0x0fff) << 48) |
      (static_cast<std::uint64_t>(base::load_be<std::uint16_t>(octets + 4)) << 32) |
      base::load_be<std::uint32_t>(octets);
  return floor_divide(static_cast<std::int64_t>(time) - kGregorianOffset, kTicksPerMillisecond);
}

QueryResult<std::int64_t> milliseconds_of_date(ByteView bytes) {
  TRY(const std::int32_t raw, model::read_int(bytes));
  const std::int64_t days =
      static_cast<std::int64_t>(static_cast<std::uint32_t>(raw)) - (std::int64_t{1} << 31);
  return days * kMillisecondsPerDay;
}

// Of a timeuuid, a date or a timestamp.
QueryResult<std::int64_t> milliseconds_of(const DataType& type, ByteView bytes) {
  if (type.kind() == TypeKind::timeuuid) return milliseconds_of_uuid(bytes);
  if (type.kind() == TypeKind::date) return milliseconds_of_date(bytes);
  TRY(const std::int64_t milliseconds, model::read_bigint(bytes));
  return milliseconds;
}

QueryResult<Bytes> date_of(std::int64_t milliseconds) {
  const std::int64_t days = floor_divide(milliseconds, kMillisecondsPerDay);
  if (days < -(std::int64_t{1} << 31) || days >= (std::int64_t{1} << 31)) {
    return invalid("the time {} ms is beyond the range of dates", milliseconds);
  }
  return model::date_value(days);
}

// The ticks of version 1 UUIDs that a millisecond begins with.
QueryResult<std::int64_t> ticks_of(std::int64_t milliseconds) {
  if (milliseconds < kTimeUuidTicksMin / kTicksPerMillisecond ||
      milliseconds >= kTimeUuidTicksMax / kTicksPerMillisecond) {
    return invalid("the time {} ms is beyond the range of version 1 UUIDs", milliseconds);
  }
  return milliseconds * kTicksPerMillisecond;
}

// ---- Bodies ----

using Made = QueryResult<OptionalBytes>;

Made now(const Function& /*function*/, Function::Arguments /*arguments*/, Moment& moment) {
  return OptionalBytes(model::uuid_value(time_uuid_of(moment)));
}
Made random_uuid(const Function& /*function*/, Function::Arguments /*arguments*/, Moment& moment) {
  const std::uint64_t high = moment.roll();
  return OptionalBytes(model::uuid_value(Uuid::from_random(high, moment.roll())));
}
Made current_timestamp(const Function& /*function*/, Function::Arguments /*arguments*/,
                       Moment& moment) {
  return OptionalBytes(model::bigint_value(moment.milliseconds()));
}
Made current_date(const Function& /*function*/, Function::Arguments /*arguments*/, Moment& moment) {
  TRY(Bytes date, date_of(moment.milliseconds()));
  return OptionalBytes(std::move(date));
}
Made current_time(const Function& /*function*/, Function::Arguments /*arguments*/, Moment& moment) {
  return OptionalBytes(model::bigint_value(
      ((moment.nanoseconds() % kNanosecondsPerDay) + kNanosecondsPerDay) % kNanosecondsPerDay));
}
Made first_time_uuid(const Function& /*function*/, Function::Arguments arguments,
                     Moment& /*moment*/) {
  TRY(const std::int64_t milliseconds, model::read_bigint(*arguments[0]));
  TRY(const std::int64_t ticks, ticks_of(milliseconds));
  return OptionalBytes(model::uuid_value(time_uuid(ticks, kFirstNode)));
}
Made last_time_uuid(const Function& /*function*/, Function::Arguments arguments,
                    Moment& /*moment*/) {
  TRY(const std::int64_t milliseconds, model::read_bigint(*arguments[0]));
  TRY(const std::int64_t ticks, ticks_of(milliseconds));
  return OptionalBytes(model::uuid_value(time_uuid(ticks + kTicksPerMillisecond - 1, kLastNode)));
}
// A timestamp and a bigint of milliseconds are encoded alike.
Made to_milliseconds(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const std::int64_t milliseconds, milliseconds_of(function.arguments[0], *arguments[0]));
  return OptionalBytes(model::bigint_value(milliseconds));
}
Made to_date(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const std::int64_t milliseconds, milliseconds_of(function.arguments[0], *arguments[0]));
  TRY(Bytes date, date_of(milliseconds));
  return OptionalBytes(std::move(date));
}
Made same_bytes(const Function& /*function*/, Function::Arguments arguments, Moment& /*moment*/) {
  return arguments[0];
}
Made from_blob(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  if (!model::validate(function.returns, *arguments[0])) {
    return invalid(
        "In call to function system.{}, value 0x{} is not a valid binary representation for type "
        "{}",
        function.name, base::to_hex(*arguments[0]), function.returns.to_cql());
  }
  return arguments[0];
}

// ---- Casts ----

Made cast_number(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const Number number, read_number(function.arguments[0].kind(), *arguments[0]));
  TRY(Bytes value, number_value(function.returns.kind(), number));
  return OptionalBytes(std::move(value));
}

Made cast_to_text(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  std::string text = model::to_text(function.arguments[0], *arguments[0]);
  if (text.size() >= 2 && text.front() == '\'' && text.back() == '\'') {
    text = text.substr(1, text.size() - 2);
  }
  return OptionalBytes(model::text_value(text));
}

Made to_json(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  return OptionalBytes(model::text_value(model::to_json(function.arguments[0], *arguments[0])));
}
Made from_json(const Function& function, Function::Arguments arguments, Moment& /*moment*/) {
  TRY(const model::JsonValue json, model::parse_json(arguments[0]->text()));
  TRY(OptionalBytes value, model::from_json(function.returns, json));
  return value;
}

bool is_time(TypeKind kind) {
  return kind == TypeKind::timeuuid || kind == TypeKind::timestamp || kind == TypeKind::date;
}

Function::Body cast_body(const DataType& from, const DataType& to) {
  const TypeKind source = from.kind();
  const TypeKind target = to.kind();
  if (from == to) return &same_bytes;
  if (is_number(source) && is_number(target) && target != TypeKind::counter) return &cast_number;
  const bool has_text = is_number(source) || is_time(source) || source == TypeKind::inet ||
                        source == TypeKind::boolean || source == TypeKind::time ||
                        source == TypeKind::uuid;
  if (to.is_text() && has_text) return &cast_to_text;
  if (source == TypeKind::ascii && target == TypeKind::varchar) return &same_bytes;
  if (is_time(source) && target == TypeKind::timestamp) return &to_milliseconds;
  if (is_time(source) && target == TypeKind::date) return &to_date;
  return nullptr;
}

// `intasblob`, `blobasint`: nothing for other names.
std::optional<Function> blob_function(const std::string& name) {
  constexpr std::string_view kTo = "asblob";
  constexpr std::string_view kFrom = "blobas";
  const DataType blob(TypeKind::blob);
  if (name.size() > kTo.size() && name.ends_with(kTo)) {
    const auto type = DataType::native_named(name.substr(0, name.size() - kTo.size()));
    if (type) return Function{name, {*type}, blob, &same_bytes};
  }
  if (name.size() > kFrom.size() && name.starts_with(kFrom)) {
    const auto type = DataType::native_named(name.substr(kFrom.size()));
    if (type) return Function{name, {blob}, *type, &from_blob};
  }
  return std::nullopt;
}

struct KnownFunction {
  std::string_view name;
  std::optional<TypeKind> argument;
  TypeKind returns;
  Function::Body body;
};

constexpr KnownFunction kKnownFunctions[] = {
    {"now", {}, TypeKind::timeuuid, &now},
    {"currenttimeuuid", {}, TypeKind::timeuuid, &now},
    {"uuid", {}, TypeKind::uuid, &random_uuid},
    {"currenttimestamp", {}, TypeKind::timestamp, &current_timestamp},
    {"currentdate", {}, TypeKind::date, &current_date},
    {"currenttime", {}, TypeKind::time, &current_time},
    {"mintimeuuid", TypeKind::timestamp, TypeKind::timeuuid, &first_time_uuid},
    {"maxtimeuuid", TypeKind::timestamp, TypeKind::timeuuid, &last_time_uuid},
    {"dateof", TypeKind::timeuuid, TypeKind::timestamp, &to_milliseconds},
    {"unixtimestampof", TypeKind::timeuuid, TypeKind::bigint, &to_milliseconds},
    {"totimestamp", TypeKind::timeuuid, TypeKind::timestamp, &to_milliseconds},
    {"totimestamp", TypeKind::date, TypeKind::timestamp, &to_milliseconds},
    {"todate", TypeKind::timeuuid, TypeKind::date, &to_date},
    {"todate", TypeKind::timestamp, TypeKind::date, &to_date},
    {"tounixtimestamp", TypeKind::timeuuid, TypeKind::bigint, &to_milliseconds},
    {"tounixtimestamp", TypeKind::timestamp, TypeKind::bigint, &to_milliseconds},
    {"tounixtimestamp", TypeKind::date, TypeKind::bigint, &to_milliseconds},
};

}  // namespace

QueryResult<OptionalBytes> Function::call(Arguments values, Moment& moment) const {
  for (const OptionalBytes& value : values) {
    if (!value && !takes_nulls) return OptionalBytes();
  }
  return body(*this, values, moment);
}

std::string without_underscores(std::string_view name) {
  std::string bare;
  for (const char c : name) {
    if (c != '_') bare.push_back(c);
  }
  return bare;
}

bool is_to_json(std::string_view name) {
  return without_underscores(name) == "tojson";
}
bool is_from_json(std::string_view name) {
  return without_underscores(name) == "fromjson";
}
Function to_json_function(const DataType& type) {
  return {"tojson", {type}, DataType::text(), &to_json};
}
Function from_json_function(const DataType& type) {
  return {"fromjson", {DataType::text()}, type, &from_json};
}

std::vector<Function> functions_named(std::string_view name) {
  const std::string bare = without_underscores(name);
  std::vector<Function> found;
  for (const KnownFunction& known : kKnownFunctions) {
    if (known.name != bare) continue;
    std::vector<DataType> arguments;
    if (known.argument) arguments.emplace_back(*known.argument);
    found.push_back(Function{bare, std::move(arguments), DataType(known.returns), known.body});
  }
  if (auto function = blob_function(bare)) found.push_back(std::move(*function));
  return found;
}

QueryResult<Function> cast_function(const DataType& from, const DataType& to) {
  const Function::Body body = cast_body(from, to);
  if (body == nullptr) return invalid("{} cannot be cast to {}", from.to_cql(), to.to_cql());
  return Function{fmt::format("castas{}", to.to_cql()), {from}, to, body};
}

bool is_assignable(const DataType& to, const DataType& from) {
  if (to.frozen() == from.frozen()) return true;
  switch (to.kind()) {
    case TypeKind::varchar:
      return from.kind() == TypeKind::ascii;
    case TypeKind::blob:
      return from.is_native();
    case TypeKind::uuid:
      return from.kind() == TypeKind::timeuuid;
    case TypeKind::bigint:
      return from.kind() == TypeKind::timestamp || from.kind() == TypeKind::counter;
    // What toUnixTimestamp() gives is a timestamp, too.
    case TypeKind::timestamp:
      return from.kind() == TypeKind::bigint;
    default:
      return false;
  }
}

}  // namespace helenus::cql
