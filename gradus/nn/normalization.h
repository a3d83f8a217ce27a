/// Normalising layers, with Keras's defaults. Each has the variables gamma (ones) and beta (zeros) unless it is told
/// not to scale or centre.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"

namespace gradus {

struct BatchNormalizationOptions {
  double momentum = 0.99, epsilon = 1e-3;
  bool center = true, scale = true;
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  static constexpr auto ranges() { return std::array{Allowed::share("momentum"), Allowed::positive("epsilon")}; }
};
/// Over the last axis: in training by the mean and biased variance of the batch, which also move the statistics
/// `moving = momentum * moving + (1 - momentum) * batch`; in inference by those (Ioffe and Szegedy 2015).
/// Frozen (set_trainable) it is as in inference always, and moves nothing, as in Keras.
/// Places that a mask of the input marks as none do not count for the batch's.
struct BatchNormalization : Module {
  BatchNormalization();
  explicit BatchNormalization(BatchNormalizationOptions options);
};

struct LayerNormalizationOptions {
  double epsilon = 1e-3;
  bool center = true, scale = true;
  std::vector<int> axis = {-1};
  std::string name = {};
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// Each example by its own mean and biased variance over `axis`, whose extents must be known (Ba et al. 2016).
struct LayerNormalization : Module {
  LayerNormalization();
  explicit LayerNormalization(LayerNormalizationOptions options);
};

struct RMSNormalizationOptions {
  double epsilon = 1e-6;
  std::vector<int> axis = {-1};
  std::string name = {};
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// x / sqrt(mean(x^2) + epsilon) * scale over `axis` (Zhang and Sennrich 2019). Its variable is called scale.
struct RMSNormalization : Module {  // a mask of the input ends here, as in Keras
  RMSNormalization();
  explicit RMSNormalization(RMSNormalizationOptions options);
};

struct GroupNormalizationOptions {
  int axis = -1;  // of the channels
  double epsilon = 1e-3;
  bool center = true, scale = true;
  std::string name = {};
  Regularizer beta_regularizer = {}, gamma_regularizer = {};
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// Each example by the moments of groups of neighbouring channels (Wu and He 2018); -1 groups: one a channel.
struct GroupNormalization : Module {
  GroupNormalization() : GroupNormalization(32) {}
  explicit GroupNormalization(std::int64_t groups, GroupNormalizationOptions options = {});
};

/// x / |x|, the Euclidean norm over `axis`. No variables.
struct UnitNormalization : Module {
  UnitNormalization() : UnitNormalization(std::vector<int>{-1}) {}
  explicit UnitNormalization(std::vector<int> axis);
};

}  // namespace gradus
