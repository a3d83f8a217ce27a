/// Regions become programs, without unused results.
#include "gradus/backend/cpu/run/construct.h"
#include <algorithm>
#include "gradus/backend/cpu/budget.h"
#include "gradus/base/divide.h"

namespace gradus::construct {
namespace {

/// The compiled part of a region.
Graph region_graph(const Region& region, const std::vector<int>& outputs, int carries) {
  Graph graph = region.graph();
  std::vector<int> kept;
  for (int k : outputs) kept.push_back(graph.outputs[at(k)]);
  graph.outputs = std::move(kept);
  for (int k = 0; k < carries; ++k) graph.dying.push_back(graph.inputs[at(k)]);
  return graph;
}

CompileOptions region_options(CompileOptions options, int carries) {
  options.max_bytes = 0;                                       // the budget is of the whole
  if (carries > 0) options.disable.emplace_back("epilogues");  // rows of a product and of formulas are divided
  return options;
}

}  // namespace

Place place_of(const Graph& graph, const Step& step, int memory) {
  const Value& first = graph[step.members.front()];
  Place place{
      .operands = {}, .results = std::vector<int>(at(first.op->outputs(first.op.attributes())), -1), .memory = memory};
  for (int operand : first.in) place.operands.push_back(storage_of(graph, operand));
  for (int i : step.outputs) place.results[at(graph[i].op.output())] = i;
  return place;
}

std::shared_ptr<const CpuProgram> compile_region(const Region& region, const std::vector<int>& outputs, int carries,
                                                 const CompileOptions& options) {
  return cpu_backend::compile(region_graph(region, outputs, carries), region_options(options, carries));
}

std::int64_t bytes_of_region(const Region& region, const std::vector<int>& outputs, int carries,
                             const CompileOptions& options) {
  if (!region) return 0;
  const PlannedUse use = planned_use(region_graph(region, outputs, carries), region_options(options, carries));
  std::int64_t bytes = NestedProgram::bytes_for(use.slots, use.arena_bytes);
  for (int k = 0; k < carries; ++k) bytes += 2 * round_up(bytes_for(region.output(at(k)), options.symbols), 64);
  return bytes;
}

std::vector<bool> inputs_needed(const Region& region, const std::vector<bool>& wanted) {
  const Graph& graph = region.graph();
  PerValue<bool> needed(graph);
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k]) needed[graph.outputs[k]] = true;
  needed = needed_for(graph, std::move(needed));
  std::vector<bool> result;
  for (int i : graph.inputs) result.push_back(needed[i]);
  return result;
}

std::vector<int> outputs_needed(std::vector<bool> wanted, std::span<const Region* const> bodies, int carries) {
  for (bool grown = true; std::exchange(grown, false);)
    for (const Region* body : bodies) {
      const std::vector<bool> needed = inputs_needed(*body, wanted);
      for (int k = 0; k < carries; ++k)
        if (needed[at(k)] && !wanted[at(k)]) grown = wanted[at(k)] = true;
    }
  std::vector<int> outputs;
  for (std::size_t k = 0; k < wanted.size(); ++k)
    if (wanted[k]) outputs.push_back(static_cast<int>(k));
  return outputs;
}

std::vector<bool> outputs_asked(const Place& place, std::size_t outputs, int carries, int first_history) {
  std::vector<bool> asked(outputs);
  for (std::size_t k = 0; k < outputs; ++k) asked[k] = place.results[k] >= 0;
  for (int k = 0; k < carries && first_history >= 0; ++k)
    if (place.results[at(first_history + k)] >= 0) asked[at(k)] = true;
  return asked;
}

void note_programs(BoundThunk& thunk, std::initializer_list<const NestedProgram*> programs, std::int64_t times) {
  for (const NestedProgram* program : programs) {
    if (!*program) continue;
    thunk.team = std::max(thunk.team, program->team());
    thunk.may_fail = thunk.may_fail || program->may_fail();
    thunk.tiles |= program->binding().tiles;
    thunk.nested_ns = std::max(thunk.nested_ns, program->cost_ns() * static_cast<double>(times));
    thunk.nested_meetings = std::max(thunk.nested_meetings, program->meetings() * times);
  }
}

void report(const KernelArguments& arguments, std::exception_ptr failure) {
  arguments.error->nested = std::move(failure);
  report_failure(&arguments, 0, 0);
}

}  // namespace gradus::construct
