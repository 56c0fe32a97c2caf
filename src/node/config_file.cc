#include "node/config_file.h"

#include <string>
#include <vector>

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

// One item, or those of a list. Requires: one of both.
Result<std::vector<std::string>> items_in(std::string_view file_name, std::string_view field,
                                          const YAML::Node& value) {
  if (value.IsScalar()) return std::vector<std::string>{value.Scalar()};
  std::vector<std::string> items;
  for (const auto& item : value) {
    if (!item.IsScalar()) {
      return error_at(file_name, item.Mark(), fmt::format("{}: a list of words is wanted", field));
    }
    items.push_back(item.Scalar());
  }
  return items;
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
  const bool is_list = field->set_items != nullptr;
  if (!value.IsScalar() && !(is_list && value.IsSequence())) {
    const std::string_view wanted = is_list ? "a list" : "a single value";
    return error_at(file_name, key.Mark(), fmt::format("{}: {} is wanted", name, wanted));
  }
  TRY(const std::vector<std::string> items, items_in(file_name, name, value));
  // A list of nothing is what it is without the field.
  if (items.empty()) return {};
  const Result<void> set =
      is_list ? field->set_items(config, items) : field->set(config, items.front());
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
