#include "cql/system/traces.h"

#include <string>
#include <utility>

#include "cql/protocol/primitives.h"

namespace helenus::cql {

void Traces::add(Session session) {
  // A string of its own: one that is only made shorter keeps all of its memory.
  const auto cut = [](std::string& text) {
    text = std::string(protocol::cut_utf8(text, kTextSizeMax));
  };
  for (auto& [name, value] : session.parameters) cut(value);
  for (Event& event : session.events) cut(event.activity);
  if (sessions_.size() == kSessionsMax) sessions_.pop_front();
  sessions_.push_back(std::move(session));
}

}  // namespace helenus::cql
