/// Calls of regions that stand in a graph until the compiler replaces them by what they call (compiler/inline): the
/// place where a gradient of one's own, or a recomputation, hangs.
#pragma once
#include <functional>
#include "gradus/graph/region.h"

namespace gradus {

/// f(in), whose gradient computes f again from `in` instead of keeping what is inside alive. `construct` is what errors
/// call it.
Tensors recomputed(std::string_view construct, In in, const std::function<Tensors(In)>& f);

/// A value, and what gives its gradients by the arguments, one each, of a cotangent.
struct WithPullback {
  Tensor value;
  std::function<Tensors(const Tensor& dy)> pullback;
};
/// f(in).value with the gradient that its pullback gives. Both are run once, on symbols. InvalidArgument if the
/// pullback gives another number of gradients than there are arguments, or one of another spec than its argument. What
/// f captures has its ordinary gradient.
Tensor with_gradient(In in, const std::function<WithPullback(In)>& f);

}  // namespace gradus
