/// The plain step of training, compiled, and what is measured of it.
#pragma once
#include "bench/object_step.h"
#include "bench/ranks.h"
#include "bench/workloads.h"
#include "gradus/function/function.h"
#include "gradus/function/mode.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/tape.h"
#include "gradus/nn/losses.h"
#include "gradus/ops/elementwise.h"
#include "gradus/optim/optimizers.h"

namespace gradus::bench {

/// Forward, loss, backward and update in one program; refers to all three. Scores of narrow floats are widened for the
/// loss.
template <class M, class L> auto train_step(M& model, Optimizer& optimizer, const L& loss_function) {
  return function(
      [&](Tensor x, Tensor y) {
        GradientTape tape;
        Loss loss = loss_function(y, cast(model(x, training), f32));
        optimizer.apply_gradients(tape.gradient(loss, model.trainable_variables()));
        return loss;
      },
      function_options);
}

/// Times step(x, y), which gives a loss.
Figures measure_training(const auto& step, const Tensor& x, const Tensor& y) {
  synchronize();
  if (measures_object) return measure_object(step, x, y);
  if (!stablehlo_file.empty()) {
    step.export_stablehlo(stablehlo_file, {x.spec(), y.spec()});
    return {};
  }
  std::vector<double> losses;
  Figures figures = measure({.step = [&] { losses.push_back(run_step(step, x, y).item()); },
                             .step_without_reading = [&] { run_step(step, x, y); },
                             .wait = synchronize,
                             .lacks_steps = [&] { return losses.size() <= compared_steps; }});
  add_losses(figures, losses);
  figures.explain(explain_step(step));
  return figures;
}

}  // namespace gradus::bench
