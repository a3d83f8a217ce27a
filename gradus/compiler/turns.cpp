/// A rule of sizes. Decision 115 has the reasons.
#include "gradus/compiler/turns.h"
#include <algorithm>
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"

namespace gradus {
bool is_in_turns(const Graph& graph, int product, std::span<const std::int64_t> symbols, const TargetModel& target) {
  const Value& v = graph[product];
  const Matmul& op = *v.op.as<Matmul>();
  const auto extent = [&](std::int64_t d) {
    return symbols.empty() ? usual_elements({d}) : dimension::evaluate(d, symbols);
  };
  const Shape &a = graph[v.in[0]].spec.shape, &c = v.spec.shape;
  const std::int64_t m = extent(c[-2]), n = extent(c[-1]), k = extent(op.transpose_a ? a[-2] : a[-1]);
  const std::int64_t weights = k * n * size_of(v.spec.dtype);
  for (int i = 0; i < c.rank() - 2; ++i)
    if (extent(c[i]) != 1) return false;
  return std::ranges::count(graph.dying, storage_of(graph, v.in[1])) > 0 && v.spec.dtype != bf16 && !op.transpose_b &&
         n > 1 && m > 0 && m * 3 <= k && weights >= target.least_weights_in_turns &&
         weights <= target.most_weights_in_turns;
}

}  // namespace gradus
