#include "node/database.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "cql/schema/system_schema.h"
#include "cql/system/system_tables.h"
#include "model/token.h"
#include "node/core_limits.h"
#include "replication/coordinator/coordinator.h"
#include "runtime/clock.h"
#include "runtime/cores.h"
#include "runtime/event.h"
#include "runtime/random.h"
#include "runtime/sleep.h"
#include "runtime/transport.h"
#include "runtime/when_all.h"

namespace helenus::node {

using base::kv;
using base::Result;
using runtime::Runtime;
using runtime::Task;
using runtime::Until;

namespace {

constexpr runtime::Duration kAskAgainAfter = std::chrono::milliseconds(1);

replication::ReplicaOptions replica_options(const Config& config) {
  using Deltas = replication::ReplicatedWriter::Deltas;
  replication::ReplicaOptions options;
  options.deltas =
      config.replication_by == ReplicationBy::deltas ? Deltas::sent : Deltas::left_to_anti_entropy;
  options.anti_entropy.interval = std::chrono::milliseconds(config.anti_entropy_interval_ms);
  return options;
}

}  // namespace

Database::Database(runtime::Runtime& runtime, const Config& config, model::NodeId node)
    : runtime_(runtime),
      config_(config),
      node_(node),
      log_(runtime.logger("database")),
      admission_(std::make_shared<cql::NodeAdmission>(
          admission_limits(config, 1).node, cql::NodeAdmission::HashKeys::drawn(runtime.random))),
      holding_(runtime, 1, kQuestionsMax),
      askers_(runtime),
      questions_(runtime, kQuestionsMax) {}

Result<void> Database::count_cores() {
  const std::uint32_t there_are = runtime_.cores.count();
  if (config_.cores > there_are) {
    return base::Error(base::Errc::invalid_argument, "cores: {}, and there are {}", config_.cores,
                       there_are);
  }
  cores_ = config_.cores > 0 ? config_.cores : there_are;
  return {};
}

cql::NodeFacts Database::facts() const {
  const auto since_epoch = runtime_.clock.wall_now().since_origin();
  return {
      .host_id = node_.value(),
      .cluster_name = config_.cluster_name,
      .data_center = config_.data_center,
      .rack = config_.rack,
      .cql_address = config_.cql_address_for_clients(),
      .generation = static_cast<std::int32_t>(
          std::chrono::duration_cast<std::chrono::seconds>(since_epoch).count()),
      .node_address = node_address_,
  };
}

CoreService::Options Database::service_options() const {
  return {.cluster = {.cluster_name = config_.cluster_name,
                      .partitioner = cql::kPartitioner,
                      .snitch = cql::kSnitch},
          .admission = admission_,
          .limits = admission_limits(config_, cores_),
          .processor = processor_options(config_, cores_),
          .server = server_options(config_, cores_)};
}

// ---- Start and stop ----

Task<Result<void>> Database::open(bool was_used) {
  CO_TRY_VOID(count_cores());
  // A port that is taken is told before a recovery that may take long, not behind it.
  auto port_is_free = runtime_.transport.listen(config_.cql_address);
  if (!port_is_free) co_return std::move(port_is_free).error().within("CQL server");
  (*port_is_free)->close();
  port_is_free->reset();

  CO_TRY_VOID(co_await open_storage(was_used));
  cql::CatalogOptions catalog_options;
  catalog_options.system = cql::make_system_schema();
  catalog_options.data_center = config_.data_center;
  catalog_ = std::make_unique<cql::Catalog>(runtime_, *tablets_, std::move(catalog_options));
  co_return {};
}

Task<Result<void>> Database::open_storage(bool was_used) {
  phase_ = "recovery of the storage engine in " + config_.data_directory;
  storage::EngineOptions options = engine_options(config_, cores_);
  options.node = node_.value();
  options.was_used = was_used;
  CO_TRY(engines_, co_await storage::Engines::open(runtime_, std::move(options), cores_));
  const storage::EngineOpenReport& report = engines_->report();
  CO_TRY(tablets_, co_await replication::TabletDirectory::open(runtime_, *engines_));
  log_.info("storage is open", kv("sstables", report.sstables),
            kv("records_replayed", report.records_applied), kv("cores", cores_));
  replicas_ =
      std::make_unique<replication::Replicas>(runtime_, *engines_, node_, replica_options(config_));
  coordinator_ = std::make_unique<replication::Coordinator>(runtime_, *replicas_);
  co_return {};
}

Task<Result<void>> Database::apply(replication::ReplicaMapPtr map,
                                   Task<Result<void>> apply_schema) {
  CO_TRY(const auto turn, co_await holding_.acquire(1, Until::forever()));
  CO_TRY(replication::HeldTabletsPtr held, co_await tablets_->hold(std::move(map)));
  co_await replicas_->take(held);
  CO_TRY_VOID(co_await std::move(apply_schema));
  co_await replicas_->tables_are_there();
  tablets_->let_go(*held);
  co_return {};
}

Task<Result<void>> Database::doubt_all() {
  CO_TRY(const auto turn, co_await holding_.acquire(1, Until::forever()));
  tablets_->doubt_all();
  const replication::HeldTabletsPtr held = replicas_->on(runtime_.cores.here()).held;
  if (held == nullptr) co_return {};
  CO_TRY(replication::HeldTabletsPtr doubted, co_await tablets_->hold(held->map()));
  co_await replicas_->take(std::move(doubted));
  co_return co_await tablets_->note_doubt();
}

Task<void> Database::begin_replication() {
  if (std::exchange(replicating_, true)) co_return;
  co_await replicas_->start_anti_entropy();
}

Task<Result<void>> Database::serve(runtime::Address node_address, cql::PeersPtr peers) {
  phase_ = "the port for clients";
  node_address_ = node_address;
  peers_ = std::move(peers);
  auto serving = co_await start_services();
  if (!serving) co_return std::move(serving).error().within("CQL server");
  phase_ = "serving";
  serving_ = true;
  co_return {};
}

namespace {

Task<Result<void>> done() {
  co_return {};
}

Task<Result<void>> done(Result<void> outcome) {
  co_return outcome;
}

Task<Result<void>> stop_on_core(CoreService& service) {
  co_await service.stop();
  co_return {};
}

}  // namespace

Task<Result<void>> Database::do_on(std::uint32_t core, runtime::CoreWork<void> work) {
  if (runtime::CoreId{core} == runtime_.cores.here()) {
    co_return co_await work(runtime_, Until::forever());
  }
  const auto there = [&work](Runtime& runtime, Until until) {
    return work(runtime, std::move(until));
  };
  for (;;) {
    auto outcome =
        co_await runtime::run_on<void>(runtime_, runtime::CoreId{core}, there, Until::forever());
    if (!outcome.failed_with(base::Errc::overloaded)) co_return outcome;
    std::ignore = co_await runtime::sleep_for(runtime_, kAskAgainAfter, {});
  }
}

// All are made before the first one has clients: any of them may ask all others. The catalog holds
// still until every core has a view of it, which no change will pass by.
Task<Result<void>> Database::start_services() {
  CO_TRY(auto stillness, co_await catalog_->hold_still(Until::forever()));
  services_.resize(cores_);
  std::vector<cql::QueryProcessor::Peer> processors;
  const CoreService::Options options = service_options();
  for (std::uint32_t core = 0; core < cores_; ++core) {
    const auto make = [&](Runtime& there, const Until&) {
      services_[core] = std::make_unique<CoreService>(there, *replicas_, *catalog_,
                                                      catalog_->snapshot(), options);
      services_[core]->show(peers_, {});
      return done();
    };
    CO_TRY_VOID(co_await do_on(core, make));
    catalog_->attach(services_[core]->view());
    processors.push_back(
        {.core = runtime::CoreId{core}, .processor = &services_[core]->processor()});
  }
  stillness.release();
  runtime::Address address = config_.cql_address;
  const cql::NodeFacts node_facts = facts();
  for (std::uint32_t core = 0; core < cores_; ++core) {
    // Its neighbours first, so that not all ask the same one.
    std::vector<cql::QueryProcessor::Peer> peers(processors.begin() + core + 1, processors.end());
    peers.insert(peers.end(), processors.begin(), processors.begin() + core);
    const auto open_port = [&](Runtime& there, const Until&) {
      return done(services_[core]->start(address, node_facts, system_sources(there), peers));
    };
    CO_TRY_VOID(co_await do_on(core, open_port));
    if (core == 0) address = services_[0]->server().address();
  }
  cql_address_ = address;
  co_return {};
}

Task<void> Database::publish(const admin::PeerNews::News& news) {
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    const auto show = [&news, service = services_[core].get()](Runtime&, const Until&) {
      service->show(news.peers, news.events);
      return done();
    };
    std::ignore = co_await do_on(core, show);
  }
}

Task<void> Database::stop_serving() {
  serving_ = false;
  co_await askers_.close();
  co_await questions_.join();
  co_await stop_clients();
}

Task<void> Database::stop_clients() {
  std::vector<Task<Result<void>>> stops;
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    CoreService* service = services_[core].get();
    if (service == nullptr) continue;
    stops.push_back(
        do_on(core, [service](Runtime&, const Until&) { return stop_on_core(*service); }));
  }
  std::ignore = co_await runtime::when_all(std::move(stops));
  if (replicas_ != nullptr) co_await replicas_->stop_anti_entropy();
}

// Nobody is served any more, so nobody asks another core's.
Task<void> Database::destroy_services() {
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    const auto destroy = [this, core](Runtime&, const Until&) {
      services_[core].reset();
      return done();
    };
    std::ignore = co_await do_on(core, destroy);
  }
  services_.clear();
}

Task<void> Database::stop() {
  co_await stop_serving();
  co_await destroy_services();
  if (catalog_ != nullptr) co_await catalog_->stop();
  if (replicas_ != nullptr) co_await replicas_->stop();
  if (tablets_ != nullptr) co_await tablets_->stop();
  if (engines_ != nullptr && !std::exchange(engines_stopped_, true)) {
    const auto stopped = co_await engines_->stop();
    if (!stopped) log_.error("the commit log could not be sealed", kv("error", stopped.error()));
  }
}

Task<bool> Database::make_room() {
  return engines_->on(runtime_.cores.here()).make_room();
}

// ---- What all cores tell ----

namespace {

template <class T>
Task<Result<T>> tell_on_core(T (*tell)(const CoreService&), const CoreService& service) {
  co_return tell(service);
}

struct CorePart {
  cql::ServerStatistics server;
  std::size_t request_bytes = 0;
  storage::EngineStatistics engine;
  replication::AntiEntropyReport anti_entropy;
  replication::RequestStatistics requests;
};

storage::EngineStatistics engine_of(const CoreService& service) {
  return service.coordinator().statistics_here();
}

replication::AntiEntropyReport anti_entropy_of(const CoreService& service) {
  return service.anti_entropy().report();
}

CorePart part_of(const CoreService& service) {
  return {.server = service.server().statistics(),
          .request_bytes = service.admission().request_bytes(),
          .engine = engine_of(service),
          .anti_entropy = anti_entropy_of(service),
          .requests = service.link().statistics()};
}

std::vector<admin::Metric> metrics_of(std::vector<CorePart> parts) {
  CorePart& sum = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    sum.server.add(parts[i].server);
    sum.request_bytes += parts[i].request_bytes;
    sum.engine.add(parts[i].engine);
    sum.anti_entropy.add(parts[i].anti_entropy);
    sum.requests.add(parts[i].requests);
  }
  std::vector<admin::Metric> metrics;
  admin::add_engine_metrics(sum.engine, metrics);
  admin::add_replication_metrics(sum.anti_entropy, metrics);
  admin::add_request_metrics(sum.requests, metrics);
  admin::add_server_metrics(sum.server, sum.request_bytes, metrics);
  return metrics;
}

std::vector<storage::TableStatistics> tables_of(const CoreService& service) {
  return service.coordinator().table_statistics_here();
}

struct CoreTrouble {
  std::optional<base::Error> fatal;
  std::optional<base::Error> refusal;
};

CoreTrouble trouble_of(const CoreService& service) {
  return {.fatal = service.coordinator().fatal_error_here(),
          .refusal = service.coordinator().write_refusal_here()};
}

std::vector<cql::ClientInfo> clients_of(const CoreService& service) {
  return service.server().clients();
}

std::vector<replication::RequestFacts> requests_of(const CoreService& service) {
  return service.link().requests().list(service.runtime().clock.now());
}

std::vector<cql::Traces::Session> traces_of(const CoreService& service) {
  const auto& sessions = service.traces().sessions();
  return {sessions.begin(), sessions.end()};
}

}  // namespace

template <class T>
Task<Result<std::vector<T>>> Database::gather(Runtime& here, T (*tell)(const CoreService&),
                                              Until until) {
  std::vector<T> told;
  for (const auto& service : services_) {
    const runtime::CoreId core = service->runtime().cores.here();
    if (core == here.cores.here()) {
      told.push_back(tell(*service));
      continue;
    }
    const auto ask = [&](Runtime&, const Until&) { return tell_on_core(tell, *service); };
    CO_TRY(auto one, co_await runtime::run_on<T>(here, core, ask, until));
    told.push_back(std::move(one));
  }
  co_return told;
}

// An answer may come when nobody waits for it any more.
template <class T>
struct Database::Answers {
  Answers(Runtime& runtime, std::size_t cores)
      : by_core(cores), missing(cores), complete(runtime) {}

  void put(std::uint32_t core, Result<T> answer) {
    by_core[core] = std::move(answer);
    if (--missing == 0) complete.set();
  }

  std::vector<std::optional<Result<T>>> by_core;
  std::size_t missing;
  runtime::Event complete;
};

template <class T>
Task<void> Database::ask(std::uint32_t core, T (*tell)(const CoreService&),
                         std::shared_ptr<Answers<T>> answers) {
  const CoreService& service = *services_[core];
  const auto there = [tell, &service](Runtime&, const Until&) {
    return tell_on_core(tell, service);
  };
  answers->put(
      core, co_await runtime::run_on<T>(runtime_, runtime::CoreId{core}, there, Until::forever()));
}

template <class T>
Task<std::vector<Result<T>>> Database::ask_all(T (*tell)(const CoreService&)) {
  const auto answers = std::make_shared<Answers<T>>(runtime_, services_.size());
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    if (questions_.try_spawn(ask(core, tell, answers))) continue;
    answers->put(core, base::Error(base::Errc::overloaded, "too many questions wait for cores"));
  }
  std::ignore = co_await answers->complete.wait(Until::after(runtime_, kAnswerTimeout));
  std::vector<Result<T>> told;
  for (std::uint32_t core = 0; core < services_.size(); ++core) {
    const std::optional<Result<T>>& answer = answers->by_core[core];
    if (!answer) {
      told.push_back(base::Error(base::Errc::timeout, "core {} does not answer", core));
    } else if (!*answer) {
      told.push_back(base::Error(answer->error()).within(fmt::format("core {}", core)));
    } else {
      told.push_back(*answer);
    }
  }
  co_return told;
}

Task<Result<std::vector<admin::Metric>>> Database::metrics() {
  CO_TRY(const auto pass, askers_.enter());
  std::vector<CorePart> parts;
  for (Result<CorePart>& part : co_await ask_all(part_of)) {
    CO_TRY(auto told, std::move(part));
    parts.push_back(std::move(told));
  }
  co_return metrics_of(std::move(parts));
}

Task<Result<replication::AntiEntropyReport>> Database::anti_entropy() {
  CO_TRY(const auto pass, askers_.enter());
  replication::AntiEntropyReport sum;
  for (const auto& part : co_await ask_all(anti_entropy_of)) {
    if (!part) co_return part.error();
    sum.add(*part);
  }
  co_return sum;
}

Task<Result<std::uint64_t>> Database::load_bytes() {
  CO_TRY(const auto pass, askers_.enter());
  std::uint64_t bytes = 0;
  for (const Result<storage::EngineStatistics>& part : co_await ask_all(engine_of)) {
    if (!part) co_return part.error();
    bytes += part->sstable_bytes + part->mutation_file_bytes;
  }
  co_return bytes;
}

// With the ids of their storage, and nothing counted yet.
Result<std::vector<admin::TableReport>> Database::find_tables(std::string_view keyspace,
                                                              std::string_view table) const {
  const cql::CatalogPtr catalog = catalog_->snapshot();
  std::vector<admin::TableReport> found;
  bool has_keyspace = keyspace.empty();
  for (const auto& [keyspace_name, tables] : catalog->users().keyspaces()) {
    if (!keyspace.empty() && keyspace_name != keyspace) continue;
    has_keyspace = true;
    for (const auto& [name, definition] : tables->tables) {
      if (!table.empty() && name != table) continue;
      const auto storage = catalog->storage_of(definition->id);
      if (!storage) continue;
      found.push_back({.keyspace = keyspace_name, .table = name, .here = {.table = *storage}});
    }
  }
  if (!has_keyspace) return base::Error(base::Errc::not_found, "there is no keyspace {}", keyspace);
  if (!table.empty() && found.empty()) {
    return base::Error(base::Errc::not_found, "there is no table {}.{}", keyspace, table);
  }
  return found;
}

Task<Result<std::vector<admin::TableReport>>> Database::tables(std::string keyspace,
                                                               std::string table) {
  CO_TRY(const auto pass, askers_.enter());
  std::map<storage::TableId, storage::TableStatistics> by_storage;
  for (const auto& told : co_await ask_all(tables_of)) {
    if (!told) co_return told.error();
    for (const storage::TableStatistics& part : *told) by_storage[part.table].add(part);
  }
  CO_TRY(auto found, find_tables(keyspace, table));
  for (admin::TableReport& report : found) report.here.add(by_storage[report.here.table]);
  co_return found;
}

Task<Result<storage::RestoreReport>> Database::restore_tablet(std::string name,
                                                              storage::RestoreOrder order,
                                                              replication::HeldTablet tablet,
                                                              runtime::StopToken stop) {
  CO_TRY(const auto turn, co_await holding_.acquire(1, {.stop = stop}));
  if (tablet.is_alone()) {
    CO_TRY(order.anew_as, co_await tablets_->next_name(tablet.info.id, tablet.info.actor));
  }
  auto report = co_await engines_->restore(std::move(name), std::move(order), std::move(stop));
  // What is stable is told to the tablet that is there now.
  co_await replicas_->take(held());
  co_return report;
}

namespace {

std::uint64_t lacking_anywhere(const replication::AntiEntropyReport& report) {
  std::uint64_t lacking = 0;
  for (const auto& peer : report.peers) lacking += peer.lacking_here + peer.lacking_there;
  return lacking;
}

}  // namespace

Task<Result<replication::AntiEntropyReport>> Database::repair(std::string keyspace, Until until) {
  constexpr runtime::Duration kLookPeriod = std::chrono::milliseconds(100);
  CO_TRY_VOID(find_tables(keyspace, {}));
  const std::size_t tablets = co_await replicas_->begin_round(keyspace);
  CO_TRY(auto report, co_await anti_entropy());
  std::uint64_t least = lacking_anywhere(report);
  log_.info("a round of anti-entropy was asked for", kv("tablets", tablets), kv("missing", least));
  runtime::MonotonicTime moved = runtime_.clock.now();
  // Peers tell what they have: what looks equal now may not be.
  runtime::Duration look = kLookPeriod * 5;
  while (runtime_.clock.now() < std::min(until.deadline, moved + kRepairPatience)) {
    CO_TRY_VOID(
        co_await runtime::sleep_for(runtime_, std::exchange(look, kLookPeriod), until.stop));
    CO_TRY(report, co_await anti_entropy());
    const std::uint64_t lacking = lacking_anywhere(report);
    if (lacking == 0) break;
    if (lacking < least) {
      least = lacking;
      moved = runtime_.clock.now();
    }
  }
  co_return report;
}

Task<Result<std::vector<admin::TableReport>>> Database::compactions() {
  CO_TRY(const auto pass, askers_.enter());
  std::map<storage::TableId, storage::TableStatistics> by_storage;
  for (const auto& told : co_await ask_all(tables_of)) {
    if (!told) co_return told.error();
    for (const storage::TableStatistics& part : *told) {
      const auto [at, is_first] = by_storage.try_emplace(part.table, part);
      if (!is_first) at->second.add(part);
    }
  }
  const cql::CatalogPtr catalog = catalog_->snapshot();
  std::vector<admin::TableReport> found;
  const auto add = [&](const std::string& keyspace, const std::string& name, const base::Uuid& id) {
    const auto storage = catalog->storage_of(id);
    const auto at = storage ? by_storage.find(*storage) : by_storage.end();
    if (at == by_storage.end()) return;
    found.push_back({.keyspace = keyspace, .table = name, .here = at->second});
  };
  for (const auto& [keyspace, its] : catalog->users().keyspaces()) {
    for (const auto& [name, table] : its->tables) {
      add(keyspace, name, table->id);
      for (const model::Index& index : table->indexes) add(keyspace, index.name, index.id);
    }
  }
  co_return found;
}

Task<Result<std::size_t>> Database::maintain(Maintenance what, std::string keyspace,
                                             std::string table, Until until) {
  CO_TRY(const auto found, find_tables(keyspace, table));
  std::size_t done = 0;
  std::optional<base::Error> first_damage;
  for (const admin::TableReport& report : found) {
    const storage::TableId storage = report.here.table;
    auto work = what == Maintenance::flush     ? coordinator_->flush(storage, until)
                : what == Maintenance::compact ? coordinator_->compact(storage, until)
                                               : coordinator_->verify(storage, until);
    const auto outcome = co_await std::move(work);
    // It was dropped meanwhile, or this node has no tablet of its keyspace.
    if (outcome.failed_with(base::Errc::not_found)) continue;
    if (!outcome) {
      auto error = base::Error(outcome.error()).within(report.keyspace + "." + report.table);
      if (what != Maintenance::verify) co_return error;
      // The others are read, too.
      if (!first_damage) first_damage = std::move(error);
    }
    ++done;
  }
  if (what == Maintenance::verify && keyspace.empty()) {
    const auto mutations = co_await coordinator_->verify_mutations(until);
    if (!mutations && !first_damage) first_damage = mutations.error();
  }
  if (first_damage) co_return *std::move(first_damage);
  co_return done;
}

Task<std::optional<Database::CoreFailure>> Database::failure() {
  const auto pass = askers_.enter();
  if (!pass || !serving_) co_return std::nullopt;
  const auto told = co_await ask_all(trouble_of);
  std::optional<CoreFailure> for_now;
  for (std::uint32_t core = 0; core < told.size(); ++core) {
    if (!told[core]) co_return CoreFailure{.core = core, .error = told[core].error()};
    if (told[core]->fatal) co_return CoreFailure{.core = core, .error = *told[core]->fatal};
    if (told[core]->refusal && !for_now) {
      for_now = CoreFailure{.core = core, .error = *told[core]->refusal, .for_now = true};
    }
  }
  co_return for_now;
}

Task<Result<std::vector<cql::MetricRow>>> Database::metric_rows(Runtime& here, Until until) {
  CO_TRY(auto parts, co_await gather(here, part_of, std::move(until)));
  std::vector<cql::MetricRow> rows;
  for (admin::Metric& metric : metrics_of(std::move(parts))) {
    rows.push_back({.name = fmt::format("{}{}", metric.name, metric.suffix),
                    .labels = std::move(metric.labels),
                    .value = metric.value});
  }
  co_return rows;
}

Task<Result<std::vector<cql::ClientRow>>> Database::client_rows(Runtime& here, Until until) {
  CO_TRY(auto parts, co_await gather(here, clients_of, std::move(until)));
  std::vector<cql::ClientRow> rows;
  for (std::vector<cql::ClientInfo>& part : parts) {
    for (cql::ClientInfo& client : part) {
      rows.push_back({.address = client.address,
                      .connected_at = client.connected_at,
                      .driver_name = std::move(client.driver_name),
                      .driver_version = std::move(client.driver_version),
                      .keyspace = std::move(client.keyspace),
                      .request_count = client.requests});
    }
  }
  co_return rows;
}

Task<Result<std::vector<cql::RequestRow>>> Database::request_rows(Runtime& here, Until until) {
  CO_TRY(const auto parts, co_await gather(here, requests_of, std::move(until)));
  std::vector<cql::RequestRow> rows;
  for (std::uint32_t core = 0; core < parts.size(); ++core) {
    for (const replication::RequestFacts& request : parts[core]) {
      rows.push_back(
          {.core = core,
           .id = request.id,
           .kind = request.kind,
           .keyspace = request.keyspace,
           .consistency = std::string(model::name_of(request.level)),
           .phase = request.phase,
           .required = request.required,
           .received = request.received,
           .age_us = std::chrono::floor<std::chrono::microseconds>(request.age).count()});
    }
  }
  co_return rows;
}

// ---- Traces ----

void Database::connect(rpc::Rpc& rpc) {
  replicas_->connect(rpc);
  rpc.serve(kTracesMethod, [this](model::NodeId, const TracesRequest&, Until until) {
    return answer_traces(std::move(until));
  });
}

Task<Result<std::vector<cql::Traces::Session>>> Database::own_traces(Runtime& here, Until until) {
  CO_TRY(auto parts, co_await gather(here, traces_of, std::move(until)));
  std::vector<cql::Traces::Session> sessions;
  for (auto& part : parts) std::ranges::move(part, std::back_inserter(sessions));
  co_return sessions;
}

namespace {

std::size_t size_of(const cql::Traces::Session& session) {
  std::size_t bytes = 128 + session.command.size() + session.request.size();
  for (const auto& [name, value] : session.parameters) bytes += 8 + name.size() + value.size();
  for (const auto& event : session.events) bytes += 32 + event.activity.size();
  return bytes;
}

}  // namespace

Task<Result<TracesReply>> Database::answer_traces(Until until) {
  CO_TRY(const auto pass, askers_.enter());
  TracesReply reply{.coordinator = cql_address_, .sessions = {}};
  if (!serving_) co_return reply;
  CO_TRY(auto sessions, co_await own_traces(runtime_, std::move(until)));
  std::ranges::sort(sessions, std::greater(), &cql::Traces::Session::started_at);
  std::size_t bytes = 0;
  for (cql::Traces::Session& session : sessions) {
    bytes += size_of(session);
    if (bytes > TracesReply::kBytesMax) break;
    reply.sessions.push_back(std::move(session));
  }
  co_return reply;
}

// A node that does not answer has none.
Task<Result<std::vector<cql::Traces::Session>>> Database::traces(Runtime& here, Until until) {
  CO_TRY(auto sessions, co_await own_traces(here, until));
  replication::ClusterLink& link = replicas_->on(here.cores.here()).link;
  Until asked_until = until;
  asked_until.deadline = std::min(until.deadline, here.clock.now() + kAnswerTimeout);
  std::vector<Task<Result<TracesReply>>> questions;
  if (link.up_nodes() != nullptr) {
    for (const model::NodeId node : *link.up_nodes()) {
      questions.push_back(
          link.call(node, kTracesMethod, std::make_shared<const TracesRequest>(), asked_until));
    }
  }
  for (auto& answer : co_await runtime::when_all(std::move(questions))) {
    if (answer) std::ranges::move(answer->sessions, std::back_inserter(sessions));
  }
  co_return sessions;
}

cql::SystemSources Database::system_sources(Runtime& there) {
  cql::SystemSources sources;
  sources.clients = [this, &there](Until until) { return client_rows(there, std::move(until)); };
  sources.metrics = [this, &there](Until until) { return metric_rows(there, std::move(until)); };
  sources.requests = [this, &there](Until until) { return request_rows(there, std::move(until)); };
  sources.traces = [this, &there](Until until) { return traces(there, std::move(until)); };
  sources.settings = [this] {
    std::vector<cql::SettingRow> rows;
    for (const ConfigField& field : config_fields()) {
      rows.push_back({.name = std::string(field.name), .value = field.show(config_)});
    }
    return rows;
  };
  return sources;
}

}  // namespace helenus::node
