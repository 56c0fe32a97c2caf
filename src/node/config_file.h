// The configuration file: YAML, one level of `name: value`. Fields that there are not, bad values
// and whatever is no such file are refused with the name of the file and the number of the line.
#pragma once

#include <string_view>

#include "base/result.h"
#include "node/config.h"

namespace helenus::node {

// A file of a sane size; comments and all.
inline constexpr std::size_t kConfigFileSizeMax = std::size_t{1} << 20;

// Sets what `text` sets, and leaves the rest of `config` as it is. Errors: invalid_argument:
// "helenus.yaml:3: cores: 'many' is no number from 0 to 1024".
base::Result<void> read_config(std::string_view file_name, std::string_view text, Config& config);
// The same; `source` is told where each field was set.
base::Result<void> read_config(std::string_view file_name, std::string_view text, Config& config,
                               ConfigSource& source);

}  // namespace helenus::node
