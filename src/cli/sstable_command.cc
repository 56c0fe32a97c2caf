#include "cli/sstable_command.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/bytes.h"
#include "base/histogram.h"
#include "cli/sstable_words.h"
#include "storage/sstable/sstable_cursor.h"
#include "storage/sstable/sstable_reader.h"
#include "storage/verify/sstable_verify.h"

namespace helenus::cli {

using base::ByteView;
using base::Result;
using runtime::Task;
using runtime::Until;
using storage::SstableReader;
using storage::SstableShared;
using storage::SstableStatistics;

namespace {

constexpr std::size_t kCacheBytes = std::size_t{8} << 20;

// ---- the command line

std::optional<std::string> unhex(std::string_view digits) {
  constexpr std::string_view kDigits = "00112233445566778899aAbBcCdDeEfF";
  if (digits.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const std::size_t high = kDigits.find(digits[i]) / 2;
    const std::size_t low = kDigits.find(digits[i + 1]) / 2;
    if (high > 15 || low > 15) return std::nullopt;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

void add_files(CLI::App& command, std::vector<std::string>& files) {
  command.add_option("FILE", files, "The files to look at")->required();
}

struct DumpFlags {
  std::string from;
  bool text = false;
  bool values = false;
  bool raw = false;
};

void add_dump(CLI::App& app, SstableCommand& parsed, DumpFlags& flags) {
  CLI::App* command = app.add_subcommand("dump", "Show the rows: ordinal, key, size of the value");
  add_files(*command, parsed.files);
  command->add_option("--limit", parsed.limit, "Show at most so many rows of each file");
  command->add_option("--from", flags.from,
                      "Begin at this key: text, or 0x and hexadecimal digits");
  command->add_flag("--text", flags.text, "Keys and values as text with escapes, not hexadecimal");
  auto* values = command->add_flag("--values", flags.values,
                                   "Show in words what is in each entry: dots, values, deletes");
  command->add_flag("--raw", flags.raw, "Show the bytes of each value")->excludes(values);
}

void add_verify(CLI::App& app, SstableCommand& parsed) {
  CLI::App* command = app.add_subcommand(
      "verify", "Read everything and check it: every checksum, the order of keys, all counts");
  add_files(*command, parsed.files);
  command->add_flag("--progress", parsed.progress, "Tell on standard error how far it is");
}

void add_statistics(CLI::App& app, SstableCommand& parsed) {
  CLI::App* command = app.add_subcommand("statistics", "Show what the file says about itself");
  add_files(*command, parsed.files);
  command->add_flag("--json", parsed.json, "As JSON, one object a line and file");
}

}  // namespace

ParsedCommand parse_sstable_command(std::vector<std::string> words) {
  constexpr const char* kProgram = "helenus-sstable";
  CLI::App app("Shows, checks and sums up the files of a table", kProgram);
  app.require_subcommand(1);
  SstableCommand parsed;
  DumpFlags flags;
  add_dump(app, parsed, flags);
  add_verify(app, parsed);
  add_statistics(app, parsed);
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 wants them
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    // CLI11 answers --help this way too, with exit code 0.
    if (error.get_exit_code() == 0) {
      const auto subcommands = app.get_subcommands();
      return {.command = {},
              .text = subcommands.empty() ? app.help() : subcommands.front()->help(),
              .exit_code = kExitWell};
    }
    return {.command = {},
            .text = fmt::format("{}: {}; see {} --help\n", kProgram, error.what(), kProgram),
            .exit_code = kExitBadArguments};
  }
  parsed.form = flags.text ? SstableCommand::Form::text : SstableCommand::Form::hex;
  if (flags.values) parsed.values = SstableCommand::Values::words;
  if (flags.raw) parsed.values = SstableCommand::Values::raw;
  if (app.got_subcommand("verify")) parsed.kind = SstableCommand::Kind::verify;
  if (app.got_subcommand("statistics")) parsed.kind = SstableCommand::Kind::statistics;
  parsed.from = flags.from;
  if (flags.from.starts_with("0x")) {
    const auto bytes = unhex(std::string_view(flags.from).substr(2));
    if (!bytes.has_value()) {
      return {.command = {},
              .text = fmt::format("{}: --from {} is not hexadecimal; see {} --help\n", kProgram,
                                  flags.from, kProgram),
              .exit_code = kExitBadArguments};
    }
    parsed.from = *bytes;
  }
  return {.command = std::move(parsed), .text = {}, .exit_code = kExitWell};
}

namespace {

// ---- dump

// Printable ASCII as it is, all else as \xNN.
std::string escaped(ByteView bytes) {
  std::string text;
  for (const std::byte byte : bytes) {
    const auto code = std::to_integer<unsigned>(byte);
    if (code >= 0x20 && code < 0x7f && code != '\\') {
      text.push_back(static_cast<char>(code));
    } else {
      text += fmt::format("\\x{:02x}", code);
    }
  }
  return text;
}

// The partition's part and the rest of the key are told apart by a bar.
std::string shown(const storage::RowKey& key, SstableCommand::Form form) {
  const auto show = [&](ByteView bytes) {
    return form == SstableCommand::Form::text ? escaped(bytes) : base::to_hex(bytes);
  };
  const std::string partition = show(key.partition());
  if (key.partition_size == key.bytes.size()) return partition;
  return partition + "|" + show(key.bytes.subspan(key.partition_size));
}

Task<Result<void>> dump(std::shared_ptr<SstableReader> reader, const SstableCommand& command,
                        const Printer& printer, Until until) {
  const FileKind kind = file_kind_of(reader->metadata());
  const auto words = metadata_in_words(reader->metadata());
  storage::SstableCursorOptions options{.cache_use = storage::CacheUse::bypass};
  options.until = until;
  storage::SstableCursor cursor(std::move(reader), std::move(options));
  if (command.values == SstableCommand::Values::words) {
    for (const std::string& line : words) printer.out(line + "\n");
  }
  CO_TRY_VOID(co_await cursor.seek(base::as_bytes(command.from)));
  for (std::uint64_t rows = 0; cursor.valid() && rows < command.limit; ++rows) {
    std::string line = fmt::format("{:>10}  {}  {} bytes", cursor.ordinal(),
                                   shown(cursor.key(), command.form), cursor.value().size());
    if (command.values == SstableCommand::Values::raw) {
      line += "  " + (command.form == SstableCommand::Form::text ? escaped(cursor.value())
                                                                 : base::to_hex(cursor.value()));
    }
    printer.out(line + "\n");
    if (command.values == SstableCommand::Values::words) {
      for (const std::string& word : entry_in_words(kind, cursor.share_value())) {
        printer.out(fmt::format("{:12}{}\n", "", word));
      }
    }
    CO_TRY_VOID(co_await cursor.next());
  }
  co_return {};
}

// ---- statistics

std::string summary_of(const base::Bytes& encoded) {
  base::Decoder in(encoded);
  const auto histogram = base::Histogram::decode(in);
  return histogram ? histogram->summary() : "unreadable";
}

// Name and number, in the order they are shown.
std::vector<std::pair<std::string, std::uint64_t>> counters_of(const SstableReader& reader) {
  const SstableStatistics& s = reader.statistics();
  return {{"file_bytes", reader.file_size()},
          {"keys", s.key_count},
          {"partitions", s.partition_count},
          {"key_bytes", s.key_bytes},
          {"value_bytes", s.value_bytes},
          {"largest_key_bytes", s.key_size_max},
          {"largest_value_bytes", s.value_size_max},
          {"data_blocks", s.data_block_count},
          {"data_bytes", s.data_payload_bytes},
          {"data_stored_bytes", s.data_stored_bytes},
          {"index_blocks", s.index_block_count},
          {"index_stored_bytes", s.index_stored_bytes},
          {"index_levels", s.index_depth},
          {"filter_blocks", s.filter_block_count},
          {"filter_stored_bytes", s.filter_stored_bytes},
          {"filter_hashes", s.filter_hash_count},
          {"filter_memory_bytes", reader.filter_bytes()},
          {"metadata_bytes", reader.metadata().size()}};
}

// The kinds of the file's filters: one, but for keys that were made to collide.
std::string filter_kinds_of(const SstableReader& reader) {
  std::string kinds;
  for (const storage::FilterKind kind : storage::kFilterKinds) {
    const bool there = std::ranges::any_of(
        reader.filters(), [&](const storage::SstableFilter& each) { return each.kind() == kind; });
    if (there) kinds += fmt::format("{}{}", kinds.empty() ? "" : ", ", storage::name_of(kind));
  }
  return kinds.empty() ? std::string(storage::name_of(storage::FilterKind::none)) : kinds;
}

std::string statistics_as_json(const SstableReader& reader) {
  const SstableStatistics& s = reader.statistics();
  nlohmann::ordered_json json;
  json["file"] = reader.path();
  json["id"] = base::to_hex(reader.id().bytes);
  json["compression"] = storage::name_of(s.compression);
  json["filter"] = filter_kinds_of(reader);
  for (const auto& [name, number] : counters_of(reader)) json[name] = number;
  json["first_key"] = base::to_hex(s.first_key);
  json["last_key"] = base::to_hex(s.last_key);
  json["wide_partitions"] = nlohmann::ordered_json::array();
  for (const auto& wide : s.wide_partitions) {
    json["wide_partitions"].push_back({{"key", base::to_hex(wide.key)},
                                       {"first_ordinal", wide.first_ordinal},
                                       {"rows", wide.row_count},
                                       {"bytes", wide.bytes}});
  }
  json["metadata"] = metadata_in_words(reader.metadata());
  json["partition_bytes"] = summary_of(s.partition_bytes_histogram);
  json["partition_rows"] = summary_of(s.partition_rows_histogram);
  return json.dump() + "\n";
}

std::string statistics_as_table(const SstableReader& reader) {
  constexpr std::size_t kKeyBytesShown = 32;
  const SstableStatistics& s = reader.statistics();
  std::string text = fmt::format("{}\n", reader.path());
  const auto line = [&](std::string_view name, std::string_view value) {
    text += fmt::format("  {:<20} {}\n", name, value);
  };
  line("id", base::to_hex(reader.id().bytes));
  line("compression", storage::name_of(s.compression));
  line("filter", filter_kinds_of(reader));
  for (const auto& [name, number] : counters_of(reader)) line(name, fmt::format("{:>16}", number));
  line("first_key", base::to_hex(s.first_key, kKeyBytesShown));
  line("last_key", base::to_hex(s.last_key, kKeyBytesShown));
  line("partition_bytes", summary_of(s.partition_bytes_histogram));
  line("partition_rows", summary_of(s.partition_rows_histogram));
  for (const auto& wide : s.wide_partitions) {
    line("wide_partition",
         fmt::format("{} rows={} bytes={} first_ordinal={}", base::to_hex(wide.key, kKeyBytesShown),
                     wide.row_count, wide.bytes, wide.first_ordinal));
  }
  for (const std::string& words : metadata_in_words(reader.metadata())) line("metadata", words);
  return text;
}

// ---- all

Task<Result<void>> verify(runtime::Runtime& runtime, SstableShared& shared, std::string path,
                          const SstableCommand& command, const Printer& printer, Until until) {
  storage::OnVerifyProgress on_progress;
  if (command.progress) {
    on_progress = [&](const storage::VerifyProgress& progress) {
      printer.error(fmt::format("\r{}: {} of {} bytes, {} blocks, {} keys", path,
                                progress.bytes_done, progress.bytes_total, progress.blocks,
                                progress.keys));
    };
  }
  const auto verified =
      co_await storage::verify_sstable(runtime, shared, path, on_progress, std::move(until));
  if (command.progress) printer.error("\n");
  if (!verified) co_return verified.error();
  printer.out(fmt::format("{}: sound, {} keys in {} blocks, {} bytes{}\n", path, verified->keys,
                          verified->blocks, verified->bytes_total,
                          verified->entries_checked ? "" : "; its entries are not of a table"));
  co_return {};
}

Task<Result<void>> run_on(runtime::Runtime& runtime, SstableShared& shared, std::string path,
                          const SstableCommand& command, const Printer& printer, Until until) {
  if (command.kind == SstableCommand::Kind::verify) {
    co_return co_await verify(runtime, shared, std::move(path), command, printer, until);
  }
  CO_TRY(const auto reader, co_await SstableReader::open(runtime, shared, path, {}, until));
  if (command.kind == SstableCommand::Kind::dump) {
    co_return co_await dump(reader, command, printer, until);
  }
  printer.out(command.json ? statistics_as_json(*reader) : statistics_as_table(*reader));
  co_return {};
}

}  // namespace

Task<int> run_sstable_command(runtime::Runtime& runtime, SstableCommand command, Printer printer,
                              runtime::StopToken stop) {
  SstableShared shared(kCacheBytes);
  int exit_code = kExitWell;
  for (const std::string& file : command.files) {
    const auto done = co_await run_on(runtime, shared, file, command, printer, {.stop = stop});
    if (done) continue;
    printer.error(fmt::format("helenus-sstable: {}\n", done.error()));
    exit_code = kExitDamaged;
  }
  co_return exit_code;
}

}  // namespace helenus::cli
