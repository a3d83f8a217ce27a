/// PerValue: something known of each value of a graph, by its number.
#pragma once
#include "gradus/base/numbered.h"
#include "gradus/graph/graph.h"

namespace gradus {

template <class T> class PerValue : public Numbered<T> {
 public:
  using Numbered<T>::Numbered;
  PerValue() = default;
  explicit PerValue(const Graph& graph, const T& initial = T()) : Numbered<T>(graph.values.size(), initial) {}
};

/// The values that are needed to compute those in `wanted`: themselves, their operands, and so on.
inline PerValue<bool> needed_for(const Graph& graph, PerValue<bool> wanted) {
  for (int i = graph.size() - 1; i >= 0; --i)
    if (wanted[i])
      for (int operand : graph[i].in) wanted[operand] = true;
  return wanted;
}
/// The values that are needed for the outputs, and all inputs.
inline PerValue<bool> needed_with_inputs(const Graph& graph) {
  PerValue<bool> wanted(graph);
  for (const std::vector<int>* list : {&graph.inputs, &graph.outputs})
    for (int i : *list) wanted[i] = true;
  return needed_for(graph, std::move(wanted));
}

}  // namespace gradus
