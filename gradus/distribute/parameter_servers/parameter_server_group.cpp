/// Scheduling, computing, pushing, joining.
#include "gradus/distribute/parameter_servers/parameter_server_group.h"
#include <algorithm>
#include <cstring>
#include <set>
#include "gradus/base/lived_time.h"
#include "gradus/base/own_thread.h"
#include "gradus/base/version.h"
#include "gradus/function/variable_cell.h"
#include "gradus/ops/call_keys.h"

namespace gradus::detail {
namespace {

using namespace std::chrono_literals;

std::string_view bytes_of_buffer(const Ref<Buffer>& buffer) {
  return {static_cast<const char*>(buffer->host()), static_cast<std::size_t>(buffer->bytes())};
}

Ref<Buffer> buffer_of(std::string_view bytes) {
  Ref<Buffer> buffer = Buffer::allocate(static_cast<std::int64_t>(bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer->data(), bytes.data(), bytes.size());
  return buffer;
}

/// A hash of several numbers, in order.
std::uint64_t mixed(std::initializer_list<std::uint64_t> all) {
  std::uint64_t hash = all.size();
  for (const std::uint64_t each : all) hash = mix(hash, each);
  return hash;
}

/// The number of steps a worker looks ahead for its next one, beyond those that may be under way.
constexpr std::size_t steps_ahead = 8;

constexpr const char* differing =
    ": this rank and rank 0 have other programs, batches or random numbers there: every rank makes the same calls with "
    "the same batches; set_seed to the same number on all";

}  // namespace

ParameterServerGroup::ParameterServerGroup(const Cluster& cluster, const ParameterServerOptions& options)
    : ReplicaGroup({default_device()}, 0),
      cluster_(cluster.settled()),
      options_(options),
      lag_(static_cast<std::uint64_t>(std::min(options.max_staleness, cluster.ranks() - 1))),
      incarnation_(drawn_name()),
      reports_(cluster),
      layout_(cluster.servers()) {
  try {
    meet();
  } catch (const std::exception&) {
    note_failure(std::current_exception());
    end();
    throw;
  }
}

ParameterServerGroup::~ParameterServerGroup() { end(); }

void ParameterServerGroup::meet() {
  require<Unavailable>(default_device().kind == DeviceKind::cpu, "ParameterServerStrategy: the default device is ",
                       default_device(), ", and with parameter servers steps are computed on the processor: leave ",
                       "GRADUS_DEVICE and set_default_device out, or say set_default_device(cpu())");
  const bool is_chief = cluster_.is_chief();
  if (is_chief) {
    desk_ = std::make_unique<StepDesk>(StepDeskTerms{.ranks = cluster_.ranks(),
                                                     .servers = cluster_.in_process ? 0 : cluster_.servers(),
                                                     .version = std::string(version_and_contract()),
                                                     .fingerprint = fingerprint_of(cluster_, options_.max_staleness),
                                                     .run = drawn_name(),
                                                     .heartbeat = cluster_.heartbeat,
                                                     .is_watching = !cluster_.in_process,
                                                     .addresses = cluster_.workers,
                                                     .servers_at = cluster_.parameter_servers});
    if (!cluster_.in_process)
      desk_server_ = grpc_server(cluster_.meeting(), cluster_.interface, cluster_.credentials, *desk_,
                                 "rank 0 cannot hand out steps");
  }
  const auto asking = [&]() -> std::shared_ptr<RpcClient> {
    return is_chief ? in_process_client(*desk_) : grpc_client(cluster_.meeting(), cluster_.credentials, "rank 0");
  };
  // Ranks of a simulated cluster join each by itself; servers of it do not.
  Cluster joining = cluster_;
  if (cluster_.in_process) joining.parameter_servers.clear();
  const std::string print = fingerprint_of(cluster_, options_.max_staleness);
  const auto seat = static_cast<std::size_t>(cluster_.in_process ? 0 : cluster_.rank);
  main_ = std::make_unique<StepMember>(asking(), joining, seat, incarnation_);
  const std::size_t workers = cluster_.in_process ? static_cast<std::size_t>(cluster_.ranks()) : 1;
  for (std::size_t i = 0; i < workers; ++i)
    members_.push_back(std::make_unique<StepMember>(asking(), joining, seat + i, incarnation_));
  std::vector<std::jthread> joining_threads;  // also joins the started ones if another cannot be started
  for (std::size_t i = 1; i < workers; ++i)
    joining_threads.push_back(own_thread<std::jthread>("a worker of a simulated cluster", [this, i, &print] {
      try {
        members_[i]->join(print);
      } catch (const std::exception&) { note_failure(std::current_exception()); }
    }));
  reports_.say(RankState::joins);
  const std::string run = main_->join(print);
  joining_threads.clear();
  members_[0]->join(print);  // as the same process, so at once
  reports_.say(RankState::together);
  for (int i = 0; i < cluster_.servers(); ++i) {
    auto place = std::make_shared<ParameterServerPlace>();
    if (cluster_.in_process) {
      stores_.push_back(std::make_unique<ParameterStore>(options_of_store(options_, i)));
      place->client = in_process_client(*stores_.back());
      place->name = text("parameter server ", i);
    } else {
      const Address where = Address::parse(cluster_.parameter_servers[static_cast<std::size_t>(i)], "Cluster");
      place->client = grpc_client(where, cluster_.credentials, text("parameter server ", i));
      place->name = text("parameter server ", i, " (", where.to_string(), ")");
    }
    place->run = run;
    place->lag = lag_;
    place->timeout = cluster_.timeout;
    place->heartbeat = cluster_.heartbeat;
    places_.push_back(std::move(place));
  }
  servers_ = clients("main");
  if (is_chief)
    for (ParameterClient& server : servers_) server.begin();
  if (!cluster_.in_process) {
    is_beating_ = true;
    main_->start_beating([this](const std::exception_ptr& why) {
      {
        const std::lock_guard lock(mutex_);
        is_beating_ = false;
      }
      try {
        std::rethrow_exception(why);
      } catch (const LeftOff&) {  // all is done, or this process leaves
        changed_.notify_all();
      } catch (...) { note_failure(why); }
    });
    main_->agree(0);  // servers know of the training
  }
  for (std::size_t i = 0; i < workers; ++i)
    threads_.push_back(own_thread("a worker", [this, i, servers = clients(text("worker ", i))]() mutable {
      work(*members_[i], std::move(servers));
    }));
}

std::string ParameterServerGroup::fingerprint_of(const Cluster& cluster, int max_staleness) {
  return text("parameter servers, ", cluster.ranks(), " workers and ", cluster.servers(), " servers, max_staleness ",
              max_staleness);
}

ParameterStore::Options ParameterServerGroup::options_of_store(const ParameterServerOptions& options, int server) {
  ParameterStore::Options out{.snapshot_steps = static_cast<std::uint64_t>(options.checkpoint_steps)};
  if (!options.checkpoints.empty()) out.checkpoints = options.checkpoints / text("server-", server);
  return out;
}

ParameterServerGroup::Clients ParameterServerGroup::clients(const std::string& sender) const {
  Clients out;
  for (const auto& place : places_) out.emplace_back(place, incarnation_ + "/" + sender);
  return out;
}

void ParameterServerGroup::end() {
  std::string why;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
    why = failure_;
  }
  changed_.notify_all();
  const bool in_order = why.empty() && std::uncaught_exceptions() == exceptions_before_;
  if (why.empty()) why = "it has ended before its work was done";
  reports_.say(in_order ? RankState::left : RankState::failed, why);
  if (main_) {
    if (in_order) main_->leave();
    else main_->fail(why);
  }
  for (const auto& member : members_) member->stop();
  for (const auto& place : places_) place->client->cancel();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  if (main_) main_->stop();
  if (desk_ && desk_server_) {
    desk_->close(in_order ? "rank 0 has ended the training" : text("rank 0: ", why), in_order);
    desk_->wait_until_told(std::chrono::steady_clock::now() +
                           std::min<std::chrono::milliseconds>(2s, cluster_.timeout));
    desk_server_->stop(1s);
  }
}

// ---------------------------------------------------------------- workers

void ParameterServerGroup::work(StepMember& member, Clients servers) {
  try {
    for (;;) {
      std::uint64_t scheduled = 0;
      {
        const std::lock_guard lock(mutex_);
        if (is_over_ || !failure_.empty()) return;
        scheduled = scheduled_;
      }
      const StepMember::Taken taken = member.take(scheduled);
      note_committed(taken.committed);
      std::unique_lock lock(mutex_);
      if (taken.lacks) changed_.wait_for(lock, 50ms, [&] { return is_over_ || scheduled_ > scheduled; });
      if (!taken.step) continue;
      const auto found = std::ranges::find(waiting_, *taken.step, [](const auto& each) { return each->number; });
      if (found == waiting_.end()) continue;  // it is done already
      const std::shared_ptr<const ScheduledStep> step = *found;
      lock.unlock();
      require(step->fingerprint == taken.fingerprint, "strategy.schedule, step ", step->number, differing);
      compute(*step, member, servers);
    }
  } catch (const LeftOff&) {  // the end
  } catch (const std::exception& error) {
    note_failure(std::current_exception());
    member.fail(error.what());
  }
}

void ParameterServerGroup::compute(const ScheduledStep& step, StepMember& member, Clients& servers) {
  if (!cluster_.in_process) main_->set_doing(text("step ", step.number));
  const StepProgram::Outcome outcome = pull_and_run(step, servers);
  push(step, outcome, servers);
  StepLoss loss;
  if (outcome.results.size() == 2) loss = {true, outcome.results[0].item(), outcome.results[1].item()};
  note_committed(member.done(step.number, loss));
}

StepProgram::Outcome ParameterServerGroup::pull_and_run(const ScheduledStep& step, Clients& servers) const {
  const InstalledProgram& program = *step.program;
  const auto& reads = program.step->reads();
  std::vector<Ref<Buffer>> values(reads.size());
  for (std::size_t s = 0; s < servers.size(); ++s) {
    const std::vector<std::size_t>& pulls = program.servers[s].pulls;
    std::size_t size = 0;
    for (const std::size_t place : pulls) size += static_cast<std::size_t>(bytes_of(reads[place]->spec));
    if (pulls.empty()) continue;
    const std::string bytes = servers[s].pull(program.number, step.version, size);
    std::string_view rest = bytes;
    for (const std::size_t place : pulls) {
      const auto length = static_cast<std::size_t>(bytes_of(reads[place]->spec));
      values[place] = buffer_of(rest.substr(0, length));
      rest.remove_prefix(length);
    }
  }
  return program.step->run(step.arguments, values, step.key);
}

void ParameterServerGroup::push(const ScheduledStep& step, const StepProgram::Outcome& outcome,
                                Clients& servers) const {
  for (std::size_t s = 0; s < servers.size(); ++s) {
    std::string bytes;
    for (const int place : step.program->servers[s].pushes)
      bytes += bytes_of_buffer(outcome.pushes[static_cast<std::size_t>(place)]);
    servers[s].push(step.number, step.program->number, bytes);
  }
}

void ParameterServerGroup::note_committed(std::uint64_t committed) {
  {
    const std::lock_guard lock(mutex_);
    while (!waiting_.empty() && waiting_.front()->number < committed) waiting_.pop_front();
  }
  changed_.notify_all();
}

void ParameterServerGroup::note_failure(const std::exception_ptr& error) {
  std::string why = "an error without a reason";
  bool is_gone = false, by_others = false;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& given) {
    why = given.what();
    is_gone = dynamic_cast<const DeskGone*>(&given) != nullptr;
    by_others = dynamic_cast<const Unavailable*>(&given) != nullptr;
  } catch (...) {}
  {
    std::unique_lock lock(mutex_);
    const auto has_heard = [&] { return !is_beating_ || is_over_ || !failure_.empty(); };
    if (is_gone) changed_.wait_for(lock, 2 * cluster_.heartbeat, has_heard);
    if (failure_.empty()) {
      failure_ = why;
      error_ = error;
      reports_.say(by_others ? RankState::followed : RankState::failed, why);
    }
  }
  changed_.notify_all();
  for (const auto& place : places_) place->client->cancel();  // a thread may wait for a server that is gone, too
}

// ---------------------------------------------------------------- the thread of the program

/// A failure here is that of all ranks; a worker's error comes before its consequences.
template <class Work> auto ParameterServerGroup::attempt(Work work) {
  try {
    return work();
  } catch (const std::exception& error) {
    note_failure(std::current_exception());
    main_->fail(error.what());
    std::exception_ptr first;
    {
      const std::lock_guard lock(mutex_);
      first = error_;
    }
    std::rethrow_exception(first);
  }
}

void ParameterServerGroup::check_usable(std::string_view what) {
  require(!Context::current() && !ReadListener::is_there() && !CallContext::here().shards, what,
          " inside of a function, a tape or another run: it is the outermost call; put the tape into the step");
  const std::lock_guard lock(mutex_);
  require<Unavailable>(failure_.empty(), what, ": this strategy has failed before: ", failure_,
                       "; make the strategy again on every rank");
}

ParameterServerGroup::Traced ParameterServerGroup::traced(const StepIdentity& identity, In batch,
                                                          const StaticArguments& statics, const Body& body,
                                                          bool is_in_step) {
  check_is_traced(identity);
  for (const Tensor& each : batch)
    require(!each.spec().device.is_named() || each.spec().device == Placement(cpu(0)), "strategy: an argument is on ",
            each.spec().device, ": with parameter servers steps are computed on the processor; use .to(cpu(0))");
  const auto made = [&] { return std::make_shared<const StepProgram>(identity, batch, body, is_in_step); };
  if (!identity.step) return {.fresh = made()};
  std::erase_if(known_, [](const auto& entry) { return entry.second.identity.expired(); });
  Known& known = known_[identity.step.get()];
  if (known.identity.expired()) known = {.identity = identity.step};
  ++known.calls;
  TextStream key;
  key << is_in_step << ' ' << static_cast<int>(current_mode()) << ' ' << statics.types << ' ' << statics.values;
  for (const std::size_t masked : statics.masked) key << " mask of " << masked;
  for (const Tensor& each : batch) key << ' ' << each.spec();
  Traced out{.function = &known,
             .signature = std::move(key).str(),
             .most_variants = static_cast<std::size_t>(identity.options.max_variants)};
  std::erase_if(known.programs, [&](const Known::Variant& each) {
    return each.signature == out.signature && !each.program->step->holds();
  });
  const auto found = std::ranges::find(known.programs, out.signature, &Known::Variant::signature);
  if (found != known.programs.end()) out.known = found->program;
  else out.fresh = made();
  return out;
}

std::shared_ptr<const InstalledProgram> ParameterServerGroup::installed(const Traced& traced) {
  if (traced.known) return traced.known;
  auto program = install(traced.fresh);
  if (traced.function == nullptr) return program;
  std::vector<Known::Variant>& programs = traced.function->programs;
  if (programs.size() >= traced.most_variants) programs.erase(programs.begin());
  programs.push_back({traced.signature, program});
  return program;
}

std::shared_ptr<const InstalledProgram> ParameterServerGroup::install(std::shared_ptr<const StepProgram> step) {
  const std::size_t first_new = layout_.places().size();
  layout_.add(*step);
  send_new_cells(first_new);
  InstalledProgram out{.step = step, .number = step->hash(), .servers = {}};
  std::vector<std::string> written;
  const auto numbers_of = [&](const std::vector<StepProgram::Cell>& cells) {
    std::vector<std::uint64_t> numbers;
    for (const StepProgram::Cell& cell : cells) numbers.push_back(layout_.number_of(*cell));
    return numbers;
  };
  for (int s = 0; s < cluster_.servers(); ++s) {
    InstalledProgram::AtServer& here = out.servers.emplace_back();
    std::vector<const StepProgram::Update*> updates;
    for (const StepProgram::Update& update : step->updates())
      if (layout_.of(*update.cell).is_on(s)) updates.push_back(&update);
    const StepProgram::ServerPart part = step->server_part(updates);
    WrittenProgram program;
    for (std::size_t i = 0; i < step->reads().size(); ++i) {
      if (layout_.of(*step->reads()[i]).home() != s) continue;
      here.pulls.push_back(i);
      program.pulled.push_back(layout_.number_of(*step->reads()[i]));
    }
    here.pushes = part.pushes;
    program.reads = numbers_of(part.reads);
    program.assigns = numbers_of(part.assigns);
    for (const int place : part.pushes) program.pushes.push_back(step->pushes()[static_cast<std::size_t>(place)]);
    program.captures = part.captures;
    for (const auto& input : part.inputs)
      program.inputs.push_back(
          {static_cast<WrittenProgram::Input::Kind>(input.kind), static_cast<std::size_t>(input.index)});
    program.graph = to_text(part.graph);
    written.push_back(program.to_bytes());
    out.number = mix(out.number, hash_of_bytes(std::as_bytes(std::span(written.back()))));
  }
  if (out.number == every_cell) out.number = 1;
  if (cluster_.is_chief() && sent_.insert(out.number).second)
    for (std::size_t s = 0; s < servers_.size(); ++s) servers_[s].add_program(out.number, written[s]);
  return std::make_shared<const InstalledProgram>(std::move(out));
}

void ParameterServerGroup::send_new_cells(std::size_t first) {
  std::vector<ParameterLayout::Place>& places = layout_.places();
  for (std::size_t i = first; i < places.size(); ++i) places[i].last_known = places[i].cell->read();
  if (!cluster_.is_chief()) return;
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    std::vector<ParameterClient::NewCell> cells;
    for (std::size_t i = first; i < places.size(); ++i)
      if (places[i].is_on(static_cast<int>(s))) cells.push_back({i, places[i].cell->name, places[i].cell->spec});
    servers_[s].add_cells(cells);
    for (const ParameterClient::NewCell& cell : cells)
      servers_[s].set(cell.number, 0, bytes_of_buffer(places[cell.number].last_known.host_buffer()));
  }
}

void ParameterServerGroup::send_assigned() {
  std::vector<std::uint64_t> assigned;
  for (std::uint64_t number = 0; number < layout_.places().size(); ++number) {
    ParameterLayout::Place& place = layout_.places()[number];
    const Tensor now = place.cell->read();
    if (now.node() == place.last_known.node()) continue;
    const bool is_same = bytes_of_buffer(now.host_buffer()) == bytes_of_buffer(place.last_known.host_buffer());
    place.last_known = now;
    if (!is_same) assigned.push_back(number);
  }
  if (assigned.empty()) return;
  wait_for_all();
  base_ = scheduled_;
  if (!cluster_.is_chief()) return;
  for (const std::uint64_t number : assigned) {
    const ParameterLayout::Place& place = layout_.places()[number];
    for (std::size_t s = 0; s < servers_.size(); ++s)
      if (place.is_on(static_cast<int>(s)))
        servers_[s].set(number, scheduled_, bytes_of_buffer(place.last_known.host_buffer()));
  }
}

ScheduledStep ParameterServerGroup::prepared(const Traced& traced, In batch, bool is_in_step) {
  ScheduledStep step;
  step.program = installed(traced);
  send_assigned();
  step.number = scheduled_;
  step.version = std::max(base_, scheduled_ - std::min(scheduled_, is_in_step ? 0 : lag_));
  if (step.program->step->is_random()) step.key = CallKeys::fresh().host_buffer();
  std::uint64_t hash = mixed({step.program->number, step.version});
  if (step.key) hash = mix(hash, *static_cast<const std::uint64_t*>(step.key->host()));
  for (const Tensor& each : batch) {
    step.arguments.push_back(each.host_buffer());
    if (ranks() > 1) hash = hash_of_bytes(std::as_bytes(std::span(bytes_of_buffer(step.arguments.back()))), hash);
  }
  step.fingerprint = hash;
  return step;
}

void ParameterServerGroup::schedule(const StepIdentity& identity, In batch, const StaticArguments& statics,
                                    const Body& body) {
  check_usable("strategy.schedule");
  const Traced program = traced(identity, batch, statics, body, lag_ == 0);  // if that fails, nothing has happened
  attempt([&] {
    auto step = std::make_shared<const ScheduledStep>(prepared(program, batch, lag_ == 0));
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(step);
      ++scheduled_;
    }
    history_ = mix(history_, step->fingerprint);
    changed_.notify_all();
    if (desk_) desk_->open(step->number, step->version, step->fingerprint);
    await_room();
  });
}

/// Waits until few enough steps are to be computed. Each finished step restarts the time, as in join().
void ParameterServerGroup::await_room() {
  std::unique_lock lock(mutex_);
  const auto is_ready = [&] { return waiting_.size() <= lag_ + steps_ahead || !failure_.empty() || is_over_; };
  while (!is_ready()) {
    const std::uint64_t first = waiting_.front()->number;
    const auto has_moved = [&] { return is_ready() || waiting_.front()->number != first; };
    LivedDeadline deadline(in(cluster_.timeout + cluster_.heartbeat));
    while (!has_moved() && !deadline.has_passed()) changed_.wait_until(lock, deadline.next(), has_moved);
    require<Unavailable>(has_moved(), "strategy.schedule: step ", first, " is not done after ",
                         static_cast<double>((cluster_.timeout + cluster_.heartbeat).count()) / 1000,
                         " s: who computes it is stopped or too slow (Cluster::timeout says how long to wait)");
  }
  require<Unavailable>(failure_.empty(), failure_);
}

StepLoss ParameterServerGroup::join() {
  check_usable("strategy.join");
  return attempt([&] {
    if (ranks() > 1) {
      const NamedNumber steps{"the number of scheduled steps", static_cast<std::int64_t>(scheduled_)};
      check_same({&steps, 1}, "strategy.join", "every rank makes the same calls");
      check_same(std::exchange(history_, 0), text("strategy.join", differing));  // one without steps has compared none
    }
    const StepMember::Round round = main_->round(round_begin_, scheduled_);
    note_committed(round.committed);
    send_assigned();
    if (round.committed == scheduled_) take_values();
    else if (ranks() > 1) main_->agree(scheduled_);  // the others are further on: a later join gets their values
    round_begin_ = base_ = scheduled_;
    return round.loss;
  });
}

void ParameterServerGroup::take_values() {
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    std::size_t size = 0;
    for (const ParameterLayout::Place& place : layout_.places())
      if (place.is_on(static_cast<int>(s))) size += static_cast<std::size_t>(bytes_of(place.cell->spec));
    const std::string bytes = servers_[s].pull(every_cell, scheduled_, size);
    std::string_view rest = bytes;
    for (ParameterLayout::Place& place : layout_.places()) {
      if (!place.is_on(static_cast<int>(s))) continue;
      VariableCell& cell = *place.cell;
      const auto length = static_cast<std::size_t>(bytes_of(cell.spec));
      if (place.home() == static_cast<int>(s)) {
        Tensor next = place.last_known = Tensor::of_buffer(cell.spec, buffer_of(rest.substr(0, length)));
        const std::lock_guard lock(cell.guard);
        std::swap(cell.value, next);
        if (cell.committed.defined()) cell.committed = cell.value;
      }
      rest.remove_prefix(length);
    }
  }
  known_here_ = layout_.places().size();
  seen_ = scheduled_;
  if (ranks() > 1) main_->agree(scheduled_);  // no rank goes on before all have them
}

StepResults ParameterServerGroup::run(const StepIdentity& identity, In global, StaticArguments statics,
                                      const Body& body) {
  check_usable("strategy.run");
  const Traced traced_step = traced(identity, global, statics, body, true);
  return attempt([&] {
    if (seen_ < scheduled_) {
      wait_for_all();
      send_assigned();
      take_values();
    }
    base_ = scheduled_;
    const ScheduledStep step = prepared(traced_step, global, true);
    const StepProgram& program = *step.program->step;
    const auto is_here = [&](const auto& cell) { return layout_.number_of(*cell) < known_here_; };
    const bool is_own = program.updates().empty() && (ranks() == 1 || std::ranges::all_of(program.reads(), is_here));
    StepProgram::Outcome outcome;
    if (is_own) {
      std::vector<Ref<Buffer>> values;
      for (const StepProgram::Cell& cell : program.reads()) values.push_back(cell->read().host_buffer());
      outcome = program.run(step.arguments, values, step.key);
    } else {
      if (ranks() > 1) check_same(step.fingerprint, text("strategy.run", differing));
      outcome = pull_and_run(step, servers_);
    }
    if (!program.updates().empty()) {
      push(step, outcome, servers_);
      main_->done(step.number, {});
      {
        const std::lock_guard lock(mutex_);
        ++scheduled_;
      }
      base_ = scheduled_;
      wait_for_all();
      take_values();
    }
    StepResults out{.tensors = {}, .structure = program.structure()};
    for (const Tensor& result : outcome.results) {
      StepResult& added = out.tensors.emplace_back(StepResult{result, nullptr});
      if (result.defined()) added.per_replica = std::make_shared<PerReplica<Tensor>>(result, std::size_t{1});
    }
    return out;
  });
}

Explanation ParameterServerGroup::explain(const StepIdentity& identity) {
  Explanation out;
  out.name = identity.options.name.empty() ? "(unnamed)" : identity.options.name;
  if (const auto found = known_.find(identity.step.get()); found != known_.end()) {
    out.calls = found->second.calls;
    out.variants = out.paths = static_cast<int>(found->second.programs.size());
  }
  return out;
}

std::vector<std::uint64_t> ParameterServerGroup::all_gather(std::uint64_t mine, std::string_view) {
  if (ranks() == 1) return {mine};
  return main_->agree(mine);
}

std::string ParameterServerGroup::name_of(int rank) const { return main_->names()[static_cast<std::size_t>(rank)]; }

void ParameterServerGroup::report_failure(const std::string& why) noexcept {
  note_failure(std::make_exception_ptr(Unavailable(why)));
  main_->fail(why);
}

}  // namespace gradus::detail
