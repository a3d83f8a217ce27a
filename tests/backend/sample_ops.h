/// A few ops of every kind, and graphs made of them, for tests of rooms that know no op by name.
#pragma once
#include <limits>
#include "gradus/graph/graph.h"
#include "gradus/ops/views.h"

namespace gradus::sample {

using scalar::Literal;

struct Add {
  static constexpr auto name = "sample_add";
  auto emit(auto a, auto b) const { return a + b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Subtract {
  static constexpr auto name = "sample_subtract";
  auto emit(auto a, auto b) const { return a - b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Multiply {
  static constexpr auto name = "sample_multiply";
  auto emit(auto a, auto b) const { return a * b; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
/// x*x*x + x/3, in several instructions.
struct Cubic {
  static constexpr auto name = "sample_cubic";
  static constexpr auto takes = Takes::floats;
  auto emit(auto x) const { return fma(x * x, x, x / Literal(3)); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Sum {
  static constexpr auto name = "sample_sum";
  int axis = -1;
  auto combine(auto a, auto x) const { return a + x; }
  static Literal identity(DType) { return 0; }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Max {
  static constexpr auto name = "sample_max";
  int axis = -1;
  auto combine(auto a, auto x) const { return max(a, x); }
  static Literal identity(DType t) {
    if (is_floating(t)) return -std::numeric_limits<double>::infinity();
    return t == u8 ? 0 : t == i32 ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
  }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
/// 3 * index + 1
struct Ramp {
  static constexpr auto name = "sample_ramp";
  Shape shape = {};
  Spec infer(Specs) const { return {i64, shape}; }
  auto emit_index(auto i) const { return i * Literal(3) + Literal(1); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};
struct Cast {
  static constexpr auto name = "sample_cast";
  static constexpr auto takes = Takes::anything;
  DType to = f32;
  DType result(Specs) const { return to; }
  auto emit(auto x) const { return convert(x, to); }
  Tensors vjp(In, const Tensor&, const Tensor&) const { return {}; }
};

/// Builds a graph value by value.
struct Builder {
  Graph graph;
  int input(const Spec& spec) {
    graph.inputs.push_back(graph.add({.spec = spec}));
    return graph.inputs.back();
  }
  int constant(const Spec& spec, double value) {
    return graph.add({.spec = spec, .is_constant = true, .constant = Literal(value).bits_as(spec.dtype)});
  }
  template <class Op> int add(const Op& op, std::vector<int> in) {
    std::vector<Spec> specs;
    for (int i : in) specs.push_back(graph[i].spec);
    const AnyOp any = AnyOp::of(op);
    return graph.add({.op = any, .in = std::move(in), .spec = any.infer(specs)});
  }
};

}  // namespace gradus::sample
