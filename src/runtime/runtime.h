// Runtime: everything a core offers to the code that runs on it. Handed down by reference; there
// is no ambient one.
//
// Two worlds implement it: runtime/native over the operating system, and sim over virtual time.
// Protocol code sees only this, so that the same objects run in both.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"

namespace helenus::runtime {

class Clock;
class Cores;
class Executor;
class FileSystem;
class Random;
class Timers;
class Transport;

// Rare branches that the simulator takes on purpose: `if (rt.buggify("flush.early")) ...`. Which
// sites are active is drawn per run, whether an active one fires is drawn per visit. In the native
// world nothing ever fires.
class Buggify {
 public:
  virtual ~Buggify() = default;
  virtual bool fires(std::string_view site) = 0;
};

// One per core; outlives everything that runs on that core. Each member belongs to that core.
class Runtime {
 public:
  Executor& executor;
  Clock& clock;
  Timers& timers;
  FileSystem& files;
  Transport& transport;
  Random& random;
  Cores& cores;
  base::LogSink& log_sink;
  Buggify& buggify_points;
  // Changes whenever the machine may have lost what was written but not synced: the kernel's boot.
  std::string boot_id;

  bool buggify(std::string_view site) { return buggify_points.fires(site); }
  base::Logger logger(std::string module) { return {log_sink, std::move(module)}; }
};

}  // namespace helenus::runtime
