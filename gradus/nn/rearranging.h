/// Layers that rearrange or activate, one example like the other. All but PReLU are without variables.
#pragma once
#include <optional>
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"

namespace gradus {

/// [batch, ...] -> [batch, target...]; one -1 is worked out.
struct Reshape : Module {
  explicit Reshape(const Shape& target);
};
/// Dimension i of an example (counted from 1, the batch being 0) is dimension order[i - 1] of the input.
struct Permute : Module {
  explicit Permute(std::vector<int> order);
};
/// [batch, features] -> [batch, n, features]
struct RepeatVector : Module {
  explicit RepeatVector(std::int64_t n);
};

struct ReLUOptions {
  std::optional<double> max_value = {};
  double negative_slope = 0, threshold = 0;
  static constexpr auto ranges() { return std::array{Allowed::not_negative("max_value negative_slope threshold")}; }
};
/// x, above max_value that, below the threshold negative_slope * (x - threshold).
struct ReLU : Module {
  ReLU();
  explicit ReLU(ReLUOptions options);
};
/// x, for x <= 0 negative_slope * x.
struct LeakyReLU : Module {
  LeakyReLU() : LeakyReLU(0.3) {}
  explicit LeakyReLU(double negative_slope);
};
/// x, for x < 0 alpha * (exp(x) - 1).
struct ELU : Module {
  ELU() : ELU(1) {}
  explicit ELU(double alpha);
};
/// x, for x < 0 alpha * x with one alpha for each feature of an example, a variable that starts at 0; along the axes in
/// `shared_axes` (counted from 1) they share it.
struct PReLU : Module {
  PReLU() : PReLU(std::vector<int>()) {}
  explicit PReLU(std::vector<int> shared_axes);
};
/// softmax along `axis`; along one that the input's mask has, among the places that count: the others give 0.
struct Softmax : Module {
  Softmax() : Softmax(-1) {}
  explicit Softmax(int axis);
};

}  // namespace gradus
