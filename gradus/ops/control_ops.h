/// Branches and loops in a graph: ops whose attributes are regions. Every result is a node of its own. The compiler
/// makes one step of the results that belong together, and leaves out those that nobody asked for.
#pragma once
#include "gradus/base/rooms.h"
#include "gradus/graph/region.h"

namespace gradus {

/// scan over the rows of all of `xs`, which have as many rows each. body(state..., row of each of xs...) gives the next
/// state, which keeps its specs, then results. Returns the final state, then the results stacked along a new axis 0.
Tensors scan_together(std::string_view construct, const std::function<Tensors(In)>& body, In state, In xs);

/// A loop over chunks of rows. body(carries..., chunk of each of xs...) gives the carries, then results whose rows are
/// joined along axis 0. Every chunk has `rows` rows, the last one those that are left; if they are fewer, the body is
/// traced for both. Chunks have the masks of their rows. Returns the final carries, then the joined results. `xs` must
/// have the same known number of rows (InvalidArgument).
Tensors scan_rows(std::string_view construct, const std::function<Tensors(In carries, In chunks)>& body, In carries,
                  In xs, std::int64_t rows);

/// One of two regions, which have the same inputs and outputs. Operands: the predicate, then the inputs.
struct Cond {
  static constexpr auto name = "cond";
  static constexpr auto control = "cond";
  Region if_true = {}, if_false = {};
  int output = 0;

  int outputs() const { return if_true ? static_cast<int>(if_true.outputs()) : 0; }
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Cotangents& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The body, `iterations` times.
/// Operands:
///   - if `counted` the number of iterations (one i64, at most `iterations`);
///   - the carries;
///   - singles: taken one element along axis 0 per iteration;
///   - chunks: taken `rows` rows per iteration;
///   - whole: seen whole by all iterations.
///
/// The body takes (carries, singles, chunks, whole) and gives (carries, singles, chunks). Outputs: the last carries,
/// the stacked singles, the joined chunks, and for each carry its history, the value before each iteration. Iterations
/// that did not happen leave zeros.
struct Scan {
  static constexpr auto name = "scan";
  static constexpr auto control = "scan";
  Region body = {};
  Region last = {};  // body of the last iteration if it takes fewer rows; else empty
  int carries = 0;
  int singles = 0, chunks = 0;  // numbers of them among the operands
  int stacked = 0;              // number of singles among the outputs of the body
  std::int64_t iterations = 0;  // a dimension, may be symbolic
  std::int64_t rows = 0;        // of a chunk
  std::int64_t last_rows = 0;   // of the last chunk
  bool reverse = false;         // goes from the last element to the first
  bool counted = false;
  int output = 0;

  int outputs() const { return body ? static_cast<int>(body.outputs()) + carries : 0; }
  std::int64_t total_rows() const;
  // Index of the first operand of each kind.
  int first_carry() const { return counted ? 1 : 0; }
  int first_single() const { return first_carry() + carries; }
  int first_chunk() const { return first_single() + singles; }
  int first_whole() const { return first_chunk() + chunks; }
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Cotangents& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;
};

/// The body, while the condition holds. Operands: the carries, then values that both regions see whole. Outputs: the
/// last carries, the number of iterations (i64), and if max_iterations is not 0 for each carry its history
/// [max_iterations, ...], with zeros for iterations that did not happen.
struct While {
  static constexpr auto name = "while";
  static constexpr auto control = "while";
  Region condition = {}, body = {};
  int carries = 0;
  std::int64_t max_iterations = 0;
  int output = 0;

  int outputs() const { return carries + 1 + (max_iterations > 0 ? carries : 0); }
  Spec infer(Specs in) const;
  Tensors vjp(In in, const Cotangents& dy) const;
  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const;

 private:
  Tensors bounded_vjp(In in, const Cotangents& dy) const;
  Tensors unbounded_vjp(const Tensor& count, In in, const Cotangents& dy) const;
};

}  // namespace gradus
