#include "cql/schema/keyspace_change.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "cql/schema/property_values.h"
#include "cql/schema/system_schema.h"

namespace helenus::cql {

using model::OptionMap;
using parser::Properties;
using parser::Property;

namespace {

constexpr std::string_view kPackage = "org.apache.cassandra.locator";
constexpr std::string_view kSimple = "org.apache.cassandra.locator.SimpleStrategy";
constexpr std::string_view kNetwork = "org.apache.cassandra.locator.NetworkTopologyStrategy";
constexpr const char* kFactor = "replication_factor";
// The factor of a keyspace that names none.
constexpr const char* kFactorDefault = "1";

struct KeyspaceProperties {
  std::optional<OptionMap> replication;
  std::optional<bool> durable_writes;
};

QueryResult<KeyspaceProperties> read_properties(const Properties& properties) {
  KeyspaceProperties result;
  for (const Property& property : properties) {
    if (property.name.text == "replication") {
      TRY(result.replication, map_of(property));
    } else if (property.name.text == "durable_writes") {
      TRY(result.durable_writes, boolean_of(property));
    } else {
      return property_syntax_error(fmt::format("Unknown property '{}'", property.name.text));
    }
  }
  if (result.replication && !result.replication->empty() &&
      !result.replication->contains("class")) {
    return config_error("Missing replication strategy class");
  }
  return result;
}

QueryResult<void> check_factor(const std::string& text) {
  if (text.contains('/')) {
    return config_error("Transient replication is not enabled on this node");
  }
  const std::optional<std::int64_t> factor = parse_integer(text);
  if (!factor || *factor > INT32_MAX || *factor < INT32_MIN) {
    return config_error(fmt::format("For input string: \"{}\"", text));
  }
  if (*factor < 0) {
    return config_error(fmt::format("Replication factor must be non-negative, found {}", *factor));
  }
  return {};
}

QueryResult<void> check_simple(const OptionMap& options, std::string_view keyspace) {
  for (const auto& [name, value] : options) {
    if (name == kFactor) continue;
    return config_error(
        fmt::format("Unrecognized strategy option {{{}}} passed to SimpleStrategy for keyspace {}",
                    name, keyspace));
  }
  return check_factor(options.at(kFactor));
}

QueryResult<void> check_network(const OptionMap& options, std::string_view keyspace,
                                std::span<const std::string> data_centers) {
  if (options.empty()) {
    return config_error("Configuration for at least one datacenter must be present");
  }
  for (const auto& [name, value] : options) {
    if (std::ranges::find(data_centers, name) == data_centers.end()) {
      return config_error(
          fmt::format("Unrecognized strategy option {{{}}} passed to NetworkTopologyStrategy for "
                      "keyspace {}",
                      name, keyspace));
    }
    TRY_VOID(check_factor(value));
  }
  return {};
}

// A single factor stands for one in every data centre; those that were set before stay.
QueryResult<void> expand_factor(OptionMap& options, const OptionMap& before,
                                std::span<const std::string> data_centers) {
  if (options.empty()) {
    const auto previous = before.find(kFactor);
    options[kFactor] = previous == before.end() ? kFactorDefault : previous->second;
  }
  const auto factor = options.extract(kFactor);
  if (!factor.empty()) {
    TRY_VOID(check_factor(factor.mapped()));
    for (const auto& [name, value] : before) {
      if (name != kFactor && name != "class") options.try_emplace(name, value);
    }
    for (const std::string& name : data_centers) options.try_emplace(name, factor.mapped());
  }
  std::erase_if(options, [](const auto& option) { return option.second == "0"; });
  return {};
}

// The map as system_schema.keyspaces shows it.
QueryResult<OptionMap> read_replication(OptionMap options, const OptionMap& before,
                                        std::string_view keyspace,
                                        std::span<const std::string> data_centers) {
  std::string strategy = full_class_name(kPackage, options.extract("class").mapped());
  if (strategy == kLocalStrategy) {
    return invalid(
        "Unable to use given strategy class: LocalStrategy is reserved for internal use.");
  }
  if (strategy == kSimple) {
    const auto previous = before.find(kFactor);
    options.try_emplace(kFactor, previous == before.end() ? kFactorDefault : previous->second);
    TRY_VOID(check_simple(options, keyspace));
  } else if (strategy == kNetwork) {
    TRY_VOID(expand_factor(options, before, data_centers));
    TRY_VOID(check_network(options, keyspace, data_centers));
  } else {
    return config_error(fmt::format("Unable to find replication strategy class '{}'", strategy));
  }
  options["class"] = std::move(strategy);
  return options;
}

}  // namespace

QueryResult<model::Keyspace> make_keyspace(const parser::CreateKeyspace& statement,
                                           std::span<const std::string> data_centers) {
  TRY(KeyspaceProperties properties, read_properties(statement.properties));
  if (!properties.replication) return invalid("Missing mandatory option 'replication'");
  if (properties.replication->empty()) return config_error("Missing replication strategy class");
  model::Keyspace keyspace;
  keyspace.name = statement.keyspace.text;
  keyspace.durable_writes = properties.durable_writes.value_or(true);
  TRY(keyspace.replication,
      read_replication(*std::move(properties.replication), {}, keyspace.name, data_centers));
  return keyspace;
}

QueryResult<model::Keyspace> alter_keyspace(const parser::AlterKeyspace& statement,
                                            const model::Keyspace& before,
                                            std::span<const std::string> data_centers) {
  TRY(KeyspaceProperties properties, read_properties(statement.properties));
  model::Keyspace keyspace = before;
  keyspace.durable_writes = properties.durable_writes.value_or(before.durable_writes);
  if (properties.replication && !properties.replication->empty()) {
    TRY(keyspace.replication, read_replication(*std::move(properties.replication),
                                               before.replication, keyspace.name, data_centers));
  }
  return keyspace;
}

}  // namespace helenus::cql
