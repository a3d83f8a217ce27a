/// Rules of copies.
#include "gradus/graph/copy.h"
#include "gradus/graph/mask.h"

namespace gradus {

/// The gradient goes back to where the operand is.
Tensors Copy::vjp(In in, const Tensor&, const Tensor& dy) const { return {copy_to(dy, in[0].spec().device)}; }

Tensor copy_to(const Tensor& x, Placement to) { return x.spec().device == to ? x : apply(Copy{to}, x); }

Tensor Tensor::to(const Device& device) const {
  require_present(device);
  const Tensor there = copy_to(*this, device);
  if (const Tensor places = SequenceMask::of(*this); places.defined() && there.node() != node_)
    SequenceMask::set(there, copy_to(places, device));
  return there;
}

}  // namespace gradus
