#include "cql/traces.h"

#include <utility>

#include "cql/protocol/primitives.h"

namespace helenus::cql {

void Traces::add(Session session) {
  const auto cut = [](std::string& text) {
    text.resize(protocol::cut_utf8(text, kTextSizeMax).size());
  };
  for (auto& [name, value] : session.parameters) cut(value);
  for (Event& event : session.events) cut(event.activity);
  if (sessions_.size() == kSessionsMax) sessions_.pop_front();
  sessions_.push_back(std::move(session));
}

}  // namespace helenus::cql
