/// The parts of a graph by devices. The place of a value is the code of its device.
#include "gradus/backend/parts/placed_program.h"
#include <algorithm>
#include <map>
#include "gradus/backend/parts/parted_program.h"

namespace gradus {
namespace {

/// A copy is made when the part that reads it begins.
class DevicePartition final : public Partition {
 public:
  explicit DevicePartition(const Graph& graph) : Partition(graph, Placement().resolved().code()) {
    for (int i = 0; i < graph.size(); ++i) place(i);
    delay_cheap();
    for (const int output : graph.outputs) demand(origin_of(output));
  }

 private:
  bool is_copy(int i) const { return graph_[i].op.is_copy(); }

  void place(int i) {
    const Value& v = graph_[i];
    Place& here = (*this)[i];
    const bool has_memory = v.is_input() || is_copy(i) || v.spec.device.is_named();
    here.is_anywhere =
        !has_memory && std::ranges::all_of(v.in, [&](int operand) { return (*this)[operand].is_anywhere; });
    if (here.is_anywhere) return;
    here.is_computed = !is_copy(i) && !v.is_input();
    here.key.place = v.spec.device.resolved().code();
    for (const int operand : v.in) {
      const Place& read = (*this)[operand];
      if (read.is_anywhere) continue;
      here.key.stage = std::max(here.key.stage, read.key.stage + (read.key.place != here.key.place));
    }
  }

  /// A value that reads inputs alone and fuses with its reader, as the decay of an optimizer's slot, is computed where
  /// it is first read: else it would go through memory from one part to another.
  void delay_cheap() {
    PerValue<bool> is_of_inputs(graph_);
    for (int i = 0; i < graph_.size(); ++i) {
      const AnyOp& op = graph_[i].op;
      const bool fuses = op.is_elementwise() || op.is_view() || op.is_alias() || op.is_index();
      is_of_inputs[i] =
          graph_[i].is_input() || (*this)[i].is_anywhere ||
          (fuses && std::ranges::all_of(graph_[i].in, [&](int operand) { return is_of_inputs[operand]; }));
    }
    delay([&](int i) { return (*this)[i].is_computed && is_of_inputs[i]; },
          [&](int i) { return std::optional(is_copy(i) ? 0 : (*this)[i].key.stage); }, 0);  // by a copy: at once
  }
};

class PlacedProgram final : public PartedProgram {
 public:
  PlacedProgram(Graph graph, const CompileOptions& options) : PartedProgram(std::move(graph)) {
    DevicePartition partition(graph_);
    std::map<int, Device> devices{{Placement().resolved().code(), Placement().physical()}};
    for (const Value& v : graph_.values) devices.emplace(v.spec.device.resolved().code(), v.spec.device.physical());
    compile_parts_of(partition, options, [&](int place) { return devices.at(place); });
  }

  void run(std::span<const Ref<Buffer>> inputs, std::span<Ref<Buffer>> outputs,
           const RunContext& context) const override {
    Run(*this, context.symbols).run(inputs, outputs);
  }

 private:
  class Run final : public PartsRun {
   public:
    Run(const PlacedProgram& program, std::span<const std::int64_t> symbols)
        : PartsRun(program, symbols), program_(program) {}

   private:
    Ref<Buffer> brought(int i, const Task& task) override {
      return program_.places_[i] == task.part.key.place ? values_[i] : copy(i, task.device);
    }
    Ref<Buffer> output(std::size_t k) override {
      const int source = program_.sources_[k];
      int origin = source;
      while (graph_[origin].op.is_copy()) origin = graph_[origin].in[0];
      return source == origin ? values_[source] : copy(origin, graph_[source].spec.device.physical());
    }
    Ref<Buffer> copy(int i, const Device& to) const {
      return copy_between(values_[i], graph_[i].spec.device.physical(), to, spec_of(i));
    }

    const PlacedProgram& program_;
  };
};

}  // namespace

std::shared_ptr<const Executable> compile_placed(Graph graph, const CompileOptions& options) {
  return std::make_shared<PlacedProgram>(std::move(graph), options);
}

}  // namespace gradus
