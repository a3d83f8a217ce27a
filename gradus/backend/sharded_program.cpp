/// The cut of a graph at the sums over shards, and the run of its parts.
///
/// Times count what has to be over before: what is the same for all shards is computed at even times, what differs at
/// odd ones. A sum that is complete after time t belongs to time t + 1.
///
///   time 0: for all      time 1: on each shard      (sums)      time 2: for all      time 3: on each shard ...
#include "gradus/backend/sharded_program.h"
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <unordered_map>
#include <utility>
#include "gradus/backend/divided_state.h"
#include "gradus/backend/divided_value.h"
#include "gradus/backend/lane.h"
#include "gradus/backend/run_listener.h"
#include "gradus/backend/shard_run.h"
#include "gradus/backend/shared_executables.h"
#include "gradus/backend/values_of_ranks.h"
#include "gradus/base/divide.h"
#include "gradus/base/error.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/shards_ops.h"

namespace gradus {
namespace {

/// The op of a value, if it is a T.
template <class T> const T* op_as(const Value& v) { return v.op ? v.op.as<T>() : nullptr; }

/// What runs at one time: for all shards, or on each of one length.
struct Part {
  int time = 0;
  int length = -1;  // -1: for all
  Graph graph;
  std::vector<int> inputs, outputs;  // values of the whole graph, in the order of graph.inputs and graph.outputs
  std::shared_ptr<const Executable> executable;  // for devices of the default one's kind
  bool is_for_all() const { return length < 0; }
};

/// A sum, and what shards of each length add to it; or a value that is gathered of the ranks' parts.
struct Sum {
  int value, time;
  std::vector<int> parts;
};

using Exchanges = std::unordered_map<int, DividedGraph::Exchange>;
/// Of the ranks' parts.
bool is_gathered(const Exchanges& exchanges, int value) {
  const auto found = exchanges.find(value);
  return found != exchanges.end() && found->second.gathers;
}

/// Where values are made of numbers alone, each part that reads them makes them anew.
class Cut {
 public:
  Cut(const Graph& graph, const Exchanges& exchanges) : graph_(graph), exchanges_(exchanges), places_(graph) {
    for (int i = 0; i < graph.size(); ++i) place(i);
    for (const int output : graph.outputs) need(source_of(output));
    for (const auto& [value, sum] : sums_)
      for (const int part : sum.parts) need(part);
    delay();
    for (int i = 0; i < graph.size(); ++i) note_uses(i);
    for (int i = 0; i < graph.size(); ++i)
      if (of(i).is_member) members_[{of(i).time, of(i).length}].push_back(i);
  }

  std::vector<Part> parts() {
    std::vector<Part> all;
    for (const auto& [key, members] : members_) all.push_back(part(key, members));
    for (const int input : graph_.dying) let_die(input, all);
    return all;
  }
  /// In the order in which shards come to what they add.
  std::vector<Sum> sums() const {
    std::vector<Sum> all;
    for (const auto& [value, sum] : sums_) all.push_back(sum);
    std::ranges::stable_sort(all, {}, [](const Sum& sum) { return sum.parts[0]; });
    return all;
  }
  /// What stands for value i: the sum for one that shards of another length have joined.
  int source_of(int i) const {
    while (joins_in(graph_[i])) i = graph_[i].in[0];
    return i;
  }
  int length_of(int i) const { return of(i).length; }

 private:
  using Key = std::pair<int, int>;  // time and length
  struct Place {
    int time = 0, length = -1;
    bool is_anywhere = false, is_member = false, is_output = false;
    int latest = -1;  // time at which it is needed
  };
  Place& of(int i) { return places_[i]; }
  const Place& of(int i) const { return places_[i]; }

  void place(int i) {
    const Value& v = graph_[i];
    Place& here = of(i);
    require(!v.spec.device.is_named(), "within a step that a strategy runs, ", v.spec, " is on a device of its own; ",
            "the strategy says where shards are computed: leave DeviceScope and .to() out of the step, and make its "
            "Variables outside of a DeviceScope");
    const bool is_exchange = is_gathered(exchanges_, i);
    if (v.is_input() && !is_exchange) return;
    if (const OfShard* argument = op_as<OfShard>(v)) {
      here.length = argument->length;
      here.time = 1;
      return;
    }
    if (joins_in(v)) {
      Sum& sum = sums_.at(source_of(i));
      sum.parts.push_back(v.in[1]);
      sum.time = std::max(sum.time, of(v.in[1]).time);
      return;
    }
    if (is_exchange || v.op.joins_shards()) {
      const int part = v.in[0];
      sums_[i] = {i, of(part).time, {part}};
      here.time = round_up(of(part).time + 1, 2);
      return;
    }
    bool is_anywhere = true;
    for (const int operand : v.in) {
      is_anywhere = is_anywhere && of(operand).is_anywhere;
      here.length = std::max(here.length, of(operand).length);
    }
    if (const OnShard* own = op_as<OnShard>(v)) here.length = own->length;
    here.is_anywhere = is_anywhere && here.length < 0;
    if (here.is_anywhere) return;
    here.is_member = true;
    const int parity = here.length < 0 ? 0 : 1;
    here.time = parity;
    for (const int given : v.in) {
      const int operand = source_of(given);
      if (of(operand).is_anywhere) continue;
      internal_check(of(operand).length < 0 || of(operand).length == here.length,
                     "a value of shards of both lengths: ", v.op);
      const int after = of(operand).time;
      here.time = std::max(here.time, after % 2 == parity ? after : after + 1);
    }
  }

  /// An output, or what is added up.
  void need(int i) {
    of(i).is_output = true;
    if (of(i).is_anywhere) of(i).is_member = true;
  }

  /// What is for all is computed as late as it is read, so that little is done before the shards begin.
  void delay() {
    int last = 0;
    for (const Place& place : places_)
      if (place.length < 0) last = std::max(last, place.time);
    for (int i = graph_.size(); i-- > 0;) {
      Place& here = of(i);
      if (is_gathered(exchanges_, i)) {  // its part is needed at its time
        Place& part = of(source_of(graph_[i].in[0]));
        part.latest = part.latest < 0 ? sums_.at(i).time : std::min(part.latest, sums_.at(i).time);
      }
      if (here.is_member && here.length < 0 && !here.is_anywhere)
        here.time = std::max(here.time, here.latest >= 0 ? here.latest : last);
      if (!here.is_member) continue;
      for (const int given : graph_[i].in) {
        Place& operand = of(source_of(given));
        const int needed = here.length < 0 ? here.time : here.time - 1;
        operand.latest = operand.latest < 0 ? needed : std::min(operand.latest, needed);
      }
    }
  }

  void note_uses(int i) {
    if (!of(i).is_member) return;
    for (const int given : graph_[i].in) {
      const int operand = source_of(given);
      const bool is_made = !graph_[operand].is_input() && !of(operand).is_anywhere;
      if (is_made && Key{of(operand).time, of(operand).length} != Key{of(i).time, of(i).length})
        of(operand).is_output = true;
    }
  }

  Part part(const Key& key, const std::vector<int>& members) const {
    Part made{.time = key.first, .length = key.second};
    std::unordered_map<int, int> local;
    for (const int i : members) {
      const int here = add(made, local, key, i);
      if (!of(i).is_output) continue;
      made.graph.outputs.push_back(here);
      made.outputs.push_back(i);
    }
    return made;
  }
  int add(Part& part, std::unordered_map<int, int>& local, const Key& key, int asked) const {
    const int i = source_of(asked);
    if (const auto known = local.find(i); known != local.end()) return known->second;
    const Value& v = graph_[i];
    const bool is_here = of(i).is_anywhere || (of(i).is_member && Key{of(i).time, of(i).length} == key);
    if (!is_here) {
      part.inputs.push_back(i);
      part.graph.inputs.push_back(part.graph.add({.spec = v.spec, .scope = v.scope}));
      return local[i] = part.graph.inputs.back();
    }
    Value made = v;
    made.in.clear();
    for (const int operand : v.in) made.in.push_back(add(part, local, key, operand));
    if (op_as<OnShard>(v)) return local[i] = made.in[0];
    return local[i] = part.graph.add(std::move(made));
  }

  /// The last part that reads an input may overwrite it, if it is the one that is for all, and nothing, no exchange
  /// either, can fail then or later: a call that fails changes nothing.
  void let_die(int input, std::vector<Part>& all) const {
    if (of(input).is_output || all.empty()) return;
    Part& last = all.back();
    if (std::ranges::any_of(sums_, [&](const auto& entry) { return entry.second.time >= last.time; })) return;
    const bool is_read = std::ranges::find(last.inputs, input) != last.inputs.end();
    if (!last.is_for_all() || !is_read) return;
    if (std::ranges::any_of(last.graph.values, [](const Value& v) { return v.op.may_fail(); })) return;
    const auto place = std::ranges::find(last.inputs, input) - last.inputs.begin();
    last.graph.dying.push_back(last.graph.inputs[at(place)]);
  }

  const Graph& graph_;
  const Exchanges& exchanges_;
  PerValue<Place> places_;
  std::map<int, Sum> sums_;
  std::map<Key, std::vector<int>> members_;
};

class ShardedProgram final : public ExecutableOfParts {
 public:
  ShardedProgram(Graph graph, const CompileOptions& options)
      : fingerprint_(hash_of(graph)), divided_(divided(std::move(graph))), options_(of_parts(options)) {
    Cut cut(graph_, divided_.exchanges);
    parts_ = cut.parts();
    sums_ = cut.sums();
    std::vector<PartOfProgram> all;
    for (const Part& part : parts_) all.push_back({&backend_of(kind_), &part.graph});
    executables_ = compile_parts(all, options_);
    for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].executable = executables_[p];
    for (int i = 0; i < graph_.size(); ++i) lengths_.push_back(cut.length_of(i));
    for (const int output : graph_.outputs) sources_.push_back(cut.source_of(output));
    last_reads_ = PerValue<int>(graph_);
    for (const Part& part : parts_)
      for (const int input : part.inputs) last_reads_[input] = part.time;
    if (!parts_.empty()) last_time_ = parts_.back().time;
    for (const Sum& sum : sums_) last_sum_ = std::max(last_sum_, sum.time);
    last_time_ = std::max(last_time_, last_sum_);  // of arguments, perhaps
    for (const Sum& sum : sums_)
      for (const int part : sum.parts) last_reads_[part] = std::max(last_reads_[part], sum.time);
    for (const int source : sources_) last_reads_[source] = std::numeric_limits<int>::max();
    for (std::size_t k = 0; k < sources_.size(); ++k)
      may_overwrite_.push_back(is_divided(k) ? -1 : input_taken_by(sources_[k]));
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs, std::span<const std::int64_t> symbols,
           const Device&) const override {
    ShardRun* const run = ShardRun::current();
    internal_check(run != nullptr, "a program of shards runs without any");
    if (!has_run_.exchange(true)) run->check_same(fingerprint_);
    Values values{*run,
                  symbols,
                  PerValue<Ref<Buffer>>(graph_),
                  std::vector<std::unordered_map<int, Ref<Buffer>>>(run->shards.size()),
                  {}};
    std::vector<Ref<Buffer>> own;
    if (run->divides_state) inputs = own = own_inputs(*run, divided_, inputs);
    for (std::size_t k = 0; k < inputs.size(); ++k) values.of_all[graph_.inputs[k]] = inputs[k];
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (Ref<Buffer> given = outputs[k] ? own_output(divided_, k, outputs[k]) : nullptr)
        values.given.emplace(sources_[k], std::move(given));
    std::size_t next = 0;
    for (int time = 0; time <= last_time_; ++time) {
      const std::size_t first = next;
      while (next < parts_.size() && parts_[next].time == time) ++next;
      const std::span<const Part> now(parts_.data() + first, next - first);
      SumsOfTime sums = sums_after(time, values);
      if (!now.empty() && now[0].is_for_all()) run_for_all(now[0], values);
      else if (!now.empty()) run_on_shards(now, values, sums);
      add_up(time, values, sums);
      if (time == last_sum_) run->has_added();
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = result(sources_[k], values);
    for (std::size_t k = 0; k < divided_.outputs.size(); ++k)
      if (const Cuts& cuts = divided_.outputs[k]; !cuts.empty())
        outputs[k] = DividedValue::buffer_of(outputs[k], cuts, cuts.back() * size_of(graph_[sources_[k]].spec.dtype));
  }

  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return may_overwrite_; }
  std::vector<Kernel> kernels(std::span<const std::int64_t> symbols) const override {
    std::vector<Kernel> all;
    int next_stage = 0;
    for (const Part& part : parts_) {
      const int first_stage = next_stage;
      for (Kernel kernel : part.executable->kernels(symbols)) {
        kernel.stage += first_stage;
        next_stage = std::max(next_stage, kernel.stage + 1);
        all.push_back(std::move(kernel));
      }
    }
    return all;
  }

 private:
  /// `graph`, or that of this rank where ranks divide state.
  static DividedGraph divided(Graph graph) {
    const ShardRun& run = *ShardRun::current();
    if (run.divides_state && run.ranks > 1) return divide_state(graph, run.rank, run.ranks);
    return {.graph = std::move(graph), .exchanges = {}, .inputs = {}, .outputs = {}};
  }

  /// Whether a rank has its own part alone of output k.
  bool is_divided(std::size_t k) const { return k < divided_.outputs.size() && !divided_.outputs[k].empty(); }

  struct Values {
    ShardRun& run;
    std::span<const std::int64_t> symbols;
    PerValue<Ref<Buffer>> of_all;
    std::vector<std::unordered_map<int, Ref<Buffer>>> of_shards;
    std::unordered_map<int, Ref<Buffer>> given;  // what outputs are to be written into
  };

  /// The sums that are complete after a time, for ShardRun.
  struct SumsOfTime {
    std::vector<const Sum*> own;
    std::vector<ShardRun::Sum> wanted;
  };
  SumsOfTime sums_after(int time, const Values& values) const {
    SumsOfTime sums;
    for (const Sum& sum : sums_) {
      if (sum.time != time || !is_sum(sum.value)) continue;
      sums.own.push_back(&sum);
      const auto part = divided_.exchanges.find(sum.value);
      if (part == divided_.exchanges.end()) sums.wanted.push_back({spec_of(sum.value, values.symbols), {}});
      else sums.wanted.push_back({part->second.whole, {}, {}, part->second.cuts});
      sums.wanted.back().narrow = op_as<AllReduce>(graph_[sum.value])->narrow;
    }
    return sums;
  }

  /// While the last shard of this process runs: a sum begins when the shard has what it adds.
  class Early final : public RunListener {
   public:
    Early(const ShardedProgram& program, const Part& part, std::size_t shard, Values& values, SumsOfTime& sums)
        : program_(program), part_(part), shard_(shard), values_(values), sums_(sums) {}
    void made(std::size_t k, const Ref<Buffer>& output) override {
      const int value = part_.outputs[k];
      bool is_part = false;
      for (std::size_t i = 0; i < sums_.own.size(); ++i) {
        if (std::ranges::find(sums_.own[i]->parts, value) == sums_.own[i]->parts.end()) continue;
        if (!std::exchange(is_part, true)) values_.of_shards[shard_][value] = output;
        sums_.wanted[i].parts = program_.parts_of(*sums_.own[i], values_);
        values_.run.is_there(i);
      }
    }
    void between() override { values_.run.drive(); }

   private:
    const ShardedProgram& program_;
    const Part& part_;
    const std::size_t shard_;
    Values& values_;
    SumsOfTime& sums_;
  };

  void run_for_all(const Part& part, Values& values) const {
    std::vector<Ref<Buffer>> inputs, outputs;
    for (const int input : part.inputs) inputs.push_back(values.of_all[input]);
    for (const int output : part.outputs) {
      const auto place = values.given.find(output);
      outputs.push_back(place == values.given.end() ? Ref<Buffer>() : place->second);
    }
    const Device device = default_device();
    for (std::size_t k = 0; k < inputs.size(); ++k)
      inputs[k] = on_device(inputs[k], device, spec_of(part.inputs[k], values.symbols));
    part.executable->run(inputs, outputs, values.symbols, device);
    part.executable->wait(outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) values.of_all[part.outputs[k]] = std::move(outputs[k]);
  }

  /// Replicas side by side, each with its shards one after the other.
  void run_on_shards(std::span<const Part> parts, Values& values, SumsOfTime& sums) const {
    const std::vector<Device>& replicas = values.run.replicas;
    const std::size_t last = values.run.shards.size() - 1;  // a replica alone runs it when it has run the others
    const bool begins_early = replicas.size() == 1 && values.run.begins_early() && !sums.own.empty();
    if (begins_early) values.run.expect(sums.wanted);
    std::vector<LaneWork> all;
    for (std::size_t replica = 0; replica < replicas.size(); ++replica)
      all.push_back({replicas[replica], [&, replica] {
                       for (std::size_t s = 0; s < values.run.shards.size(); ++s) {
                         const ShardRun::Shard& shard = values.run.shards[s];
                         if (shard.replica != static_cast<int>(replica)) continue;
                         for (const Part& part : parts) {
                           if (part.length != shard.length) continue;
                           Early early(*this, part, s, values, sums);
                           const FieldScope<&CallContext::run_listener> scope(begins_early && s == last ? &early
                                                                                                        : nullptr);
                           run_on(part, s, replicas[replica], values);
                         }
                       }
                     }});
    run_side_by_side(all);
  }
  void run_on(const Part& part, std::size_t s, const Device& device, Values& values) const {
    std::unordered_map<int, Ref<Buffer>>& own = values.of_shards[s];
    std::vector<Ref<Buffer>> inputs, outputs(part.outputs.size());
    for (const int input : part.inputs) {
      const Ref<Buffer>& found = lengths_[input] < 0 ? values.of_all[input] : own_of(input, s, values);
      inputs.push_back(on_device(found, device, spec_of(input, values.symbols)));
    }
    const auto executable = executable_of(part, device);
    executable->run(inputs, outputs, values.symbols, device);
    executable->wait(outputs);
    for (std::size_t k = 0; k < outputs.size(); ++k) own[part.outputs[k]] = Buffer::on_host(std::move(outputs[k]));
  }
  /// They name outputs of the whole: parts wait for what may fail.
  static CompileOptions of_parts(CompileOptions options) {
    options.replaces.clear();
    return options;
  }
  std::shared_ptr<const Executable> executable_of(const Part& part, const Device& device) const {
    return device.kind == kind_ ? part.executable : compile_once(backend_of(device), part.graph, options_);
  }
  static Ref<Buffer> on_device(const Ref<Buffer>& buffer, const Device& device, const Spec& spec) {
    if (device.kind == DeviceKind::cpu) return Buffer::on_host(buffer);
    return buffer->device_memory() ? buffer : backend_of(device).from_host(device, buffer, spec);
  }

  Spec spec_of(int i, std::span<const std::int64_t> symbols) const {
    Spec spec = graph_[i].spec;
    spec.shape = spec.shape.evaluated(symbols);
    return spec;
  }

  /// What a shard has of value i.
  const Ref<Buffer>& own_of(int i, std::size_t s, const Values& values) const {
    if (const OfShard* argument = op_as<OfShard>(graph_[i]))
      return values.run.shards[s].arguments[at(argument->argument)];
    return values.of_shards[s].at(i);
  }

  bool is_sum(int value) const { return op_as<AllReduce>(graph_[value]) && !is_gathered(divided_.exchanges, value); }

  ShardRun::Gathered values_of_shards(const Sum& each, const Values& values) const {
    std::array<std::int64_t, 2> elements{};
    for (const int part : each.parts) elements[at(lengths_[part])] = spec_of(part, values.symbols).shape.size();
    const FromShard* const from = op_as<FromShard>(graph_[each.value]);
    return gradus::values_of_shards(values.run, graph_[each.value].spec.dtype, elements, from ? from->place : -1,
                                    parts_of(each, values));
  }

  /// What is gathered after `time`.
  void gather(int time, Values& values) const {
    std::vector<int> of;
    std::vector<ShardRun::Gathered> all;
    for (const Sum& each : sums_) {
      if (each.time != time || is_sum(each.value)) continue;
      of.push_back(each.value);
      if (!is_gathered(divided_.exchanges, each.value)) all.push_back(values_of_shards(each, values));
      else
        all.push_back({graph_[each.value].spec.dtype, divided_.exchanges.at(each.value).cuts,
                       Buffer::on_host(values.of_all[each.parts[0]])});
    }
    if (all.empty()) return;
    values.run.gather(all);
    for (std::size_t i = 0; i < all.size(); ++i) values.of_all[of[i]] = std::move(all[i].result);
  }

  /// What is complete after `time`.
  void add_up(int time, Values& values, SumsOfTime& sums) const {
    for (std::size_t i = 0; i < sums.own.size(); ++i)
      if (sums.wanted[i].parts.empty()) sums.wanted[i].parts = parts_of(*sums.own[i], values);
    if (!sums.own.empty()) values.run.add_up(sums.wanted);
    for (std::size_t i = 0; i < sums.own.size(); ++i)
      values.of_all[sums.own[i]->value] = std::move(sums.wanted[i].result);
    gather(time, values);  // after sums on every rank, though these begin early on some
    for (auto& own : values.of_shards)
      std::erase_if(own, [&](const auto& entry) { return last_reads_[entry.first] <= time; });
  }
  std::vector<ShardRun::Part> parts_of(const Sum& sum, const Values& values) const {
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
    // Of a length that no shard of this process has nothing is known; somebody may still ask for it.
    Ref<Buffer> first = all.empty() ? Buffer::allocate(bytes_of(spec_of(source, values.symbols))) : all[0].value;
    values.run.results[first.get()] = std::move(all);
    return first;
  }

  /// The input in whose place value `source` may be computed, or -1.
  int input_taken_by(int source) const {
    for (const Part& part : parts_) {
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

  const std::uint64_t fingerprint_;  // of the graph before it was divided: the same on every rank
  const DividedGraph divided_;
  const Graph& graph_ = divided_.graph;
  const CompileOptions options_;
  const DeviceKind kind_ = default_device().kind;
  std::vector<Part> parts_;  // by time
  std::vector<Sum> sums_;
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

std::shared_ptr<const Executable> compile_sharded(Graph graph, const CompileOptions& options) {
  return std::make_shared<ShardedProgram>(std::move(graph), options);
}

}  // namespace gradus
