/// Flattens the history of a tensor and asks the oracle.
#include "tests/ops/oracle.h"
#include <set>
#include "gradus/base/rooms.h"
#include "gradus/graph/graph.h"
#include "tests/reference/oracle.h"

namespace gradus::rows {

Array oracle(const Tensor& y) {
  const Flattened flat = flatten(std::vector<Ref<Node>>{y.node()});
  std::vector<std::vector<double>> inputs;
  for (const Ref<Node>& node : flat.inputs) inputs.push_back(to_array(Tensor(node)).values);
  return {y.shape(), reference::evaluate(flat.graph, inputs).front()};
}

std::vector<std::string> ops_in(const Tensor& y) {
  std::set<std::string> names;
  for (const Value& value : flatten(std::vector<Ref<Node>>{y.node()}).graph.values)
    if (value.op) names.emplace(value.op->name);
  return {names.begin(), names.end()};
}

}  // namespace gradus::rows
