/// Normalization layers, with Keras's defaults. Each has the variables gamma (ones) and beta (zeros), unless its
/// options switch off scale or center.
#pragma once
#include <vector>
#include "gradus/base/ranges.h"
#include "gradus/base/other_names.h"
#include "gradus/nn/module.h"
#include "gradus/nn/regularizers.h"
#include "gradus/ops/named_axis.h"

namespace gradus {

/// Options of BatchNormalization.
struct BatchNormalizationOptions {
  double momentum = 0.99, epsilon = 1e-3;  // decay rate of the moving statistics; added to the variance
  bool center = true, scale = true;        // the layer has beta; it has gamma
  bool synchronized = false;  // where a strategy runs the step: statistics of the whole batch, not of each shard
  Regularizer beta_regularizer = {}, gamma_regularizer = {};  // penalties on the variables
  static constexpr auto ranges() { return std::array{Allowed::share("momentum"), Allowed::positive("epsilon")}; }
};
/// Batch normalization over the last axis (Ioffe and Szegedy 2015). In training it uses the mean and biased variance of
/// the batch, which also update the statistics `moving = momentum * moving + (1 - momentum) * batch`. In inference it
/// uses the moving statistics. A frozen layer (set_trainable) always works as in inference, and updates nothing, as in
/// Keras. Masked elements do not count for the batch's statistics.
struct BatchNormalization : Module {
  BatchNormalization();
  explicit BatchNormalization(BatchNormalizationOptions options);
};

/// Options of LayerNormalization.
struct LayerNormalizationOptions {
  double epsilon = 1e-3;                                      // added to the variance
  bool center = true, scale = true;                           // the layer has beta; it has gamma
  std::vector<int> axis = {-1};                               // axes of the moments
  std::string name = {};                                      // empty: by its class
  Regularizer beta_regularizer = {}, gamma_regularizer = {};  // penalties on the variables
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// Normalizes each example by its own mean and biased variance over `axis`, whose extents must be known (Ba et al.
/// 2016).
struct LayerNormalization : Module {
  LayerNormalization();
  explicit LayerNormalization(LayerNormalizationOptions options);
};

/// Options of RMSNormalization.
struct RMSNormalizationOptions {
  double epsilon = 1e-6;         // added to the mean square
  std::vector<int> axis = {-1};  // axes of the mean
  std::string name = {};         // empty: by its class
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// x / sqrt(mean(x^2) + epsilon) * scale over `axis` (Zhang and Sennrich 2019). Its variable is called scale.
struct RMSNormalization : Module {  // a mask of the input ends here, as in Keras
  RMSNormalization();
  explicit RMSNormalization(RMSNormalizationOptions options);
};

namespace detail {
struct NoGroups {
  NoGroups() = default;
  template <class... T>
    requires GivenValues<T...>
  NoGroups(const T&...) {
    static_assert((std::is_void_v<T> && ...), "there is no option groups: they come first, GroupNormalization(4)");
  }
};
}  // namespace detail

/// Options of GroupNormalization.
struct GroupNormalizationOptions {
  int axis = -1;                                              // axis of the channels
  double epsilon = 1e-3;                                      // added to the variance
  bool center = true, scale = true;                           // the layer has beta; it has gamma
  std::string name = {};                                      // empty: by its class
  Regularizer beta_regularizer = {}, gamma_regularizer = {};  // penalties on the variables
  detail::NoGroups groups = {};                               // never set: groups are the first argument
  static constexpr auto ranges() { return std::array{Allowed::positive("epsilon"), Allowed::any("axis")}; }
};
/// Normalizes each example by the moments of groups of neighbouring channels (Wu and He 2018). -1 groups: one per
/// channel.
struct GroupNormalization : Module {
  GroupNormalization() : GroupNormalization(32) {}
  explicit GroupNormalization(std::int64_t groups, GroupNormalizationOptions options = {});
  explicit GroupNormalization(GroupNormalizationOptions) = delete;  // groups come first: GroupNormalization(4)
};

/// x / |x|, with the Euclidean norm over `axis`. No variables.
struct UnitNormalization : Module {
  UnitNormalization() : UnitNormalization(std::vector<int>{-1}) {}
  explicit UnitNormalization(NamedAxes named);
  template <class = void>
  explicit UnitNormalization(std::vector<int> axis) : UnitNormalization(NamedAxes{std::move(axis)}) {}
};

}  // namespace gradus
