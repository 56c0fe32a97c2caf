// What of a URL is text in disguise: bytes behind percent signs, parameters behind the question
// mark, and bytes as letters that need no disguise (base64url, RFC 4648 section 5, without
// padding).
//
// Strangers' bytes: nothing is read past their end, and no more is made of them than they have.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"

namespace helenus::keyvalue {

// "caf%C3%A9" to "café". Errors: invalid_argument for a percent sign without two digits behind it.
base::Result<std::string> percent_decoded(std::string_view text);

// The value of a parameter in "a=1&b=2"; none if it is not there. Errors: as above, and for one
// that is there twice.
base::Result<std::optional<std::string>> parameter(std::string_view query, std::string_view name);

std::string to_base64url(base::ByteView bytes);
// Law: what it takes encodes to the same letters. Errors: invalid_argument.
base::Result<base::Bytes> from_base64url(std::string_view text);

}  // namespace helenus::keyvalue
