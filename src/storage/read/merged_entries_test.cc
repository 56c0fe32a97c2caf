// The merge against a map, over memtables; sstables as sources are tested with the engine.
#include "storage/read/merged_entries.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "causality/codec.h"
#include "causality/generators.h"

namespace helenus::storage {
namespace {

using causality::Policy;

// Memtables never wait, so every motion is over at once.
void done(EntrySource::Motion motion) {
  RC_ASSERT(motion.ready());
  RC_ASSERT(std::move(motion).take().has_value());
}

std::string key_of_row(const std::string& row) {
  return encode_key({base::as_bytes("p"), EntryKind::row, base::as_bytes(row)});
}

struct Scene {
  std::vector<std::shared_ptr<Memtable>> memtables;
  std::map<std::string, Entry> model;

  MergedEntries merged() const {
    std::vector<std::unique_ptr<EntrySource>> sources;
    for (const auto& memtable : memtables) sources.push_back(entries_of(memtable));
    return MergedEntries(std::move(sources));
  }
};

// What one delta says of one row and of ranges, strewn over several memtables; some in more than
// one, as after a replay.
Scene any_scene() {
  Scene scene;
  const std::size_t count = *rc::gen::inRange<std::size_t>(0, 4);
  for (std::size_t i = 0; i < count; ++i) {
    scene.memtables.push_back(std::make_shared<Memtable>(Policy::lww));
  }
  if (count == 0) return scene;
  for (const auto& dot :
       *rc::gen::container<std::vector<causality::Dot>>(causality::testing::any_dot())) {
    causality::Delta delta = causality::testing::delta_of(dot);
    if (delta.cells.empty()) continue;
    delta.cells.resize(1);
    Memtable& memtable = *scene.memtables[*rc::gen::inRange<std::size_t>(0, count)];
    memtable.apply(base::as_bytes("p"), delta, causality::encoded(delta), 1);
  }
  for (const auto& memtable : scene.memtables) {
    Memtable::Cursor cursor(*memtable);
    for (cursor.seek_first(); cursor.valid(); cursor.next()) {
      scene.model[std::string(base::as_text(cursor.key()))].absorb(cursor.entry());
    }
  }
  return scene;
}

void check_place(const MergedEntries& merged, const Scene& scene,
                 std::map<std::string, Entry>::const_iterator expected) {
  RC_ASSERT(merged.valid() == (expected != scene.model.end()));
  if (!merged.valid()) return;
  RC_ASSERT(base::as_text(merged.key().bytes) == expected->first);
  Entry entry;
  RC_ASSERT(merged.absorb_into(entry).has_value());
  RC_ASSERT(entry == expected->second);
}

RC_GTEST_PROP(MergedEntries, AnyWalkSeesWhatAMapOfMergedEntriesHolds, ()) {
  const Scene scene = any_scene();
  MergedEntries merged = scene.merged();
  auto expected = scene.model.end();
  for (const int motion : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 4))) {
    const std::string key =
        key_of_row(*rc::gen::element<std::string>("", "a", "aa", "b", "bb", "c", "cc"));
    if (motion == 0 || (motion >= 2 && !merged.valid())) {
      done(merged.seek(base::as_bytes(key)));
      expected = scene.model.lower_bound(key);
    } else if (motion == 1) {
      done(merged.seek_before(base::as_bytes(key)));
      expected = scene.model.lower_bound(key);
      expected = expected == scene.model.begin() ? scene.model.end() : std::prev(expected);
    } else if (motion == 2) {
      done(merged.next());
      ++expected;
    } else {
      done(merged.previous());
      expected = expected == scene.model.begin() ? scene.model.end() : std::prev(expected);
    }
    check_place(merged, scene, expected);
  }
}

}  // namespace
}  // namespace helenus::storage
