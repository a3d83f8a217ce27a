/// Numbers in place of symbols.
#include "gradus/graph/evaluate.h"
#include "gradus/graph/region.h"

namespace gradus {

Graph evaluated(const Graph& graph, std::span<const std::int64_t> symbols) {
  Graph at_sizes = graph;
  for (Value& v : at_sizes.values) {
    v.spec.shape = v.spec.shape.evaluated(symbols);
    if (v.op && v.op->evaluated) v.op = v.op->evaluated(v.op.attributes(), symbols);
  }
  return at_sizes;
}

namespace detail {

void evaluate_field(Shape& value, std::span<const std::int64_t> symbols) { value = value.evaluated(symbols); }
void evaluate_field(std::int64_t& value, std::span<const std::int64_t> symbols) {
  if (dimension::symbols_in(value) > 0) value = dimension::evaluate(value, symbols);
}
void evaluate_field(Region& value, std::span<const std::int64_t> symbols) {
  if (value && value.symbols() > 0) value = Region(evaluated(value.graph(), symbols));
}

}  // namespace detail
}  // namespace gradus
