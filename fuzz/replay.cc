// The main of a fuzz target outside a search: runs every file of its corpus and a fixed number of
// mutations of them, always the same ones.
//
//   fuzz-NAME [--mutations N] FILE-OR-FOLDER...
//
// An input that ends the program is left as fuzz-NAME.input in the working directory; given as FILE
// it is run again.
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <sanitizer/common_interface_defs.h>

#include "base/prng.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Input = std::vector<std::uint8_t>;

constexpr std::size_t kMutationsDefault = 4000;
constexpr std::size_t kInputBytesMax = 4096;
constexpr std::uint64_t kSeed = 1;

// The input that is running, for whoever has to say what ended the program.
Input running;
std::string left_input;

void leave_input() {
  std::FILE* const file = std::fopen(left_input.c_str(), "wb");
  if (file == nullptr) return;
  std::fwrite(running.data(), 1, running.size(), file);
  std::fclose(file);
  std::fprintf(stderr, "the input that ended the program: %s\n", left_input.c_str());
}

void leave_input_and_abort(int signal) {
  leave_input();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void run(Input input) {
  running = std::move(input);
  // A copy of exactly this size, so that a read beyond it is seen.
  const Input exact(running);
  LLVMFuzzerTestOneInput(exact.data(), exact.size());
}

std::size_t below(helenus::base::Prng& random, std::size_t bound) {
  return static_cast<std::size_t>(random.below(bound));
}

// One to four changes: bits, bytes, numbers at the edges, cuts, repetitions, parts of another.
Input mutated(Input input, const std::vector<Input>& corpus, helenus::base::Prng& random) {
  constexpr std::uint8_t kEdges[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
  for (std::size_t changes = 1 + below(random, 4); changes > 0; --changes) {
    const std::size_t at = below(random, input.size() + 1);
    const auto here = input.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t span = std::min(1 + below(random, 16), input.size() - at);
    const auto end = here + static_cast<std::ptrdiff_t>(span);
    switch (below(random, 7)) {
      case 0:
        if (span > 0) *here ^= static_cast<std::uint8_t>(1U << below(random, 8));
        break;
      case 1:
        if (span > 0) *here = static_cast<std::uint8_t>(random.next());
        break;
      case 2:
        std::fill(here, end, kEdges[below(random, std::size(kEdges))]);
        break;
      case 3:
        input.erase(here, end);
        break;
      case 4: {
        const Input repeated(here, end);
        input.insert(here, repeated.begin(), repeated.end());
        break;
      }
      case 5:
        input.resize(at);
        break;
      default: {
        const Input& other = corpus[below(random, corpus.size())];
        const auto from = static_cast<std::ptrdiff_t>(below(random, other.size() + 1));
        input.resize(at);
        input.insert(input.end(), other.begin() + from, other.end());
      }
    }
  }
  if (input.size() > kInputBytesMax) input.resize(kInputBytesMax);
  return input;
}

Input read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// The files that are named and those in the folders that are, in the order of their names.
std::vector<std::filesystem::path> files_of(const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names) {
    if (!std::filesystem::is_directory(name)) {
      files.emplace_back(name);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(name)) {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::string> names(arguments + 1, arguments + count);
  std::size_t mutations = kMutationsDefault;
  if (names.size() >= 2 && names[0] == "--mutations") {
    mutations = std::stoul(names[1]);
    names.erase(names.begin(), names.begin() + 2);
  }
  left_input = std::filesystem::path(arguments[0]).filename().string() + ".input";
  __sanitizer_set_death_callback(leave_input);
  std::signal(SIGABRT, leave_input_and_abort);

  std::vector<Input> corpus;
  for (const std::filesystem::path& path : files_of(names)) {
    if (!std::filesystem::is_regular_file(path)) {
      std::fprintf(stderr, "%s: no such file\n", path.c_str());
      return 2;
    }
    corpus.push_back(read(path));
  }
  if (corpus.empty()) {
    std::fprintf(stderr, "no input: name files or folders\n");
    return 2;
  }
  for (const Input& input : corpus) run(input);
  helenus::base::Prng random(kSeed);
  for (std::size_t number = 0; number < mutations; ++number) {
    run(mutated(corpus[number % corpus.size()], corpus, random));
  }
  std::printf("%zu inputs, %zu mutations\n", corpus.size(), mutations);
  return 0;
}
