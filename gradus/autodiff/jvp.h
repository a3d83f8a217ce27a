/// Forward mode, as the gradient of the gradient. u -> vjp(y, x, u) is linear, and its own vjp is the derivative along
/// a tangent. Nothing of the backward walk is left in it once dead code is dropped.
#pragma once
#include <optional>
#include <vector>
#include "gradus/autodiff/vjp.h"
#include "gradus/base/rooms.h"

namespace gradus {

/// The derivative of y by `x` as a linear function of a tangent, which has the spec of x. The constructor records the
/// backward walk once. `stops` as for vjp.
class Pushforward {
 public:
  Pushforward(const Tensor& y, const Tensor& x, const Stops& stops = {});
  /// J v, in the spec of y; empty where y does not depend on x.
  Tensor operator()(const Tensor& tangent) const;

 private:
  Tensor cotangent_, gradient_;  // a symbol for the cotangent of y, and the gradient of x
};

/// Reverse mode as a function of the cotangent. The constructor records once all that does not depend on it.
class Pullback {
 public:
  Pullback(const Tensor& y, const Tensor& x, const Stops& stops = {});
  /// J' u, in the spec of x; empty where y does not depend on x.
  Tensor operator()(const Tensor& cotangent) const;

 private:
  friend class PullbackBuilder;
  struct Step {
    AnyOp op;
    std::uint32_t scope;
    std::vector<std::size_t> in;
  };
  // Value 0 is the cotangent; then come the fixed values and the results of the steps.
  Tensors fixed_;
  std::vector<Step> steps_;
  std::optional<std::size_t> result_;
};

}  // namespace gradus
