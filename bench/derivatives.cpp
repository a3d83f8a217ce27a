/// Derivatives other than a training step's: by inputs, and of each example on its own.
#include "bench/classifier.h"
#include "bench/workloads.h"
#include "gradus/function/synchronize.h"
#include "gradus/gradients/functional.h"
#include "gradus/gradients/per_example.h"
#include "gradus/ops/reduce.h"

namespace gradus::bench {
namespace {

/// `compute` gives one tensor of x.
Figures measure_on(const auto& compute, const Tensor& x) {
  synchronize();
  return measure(
      {.step = [&] { compute(x).observed(); }, .step_without_reading = [&] { compute(x); }, .wait = synchronize});
}

/// The gradient of the sum of all outputs by the inputs.
Figures input_grad() {
  Sequential model{Dense(512, relu), Dense(512, relu), Dense(1)};
  const Tensor x = batch_of(65536, 784).x;
  model.build(x.spec());
  const auto by_inputs =
      function([&](Tensor rows) { return gradient([&](Tensor r) { return reduce_sum(model(r, inference)); }, rows); },
               function_options);
  return measure_on(by_inputs, x);
}

/// The norm of each example's gradient over all parameters.
Figures pegn() {
  Sequential model = perceptron({128});
  const auto [x, y] = batch_of(1024, 784);
  model.build(x.spec());
  const auto losses = [&](Tensor rows, Tensor labels) {
    return sparse_categorical_crossentropy(labels, model(rows, inference), from_logits);
  };
  const auto norms = function(
      [&](Tensor rows, Tensor labels) {
        return per_example_gradients(losses, model.trainable_variables(), {rows, labels}).norms();
      },
      function_options);
  Figures figures = measure_on([&](const Tensor& rows) { return norms(rows, y); }, x);
  figures.extra["sum"] = reduce_sum(norms(x, y)).item();
  return figures;
}

}  // namespace

void add_derivatives(Workloads& workloads) {
  workloads["input_grad"] = input_grad;
  workloads["pegn"] = pegn;
}

}  // namespace gradus::bench
