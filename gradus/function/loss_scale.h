/// LossScale: the factor by which gradients of narrow floats are kept from vanishing. Dynamic: it doubles after 2000
/// finite steps in a row and halves after one that is not finite; or fixed. It belongs to variables: a tape multiplies
/// its cotangent with it and takes it out again in the variable's type, an optimizer alone changes it.
#pragma once
#include <array>
#include <memory>
#include "gradus/base/ranges.h"
#include "gradus/function/variable.h"

namespace gradus {

struct LossScaleOptions {
  double initial = 32768;             // a power of two changes no bit of a gradient that neither vanishes nor overflows
  std::int64_t steps_to_grow = 2000;  // finite steps in a row
  bool dynamic = true;                // else it stays as it is; steps that are not finite are skipped all the same
  bool operator==(const LossScaleOptions&) const = default;
  static constexpr auto ranges() {
    return std::array{Allowed::within(0x1p-126, 0x1p126, "initial"), Allowed::positive("steps_to_grow")};
  }
};

class LossScale {
 public:
  static constexpr double initial = LossScaleOptions().initial;
  static constexpr std::int64_t steps_to_grow = LossScaleOptions().steps_to_grow;
  /// Bounds that keep it and its reciprocal normal numbers of f32. It may go below 1.
  static constexpr double most = 0x1p126, least = 0x1p-126;

  explicit LossScale(LossScaleOptions options = {});
  /// One of its own with the same state.
  LossScale(const LossScale&) = default;

  /// A power of two if it began as one, an f32 scalar.
  Tensor now() const { return scale_; }
  double value() const { return scale_.value().item(); }
  /// After a step whose gradients were finite or not, a boolean scalar.
  void update(const Tensor& finite);
  /// Takes over the state of another one.
  void assign(const LossScale& other);
  /// Scale and count: for checkpoints.
  Variables variables() const;

 private:
  LossScaleOptions options_;
  Variable scale_, finite_steps_;  // f32, i64
};

/// The loss scale that these variables have; null if none has any. InvalidArgument if they have several.
std::shared_ptr<LossScale> loss_scale_of(const Variables& variables);

}  // namespace gradus
