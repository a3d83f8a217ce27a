#include "gradus/backend/parts/replicated_program.h"
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include "gradus/backend/parts/replicated_graph.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/base/error.h"

namespace gradus {
namespace {

/// Each is written into the program by itself.
constexpr int most_slots = 16;

/// Copies, on all devices of a group, of values that steps read and do not assign. A copy without another holder goes.
class Copies {
 public:
  Ref<Buffer> find(const Ref<Buffer>& value, const std::vector<Device>& devices) {
    const std::lock_guard lock(guard_);
    const auto found = known_.find(value.get());
    return found != known_.end() && ReplicatedValue::of(*found->second.copy)->is_on(devices) ? found->second.copy
                                                                                             : nullptr;
  }
  void add(const Ref<Buffer>& value, const Ref<Buffer>& copy) {
    std::vector<Known> gone;  // dies after the lock
    const std::lock_guard lock(guard_);
    for (auto it = known_.begin(); it != known_.end();) {
      const bool is_unused = it->second.value->refs.load(std::memory_order_acquire) == 1;
      if (is_unused || it->first == value.get()) {
        gone.push_back(std::move(it->second));
        it = known_.erase(it);
      } else {
        ++it;
      }
    }
    known_.emplace(value.get(), Known{value, copy});
  }

 private:
  struct Known {
    Ref<Buffer> value, copy;
  };
  std::mutex guard_;
  std::map<const Buffer*, Known> known_;
};
Copies& copies() {
  static auto* only = new Copies;
  return *only;
}

class ReplicatedProgram final : public ForwardingExecutable {
 public:
  ReplicatedProgram(Graph graph, ReplicatedGraph made, const ShardRun& shards, const CompileOptions& options)
      : ForwardingExecutable(compiled(made, graph, shards.replicas, options)),
        graph_(std::move(graph)),
        made_(std::move(made)),
        devices_(shards.replicas),
        slots_(shards),
        may_overwrite_(graph_.outputs.size(), -1) {
    for (std::size_t k = 0; k < made_.outputs.size(); ++k) {
      const ReplicatedGraph::Output& output = made_.outputs[k];
      const int taken = output.length < 0 ? inner_->may_overwrite()[at(output.places[0])] : -1;
      if (taken >= 0) may_overwrite_[k] = made_.inputs[at(taken)].number;
    }
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    ShardRun* const run = context.shards;
    const std::span<const std::int64_t> symbols = context.symbols;
    internal_check(run && run->replicas == devices_ && ReplicaSlots(*run) == slots_,
                   "a program runs on other shards than it was compiled for");
    std::vector<Ref<Buffer>> given(made_.inputs.size()), results(inner_->graph().outputs.size());
    std::vector<char> is_overwritten(inputs.size());
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (outputs[k]) is_overwritten[at(may_overwrite_[k])] = 1;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const ReplicatedGraph::Input& input = made_.inputs[i];
      const Spec spec = spec_of(inner_->graph().inputs[i], symbols);
      if (input.kind == ReplicatedGraph::Input::Kind::whole)
        given[i] = replicated(inputs[at(input.number)], spec, is_overwritten[at(input.number)]);
      else given[i] = of_shards(input, spec, *run);
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k]) continue;
      const int place = made_.outputs[k].places[0];
      const Ref<Buffer>& before = given[at(inner_->may_overwrite()[at(place)])];
      if (is_held_here_alone(*before)) results[at(place)] = before;
    }
    inner_->run(given, results, {.symbols = symbols, .device = devices_.front()});
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const ReplicatedGraph::Output& output = made_.outputs[k];
      outputs[k] = output.length < 0 ? results[at(output.places[0])] : handed_out(output, results, *run);
    }
  }

  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return may_overwrite_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override {
    ExecutableReport of = inner_->report(symbols);
    for (Kernel& kernel : of.kernels) kernel.device = devices_.front();
    of.notes.push_back(text("one executable on ", devices_.size(), devices_.size() == 1 ? " device" : " devices"));
    return of;
  }

 private:
  static std::shared_ptr<const Executable> compiled(const ReplicatedGraph& made, const Graph& whole,
                                                    std::span<const Device> devices, const CompileOptions& options) {
    CompileOptions own = options;
    own.tier = Tier::compiled;
    own.replaces.clear();
    own.shards = nullptr;
    if (!options.replaces.empty()) own.replaces = replaced(made, whole, options.replaces);
    return backend_of(devices.front()).compile_on_replicas(made.graph, own, devices);
  }
  /// CompileOptions::replaces of the graph for replicas.
  static std::vector<int> replaced(const ReplicatedGraph& made, const Graph& whole, const std::vector<int>& replaces) {
    std::vector<int> all(made.graph.outputs.size(), -1);
    for (std::size_t k = 0; k < whole.outputs.size(); ++k) {
      if (replaces[k] == -1 || made.outputs[k].length >= 0) continue;
      const ReplicatedGraph::Input before{ReplicatedGraph::Input::Kind::whole, replaces[k]};
      const auto found = std::ranges::find(made.inputs, before);
      all[at(made.outputs[k].places[0])] =
          found == made.inputs.end() ? -2 : static_cast<int>(found - made.inputs.begin());
    }
    return all;
  }

  Spec spec_of(int i, std::span<const std::int64_t> symbols) const {
    const Spec& spec = inner_->graph()[i].spec;
    return {spec.dtype, spec.shape.evaluated(symbols)};
  }
  Ref<Buffer> brought(const Device& to, const Ref<Buffer>& value, const Spec& spec) const {
    return backend_of(to).from_device(to, value, spec);
  }

  /// A value that all shards share, on each device.
  Ref<Buffer> replicated(const Ref<Buffer>& value, const Spec& spec, bool is_overwritten) const {
    if (const ReplicatedValue* const all = ReplicatedValue::of(*value); all && all->is_on(devices_)) return value;
    if (const Ref<Buffer> known = is_overwritten ? nullptr : copies().find(value, devices_)) return known;
    std::vector<Ref<Buffer>> all;
    for (const Device& device : devices_) all.push_back(brought(device, value, spec));
    Ref<Buffer> made = ReplicatedValue::buffer_of(std::move(all), devices_);
    if (!is_overwritten) copies().add(value, made);
    return made;
  }

  /// True if no tensor holds one of its copies, as after moving it to a device.
  static bool is_held_here_alone(const Buffer& value) {
    return std::ranges::all_of(ReplicatedValue::of(value)->copies(),
                               [](const Ref<Buffer>& copy) { return copy->refs.load(std::memory_order_acquire) == 1; });
  }

  /// An input that differs from replica to replica. Constants are cached.
  Ref<Buffer> of_shards(const ReplicatedGraph::Input& input, const Spec& spec, const ShardRun& run) const {
    std::vector<Ref<Buffer>> all;
    for (int replica = 0; replica < slots_.replicas(); ++replica) {
      const int shard = slots_.shard(replica, input.slot);
      const bool is_there = shard >= 0 && slots_.length(replica, input.slot) == input.length;
      const Device& device = devices_[at(replica)];
      if (input.kind == ReplicatedGraph::Input::Kind::is_there) all.push_back(constant(device, spec, is_there));
      else if (!is_there) all.push_back(constant(device, spec, 0));
      else all.push_back(argument(device, run.shards[at(shard)].arguments[at(input.number)], spec));
    }
    return ReplicatedValue::buffer_of(std::move(all), devices_);
  }
  Ref<Buffer> argument(const Device& device, const Ref<Buffer>& value, const Spec& spec) const {
    std::uint64_t bits = 0;
    if (spec.shape.rank() > 0) return brought(device, value, spec);
    std::memcpy(&bits, value->host(), static_cast<std::size_t>(bytes_of(spec)));
    return constant(device, spec, bits);
  }
  /// A value of these bits, if it is one element; else of zeros.
  Ref<Buffer> constant(const Device& device, const Spec& spec, std::uint64_t bits) const {
    constexpr std::size_t most_kept = 256;
    const auto key = std::tuple{Placement(device).code(), text(spec), bits};
    {
      const std::lock_guard lock(guard_);
      if (const auto known = constants_.find(key); known != constants_.end()) return known->second;
    }
    const Ref<Buffer> host = Buffer::allocate(bytes_of(spec));
    std::memset(host->data(), 0, static_cast<std::size_t>(host->bytes()));
    if (spec.shape.rank() == 0) std::memcpy(host->data(), &bits, static_cast<std::size_t>(host->bytes()));
    const Ref<Buffer> made = brought(device, host, spec);
    const std::lock_guard lock(guard_);
    if (constants_.size() >= most_kept) constants_.clear();
    constants_.emplace(key, made);
    return made;
  }

  /// An output that differs from shard to shard.
  Ref<Buffer> handed_out(const ReplicatedGraph::Output& output, std::span<const Ref<Buffer>> results,
                         ShardRun& run) const {
    std::vector<ShardRun::Part> all;
    for (int replica = 0; replica < slots_.replicas(); ++replica)
      for (int slot = 0; slot < slots_.slots(); ++slot) {
        const int shard = slots_.shard(replica, slot);
        if (shard < 0 || slots_.length(replica, slot) != output.length) continue;
        const ReplicatedValue& values = *ReplicatedValue::of(*results[at(output.places[at(slot)])]);
        all.push_back({run.shards[at(shard)].number, values.copies()[at(replica)]});
      }
    const Ref<Buffer> first = all.front().value;
    run.results[first.get()] = std::move(all);
    return first;
  }

  const Graph graph_;
  const ReplicatedGraph made_;
  const std::vector<Device> devices_;
  const ReplicaSlots slots_;
  std::vector<int> may_overwrite_;
  mutable std::mutex guard_;  // guards the members below
  mutable std::map<std::tuple<std::uint8_t, std::string, std::uint64_t>, Ref<Buffer>> constants_;
};

}  // namespace

std::string why_not_replicated(const ShardRun& run) {
  const DeviceKind kind = run.replicas.front().kind;
  if (kind == DeviceKind::cpu) return "processors add up in memory";
  for (const Device& each : run.replicas)
    if (each.kind != kind) return "its devices are of several kinds";
  if (run.ranks > 1) return "several processes train together";
  if (!run.exchange->may_add_on_devices()) return "the strategy adds up by a function of its own";
  if (const int slots = ReplicaSlots(run).slots(); slots > most_slots)
    return text("a device has ", slots, " shards, and at most ", most_slots, " are one program");
  return backend_of(kind).why_no_replicas(run.replicas);
}

std::string note_of_host_sums(const ShardRun& run, const std::string& why) {
  const bool is_plugin = std::ranges::any_of(run.replicas, [](const Device& d) { return d.kind != DeviceKind::cpu; });
  return is_plugin ? text("a program for each device, and the host adds up: ", why) : "";
}

std::shared_ptr<const Executable> compile_replicated(Graph graph, const ShardRun& shards,
                                                     const CompileOptions& options) {
  ReplicatedGraph made = replicated(graph, ReplicaSlots(shards));
  return std::make_shared<ReplicatedProgram>(std::move(graph), std::move(made), shards, options);
}

}  // namespace gradus
