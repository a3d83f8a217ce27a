/// The run of the parts of a graph of shards, with the sums between them.
#include "gradus/backend/parts/sharded_program.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include "gradus/backend/parts/divided_state.h"
#include "gradus/backend/divided_value.h"
#include "gradus/backend/parts/lane.h"
#include "gradus/backend/parts/replicated_program.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/backend/run_listener.h"
#include "gradus/backend/parts/shard_cut.h"
#include "gradus/backend/shard_run.h"
#include "gradus/backend/parts/shared_executables.h"
#include "gradus/backend/parts/values_of_ranks.h"
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/graph/rewriter.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {
namespace {

class ShardedProgram final : public ExecutableOfParts {
 public:
  /// `note`: the place of execution, for explain().
  ShardedProgram(Graph graph, const ShardRun& shards, const CompileOptions& options, std::string note)
      : note_(std::move(note)),
        fingerprint_(hash_of(graph)),
        divided_(divided(std::move(graph), shards)),
        options_(of_parts(options, shards.common_device)),
        kind_(shards.common_device.kind) {
    ShardCut cut(graph_, divided_.exchanges);
    parts_ = cut.parts();
    sums_ = cut.sums();
    std::vector<PartOfProgram> all;
    for (const ShardPart& part : parts_) all.push_back({&backend_of(kind_), &part.graph});
    executables_ = compile_parts(all, options_);
    for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].executable = executables_[p];
    for (int i = 0; i < graph_.size(); ++i) lengths_.push_back(cut.length_of(i));
    for (const int output : graph_.outputs) sources_.push_back(cut.source_of(output));
    last_reads_ = PerValue<int>(graph_);
    for (const ShardPart& part : parts_)
      for (const int input : part.inputs) last_reads_[input] = part.time;
    if (!parts_.empty()) last_time_ = parts_.back().time;
    for (const ShardSum& sum : sums_) {
      last_sum_ = std::max(last_sum_, sum.time);
      names_.push_back(name_of(graph_[sum.value]));
    }
    last_time_ = std::max(last_time_, last_sum_);  // of arguments, perhaps
    for (const ShardSum& sum : sums_)
      for (const int part : sum.parts) last_reads_[part] = std::max(last_reads_[part], sum.time);
    for (const int source : sources_) last_reads_[source] = std::numeric_limits<int>::max();
    for (std::size_t k = 0; k < sources_.size(); ++k)
      may_overwrite_.push_back(is_divided(k) ? -1 : input_taken_by(sources_[k]));
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    internal_check(context.shards != nullptr, "a program of shards runs without any");
    ShardRun& run = *context.shards;
    if (!has_run_.exchange(true)) run.exchange->compare_program(fingerprint_);
    Values values{run,
                  context.symbols,
                  PerValue<Ref<Buffer>>(graph_),
                  std::vector<std::unordered_map<int, Ref<Buffer>>>(run.shards.size()),
                  {}};
    std::vector<Ref<Buffer>> own;
    if (run.divides_state) inputs = own = own_inputs(run, divided_, inputs);
    for (std::size_t k = 0; k < inputs.size(); ++k) values.of_all[graph_.inputs[k]] = inputs[k];
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (Ref<Buffer> given = outputs[k] ? own_output(divided_, k, outputs[k]) : nullptr; given && is_here(*given))
        values.given.emplace(sources_[k], std::move(given));
    std::size_t next = 0;
    for (int time = 0; time <= last_time_; ++time) {
      const std::size_t first = next;
      while (next < parts_.size() && parts_[next].time == time) ++next;
      const std::span<const ShardPart> now(parts_.data() + first, next - first);
      SumsOfTime sums = sums_after(time, values);
      if (!now.empty() && now[0].is_for_all()) run_for_all(now[0], values);
      else if (!now.empty()) run_on_shards(now, values, sums);
      add_up(time, values, sums);
      if (time == last_sum_) run.exchange->vote_commit();
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = result(sources_[k], values);
    for (std::size_t k = 0; k < divided_.outputs.size(); ++k)
      if (const Cuts& cuts = divided_.outputs[k]; !cuts.empty())
        outputs[k] = DividedValue::buffer_of(outputs[k], cuts, cuts.back() * size_of(graph_[sources_[k]].spec.dtype));
  }

  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return may_overwrite_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override {
    ExecutableReport all;
    for (const ShardPart& part : parts_) all.add(part.executable->report(symbols), all.stages());
    if (!note_.empty()) all.notes.push_back(note_);
    return all;
  }

 private:
  /// `graph`, or that of this rank where ranks divide state.
  static DividedGraph divided(Graph graph, const ShardRun& run) {
    if (run.divides_state && run.ranks > 1) return divide_state(graph, run.rank, run.ranks);
    return {.graph = std::move(graph), .exchanges = {}, .inputs = {}, .outputs = {}};
  }

  /// The scope that the sum was recorded in; later ones of a name are numbered.
  std::string name_of(const Value& sum) {
    std::string name = scope_path(sum.scope);
    if (name.empty()) name = "sum";
    const int count = ++named_[name];
    return count == 1 ? name : text(name, " #", count);
  }

  /// True if a rank has its own part alone of output k.
  bool is_divided(std::size_t k) const { return k < divided_.outputs.size() && !divided_.outputs[k].empty(); }

  struct Values {
    ShardRun& run;
    std::span<const std::int64_t> symbols;
    PerValue<Ref<Buffer>> of_all;
    std::vector<std::unordered_map<int, Ref<Buffer>>> of_shards;
    std::unordered_map<int, Ref<Buffer>> given;  // buffers that outputs are to be written into
  };

  /// The sums that are complete after a time, for ShardRun.
  struct SumsOfTime {
    std::vector<const ShardSum*> own;
    std::vector<ShardRun::Sum> wanted;
  };
  SumsOfTime sums_after(int time, const Values& values) const {
    SumsOfTime sums;
    for (std::size_t s = 0; s < sums_.size(); ++s) {
      const ShardSum& sum = sums_[s];
      if (sum.time != time || !is_sum(sum.value)) continue;
      sums.own.push_back(&sum);
      const auto part = divided_.exchanges.find(sum.value);
      if (part == divided_.exchanges.end()) sums.wanted.push_back({spec_of(sum.value, values.symbols), {}});
      else sums.wanted.push_back({part->second.whole, {}, {}, part->second.cuts});
      sums.wanted.back().narrow = op_as<AllReduce>(graph_[sum.value])->narrow;
      sums.wanted.back().name = names_[s];
    }
    return sums;
  }

  /// While the last shard of this process runs: a sum begins when the shard has its addend.
  class Early final : public RunListener {
   public:
    Early(const ShardedProgram& program, const ShardPart& part, std::size_t shard, Values& values, SumsOfTime& sums)
        : program_(program), part_(part), shard_(shard), values_(values), sums_(sums) {}
    void made(std::size_t k, const Ref<Buffer>& output) override {
      const int value = part_.outputs[k];
      bool is_part = false;
      for (std::size_t i = 0; i < sums_.own.size(); ++i) {
        if (std::ranges::find(sums_.own[i]->parts, value) == sums_.own[i]->parts.end()) continue;
        if (!std::exchange(is_part, true)) values_.of_shards[shard_][value] = output;
        sums_.wanted[i].parts = program_.parts_of(*sums_.own[i], values_);
        values_.run.exchange->sum_is_ready(i);
      }
    }
    void between() override { values_.run.exchange->drive(); }

   private:
    const ShardedProgram& program_;
    const ShardPart& part_;
    const std::size_t shard_;
    Values& values_;
    SumsOfTime& sums_;
  };

  void run_for_all(const ShardPart& part, Values& values) const {
    std::vector<Ref<Buffer>> inputs, outputs;
    for (const int input : part.inputs) inputs.push_back(values.of_all[input]);
    for (const int output : part.outputs) {
      const auto place = values.given.find(output);
      outputs.push_back(place == values.given.end() ? Ref<Buffer>() : place->second);
    }
    const Device device = values.run.common_device;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      inputs[k] = on_device(inputs[k], device, spec_of(part.inputs[k], values.symbols));
    part.executable->run(inputs, outputs, {.symbols = values.symbols, .device = device});
    part.executable->wait(outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) values.of_all[part.outputs[k]] = std::move(outputs[k]);
  }

  /// Replicas side by side, each with its shards in sequence.
  void run_on_shards(std::span<const ShardPart> parts, Values& values, SumsOfTime& sums) const {
    const std::vector<Device>& replicas = values.run.replicas;
    const std::size_t last = values.run.shards.size() - 1;  // a replica alone runs it when it has run the others
    const bool begins_early = replicas.size() == 1 && values.run.exchange->begins_early() && !sums.own.empty();
    if (begins_early) values.run.exchange->expect(sums.wanted);
    std::vector<LaneWork> all;
    for (std::size_t replica = 0; replica < replicas.size(); ++replica)
      all.push_back({replicas[replica], [&, replica] {
                       for (std::size_t s = 0; s < values.run.shards.size(); ++s) {
                         const ShardRun::Shard& shard = values.run.shards[s];
                         if (shard.replica != static_cast<int>(replica)) continue;
                         for (const ShardPart& part : parts) {
                           if (part.length != shard.length) continue;
                           Early early(*this, part, s, values, sums);
                           run_on(part, s, replicas[replica], values, begins_early && s == last ? &early : nullptr);
                         }
                       }
                     }});
    run_side_by_side(all);
  }
  void run_on(const ShardPart& part, std::size_t s, const Device& device, Values& values, RunListener* listener) const {
    std::unordered_map<int, Ref<Buffer>>& own = values.of_shards[s];
    std::vector<Ref<Buffer>> inputs, outputs(part.outputs.size());
    for (const int input : part.inputs) {
      const Ref<Buffer>& found = lengths_[input] < 0 ? values.of_all[input] : own_of(input, s, values);
      inputs.push_back(on_device(found, device, spec_of(input, values.symbols)));
    }
    const auto executable = executable_of(part, device);
    executable->run(inputs, outputs, {.symbols = values.symbols, .device = device, .listener = listener});
    executable->wait(outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) own[part.outputs[k]] = Buffer::on_host(std::move(outputs[k]));
  }
  /// They name outputs of the whole: parts wait for steps that may fail.
  static CompileOptions of_parts(CompileOptions options, const Device& of_all) {
    options.replaces.clear();
    options.shards = nullptr;
    options.device = of_all;
    return options;
  }
  std::shared_ptr<const Executable> executable_of(const ShardPart& part, const Device& device) const {
    return device.kind == kind_ ? part.executable : compile_once(backend_of(device), part.graph, options_);
  }
  static Ref<Buffer> on_device(const Ref<Buffer>& buffer, const Device& device, const Spec& spec) {
    if (device.kind == DeviceKind::cpu) return Buffer::on_host(buffer);
    return backend_of(device).from_device(device, buffer, spec);
  }

  /// True if it is plain memory of the default device's kind, so that an output can be written there; no replicated
  /// value.
  bool is_here(const Buffer& buffer) const {
    return (kind_ == DeviceKind::cpu) == (buffer.device_memory() == nullptr) && !ReplicatedValue::of(buffer);
  }

  Spec spec_of(int i, std::span<const std::int64_t> symbols) const {
    Spec spec = graph_[i].spec;
    spec.shape = spec.shape.evaluated(symbols);
    return spec;
  }

  /// A shard's own value of i.
  const Ref<Buffer>& own_of(int i, std::size_t s, const Values& values) const {
    if (const OfShard* argument = op_as<OfShard>(graph_[i]))
      return values.run.shards[s].arguments[at(argument->argument)];
    return values.of_shards[s].at(i);
  }

  bool is_sum(int value) const { return op_as<AllReduce>(graph_[value]) && !is_gathered(divided_.exchanges, value); }

  ShardRun::Gathered values_of_shards(const ShardSum& each, const Values& values) const {
    std::array<std::int64_t, 2> elements{};
    for (const int part : each.parts) elements[at(lengths_[part])] = spec_of(part, values.symbols).shape.size();
    const FromShard* const from = op_as<FromShard>(graph_[each.value]);
    return gradus::values_of_shards(values.run, graph_[each.value].spec.dtype, elements, from ? from->place : -1,
                                    parts_of(each, values));
  }

  /// Gathers the values that are complete after `time`.
  void gather(int time, Values& values) const {
    std::vector<int> of;
    std::vector<ShardRun::Gathered> all;
    for (const ShardSum& each : sums_) {
      if (each.time != time || is_sum(each.value)) continue;
      of.push_back(each.value);
      if (!is_gathered(divided_.exchanges, each.value)) all.push_back(values_of_shards(each, values));
      else
        all.push_back({graph_[each.value].spec.dtype, divided_.exchanges.at(each.value).cuts,
                       Buffer::on_host(values.of_all[each.parts[0]])});
    }
    if (all.empty()) return;
    values.run.exchange->gather(all);
    for (std::size_t i = 0; i < all.size(); ++i) values.of_all[of[i]] = std::move(all[i].result);
  }

  /// Adds up the sums that are complete after `time`.
  void add_up(int time, Values& values, SumsOfTime& sums) const {
    for (std::size_t i = 0; i < sums.own.size(); ++i)
      if (sums.wanted[i].parts.empty()) sums.wanted[i].parts = parts_of(*sums.own[i], values);
    if (!sums.own.empty()) values.run.exchange->add_up(sums.wanted, values.run.step);
    for (std::size_t i = 0; i < sums.own.size(); ++i)
      values.of_all[sums.own[i]->value] = std::move(sums.wanted[i].result);
    gather(time, values);  // after sums on every rank, though these begin early on some
    for (auto& own : values.of_shards)
      std::erase_if(own, [&](const auto& entry) { return last_reads_[entry.first] <= time; });
  }
  std::vector<ShardRun::Part> parts_of(const ShardSum& sum, const Values& values) const {
    std::vector<ShardRun::Part> parts;
    for (std::size_t s = 0; s < values.run.shards.size(); ++s)
      for (const int part : sum.parts)
        if (lengths_[part] == values.run.shards[s].length)
          parts.push_back({values.run.shards[s].number, own_of(part, s, values)});
    return parts;
  }

  Ref<Buffer> result(int source, Values& values) const {
    if (lengths_[source] < 0) return values.of_all[source];
    std::vector<ShardRun::Part> all;
    for (std::size_t s = 0; s < values.run.shards.size(); ++s)
      if (values.run.shards[s].length == lengths_[source])
        all.push_back({values.run.shards[s].number, own_of(source, s, values)});
    // No local shard has this length: a buffer without a value stands for the result.
    Ref<Buffer> first = all.empty() ? Buffer::allocate(bytes_of(spec_of(source, values.symbols))) : all[0].value;
    values.run.results[first.get()] = std::move(all);
    return first;
  }

  /// The input in whose place value `source` may be computed, or -1.
  int input_taken_by(int source) const {
    for (const ShardPart& part : parts_) {
      if (!part.is_for_all()) continue;
      const auto made = std::ranges::find(part.outputs, source);
      if (made == part.outputs.end()) continue;
      const int taken = part.executable->may_overwrite()[at(made - part.outputs.begin())];
      if (taken < 0) return -1;
      const auto input = std::ranges::find(graph_.inputs, part.inputs[at(taken)]);
      return input == graph_.inputs.end() ? -1 : static_cast<int>(input - graph_.inputs.begin());
    }
    return -1;
  }

  const std::string note_;
  const std::uint64_t fingerprint_;  // of the graph before it was divided: the same on every rank
  const DividedGraph divided_;
  const Graph& graph_ = divided_.graph;
  const CompileOptions options_;
  const DeviceKind kind_;         // of the device of values that all shards share
  std::vector<ShardPart> parts_;  // by time
  std::vector<ShardSum> sums_;
  std::vector<std::string> names_;     // of the sums
  std::map<std::string, int> named_;   // how many sums have a name
  int last_time_ = 0, last_sum_ = -1;  // -1: there is none
  PerValue<int> lengths_;              // that of the shards it differs on, or -1
  PerValue<int> last_reads_;           // the time after which no part reads a value
  std::vector<int> sources_;           // of the outputs
  std::vector<int> may_overwrite_;
  mutable std::atomic<bool> has_run_ = false;
};

}  // namespace

bool is_of_shards(const Graph& graph) {
  return std::ranges::any_of(
      graph.values, [](const Value& v) { return v.op.joins_shards() || v.op.varies(false) || op_as<Divisible>(v); });
}

Graph as_one_shard(const Graph& graph) {
  Graph plain;
  GraphRewriter rewriter(graph, plain);
  for (int i = 0; i < graph.size(); ++i) {
    const bool is_same = graph[i].op.joins_shards() || graph[i].op.varies(false);
    if (is_same) rewriter.set(i, rewriter[graph[i].in[0]]);
    else rewriter.keep(i);
  }
  rewriter.finish();
  return plain;
}

std::shared_ptr<const Executable> compile_sharded(Graph graph, const ShardRun& shards, const CompileOptions& options) {
  const std::string why = why_not_replicated(shards);
  if (why.empty()) return compile_replicated(std::move(graph), shards, options);
  return std::make_shared<ShardedProgram>(std::move(graph), shards, options, note_of_host_sums(shards, why));
}

}  // namespace gradus
