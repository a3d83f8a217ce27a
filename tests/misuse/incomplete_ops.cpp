// Ops that lack something: each must be refused by one line that says what to add. CASE 0 lacks nothing. The line of a
// case ends in what the compiler has to say (check_incomplete_ops.py tries them all).
#include "gradus/base/rooms.h"
#include "gradus/graph/tensor.h"
using namespace gradus;

struct Op {
#if CASE != 1  // this op has no name: add  static constexpr auto name = "..."
  static constexpr auto name = "op";
#endif
#if CASE != 2  // an op is computed in exactly one way: emit, combine, view, emit_index, alias, library_kernel, expand
  static constexpr auto library_kernel = "op";
#endif
#if CASE == 3  // an op is computed in exactly one way: emit, combine, view, emit_index, alias, library_kernel, expand
  void alias() const {}
#endif
#if CASE != 4  // this op has no shape rule: add  Spec infer(Specs in) const
  Spec infer(Specs in) const { return in[0]; }
#endif
#if CASE != 5  // this op has no gradient: add  Tensors vjp(In in, const Tensor& y, const Tensor& dy) const
  Tensors vjp(In, const Tensor&, const Tensor& dy) const { return {dy}; }
#endif
#if CASE != 6  // this op has no batching rule: add  Tensor batch(In in, std::uint32_t mask, std::int64_t n) const
  Tensor batch(In in, std::uint32_t, std::int64_t) const { return in[0]; }
#endif
};

Tensor applied(const Tensor& x) { return apply(Op{}, x); }
