/// Layers that rearrange or activate, all examples in the same way. Only PReLU has variables.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// [batch, ...] -> [batch, target...]. One size of -1 is inferred.
struct Reshape : Module {
  explicit Reshape(const Shape& target);
};
/// Permutes dimensions: dimension i of an example (counted from 1, the batch being 0) is dimension order[i - 1] of the
/// input.
struct Permute : Module {
  explicit Permute(std::vector<int> order);
};
/// Repeats each example: [batch, features] -> [batch, n, features].
struct RepeatVector : Module {
  explicit RepeatVector(std::int64_t n);
};

/// Options of ReLU.
struct ReLUOptions {
  std::optional<double> max_value = {};      // upper bound of the result; none by default
  double negative_slope = 0, threshold = 0;  // slope below the threshold; the threshold
  static constexpr auto ranges() { return std::array{Allowed::not_negative("max_value negative_slope threshold")}; }
};
/// min(x, max_value); below the threshold negative_slope * (x - threshold).
struct ReLU : Module {
  ReLU();
  explicit ReLU(ReLUOptions options);
};
/// x for x > 0, else negative_slope * x.
struct LeakyReLU : Module {
  LeakyReLU() : LeakyReLU(0.3) {}
  explicit LeakyReLU(double negative_slope);
};
/// x for x >= 0, else alpha * (exp(x) - 1).
struct ELU : Module {
  ELU() : ELU(1) {}
  explicit ELU(double alpha);
};
/// x for x >= 0, else alpha * x. There is one alpha per feature of an example, a variable that starts at 0. Along the
/// axes in `shared_axes` (counted from 1) features share it.
struct PReLU : Module {
  PReLU() : PReLU(std::vector<int>()) {}
  explicit PReLU(std::vector<int> shared_axes);
};
/// softmax along `axis`. Along an axis of the input's mask it covers the elements that count; the others give 0.
struct Softmax : Module {
  Softmax() : Softmax(-1) {}
  explicit Softmax(int axis);
  explicit Softmax(NamedAxis named) : Softmax(named.axis) {}
};

}  // namespace gradus
