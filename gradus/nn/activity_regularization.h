/// A layer that only adds an activity penalty.
#pragma once
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// Options of ActivityRegularization.
struct ActivityRegularizationOptions {
  double l1 = 0, l2 = 0;  // factors of sum(|x|) and of sum(x^2)
  static constexpr auto ranges() { return std::array{Allowed::not_negative("l1 l2")}; }
};
/// Returns x and adds l1 * sum(|x|) + l2 * sum(x^2), divided by the rows of x, to model.losses().
struct ActivityRegularization : Module {
  ActivityRegularization() : ActivityRegularization(ActivityRegularizationOptions()) {}
  explicit ActivityRegularization(ActivityRegularizationOptions options);
};

}  // namespace gradus
