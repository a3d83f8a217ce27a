/// Layers that rearrange or activate, one example like the other. All but PReLU are without variables.
#pragma once
#include <optional>
#include <vector>
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
};
/// x, above max_value that, below the threshold negative_slope * (x - threshold).
struct ReLU : Module {
  ReLU();
  explicit ReLU(ReLUOptions options);
};
/// x, for x <= 0 negative_slope * x.
struct LeakyReLU : Module {
  explicit LeakyReLU(double negative_slope = 0.3);
};
/// x, for x < 0 alpha * (exp(x) - 1).
struct ELU : Module {
  explicit ELU(double alpha = 1);
};
/// x, for x < 0 alpha * x with one alpha for each feature of an example, a variable that starts at 0; along the axes in
/// `shared_axes` (counted from 1) they share it.
struct PReLU : Module {
  explicit PReLU(std::vector<int> shared_axes = {});
};
/// softmax along `axis`; along one that the input's mask has, among the places that count: the others give 0.
struct Softmax : Module {
  explicit Softmax(int axis = -1);
};

}  // namespace gradus
