// Whether bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include "base/bytes.h"

namespace helenus::model {

bool is_utf8(base::ByteView bytes);
bool is_ascii(base::ByteView bytes);

}  // namespace helenus::model
