/// Forward mode: the gradient of the gradient. u -> vjp(y, x, u) is linear, and its own vjp is the derivative along a
/// tangent; nothing of the walk back is left in it once dead code is dropped.
#pragma once
#include <optional>
#include <vector>
#include "gradus/autodiff/vjp.h"

namespace gradus {

/// y's derivative by `x` as a linear function of a tangent, which has the spec of x. The walk back is recorded once, by
/// the constructor. `stops` as for vjp.
class Pushforward {
 public:
  Pushforward(const Tensor& y, const Tensor& x, const Stops& stops = {});
  /// J v, of the spec of y; empty where y does not depend on x.
  Tensor operator()(const Tensor& tangent) const;

 private:
  Tensor cotangent_, gradient_;  // a symbol of what enters y, and what reaches x
};

/// Reverse mode as a function of its cotangent: what does not depend on that is recorded once, by the constructor.
class Pullback {
 public:
  Pullback(const Tensor& y, const Tensor& x, const Stops& stops = {});
  /// J' u, of the spec of x; empty where y does not depend on x.
  Tensor operator()(const Tensor& cotangent) const;

 private:
  friend class PullbackBuilder;
  struct Step {
    AnyOp op;
    std::uint32_t scope;
    std::vector<std::size_t> in;
  };
  // Value 0 is the cotangent; then come what is fixed and the results of the steps.
  Tensors fixed_;
  std::vector<Step> steps_;
  std::optional<std::size_t> result_;
};

}  // namespace gradus
