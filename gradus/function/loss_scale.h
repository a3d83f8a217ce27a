/// LossScale: a factor that keeps gradients of narrow floats from vanishing. It is fixed, or dynamic: it doubles after
/// 2000 finite steps in a row and halves after one that is not finite. It belongs to variables. A tape multiplies the
/// first cotangent by it, and divides the gradient by it again, in the variable's type. Only an optimizer changes it.
#pragma once
#include <array>
#include <memory>
#include "gradus/base/ranges.h"
#include "gradus/function/variable.h"

namespace gradus {

/// Options of LossScale.
struct LossScaleOptions {
  double initial = 32768;             // a power of two changes no bit of a gradient that neither vanishes nor overflows
  std::int64_t steps_to_grow = 2000;  // finite steps in a row
  bool dynamic = true;                // false: it is fixed; steps that are not finite are skipped nevertheless
  bool operator==(const LossScaleOptions&) const = default;
  static constexpr auto ranges() {
    return std::array{Allowed::within(0x1p-126, 0x1p126, "initial"), Allowed::positive("steps_to_grow")};
  }
};

/// The factor that gradients of narrow floats are scaled with.
class LossScale {
 public:
  static constexpr double initial = LossScaleOptions().initial;                    // by default
  static constexpr std::int64_t steps_to_grow = LossScaleOptions().steps_to_grow;  // by default
  /// Bounds that keep it and its reciprocal normal numbers of f32. It may go below 1.
  static constexpr double most = 0x1p126, least = 0x1p-126;

  explicit LossScale(LossScaleOptions options = {});
  /// A separate scale with the same state.
  LossScale(const LossScale&) = default;

  /// The scale as an f32 scalar. It stays a power of two if it began as one.
  Tensor now() const { return scale_; }
  /// The scale as a number; waits for it.
  double value() const { return scale_.value().item(); }
  /// Adjusts the scale after a step. `finite`: a boolean scalar, true if the gradients were finite.
  void update(const Tensor& finite);
  /// Takes over the state of `other`.
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
