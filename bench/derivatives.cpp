/// Derivatives other than a training step's: by inputs, and of each example on its own.
#include "bench/classifier.h"
#include "bench/workloads.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/batches.h"
#include "gradus/gradients/per_example.h"
#include "gradus/ops/elementwise.h"
#include "gradus/ops/reduce.h"
#include "gradus/tensor/memory.h"

namespace gradus::bench {
namespace {

/// `compute` gives one tensor of the arguments.
Figures measure_on(const auto& compute, const auto&... arguments) {
  synchronize();
  Figures figures = measure({.step = [&] { compute(arguments...).observed(); },
                             .step_without_reading = [&] { compute(arguments...); },
                             .wait = synchronize});
  figures.explain(compute.explain());
  return figures;
}

/// What stays in the caches of a core is also the fastest.
constexpr std::size_t budget = 16 * MiB;

/// All outputs by all inputs, example by example.
Figures jacobian() {
  Sequential model{Dense(256, tanh), Dense(256, tanh), Dense(10)};
  const Tensor x = batch_of({8192, 64}).x;
  model.build(x.spec());
  assign_given(model.trainable_variables());
  const auto of_rows =
      function([&](Tensor rows) { return batch_jacobian(model, rows, {.max_bytes = budget}); }, function_options);
  Figures figures = measure_on(of_rows, x);
  figures.extra["sumabs"] = reduce_sum(abs(of_rows(x))).item();
  return figures;
}

/// The gradient of the sum of all outputs by the inputs.
Figures input_grad() {
  Sequential model{Dense(512, relu), Dense(512, relu), Dense(1)};
  const Tensor x = batch_of({65536, 784}).x;
  model.build(x.spec());
  const auto of_part = [&](const Tensor& part) {
    return gradient([&](Tensor rows) { return reduce_sum(model(rows, inference)); }, part);
  };
  const auto of_rows =
      function([&](Tensor rows) { return map_batches(of_part, rows, {.max_bytes = budget}); }, function_options);
  return measure_on(of_rows, x);
}

/// The norm of each example's gradient over all parameters.
Figures pegn() {
  Sequential model = perceptron({128});
  const auto [x, y] = batch_of({1024, 784});
  model.build(x.spec());
  assign_given(model.trainable_variables());
  const auto losses = [&](Tensor rows, Tensor labels) {
    return sparse_categorical_crossentropy(labels, model(rows, inference), from_logits);
  };
  const auto norms = function(
      [&](Tensor rows, Tensor labels) {
        return per_example_gradients(losses, model.trainable_variables(), {rows, labels}).norms();
      },
      function_options);
  Figures figures = measure_on(norms, x, y);
  figures.extra["sum"] = reduce_sum(norms(x, y)).item();
  return figures;
}

}  // namespace

void add_derivatives(Workloads& workloads) {
  workloads["jacobian"] = jacobian;
  workloads["input_grad"] = input_grad;
  workloads["pegn"] = pegn;
}

}  // namespace gradus::bench
