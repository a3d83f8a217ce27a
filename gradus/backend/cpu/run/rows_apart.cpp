/// Rows follow from walks: for loops those of their reads, for library kernels those that are known here.
#include "gradus/backend/cpu/run/rows_apart.h"
#include <algorithm>
#include <numeric>
#include "gradus/compiler/loops.h"
#include "gradus/ops/concat.h"
#include "gradus/ops/matmul.h"
#include "gradus/ops/matmul_ops.h"

namespace gradus {
namespace {

class Rows {
 public:
  Rows(const Graph& graph, const LoopBody& body, std::span<const std::int64_t> symbols)
      : graph_(graph), body_(body), symbols_(symbols), is_written_(graph) {}

  std::int64_t find() {
    for (int carry : body_.carries) {
      const int input = graph_.inputs[at(carry)];
      const Shape shape = shape_of(input);
      rows_ = std::gcd(rows_, shape.rank() == 0 ? 1 : shape[0]);
      is_written_[input] = true;
    }
    if (rows_ <= 1) return 0;
    for (const Step& step : body_.steps)
      for (int output : step.outputs) is_written_[output] = true;
    return std::ranges::all_of(body_.steps, [&](const Step& step) { return keeps_apart(step); }) ? rows_ : 0;
  }

 private:
  Shape shape_of(int value) const { return graph_[value].spec.shape.evaluated(symbols_); }
  std::int64_t size_of_value(int value) const { return shape_of(value).size(); }
  std::int64_t evaluate(std::int64_t dimension) const { return dimension::evaluate(dimension, symbols_); }
  bool has_rows(std::int64_t elements) const { return elements > 0 && elements % rows_ == 0; }

  bool keeps_apart(const Step& step) const {
    if (std::ranges::any_of(step.members, [&](int i) { return graph_[i].op.may_fail(); })) return false;
    for (int output : step.outputs)
      if (!has_rows(size_of_value(output))) return false;
    const int called = step.called();
    const Step loops = step.loops();
    if (loops.members.empty()) return called >= 0 && call_keeps_apart(called);
    return called < 0 && loops_keep_apart(loops);
  }

  bool call_keeps_apart(int value) const {
    const AnyOp& op = graph_[value].op;
    if (const Matmul* product = op.as<Matmul>()) return product_keeps_apart(*product, value);
    return op.as<Concat>() && concat_keeps_apart(value);
  }

  bool loops_keep_apart(const Step& step) const {
    if (std::ranges::any_of(step.members, [&](int i) { return is_column_reduction(graph_[i]); })) return false;
    if (!has_rows(evaluate(step.space[0]))) return false;
    return std::ranges::all_of(reads_of(graph_, step), [&](const Read& read) {
      return !is_written_[read.storage] ||
             (!read.is_table && stays_in_row(walk_of(graph_, read.operand), size_of_value(read.storage)));
    });
  }

  /// True if the elements of a row are read from the same row of `elements`.
  bool stays_in_row(const Walk& walk, std::int64_t elements) const {
    if (!has_rows(elements) || walk.table >= 0) return false;
    const std::int64_t row = elements / rows_;
    std::int64_t left = rows_, last = evaluate(walk.offset);  // rows that strides have yet to pass; of the first row
    for (const Stride& stride : walk.strides) {
      const std::int64_t extent = evaluate(stride.extent), step = evaluate(stride.step);
      if (stride.backwards || extent <= 0) return false;
      const std::int64_t outer = std::gcd(extent, left), inner = extent / outer;
      if (left > 1 && inner > 1 && outer != left) return false;
      if (outer > 1 && step * inner != row * (left / outer)) return false;
      left /= outer;
      last += (inner - 1) * step;
    }
    return left == 1 && last < row;
  }

  /// True for a batch of matrices times one, which is one tall product.
  bool product_keeps_apart(const Matmul& product, int value) const {
    const int a = graph_[value].in[0], b = graph_[value].in[1];
    if (product.transpose_a || graph_[b].spec.shape.rank() != 2 || is_written_[storage_of(graph_, b)]) return false;
    const Shape all = shape_of(a);
    return all.size() > 0 && has_rows(all.size() / all[-1]);
  }

  bool concat_keeps_apart(int value) const {
    const Shape all = shape_of(value);
    std::int64_t outer = 1;
    for (int i = 0; i < all.rank() + graph_[value].op.as<Concat>()->axis; ++i) outer *= all[i];
    return has_rows(outer);
  }

  const Graph& graph_;
  const LoopBody& body_;
  const std::span<const std::int64_t> symbols_;
  PerValue<bool> is_written_;  // in its own memory, in the loop
  std::int64_t rows_ = 0;
};

}  // namespace

std::int64_t rows_apart(const Graph& graph, const LoopBody& body, std::span<const std::int64_t> symbols) {
  return Rows(graph, body, symbols).find();
}

}  // namespace gradus
