// How dot stores read for people.
#include "causality/dot_store.h"

namespace {

std::string shown(const helenus::base::Bytes& bytes) {
  for (const char letter : bytes.text()) {
    if (letter < ' ' || letter > '~') return "0x" + helenus::base::to_hex(bytes.view(), 16);
  }
  return fmt::format("'{}'", bytes.text().substr(0, 32));
}

}  // namespace

fmt::format_context::iterator fmt::formatter<helenus::causality::Version>::format(
    const helenus::causality::Version& version, fmt::format_context& ctx) const {
  using helenus::causality::VersionKind;
  auto out = fmt::format_to(ctx.out(), "{}@{}=", version.dot, version.timestamp);
  if (version.kind == VersionKind::deletion) {
    out = fmt::format_to(out, "deleted");
  } else if (version.kind == VersionKind::reset) {
    out = fmt::format_to(out, "reset");
  } else if (version.kind == VersionKind::folded) {
    out = fmt::format_to(out, "folded");
  } else if (version.kind == VersionKind::total) {
    out = fmt::format_to(out, "{} in total", version.amount);
  } else if (version.kind == VersionKind::increment || version.kind == VersionKind::dead) {
    out = version.kind == VersionKind::dead ? fmt::format_to(out, "dead")
                                            : fmt::format_to(out, "{:+}", version.amount);
    if (!version.value.empty())
      out = fmt::format_to(out, " of {}", helenus::base::to_hex(version.value));
  } else {
    out = fmt::format_to(out, "{}", shown(version.value));
  }
  return version.expires ? fmt::format_to(out, " until {}", *version.expires) : out;
}

fmt::format_context::iterator fmt::formatter<helenus::causality::CellStore>::format(
    const helenus::causality::CellStore& cell, fmt::format_context& ctx) const {
  auto out = fmt::format_to(ctx.out(), "[");
  const char* separator = "";
  for (const auto& version : cell.versions()) {
    out = fmt::format_to(out, "{}{}", separator, version);
    separator = ", ";
  }
  return fmt::format_to(out, "] after {}", cell.context());
}

fmt::format_context::iterator fmt::formatter<helenus::causality::RowRange>::format(
    const helenus::causality::RowRange& row_range, fmt::format_context& ctx) const {
  return fmt::format_to(ctx.out(), "rows {} up to {}",
                        row_range.from ? shown(*row_range.from) : "all",
                        row_range.to ? shown(*row_range.to) : "the end");
}
