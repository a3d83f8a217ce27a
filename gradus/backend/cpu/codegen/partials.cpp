/// How much memory partial results take.
#include "gradus/backend/cpu/codegen/partials.h"
#include <algorithm>
#include "gradus/base/divide.h"

namespace gradus::cpu_backend {

bool is_reduced_at_once(const Graph& graph, const Step& step, const Loops& loops) {
  const std::int64_t n = loops.column_reduction()->n;
  const bool narrow = std::ranges::any_of(step.members, [&](int member) {
    return is_column_reduction(graph[member]) && is_narrow(graph[member].spec.dtype);
  });
  return n > 0 && n <= column_block && !narrow;
}

std::vector<Partials> partials_of(const Graph& graph, const Step& step, const Loops& loops) {
  std::vector<Partials> partials;
  for (int member : step.members) {
    const Value& v = graph[member];
    if (!v.op.is_reduction()) continue;
    const std::int64_t size = size_of(computed_in(v.spec.dtype));
    if (is_column_reduction(v)) {
      const Reduced view = reduced_view(graph, member);
      if (!is_reduced_at_once(graph, step, loops))
        partials.push_back({member, view.outer, view.n, column_block, view.inner, size});
    } else if (loops.may_be_blocked()) {
      partials.push_back({member, loops.rows(), loops.columns(), row_block, 1, size});
    }
  }
  return partials;
}

std::int64_t bytes_of(std::span<const Partials> partials, std::span<const std::int64_t> symbols) {
  const auto extent = [&](std::int64_t d) { return dimension::evaluate(d, symbols); };
  std::int64_t bytes = 0;
  for (const Partials& p : partials) {
    const std::int64_t blocks = divide_up(extent(p.length), p.block);
    const std::int64_t own =
        dimension::multiply(dimension::multiply(extent(p.lines), blocks), dimension::multiply(extent(p.width), p.size));
    bytes = dimension::add(bytes, dimension::add(round_up(own, 64), partial_padding));
  }
  return bytes;
}

}  // namespace gradus::cpu_backend
