/// The rule of loss scaling.
#include "gradus/function/loss_scale.h"
#include "gradus/function/variable_cell.h"
#include "gradus/graph/context.h"
#include "gradus/ops/constant.h"
#include "gradus/ops/elementwise.h"

namespace gradus {
namespace {

/// Outside of traces an assignment waits for the value before, which may fail: here, so that no second one fails after
/// the first.
void settle(const Variables& variables) {
  if (Context::current()) return;
  for (const auto& cell : variables.cells()) cell->read().observed();
}

}  // namespace

LossScale::LossScale(LossScaleOptions options)
    : options_((check_options("LossScale", options), options)),
      scale_(full({}, options.initial, f32), "loss_scale", {.trainable = false}),
      finite_steps_(zeros({}, i64), "loss_scale_finite_steps", {.trainable = false}) {}

void LossScale::update(const Tensor& finite) {
  if (!options_.dynamic) return;
  settle(variables());
  const Tensor scale = scale_, steps = finite_steps_.value() + 1;
  const Tensor grows = steps >= fill({}, options_.steps_to_grow, i64), none = fill({}, 0, i64);
  const Tensor after_finite = where(grows, minimum(scale * 2, fill({}, most, f32)), scale);
  const Tensor next = where(finite, after_finite, maximum(scale * 0.5, fill({}, least, f32)));
  const Tensor next_steps = where(logical_and(finite, logical_not(grows)), steps, none);
  scale_.assign(next);
  finite_steps_.assign(next_steps);
}

void LossScale::assign(const LossScale& other) {
  settle(variables() + other.variables());
  const Tensor scale = other.scale_, steps = other.finite_steps_;
  scale_.assign(scale);
  finite_steps_.assign(steps);
}

Variables LossScale::variables() const {
  Variables both;
  both.add(scale_);
  both.add(finite_steps_);
  return both;
}

std::shared_ptr<LossScale> loss_scale_of(const Variables& variables) {
  std::shared_ptr<LossScale> found;
  for (const auto& cell : variables.cells()) {
    if (!cell->loss_scale || cell->loss_scale == found) continue;
    require(!found, "variable ", cell->name,
            ": it has another loss scale than those before it; give the policy to one model that holds them all");
    found = cell->loss_scale;
  }
  return found;
}

}  // namespace gradus
