/// The cut of a graph by devices, and the run of its parts.
#include "gradus/backend/parts/placed_program.h"
#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>
#include "gradus/backend/parts/lane.h"
#include "gradus/backend/parts/shared_executables.h"
#include "gradus/base/error.h"
#include "gradus/graph/per_value.h"

namespace gradus {
namespace {

// ---------------------------------------------------------------- the cut

/// A value of another part, or one that has to be copied to get there.
struct PartInput {
  int value;
  bool is_copied;  // it is on another device
};

/// The work of one device at one time. Parts of a stage do not depend on each other.
struct Part {
  Device device;
  int stage = 0;
  Graph graph;
  std::vector<PartInput> inputs;  // in the order of graph.inputs
  std::vector<int> outputs;       // values of the whole graph, in the order of graph.outputs
  std::shared_ptr<const Executable> executable;
};

/// Values computed from numbers alone: each part that reads them computes them again.
constexpr int anywhere = -1;

class Cut {
 public:
  explicit Cut(const Graph& graph) : graph_(graph), places_(graph) {
    for (int i = 0; i < graph.size(); ++i) place(i);
    delay();
    for (int i = 0; i < graph.size(); ++i)
      if (is_computed(i)) members_[{of(i).stage, of(i).device}].push_back(i);
    for (int i = 0; i < graph.size(); ++i) note_uses(i);
    for (const int output : graph.outputs) demand(source_of(output));
  }

  std::vector<Part> parts() && {
    for (auto& [key, members] : members_) fill(key, members);
    std::vector<Part> parts;
    for (auto& [key, part] : parts_) parts.push_back(std::move(part));
    for (const int input : graph_.dying) let_die(input, parts);
    return parts;
  }
  /// The value that copies begin with.
  static int origin_of(const Graph& graph, int i) {
    while (graph[i].op.is_copy()) i = graph[i].in[0];
    return i;
  }
  /// The stand-in for value i on its device: a copy from another one, or no copy.
  int source_of(int i) const {
    const int origin = origin_of(graph_, i);
    return is_anywhere(origin) || of(origin).device == of(i).device ? origin : i;
  }

 private:
  using Key = std::pair<int, int>;  // stage, code of the device
  struct Place {
    int device = anywhere;  // code of its placement
    int stage = 0;
    bool is_output = false;  // of its part
  };
  Place& of(int i) { return places_[i]; }
  const Place& of(int i) const { return places_[i]; }
  bool is_anywhere(int i) const { return of(i).device == anywhere; }
  bool is_copy(int i) const { return graph_[i].op.is_copy(); }

  void place(int i) {
    const Value& v = graph_[i];
    Place& place = of(i);
    const bool has_memory = v.is_input() || is_copy(i) || v.spec.device.is_named();
    bool is_free = !has_memory;
    for (const int operand : v.in) is_free = is_free && is_anywhere(operand);
    if (is_free) return;
    place.device = v.spec.device.resolved().code();
    for (const int operand : v.in) {
      if (is_anywhere(operand)) continue;
      place.stage = std::max(place.stage, of(operand).stage + (of(operand).device != place.device));
    }
  }
  /// In a part: a copy is made when the part that reads it begins.
  bool is_computed(int i) const { return !is_anywhere(i) && !is_copy(i) && !graph_[i].is_input(); }

  /// A value that reads inputs alone and fuses with its reader, as the decay of an optimizer's slot, is computed where
  /// it is first read: else it would go through memory from one part to another.
  void delay() {
    constexpr int never = std::numeric_limits<int>::max();
    PerValue<int> first_read(graph_, never);
    PerValue<char> is_of_inputs(graph_);
    for (int i = 0; i < graph_.size(); ++i) {
      const AnyOp& op = graph_[i].op;
      const bool fuses = op.is_elementwise() || op.is_view() || op.is_alias() || op.is_index();
      is_of_inputs[i] =
          graph_[i].is_input() || is_anywhere(i) ||
          (fuses && std::ranges::all_of(graph_[i].in, [&](int operand) { return is_of_inputs[operand]; }));
    }
    for (int i = graph_.size(); i-- > 0;) {
      if (is_computed(i) && is_of_inputs[i] && first_read[i] != never)
        of(i).stage = std::max(of(i).stage, first_read[i]);
      const int read = is_copy(i) ? 0 : of(i).stage;  // by a copy: at once
      for (const int operand : graph_[i].in) first_read[operand] = std::min(first_read[operand], read);
    }
  }

  /// Marks values that leave their part. An output computed from numbers is made by the default device.
  void demand(int i) {
    if (is_anywhere(i)) members_[{0, Placement().resolved().code()}].push_back(i);
    of(origin_of(graph_, i)).is_output = true;
  }

  void note_uses(int i) {
    if (is_anywhere(i) || is_copy(i)) return;
    for (const int operand : graph_[i].in) {
      const int read = origin_of(graph_, operand);
      if (graph_[read].is_input()) continue;
      if (!is_anywhere(read) && (of(read).stage != of(i).stage || of(read).device != of(i).device))
        of(read).is_output = true;
    }
  }

  void fill(const Key& key, std::vector<int>& members) {
    std::ranges::sort(members);
    Part& part = parts_[key];
    part.stage = key.first;
    std::unordered_map<int, int> local;  // values of the whole graph
    for (const int i : members) {
      if (local.contains(i)) continue;
      add(part, local, key, i);
      part.device = graph_[i].spec.device.physical();
      if (of(i).is_output) {
        part.graph.outputs.push_back(local.at(i));
        part.outputs.push_back(i);
      }
    }
  }
  int add(Part& part, std::unordered_map<int, int>& local, const Key& key, int asked) {
    const int i = source_of(asked);
    if (const auto known = local.find(i); known != local.end()) return known->second;
    const Value& v = graph_[i];
    const bool is_here = is_anywhere(i) || (Key{of(i).stage, of(i).device} == key && !v.is_input() && !is_copy(i));
    Value made{.spec = v.spec, .scope = v.scope};
    made.spec.device = {};
    if (is_here) {
      for (const int operand : v.in) made.in.push_back(add(part, local, key, operand));
      made.op = v.op;
      made.is_constant = v.is_constant;
      made.constant = v.constant;
      return local[i] = part.graph.add(std::move(made));
    }
    const int read = origin_of(graph_, i);
    part.inputs.push_back({read, of(read).device != key.second});
    const int here = part.graph.add(std::move(made));
    part.graph.inputs.push_back(here);
    return local[i] = here;
  }

  /// The part that reads an input last may overwrite it, if no other reads it at that stage, and nothing may fail then:
  /// a call that fails changes nothing.
  void let_die(int input, std::vector<Part>& parts) const {
    const auto is_it = [&](const PartInput& read) { return read.value == input; };
    Part* only = nullptr;
    for (Part& part : parts) {  // by stage
      if (std::ranges::none_of(part.inputs, is_it)) continue;
      if (only && only->stage == part.stage) return;
      only = &part;
    }
    const auto may_fail_then = [&](const Part& part) {
      return &part != only && part.stage >= only->stage &&
             std::ranges::any_of(part.graph.values, [](const Value& v) { return v.op.may_fail(); });
    };
    if (!only || of(input).is_output || std::ranges::any_of(parts, may_fail_then)) return;
    const auto read = std::ranges::find_if(only->inputs, is_it);
    if (read->is_copied) return;
    only->graph.dying.push_back(only->graph.inputs[at(read - only->inputs.begin())]);
  }

  const Graph& graph_;
  PerValue<Place> places_;
  std::map<Key, std::vector<int>> members_;
  std::map<Key, Part> parts_;
};

// ---------------------------------------------------------------- the run

class PlacedProgram final : public ExecutableOfParts {
 public:
  PlacedProgram(Graph graph, const CompileOptions& options) : graph_(std::move(graph)) {
    Cut cut(graph_);
    for (const int output : graph_.outputs) sources_.push_back(cut.source_of(output));
    parts_ = std::move(cut).parts();
    std::vector<PartOfProgram> all;
    for (const Part& part : parts_) all.push_back({&backend_of(part.device), &part.graph});
    CompileOptions of_parts = options;
    of_parts.replaces.clear();  // it names outputs of the whole: parts wait for steps that may fail
    executables_ = compile_parts(all, of_parts);
    for (std::size_t p = 0; p < parts_.size(); ++p) parts_[p].executable = executables_[p];
    for (const int source : sources_) may_overwrite_.push_back(input_taken_by(source));
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    const std::span<const std::int64_t> symbols = context.symbols;
    PerValue<Ref<Buffer>> values(graph_);
    for (std::size_t k = 0; k < inputs.size(); ++k) values[graph_.inputs[k]] = inputs[k];
    std::unordered_map<int, Ref<Buffer>> given;  // buffers that outputs are to be written into
    for (std::size_t k = 0; k < outputs.size(); ++k)
      if (outputs[k]) given.emplace(sources_[k], outputs[k]);
    for (std::size_t first = 0; first < parts_.size();) {
      std::size_t past = first;
      while (past < parts_.size() && parts_[past].stage == parts_[first].stage) ++past;
      run_stage({parts_.data() + first, past - first}, values, given, symbols);
      first = past;
    }
    for (std::size_t k = 0; k < outputs.size(); ++k) outputs[k] = output(k, values, symbols);
  }

  const Graph& graph() const override { return graph_; }
  const std::vector<int>& may_overwrite() const override { return may_overwrite_; }
  ExecutableReport report(std::span<const std::int64_t> symbols) const override {
    ExecutableReport all;
    int stage = 0;  // of the first kernels of parts side by side
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      if (p > 0 && parts_[p].stage != parts_[p - 1].stage) stage = all.stages();
      ExecutableReport part = parts_[p].executable->report(symbols);
      for (Kernel& kernel : part.kernels) kernel.device = parts_[p].device;
      all.add(std::move(part), stage);
    }
    return all;
  }

 private:
  /// The input of the whole graph in whose place value `source` may be computed, or -1.
  int input_taken_by(int source) const {
    for (const Part& part : parts_) {
      const auto made = std::ranges::find(part.outputs, source);
      if (made == part.outputs.end()) continue;
      const int taken = part.executable->may_overwrite()[at(made - part.outputs.begin())];
      if (taken < 0) return -1;
      const auto input = std::ranges::find(graph_.inputs, part.inputs[at(taken)].value);
      return input == graph_.inputs.end() ? -1 : static_cast<int>(input - graph_.inputs.begin());
    }
    return -1;
  }

  void run_stage(std::span<const Part> parts, PerValue<Ref<Buffer>>& values,
                 const std::unordered_map<int, Ref<Buffer>>& given, std::span<const std::int64_t> symbols) const {
    std::vector<std::vector<Ref<Buffer>>> made(parts.size());
    const auto run_part = [&](std::size_t p) {
      const Device& device = parts[p].device;
      std::vector<Ref<Buffer>> inputs;
      for (const PartInput& input : parts[p].inputs) inputs.push_back(brought(input, values, device, symbols));
      for (const int output : parts[p].outputs) {
        const auto place = given.find(output);
        made[p].push_back(place == given.end() ? Ref<Buffer>() : place->second);
      }
      parts[p].executable->run(inputs, made[p], {.symbols = symbols, .device = device});
      parts[p].executable->wait(made[p]);
    };
    std::vector<LaneWork> all;
    for (std::size_t p = 0; p < parts.size(); ++p) all.push_back({parts[p].device, [&run_part, p] { run_part(p); }});
    run_side_by_side(all);
    for (std::size_t p = 0; p < parts.size(); ++p)
      for (std::size_t k = 0; k < made[p].size(); ++k) values[parts[p].outputs[k]] = std::move(made[p][k]);
  }
  Spec spec_of(int i, std::span<const std::int64_t> symbols) const {
    return {graph_[i].spec.dtype, graph_[i].spec.shape.evaluated(symbols)};
  }
  Ref<Buffer> brought(const PartInput& input, const PerValue<Ref<Buffer>>& values, const Device& to,
                      std::span<const std::int64_t> symbols) const {
    const Ref<Buffer>& there = values[input.value];
    if (!input.is_copied) return there;
    return copy_between(there, graph_[input.value].spec.device.physical(), to, spec_of(input.value, symbols));
  }
  Ref<Buffer> output(std::size_t k, const PerValue<Ref<Buffer>>& values, std::span<const std::int64_t> symbols) const {
    const int source = sources_[k], origin = Cut::origin_of(graph_, source);
    const auto on = [&](int i) { return graph_[i].spec.device.physical(); };
    return source == origin ? values[source]
                            : copy_between(values[origin], on(origin), on(source), spec_of(origin, symbols));
  }

  Graph graph_;
  std::vector<int> sources_;  // of the outputs
  std::vector<Part> parts_;   // stage by stage
  std::vector<int> may_overwrite_;
};

}  // namespace

std::shared_ptr<const Executable> compile_placed(Graph graph, const CompileOptions& options) {
  return std::make_shared<PlacedProgram>(std::move(graph), options);
}

}  // namespace gradus
