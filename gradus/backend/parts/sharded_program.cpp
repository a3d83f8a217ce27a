/// The run of the parts of a graph of shards, with the sums between them.
#include "gradus/backend/parts/sharded_program.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <unordered_map>
#include <utility>
#include "gradus/backend/divided_value.h"
#include "gradus/backend/parts/divided_state.h"
#include "gradus/backend/parts/parted_program.h"
#include "gradus/backend/parts/replicated_program.h"
#include "gradus/backend/parts/shard_cut.h"
#include "gradus/backend/parts/values_of_ranks.h"
#include "gradus/backend/replicated_value.h"
#include "gradus/backend/run_listener.h"
#include "gradus/backend/shard_run.h"
#include "gradus/base/error.h"
#include "gradus/graph/rewriter.h"
#include "gradus/graph/scope.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {
namespace {

class ShardedProgram final : public PartedProgram {
 public:
  /// `fingerprint`: of the graph before it was divided: the same on every rank. `note`: the place of execution, for
  /// explain().
  ShardedProgram(DividedGraph divided, std::uint64_t fingerprint, const Device& common_device, CompileOptions options,
                 std::string note)
      : PartedProgram(std::move(divided.graph)),
        note_(std::move(note)),
        fingerprint_(fingerprint),
        divided_(std::move(divided)),
        kind_(common_device.kind) {
    ShardCut cut(graph_, divided_.exchanges);
    sums_ = cut.sums();
    last_sum_ = cut.last_sum();
    options.device = common_device;
    compile_parts_of(cut, std::move(options), [&](int) { return common_device; }, last_sum_);
    last_stage_ = std::max(last_stage_, last_sum_);  // of arguments, perhaps
    last_reads_ = PerValue<int>(graph_);
    for (const CompiledPart& part : parts_)
      for (const int input : part.inputs) last_reads_[input] = part.key.stage;
    for (const ShardSum& sum : sums_) {
      const std::string scope = scope_path(graph_[sum.value].scope);
      names_.push_back(scope.empty() ? "sum" : scope);
      for (const int part : sum.parts) last_reads_[part] = std::max(last_reads_[part], sum.stage);
    }
    for (const int source : sources_) last_reads_[source] = std::numeric_limits<int>::max();
    for (std::size_t k = 0; k < sources_.size(); ++k)
      if (!cuts_of_output(k).empty()) may_overwrite_[k] = -1;
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override;

  ExecutableReport report(std::span<const std::int64_t> symbols) const override {
    ExecutableReport all = PartedProgram::report(symbols);
    if (!note_.empty()) all.notes.push_back(note_);
    return all;
  }

 private:
  /// The cuts of output k, if a rank has its own part alone; else none.
  const Cuts& cuts_of_output(std::size_t k) const {
    static const Cuts whole;
    return divided_.outputs.empty() ? whole : divided_.outputs[k];
  }
  /// The memory for output k, if the caller gives `place`: plain memory of the common device's kind, or none.
  Ref<Buffer> memory_of(std::size_t k, const Ref<Buffer>& place) const {
    const Ref<Buffer> own = own_output(cuts_of_output(k), place);
    const bool is_on_host = own && !own->device_memory();
    return own && is_on_host == (kind_ == DeviceKind::cpu) && !ReplicatedValue::of(*own) ? own : nullptr;
  }
  bool is_sum(int value) const { return op_as<AllReduce>(graph_[value]) && !is_gathered(divided_.exchanges, value); }

  class Run;

  const std::string note_;
  const std::uint64_t fingerprint_;
  const DividedGraph divided_;  // without its graph
  const DeviceKind kind_;       // of the device of values that all shards share
  std::vector<ShardSum> sums_;
  std::vector<std::string> names_;  // of the sums: the scopes that ShardSums gave them
  int last_sum_ = -1;
  PerValue<int> last_reads_;  // the stage after which no part reads a value
  mutable std::atomic<bool> has_run_ = false;
};

class ShardedProgram::Run final : public PartsRun {
 public:
  Run(const ShardedProgram& program, ShardRun& shards, std::span<const std::int64_t> symbols)
      : PartsRun(program, symbols), program_(program), shards_(shards), of_shards_(shards.shards.size()) {}

 private:
  /// While the last shard of this process runs: a sum begins when the shard has its addend.
  class Early final : public RunListener {
   public:
    Early(Run& run, const CompiledPart& part, std::size_t shard) : run_(run), part_(part), shard_(shard) {}
    void made(std::size_t k, const Ref<Buffer>& output) override {
      const int value = part_.outputs[k];
      bool is_part = false;
      for (std::size_t i = 0; i < run_.sums_.size(); ++i) {
        if (std::ranges::find(run_.sums_[i]->parts, value) == run_.sums_[i]->parts.end()) continue;
        if (!std::exchange(is_part, true)) run_.of_shards_[shard_][value] = output;
        run_.wanted_[i].parts = run_.parts_of(*run_.sums_[i]);
        run_.shards_.exchange->sum_is_ready(i);
      }
    }
    void between() override { run_.shards_.exchange->drive(); }

   private:
    Run& run_;
    const CompiledPart& part_;
    const std::size_t shard_;
  };

  void run_stage(int stage, std::span<const CompiledPart> parts) override {
    find_sums(stage);
    PartsRun::run_stage(stage, parts);
    add_up();
    gather(stage);  // after sums on every rank, though these begin early on some
    for (auto& own : of_shards_)
      std::erase_if(own, [&](const auto& entry) { return program_.last_reads_[entry.first] <= stage; });
    if (stage == program_.last_sum_) shards_.exchange->vote_commit();
  }

  /// Replicas side by side, each with its shards in sequence.
  std::vector<LaneWork> work_of(std::span<const CompiledPart> parts) override {
    if (parts.empty() || parts[0].key.place == for_all) return PartsRun::work_of(parts);
    const bool begins_early = shards_.replicas.size() == 1 && shards_.exchange->begins_early() && !sums_.empty();
    if (begins_early) shards_.exchange->expect(wanted_);
    std::vector<LaneWork> all;
    for (std::size_t replica = 0; replica < shards_.replicas.size(); ++replica)
      all.push_back({shards_.replicas[replica], [=, this] {
                       for (std::size_t s = 0; s < shards_.shards.size(); ++s)
                         if (at(shards_.shards[s].replica) == replica) run_on(parts, s, begins_early);
                     }});
    return all;
  }
  void run_on(std::span<const CompiledPart> parts, std::size_t s, bool begins_early) {
    const ShardRun::Shard& shard = shards_.shards[s];
    for (const CompiledPart& part : parts) {
      if (part.key.place != shard.length) continue;
      Early early(*this, part, s);
      const bool is_last = s + 1 == shards_.shards.size();  // a replica alone runs it when it has run the others
      run_task({part, shards_.replicas[at(shard.replica)], s, begins_early && is_last ? &early : nullptr});
    }
  }

  Ref<Buffer> brought(int i, const Task& task) override {
    const Ref<Buffer>& found = is_common(i) ? values_[i] : own_of(i, task.shard);
    if (task.device.kind == DeviceKind::cpu) return Buffer::on_host(found);
    return backend_of(task.device).from_device(task.device, found, spec_of(i));
  }
  void keep(int i, const Task& task, Ref<Buffer> made) override {
    if (is_common(i)) values_[i] = std::move(made);
    else of_shards_[task.shard][i] = Buffer::on_host(std::move(made));
  }
  bool is_common(int i) const { return program_.places_[i] == for_all; }
  /// A shard's own value of i.
  const Ref<Buffer>& own_of(int i, std::size_t s) const {
    if (const OfShard* argument = op_as<OfShard>(graph_[i])) return shards_.shards[s].arguments[at(argument->argument)];
    return of_shards_[s].at(i);
  }

  // ---------------------------------------------------------------- sums

  /// The sums that are complete after a stage.
  void find_sums(int stage) {
    sums_.clear();
    wanted_.clear();
    for (std::size_t s = 0; s < program_.sums_.size(); ++s) {
      const ShardSum& sum = program_.sums_[s];
      if (sum.stage != stage || !program_.is_sum(sum.value)) continue;
      sums_.push_back(&sum);
      const auto part = program_.divided_.exchanges.find(sum.value);
      if (part == program_.divided_.exchanges.end()) wanted_.push_back({spec_of(sum.value), {}});
      else wanted_.push_back({part->second.whole, {}, {}, part->second.cuts});
      wanted_.back().narrow = op_as<AllReduce>(graph_[sum.value])->narrow;
      wanted_.back().name = program_.names_[s];
    }
  }
  void add_up() {
    for (std::size_t i = 0; i < sums_.size(); ++i)
      if (wanted_[i].parts.empty()) wanted_[i].parts = parts_of(*sums_[i]);
    if (!sums_.empty()) shards_.exchange->add_up(wanted_, shards_.step);
    for (std::size_t i = 0; i < sums_.size(); ++i) values_[sums_[i]->value] = std::move(wanted_[i].result);
  }
  std::vector<ShardRun::Part> parts_of(const ShardSum& sum) const {
    std::vector<ShardRun::Part> parts;
    for (std::size_t s = 0; s < shards_.shards.size(); ++s)
      for (const int part : sum.parts)
        if (program_.places_[part] == shards_.shards[s].length)
          parts.push_back({shards_.shards[s].number, own_of(part, s)});
    return parts;
  }

  /// Gathers the values that are complete after `stage`.
  void gather(int stage) {
    std::vector<int> of;
    std::vector<ShardRun::Gathered> all;
    for (const ShardSum& each : program_.sums_) {
      if (each.stage != stage || program_.is_sum(each.value)) continue;
      of.push_back(each.value);
      if (!is_gathered(program_.divided_.exchanges, each.value)) all.push_back(of_all_shards(each));
      else
        all.push_back({graph_[each.value].spec.dtype, program_.divided_.exchanges.at(each.value).cuts,
                       Buffer::on_host(values_[each.parts[0]])});
    }
    if (all.empty()) return;
    shards_.exchange->gather(all);
    for (std::size_t i = 0; i < all.size(); ++i) values_[of[i]] = std::move(all[i].result);
  }
  ShardRun::Gathered of_all_shards(const ShardSum& each) const {
    std::array<std::int64_t, 2> elements{};
    for (const int part : each.parts) elements[at(program_.places_[part])] = spec_of(part).shape.size();
    const FromShard* const from = op_as<FromShard>(graph_[each.value]);
    return values_of_shards(shards_, graph_[each.value].spec.dtype, elements, from ? from->place : -1, parts_of(each));
  }

  // ---------------------------------------------------------------- outputs

  Ref<Buffer> output(std::size_t k) override {
    const int source = program_.sources_[k];
    Ref<Buffer> made = is_common(source) ? values_[source] : of_each_shard(source);
    const Cuts& cuts = program_.cuts_of_output(k);
    return cuts.empty() ? made : DividedValue::buffer_of(made, cuts, cuts.back() * size_of(graph_[source].spec.dtype));
  }
  Ref<Buffer> of_each_shard(int source) {
    std::vector<ShardRun::Part> all;
    for (std::size_t s = 0; s < shards_.shards.size(); ++s)
      if (shards_.shards[s].length == program_.places_[source])
        all.push_back({shards_.shards[s].number, own_of(source, s)});
    // No local shard has this length: a buffer without a value stands for the result.
    Ref<Buffer> first = all.empty() ? Buffer::allocate(bytes_of(spec_of(source))) : all[0].value;
    shards_.results[first.get()] = std::move(all);
    return first;
  }

  const ShardedProgram& program_;
  ShardRun& shards_;
  std::vector<std::unordered_map<int, Ref<Buffer>>> of_shards_;
  std::vector<const ShardSum*> sums_;  // of the stage
  std::vector<ShardRun::Sum> wanted_;  // the same, for the exchange
};

void ShardedProgram::run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
                         const RunContext& context) const {
  internal_check(context.shards != nullptr, "a program of shards runs without any");
  ShardRun& shards = *context.shards;
  if (!has_run_.exchange(true)) shards.exchange->compare_program(fingerprint_);
  std::vector<Ref<Buffer>> own;
  if (shards.divides_state) inputs = own = own_inputs(shards, graph_, divided_.inputs, inputs);
  for (std::size_t k = 0; k < outputs.size(); ++k)
    if (outputs[k]) outputs[k] = memory_of(k, outputs[k]);
  Run(*this, shards, context.symbols).run(inputs, outputs);
}

/// `graph`, or that of this rank where ranks divide state.
DividedGraph divided(Graph graph, const ShardRun& run) {
  if (run.divides_state && run.ranks > 1) return divide_state(graph, run.rank, run.ranks);
  return {.graph = std::move(graph), .exchanges = {}, .inputs = {}, .outputs = {}};
}

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
  const std::uint64_t fingerprint = hash_of(graph);
  return std::make_shared<ShardedProgram>(divided(std::move(graph), shards), fingerprint, shards.common_device, options,
                                          note_of_host_sums(shards, why));
}

}  // namespace gradus
