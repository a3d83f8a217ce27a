/// Steps without fusion.
#include "gradus/compiler/steps.h"
#include "gradus/graph/applications.h"

namespace gradus {
namespace {

/// The values that have to stand in memory.
PerValue<bool> find_stored(const Graph& graph) {
  PerValue<bool> stored(graph);
  const auto store = [&](int i) { stored[storage_of(graph, i)] = true; };
  for (int o : graph.outputs) store(o);
  for (const Value& v : graph.values) {
    if (v.op.is_alias()) continue;
    if (is_by_table(v)) store(v.in[1]);
    const bool in_place = v.op.is_elementwise() || v.op.is_reduction();
    for (int operand : v.in)
      if (const int source = in_place ? source_of(graph, operand) : storage_of(graph, operand);
          !(in_place || v.op.is_view()) || !is_computed_where_read(graph, source))
        stored[source] = true;
  }
  return stored;
}

}  // namespace

std::vector<Step> single_steps(const Graph& graph) {
  const PerValue<bool> stored = find_stored(graph);
  Applications<int> controls;
  Numbered<std::size_t> step_of_control;
  std::vector<Step> steps;
  for (int i = 0; i < graph.size(); ++i) {
    const Value& v = graph[i];
    if (v.is_input() || v.op.is_alias() || !stored[i]) continue;
    if (v.op.is_control()) {
      const auto [number, is_new] = controls.find_or_add_result(v.op, v.in);
      if (!is_new) {
        Step& step = steps[step_of_control[number]];
        step.members.push_back(i);
        step.outputs.push_back(i);
        continue;
      }
      step_of_control.push_back(steps.size());
    }
    const auto kind = kind_of(v);
    const Shape& space = v.op.is_reduction() ? graph[v.in[0]].spec.shape : v.spec.shape;
    steps.push_back({kind, space, {i}, {i}});
  }
  return steps;
}

}  // namespace gradus
