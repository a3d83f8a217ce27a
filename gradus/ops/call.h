/// Calls of regions, which stay in a graph until the compiler inlines them (compiler/inline). A custom gradient, or a
/// recomputation, is attached to such a call.
#pragma once
#include <functional>
#include "gradus/graph/region.h"

namespace gradus {

namespace detail::inline rooms {

/// f(in), with a gradient that computes f again from `in` instead of keeping its intermediate values alive (gradient
/// checkpointing). `construct` is the name that errors give it.
Tensors recomputed(std::string_view construct, In in, const std::function<Tensors(In)>& f);

/// A value and its pullback.
struct WithPullback {
  Tensor value;                                       // the result
  std::function<Tensors(const Tensor& dy)> pullback;  // takes the cotangent of `value`, gives one gradient per argument
};
/// f(in).value, with the gradient that its pullback gives. Both are run once, on symbols. InvalidArgument if the
/// pullback gives another number of gradients than there are arguments, or a gradient of another spec than its
/// argument. Values that f captures have their ordinary gradient.
Tensor with_gradient(In in, const std::function<WithPullback(In)>& f);

}  // namespace detail::inline rooms

}  // namespace gradus
