// Values of CQL's native types as HTTP has them: bytes of a body, a part of a path, JSON.
//
//   type                          as text                JSON
//   text, ascii                   itself                 string
//   blob                          its bytes in a body,   string "0xcafe"
//                                 0xcafe in a path
//   tinyint, smallint, int,       -12                    number; a string is taken, too
//   bigint
//   float, double                 1.5, NaN               number; string for NaN and infinity
//   boolean                       true                   boolean
//   varint, decimal               as CQL writes them     string; a whole number is taken, too
//   uuid, timestamp, date, ...    as CQL writes them     string
//
// Others (collections, tuples, types of users) have no such form. Pure; strangers' bytes.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/result.h"
#include "model/data_type.h"

namespace helenus::keyvalue {

using Json = nlohmann::ordered_json;

// Whether its values have a form here.
bool has_text(const model::DataType& type);

// Require, all: has_text(type). Errors: invalid_argument with what is wrong.
base::Result<base::Bytes> value_of_text(const model::DataType& type, std::string_view text);
// The body of a request: of a blob the bytes themselves.
base::Result<base::Bytes> value_of_body(const model::DataType& type, const base::Bytes& body);
// Requires: not null.
base::Result<base::Bytes> value_of_json(const model::DataType& type, const Json& json);

Json json_of_value(const model::DataType& type, base::ByteView value);
std::string body_of_value(const model::DataType& type, base::ByteView value);

// A scalar, or an object or array of scalars. Errors: invalid_argument.
base::Result<Json> parse_flat_json(std::string_view text);
std::string to_text(const Json& json);

}  // namespace helenus::keyvalue
