/// Rules of the barrier.
#include "gradus/ops/barrier.h"
#include "gradus/ops/shape.h"

namespace gradus {

Spec Barrier::infer(Specs in) const {
  require(in.size() == 2, "barrier: expected 2 operands, got ", in.size());
  return in[0];
}
Tensors Barrier::vjp(In, const Tensor&, const Tensor& dy) const { return {dy, {}}; }
Tensor Barrier::batch(In in, std::uint32_t mask, std::int64_t n) const {
  return barrier(has_rows(mask, 0) ? in[0] : repeat_rows(in[0], n), in[1]);
}
Tensor barrier(const Tensor& x, const Tensor& after) { return apply(Barrier{}, x, after); }

}  // namespace gradus
