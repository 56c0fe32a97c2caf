#include "node/config_file.h"

#include <string>

#include <yaml-cpp/yaml.h>

namespace helenus::node {

using base::Errc;
using base::Error;
using base::Result;

namespace {

int line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 1 : mark.line + 1;
}

Error error_at(std::string_view file_name, const YAML::Mark& mark, std::string_view message) {
  return {Errc::invalid_argument, "{}:{}: {}", file_name, line_of(mark), message};
}

Result<void> read_field(std::string_view file_name, const YAML::Node& key, const YAML::Node& value,
                        Config& config, ConfigSource& source) {
  if (!key.IsScalar()) return error_at(file_name, key.Mark(), "a field's name must be a word");
  const std::string& name = key.Scalar();
  const ConfigField* field = find_config_field(name);
  if (field == nullptr) {
    return error_at(file_name, key.Mark(), fmt::format("there is no field '{}'", name));
  }
  if (!source.lines.emplace(name, line_of(key.Mark())).second) {
    return error_at(file_name, key.Mark(), fmt::format("{} is set twice", name));
  }
  if (!value.IsScalar() && !(field->is_list && value.IsSequence())) {
    const std::string_view wanted = field->is_list ? "a list" : "a single value";
    return error_at(file_name, key.Mark(), fmt::format("{}: {} is wanted", name, wanted));
  }
  std::string text = value.IsScalar() ? value.Scalar() : "";
  for (std::size_t i = 0; value.IsSequence() && i < value.size(); ++i) {
    if (!value[i].IsScalar()) {
      return error_at(file_name, value[i].Mark(),
                      fmt::format("{}: a list of words is wanted", name));
    }
    if (value[i].Scalar().contains(',')) {
      return error_at(file_name, value[i].Mark(),
                      fmt::format("{}: '{}' has a comma", name, value[i].Scalar()));
    }
    text += (i > 0 ? "," : "") + value[i].Scalar();
  }
  // A list of nothing is what it is without the field.
  if (value.IsSequence() && value.size() == 0) return {};
  const Result<void> set = field->set(config, text);
  if (!set) {
    return error_at(file_name, value.Mark(), fmt::format("{}: {}", name, set.error().context()));
  }
  return {};
}

}  // namespace

Result<void> read_config(std::string_view file_name, std::string_view text, Config& config) {
  ConfigSource source;
  return read_config(file_name, text, config, source);
}

Result<void> read_config(std::string_view file_name, std::string_view text, Config& config,
                         ConfigSource& source) {
  source = {.file_name = std::string(file_name), .lines = {}};
  if (text.size() > kConfigFileSizeMax) {
    return Error(Errc::invalid_argument, "{}: larger than {} bytes", file_name, kConfigFileSizeMax);
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.size() > 1) {
      return error_at(file_name, documents[1].Mark(), "a second document");
    }
    if (documents.empty() || documents.front().IsNull()) return {};
    const YAML::Node& root = documents.front();
    if (!root.IsMap()) return error_at(file_name, root.Mark(), "not of the form `name: value`");
    for (const auto& entry : root) {
      TRY_VOID(read_field(file_name, entry.first, entry.second, config, source));
    }
    return {};
  } catch (const YAML::Exception& error) {
    return error_at(file_name, error.mark, error.msg);
  }
}

}  // namespace helenus::node
