/// Rows that repeat are multiplied once: the product of a broadcast is the broadcast of a product, which elementwise
/// readers read in place. Cotangents begin so: the seeds of a Jacobian are the same for every example, and a sum's is
/// one number.
#include <algorithm>
#include <optional>
#include "gradus/compiler/passes.h"
#include "gradus/graph/rewriter.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"
#include "gradus/ops/views.h"

namespace gradus {
namespace {

struct RepeatedRows {
  int source;            // a constant, or the source of a broadcast
  Shape once, repeated;  // [..., k]
};

/// Rows of `operand` that are a constant's or a broadcast's, but for how dimensions divide them.
std::optional<RepeatedRows> repeated_rows(const Graph& graph, int operand) {
  int i = operand;
  while (graph[i].op.is_alias() && !graph[i].op.joins_shards() && graph[i].in.size() == 1) i = graph[i].in[0];
  const Value& v = graph[i];
  if (!v.is_constant && !(v.op && v.op.as<Broadcast>())) return {};
  const Shape& shape = v.spec.shape;
  if (shape.rank() < 2 || shape[-1] != graph[operand].spec.shape[-1]) return {};
  RepeatedRows rows{v.is_constant ? i : v.in[0], shape, shape};
  const Shape source = v.is_constant ? Shape{} : graph[rows.source].spec.shape;
  for (int axis = 2; axis <= shape.rank(); ++axis)
    if (axis > source.rank() || source[-axis] == 1) rows.once.set(-axis, 1);
  return rows.once == rows.repeated ? std::nullopt : std::optional(rows);
}

class ProductsOfRepeatedRows {
 public:
  Graph run(const Graph& graph) {
    rewrite_values(graph, made_, [this](const Value& v) { return rewritten(v); });
    return std::move(made_);
  }

 private:
  std::optional<int> rewritten(const Value& v) {
    const Matmul* product = v.op ? v.op.as<Matmul>() : nullptr;
    if (!product || product->transpose_a || made_[v.in[1]].spec.shape.rank() != 2) return {};
    const auto rows = repeated_rows(made_, v.in[0]);
    if (!rows) return {};
    const auto columns = [&](Shape shape) {
      shape.set(-1, v.spec.shape[-1]);
      return shape;
    };
    const int multiplied =
        add({.op = v.op, .in = {once(*rows), v.in[1]}, .spec = v.spec, .scope = v.scope}, columns(rows->once));
    return shaped<ReshapeOp>(shaped<Broadcast>(multiplied, columns(rows->repeated)), v.spec.shape);
  }

  int once(const RepeatedRows& rows) {
    const Value& source = made_[rows.source];
    return source.is_constant ? add(source, rows.once) : shaped<Broadcast>(rows.source, rows.once);
  }
  template <class Op> int shaped(int value, const Shape& shape) {
    const Value& v = made_[value];
    if (v.spec.shape == shape) return value;
    return add({.op = AnyOp::of(Op{shape}), .in = {value}, .spec = v.spec, .scope = v.scope}, shape);
  }
  int add(Value v, const Shape& shape) {
    v.spec.shape = shape;
    return made_.add(std::move(v));
  }

  Graph made_;
};

}  // namespace

void multiply_repeated_rows_once(Graph& graph) {
  const auto is_candidate = [&](const Value& v) {
    return v.op && v.op.as<Matmul>() && repeated_rows(graph, v.in[0]).has_value();
  };
  if (std::ranges::any_of(graph.values, is_candidate)) graph = ProductsOfRepeatedRows().run(graph);
}

}  // namespace gradus
