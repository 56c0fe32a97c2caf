// Which customers have we surely never seen? A tour of the filters: fill one, ask it, erase from
// it, keep it in a file and use it where it lies, and let one learn from its mistakes.
//
//   filters_example FILE
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <helenus/filters/adaptive_cuckoo.h>
#include <helenus/filters/blocked_bloom.h>
#include <helenus/filters/cuckoo.h>

namespace filters = helenus::filters;

namespace {

constexpr std::uint64_t kCustomers = 100'000;

std::string customer(std::uint64_t number) {
  return "customer-" + std::to_string(number);
}

// The share of strangers, in percent, that a filter takes for members.
template <filters::Filter F>
double strangers_taken_for_members(const F& filter) {
  std::vector<filters::KeyHash> strangers;
  for (std::uint64_t i = 0; i < kCustomers; ++i) strangers.emplace_back(customer(kCustomers + i));
  // Asking for many at once overlaps the waits for memory.
  const auto answers = std::make_unique<bool[]>(strangers.size());
  filter.contains_batch(strangers, std::span(answers.get(), strangers.size()));
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < strangers.size(); ++i) taken += answers[i] ? 1 : 0;
  return 100.0 * static_cast<double>(taken) / static_cast<double>(strangers.size());
}

template <filters::Filter F>
bool fill(F& filter) {
  for (std::uint64_t i = 0; i < kCustomers; ++i) {
    // False would mean: full. Nothing is lost then; take a larger filter.
    if (!filter.insert(customer(i))) return false;
  }
  return true;
}

bool save(const helenus::base::Bytes& bytes, const char* path) {
  std::ofstream file(path, std::ios::binary);
  file << bytes.text();
  return file.good();
}

helenus::base::Bytes load(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return helenus::base::Bytes::copy_of(std::string(std::istreambuf_iterator<char>(file), {}));
}

int tour(const char* path) {
  auto bloom = *filters::BlockedBloom::for_rate(kCustomers, 0.01);
  auto cuckoo = *filters::Cuckoo12::for_capacity(kCustomers);
  auto adaptive = *filters::KeyedAdaptiveCuckoo<16>::for_capacity(kCustomers);
  if (!fill(bloom) || !fill(cuckoo) || !fill(adaptive)) return 1;
  std::printf("false positives: blocked Bloom %.2f %%, cuckoo of 12 bits %.2f %%\n",
              strangers_taken_for_members(bloom), strangers_taken_for_members(cuckoo));

  // Only a key that is surely in may be erased: see filter.h.
  if (!cuckoo.erase(customer(7)) || cuckoo.contains(customer(7))) return 1;

  // A filter from a file looks into the file's bytes; damaged bytes are an error, not a filter.
  if (!save(cuckoo.encode(), path)) return 1;
  const auto loaded = filters::Cuckoo12::decode(load(path));
  if (!loaded) {
    std::printf("%s\n", loaded.error().to_string().c_str());
    return 1;
  }
  if (!loaded->contains(customer(8)) || loaded->size() != kCustomers - 1) return 1;
  std::printf("loaded %llu keys in %llu bytes\n", static_cast<unsigned long long>(loaded->size()),
              static_cast<unsigned long long>(loaded->memory_bytes()));

  // An adaptive filter, told of a false positive, stops giving it.
  const double before = strangers_taken_for_members(adaptive);
  for (std::uint64_t i = 0; i < kCustomers; ++i) {
    const filters::KeyHash stranger(customer(kCustomers + i));
    if (adaptive.contains(stranger)) adaptive.report_false_positive(stranger);
  }
  const double after = strangers_taken_for_members(adaptive);
  std::printf("adaptive: false positives %.3f %%, then %.3f %%\n", before, after);
  return after < before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::printf("usage: %s FILE\n", argv[0]);
    return 2;
  }
  return tour(argv[1]);
}
