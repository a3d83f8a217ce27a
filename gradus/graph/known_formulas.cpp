#include "gradus/graph/known_formulas.h"

namespace gradus {

const scalar::Code& KnownFormulas::of(const Graph& graph, const Value& v) {
  std::vector<DType> types;
  for (int operand : v.in) types.push_back(graph[operand].spec.dtype);
  const auto [it, is_new] = known_.try_emplace({v.op.record(), types});
  if (is_new) it->second = {v.op, v.op.formula(types)};
  return it->second.code;
}

}  // namespace gradus
