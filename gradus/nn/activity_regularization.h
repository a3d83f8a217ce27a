/// A layer that only asks for a penalty.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

struct ActivityRegularizationOptions {
  double l1 = 0, l2 = 0;
  static constexpr auto ranges() { return std::array{Allowed::not_negative("l1 l2")}; }
};
/// x; model.losses() has l1 * sum(|x|) + l2 * sum(x^2), divided by the rows of x.
struct ActivityRegularization : Module {
  ActivityRegularization() : ActivityRegularization(ActivityRegularizationOptions()) {}
  explicit ActivityRegularization(ActivityRegularizationOptions options);
};

}  // namespace gradus
